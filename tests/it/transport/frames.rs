//! HTTP/2 at the frame level: fragments in paths (HTTP-7), floods of control frames, and misplaced frames (HTTP-9).

use crate::harness::{Call, Frames, Gate, Sealed, block, eventually, field, frame, string};

/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 0x5;

/// RFC 9113, section 7.
const PROTOCOL_ERROR: u8 = 1;
const ENHANCE_YOUR_CALM: u8 = 11;

/// A literal `:path`, with the name from the static table.
fn path(first: u8, value: &str) -> Vec<u8> {
    [&[first][..], &string(value.as_bytes())].concat()
}

/// A request that is admitted, and its path.
fn call(gate: &Gate) -> (Sealed, String) {
    let sealed = gate.seal(&Call::plain());
    let target = sealed.request.target.clone();
    (sealed, target)
}

/// The gateway refuses a path with `#`: the signature covers no fragment.
//= HTTP-7 refused
#[test]
fn a_path_with_a_fragment() {
    let gate = Gate::start();
    let mut frames = Frames::open(&gate);
    let (sealed, target) = call(&gate);
    let hashed = format!("{target}#x");
    // `/v1/accounts#x` in Huffman's code.
    let coded = [
        0x04, 0x8b, 0x63, 0xb8, 0x58, 0x19, 0x08, 0x7b, 0x6a, 0x4a, 0x3f, 0xeb, 0xcf,
    ];
    let ways: [(&str, Vec<u8>); 8] = [
        ("in clear", path(0x04, &hashed)),
        ("by the other index", path(0x15, &hashed)),
        ("by name", field(":path", hashed.as_bytes())),
        ("in the query", path(0x04, &format!("{target}?a=b#x"))),
        ("nothing behind it", path(0x04, &format!("{target}#"))),
        ("in Huffman's code", coded.to_vec()),
        ("with an entry", path(0x44, &hashed)),
        // The entry that was just added is the newest one.
        ("by that entry", vec![0xbe]),
    ];
    let mut stream = 1;
    for (way, path) in &ways {
        frames
            .send(1, WHOLE, stream, &block(&sealed, path))
            .unwrap();
        let outcome = frames.outcome(stream).unwrap();
        assert_eq!(
            (outcome.kind, outcome.code()),
            (3, Some(PROTOCOL_ERROR)),
            "{way}: {outcome:?}"
        );
        assert!(gate.upstream().saw_nothing(), "{way}");
        stream += 2;
    }
    // With the name of that entry.
    let named = [&[0x0f, 0x2f][..], &string(hashed.as_bytes())].concat();
    frames
        .send(1, WHOLE, stream, &block(&sealed, &named))
        .unwrap();
    assert_eq!(frames.outcome(stream).unwrap().code(), Some(PROTOCOL_ERROR));
    // In two frames, split within the path, and sent byte by byte.
    stream += 2;
    let whole = block(&sealed, &path(0x04, &hashed));
    let (one, other) = whole.split_at(whole.windows(2).position(|two| two == b"#x").unwrap());
    let two = [frame(1, 0x1, stream, one), frame(9, 0x4, stream, other)].concat();
    for byte in two {
        frames.bytes(&[byte]).unwrap();
    }
    assert_eq!(frames.outcome(stream).unwrap().code(), Some(PROTOCOL_ERROR));
    assert!(gate.upstream().saw_nothing());
    let malformed = ["reason=\"malformed-request\""];
    let count = ways.len() as f64 + 2.0;
    gate.eventually_metric("portvakt_refusals_total", &malformed, count);

    // The connection goes on: the same request without a fragment is served.
    stream += 2;
    frames
        .send(1, WHOLE, stream, &block(&sealed, &path(0x04, &target)))
        .unwrap();
    assert_eq!(frames.outcome(stream).unwrap().status(), Some(200));
    assert_eq!(gate.upstream().take().len(), 1);
}

/// A fragment that a refused request added to the table does not affect the next request.
//= HTTP-7 refused
#[test]
fn a_fragment_behind_other_faults() {
    let gate = Gate::start();
    let mut frames = Frames::open(&gate);
    let (sealed, target) = call(&gate);
    let late = [
        field("x-first", b"1"),
        path(0x44, &format!("{target}#x")),
        field(":method", b"GET"),
    ];
    frames.send(1, WHOLE, 1, &late.concat()).unwrap();
    assert_eq!(frames.outcome(1).unwrap().code(), Some(PROTOCOL_ERROR));
    frames.send(1, WHOLE, 3, &block(&sealed, &[0xbe])).unwrap();
    assert_eq!(frames.outcome(3).unwrap().code(), Some(PROTOCOL_ERROR));
    assert!(gate.upstream().saw_nothing());
}

/// `#` in other fields is an ordinary byte, also if their names are in the table.
//= HTTP-7 accepted
#[test]
fn a_hash_that_is_no_fragment() {
    let gate = Gate::start();
    let mut frames = Frames::open(&gate);
    for (index, stream) in [(0x44, 1), (0x04, 3)] {
        let sealed = gate.seal(&Call::plain().with("User-Agent", "a#b/c#"));
        let path = path(index, &sealed.request.target);
        frames
            .send(1, WHOLE, stream, &block(&sealed, &path))
            .unwrap();
        assert_eq!(frames.outcome(stream).unwrap().status(), Some(200));
    }
    assert_eq!(gate.upstream().take().len(), 2);
}

//= HTTP-9 refused
#[test]
fn frames_that_carry_nothing_have_a_budget() {
    let gate = Gate::start();
    let (sealed, target) = call(&gate);
    let open = block(&sealed, &path(0x04, &target));
    type Flood<'a> = (&'a str, Box<dyn Fn(u32) -> Vec<u8> + 'a>);
    let floods: [Flood<'_>; 12] = [
        ("PING", Box::new(|_| frame(6, 0, 0, &[0; 8]))),
        ("PING with ACK", Box::new(|_| frame(6, 1, 0, &[0; 8]))),
        ("SETTINGS", Box::new(|_| frame(4, 0, 0, &[]))),
        ("WINDOW_UPDATE", Box::new(|_| frame(8, 0, 0, &[0, 0, 0, 1]))),
        ("PRIORITY", Box::new(|_| frame(2, 0, 1, &[0, 0, 0, 3, 1]))),
        ("an unknown type", Box::new(|_| frame(0xee, 0, 0, &[0; 5]))),
        (
            "empty DATA",
            Box::new(|at| match at {
                0 => frame(1, 0x4, 1, &open),
                _ => frame(0, 0, 1, &[]),
            }),
        ),
        (
            "DATA of a byte",
            Box::new(|at| match at {
                0 => frame(1, 0x4, 1, &open),
                _ => frame(0, 0, 1, b" "),
            }),
        ),
        (
            "empty CONTINUATION",
            Box::new(|at| match at {
                0 => frame(1, 0x1, 1, &[]),
                _ => frame(9, 0, 1, &[]),
            }),
        ),
        (
            "HEADERS and RST_STREAM",
            Box::new(|at| {
                let stream = 2 * at + 1;
                [
                    frame(1, WHOLE, stream, &open),
                    frame(3, 0, stream, &[0, 0, 0, 8]),
                ]
                .concat()
            }),
        ),
        (
            "empty HEADERS",
            Box::new(|at| frame(1, WHOLE, 2 * at + 1, &[])),
        ),
        // "MadeYouReset": the gateway resets the stream because of a window update of zero.
        (
            "WINDOW_UPDATE of 0",
            Box::new(|at| {
                let stream = 2 * at + 1;
                [
                    frame(1, 0x4, stream, &open),
                    frame(8, 0, stream, &[0x7f, 0xff, 0xff, 0xff]),
                ]
                .concat()
            }),
        ),
    ];
    let cut = || gate.metric_now("portvakt_cut_total", &["cause=\"frame_flood\""]);
    for (name, flood) in &floods {
        let before = cut();
        let mut frames = Frames::open(&gate);
        let mut sent = 0;
        // The gateway may close during this write.
        while sent < 4_000 && frames.bytes(&flood(sent)).is_ok() {
            sent += 1;
        }
        let code = frames.goaway();
        assert!(
            matches!(code, Some(ENHANCE_YOUR_CALM) | None),
            "{name}: {code:?} after {sent}"
        );
        assert!(
            sent < 4_000 || code.is_some(),
            "{name}: all {sent} are taken"
        );
        // The count follows the end of the connection.
        eventually(name, || cut() > before);
        assert_eq!(cut(), before + 1.0, "{name}: counted once");
    }
    // Other connections are not affected.
    let answer = gate.send(&Call::plain(), crate::harness::Protocol::Http2);
    assert_eq!(answer.status, 200);
}

/// Up to its limit a flood costs little CPU; GOAWAY gives the reason of the end.
//= HTTP-9 refused
#[test]
fn a_flood_ends_with_a_reason() {
    let gate = Gate::start();
    let mut frames = Frames::open(&gate);
    for _ in 0..300 {
        let _ = frames.send(6, 0, 0, &[0; 8]);
    }
    assert_eq!(frames.goaway(), Some(ENHANCE_YOUR_CALM));
    assert!(gate.upstream().saw_nothing());
}

/// Frames that normal clients send between requests: PING and WINDOW_UPDATE.
//= HTTP-9 accepted
#[test]
fn frames_beside_requests() {
    let gate = Gate::start();
    let mut frames = Frames::open(&gate);
    for request in 0..100 {
        let stream = 2 * request + 1;
        let (sealed, target) = call(&gate);
        for _ in 0..5 {
            frames.send(6, 0, 0, &[0; 8]).unwrap();
            frames.send(8, 0, 0, &[0, 0, 0, 9]).unwrap();
        }
        frames
            .send(1, WHOLE, stream, &block(&sealed, &path(0x04, &target)))
            .unwrap();
        assert_eq!(
            frames.outcome(stream).unwrap().status(),
            Some(200),
            "{request}"
        );
    }
    assert_eq!(gate.upstream().take().len(), 100);
}

/// RFC 9113, sections 3.4 and 8.1.
//= HTTP-7 refused
#[test]
fn frames_out_of_place() {
    let gate = Gate::start();
    let (sealed, target) = call(&gate);
    let open = block(&sealed, &path(0x04, &target));
    for first in [
        frame(6, 0, 0, &[0; 8]),
        frame(4, 1, 0, &[]),
        frame(1, WHOLE, 1, &open),
        frame(0xee, 0, 0, &[]),
    ] {
        let mut frames = Frames::silent(&gate);
        frames.preface();
        frames.bytes(&first).unwrap();
        let _ = frames.send(1, WHOLE, 1, &open);
        assert_eq!(frames.goaway(), Some(PROTOCOL_ERROR), "{first:?}");
    }
    // Pseudo-headers in trailers: by index, and by name.
    for trailers in [vec![0x82], field(":path", b"/v1/payments")] {
        let mut frames = Frames::open(&gate);
        frames.send(1, 0x4, 1, &open).unwrap();
        frames.send(1, WHOLE, 1, &trailers).unwrap();
        assert_eq!(frames.goaway(), Some(PROTOCOL_ERROR), "{trailers:?}");
    }
    // Nothing of them is still underway.
    gate.eventually_metric("portvakt_open_connections", &[], 0.0);
    gate.eventually_metric("portvakt_requests_in_flight", &[], 0.0);
    assert!(gate.upstream().saw_nothing());
}
