//! ERR-8: requests that the HTTP/2 library refuses by itself, and connections that the gateway cuts, are counted with their cause
//! and have a line in the access log.

use crate::harness::{Call, Frames, Gate, Program, Reply, Sealed, block, field, frame, string};
use serde_json::Value;
use std::io::Read;

/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 0x5;

/// The header block of a request with this path.
fn head(sealed: &Sealed, path: &str) -> Vec<u8> {
    block(sealed, &[&[0x04][..], &string(path.as_bytes())].concat())
}

/// A head of this many bytes.
fn large_head(sealed: &Sealed, size: usize) -> Vec<u8> {
    let mut whole = head(sealed, &sealed.request.target);
    while whole.len() < size {
        whole.extend(field("x-long", &[b'x'; 8_000]));
    }
    let (first, rest) = whole.split_at(16_000);
    let mut sent = frame(1, 0x1, 1, first);
    let parts: Vec<_> = rest.chunks(16_000).collect();
    for (at, part) in parts.iter().enumerate() {
        let end = if at + 1 == parts.len() { 0x4 } else { 0 };
        sent.extend(frame(9, end, 1, part));
    }
    sent
}

//= ERR-8 refused
//= HTTP-7 refused
#[test]
fn refusals_without_an_answer_of_the_gateway() {
    let (gate, program) = Gate::builder().start_program();
    let mut program = Program(program);
    let sealed = gate.seal(&Call::plain());
    let target = sealed.request.target.clone();
    let good = head(&sealed, &target);
    let with = |more: Vec<u8>| frame(1, WHOLE, 1, &[good.clone(), more].concat());
    // Without `:path` or `:authority`.
    let methods = [field(":method", b"GET"), field(":scheme", b"https")].concat();
    let no_path = [methods.clone(), field(":authority", b"localhost")].concat();
    let no_authority = [methods, vec![0x04], string(b"/v1/tpp/contact")].concat();
    let hashed = head(&sealed, &format!("{target}#x"));
    let malformed = "malformed-request";
    let cases = [
        (
            frame(1, WHOLE, 1, &hashed),
            "malformed_stream",
            malformed,
            None,
        ),
        (
            with(field("connection", b"close")),
            "malformed_stream",
            malformed,
            None,
        ),
        (
            frame(1, WHOLE, 1, &no_path),
            "malformed_stream",
            malformed,
            None,
        ),
        (
            frame(1, WHOLE, 1, &no_authority),
            "malformed_stream",
            malformed,
            Some(400),
        ),
        (
            large_head(&sealed, 90_000),
            "large_head",
            "headers-too-large",
            Some(431),
        ),
        (with(vec![0x80]), "malformed_frame", malformed, None),
    ];
    for (sent, cause, reason, _) in &cases {
        let label = format!("cause=\"{cause}\"");
        let before = gate.metric_now("portvakt_cut_total", &[&label]);
        let mut frames = Frames::open(&gate);
        let _ = frames.bytes(sent);
        let _ = frames.outcome(1);
        // The count follows the frame.
        gate.eventually_metric("portvakt_cut_total", &[&label], before + 1.0);
        let labels = [&*format!("\"{reason}\"")];
        gate.eventually_metric_is("portvakt_refusals_total", &labels, "is there", |count| {
            count >= 1.0
        });
    }
    // Without a request, nothing was refused.
    let all = cases.len() as f64;
    gate.eventually_metric("portvakt_requests_total", &[], all);
    let mut frames = Frames::open(&gate);
    let _ = frames.bytes(&frame(6, 0, 0, &[0; 8]).repeat(400));
    let _ = frames.goaway();
    gate.eventually_metric("portvakt_cut_total", &["cause=\"frame_flood\""], 1.0);
    assert_eq!(gate.metric_now("portvakt_requests_total", &[]), all);
    assert!(gate.upstream().saw_nothing());
    let mut log = String::new();
    let mut out = program.0.stdout.take().unwrap();
    program.stop();
    out.read_to_string(&mut log).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), cases.len(), "{log}");
    for (line, (_, cause, reason, status)) in lines.iter().zip(&cases) {
        assert_eq!(line["outcome"], "refused");
        assert_eq!(line["operator"], *cause);
        assert_eq!(line["reason"], *reason);
        assert_eq!(line["status"].as_u64(), *status, "{cause}");
    }
}

/// Streams beyond the number of concurrent ones, which the library refuses, have lines and counts like other refusals.
//= ERR-8 refused
#[test]
fn streams_beyond_the_limit() {
    let gate = Gate::builder()
        .upstream("max_in_flight_per_tpp: 512\n  read_timeout: 300s")
        .start();
    let request = |stream| {
        let sealed = gate.seal(&Call::plain());
        frame(1, WHOLE, stream, &head(&sealed, &sealed.request.target))
    };
    let mut frames = Frames::open(&gate);
    frames.bytes(&request(1)).unwrap();
    assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
    let (reply, latch) = Reply::json(200, "{}").held();
    gate.upstream().reply(reply);
    let all: Vec<_> = (1..=70).map(|number| request(2 * number + 1)).collect();
    frames.bytes(&all.concat()).unwrap();
    latch.arrived(64);
    // The library has judged all of them.
    frames.processed();
    let cut = ["cause=\"too_many_streams\""];
    gate.eventually_metric("portvakt_cut_total", &cut, 6.0);
    let refused = ["reason=\"too-many-at-once\"", "fault=\"caller\""];
    gate.eventually_metric("portvakt_refusals_total", &refused, 6.0);
    latch.release();
    assert_eq!(gate.metric_at_rest("portvakt_cut_total", &cut), 6.0);
    assert_eq!(latch.count(), 64);
}
