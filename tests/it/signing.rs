//! The signature and the headers that it covers: SIG-1, SIG-6 to SIG-8, SIG-14.

/// SIG-12.
mod answers;
/// DAT-1, DAT-2.
mod date;
/// DIG-1, DIG-2.
mod digest;
/// SIG-2 to SIG-5: the Signature header, keyId and the algorithm.
mod form;
/// SIG-9, SIG-11, SIG-13.
mod verified;
/// SIG-10.
mod words;

use crate::harness::{Call, Gate, Protocol, accepted, refused};
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

/// Replaces the signature bytes, computed from the request.
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

/// PKCS#1 v1.5 over a given text.
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
    let gate = Gate::builder().core_answers().start();
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
            &replace(Call::plain().signing(&names), 2, move |_| written.clone()),
        );
    }
}

//= SIG-6 refused
#[test]
fn lists_that_are_none() {
    let gate = Gate::start();
    for absent in ["psu-id", "digest", "content-type", "x-other", "(created)"] {
        let call = Call::plain().signing(&["date", "x-request-id", "tpp-redirect-uri", absent]);
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
            &replace(Call::plain(), 2, move |_| list.to_owned()),
            400,
            "FORMAT_ERROR",
            "signature-malformed",
        );
    }
}

/// A request with every header that must be signed if present.
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
    // Absent headers need not be listed, on D neither.
    accepted(&gate, &Call::details().signing(&["date", "psu-id"]));
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
    let call = Call::plain()
        .at("/v1/tpp/contact?B=2&a=%2fX%20y&&")
        .also("PSU-Accept", "text/html")
        .also("PSU-Accept", "q=0,  b")
        .with("Accept-Language", "nb");
    for passage in accepted(&gate, &call.clone().signing(&all)) {
        let string = &passage.request.signing_string;
        assert!(string.starts_with("psu-accept: text/html, q=0,  b\n(request-target): get /v1/tpp/contact?B=2&a=%2fX%20y&&\nhost: localhost\ndate: "), "{string}");
        assert!(string.ends_with("\naccept-language: nb"), "{string}");
    }
    // White space around a value is not part of the value; HTTP/2 has none.
    accepted(
        &gate,
        &call
            .with("Accept-Language", "  nb   ")
            .signing(&all)
            .only(Protocol::Http1),
    );
    accepted(
        &gate,
        &Call::plain()
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

//= SIG-14 accepted
#[test]
fn the_request_target_need_not_be_signed() {
    let gate = Gate::start();
    accepted(
        &gate,
        &Call::plain().signing(&["date", "x-request-id", "tpp-redirect-uri"]),
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
    // Absent headers are not required.
    accepted(&gate, &Call::accounts());
}

/// Padding that only a lax verifier accepts as PKCS#1 v1.5.
fn padded(key: &str, block: &[u8]) -> Vec<u8> {
    let rsa = private(key).rsa().unwrap();
    let mut signature = vec![0; usize::try_from(rsa.size()).unwrap()];
    rsa.private_encrypt(block, &mut signature, Padding::NONE)
        .unwrap();
    signature
}
