//! ERR-10: each refusal has a sentence about its own cause, and about no other. The unit tests beside the parsers have every sentence; these
//! show that it reaches the caller, with the name of the header, the parameter or the member, and that the core saw nothing.

/// What the caller probably meant.
mod meant;
/// Bodies, queries and headers.
mod values;

use crate::harness::{Call, Connection, Gate, check_error, refused, render, world};
use openssl::base64::encode_block;
use portvakt::interface::Reason;

/// A request that is refused: the reason, the place that the fault names, what its text says, and what it must not say.
struct Case {
    call: Call,
    reason: &'static str,
    place: &'static str,
    says: &'static [&'static str],
    never: &'static [&'static str],
}

fn case(
    call: Call,
    reason: &'static str,
    place: &'static str,
    says: &'static [&'static str],
    never: &'static [&'static str],
) -> Case {
    Case {
        call,
        reason,
        place,
        says,
        never,
    }
}

/// Asserts the sentence over each protocol, and that the upstream received nothing.
fn check(gate: &Gate, cases: Vec<Case>) {
    for one in cases {
        let known = Reason::from_slug(one.reason).unwrap();
        let code = match one.place {
            "requestedExecutionDate" => "EXECUTION_DATE_INVALID",
            _ => known.code().unwrap().as_str(),
        };
        let answer = refused(gate, &one.call, known.status(), code, one.reason);
        let json = answer.json();
        let faults = json["faults"].as_array().unwrap();
        let is_there = |fault: &&serde_json::Value| {
            let places = ["header", "query", "path"].map(|member| fault[member].as_str());
            places.into_iter().flatten().next().unwrap_or_default() == one.place
        };
        let fault = faults.iter().find(is_there);
        let text = fault.unwrap_or_else(|| panic!("{}: {json}", one.place))["text"]
            .as_str()
            .unwrap();
        for part in one.says {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        // Its id is random, and may contain any short text.
        let mut said = json.clone();
        said.as_object_mut().unwrap().remove("id");
        for part in one.never {
            assert!(!said.to_string().contains(part), "{part:?} is in {said}");
        }
    }
}

fn signature(edit: impl Fn(&str) -> String + Send + Sync + 'static) -> Call {
    Call::accounts().signature(edit)
}

//= ERR-10 refused
#[test]
fn of_a_signature() {
    const PLACE: &str = "Signature";
    const FORM: &str = "signature-malformed";
    const MISMATCH: &str = "signature-mismatch";
    let not_over: &[&str] = &["does not verify over", "byte for byte"];
    check(
        &Gate::start(),
        vec![
            case(
                signature(|text| text.replace('"', "\\\"")),
                FORM,
                PLACE,
                &["the value of keyId", "at byte 6 stands a backslash"],
                &["byte 0"],
            ),
            case(
                signature(|text| format!("{text},created=1618884473")),
                FORM,
                PLACE,
                &["stands the parameter created;"],
                &["1618884473", "cannot be read"],
            ),
            case(
                signature(|text| text.replacen("\",", "\",created=1618884473,", 1)),
                FORM,
                PLACE,
                &["stands the parameter created;"],
                &["the certificate's issuer", "1618884473"],
            ),
            case(
                signature(|text| text.replacen("\",algorithm", "\" algorithm", 1)),
                FORM,
                PLACE,
                &["a comma is missing after the parameter keyId"],
                &["a small letter"],
            ),
            case(
                signature(|text| text.replace(" x-request-id", " x-request-\u{131}d")),
                FORM,
                PLACE,
                &["of headers stands U+0131, which is outside ASCII"],
                &["separated by commas"],
            ),
            case(
                signature(|text| format!("Signature {text}")),
                FORM,
                PLACE,
                &["begins with the word Signature"],
                &[],
            ),
            case(
                signature(|text| text.replace("==\"", "%3D%3D\"")),
                MISMATCH,
                PLACE,
                &["not base64: at byte 342 stands '%'", "percent-encoded"],
                not_over,
            ),
            case(
                signature(|text| text.replacen("signature=\"", "signature=\"AAAA", 1)),
                MISMATCH,
                PLACE,
                &["it has 259 bytes, and that key makes 256"],
                &["base64", "over the signing string"],
            ),
            case(
                signature(|text| {
                    let (before, _) = text.split_once("signature=\"").unwrap();
                    format!("{before}signature=\"AAAA\"")
                }),
                MISMATCH,
                PLACE,
                &["has 3 bytes; keys of 2048 to 4096 bits make 256 to 512"],
                not_over,
            ),
        ],
    );
}

fn certificate(edit: impl Fn(&str) -> String + Send + Sync + 'static) -> Call {
    Call::accounts().altered(move |request| {
        let shown = request.header("tpp-signature-certificate").unwrap();
        let edited = edit(shown);
        request.set_header("TPP-Signature-Certificate", &edited);
    })
}

//= ERR-10 refused
#[test]
fn of_a_certificate() {
    const PLACE: &str = "TPP-Signature-Certificate";
    const FORM: &str = "certificate-malformed";
    let gate = Gate::start();
    let ca = std::fs::read_to_string(gate.folder().join("intermediates/issuing.pem")).unwrap();
    let ca: String = ca.lines().filter(|line| !line.contains("-----")).collect();
    let armoured =
        |label: &str, text: &str| format!("-----BEGIN {label}-----{text}-----END {label}-----");
    check(
        &gate,
        vec![
            case(
                certificate(move |shown| armoured("CERTIFICATE", &format!("\\n{shown}\\n"))),
                FORM,
                PLACE,
                &["a backslash and a letter, for its line ends"],
                &["neither base64 nor PEM", "not base64"],
            ),
            case(
                certificate(|shown| format!("{} {}", &shown[..64], &shown[64..])),
                FORM,
                PLACE,
                &["at byte 64 stands a blank"],
                &["PEM"],
            ),
            case(
                certificate(|shown| shown[..shown.len() - 1].to_owned()),
                FORM,
                PLACE,
                &["base64 has a multiple of 4"],
                &["PEM"],
            ),
            case(
                certificate(move |shown| armoured("PRIVATE KEY", shown)),
                FORM,
                PLACE,
                &[
                    "a certificate must stand here",
                    "this is a private key: the key is compromised",
                ],
                &[],
            ),
            case(
                certificate(|shown| openssl::base64::encode_block(shown.as_bytes())),
                FORM,
                PLACE,
                &["base64 of base64"],
                &["no certificate", "DER:"],
            ),
            case(
                certificate(move |_| ca.clone()),
                "certificate-untrusted",
                PLACE,
                &["it is the certificate of a CA"],
                &["does not chain", "no trust anchor"],
            ),
            case(
                Call::accounts().by(&gate.world().pisp),
                "role-missing",
                PLACE,
                &["its roles are PSP_PI", "needs PSP_AI"],
                &[],
            ),
        ],
    );
}

/// Heads that no client library sends.
//= ERR-10 refused
#[test]
fn of_a_raw_head() {
    let gate = Gate::start();
    let request = String::from_utf8(render(&gate.seal(&Call::accounts()))).unwrap();
    let (_, rest) = request.split_once(" HTTP/1.1").unwrap();
    let with = |target: &str| format!("GET {target} HTTP/1.1{rest}");
    let table = [
        (
            with("https://localhost/v1/accounts"),
            "has a scheme and a host (absolute form)",
        ),
        (with("*"), "is an asterisk"),
        (
            with("/v1/accounts/"),
            "a slash at its end, at byte 13 of the request target",
        ),
        (
            with("/v1/accounts#x"),
            "at byte 12 of the request target stands '#'",
        ),
        (
            with("/v1/accounts/\u{f8}"),
            "at byte 13 of the request target stands U+00F8",
        ),
        (
            request.replace("X-Request-ID:", "X-Request-\u{131}D:"),
            "has U+0131, which is outside ASCII, at its byte 10",
        ),
        (
            request.replace("Host: localhost\r\n", ""),
            "the header Host is missing",
        ),
        (
            request.replace("Host: localhost", "Host: a b"),
            "at byte 1 stands a blank",
        ),
        (
            request.replacen("\r\nHost", "\nHost", 1),
            "line 1 of the head has an LF without a CR",
        ),
    ];
    for (head, expected) in table {
        let mut connection = Connection::open(&gate);
        connection.send(head.as_bytes()).unwrap();
        let answer = connection.answer("GET").unwrap();
        check_error(expected, &answer, 400, "BAD_REQUEST", "malformed-request");
        let json = answer.json();
        let text = json["faults"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(gate.upstream().saw_nothing());
}

/// What a developer of a TPP, who had nothing but the answers, did not cure at the first try.
//= ERR-10 refused
#[test]
fn of_what_was_not_cured_at_the_first_try() {
    let mut body = portvakt::interface::payload::describe::example();
    body["requestedExecutionDate"] = "2040-01-01".into();
    body["instructedAmount"]["amount"] = serde_json::json!(107.5);
    let certificate = |keep: fn(&str) -> &str| {
        Call::accounts().altered(move |request| {
            let name = "TPP-Signature-Certificate";
            let whole = request.header(name).unwrap().to_owned();
            request.set_header(name, keep(&whole));
        })
    };
    let others = Call::accounts().altered(|request| {
        let other = encode_block(&world().aisp.issued.der).replace('\n', "");
        request.set_header("TPP-Signature-Certificate", &other);
    });
    check(
        &Gate::start(),
        vec![
            case(
                Call::cross_border().json(&body.to_string()),
                "payload-invalid",
                "instructedAmount.amount",
                &[
                    "it is a number",
                    "with the fraction digits of its currency, such as \"100.00\"",
                ],
                &["107"],
            ),
            case(
                Call::payment().at("/v1/payments/norwegian-domestic-credit-transfer"),
                "product-unknown",
                "",
                &["there are norwegian-domestic-credit-transfers, "],
                &[],
            ),
            case(
                certificate(|whole| &whole[..whole.len() / 8 * 4]),
                "certificate-malformed",
                "TPP-Signature-Certificate",
                &["a value that is cut off"],
                &[],
            ),
            case(
                others,
                "signature-key-mismatch",
                "Signature",
                &["where you sign with the key of another one, send that certificate"],
                &[],
            ),
        ],
    );
}
