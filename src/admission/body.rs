//! The body, read whole before any byte goes upstream (HTTP-6, HTTP-8), and its digest (DIG-1, DIG-2).

use super::{
    BodyFault, Incoming, Policy,
    envelope::{self, requires_digest},
};
use crate::interface::{
    Fault, Reason, Refusal,
    headers::{self, Fields, digest, digest::DigestFault},
    operations::{Body, Operation},
};
use bytes::Bytes;

/// The proof that the body matches the Digest of the request, if the request has one.
#[must_use]
#[derive(Debug)]
pub struct IntactBody {
    bytes: Bytes,
    digested: bool,
}

impl IntactBody {
    /// The body as it was received.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether a Digest covers the body.
    pub(super) const fn is_digested(&self) -> bool {
        self.digested
    }
}

/// The proof that the operation takes a body, or that there is none.
#[must_use]
#[derive(Debug)]
pub struct ExpectedBody {
    _judged: (),
}

/// Reads the body. The caller has verified the signature: the body of a caller who did not sign is not buffered.
pub(super) async fn read(body: &mut impl Incoming, policy: &Policy) -> Result<Bytes, Refusal> {
    let read = body.read(policy.body_limit).await;
    read.map_err(|fault| refuse(fault, policy))
}

/// HTTP-8, PAY-16.
pub(super) fn expected(bytes: &[u8], operation: &Operation) -> Result<ExpectedBody, Refusal> {
    if operation.body == Body::None && !is_empty_json(bytes) {
        let text = format!(
            "{} takes no body; send none, or an empty JSON object",
            operation.name
        );
        return Err(Fault::body(Reason::BodyUnexpected, text).into());
    }
    Ok(ExpectedBody { _judged: () })
}

/// Compares the Digest header with the body (DIG-1). A body without the header counts as not digested, if the operation does not require it.
pub(super) fn digest(
    fields: &Fields<'_>,
    bytes: &Bytes,
    operation: &Operation,
) -> Result<IntactBody, Refusal> {
    let intact = |digested| IntactBody {
        bytes: bytes.clone(),
        digested,
    };
    let Some(value) = headers::DIGEST.get(fields) else {
        // The envelope reports this too, but its fault may be observed: then nothing proves the body.
        if operation.body == Body::Json && (requires_digest(operation) || !bytes.is_empty()) {
            let text = "missing: a request with a body carries its SHA-256";
            let header = headers::DIGEST.written;
            return Err(Fault::header(Reason::HeaderMissing, header, text).into());
        }
        return Ok(intact(false));
    };
    let fault =
        |reason, text: String| Refusal::from(Fault::header(reason, headers::DIGEST.written, text));
    let listed = headers::trim(value.as_bytes());
    match digest::check(listed, bytes) {
        Ok(()) => Ok(intact(true)),
        Err(DigestFault::Unsupported) => Err(fault(
            Reason::DigestUnsupported,
            digest::unsupported_fault(listed).into(),
        )),
        Err(DigestFault::Malformed(algorithm)) => Err(fault(
            Reason::DigestMismatch,
            digest::form_fault(listed, algorithm),
        )),
        Err(DigestFault::Mismatch(algorithm)) => {
            let text = format!(
                "it is not the {} of the {} bytes that were received; digest the body exactly as it is sent",
                algorithm.name(),
                bytes.len()
            );
            Err(fault(Reason::DigestMismatch, text))
        }
    }
}

/// HTTP-8: no bytes, or `{}`.
fn is_empty_json(bytes: &[u8]) -> bool {
    let inner = bytes
        .trim_ascii()
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_suffix(b"}"));
    bytes.is_empty() || inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

fn refuse(fault: BodyFault, policy: &Policy) -> Refusal {
    match fault {
        BodyFault::TooLarge => envelope::too_large(policy).into(),
        BodyFault::TooSlow => {
            let text = "the body did not arrive in time";
            Fault::body(Reason::RequestTimeout, text).into()
        }
        BodyFault::Chunks(why) => broken("the chunks of the body are malformed", why),
        BodyFault::Broken(why) => broken(
            "the body broke off, or is not of the length that the head announces",
            why,
        ),
    }
}

fn broken(text: &str, why: String) -> Refusal {
    Refusal::from(Fault::body(Reason::MalformedRequest, text)).for_operator(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_json() {
        for empty in ["", "{}", " { } ", "{\r\n}"] {
            assert!(is_empty_json(empty.as_bytes()), "{empty:?}");
        }
        for other in [" ", "{", "}", "[]", "{\"a\":1}", "null", "{}{}"] {
            assert!(!is_empty_json(other.as_bytes()), "{other:?}");
        }
    }
}
