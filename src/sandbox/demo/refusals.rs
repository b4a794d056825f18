//! The refusals as a table: a request, how it is altered, and the expected result.
//!
//! Invariant: each altered request has only the one fault in its title, so its refusal proves that one check. Deliberately
//! written out here and not taken from the gateway: a TPP's developer relies on these statuses and reasons.

use super::memory::Memory;
use super::request::{PAYMENT, get, payment};
use super::scene::{Expected, Scene, scene};
use portvakt::tools::tpp::{SignedRequest, Unsigned};
use std::time::Duration;

/// An unknown PSU-ID.
const PSU: &str = "5b0b0f8e-0c2c-4d0e-9b55-3f1f4f0a7a11";

/// One more byte than HTTP-6 lets through.
const ONE_BYTE_TOO_MANY: usize = 64 * 1024 + 1;

/// All of them, in the order of the gateway's checks.
pub(super) fn all() -> impl Iterator<Item = Scene> {
    let refusals = spoilt_on_the_way().into_iter();
    refusals.chain(spoilt_by_the_caller())
}

/// Signed correctly, and changed before its arrival.
fn spoilt_on_the_way() -> [Scene; 5] {
    [
        Scene {
            meddle: |request| request.remove_header("Signature"),
            ..refused(
                "A request without a signature",
                accounts,
                400,
                "signature-missing",
            )
        },
        Scene {
            age: Duration::from_secs(61),
            ..refused(
                "A request that was signed 61 seconds ago",
                accounts,
                400,
                "date-skewed",
            )
        },
        Scene {
            meddle: raise_the_amount,
            ..refused(
                "A payment whose amount was raised on the way",
                spoilt_payment,
                400,
                "digest-mismatch",
            )
        },
        Scene {
            meddle: |request| {
                request.set_header("TPP-Redirect-URI", "https://thief.example/callback")
            },
            ..refused(
                "A signed header that was changed on the way",
                accounts,
                400,
                "signature-mismatch",
            )
        },
        Scene {
            meddle: |request| request.set_header("PSU-ID", PSU),
            ..refused(
                "A PSU-ID that was slipped in and is not signed",
                accounts,
                400,
                "signature-coverage",
            )
        },
    ]
}

/// Sent as signed, by a caller without the right, or for an operation that does not exist.
fn spoilt_by_the_caller() -> [Scene; 5] {
    [
        Scene {
            signer: "foreign",
            ..refused(
                "A certificate from somebody else's CA",
                accounts,
                403,
                "certificate-untrusted",
            )
        },
        Scene {
            signer: "expired",
            ..refused(
                "A certificate that expired yesterday",
                accounts,
                403,
                "certificate-expired",
            )
        },
        Scene {
            signer: "tpp-pisp",
            ..refused(
                "Accounts for a TPP that may only pay",
                accounts,
                403,
                "role-missing",
            )
        },
        refused(
            "An operation that there is not",
            |_| get("/v1/cards"),
            404,
            "operation-unknown",
        ),
        refused(
            "A body of 65537 bytes, one too many",
            |_| payment(padded()),
            413,
            "body-too-large",
        ),
    ]
}

fn refused(
    title: &'static str,
    request: fn(&Memory) -> Unsigned,
    status: u16,
    reason: &'static str,
) -> Scene {
    scene(title, request, Expected::Refused(status, reason))
}

fn accounts(_: &Memory) -> Unsigned {
    get("/v1/accounts")
}

/// A payment of an unknown PSU-ID: an earlier check refuses it.
fn spoilt_payment(_: &Memory) -> Unsigned {
    let mut request = payment(PAYMENT.into());
    request.headers.push(("PSU-ID".into(), PSU.into()));
    request
}

/// The content is white space: the body is refused before it is parsed as JSON.
fn padded() -> Vec<u8> {
    let mut body = PAYMENT.as_bytes().to_vec();
    body.resize(ONE_BYTE_TOO_MANY, b' ');
    body
}

/// Keeps the length, so only the digest can detect the change.
fn raise_the_amount(request: &mut SignedRequest) {
    request.body = Some(PAYMENT.replace("150000.00", "950000.00").into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use portvakt_interface::Reason;
    use std::collections::HashSet;

    #[test]
    fn every_refusal_is_one_that_the_gateway_knows_and_no_two_are_the_same() {
        let mut reasons = HashSet::new();
        for scene in all() {
            if let Expected::Refused(status, slug) = scene.expected {
                let known = Reason::ALL.iter().find(|reason| reason.slug() == slug);
                assert_eq!(known.map(|reason| reason.status()), Some(status), "{slug}");
                assert!(reasons.insert(slug), "{slug}");
            }
        }
        assert_eq!(reasons.len(), 10);
    }

    #[test]
    fn the_payment_is_json_and_its_amount_can_be_raised() {
        let payment: serde_json::Value = serde_json::from_str(PAYMENT).unwrap();
        assert_eq!(payment["instructedAmount"]["amount"], "150000.00");
        assert_eq!(padded().len(), 65_537);
    }
}
