//! Required headers (HDR-1 to HDR-5, HDR-13, HDR-14, DIG-2).

use super::{
    super::{Announced, Head},
    applicable::{is_about, is_taken},
    meant,
};
use crate::interface::{
    Fault, Reason,
    headers::{self, Header, PsuContext},
    operations::{Agreement, Body, Operation, Required, Takes},
};

/// HDR-1 to HDR-5, and DIG-2. SIG-1 reports a missing Signature, with a more exact reason.
pub(super) fn missing(
    head: &Head<'_>,
    body: Announced,
    operation: &Operation,
    faults: &mut Vec<Fault>,
) {
    let absent = |header: &Header| is_absent(head, header);
    let mut report = |header: &Header, text: &str| {
        let text = meant::missing(head, header, text);
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

/// HDR-5: an empty value of a header that is not required is malformed. In the Accept headers of HTTP an empty value has a
/// meaning.
pub(super) fn blank(
    head: &Head<'_>,
    operation: &Operation,
    context: Option<PsuContext>,
    faults: &mut Vec<Fault>,
) {
    let taken = |header: &&Header| is_taken(operation, header);
    for header in head.fields.present().filter(taken) {
        let negotiates = header.name.as_str().starts_with("accept");
        if header.values(&head.fields).any(<[u8]>::is_empty)
            && !negotiates
            && !faults.iter().any(|fault| is_about(fault, header))
            && !is_required_later(head, operation, context, header)
        {
            faults.push(Fault::header(
                Reason::HeaderMalformed,
                header.written,
                "empty: give it a value or leave it out",
            ));
        }
    }
}

/// HDR-13.
pub(super) fn context(head: &Head<'_>, operation: &Operation, faults: &mut Vec<Fault>) {
    if is_single_sca(head, operation) && is_absent(head, &headers::PSU_CONTEXT) {
        faults.push(Fault::header(
            Reason::HeaderMissing,
            headers::PSU_CONTEXT.written,
            meant::missing(
                head,
                &headers::PSU_CONTEXT,
                "missing or empty: a payment with X-PSU-IDENTITY and without PSU-ID requires it",
            ),
        ));
    }
}

/// HDR-13, and HDR-14 as far as the request alone decides it. A PSU with corporate contexts only must name the agreement even without
/// PSU-Context. That rule needs the PSU's binding, so it is judged with SCA, after the signature, and tells a caller without
/// a valid signature nothing about a PSU.
///
/// Single SCA is for private customers. A corporate id does not change that: without a PSU-ID it is nobody's agreement.
///
/// PRIVATE beside a corporate id is a malformed corporate id, with or without a PSU-ID: no header is missing, but the two
/// contradict each other.
pub(super) fn agreement(
    head: &Head<'_>,
    operation: &Operation,
    context: Option<PsuContext>,
    faults: &mut Vec<Fault>,
) {
    let header = &headers::PSU_CORPORATE_ID;
    if requires_agreement(head, operation, context) && is_absent(head, header) {
        faults.push(Fault::header(
            Reason::CorporateIdMissing,
            header.written,
            meant::missing(
                head,
                header,
                "missing or empty: with a PSU-ID, PSU-Context CORPORATE requires it",
            ),
        ));
    }
    if context == Some(PsuContext::Corporate) && is_single_sca(head, operation) {
        faults.push(Fault::header(
            Reason::CorporateIdMissing,
            header.written,
            "X-PSU-IDENTITY without PSU-ID is for private customers: with PSU-Context CORPORATE, send the PSU-ID and the \
             PSU-Corporate-ID that SCA gave",
        ));
    }
    if names_agreement(operation)
        && context == Some(PsuContext::Private)
        && !is_absent(head, header)
    {
        faults.push(Fault::header(
            Reason::HeaderMalformed,
            header.written,
            "PSU-Context PRIVATE excludes it: leave one of the two out",
        ));
    }
}

fn is_absent(head: &Head<'_>, header: &Header) -> bool {
    header.get_filled(&head.fields).is_none()
}

/// Whether a request without a Digest is refused even if it has no body (HDR-2).
pub(in crate::admission) fn requires_digest(operation: &Operation) -> bool {
    operation.required.iter().any(
        |required| matches!(required, Required::One(header) if header.name == headers::DIGEST.name),
    )
}

/// Whether a later rule reports the absence of a header, so that an empty value counts as missing there.
fn is_required_later(
    head: &Head<'_>,
    operation: &Operation,
    context: Option<PsuContext>,
    header: &Header,
) -> bool {
    header.name == headers::SIGNATURE.name
        || header.name == headers::PSU_CONTEXT.name && is_single_sca(head, operation)
        || header.name == headers::PSU_CORPORATE_ID.name
            && (requires_agreement(head, operation, context)
                || context == Some(PsuContext::Corporate) && is_single_sca(head, operation))
}

/// HDR-13: whether the request initiates a payment by single SCA.
fn is_single_sca(head: &Head<'_>, operation: &Operation) -> bool {
    operation.initiates
        && !is_absent(head, &headers::X_PSU_IDENTITY)
        && is_absent(head, &headers::PSU_ID)
}

fn requires_agreement(head: &Head<'_>, operation: &Operation, context: Option<PsuContext>) -> bool {
    names_agreement(operation)
        && context == Some(PsuContext::Corporate)
        && !is_absent(head, &headers::PSU_ID)
}

/// HDR-14's exceptions, and HDR-3's operations, which take neither header.
fn names_agreement(operation: &Operation) -> bool {
    operation.agreement == Agreement::Named && operation.takes == Takes::Whole
}
