//! The signature is verified before anything else happens: SIG-9, SIG-11, SIG-13.

use super::{pkcs1, replace, signed_by, unsigned};
use crate::harness::{
    Call, Connection, Gate, Protocol, accepted, refused, render_head, rsa_key, world,
};
use openssl::hash::MessageDigest;

//= SIG-9 accepted
//= SIG-9 refused
#[test]
fn signing_strings_that_are_nearly_right() {
    let gate = Gate::start();
    let key = world().tpp_key.clone();
    let over = move |edit: fn(&str) -> String| {
        let key = key.clone();
        signed_by(Call::payment(), move |request| {
            pkcs1(
                &key,
                MessageDigest::sha256(),
                &edit(&request.signing_string),
            )
        })
    };
    accepted(&gate, &over(str::to_owned));
    let edits: [fn(&str) -> String; 7] = [
        |string| format!("{string}\n"),
        |string| string.replace('\n', "\r\n"),
        |string| string.replacen("post", "POST", 1),
        |string| string.replacen("date:", "Date:", 1),
        |string| string.replacen("date: ", "date:", 1),
        |string| string.lines().rev().collect::<Vec<_>>().join("\n"),
        |_| String::new(),
    ];
    for edit in edits {
        refused(
            &gate,
            &over(edit),
            400,
            "FORMAT_ERROR",
            "signature-mismatch",
        );
    }
}

//= SIG-9 refused
#[test]
fn a_request_that_was_altered_after_signing() {
    let gate = Gate::start();
    let signed = || {
        Call::payment().signing(&[
            "(request-target)",
            "host",
            "date",
            "digest",
            "x-request-id",
            "psu-id",
            "tpp-redirect-uri",
            "psu-ip-address",
            "content-type",
        ])
    };
    let later = portvakt::clock::Timestamp::from_unix(gate.now().unix() + 5);
    let headers = [
        ("Date", portvakt::interface::headers::date::format(later)),
        (
            "Digest",
            "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".into(),
        ),
        ("X-Request-ID", "another".into()),
        ("PSU-ID", "3f2504e0-4f89-41d3-9a0c-0305e82c3301".into()),
        ("TPP-Redirect-URI", "https://elsewhere.example/".into()),
        ("PSU-IP-Address", "192.0.2.8".into()),
        ("Content-Type", "application/json; charset=utf-8".into()),
    ];
    for (name, value) in headers {
        let call = signed().altered(move |request| request.set_header(name, &value));
        refused(&gate, &call, 400, "FORMAT_ERROR", "signature-mismatch");
    }
    let host = signed().altered(|request| request.set_header("Host", "other.example"));
    refused(&gate, &host, 400, "FORMAT_ERROR", "signature-mismatch");
    let target = signed().altered(|request| request.target.push_str("?allowLogicalDuplicate=true"));
    refused(&gate, &target, 400, "FORMAT_ERROR", "signature-mismatch");
    let body = signed().altered(|request| request.body = Some(b"{}".to_vec()));
    refused(&gate, &body, 400, "FORMAT_ERROR", "digest-mismatch");
}

//= SIG-9 refused
#[test]
fn signatures_that_are_not_canonical_base64() {
    let gate = Gate::start();
    let edits: [fn(&str) -> String; 8] = [
        |signature| signature.trim_end_matches('=').to_owned(),
        |signature| {
            signature
                .replace('+', "-")
                .replace('/', "_")
                .replace('=', "")
                + "=="
        },
        |signature| format!("{signature}="),
        |signature| format!(" {signature}"),
        |signature| format!("{}\t{}", &signature[..64], &signature[64..]),
        |signature| signature[4..].to_owned(),
        |_| String::new(),
        |signature| format!("{signature}{signature}"),
    ];
    for (at, edit) in edits.into_iter().enumerate() {
        // URL-safe base64 without `-` and `_` is also valid base64.
        if at == 1
            && gate
                .seal(&Call::accounts())
                .request
                .header("signature")
                .is_some_and(|signature| !signature.contains('+'))
        {
            continue;
        }
        // The fault names the byte, and each request has a signature of its own.
        for protocol in Protocol::ALL {
            if at == 4 && protocol == Protocol::Http2 {
                continue;
            }
            let call = replace(Call::accounts(), 3, edit).only(protocol);
            refused(&gate, &call, 400, "FORMAT_ERROR", "signature-mismatch");
        }
    }
    // 256 bytes leave four bits of the last letter unused; they must be zero.
    let loose = replace(Call::accounts(), 3, |signature| {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut bytes = signature.as_bytes().to_vec();
        let last = bytes.len() - 3;
        let value = letters
            .iter()
            .position(|letter| *letter == bytes[last])
            .unwrap();
        bytes[last] = letters[value | 1];
        String::from_utf8(bytes).unwrap()
    });
    refused(&gate, &loose, 400, "FORMAT_ERROR", "signature-mismatch");
}

//= SIG-9 refused
#[test]
fn another_key() {
    let gate = Gate::start();
    let other = rsa_key(2048);
    let call = signed_by(Call::accounts(), move |request| {
        pkcs1(&other, MessageDigest::sha256(), &request.signing_string)
    });
    refused(&gate, &call, 400, "FORMAT_ERROR", "signature-mismatch");
    // Another TPP's certificate with this TPP's signature: certificates are public. Both TPPs share the key here, so keyId decides.
    let certificate = gate.world().aisp.identity.certificate_header();
    let call = Call::accounts()
        .altered(move |request| request.set_header("TPP-Signature-Certificate", &certificate));
    refused(&gate, &call, 400, "FORMAT_ERROR", "signature-key-mismatch");
}

//= SIG-11 accepted
#[test]
fn nothing_goes_on_before_the_signature_holds() {
    let mut gate = Gate::start();
    let calls = [
        unsigned(Call::payment()),
        replace(Call::payment(), 3, |signature| {
            format!("AAAA{}", &signature[4..])
        }),
    ];
    for call in calls {
        for protocol in Protocol::ALL {
            assert_eq!(gate.send(&call, protocol).status, 400);
        }
        // The gateway does not wait for the body.
        let mut connection = Connection::open(&gate);
        connection.send(&render_head(&gate.seal(&call))).unwrap();
        assert_eq!(connection.answer("POST").unwrap().status, 400);
    }
    // A wrong digest of the body is judged after a valid signature.
    assert_eq!(
        gate.send(
            &Call::payment().altered(|request| request.body = Some(b"{ }".to_vec())),
            Protocol::Http1
        )
        .reason(),
        "digest-mismatch"
    );
    gate.stop();
    assert!(gate.upstream().saw_nothing());
}

//= SIG-13 accepted
#[test]
fn a_refused_signature_is_answered_with_the_signing_string() {
    let gate = Gate::start();
    let call = Call::cross_border()
        .with("PSU-Corporate-ID", "3f2504e0-4f89-41d3-9a0c-0305e82c3301")
        .with("X-PSU-IDENTITY", "01010112345")
        .with("PSU-Context", "CORPORATE")
        .signing(&[
            "(request-target)",
            "host",
            "date",
            "digest",
            "x-request-id",
            "psu-id",
            "psu-corporate-id",
            "tpp-redirect-uri",
            "x-psu-identity",
            "psu-ip-address",
            "psu-context",
        ]);
    accepted(&gate, &call);
    let call = replace(call, 3, |signature| format!("AAAA{}", &signature[4..]));
    for protocol in Protocol::ALL {
        let sealed = gate.seal(&call);
        let answer = gate.send_sealed(&sealed, protocol).unwrap();
        assert_eq!(answer.reason(), "signature-mismatch");
        let personal = [
            "psu-id",
            "psu-corporate-id",
            "x-psu-identity",
            "psu-ip-address",
        ];
        let line = |line: &str| {
            let (name, _) = line.split_once(": ").unwrap();
            if personal.contains(&name) {
                format!("{name}: (not repeated here)")
            } else {
                line.to_owned()
            }
        };
        let expected: Vec<_> = sealed.request.signing_string.lines().map(line).collect();
        assert_eq!(answer.json()["signingString"], expected.join("\n"));
        let shown = String::from_utf8(answer.body).unwrap();
        for value in [
            "0192f0c1-5a5b-7def-8000-1234567890ab",
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
            "01010112345",
            "192.0.2.7",
        ] {
            assert!(!shown.contains(value), "{value} is personal");
        }
    }
}
