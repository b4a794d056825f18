//! The short form of `make edge` (docs/edge.md): slow connections, floods and random bytes against the program, while a client at another
//! address calls. The bars are those of the table with wide margins, because the machine is shared.

/// Random records and frames, as `make edge ARGS=fuzz` sends them.
#[path = "../../../benches/edge/fuzz/make.rs"]
#[allow(dead_code, reason = "`make edge` uses the rest")]
mod make;

use crate::harness::{
    Call, Connection, Connector, Gate, GateBuilder, Program, Protocol, RAN_OUT, Tls,
    frame as encode, let_pass, render,
};
use make::Dice;
use portvakt::clock::Stopwatch;
use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

const ATTACKER: Ipv4Addr = Ipv4Addr::LOCALHOST;
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The connections of each slow kind: more than one address may have.
const EACH: usize = 60;

/// The deadlines of heads and handshakes: a busy machine opens every slow connection before the first one ends.
const DEADLINES: [&str; 4] = [
    "handshake_timeout: 30s",
    "first_byte_timeout: 30s",
    "preface_timeout: 30s",
    "head_timeout: 30s",
];

/// These with two seconds, and a margin.
const GONE: Duration = Duration::from_secs(32 + 60);

/// How long each flood takes, and the fuzzing.
const FLOOD: Duration = Duration::from_secs(1);
const FUZZ: Duration = Duration::from_secs(20);

/// The growth of memory by the fuzzing, in KiB.
const MOST_KIB: u64 = 48 * 1024;

/// The program under attack.
struct Attacked {
    gate: Gate,
    program: Program,
    http1: Connector,
    http2: Connector,
}

impl Attacked {
    fn start() -> Self {
        Self::with(Gate::builder())
    }

    fn with(builder: GateBuilder) -> Self {
        let gate = builder.for_program();
        let program = gate.run_with_logs(&mut gate.program());
        let http2 = Tls {
            alpn: b"\x02h2",
            ..Tls::default()
        };
        let attacked = Self {
            http1: Tls::default().connector(gate.world()),
            http2: http2.connector(gate.world()),
            gate,
            program,
        };
        attacked.serves();
        attacked
    }

    fn connect(&self, from: Ipv4Addr, connector: &Connector) -> Option<Connection> {
        Connection::from(from, self.gate.address(), connector).ok()
    }

    /// Asserts that a probe and the honest client, on a new connection, are answered. How soon, `make edge` measures.
    fn serves(&self) {
        let sealed = self.gate.seal(&Call::plain().only(Protocol::Http1));
        let mut connection = self.connect(HONEST, &self.http1).unwrap();
        let answer = connection.exchange(&sealed).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.reason());
        assert_eq!(self.gate.control("/readyz").status, 200);
        assert_eq!(self.gate.upstream().take().len(), 1, "only its request");
    }

    /// Calls of the honest client while others attack, until a time is over.
    fn serves_during(&self, time: Duration, attack: impl Fn(&AtomicBool) + Sync) {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            // A failed assertion must end the attack, too: the scope waits for it.
            let _ending = SetOnDrop(&over);
            let attacking: Vec<_> = (0..4).map(|_| scope.spawn(|| attack(&over))).collect();
            let watch = Stopwatch::start();
            while watch.elapsed() < time {
                self.serves();
                let_pass(Duration::from_millis(50));
            }
            over.store(true, Ordering::Relaxed);
            for attacking in attacking {
                attacking.join().unwrap();
            }
        });
    }

    /// The resident memory of the process, in KiB.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.program.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    }
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Rows 1 and 11: slow connections of every kind from one address.
//= HTTP-9 refused
//= ERR-4 accepted
#[test]
#[ignore = "make test-systems"]
fn slow_connections_end_and_delay_nobody() {
    let deadlines = DEADLINES.into_iter();
    let attacked = Attacked::with(deadlines.fold(Gate::builder(), GateBuilder::listener));
    let mut silent: Vec<_> = (0..EACH)
        .map(|_| TcpStream::connect(attacked.gate.address()).unwrap())
        .collect();
    silent.extend((0..300).map(|_| TcpStream::connect(attacked.gate.control_address()).unwrap()));
    let block = [PREFACE, b"\0\x13\x88\x01\x01\0\0\0\x01\0\x01x\x7f\xa1\x1e"].concat();
    let kinds: [(&Connector, &[u8], &[u8]); 4] = [
        (&attacked.http2, b"", b""),
        (
            &attacked.http1,
            b"GET /v1/accounts HTTP/1.1\r\nX-Slow: ",
            b"x",
        ),
        (&attacked.http2, &block, b"x"),
        (&attacked.http1, b"\r\n", b"\r\n"),
    ];
    let mut slow = Vec::new();
    for (connector, first, next) in kinds {
        for _ in 0..EACH {
            // A connection beyond the limit of its address may be closed in its handshake.
            let Some(mut connection) = attacked.connect(ATTACKER, connector) else {
                continue;
            };
            let _ = connection.send(first);
            slow.push((connection, next));
        }
        attacked.serves();
    }
    let opened = attacked.gate.metric_now("portvakt_open_connections", &[]);
    assert!(opened >= 200.0, "{opened} are open");
    let watch = Stopwatch::start();
    while attacked.gate.metric_now("portvakt_open_connections", &[]) > 0.0 {
        assert!(
            watch.elapsed() < GONE,
            "{RAN_OUT}: slow connections stay open"
        );
        for (connection, next) in &mut slow {
            let _ = connection.send(next);
        }
        attacked.serves();
        let_pass(Duration::from_millis(500));
    }
    println!(
        "{opened} slow connections ended within {:?}",
        watch.elapsed()
    );
}

/// Row 7: a few of the floods, on four connections that are opened again when they are cut.
//= HTTP-9 refused
#[test]
#[ignore = "make test-systems"]
fn floods_delay_nobody() {
    let attacked = Attacked::start();
    let post = b"\x83\x87\x01\x09localhost\x04\x0c/v1/accounts";
    type Flood<'a> = (&'a str, Box<dyn Fn(u32) -> Vec<u8> + Sync + 'a>);
    let floods: [Flood<'_>; 6] = [
        ("PING", Box::new(|_| encode(6, 0, 0, &[0; 8]))),
        ("SETTINGS", Box::new(|_| encode(4, 0, 0, &[]))),
        (
            "WINDOW_UPDATE",
            Box::new(|_| encode(8, 0, 0, &[0, 0, 0, 1])),
        ),
        (
            "RST_STREAM after HEADERS",
            Box::new(|number| {
                let stream = 2 * number + 1;
                let reset = encode(3, 0, stream, &[0, 0, 0, 8]);
                [encode(1, 5, stream, post), reset].concat()
            }),
        ),
        (
            "MadeYouReset",
            Box::new(|number| {
                let stream = 2 * number + 1;
                [encode(1, 4, stream, post), encode(8, 0, stream, &[0; 4])].concat()
            }),
        ),
        (
            "empty HEADERS",
            Box::new(|number| encode(1, 5, 2 * number + 1, &[])),
        ),
    ];
    for (name, flood) in &floods {
        let cut = AtomicBool::new(false);
        attacked.serves_during(FLOOD, |over| {
            while !over.load(Ordering::Relaxed) {
                let Some(mut connection) = attacked.connect(ATTACKER, &attacked.http2) else {
                    continue;
                };
                let _ = connection.send(PREFACE);
                let mut number = 0;
                while !over.load(Ordering::Relaxed) && connection.send(&flood(number)).is_ok() {
                    number += 1;
                }
                cut.fetch_or(!over.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
        assert!(cut.load(Ordering::Relaxed), "{name} is not cut");
    }
}

/// Random bytes, TLS records and frames: no panic, and memory stays. PORTVAKT_SEED sets another seed.
//= ERR-8 refused
#[test]
#[ignore = "make test-systems"]
fn random_records_and_frames() {
    let mut attacked = Attacked::start();
    let seed = std::env::var("PORTVAKT_SEED").map_or(18, |seed| seed.parse().unwrap());
    // Its signature does not hold, so no mutation of it may reach the core.
    let call = Call::plain().only(Protocol::Http1);
    let call = call.signature(|signature| signature.replace("signature=\"", "signature=\"AAAA"));
    let head = render(&attacked.gate.seal(&call));
    let block = b"\x82\x87\x01\x09localhost\x04\x0c/v1/accounts".repeat(2);
    let fuzz = |time: Duration, round: u64| {
        let connections = std::sync::atomic::AtomicU64::new(round << 32);
        attacked.serves_during(time, |over| {
            while !over.load(Ordering::Relaxed) {
                let number = connections.fetch_add(1, Ordering::Relaxed);
                fuzz_once(&attacked, &mut Dice::new(seed, number), &head, &block);
            }
        });
        println!("{} connections", connections.into_inner() - (round << 32));
        attacked.resident()
    };
    let warm = fuzz(FUZZ / 4, 0);
    let end = fuzz(FUZZ, 1);
    println!("{warm} KiB, and {end} KiB at the end");
    assert!(end <= warm + MOST_KIB, "{warm} KiB grew to {end} KiB");
    assert!(attacked.program.0.try_wait().unwrap().is_none(), "it ended");
    let log = fs::read_to_string(attacked.gate.folder().join("gateway.events")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}

/// One connection of the fuzzing.
fn fuzz_once(attacked: &Attacked, dice: &mut Dice, head: &[u8], block: &[u8]) {
    let count = dice.below(24) + 1;
    if dice.one_in(5) {
        let mut stream = TcpStream::connect(attacked.gate.address()).unwrap();
        for _ in 0..count {
            if stream.write_all(&make::record(dice, head)).is_err() {
                return;
            }
        }
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let _ = stream.read(&mut [0]);
        return;
    }
    let is_http2 = !dice.one_in(4);
    let connector = match is_http2 {
        true => &attacked.http2,
        false => &attacked.http1,
    };
    let Some(mut connection) = attacked.connect(ATTACKER, connector) else {
        return;
    };
    if is_http2 {
        let _ = connection.send(PREFACE);
    }
    for _ in 0..count {
        let part = match is_http2 {
            true => make::frame(dice, block),
            false => {
                let mut part = head.to_vec();
                make::mutate(dice, &mut part);
                part
            }
        };
        if connection.send(&part).is_err() {
            return;
        }
    }
}
