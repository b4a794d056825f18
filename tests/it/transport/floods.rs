//! Floods over HTTP/2, beyond those of `frames`: each ends its connection and is counted, and ordinary clients go on (HTTP-9).

use crate::harness::{
    Call, Connection, Connector, Frames, Gate, Sealed, Tls, block, eventually, field, frame,
    string, until_closed,
};
use portvakt::clock::Stopwatch;
use std::{
    io::{self, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// END_STREAM and END_HEADERS; END_HEADERS alone.
const WHOLE: u8 = 0x5;
const END_HEADERS: u8 = 0x4;

/// A flood: its name, and its frames, one part after the other.
type Flood<'a> = (&'a str, Box<dyn Fn(u32) -> Vec<u8> + 'a>);

/// The header block of a request.
fn head(sealed: &Sealed) -> Vec<u8> {
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    block(sealed, &path)
}

/// Connections that were ended because of what they sent.
fn ended(gate: &Gate) -> f64 {
    let cut = |cause| gate.metric_now("portvakt_cut_total", &[cause]);
    cut("cause=\"frame_flood\"") + cut("cause=\"malformed_frame\"")
}

//= HTTP-9 refused
#[test]
fn floods_end_their_connection() {
    let gate = Gate::start();
    let unsigned = Call::plain().altered(|request| request.headers.clear());
    let open = head(&gate.seal(&unsigned));
    let begun = |at: u32| frame(1, END_HEADERS, 2 * at + 1, &open);
    let resized = [[0x20, 0x3f, 0xe1, 0x1f].repeat(200), open.clone()].concat();
    let bomb = [open.clone(), vec![0x90; 900]].concat();
    let floods: [Flood<'_>; 7] = [
        (
            "CONTINUATION of 16 KB",
            Box::new(|at| match at {
                0 => frame(1, 0x1, 1, &[]),
                _ => frame(9, 0, 1, &field("x-long", &[b'x'; 16_000])),
            }),
        ),
        // "MadeYouReset": frames that make the gateway reset the stream.
        (
            "DATA behind the end",
            Box::new(|at| {
                let end = frame(1, WHOLE, 2 * at + 1, &open);
                [end, frame(0, 0, 2 * at + 1, b"x")].concat()
            }),
        ),
        (
            "HEADERS twice",
            Box::new(|at| {
                [
                    begun(at),
                    frame(1, END_HEADERS, 2 * at + 1, &field("x", b"1")),
                ]
                .concat()
            }),
        ),
        (
            "PRIORITY of itself",
            Box::new(|at| {
                let own = (2 * at + 1).to_be_bytes();
                let payload = [&own[..], &[1]].concat();
                [begun(at), frame(2, 0, 2 * at + 1, &payload)].concat()
            }),
        ),
        (
            "WINDOW_UPDATE of nothing",
            Box::new(|at| [begun(at), frame(8, 0, 2 * at + 1, &[0; 4])].concat()),
        ),
        (
            "changes of the table's size",
            Box::new(|at| frame(1, WHOLE, 2 * at + 1, &resized)),
        ),
        (
            "tiny fields",
            Box::new(|at| frame(1, WHOLE, 2 * at + 1, &bomb)),
        ),
    ];
    for (name, flood) in &floods {
        let before = ended(&gate);
        let mut frames = Frames::open(&gate);
        let mut sent = 0;
        while sent < 2_000 && frames.bytes(&flood(sent)).is_ok() {
            sent += 1;
        }
        // A reset of the TCP connection, because bytes were still unread, may overtake GOAWAY.
        let code = frames.goaway();
        assert!(
            matches!(code, Some(1 | 5 | 9 | 11) | None),
            "{name}: {code:?}"
        );
        eventually(name, || ended(&gate) > before);
        assert_eq!(ended(&gate), before + 1.0, "{name}: counted once");
    }
    assert!(gate.upstream().saw_nothing());
}

/// Whether a connection from 127.0.0.1 waits for its handshake: one from 127.0.0.2, which comes later, is served before it.
fn waits(gate: &Gate, connector: &Connector) -> bool {
    let mut first = TcpStream::connect(gate.address()).unwrap();
    // No TLS: the handshake ends as soon as these bytes are read.
    first.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let there = Ipv4Addr::new(127, 0, 0, 2);
    drop(Connection::from(there, gate.address(), connector).unwrap());
    first.set_nonblocking(true).unwrap();
    let peeked = first.peek(&mut [0]);
    first.set_nonblocking(false).unwrap();
    let waits = peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    until_closed(&mut first);
    waits
}

/// The next handshake of an address whose connection flooded waits; that of another address does not.
//= HTTP-9 refused
#[test]
fn the_address_of_a_flood_waits() {
    let gate = Gate::start();
    let connector = Tls::default().connector(gate.world());
    let flood = || {
        let mut frames = Frames::open(&gate);
        let ping = frame(6, 0, 0, &[0; 8]);
        let begun = Stopwatch::start();
        while frames.bytes(&ping).is_ok() {}
        begun
    };
    // On a slow machine, a round may take so long without the pause.
    for _ in 0..3 {
        let begun = flood();
        drop(Connection::from(Ipv4Addr::LOCALHOST, gate.address(), &connector).unwrap());
        assert!(begun.elapsed() >= Duration::from_millis(500));
    }
    // On a busy machine, the pause may be over before the question.
    eventually(
        "the address of the flood waits, and the other does not",
        || {
            flood();
            waits(&gate, &connector)
        },
    );
    eventually("the pause ends", || !waits(&gate, &connector));
    drop(Connection::from(Ipv4Addr::LOCALHOST, gate.address(), &connector).unwrap());
    assert!(gate.upstream().saw_nothing());
}

/// A client that uses all kinds of frames as clients do.
//= HTTP-9 accepted
#[test]
fn an_ordinary_client_is_no_flood() {
    let gate = Gate::start();
    let mut frames = Frames::open(&gate);
    for at in 0..150 {
        let stream = 2 * at + 1;
        if at % 25 == 0 {
            frames.send(4, 0, 0, &[]).unwrap();
        }
        if at % 3 == 0 {
            frames.send(6, 0, 0, &[0; 8]).unwrap();
        }
        frames.send(2, 0, stream, &[0, 0, 0, 0, 15]).unwrap();
        frames.send(0xee, 0, 0, &[]).unwrap();
        let head = head(&gate.seal(&Call::plain()));
        frames.send(1, WHOLE, stream, &head).unwrap();
        if at % 10 == 9 {
            frames.send(3, 0, stream, &[0, 0, 0, 8]).unwrap();
            continue;
        }
        assert_eq!(frames.outcome(stream).unwrap().status(), Some(200), "{at}");
        frames.send(8, 0, 0, &[0, 0, 0, 9]).unwrap();
    }
    assert_eq!(ended(&gate), 0.0);
}

/// A window that stays at zero: each answer is given up, and counted, after the time for a blocked write. `bounds` shows that they end
/// together.
//= HTTP-9 refused
#[test]
fn answers_that_no_window_lets_through() {
    let gate = Gate::builder().listener("write_timeout: 400ms").start();
    let mut frames = Frames::silent(&gate);
    frames.preface();
    // SETTINGS_INITIAL_WINDOW_SIZE.
    frames.send(4, 0, 0, &[0, 4, 0, 0, 0, 0]).unwrap();
    let watch = Stopwatch::start();
    for at in 0..40 {
        let head = head(&gate.seal(&Call::plain()));
        frames.send(1, WHOLE, 2 * at + 1, &head).unwrap();
    }
    let mut resets = 0;
    while resets < 40 {
        let frame = frames.next().unwrap();
        assert!(frame.kind != 7 && frame.kind != 0, "{frame:?}");
        resets += u32::from(frame.kind == 3);
    }
    let took = watch.elapsed();
    assert!(took >= Duration::from_millis(350), "{took:?}");
    gate.eventually_metric("portvakt_cut_total", &["cause=\"blocked_write\""], 40.0);
}

/// HTTP-9: a head with many more fields than a request may have is answered, as one with a few more.
//= HTTP-9 refused
#[test]
fn heads_of_many_tiny_fields() {
    let gate = Gate::start();
    let sealed = gate.seal(&Call::plain());
    for count in [100, 500, 900] {
        let mut frames = Frames::open(&gate);
        let whole = [head(&sealed), vec![0x90; count]].concat();
        frames.send(1, WHOLE, 1, &whole).unwrap();
        assert_eq!(frames.outcome(1).unwrap().status(), Some(431), "{count}");
    }
    assert!(gate.upstream().saw_nothing());
}
