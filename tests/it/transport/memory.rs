//! HTTP-9: the memory of connections: of idle ones, and of those over HTTP/2 with many open requests. The gateway is a process.
//! PORTVAKT_CONNECTIONS is the number of the latter, PORTVAKT_PROGRAM another build of the program.

use crate::harness::{
    Call, Connection, Frames, Gate, Program, Protocol, block, eventually, field, frame, let_pass,
    string,
};
use std::{fs, time::Duration};

/// The most memory of one connection, in KiB: until a signature on it has verified, and then.
const MOST_KIB: u64 = 256;
const MOST_KIB_SIGNED: u64 = 2 * 1024;

/// The number of connections that wait, and the most memory of one over HTTP/1.1 and HTTP/2, in KiB.
const IDLE: u64 = 300;
const MOST_KIB_IDLE: [u64; 2] = [18, 40];

/// Requests that each connection opens.
const STREAMS: u32 = 64;

/// The resident memory of a process, in KiB.
fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// What a client sends that opens POSTs without bodies, whose answers it does not take: unsigned, of many small fields, and signed. With
/// the most memory of its connection.
fn open_posts(gate: &Gate) -> [(&'static str, Vec<u8>, u64); 3] {
    let signed = gate.seal(&Call::payment());
    let unsigned = Call::payment().altered(|request| request.remove_header("Signature"));
    let unsigned = gate.seal(&unsigned);
    let path = [&[0x04][..], &string(signed.request.target.as_bytes())].concat();
    let [signed, unsigned] = [signed, unsigned].map(|sealed| block(&sealed, &path));
    let method = [field(":method", b"POST"), field(":scheme", b"https")].concat();
    let authority = field(":authority", b"localhost");
    let tiny = [method, path, authority, vec![0x90; 95]].concat();
    let sent = |head: &[u8]| {
        // SETTINGS_INITIAL_WINDOW_SIZE of 0, and END_HEADERS without END_STREAM.
        let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let posts = (0..STREAMS).flat_map(|at| frame(1, 0x4, 2 * at + 1, head));
        settings.into_iter().chain(posts).collect()
    };
    [
        ("unsigned", sent(&unsigned), MOST_KIB),
        ("of tiny fields", sent(&tiny), MOST_KIB),
        ("signed", sent(&signed), MOST_KIB_SIGNED),
    ]
}

fn open(gate: &Gate, sent: &[u8]) -> Frames {
    let mut frames = Frames::silent(gate);
    frames.preface();
    frames.bytes(sent).unwrap();
    frames
}

/// Connections that wait for their next request.
//= HTTP-9 accepted
#[test]
fn idle_connections() {
    let gate = Gate::builder()
        .listener("max_connections_per_address: off\n  keepalive: 1h")
        .line("rates: {per_address: off}")
        .for_program();
    let program = gate.run_silently(&mut gate.program());
    let http1 = || {
        let mut connection = Connection::open(&gate);
        let sealed = gate.seal(&Call::plain());
        assert_eq!(connection.exchange(&sealed).unwrap().status, 200);
        connection
    };
    let http2 = || {
        let sealed = gate.seal(&Call::plain());
        let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
        let mut frames = Frames::open(&gate);
        frames.send(1, 0x5, 1, &block(&sealed, &path)).unwrap();
        assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
        frames
    };
    grow(&program, "HTTP/1.1", MOST_KIB_IDLE[0], http1);
    grow(&program, "HTTP/2", MOST_KIB_IDLE[1], http2);
}

/// What each of many connections takes.
fn grow<T>(program: &Program, what: &str, most: u64, open: impl Fn() -> T) {
    let id = program.0.id();
    // Memory that is allocated once for all.
    let first: Vec<_> = (0..20).map(|_| open()).collect();
    let before = resident(id);
    let connections: Vec<_> = (0..IDLE).map(|_| open()).collect();
    let each = resident(id).saturating_sub(before) / IDLE;
    println!("{each} KiB for each of {IDLE} idle connections over {what}");
    assert!(each <= most, "{what}: {each} KiB");
    drop((first, connections));
}

//= HTTP-9 refused
#[test]
fn open_requests() {
    let count = std::env::var("PORTVAKT_CONNECTIONS").map_or(60, |count| count.parse().unwrap());
    let gate = Gate::builder()
        .listener("max_connections_per_address: off\n  min_body_rate: off\n  body_timeout: 60s")
        .line("rates: {per_address: off}")
        .for_program();
    let program = gate.run_silently(&mut gate.program());
    assert_eq!(gate.send(&Call::plain(), Protocol::Http2).status, 200);
    for (what, sent, most) in open_posts(&gate) {
        let before = resident(program.0.id());
        let connections: Vec<_> = (0..count).map(|_| open(&gate, &sent)).collect();
        // The gateway may leave frames unread, so nothing tells when it has read what it reads: it takes no more memory then.
        let (mut last, mut times) = (0, 0);
        eventually("the memory stays", || {
            let now = resident(program.0.id());
            times = if now == last { times + 1 } else { 0 };
            last = now;
            (times >= 20).then_some(()).ok_or(now)
        });
        let each = (resident(program.0.id()).saturating_sub(before)) / count;
        println!("{each} KiB for each of {count} connections with {STREAMS} open POSTs, {what}");
        assert!(each <= most, "{what}: {each} KiB");
        drop(connections);
        // Until most of the memory is free again, which is not promised: a gateway that cannot write notices late.
        let_pass(Duration::from_millis(500));
    }
    // A client who signs is served.
    assert_eq!(gate.send(&Call::plain(), Protocol::Http2).status, 200);
}

/// A gateway that may read no more from a connection, and has nothing to write, does not notice that the client has left. Such a
/// connection ends with the deadlines of its requests all the same.
//= HTTP-9 refused
#[test]
fn connections_whose_clients_have_left_end() {
    let gate = Gate::builder()
        .listener("max_connections_per_address: off\n  min_body_rate: off\n  body_timeout: 2s")
        .listener("write_timeout: 2s")
        .line("rates: {per_address: off}")
        .start();
    for (what, sent, _) in open_posts(&gate) {
        let connections: Vec<_> = (0..4).map(|_| open(&gate, &sent)).collect();
        gate.eventually_metric_is("portvakt_requests_in_flight", &[], what, |count| {
            count > 0.0
        });
        drop(connections);
        for gauge in ["portvakt_open_connections", "portvakt_requests_in_flight"] {
            gate.eventually_metric(gauge, &[], 0.0);
        }
    }
    assert!(gate.upstream().saw_nothing());
}
