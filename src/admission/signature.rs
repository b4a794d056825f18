//! The signature of the request (SIG-2 to SIG-10, SIG-13, SIG-14).

// The texts about its key.
mod key;

use super::{Framing, Head, Policy, Snapshot, Tpp};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason, Refusal,
        headers::{
            self, Fields, encoded_word,
            signature::{Signature, SignatureFault},
        },
        operations::Environment,
    },
    trust::{IdentifiedCertificate, VerifiedSignature},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method};
use std::borrow::Cow;

/// The name of the request target in the list of signed headers (SIG-6).
const REQUEST_TARGET: &str = "(request-target)";

/// The maximum length of a signature: RSA with 4096 bits, rounded up by base64.
const MAX_SIGNATURE: usize = 512 + 2;

/// The proof that the TPP signed this request: the signature covers the required parts, and verifies with the certificate's key.
#[must_use]
#[derive(Debug)]
pub struct Signed {
    headers: String,
}

impl Signed {
    /// The verified list of headers, in lower case, separated by single spaces.
    pub fn headers(&self) -> &str {
        &self.headers
    }

    /// Whether the request target was signed.
    pub fn covers_request_target(&self) -> bool {
        self.headers.split(' ').any(|name| name == REQUEST_TARGET)
    }
}

/// The signing string that the gateway builds for a request (SIG-8), whether or not its signature verifies. A listed
/// header that the request does not have has an empty value here; [`prove`](super::prove) refuses it. `None` where the
/// Signature header cannot be read (SIG-2, SIG-10): then the signed parts are unknown, and `prove` says why.
pub fn signing_string(head: &Head<'_>) -> Option<Vec<u8>> {
    let value = decode(&head.fields).ok()?;
    let signature = parse(&value).ok()?;
    Some(SignedRequest { head, signature }.string(HeaderValues::All))
}

/// Verifies the signature of a saved request, as [`prove`](super::prove) does, beside a running gateway.
///
/// # Errors
/// The refusal that the gateway gives.
pub fn verify_signature(
    head: &Head<'_>,
    certificate: IdentifiedCertificate,
    policy: &Policy,
) -> Result<Signed, Refusal> {
    verify_by(head, &Tpp::of(certificate), policy, |_, _| {})
}

/// The same for the headers of an answer (SIG-12), which has no request target.
///
/// # Errors
/// The refusal that the gateway gives for such a signature.
pub fn verify_answer_signature(
    headers: &HeaderMap,
    certificate: IdentifiedCertificate,
    policy: &Policy,
) -> Result<Signed, Refusal> {
    let framing = Framing::Frames {
        other_scheme: false,
    };
    let head = Head::unconnected(&Method::GET, &[], headers, framing);
    let value = decode(&head.fields)?;
    let names_target = |signature: Signature<'_>| {
        let mut names = signature.headers.into_iter();
        names.any(|name| name.eq_ignore_ascii_case(REQUEST_TARGET))
    };
    if parse(&value).is_ok_and(names_target) {
        let text = "headers lists (request-target), which an answer does not have";
        return Err(fault(Reason::SignatureMalformed, text.into()).into());
    }
    verify_signature(&head, certificate, policy)
}

/// Verifies the signature. A certificate whose signature verified is cached, so that the TPP's next request needs no chain (CRT-12), and
/// noted, for who would lose trust by other anchors.
pub(super) fn verify(
    head: &Head<'_>,
    tpp: &Tpp,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<Signed, Refusal> {
    verify_by(head, tpp, &snapshot.policy, |verified, signature| {
        tpp.certificate().remember_issuer(signature.issuer);
        snapshot.trust.keep(&verified, head.slot);
        snapshot.seen.note(&verified, now);
    })
}

/// Verifies the signature; `keep` takes one that verified.
#[inline]
fn verify_by(
    head: &Head<'_>,
    tpp: &Tpp,
    policy: &Policy,
    keep: impl FnOnce(VerifiedSignature, &Signature<'_>),
) -> Result<Signed, Refusal> {
    let value = decode(&head.fields)?;
    if value.is_empty() {
        // The envelope reports this too, but its fault may be observed.
        return Err(fault(Reason::SignatureMissing, "missing or empty".into()).into());
    }
    let refuse = |why| Refusal::from(unreadable(&why, matches!(value, Cow::Owned(_))));
    let request = SignedRequest {
        head,
        signature: parse(&value).map_err(refuse)?,
    };
    if let Some(refusal) = Refusal::of(request.faults(tpp, policy)) {
        return Err(hidden(&value, &refusal).map_or(refusal, refuse));
    }
    let signing_string = request.string(HeaderValues::All);
    let signature = &request.signature;
    if let Some(verified) = verified(tpp, signature, &signing_string) {
        keep(verified, signature);
        return Ok(Signed {
            headers: listed(signature),
        });
    }
    let text = key::not_verified(tpp.certificate(), signature);
    let refusal = Refusal::from(fault(Reason::SignatureMismatch, text));
    Err(match policy.environment {
        // SIG-13. Personal values are omitted even here: no error repeats one.
        Environment::Sandbox => {
            let shown = request.string(HeaderValues::WithoutPersonal);
            refusal.with_signing_string(String::from_utf8_lossy(&shown).into_owned())
        }
        Environment::Production => refusal,
    })
}

/// SIG-10: the value of Signature, decoded if it consists of encoded words.
fn decode<'h>(fields: &Fields<'h>) -> Result<Cow<'h, [u8]>, Fault> {
    let value = headers::SIGNATURE.get(fields);
    let value = value.map(HeaderValue::as_bytes).unwrap_or_default();
    encoded_word::decode(value).map_err(|why| fault(Reason::SignatureMalformed, why.to_string()))
}

/// SIG-2.
fn parse(value: &[u8]) -> Result<Signature<'_>, SignatureFault> {
    Signature::parse(value)
}

/// ERR-10: the bytes of encoded words count after they are decoded.
fn unreadable(why: &SignatureFault, was_encoded: bool) -> Fault {
    let decoded = match was_encoded {
        true => " (bytes count in the decoded text)",
        false => "",
    };
    fault(Reason::SignatureMalformed, format!("{why}{decoded}"))
}

/// ERR-10: the cause of an issuer that does not match, if keyId was read as far as the quotation mark of a parameter that the header does not
/// have.
fn hidden(value: &[u8], refusal: &Refusal) -> Option<SignatureFault> {
    match refusal.reason() {
        Reason::SignatureKeyMismatch => SignatureFault::hidden(value),
        _ => None,
    }
}

/// A request and its signature.
struct SignedRequest<'a> {
    head: &'a Head<'a>,
    signature: Signature<'a>,
}

/// The list of headers as it is forwarded.
fn listed(signature: &Signature<'_>) -> String {
    let mut list = signature.headers.join(" ");
    list.make_ascii_lowercase();
    list
}

impl SignedRequest<'_> {
    /// The faults that are found without cryptography, in the order of the rules.
    fn faults(&self, tpp: &Tpp, policy: &Policy) -> Vec<Fault> {
        let (head, signature) = (self.head, &self.signature);
        let mut faults = Vec::new();
        let certificate = tpp.certificate();
        if !certificate.has_serial(signature.serial) {
            let text = key::other_serial(certificate, signature);
            faults.push(fault(Reason::SignatureKeyMismatch, text));
        }
        if let Err(mismatch) = certificate.has_issuer(signature.issuer) {
            let text = format!(
                "keyId must name the certificate's issuer: CA={}; {mismatch}",
                certificate.issuer()
            );
            faults.push(fault(Reason::SignatureKeyMismatch, text));
        }
        if !signature.algorithm.eq_ignore_ascii_case(b"rsa-sha256") {
            let hint = match signature.algorithm.eq_ignore_ascii_case(b"hs2019") {
                true => "; hs2019 is of a later draft of HTTP signatures than this interface uses",
                false => "",
            };
            let text = format!("algorithm must be rsa-sha256{hint}");
            faults.push(fault(Reason::SignatureAlgorithmUnsupported, text));
        }
        let absent: Vec<_> = signature
            .headers
            .iter()
            .filter(|name| !self.is_present(name))
            .copied()
            .collect();
        if !absent.is_empty() {
            let text = format!(
                "headers lists {}, which the request does not have",
                absent.join(", ")
            );
            faults.push(fault(Reason::SignatureMalformed, text));
        }
        let signed = headers::SIGNED.iter();
        let signed = signed.filter(|header| header.get(&head.fields).is_some());
        let also = policy.also_signed.iter().map(String::as_str);
        let left_out: Vec<_> = signed
            .map(|header| header.name.as_str())
            .chain(also.filter(|name| self.is_present(name)))
            .filter(|name| !signature.lists(name))
            .collect();
        if !left_out.is_empty() {
            let text = format!(
                "headers leaves out {}: what is in the request must be signed",
                left_out.join(", ")
            );
            faults.push(fault(Reason::SignatureCoverage, text));
        }
        faults
    }

    fn is_present(&self, name: &str) -> bool {
        name == REQUEST_TARGET
            || self.head.fields.named(name).next().is_some()
            || name.eq_ignore_ascii_case("host") && self.head.host().is_some()
    }

    /// The signing string (SIG-8).
    fn string(&self, values: HeaderValues) -> Vec<u8> {
        let mut text = Vec::with_capacity(512);
        for (index, name) in self.signature.headers.iter().enumerate() {
            if index > 0 {
                text.push(b'\n');
            }
            append_in_lower_case(name, &mut text);
            text.extend_from_slice(b": ");
            if *name == REQUEST_TARGET {
                append_in_lower_case(self.head.method.as_str(), &mut text);
                text.push(b' ');
                text.extend_from_slice(self.head.target);
            } else if values == HeaderValues::WithoutPersonal
                && headers::find(name).is_none_or(|header| header.personal)
            {
                text.extend_from_slice(b"(not repeated here)");
            } else {
                self.append_value(name, &mut text);
            }
        }
        text
    }

    fn append_value(&self, name: &str, text: &mut Vec<u8>) {
        if name.eq_ignore_ascii_case("host") {
            return text.extend_from_slice(self.head.host().unwrap_or_default());
        }
        for (index, value) in self.head.fields.named(name).enumerate() {
            if index > 0 {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(headers::trim(value.as_bytes()));
        }
    }
}

/// The values that a signing string shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeaderValues {
    All,
    WithoutPersonal,
}

fn append_in_lower_case(name: &str, text: &mut Vec<u8>) {
    let begin = text.len();
    text.extend_from_slice(name.as_bytes());
    if let Some(written) = text.get_mut(begin..) {
        written.make_ascii_lowercase();
    }
}

/// SIG-9: canonical base64, and the padding of PKCS#1 v1.5 checked strictly (SIG-5).
fn verified(
    tpp: &Tpp,
    signature: &Signature<'_>,
    signing_string: &[u8],
) -> Option<VerifiedSignature> {
    let mut bytes = [0_u8; MAX_SIGNATURE];
    let length = STANDARD
        .decode_slice(signature.signature, &mut bytes)
        .ok()?;
    tpp.identified()
        .verify(signing_string, bytes.get(..length)?)
}

fn fault(reason: Reason, text: String) -> Fault {
    Fault::header(reason, headers::SIGNATURE.written, text)
}
