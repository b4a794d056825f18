//! Errors of the core in a content coding: ERR-6, SCA-14.

use super::answers;
use crate::harness::{Call, Gate, Protocol, Reply, accepted, check_error};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn coded(status: u16, coding: &str, body: &[u8]) -> Reply {
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    Reply::Answer(status, vec![json], body.to_vec()).with("Content-Encoding", coding)
}

/// Every answer keeps its bytes and its coding, also where the caller did not ask for one.
//= ERR-6 accepted
#[test]
fn an_error_in_gzip_passes_unchanged() {
    let gate = Gate::start();
    let text = br#"{"code":"KID_UNKNOWN","message":"K\u00f8b"}"#;
    let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(256 * 1024 - 14));
    let table = [
        ("gzip", gzip(text)),
        ("GZip", gzip(text)),
        ("gzip", gzip(long.as_bytes())),
        ("identity", text.to_vec()),
        ("", text.to_vec()),
    ];
    for (coding, body) in table {
        for status in [400, 503] {
            gate.upstream().reply(coded(status, coding, &body));
            for call in [
                Call::payment(),
                Call::accounts().with("Accept-Encoding", "gzip"),
            ] {
                for answer in answers(&gate, &call) {
                    assert_eq!(answer.status, status, "{coding}");
                    assert_eq!(
                        answer.header("content-encoding").unwrap_or_default(),
                        coding
                    );
                    assert_eq!(answer.body, body, "{coding}");
                }
            }
        }
    }
    // An answer that is no error is not read.
    gate.upstream().reply(coded(200, "br", b"?"));
    for passage in accepted(&gate, &Call::accounts()) {
        assert_eq!(passage.answer.header("content-encoding"), Some("br"));
        assert_eq!(passage.answer.body, b"?");
    }
}

/// What the gateway cannot read is replaced; a body that grows beyond the limit is not decoded further.
//= ERR-6 accepted
#[test]
fn an_error_that_cannot_be_decoded_is_replaced() {
    let gate = Gate::start();
    let whole = gzip(b"{}");
    let bomb = gzip(&vec![b' '; 200 << 20]);
    assert!(bomb.len() < 256 * 1024);
    let table = [
        ("gzip", bomb),
        ("gzip", b"{}".to_vec()),
        ("gzip", whole[..whole.len() - 1].to_vec()),
        ("gzip", [&whole[..], &whole].concat()),
        ("gzip", gzip(b"<html>core-7.bank.internal</html>")),
        ("gzip", gzip(&whole)),
        ("gzip, gzip", gzip(&whole)),
        ("br", b"{}".to_vec()),
        ("identity, deflate", b"{}".to_vec()),
    ];
    for (coding, body) in table {
        for status in [401, 500] {
            gate.upstream().reply(coded(status, coding, &body));
            for answer in answers(&gate, &Call::accounts()) {
                let code = answer.json()["code"].as_str().unwrap().to_owned();
                check_error(coding, &answer, status, &code, "upstream-error");
                assert_eq!(answer.header("content-encoding"), None);
            }
        }
    }
}

//= SCA-14 accepted
#[test]
fn a_401_in_gzip_gets_its_link_and_goes_out_plain() {
    let gate = Gate::start();
    let call = Call::accounts().with("Accept-Encoding", "gzip");
    gate.seal(&call);
    let theirs = br#"{"_links":{"scaRedirect":{"href":"https://bank.example/own"}}}"#;
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(64 * 1024));
    for protocol in Protocol::ALL {
        let reply = coded(401, "gzip", &gzip(br#"{"a":1.50,"code":"X"}"#));
        gate.upstream().reply(reply.with("ETag", "\"1\""));
        let answer = gate.send(&call, protocol);
        let text = String::from_utf8(answer.body.clone()).unwrap();
        assert!(
            text.starts_with(r#"{"a":1.50,"_links":{"scaRedirect":{"#),
            "{text}"
        );
        for gone in ["content-encoding", "etag", "transfer-encoding"] {
            assert_eq!(answer.header(gone), None);
        }
        let length = answer.body.len().to_string();
        assert_eq!(answer.header("content-length"), Some(length.as_str()));
        // Unchanged, because it has a link, or is too long once decoded.
        for unchanged in [&theirs[..], long.as_bytes()] {
            let body = gzip(unchanged);
            gate.upstream().reply(coded(401, "gzip", &body));
            let answer = gate.send(&call, protocol);
            assert_eq!(answer.header("content-encoding"), Some("gzip"));
            assert_eq!(answer.body, body);
        }
    }
}

/// The core is asked for codings that the gateway reads.
//= ERR-6 accepted
#[test]
fn the_core_is_asked_for_gzip_and_identity_at_most() {
    let gate = Gate::start();
    let table = [
        (None, "identity"),
        (Some("br, zstd"), "identity"),
        (Some("br, gzip, zstd;q=0.5"), "gzip"),
        (Some("*"), "gzip"),
        (Some("gzip;q=0"), "identity"),
    ];
    for (asked, expected) in table {
        for call in [Call::accounts(), Call::payment()] {
            let call = match asked {
                Some(asked) => call.with("Accept-Encoding", asked),
                None => call,
            };
            for passage in accepted(&gate, &call) {
                let sent = passage.seen.header("accept-encoding");
                assert_eq!(sent, Some(expected), "{asked:?}");
            }
        }
    }
}
