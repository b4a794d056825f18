//! Whether a request is signed, by whom, over what, and before anything of it goes on: SIG-1, SIG-6 to SIG-9, SIG-11, SIG-13, SIG-14.

/// DAT-1, DAT-2.
mod date;
/// DIG-1, DIG-2.
mod digest;
/// SIG-2 to SIG-5: the Signature header, keyId and the algorithm.
mod form;

use crate::harness::{
    Call, Connection, Gate, Protocol, accepted, refused, render_head, rsa_key, world,
};
use openssl::{
    hash::MessageDigest,
    pkey::{PKey, Private},
    rsa::Padding,
    sign::Signer,
};
use portvakt::tools::tpp::SignedRequest;

/// The four parts of a Signature header as the signer writes it.
fn parts(signature: &str) -> [String; 4] {
    let parts: Vec<_> = signature
        .strip_suffix('"')
        .unwrap()
        .split("\",")
        .map(|part| part.split_once("=\"").unwrap().1.to_owned())
        .collect();
    parts.try_into().unwrap()
}

/// A Signature header of these parts.
fn joined([key_id, algorithm, headers, signature]: &[String; 4]) -> String {
    format!(
        "keyId=\"{key_id}\",algorithm=\"{algorithm}\",headers=\"{headers}\",signature=\"{signature}\""
    )
}

/// Another value for one of the four parts.
fn replace(call: Call, at: usize, value: impl Fn(&str) -> String + Send + Sync + 'static) -> Call {
    call.signature(move |signature| {
        let mut parts = parts(signature);
        parts[at] = value(&parts[at]);
        joined(&parts)
    })
}

/// Other signature bytes, made from the request.
fn signed_by(call: Call, sign: impl Fn(&SignedRequest) -> Vec<u8> + Send + Sync + 'static) -> Call {
    call.altered(move |request| {
        let mut parts = parts(request.header("signature").unwrap());
        parts[3] = openssl::base64::encode_block(&sign(request));
        request.set_header("Signature", &joined(&parts));
    })
}

fn private(pem: &str) -> PKey<Private> {
    PKey::private_key_from_pem(pem.as_bytes()).unwrap()
}

/// PKCS#1 v1.5 over any text.
fn pkcs1(key: &str, digest: MessageDigest, text: &str) -> Vec<u8> {
    let key = private(key);
    let mut signer = Signer::new(digest, &key).unwrap();
    signer.update(text.as_bytes()).unwrap();
    signer.sign_to_vec().unwrap()
}

fn unsigned(call: Call) -> Call {
    call.altered(|request| request.remove_header("Signature"))
}

//= SIG-1 accepted
//= SIG-1 refused
#[test]
fn every_request_is_signed() {
    let gate = Gate::start();
    let calls = [
        Call::accounts(),
        Call::details(),
        Call::payment(),
        Call::cross_border(),
        Call::basket(),
        Call::sandbox_transactions(),
        Call::new("GET", "/v1/users"),
        Call::new("POST", "/v1/consents"),
        Call::new("GET", "/v1/agreements"),
        Call::new("GET", "/v1/tpp/contact"),
        Call::bare("GET", "/v1/sandbox/customers"),
        Call::bare("POST", "/v1/sandbox/initialisation"),
    ];
    for call in calls {
        accepted(&gate, &call);
        refused(
            &gate,
            &unsigned(call.clone()),
            400,
            "HTTP_HEADER_REQUIRED",
            "signature-missing",
        );
        refused(
            &gate,
            &call.altered(|request| request.set_header("Signature", "")),
            400,
            "HTTP_HEADER_REQUIRED",
            "signature-missing",
        );
    }
}

//= SIG-6 accepted
#[test]
fn the_list_of_headers() {
    let gate = Gate::start();
    let lists: [&[&str]; 5] = [
        &["date", "x-request-id", "tpp-redirect-uri"],
        &[
            "tpp-redirect-uri",
            "(request-target)",
            "x-request-id",
            "date",
        ],
        &["Date", "X-REQUEST-ID", "TPP-Redirect-URI"],
        &["date", "", "x-request-id", "", "", "tpp-redirect-uri"],
        &[
            "date",
            "x-request-id",
            "tpp-redirect-uri",
            "host",
            "tpp-signature-certificate",
        ],
    ];
    for list in lists {
        let written = list.join(" ");
        let names: Vec<_> = list
            .iter()
            .copied()
            .filter(|name| !name.is_empty())
            .collect();
        accepted(
            &gate,
            &replace(Call::accounts().signing(&names), 2, move |_| {
                written.clone()
            }),
        );
    }
}

//= SIG-6 refused
#[test]
fn lists_that_are_none() {
    let gate = Gate::start();
    for absent in ["psu-id", "digest", "content-type", "x-other", "(created)"] {
        let call = Call::accounts().signing(&["date", "x-request-id", "tpp-redirect-uri", absent]);
        let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "signature-malformed");
        assert!(
            answer.json()["faults"][0]["header"] == "Signature",
            "{absent}"
        );
    }
    for list in [
        "",
        " ",
        "date,x-request-id,tpp-redirect-uri",
        "date x-request-id tpp-redirect-uri date",
        "date x-request-id tpp-redirect-uri Date",
    ] {
        refused(
            &gate,
            &replace(Call::accounts(), 2, move |_| list.to_owned()),
            400,
            "FORMAT_ERROR",
            "signature-malformed",
        );
    }
}

/// A request with everything that must be signed where it is sent.
fn whole() -> Call {
    Call::cross_border()
        .with("PSU-Corporate-ID", "3f2504e0-4f89-41d3-9a0c-0305e82c3301")
        .with("PSU-Context", "CORPORATE")
}

const WHOLE: [&str; 6] = [
    "date",
    "digest",
    "x-request-id",
    "psu-id",
    "psu-corporate-id",
    "tpp-redirect-uri",
];

//= SIG-7 accepted
//= SIG-7 refused
#[test]
fn what_is_in_the_request_is_signed() {
    let gate = Gate::start();
    accepted(&gate, &whole().signing(&WHOLE));
    for left_out in WHOLE {
        let rest: Vec<_> = WHOLE.into_iter().filter(|name| *name != left_out).collect();
        let answer = refused(
            &gate,
            &whole().signing(&rest),
            400,
            "FORMAT_ERROR",
            "signature-coverage",
        );
        let text = answer.json()["faults"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        let names = |name: &str| {
            text.split([' ', ','])
                .any(|word| word.trim_end_matches([':', ';']) == name)
        };
        assert!(
            names(left_out) && rest.iter().all(|name| !names(name)),
            "{left_out}: {text}"
        );
    }
    let answer = refused(
        &gate,
        &whole().signing(&["(request-target)"]),
        400,
        "FORMAT_ERROR",
        "signature-coverage",
    );
    let text = answer.json()["faults"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(WHOLE.iter().all(|name| text.contains(name)), "{text}");
    // What is not in the request need not be listed, on D neither.
    accepted(&gate, &Call::details().signing(&["date"]));
    refused(
        &gate,
        &Call::sandbox_transactions().signing(&["date"]),
        400,
        "FORMAT_ERROR",
        "signature-coverage",
    );
}

//= SIG-8 accepted
#[test]
fn the_signing_string() {
    let gate = Gate::start();
    let all = [
        "psu-accept",
        "(request-target)",
        "host",
        "date",
        "x-request-id",
        "tpp-redirect-uri",
        "accept-language",
    ];
    let call = Call::accounts()
        .at("/v1/accounts?B=2&a=%2fX%20y&&")
        .also("PSU-Accept", "text/html")
        .also("PSU-Accept", "q=0,  b")
        .with("Accept-Language", "nb");
    for passage in accepted(&gate, &call.clone().signing(&all)) {
        let string = &passage.request.signing_string;
        assert!(string.starts_with("psu-accept: text/html, q=0,  b\n(request-target): get /v1/accounts?B=2&a=%2fX%20y&&\nhost: localhost\ndate: "), "{string}");
        assert!(string.ends_with("\naccept-language: nb"), "{string}");
    }
    // White space around a value is no part of it; HTTP/2 has none.
    accepted(
        &gate,
        &call
            .with("Accept-Language", "  nb   ")
            .signing(&all)
            .only(Protocol::Http1),
    );
    accepted(
        &gate,
        &Call::accounts()
            .with("Host", "psd2.bank.example:8443")
            .signing(&all[1..6]),
    );
    for method in ["POST", "PUT"] {
        let call = if method == "POST" {
            Call::payment()
        } else {
            Call::new("PUT", "/v1/tpp/contact").json("{}")
        };
        accepted(&gate, &call);
    }
}

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
    let later = portvakt::clock::Timestamp::from_unix(gate.now().unix() + 1);
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
        let call = replace(Call::accounts(), 3, edit);
        // URL-safe base64 of a signature that happens to have neither of its two letters is canonical.
        if at == 1
            && gate
                .seal(&Call::accounts())
                .request
                .header("signature")
                .is_some_and(|signature| !signature.contains('+'))
        {
            continue;
        }
        let call = if at == 4 {
            call.only(Protocol::Http1)
        } else {
            call
        };
        refused(&gate, &call, 400, "FORMAT_ERROR", "signature-mismatch");
    }
    // 256 bytes leave four bits of the last letter unused: they are zero.
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
    // Another TPP's certificate beside this one's signature: certificates are public. Both share the key here, so keyId tells.
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
        // The body is not even waited for.
        let mut connection = Connection::open(&gate);
        connection.send(&render_head(&gate.seal(&call))).unwrap();
        assert_eq!(connection.answer("POST").unwrap().status, 400);
    }
    // A body whose digest is wrong comes after a signature that holds.
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

//= SIG-14 accepted
#[test]
fn the_request_target_need_not_be_signed() {
    let gate = Gate::start();
    accepted(
        &gate,
        &Call::accounts().signing(&["date", "x-request-id", "tpp-redirect-uri"]),
    );
}

//= SIG-14 accepted
//= SIG-14 refused
#[test]
fn what_must_be_signed_can_be_widened() {
    let gate = Gate::builder()
        .line("signing: {require: ['(request-target)', tpp-session-id, psu-ip-address]}")
        .start();
    let call = |names: &[&str]| {
        Call::cross_border().signing(
            &[
                &[
                    "date",
                    "digest",
                    "x-request-id",
                    "psu-id",
                    "tpp-redirect-uri",
                ][..],
                names,
            ]
            .concat(),
        )
    };
    let wider = ["(request-target)", "tpp-session-id", "psu-ip-address"];
    accepted(&gate, &call(&wider));
    for left_out in wider {
        let rest: Vec<_> = wider.into_iter().filter(|name| *name != left_out).collect();
        let answer = refused(
            &gate,
            &call(&rest),
            400,
            "FORMAT_ERROR",
            "signature-coverage",
        );
        assert!(
            answer.json()["faults"][0]["text"]
                .as_str()
                .unwrap()
                .contains(left_out),
            "{left_out}"
        );
    }
    // Where they are not in the request, they are not asked for.
    accepted(&gate, &Call::accounts());
}

/// Padding that only a careless verifier takes for PKCS#1 v1.5.
fn padded(key: &str, block: &[u8]) -> Vec<u8> {
    let rsa = private(key).rsa().unwrap();
    let mut signature = vec![0; usize::try_from(rsa.size()).unwrap()];
    rsa.private_encrypt(block, &mut signature, Padding::NONE)
        .unwrap();
    signature
}
