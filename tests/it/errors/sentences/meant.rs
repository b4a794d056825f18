//! ERR-10: the sentences that name what the caller probably meant: of a signature, a certificate, a path and a name that is missing.

use super::{case, certificate, check, signature};
use crate::harness::{
    Call, Connection, Gate, Protocol, Tpp, accepted, check_error, refused, render, rsa_key, world,
};
use portvakt_development_pki::{Key, LeafSpec};
use std::sync::Arc;

const SIGNATURE: &str = "Signature";
const FORM: &str = "signature-malformed";

//= ERR-10 refused
#[test]
fn by_a_separator_of_a_signature() {
    check(
        &Gate::start(),
        vec![
            case(
                signature(|text| {
                    let (before, after) = text.split_once("headers=\"").unwrap();
                    let (list, after) = after.split_once('"').unwrap();
                    let list = format!("(request-target),{}", list.replace(' ', ","));
                    format!("{before}headers=\"{list}\"{after}")
                }),
                FORM,
                SIGNATURE,
                &["at byte 16 of headers stands ',': separate the names by blanks, not by commas"],
                &["'('"],
            ),
            case(
                signature(|text| text.replacen("headers=\"", "headers=\"(request-target);", 1)),
                FORM,
                SIGNATURE,
                &["stands ';': separate the names by blanks, not by semicolons"],
                &["'('"],
            ),
            case(
                signature(|text| text.replacen("\",headers=", "\" headers=", 1)),
                FORM,
                SIGNATURE,
                &["a comma is missing after the parameter algorithm"],
                &["a small letter", "algorithm is missing"],
            ),
            case(
                signature(|text| text.replacen("\",signature=", "\";signature=", 1)),
                FORM,
                SIGNATURE,
                &["separate the parameters by commas, not by semicolons"],
                &[],
            ),
            // The same in keyId, which nobody had named.
            case(
                signature(|text| text.replacen(",CA=", " CA=", 1)),
                FORM,
                SIGNATURE,
                &["a comma is missing between the serial number and CA="],
                &["hexadecimal digits;"],
            ),
        ],
    );
}

//= ERR-10 refused
#[test]
fn by_another_draft_of_signatures() {
    let list = |name: &'static str| {
        signature(move |text| text.replacen("headers=\"", &format!("headers=\"{name} "), 1))
    };
    let later: &[&str] = &[
        "of a later draft of HTTP signatures",
        "sign Date in its place",
    ];
    check(
        &Gate::start(),
        vec![
            case(list("(created)"), FORM, SIGNATURE, later, &["cannot"]),
            case(list("(expires)"), FORM, SIGNATURE, later, &["cannot"]),
            case(
                list("@method"),
                FORM,
                SIGNATURE,
                &["names with @ are those of RFC 9421"],
                &[],
            ),
            case(
                signature(|_| "sig1=:AAAA:".to_owned()),
                FORM,
                SIGNATURE,
                &["HTTP message signatures (RFC 9421)", "no Signature-Input"],
                &[],
            ),
            case(
                signature(|text| text.replace("rsa-sha256", "hs2019")),
                "signature-algorithm-unsupported",
                SIGNATURE,
                &["must be rsa-sha256; hs2019 is of a later draft"],
                &[],
            ),
        ],
    );
}

/// A TPP whose certificate has this serial number, with a key of its own.
fn tpp(serial: &[u8], bits: u32) -> Arc<Tpp> {
    world().issue(&LeafSpec {
        serial: Some(serial.to_vec()),
        organization_identifier: Some("PSDNO-FSA-ANOTHER".into()),
        key: Key::RsaPem(rsa_key(bits)),
        ..LeafSpec::default()
    })
}

/// A request that shows this certificate, and is signed with another key; `named`: keyId names the certificate too.
fn showing(other: &Tpp, named: bool) -> Call {
    let certificate = other.identity.certificate_header();
    let call = match named {
        true => Call::accounts().key_id(other.identity.key_id()),
        false => Call::accounts(),
    };
    call.altered(move |request| request.set_header("TPP-Signature-Certificate", &certificate))
}

//= ERR-10 refused
#[test]
fn by_the_certificate_of_another_tpp() {
    let (other, longer) = (tpp(&[0x5a, 1], 2_048), tpp(&[0x5a, 2], 3_072));
    let decimal = |serial: &str| {
        let key_id = tpp(&[0x5a, 3], 2_048);
        let of = key_id
            .identity
            .key_id()
            .replace("SN=5A03", &format!("SN={serial}"));
        Call::accounts().by(&key_id).key_id(&of)
    };
    const WHOSE: &str = "that of PSDNO-FSA-ANOTHER, SN=5A01";
    check(
        &Gate::start(),
        vec![
            case(
                showing(&other, false),
                "signature-key-mismatch",
                SIGNATURE,
                &[
                    "keyId has another serial number than the certificate",
                    WHOSE,
                    "though its issuer is the one in keyId",
                    "send that certificate",
                ],
                &["does not verify"],
            ),
            case(
                showing(&other, true),
                "signature-mismatch",
                SIGNATURE,
                &[WHOSE, "you sign with the key of another certificate"],
                &["another serial number"],
            ),
            case(
                showing(&longer, true),
                "signature-mismatch",
                SIGNATURE,
                &[
                    "it was not made with the key",
                    "256 bytes, and that key makes 384",
                ],
                &["over the signing string"],
            ),
            case(
                decimal("23043"),
                "signature-key-mismatch",
                SIGNATURE,
                &["that of the certificate, but in decimal: write it in hexadecimal, SN=5A03"],
                &["send that certificate"],
            ),
            case(
                decimal("23044"),
                "signature-key-mismatch",
                SIGNATURE,
                &["keyId has another serial number", "SN=5A03 in hexadecimal"],
                &["but in decimal", "23044"],
            ),
        ],
    );
}

//= ERR-10 refused
#[test]
fn by_a_key_in_the_place_of_a_certificate() {
    const PLACE: &str = "TPP-Signature-Certificate";
    let armoured = |label: &'static str| {
        certificate(move |shown| format!("-----BEGIN {label}-----{shown}-----END {label}-----"))
    };
    let key: String = rsa_key(2_048).lines().collect();
    let bundle = certificate(move |shown| {
        format!("{key}-----BEGIN CERTIFICATE-----{shown}-----END CERTIFICATE-----")
    });
    let compromised: &[&str] = &["a private key: the key is compromised, because it was sent"];
    let check_form = |call: Call, says: &'static [&'static str]| {
        check(
            &Gate::start(),
            vec![case(call, "certificate-malformed", PLACE, says, &["MII"])],
        );
    };
    check_form(
        armoured("PUBLIC KEY"),
        &["a certificate must stand here, and this is a public key"],
    );
    check_form(armoured("RSA PRIVATE KEY"), compromised);
    check_form(armoured("ENCRYPTED PRIVATE KEY"), compromised);
    check_form(
        bundle,
        &["beside the certificate stands a private key: the key is compromised"],
    );
}

/// A cross-border payment with one name replaced by another.
fn renamed(from: &str, to: &str) -> Call {
    let body = portvakt::interface::payload::describe::example().to_string();
    Call::cross_border().json(&body.replacen(&format!("\"{from}\""), &format!("\"{to}\""), 1))
}

//= ERR-10 refused
#[test]
fn by_a_name_in_the_place_of_a_missing_one() {
    const BODY: &str = "payload-invalid";
    let header = |from: &str, to: &str, value: &str| Call::accounts().without(from).with(to, value);
    check(
        &Gate::start(),
        vec![
            case(
                renamed("creditorAccount", "creditorAcount"),
                BODY,
                "creditorAccount",
                &[
                    "missing: every",
                    "creditorAcount stands there: write creditorAccount",
                ],
                &[],
            ),
            case(
                renamed("amount", "amout"),
                BODY,
                "instructedAmount.amount",
                &["amout stands there: write amount"],
                &[],
            ),
            case(
                renamed("iban", "ibann"),
                BODY,
                "creditorAccount",
                &["neither iban nor bban", "ibann stands there: write iban"],
                &[],
            ),
            // A name with a digit could be an id.
            case(
                renamed("creditorName", "creditorName1"),
                BODY,
                "creditorName",
                &["missing: every"],
                &["creditorName1"],
            ),
            case(
                Call::basket().json(r#"{"paymentId":["1"]}"#),
                BODY,
                "paymentIds",
                &["paymentId stands there: write paymentIds"],
                &[],
            ),
            case(
                header(
                    "TPP-Redirect-URI",
                    "TPP-Redirect-URL",
                    "https://tpp.example/back",
                ),
                "header-missing",
                "TPP-Redirect-URI",
                &["the request has tpp-redirect-url: write TPP-Redirect-URI"],
                &["tpp.example"],
            ),
            case(
                header("X-Request-ID", "X-Requst-ID", "7"),
                "header-missing",
                "X-Request-ID",
                &["the request has x-requst-id: write X-Request-ID"],
                &[],
            ),
            case(
                Call::accounts().altered(|request| {
                    let value = request.header("signature").unwrap().to_owned();
                    request.remove_header("Signature");
                    request.set_header("Authorization", &format!("Signature {value}"));
                }),
                "signature-missing",
                SIGNATURE,
                &[
                    "the request has Authorization",
                    "without the word Signature before keyId",
                ],
                &["keyId="],
            ),
            case(
                Call::payment().altered(|request| {
                    request.remove_header("Digest");
                    request.set_header("Content-Digest", "sha-256=:AAAA:");
                }),
                "header-missing",
                "Digest",
                &["Content-Digest is of RFC 9530, and this interface has Digest"],
                &["AAAA"],
            ),
        ],
    );
}

//= ERR-10 refused
#[test]
fn by_a_path_or_a_method() {
    let gate = Gate::start();
    let unknown = |path: &str| {
        let answer = refused(
            &gate,
            &Call::plain().at(path),
            404,
            "NOT_FOUND",
            "operation-unknown",
        );
        answer.json()["faults"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (path, nearest) in [
        ("/v1/Accounts", "/v1/accounts"),
        ("/accounts", "/v1/accounts"),
        (
            "/v1/accounts/01010112345/transaction",
            "/v1/accounts/{id}/transactions",
        ),
    ] {
        let text = unknown(path);
        assert!(
            text.ends_with(&format!("the nearest that is one is {nearest}")),
            "{text}"
        );
        assert!(!text.contains("010101"), "{text}");
    }
    assert!(unknown("/wp-admin").ends_with("nor near to one"));
    for (method, says) in [
        (
            "DELETE",
            "the path has another method than that of the request: it has GET",
        ),
        ("get", "a method stands in capitals: write GET"),
    ] {
        let call = Call::bare(method, "/v1/accounts").only(Protocol::Http1);
        let answer = refused(&gate, &call, 405, "BAD_REQUEST", "method-not-allowed");
        assert_eq!(answer.header("allow"), Some("GET"));
        assert_eq!(answer.json()["faults"][0]["text"], says);
    }
    assert!(gate.upstream().saw_nothing());
}

/// ERR-5: also where the HTTP layer refuses the head.
//= ERR-5 refused
//= ERR-10 refused
#[test]
fn a_head_that_is_not_http_keeps_its_request_id() {
    let gate = Gate::start();
    let call = Call::payment().with("X-Request-ID", "mine-7");
    let request = String::from_utf8(render(&gate.seal(&call))).unwrap();
    for (head, id, text) in [
        (
            request.replacen("TPP-Redirect-URI:", "TPP-Redirect-UR\u{131}:", 1),
            Some("mine-7"),
            // Not about Content-Length, which the head has too.
            "has U+0131, which is outside ASCII",
        ),
        (
            request.replacen("PSU-IP-Address:", "PSU-IP-Address :", 1),
            Some("mine-7"),
            "has a blank, at its byte 14",
        ),
        (
            request.replacen("Content-Length: ", "Content-Length: x", 1),
            Some("mine-7"),
            "the value of Content-Length is no number",
        ),
        (
            request.replacen(
                "X-Request-ID: mine-7",
                "X-Request-ID: mine-7\r\nx-request-id: a b\r\nx\u{131}: 1",
                1,
            ),
            None,
            "has U+0131",
        ),
        (
            request.replacen(
                "X-Request-ID: mine-7",
                "X-Request-ID: m\u{131}ne\r\nx\u{131}: 1",
                1,
            ),
            None,
            "has U+0131",
        ),
    ] {
        let mut connection = Connection::open(&gate);
        connection.send(head.as_bytes()).unwrap();
        let answer = connection.answer("POST").unwrap();
        check_error(text, &answer, 400, "BAD_REQUEST", "malformed-request");
        assert_eq!(answer.header("x-request-id"), id, "{text}");
        let json = answer.json();
        let said = json["faults"][0]["text"].as_str().unwrap();
        assert!(said.contains(text), "{said}");
    }
    assert!(gate.upstream().saw_nothing());
}

//= ERR-10 refused
#[test]
fn by_a_limit_that_is_reached() {
    let gate = Gate::start();
    for _ in 0..4 {
        accepted(&gate, &Call::balances().only(Protocol::Http1));
    }
    gate.upstream().take();
    let fifth = refused(
        &gate,
        &Call::balances(),
        429,
        "ACCESS_EXCEEDED",
        "quota-exceeded",
    );
    let text = fifth.json()["faults"][0]["text"].to_string();
    assert!(
        text.contains("or send the header while the PSU is present"),
        "{text}"
    );
    let again = Call::payment()
        .with("X-Request-ID", "order-1")
        .only(Protocol::Http1);
    accepted(&gate, &again);
    let answer = refused(&gate, &again, 409, "CONFLICT", "request-replayed");
    let text = answer.json()["faults"][0]["text"].to_string();
    assert!(text.contains("give each request a new one"), "{text}");
}
