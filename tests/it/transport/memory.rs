//! HTTP-9: the memory of HTTP/2 connections with many open requests, with the gateway as a process. PORTVAKT_CONNECTIONS is the
//! number of connections, PORTVAKT_PROGRAM another build of the program.

use crate::harness::{
    Call, Frames, Gate, Protocol, block, eventually, field, frame, let_pass, string,
};
use std::{fs, time::Duration};

/// The most memory of one connection, in KiB: until a signature on it has verified, and then.
const MOST_KIB: u64 = 256;
const MOST_KIB_SIGNED: u64 = 2 * 1024;

/// Requests that each connection opens.
const STREAMS: u32 = 64;

/// The resident memory of a process, in KiB.
fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// POSTs without bodies, unsigned, of many small fields, and signed, whose answers nobody takes.
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
    let signed = gate.seal(&Call::payment());
    let unsigned = Call::payment().altered(|request| request.remove_header("Signature"));
    let unsigned = gate.seal(&unsigned);
    let path = [&[0x04][..], &string(signed.request.target.as_bytes())].concat();
    let [signed, unsigned] = [signed, unsigned].map(|sealed| block(&sealed, &path));
    let method = [field(":method", b"POST"), field(":scheme", b"https")].concat();
    let authority = field(":authority", b"localhost");
    let tiny = [method, path, authority, vec![0x90; 95]].concat();
    for (what, head, most) in [
        ("unsigned", &unsigned, MOST_KIB),
        ("of tiny fields", &tiny, MOST_KIB),
        ("signed", &signed, MOST_KIB_SIGNED),
    ] {
        let before = resident(program.0.id());
        // SETTINGS_INITIAL_WINDOW_SIZE of 0, and END_HEADERS without END_STREAM.
        let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let posts = (0..STREAMS).flat_map(|at| frame(1, 0x4, 2 * at + 1, head));
        let sent: Vec<_> = settings.into_iter().chain(posts).collect();
        let open = |_| {
            let mut frames = Frames::silent(&gate);
            frames.preface();
            frames.bytes(&sent).unwrap();
            frames
        };
        let connections: Vec<_> = (0..count).map(open).collect();
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
