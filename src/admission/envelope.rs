//! Headers (HTTP-4 to HTTP-6, HDR-1 to HDR-7, HDR-15, SIG-1, DAT-1, DIG-2, FWD-2): everything that is wrong with them
//! comes in one answer, in the order of the rules (HDR-6).

use super::{Announced, Head, Policy};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason, Refusal,
        headers::{self, Header, accept, connection, content, date, identifier},
        operations::{Body, Operation, Required, Takes},
    },
};

/// The headers have the form that the interface gives them.
#[must_use]
#[derive(Debug)]
pub(super) struct Envelope {
    date: Timestamp,
}

impl Envelope {
    /// The Date header (DAT-1).
    pub(super) const fn date(&self) -> Timestamp {
        self.date
    }
}

pub(super) fn check(
    head: &Head<'_>,
    body: Announced,
    operation: &Operation,
    policy: &Policy,
) -> Result<Envelope, Refusal> {
    let mut faults = Vec::new();
    content_faults(head, body, operation, policy, &mut faults);
    missing(head, body, operation, &mut faults);
    blank(head, operation, &mut faults);
    identifiers(head, operation, &mut faults);
    duplicates(head, operation, &mut faults);
    if headers::SIGNATURE.get_filled(head.headers).is_none() {
        let text = "missing: sign the request with the key of the certificate in TPP-Signature-Certificate";
        faults.push(Fault::header(
            Reason::SignatureMissing,
            headers::SIGNATURE.written,
            text,
        ));
    }
    let date = read_date(head, &mut faults);
    nominations(head, &mut faults);
    match (Refusal::of(faults), date) {
        (None, Some(date)) => Ok(Envelope { date }),
        (Some(refusal), _) => Err(refusal),
        // A date that cannot be read is always a fault; should that ever change, nothing passes by it.
        (None, None) => Err(Refusal::new(Reason::HeaderMissing)),
    }
}

/// HTTP-4 to HTTP-6.
fn content_faults(
    head: &Head<'_>,
    body: Announced,
    operation: &Operation,
    policy: &Policy,
    faults: &mut Vec<Fault>,
) {
    if body != Announced::Nothing && operation.body != Body::Ignored {
        let kind = headers::CONTENT_TYPE.get(head.headers);
        if kind.is_some_and(|kind| !content::is_utf8_json(kind.as_bytes())) {
            let text = "send application/json, or application/*+json, with no charset but utf-8";
            faults.push(Fault::header(
                Reason::MediaTypeUnsupported,
                headers::CONTENT_TYPE.written,
                text,
            ));
        }
        let coding = headers::CONTENT_ENCODING.get(head.headers);
        if coding.is_some_and(|coding| !content::is_identity(coding.as_bytes())) {
            let text = "send the body without a content coding";
            faults.push(Fault::header(
                Reason::MediaTypeUnsupported,
                headers::CONTENT_ENCODING.written,
                text,
            ));
        }
    }
    if !accept::allows_json(head.headers) {
        faults.push(Fault::header(
            Reason::NotAcceptable,
            headers::ACCEPT.written,
            "it excludes application/json; accept that or leave it out",
        ));
    }
    if let Announced::Length(length) = body
        && usize::try_from(length).map_or(true, |length| length > policy.body_limit)
    {
        faults.push(too_large(policy));
    }
}

/// HTTP-6, also where a body shows its size only as it comes.
pub(super) fn too_large(policy: &Policy) -> Fault {
    Fault::body(
        Reason::BodyTooLarge,
        format!("a body may have {} bytes", policy.body_limit),
    )
}

/// HDR-1 to HDR-5, and DIG-2. Signature is SIG-1's, which names its absence more exactly.
fn missing(head: &Head<'_>, body: Announced, operation: &Operation, faults: &mut Vec<Fault>) {
    let absent = |header: &Header| header.get_filled(head.headers).is_none();
    let mut report = |header: &Header, text: &str| {
        faults.push(Fault::header(Reason::HeaderMissing, header.written, text))
    };
    for required in &operation.required {
        match required {
            Required::One(header) if absent(header) => {
                report(header, "missing or empty: this operation requires it")
            }
            Required::Either(one, other) if absent(one) && absent(other) => {
                report(
                    one,
                    &format!(
                        "missing or empty: this operation requires it, or {} in its place",
                        other.written
                    ),
                );
            }
            Required::One(_) | Required::Either(..) => {}
        }
    }
    if absent(&headers::TPP_SIGNATURE_CERTIFICATE) {
        report(
            &headers::TPP_SIGNATURE_CERTIFICATE,
            "missing or empty: send the base64 of the certificate that the request is signed with",
        );
    }
    if absent(&headers::DATE) {
        report(
            &headers::DATE,
            "missing or empty: every request carries the date and signs it",
        );
    }
    if absent(&headers::DIGEST)
        && operation.body == Body::Json
        && body != Announced::Nothing
        && !requires_digest(operation)
    {
        report(
            &headers::DIGEST,
            "missing or empty: a request with a body carries its SHA-256",
        );
    }
}

fn requires_digest(operation: &Operation) -> bool {
    operation.required.iter().any(
        |required| matches!(required, Required::One(header) if header.name == headers::DIGEST.name),
    )
}

/// HDR-5: where a header is not required, an empty value is malformed. Content negotiation is HTTP's own, where an
/// empty value means something.
fn blank(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) {
    for header in headers::TABLE
        .iter()
        .filter(|header| is_taken(operation, header))
    {
        let negotiates = header.name.as_str().starts_with("accept");
        let value = header
            .get(head.headers)
            .map(|value| headers::trim(value.as_bytes()));
        if value == Some(b"")
            && !negotiates
            && !faults.iter().any(|fault| is_about(fault, header))
            && header.name != headers::SIGNATURE.name
        {
            faults.push(Fault::header(
                Reason::HeaderMalformed,
                header.written,
                "empty: give it a value or leave it out",
            ));
        }
    }
}

/// HDR-7.
fn identifiers(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) {
    for header in [&headers::X_REQUEST_ID, &headers::TPP_SESSION_ID] {
        let value = header
            .get_filled(head.headers)
            .filter(|_| is_taken(operation, header));
        if value.is_some_and(|value| !identifier::is_valid(headers::trim(value.as_bytes()))) {
            let text = format!(
                "it must be 1 to {} visible ASCII characters without a space",
                identifier::MAX_LENGTH
            );
            faults.push(Fault::header(Reason::HeaderMalformed, header.written, text));
        }
    }
}

/// HDR-15. Most requests repeat no header at all, which the map tells at once.
fn duplicates(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) {
    if head.headers.len() == head.headers.keys_len() {
        return;
    }
    for header in headers::TABLE
        .iter()
        .filter(|header| header.once && is_taken(operation, header))
    {
        if header.count(head.headers) > 1 {
            faults.push(Fault::header(
                Reason::HeaderDuplicated,
                header.written,
                "it may stand once",
            ));
        }
    }
}

/// DAT-1.
fn read_date(head: &Head<'_>, faults: &mut Vec<Fault>) -> Option<Timestamp> {
    let value = headers::DATE.get_filled(head.headers)?;
    let date = date::parse(headers::trim(value.as_bytes()));
    if date.is_none() {
        let text = "it must be an RFC 7231 IMF-fixdate, as in: Sun, 06 Nov 1994 08:49:37 GMT";
        faults.push(Fault::header(
            Reason::HeaderMalformed,
            headers::DATE.written,
            text,
        ));
    }
    date
}

/// FWD-2.
fn nominations(head: &Head<'_>, faults: &mut Vec<Fault>) {
    if let Some(name) = connection::refused_nomination(head.headers) {
        let text = format!("it nominates {name}, which must reach the service");
        faults.push(Fault::header(Reason::MalformedRequest, "Connection", text));
    }
}

/// HDR-3: what an operation does not take is dropped, not judged.
fn is_taken(operation: &Operation, header: &Header) -> bool {
    operation.takes == Takes::Whole || header.on_sandbox
}

fn is_about(fault: &Fault, header: &Header) -> bool {
    fault.place == crate::interface::Place::Header(header.written)
}
