//! HTTP/1.1: connections that wait for their next request. [`super::http2`] has those over HTTP/2.

use crate::harness::{Call, Connection, Gate, let_pass, render};
use portvakt::clock::Stopwatch;
use std::time::Duration;

/// The connection ends without an answer, which a client would take for that to its next request.
//= HTTP-9 accepted
#[test]
fn the_end_of_an_idle_connection() {
    let gate = Gate::builder().listener("keepalive: 1s").start();
    let mut connection = Connection::open(&gate);
    let sealed = gate.seal(&Call::plain());
    let watch = Stopwatch::start();
    assert_eq!(connection.exchange(&sealed).unwrap().status, 200);
    assert!(connection.rest().is_empty());
    assert!(watch.elapsed() >= Duration::from_secs(1));
}

/// An error of TLS ends the connection while the client keeps it open, also where it comes right behind a request: in one read of the
/// gateway with it, or in the next one.
//= HTTP-9 refused
#[test]
fn what_is_no_tls_behind_a_request() {
    let gate = Gate::builder().listener("keepalive: 1h").start();
    for record in [1_000, 4_096] {
        // RFC 8446, section 5.2: beside the text, a record has a head, its type and a tag.
        let length = record - 5 - 1 - 16;
        let mut request = b"GET /v1/accounts HTTP/1.1\r\nHost: localhost\r\nX-Pad: ".to_vec();
        request.resize(length - 4, b'x');
        request.extend(b"\r\n\r\n");
        let mut connection = Connection::open(&gate);
        // The gateway has read the handshake to its end.
        let sealed = gate.seal(&Call::plain());
        assert_eq!(connection.exchange(&sealed).unwrap().status, 200);
        connection.send_garbled(&request, &[0; 32]);
        // The client learns no more than the alert.
        connection.rest();
        gate.eventually_metric("portvakt_open_connections", &[], 0.0);
    }
    assert_eq!(gate.upstream().take().len(), 2);
}

/// A head that has begun has the time of heads, however short the wait for a request is.
//= HTTP-9 accepted
#[test]
fn a_head_may_take_longer_than_the_wait_for_it() {
    let gate = Gate::builder()
        .listener("keepalive: 3s\n  head_timeout: 60s")
        .start();
    let mut connection = Connection::open(&gate);
    let [first, second] = [0, 1].map(|_| gate.seal(&Call::plain()));
    assert_eq!(connection.exchange(&first).unwrap().status, 200);
    let second = render(&second);
    let (begun, rest) = second.split_at(40);
    connection.send(begun).unwrap();
    // Longer than an idle connection is kept.
    let_pass(Duration::from_secs(4));
    connection.send(rest).unwrap();
    assert_eq!(connection.answer("GET").unwrap().status, 200);
}
