//! Spans that the program pushes: which requests have them, what is in them, and a collector that fails (docs/logs.md).

use super::{PERSONAL, personal};
use crate::harness::{Call, Connection, Gate, Protocol, Tls, received, world};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A collector that takes all spans: its address, and the bodies of the pushes.
fn collector() -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (pushes, pushed) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, pushes) = (stream.unwrap(), pushes.clone());
            std::thread::spawn(move || take(stream, &pushes));
        }
    });
    (address, pushed)
}

/// Answers the pushes of one connection.
fn take(mut stream: TcpStream, pushes: &Sender<Vec<u8>>) {
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut part) {
        read.extend_from_slice(&part[..count]);
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(read[..end].to_vec()).unwrap();
        let head = head.to_lowercase();
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if read.len() < end + 4 + length {
            continue;
        }
        let body = read.split_off(end + 4);
        read.clear();
        // A gateway that has the answer may end, and then the test looks for the last push.
        let _ = pushes.send(body);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    }
}

fn traces(to: SocketAddr, ratio: &str) -> String {
    format!("traces: {{endpoint: 'http://{to}/v1/traces', ratio: {ratio}}}")
}

fn has(body: &[u8], text: &[u8]) -> bool {
    body.windows(text.len()).any(|part| part == text)
}

/// Spans are pushed at the stop at the latest, and none has a value of a header, a path or a body.
#[test]
fn spans_are_pushed_and_nothing_personal_is_in_them() {
    let (address, pushed) = collector();
    let gate = Gate::builder().line(&traces(address, "1")).for_program();
    let program = gate.run_silently(&mut gate.program());
    assert_eq!(gate.send(&personal(), Protocol::Http1).status, 200);
    let refused = personal().off_by(-61);
    assert_eq!(gate.send(&refused, Protocol::Http1).status, 400);
    program.stop();
    let mut all = received("a push", &pushed);
    all.extend(pushed.try_iter().flatten());
    for text in ["request", "checks", "claim", "upstream", "date-skewed"] {
        assert!(has(&all, text.as_bytes()), "{text}");
    }
    let psu = world().both.psu();
    for value in PERSONAL.into_iter().chain([psu.as_str()]) {
        assert!(!has(&all, value.as_bytes()), "{value} is pushed");
    }
}

/// The sampled flag of a trusted proxy decides about its request, and that of a caller does not.
#[test]
fn only_a_trusted_proxy_decides() {
    let trace = u128::from_str_radix(TRACE, 16).unwrap().to_be_bytes();
    for (ratio, flags) in [("0", "01"), ("1", "00")] {
        let (address, pushed) = collector();
        let gate = Gate::builder()
            .listener("trusted_proxies: [127.0.0.1]")
            .listener("client_address: forwarded")
            .line(&traces(address, ratio))
            .for_program();
        let program = gate.run_silently(&mut gate.program());
        let header = format!("00-{TRACE}-00f067aa0ba902b7-{flags}");
        let call = Call::accounts().present().with("traceparent", &header);
        assert_eq!(gate.send(&call, Protocol::Http1).status, 200);
        let connector = Tls::default().connector(gate.world());
        let other = Ipv4Addr::new(127, 0, 0, 7);
        let mut direct = Connection::from(other, gate.address(), &connector).unwrap();
        assert_eq!(direct.exchange(&gate.seal(&call)).unwrap().status, 200);
        program.stop();
        // The proxy's request at ratio 0, and that of the other caller, in a trace of the gateway's, at ratio 1.
        let mut all = received("a push", &pushed);
        all.extend(pushed.try_iter().flatten());
        assert_eq!(has(&all, &trace), flags == "01", "{ratio} {flags}");
        let requests = all.windows(9).filter(|part| *part == b"\x2a\x07request");
        assert_eq!(requests.count(), 1, "{ratio} {flags}");
    }
}

/// A collector that is down is counted, and requests go on.
#[test]
fn a_dead_collector_costs_no_request() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let gate = Gate::builder().line(&traces(address, "1")).for_program();
    let program = gate.run_silently(&mut gate.program());
    for _ in 0..3 {
        let call = Call::accounts().present();
        assert_eq!(gate.send(&call, Protocol::Http1).status, 200);
    }
    gate.eventually_metric("portvakt_trace_spans_total", &["result=\"failed\""], 12.0);
    program.stop();
}
