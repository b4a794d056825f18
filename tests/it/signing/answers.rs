//! Signed answers: SIG-12. `portvakt tpp verify` checks each by the gateway's own rules, and OpenSSL the signature, over a signing string
//! that this file builds from the specification.

use super::parts;
use crate::harness::{
    Answer, Call, Connection, Gate, GateBuilder, Protocol, Reply, accepted,
    pki::{Key, LeafSpec},
    rsa_key, world,
};
use openssl::{hash::MessageDigest, sign::Verifier, x509::X509};
use portvakt::{
    clock::{Clock, Timestamp},
    tools::tpp::SignedRequest,
};
use std::{path::Path, process::Command};
use tempfile::TempDir;

/// A gate that signs answers with the key of a TPP, with additional keys of the section.
fn gate(more: &str) -> Gate {
    gate_at(&Clock::System, more)
}

fn gate_at(clock: &Clock, more: &str) -> Gate {
    builder(clock, more).start()
}

fn builder(clock: &Clock, more: &str) -> GateBuilder {
    let bank = &world().both.issued;
    let section = format!("response_signing: {{certificate: bank.pem, key: bank.key{more}}}");
    Gate::builder()
        .clock(clock)
        .line(&section)
        .file("bank.pem", bank.pem.clone())
        .private_file("bank.key", bank.key_pem.clone())
}

/// The result of `portvakt tpp verify` for an answer: whether it is valid, and the output.
fn verified(answer: &Answer) -> (bool, String) {
    let folder = TempDir::new().unwrap();
    let saved = folder.path().join("answer.txt");
    let mut bytes = format!("HTTP/1.1 {} Answer\r\n", answer.status).into_bytes();
    for (name, value) in &answer.headers {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(&answer.body);
    std::fs::write(&saved, bytes).unwrap();
    std::fs::write(folder.path().join("ca.pem"), world().issuing.pem()).unwrap();
    let output = verify(
        &saved,
        &["--ca", folder.path().join("ca.pem").to_str().unwrap()],
    );
    (output.0, format!("{}\n{}", answer.status, output.1))
}

fn verify(saved: &Path, vouches: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .args(["tpp", "verify", "--response"])
        .arg(saved)
        .args(vouches)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn holds(answer: &Answer) {
    let (holds, said) = verified(answer);
    assert!(holds, "{said}");
    let [key_id, algorithm, headers, signature] = parts(answer.header("signature").unwrap());
    assert_eq!(key_id, world().both.identity.key_id());
    assert_eq!(algorithm, "rsa-sha256");
    assert_eq!(headers, "date digest x-request-id");
    let value = |name: &str| answer.header(name).unwrap().trim().to_owned();
    let lines = ["date", "digest", "x-request-id"].map(|name| format!("{name}: {}", value(name)));
    let certificate = openssl::base64::decode_block(&value("tpp-signature-certificate")).unwrap();
    let key = X509::from_der(&certificate).unwrap().public_key().unwrap();
    let mut verifier = Verifier::new(MessageDigest::sha256(), &key).unwrap();
    let signature = openssl::base64::decode_block(&signature).unwrap();
    let signed = lines.join("\n");
    assert!(
        verifier
            .verify_oneshot(&signature, signed.as_bytes())
            .unwrap()
    );
}

fn is_unsigned(answer: &Answer) -> bool {
    ["digest", "signature", "tpp-signature-certificate"]
        .iter()
        .all(|name| answer.header(name).is_none())
}

//= SIG-12 accepted
#[test]
fn the_gateways_own_answers() {
    let gate = gate("");
    let table = [
        (Call::new("POST", "/v1/consents"), 200),
        (Call::accounts().without("PSU-ID"), 401),
        (Call::payment().json("{"), 400),
    ];
    for (call, status) in table {
        for protocol in Protocol::ALL {
            let answer = gate.send(&call, protocol);
            assert_eq!(answer.status, status);
            holds(&answer);
        }
    }
    // Without an X-Request-ID the header is not signed.
    let answer = gate.send(&Call::details(), Protocol::Http1);
    let (fits, said) = verified(&answer);
    assert!(fits, "{said}");
    let [_, _, headers, _] = parts(answer.header("signature").unwrap());
    assert_eq!(headers, "date digest");
}

/// A signature costs more than the rest of a refusal, and is bought by a signature only.
//= SIG-12 refused
#[test]
fn a_stranger_gets_no_signature() {
    let gate = gate("");
    let observed = Gate::builder()
        .line("response_signing: {certificate: bank.pem, key: bank.key}")
        .line("observe: {checks: [signature]}")
        .file("bank.pem", world().both.issued.pem.clone())
        .private_file("bank.key", world().both.issued.key_pem.clone())
        .start();
    let forged = || {
        Call::accounts()
            .altered(|request| request.set_header("TPP-Redirect-URI", "https://elsewhere.example/"))
    };
    let stranger = |request: &mut SignedRequest| {
        request.set_header("TPP-Signature-Certificate", "AAAA");
    };
    let table = [
        (&gate, Call::accounts().at("/v1/nothing"), 404),
        (&gate, Call::new("PATCH", "/v1/accounts"), 405),
        (&gate, Call::accounts().with("Accept", "text/html"), 406),
        (&gate, Call::accounts().off_by(-90), 400),
        (&gate, Call::accounts().altered(stranger), 400),
        (&gate, forged(), 400),
        (&gate, Call::payment().by(&world().aisp), 403),
        (&observed, forged(), 200),
    ];
    for (gate, call, status) in table {
        for protocol in Protocol::ALL {
            let answer = gate.send(&call, protocol);
            assert_eq!(answer.status, status, "{:?}", answer.json());
            assert!(is_unsigned(&answer), "{status}");
        }
    }
    // A request whose head cannot be read.
    let mut connection = Connection::open(&gate);
    connection
        .send(b"GET /v1/accounts HTTP/9.9\r\n\r\n")
        .unwrap();
    assert!(is_unsigned(&connection.answer("GET").unwrap()));
}

/// Answers to overload and to what a caller leaves out are unsigned, the core's too, although the caller is known.
//= SIG-12 refused
#[test]
fn answers_about_load_are_unsigned() {
    let gate = gate("");
    for status in [408, 429, 431, 503] {
        gate.upstream().reply(Reply::json(status, "{}"));
        for protocol in Protocol::ALL {
            let answer = gate.send(&Call::accounts(), protocol);
            assert_eq!(answer.status, status);
            assert!(is_unsigned(&answer), "{status}");
        }
    }
    gate.upstream().reply(Reply::json(200, "{}"));
    let call = Call::balances();
    let answers: Vec<_> = (0..5).map(|_| gate.send(&call, Protocol::Http1)).collect();
    answers[..4].iter().for_each(holds);
    assert_eq!(answers[4].status, 429);
    assert!(is_unsigned(&answers[4]));
}

/// More answers at once than threads that sign: each is signed, none is refused.
//= SIG-12 accepted
#[test]
fn answers_wait_for_their_signature() {
    let gate = gate("");
    std::thread::scope(|scope| {
        for number in 0..16 {
            let gate = &gate;
            scope.spawn(move || {
                let protocol = Protocol::ALL[number % 2];
                for call in [Call::accounts(), Call::payment().json("{")] {
                    holds(&gate.send(&call, protocol));
                }
            });
        }
    });
}

//= SIG-12 accepted
#[test]
fn the_cores_answers() {
    let gate = gate("");
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
                   2\r\n[1\r\n2\r\n,2\r\n1\r\n]\r\n0\r\n\r\n";
    let until_close = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":\"\u{e6}\"}";
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
    let unasked = Reply::json(200, "{}")
        .with("Digest", "SHA-256=x")
        .with("Signature", "theirs");
    let table = [
        (Reply::json(200, "{\"a\": 1}"), 200, "{\"a\": 1}"),
        (Reply::json(403, "{}"), 403, "{}"),
        (unasked, 200, "{}"),
        (Reply::Answer(200, vec![], vec![]), 200, ""),
        (
            Reply::Raw("HTTP/1.1 204 No Content\r\n\r\n".into()),
            204,
            "",
        ),
        (Reply::Raw(chunked.into()), 200, "[1,2]"),
        (Reply::Raw(until_close.into()), 200, "{\"a\":\"\u{e6}\"}"),
        (Reply::Raw(early.into()), 201, "{}"),
    ];
    for (reply, status, body) in table {
        gate.upstream().reply(reply);
        for call in [Call::accounts(), Call::payment()] {
            for protocol in Protocol::ALL {
                let answer = gate.send(&call, protocol);
                let shown = String::from_utf8_lossy(&answer.body).into_owned();
                assert_eq!((answer.status, shown.as_str()), (status, body));
                assert_eq!(answer.header("transfer-encoding"), None);
                holds(&answer);
            }
        }
    }
    // SCA-14: the signature covers the body that is sent.
    gate.upstream().reply(Reply::json(401, "{\"a\":1}"));
    for protocol in Protocol::ALL {
        let answer = gate.send(&Call::accounts(), protocol);
        assert!(answer.json()["_links"]["scaRedirect"]["href"].is_string());
        holds(&answer);
    }
    gate.upstream().reply(Reply::json(200, "{}"));
    for call in [
        Call::cross_border(),
        Call::basket(),
        Call::payment().chunked(),
    ] {
        for passage in accepted(&gate, &call) {
            holds(&passage.answer);
        }
    }
}

/// pingora writes Date by the machine's clock, not by the gateway's.
//= SIG-12 accepted
#[test]
fn the_date_that_is_signed_is_the_one_that_goes_out() {
    let clock = Clock::standing(Timestamp::from_unix(Clock::System.now().unix() + 3_600));
    let gate = gate_at(&clock, "");
    for passage in accepted(&gate, &Call::accounts()) {
        holds(&passage.answer);
    }
    for protocol in Protocol::ALL {
        let answer = gate.send(&Call::accounts().without("PSU-ID"), protocol);
        assert_eq!(answer.status, 401);
        holds(&answer);
    }
}

//= SIG-12 accepted
#[test]
fn what_the_core_does_not_answer() {
    let impatient = builder(&Clock::System, "").upstream("read_timeout: 1s");
    let (gate, impatient) = (gate(""), impatient.start());
    // By reply, the status of a safe request and of a payment: one whose outcome is unknown has another answer.
    let table = [
        (&impatient, Reply::Silence, [504, 504]),
        (&gate, Reply::Close, [502, 504]),
        (
            &gate,
            Reply::Answer(500, vec![], b"<html>".to_vec()),
            [500, 500],
        ),
        (
            &gate,
            Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}".to_vec()),
            [502, 504],
        ),
    ];
    for (gate, reply, statuses) in table {
        gate.upstream().reply(reply);
        for protocol in Protocol::ALL {
            for (call, status) in [Call::accounts(), Call::payment()].iter().zip(statuses) {
                let answer = gate.send(call, protocol);
                assert_eq!(answer.status, status, "{:?}", answer.json());
                holds(&answer);
            }
        }
    }
    gate.upstream().reply(Reply::json(200, "{}"));
    accepted(&gate, &Call::accounts());
    // A pooled connection that the core has closed: a safe request is sent again.
    gate.upstream().away(|| ());
    let seen = accepted(&gate, &Call::accounts().only(Protocol::Http1));
    holds(&seen[0].answer);
    gate.upstream().away(|| {
        let answer = gate.send(&Call::accounts(), Protocol::Http1);
        assert_eq!(answer.status, 502);
        holds(&answer);
    });
}

//= SIG-12 refused
#[test]
fn an_altered_answer_does_not_verify() {
    let gate = gate("");
    gate.upstream().reply(Reply::json(200, "{\"a\": 1}"));
    let answer = gate.send(&Call::accounts(), Protocol::Http1);
    holds(&answer);
    let mut body = answer.clone();
    body.body = b"{\"a\": 2}".to_vec();
    let mut date = answer.clone();
    for (name, value) in &mut date.headers {
        if name.eq_ignore_ascii_case("date") {
            *value = "Sat, 01 Jan 2028 00:00:00 GMT".into();
        }
    }
    for altered in [body, date] {
        let (holds, said) = verified(&altered);
        assert!(!holds, "{said}");
    }
}

//= SIG-12 accepted
#[test]
fn a_body_beyond_the_bound_goes_out_whole_and_unsigned() {
    for (more, limit) in [("", 65_536), (", body_limit: 10", 10)] {
        let gate = gate(more);
        for length in [limit, limit + 1, 300_000] {
            let body = vec![b'x'; length];
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let mut chunked = head.as_bytes().to_vec();
            for part in body.chunks(50_000) {
                chunked.extend(format!("{:x}\r\n", part.len()).bytes());
                chunked.extend(part);
                chunked.extend(b"\r\n");
            }
            chunked.extend(b"0\r\n\r\n");
            for reply in [
                Reply::Answer(200, vec![], body.clone()),
                Reply::Raw(chunked),
            ] {
                gate.upstream().reply(reply);
                for protocol in Protocol::ALL {
                    let answer = gate.send(&Call::accounts(), protocol);
                    assert!(answer.body == body, "{length} bytes");
                    if length <= limit {
                        holds(&answer);
                    } else {
                        assert!(is_unsigned(&answer), "{length} bytes");
                    }
                }
            }
        }
    }
}

//= SIG-12 accepted
#[test]
fn nothing_is_signed_unless_a_certificate_is_named() {
    let gate = Gate::start();
    for call in [Call::accounts(), Call::new("POST", "/v1/consents")] {
        for protocol in Protocol::ALL {
            assert!(is_unsigned(&gate.send(&call, protocol)));
        }
    }
    let world = world();
    // SIG-5: TPPs check an answer as the gateway checks a request.
    let long = rsa_key(5120);
    let spec = LeafSpec {
        key: Key::RsaPem(long.clone()),
        ..world.leaf()
    };
    let wrong = [
        (
            world.issuing.issue(&spec).unwrap().pem,
            long,
            "RSA of 2048 to 4096 bits",
        ),
        (
            world.server.pem.clone(),
            world.server.key_pem.clone(),
            "no RSA key (SIG-5)",
        ),
        (
            world.both.issued.pem.clone(),
            world.root_key.clone(),
            "not that of the certificate",
        ),
    ];
    for (certificate, key, fault) in wrong {
        let gate = Gate::builder()
            .line("response_signing: {certificate: bank.pem, key: bank.key}")
            .file("bank.pem", certificate)
            .private_file("bank.key", key)
            .try_start();
        let faults = gate.err().unwrap();
        assert!(faults.contains(fault), "{faults}");
    }
}

/// A caller who does not say whom he trusts gets no verdict: anybody can sign an answer with a key of his own.
//= SIG-12 refused
#[test]
fn an_answer_is_verified_by_a_certificate_that_is_trusted() {
    let gate = gate("");
    let answer = gate.send(&Call::accounts(), Protocol::Http1);
    let folder = TempDir::new().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut text = format!("HTTP/1.1 {} Answer\r\n", answer.status);
    for (name, value) in &answer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(std::str::from_utf8(&answer.body).unwrap());
    let saved = file("answer.txt", &text);
    let world = world();
    let [issuing, other, own, another] = [
        ("issuing.pem", world.issuing.pem()),
        ("other.pem", world.tls_ca.pem()),
        ("own.pem", world.both.issued.pem.clone()),
        ("another.pem", world.aisp.issued.pem.clone()),
    ]
    .map(|(name, pem)| file(name, &pem));
    let config = file("gateway.yaml", gate.yaml());
    let table: [(&[&str], bool, &str); 8] = [
        (&["--ca", &issuing], true, "certificate   holds"),
        (&["--cert", &own], true, "certificate   holds"),
        (&["--ca", &other], false, "(certificate-untrusted)"),
        (
            &["--cert", &another],
            false,
            "another certificate than --cert",
        ),
        (
            &["--ca", &issuing, "--at", "2046-01-01T00:00:00Z"],
            false,
            "(certificate-expired)",
        ),
        (
            &["--cert", &own, "--at", "2010-01-01T00:00:00Z"],
            false,
            "(certificate-not-yet-valid)",
        ),
        (&[], false, "--cert <FILE>|--ca <FILE|DIR>|--config <FILE>"),
        (&["--config", &config], false, "gateway.yaml"),
    ];
    for (vouches, is_good, text) in table {
        let (holds, said) = verify(Path::new(&saved), vouches);
        assert_eq!(holds, is_good, "{vouches:?}: {said}");
        assert!(said.contains(text), "{vouches:?}: {said}");
    }
    // By the configuration of the gateway itself, whose files are beside it.
    let config = gate.folder().join("by.yaml");
    std::fs::write(&config, gate.yaml()).unwrap();
    let (holds, said) = verify(Path::new(&saved), &["--config", config.to_str().unwrap()]);
    assert!(holds, "{said}");
}
