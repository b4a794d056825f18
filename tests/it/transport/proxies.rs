//! The client's address behind a load balancer or a proxy: limits and rates by address (HTTP-9, QUO-12), and Forwarded (FWD-2).
//!
//! Tests connect from 127.0.0.1, which is the trusted proxy, or from 127.0.0.7.

use crate::harness::{
    Answer, Call, Connection, Connector, Gate, GateBuilder, Protocol, Tls, check_error, eventually,
    let_pass, until_closed,
};
use portvakt::clock::Stopwatch;
use std::{
    io::Write,
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};
use tokio::net::TcpSocket;

/// The header of version 1 for a client.
fn line(client: &str) -> Vec<u8> {
    format!("PROXY TCP4 {client} 10.0.0.1 4711 443\r\n").into_bytes()
}

/// The header of version 2 for 192.0.2.7, with a field that is skipped.
const BINARY: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0f\xc0\x00\x02\x07\x0a\x00\x00\x01\x12\x67\x01\xbb\x04\x00\x00";

/// LOCAL: a health check of the proxy.
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";

const PROXY: &str = "trusted_proxies: [127.0.0.1]\n  client_address: proxy-protocol";

fn behind(keys: &str) -> GateBuilder {
    Gate::builder().listener(keys)
}

fn connector(gate: &Gate) -> Connector {
    Tls::default().connector(gate.world())
}

/// A request of a client that the proxy names by these bytes before TLS.
fn exchange(gate: &Gate, header: &[u8], connector: &Connector) -> Result<Answer, String> {
    let mut connection = Connection::behind(header, gate.address(), connector)?;
    let answer = connection.exchange(&gate.seal(&Call::plain()));
    answer.map_err(|fault| fault.to_string())
}

/// The client that the core was told of.
fn told(gate: &Gate) -> String {
    let seen = gate.upstream().take();
    assert_eq!(seen.len(), 1);
    let forwarded = seen[0].header("forwarded").unwrap();
    let client = forwarded.strip_suffix(";host=localhost;proto=https");
    client.unwrap().to_owned()
}

fn direct(gate: &Gate, connector: &Connector) -> Connection {
    Connection::from(Ipv4Addr::new(127, 0, 0, 7), gate.address(), connector).unwrap()
}

//= FWD-2 accepted
#[test]
fn a_proxy_names_the_client_before_tls() {
    let gate = behind(PROXY).start();
    let connector = connector(&gate);
    let v6 = b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n";
    for (header, client) in [
        (line("192.0.2.7"), "for=192.0.2.7"),
        (BINARY.to_vec(), "for=192.0.2.7"),
        (v6.to_vec(), "for=\"[2001:db8::7]\""),
        (LOCAL.to_vec(), "for=127.0.0.1"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "for=127.0.0.1"),
    ] {
        let answer = exchange(&gate, &header, &connector).unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(told(&gate), client);
    }
    // A client that comes directly has its own address, and its headers name nobody.
    let call = Call::plain().with("X-Forwarded-For", "192.0.2.7");
    let call = call.with("Forwarded", "for=192.0.2.7");
    let answer = direct(&gate, &connector).exchange(&gate.seal(&call));
    assert_eq!(answer.unwrap().status, 200);
    assert_eq!(told(&gate), "for=127.0.0.7");
}

//= FWD-2 refused
//= HTTP-9 refused
#[test]
fn a_proxy_that_names_nobody_and_a_client_that_poses_as_one() {
    let gate = behind(PROXY).listener("handshake_timeout: 60s").start();
    let connector = connector(&gate);
    let count = |gate: &Gate, outcome: &str, expected: f64| {
        let label = format!("outcome=\"{outcome}\"");
        gate.eventually_metric("portvakt_handshakes_total", &[&label], expected);
    };
    let bad: [&[u8]; 4] = [
        b"",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n",
        b"PROXY UDP4 192.0.2.7 10.0.0.1 4711 443\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];
    for header in bad {
        assert!(exchange(&gate, header, &connector).is_err());
    }
    count(&gate, "bad_proxy_header", bad.len() as f64);
    // The header counts for the time of the handshake.
    let hasty = behind(PROXY).listener("handshake_timeout: 400ms").start();
    let watch = Stopwatch::start();
    let mut slow = TcpStream::connect(hasty.address()).unwrap();
    for byte in &line("192.0.2.7")[..12] {
        let _ = slow.write_all(&[*byte]);
        // This client is slow on purpose.
        let_pass(Duration::from_millis(20));
    }
    assert!(until_closed(&mut slow).is_empty(), "nothing is answered");
    assert!(watch.elapsed() >= Duration::from_millis(350));
    count(&hasty, "too_slow", 1.0);
    // From another address, the header is no TLS.
    let other = behind("trusted_proxies: [127.0.0.8]\n  client_address: proxy-protocol").start();
    for header in [&line("192.0.2.7")[..], BINARY] {
        assert!(exchange(&other, header, &connector).is_err());
    }
    for gate in [&gate, &hasty, &other] {
        assert!(gate.upstream().saw_nothing());
    }
    count(&other, "failed", 2.0);
}

/// A check whether the port is open, as load balancers make it: no handshake has failed.
//= HTTP-9 accepted
#[test]
fn a_proxy_that_only_connects() {
    let gate = behind(PROXY).start();
    let reset = || {
        let socket = TcpSocket::from_std_stream(TcpStream::connect(gate.address()).unwrap());
        socket.set_zero_linger().unwrap();
    };
    for _ in 0..3 {
        drop(TcpStream::connect(gate.address()).unwrap());
        reset();
    }
    // A request behind them.
    let answer = exchange(&gate, LOCAL, &connector(&gate)).unwrap();
    assert_eq!(answer.status, 200);
    for outcome in ["bad_proxy_header", "failed", "too_slow"] {
        let label = format!("outcome=\"{outcome}\"");
        let count = gate.metric_at_rest("portvakt_handshakes_total", &[&label]);
        assert_eq!(count, 0.0, "{outcome}");
    }
    // Another address that does the same is no proxy.
    let other = behind("trusted_proxies: [127.0.0.8]").start();
    drop(TcpStream::connect(other.address()).unwrap());
    other.eventually_metric("portvakt_handshakes_total", &["outcome=\"failed\""], 1.0);
}

//= HTTP-9 accepted
//= ERR-4 refused
#[test]
fn connections_count_by_the_address_that_the_proxy_names() {
    let gate = behind(PROXY)
        .listener("max_connections_per_address: 2\n  first_byte_timeout: 60s")
        .start();
    let connector = connector(&gate);
    let open = |client: &str| {
        let header = line(client);
        Connection::behind(&header, gate.address(), &connector).unwrap()
    };
    let ask = |connection: &mut Connection| {
        let answer = connection.exchange(&gate.seal(&Call::plain()));
        answer.unwrap()
    };
    let mut held = [open("192.0.2.7"), open("192.0.2.7")];
    let third = ask(&mut open("192.0.2.7"));
    check_error("the third", &third, 503, "SYSTEM_ERROR", "too-many-at-once");
    assert!(gate.upstream().saw_nothing());
    let mut others: Vec<_> = (1..=4).map(|n| open(&format!("192.0.2.1{n}"))).collect();
    for connection in held.iter_mut().chain(&mut others) {
        assert_eq!(ask(connection).status, 200);
    }
    gate.eventually_metric("portvakt_connections_turned_away_total", &[], 1.0);
    // Without the PROXY protocol, a trusted proxy has no such limit.
    let gate = behind("trusted_proxies: [127.0.0.1]")
        .listener("max_connections_per_address: 1\n  first_byte_timeout: 60s")
        .start();
    let open = |_| Connection::over(gate.address(), &connector).unwrap();
    for mut connection in (0..4).map(open).collect::<Vec<_>>() {
        let answer = connection.exchange(&gate.seal(&Call::plain()));
        assert_eq!(answer.unwrap().status, 200);
    }
}

//= FWD-2 accepted
#[test]
fn a_header_names_the_client_if_a_trusted_proxy_sent_it() {
    for (by, header, values) in [
        (
            "forwarded",
            "Forwarded",
            ["for=198.51.100.1, for=192.0.2.7;proto=https", "for=_x"],
        ),
        (
            "x-forwarded-for",
            "X-Forwarded-For",
            ["198.51.100.1, 192.0.2.7", "unknown"],
        ),
    ] {
        let keys = format!("trusted_proxies: [127.0.0.1]\n  client_address: {by}");
        let gate = behind(&keys).start();
        let connector = connector(&gate);
        for (value, client) in [(values[0], "for=192.0.2.7"), (values[1], "for=127.0.0.1")] {
            // The other header comes from the client.
            let call = Call::plain()
                .with("Forwarded", "for=203.0.113.9")
                .with("X-Forwarded-For", "203.0.113.9")
                .with(header, value);
            for protocol in Protocol::ALL {
                assert_eq!(gate.send(&call, protocol).status, 200);
                assert_eq!(told(&gate), client, "{header}: {value}");
            }
            let answer = direct(&gate, &connector).exchange(&gate.seal(&call));
            assert_eq!(answer.unwrap().status, 200);
            assert_eq!(told(&gate), "for=127.0.0.7");
        }
    }
}

//= QUO-12 refused
#[test]
fn rates_go_by_the_address_that_the_proxy_names() {
    let gate = behind(PROXY).line("rates: {per_address: 1}").start();
    let connector = connector(&gate);
    let status = |client: &str| {
        let answer = exchange(&gate, &line(client), &connector);
        answer.unwrap().status
    };
    for number in 1..=5 {
        assert_eq!(status(&format!("192.0.2.{number}")), 200);
    }
    let mut connection = Connection::behind(&line("192.0.2.9"), gate.address(), &connector);
    let connection = connection.as_mut().unwrap();
    eventually("a rate is exceeded", || {
        // Signed before, so that they come faster than one a second.
        let sealed: Vec<_> = (0..5).map(|_| gate.seal(&Call::plain())).collect();
        let mut statuses = sealed
            .iter()
            .map(|sealed| connection.exchange(sealed).unwrap().status);
        statuses
            .any(|status| status == 429)
            .then_some(())
            .ok_or("200")
    });
}
