//! The Digest header: DIG-1, DIG-2.

use crate::harness::{Call, Gate, Protocol, accepted, refused};
use openssl::{
    base64::encode_block,
    sha::{sha256, sha512},
};

const NOTHING: &str = "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

fn digest_256(body: &str) -> String {
    format!("SHA-256={}", encode_block(&sha256(body.as_bytes())))
}

fn digest_512(body: &str) -> String {
    format!("SHA-512={}", encode_block(&sha512(body.as_bytes())))
}

//= DIG-1 accepted
#[test]
fn digests_of_the_body() {
    let gate = Gate::start();
    let body = r#"{"remittance":"Kj\u00f8p"}"#;
    let digests = [
        digest_256(body),
        digest_512(body),
        digest_256(body).replace("SHA", "sha"),
        digest_512(body).replace("SHA", "Sha"),
        format!("{}, {}", digest_256(body), digest_512(body)),
        format!("MD5=HUXZLQLMuI/KZ5KDcJPcOA==,{}", digest_512(body)),
        format!("UNIXsum=30637 , {}", digest_256(body)),
    ];
    for digest in digests {
        accepted(&gate, &Call::payment().json(body).with("Digest", &digest));
    }
}

/// Inputs that expose careless readers: a hash that starts or ends with a certain byte, line ends, a last newline, text outside ASCII.
//= DIG-1 accepted
#[test]
fn bodies_as_they_were_received() {
    let gate = Gate::start();
    for (body, digest) in [
        (
            r#"{"paymentIds":["00000293"]}"#,
            "SHA-256=/+aYMXhHOyScUgJvw5jbKzdrntfqfdjwhestzCAfJ9c=",
        ),
        (
            r#"{"paymentIds":["00000699"]}"#,
            "SHA-256=AD/AvoCElcv5VSjx6ZTTqutga8m3ltRBZLlLNcEXskk=",
        ),
        (
            "{\r\n\t\"paymentIds\": [ \"1\" ]\r\n}\r\n\n",
            "SHA-256=Tv9AYVzpB5oP4qcIVomanVGVRoAxl9LwMVVoM33dzEo=",
        ),
        (
            "{\"paymentIds\":[\"bl\u{e5}b\u{e6}r \u{1f600}\"]}",
            "SHA-256=m0g/PpsYxsaOzjCjtBD762N9BNdsVH8bizG9IlrMTkI=",
        ),
    ] {
        let call = Call::basket().json(body).with("Digest", digest);
        accepted(&gate, &call);
        accepted(&gate, &call.chunked());
    }
}

//= DIG-1 refused
#[test]
fn digests_of_something_else() {
    let gate = Gate::start();
    let body = r#"{"a":1}"#;
    let wrong = [
        digest_256(r#"{"a": 1}"#),
        digest_512("[]"),
        NOTHING.to_owned(),
        format!("{},{}", digest_256(body), digest_512("[]")),
        format!("{},{}", digest_256("[]"), digest_512(body)),
        digest_256(body).trim_end_matches('=').to_owned(),
        digest_256(body).replace("SHA-256", "SHA-512"),
        "SHA-256=".to_owned(),
        "SHA-256".to_owned(),
    ];
    for digest in wrong {
        refused(
            &gate,
            &Call::payment().json(body).with("Digest", &digest),
            400,
            "FORMAT_ERROR",
            "digest-mismatch",
        );
    }
    for digest in [
        "MD5=HUXZLQLMuI/KZ5KDcJPcOA==",
        "SHA=x",
        "SHA256=x",
        "x",
        "SHA-384=x",
    ] {
        refused(
            &gate,
            &Call::payment().json(body).with("Digest", digest),
            400,
            "FORMAT_ERROR",
            "digest-unsupported",
        );
    }
}

//= DIG-2 accepted
#[test]
fn a_digest_of_nothing() {
    let gate = Gate::start();
    for call in [
        Call::accounts(),
        Call::details().present(),
        Call::sandbox_transactions(),
    ] {
        accepted(&gate, &call.clone().with("Digest", NOTHING));
        accepted(&gate, &call.clone().with("Digest", &digest_512("")));
        accepted(&gate, &call.json("{}"));
    }
}

//= DIG-2 refused
#[test]
fn a_digest_is_checked_on_every_operation() {
    let gate = Gate::start();
    for call in [
        Call::accounts(),
        Call::details().present(),
        Call::sandbox_transactions(),
        Call::new("POST", "/v1/consents"),
    ] {
        refused(
            &gate,
            &call.clone().with("Digest", &digest_256("{}")),
            400,
            "FORMAT_ERROR",
            "digest-mismatch",
        );
        refused(
            &gate,
            &call.clone().json("{}").with("Digest", NOTHING),
            400,
            "FORMAT_ERROR",
            "digest-mismatch",
        );
        refused(
            &gate,
            &call.with("Digest", "MD5=x"),
            400,
            "FORMAT_ERROR",
            "digest-unsupported",
        );
    }
}

//= DIG-2 refused
#[test]
fn a_body_requires_a_digest() {
    let gate = Gate::start();
    let names = ["(request-target)", "date", "x-request-id"];
    let with_redirect = [
        "(request-target)",
        "date",
        "x-request-id",
        "psu-id",
        "tpp-redirect-uri",
    ];
    let sandbox = Call::bare("POST", "/v1/sandbox/accounts")
        .json("{}")
        .signing(&names);
    let contact = Call::new("PUT", "/v1/tpp/contact").json("{}").signing(&[
        "date",
        "x-request-id",
        "tpp-redirect-uri",
    ]);
    for call in [Call::payment().signing(&with_redirect), sandbox, contact] {
        // The signature is valid: Digest is neither present nor listed.
        for call in [call.clone(), call.chunked()] {
            let answer = refused(
                &gate,
                &call.altered(|request| request.remove_header("Digest")),
                400,
                "HTTP_HEADER_REQUIRED",
                "header-missing",
            );
            assert_eq!(answer.json()["faults"][0]["header"], "Digest");
        }
    }
    // If an operation takes no body, an empty one needs no Digest; without a Digest, that body is not forwarded.
    let empty = Call::plain()
        .json("{}")
        .signing(&["date", "x-request-id", "tpp-redirect-uri"])
        .altered(|request| request.remove_header("Digest"));
    gate.upstream().take();
    for protocol in Protocol::ALL {
        assert_eq!(gate.send(&empty, protocol).status, 200);
        let seen = gate.upstream().take().remove(0);
        assert!(seen.whole && seen.body.is_empty(), "{:?}", seen.body);
    }
}

/// Ignored bodies need not be signed, so the core does not get them.
//= DIG-2 accepted
#[test]
fn a_body_that_is_ignored_stays_at_the_gateway() {
    let gate = Gate::builder().core_answers().start();
    let consent = Call::new("POST", "/v1/consents");
    let unsigned = |kind: &'static str, body: &'static [u8]| {
        consent.clone().altered(move |request| {
            request.set_header("Content-Type", kind);
            request.body = Some(body.into());
        })
    };
    let calls = [
        consent.clone(),
        consent.clone().json(r#"{"access":{}}"#),
        consent
            .clone()
            .json("{}")
            .with("Content-Encoding", "identity"),
        consent.clone().with("Digest", NOTHING),
        consent.clone().at("/v1/bank-offered-consents").json("{}"),
        unsigned("application/json", b"{\"psu\":\"another\"}"),
        unsigned("text/plain", b"x\0\r\n"),
        unsigned("application/json", b"{}").chunked(),
    ];
    for call in calls {
        for protocol in Protocol::ALL {
            assert_eq!(gate.send(&call, protocol).status, 200);
            let seen = gate.upstream().take().remove(0);
            assert!(seen.whole && seen.body.is_empty(), "{:?}", seen.body);
            for name in ["digest", "content-type", "content-encoding"] {
                assert_eq!(seen.header(name), None, "{name}");
            }
            assert_eq!(seen.header("content-length"), Some("0"));
        }
    }
}
