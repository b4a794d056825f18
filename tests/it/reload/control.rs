//! The control listener uses one configuration for each call.

use super::{End, configure};
use crate::harness::{Answer, Connection, Gate, Tls, Wire, eventually, world, write_private};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Two configurations alternate. Each has its own token and path: an answer to the token of one that describes the path of the
/// other would come from a mixture.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn no_call_is_answered_by_a_mixture() {
    let count = std::env::var("PORTVAKT_RELOADS").map_or(40, |count| count.parse().unwrap());
    let gate = Gate::builder().with_a_file().start();
    let tokens = ["1".repeat(32), "2".repeat(32)];
    for (side, token) in tokens.iter().enumerate() {
        let operations = format!("operations: [{{name: account-list, path: /v1/side-{side}}}]\n");
        write_private(&gate.folder().join(format!("{side}.token")), token);
        fs::write(gate.folder().join(format!("{side}.yaml")), operations).unwrap();
    }
    let use_side = |side: usize, token: &str| {
        let control = format!("control:\n  token_file: {side}.token\n");
        let yaml = gate.yaml().replace("control:\n", &control);
        configure(&gate, &format!("{yaml}operations: {side}.yaml\n"));
        assert_eq!(call(&gate, "POST /reload", token).status, 200);
    };
    use_side(0, "");
    let (over, seen) = (
        AtomicBool::new(false),
        [(); 4].map(|()| AtomicUsize::new(0)),
    );
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (gate, over, seen, tokens) = (&gate, &over, &seen, &tokens);
            scope.spawn(move || {
                let side = client % 2;
                while !over.load(Ordering::Relaxed) {
                    let answer = call(gate, "GET /openapi.json", &tokens[side]);
                    let is_answered = answer.status == 200;
                    if is_answered {
                        let description = answer.json();
                        let describes = |side: usize| {
                            description["paths"][format!("/v1/side-{side}")].is_object()
                        };
                        assert!(describes(side) && !describes(1 - side));
                    } else {
                        assert_eq!(answer.status, 401);
                    }
                    seen[side * 2 + usize::from(is_answered)].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _end = End(&over);
        for index in 0..count {
            use_side((index + 1) % 2, &tokens[index % 2]);
        }
        eventually("both answers to both tokens", || {
            seen.iter().all(|count| count.load(Ordering::Relaxed) > 0)
        });
    });
    let seen = seen.map(|count| count.load(Ordering::Relaxed));
    println!("{count} reloads, refused and answered by side: {seen:?}");
}

/// A call that waits for events ends with the configuration that permitted it.
//= CTL-3 refused
#[test]
fn a_token_that_was_changed_gets_no_event() {
    let gate = Gate::builder().with_a_file().start();
    let token = "0".repeat(32);
    let [old, new] = ["1", "2"].map(|digit| digit.repeat(32));
    write_private(&gate.folder().join("calls.token"), &token);
    write_private(&gate.folder().join("events.token"), &old);
    let control = "control:\n  token_file: calls.token\n  events_token_file: events.token\n";
    configure(&gate, &gate.yaml().replace("control:\n", control));
    assert_eq!(call(&gate, "POST /reload", "").status, 200);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&gate, "GET /events?wait=60", &old));
        eventually("the call waits", || {
            let metrics = call(&gate, "GET /metrics", &token).body;
            String::from_utf8(metrics)
                .unwrap()
                .contains("consumer=\"token\"")
        });
        write_private(&gate.folder().join("events.token"), &new);
        assert_eq!(call(&gate, "POST /reload", &token).status, 200);
        assert_eq!(waiting.join().unwrap().json()["events"], json!([]));
    });
    assert_eq!(call(&gate, "GET /events", &old).status, 401);
    assert_eq!(call(&gate, "GET /events", &new).status, 200);
}

/// A call with a bearer token.
fn call(gate: &Gate, request: &str, token: &str) -> Answer {
    let mut wire = Wire::new(TcpStream::connect(gate.control_address()).unwrap());
    wire.reader
        .stream
        .write_all(&bytes(
            request,
            &format!("Authorization: Bearer {token}\r\nConnection: close\r\n"),
        ))
        .unwrap();
    wire.answer(request.split(' ').next().unwrap()).unwrap()
}

fn bytes(request: &str, headers: &str) -> Vec<u8> {
    format!("{request} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: 0\r\n\r\n").into()
}

/// A connection without a client certificate is closed once clients need one.
//= CRT-8 refused
#[test]
fn client_ca_counts_for_connections_that_are_open() {
    let gate = Gate::builder().with_a_file().start();
    let with_tls = |more: &str| {
        let tls = format!("control:\n  certificate: server.pem\n  key: server.key\n{more}");
        configure(&gate, &gate.yaml().replace("control:\n", &tls));
    };
    with_tls("");
    assert_eq!(call(&gate, "POST /reload", "").status, 200);
    let shake = || Connection::shake(gate.control_address(), world(), Tls::default());
    let mut connection = shake().unwrap();
    let mut ask = |request: &str| {
        connection.send(&bytes(request, "")).unwrap();
        connection
            .answer(request.split(' ').next().unwrap())
            .unwrap()
    };
    // Reloading the same listener certificate keeps the connection.
    assert_eq!(ask("POST /reload").status, 200);
    assert_eq!(ask("GET /metrics").status, 200);
    with_tls("  client_ca: anchors/root.pem\n");
    assert_eq!(ask("POST /reload").status, 200);
    assert_eq!(ask("GET /livez").status, 200);
    let answer = ask("GET /metrics");
    let reason: Value = answer.json()["reason"].clone();
    assert_eq!((answer.status, reason), (421, "connection-outdated".into()));
    assert!(connection.rest().is_empty(), "the connection is closed");
    // TLS 1.3 refuses a client without a certificate only after the client's handshake is complete.
    let refused = shake().and_then(|mut connection| {
        let sent = connection.send(&bytes("GET /metrics", ""));
        sent.and_then(|()| connection.answer("GET"))
            .map_err(|fault| fault.to_string())
    });
    assert!(refused.is_err());
}
