//! Floods of unsigned requests, each with another spelling of a certificate, to the gateway as a process.
//!
//! The memory and CPU of such requests is bounded, and a known TPP is not affected. `make flood` runs the long version, which prints
//! the figures; PORTVAKT_PROGRAM names another build of the program, PORTVAKT_FLOOD the number of requests.

use crate::harness::{
    Call, Connection, Connector, Gate, Over, Program, Protocol, Sealed, Tls, let_pass, render,
    world,
};
use openssl::base64::encode_block;
use portvakt::clock::Stopwatch;
use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

/// Concurrent clients in the long version, and the addresses of each.
const CLIENTS: u32 = 8;
const ADDRESSES: u32 = 16;

/// The maximum growth of memory.
const MOST_KIB: u64 = 32 * 1024;

/// A gateway as a process.
struct Besieged {
    gate: Gate,
    program: Program,
    connector: Connector,
}

impl Besieged {
    fn start(rates: &str) -> Self {
        let gate = Gate::builder().line(rates).for_program();
        let program = gate.run_with_logs(&mut gate.program());
        Self {
            connector: Tls::default().connector(gate.world()),
            gate,
            program,
        }
    }

    /// A connection from an address of the loopback network.
    fn connect(&self, from: Ipv4Addr) -> Connection {
        Connection::from(from, self.gate.address(), &self.connector).unwrap()
    }

    /// The resident memory of the process, in KiB.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.program.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    }

    /// The CPU time of the process, in microseconds.
    fn used(&self) -> u64 {
        self.program.cpu_time()
    }

    /// Asserts that a known TPP is served.
    fn serves(&self, connection: &mut Connection) {
        let answer = connection.exchange(&self.gate.seal(&plain())).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.reason());
        assert_eq!(
            self.gate.upstream().take().len(),
            1,
            "nothing but its request"
        );
    }
}

/// A call over HTTP/1.1 without a PSU.
fn plain() -> Call {
    Call::plain().only(Protocol::Http1)
}

/// The same call with an invalid signature.
fn bogus() -> Call {
    plain().signature(|signature| {
        let (before, after) = signature.split_once("signature=\"").unwrap();
        format!("{before}signature=\"AAAAAAAA{}", &after[8..])
    })
}

/// A request with this certificate.
fn showing(sealed: &Sealed, certificate: &str) -> Vec<u8> {
    let mut sealed = sealed.clone();
    let request = &mut sealed.request;
    request.set_header("TPP-Signature-Certificate", certificate);
    render(&sealed)
}

/// A different text for each number.
fn junk(number: u32, length: usize) -> String {
    let word = format!("{number:08x}{:08x} ", number.wrapping_mul(2_654_435_761));
    word.chars().cycle().take(length).collect()
}

/// A certificate on one line.
fn armoured() -> String {
    world().both.issued.pem.trim_end().replace('\n', " ")
}

/// A certificate's text, different for each number.
type Spelling = (&'static str, fn(u32) -> String);

/// Spellings of certificates that an unauthenticated caller can send, each with its name.
const KINDS: [Spelling; 7] = [
    ("text before a known one", |number| {
        junk(number, 1_000) + &armoured()
    }),
    ("text after a known one", |number| {
        armoured() + &junk(number, 1_000)
    }),
    ("a known one, percent-encoded", |number| {
        let armoured = armoured();
        let at = usize::try_from(number).unwrap() % armoured.len();
        let byte = armoured.as_bytes()[at];
        format!("{}%{byte:02X}{}", &armoured[..at], &armoured[at + 1..])
    }),
    ("a known one with a pool", |number| {
        let pool = world().issuing.pem().replace('\n', " ").repeat(5);
        armoured() + &junk(number, 64) + &pool
    }),
    ("one that leads nowhere", |number| {
        let mut der = world().aisp.issued.der.clone();
        let at = der.len() - 4;
        for (byte, other) in der[at..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= other;
        }
        encode_block(&der)
    }),
    ("one that leads nowhere, with a pool", |number| {
        let mut der = world().aisp.issued.der.clone();
        let at = der.len() - 4;
        for (byte, other) in der[at..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= other;
        }
        let own = format!(
            "-----BEGIN CERTIFICATE-----{}-----END CERTIFICATE-----",
            encode_block(&der).replace('\n', "")
        );
        own + &world().issuing.pem().replace('\n', " ").repeat(5)
    }),
    ("no certificate", |number| {
        encode_block(&[&[0x30; 9_000][..], &number.to_be_bytes()].concat())
    }),
];

/// An unauthenticated caller on one connection, which the gateway may close.
struct Stranger<'a> {
    besieged: &'a Besieged,
    from: Ipv4Addr,
    connection: Option<Connection>,
}

impl Stranger<'_> {
    /// Sends a request and returns the status and the reason of the answer.
    fn send(&mut self, request: &[u8]) -> (u16, String) {
        let open = || self.besieged.connect(self.from);
        let connection = self.connection.get_or_insert_with(open);
        let sent = connection.send(request);
        let answer = connection.answer("GET");
        let answer = answer.unwrap_or_else(|fault| panic!("{fault}, {:?}", sent.err()));
        if answer.header("connection") == Some("close") {
            self.connection = None;
        }
        (answer.status, answer.reason())
    }
}

/// The nth client address.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + number)
}

//= CRT-12 refused
//= QUO-12 accepted
#[test]
fn strangers_fill_no_memory() {
    let besieged = Besieged::start("rates: {per_address: off}");
    let mut known = besieged.connect(Ipv4Addr::LOCALHOST);
    besieged.serves(&mut known);
    let sealed = besieged.gate.seal(&bogus());
    let mut stranger = Stranger {
        besieged: &besieged,
        from: address(0),
        connection: None,
    };
    let mut number = 0_u32;
    let mut round = |long: bool| {
        for (_, make) in KINDS {
            number += 1;
            let (status, _) = stranger.send(&showing(&sealed, &make(number)));
            assert!(status >= 400, "{status}");
        }
        if long {
            number += 1;
            let long = junk(number, 450_000) + &armoured() + &junk(number, 450_000);
            stranger.send(&showing(&sealed, &long));
        }
    };
    // Warm-up: memory that the server and the allocator take for the first request of each kind.
    (0..10).for_each(|_| round(true));
    let before = besieged.resident();
    for index in 0..150 {
        round(index % 2 == 0);
        besieged.serves(&mut known);
    }
    let more = besieged.resident().saturating_sub(before);
    println!("{before} KiB and {more} KiB more");
    assert!(more <= MOST_KIB, "{more} KiB more");
    assert!(besieged.gate.upstream().take().is_empty());
}

/// Makes the nth request from an invalidly signed one.
type Make = Box<dyn Fn(&Sealed, u32) -> Vec<u8> + Sync>;

/// Requests of unauthenticated callers, with the name of their kind.
type Kind = (&'static str, Make);

fn kinds() -> Vec<Kind> {
    let of_certificates = KINDS.iter().map(|(name, make)| -> Kind {
        (
            name,
            Box::new(|sealed, number| showing(sealed, &make(number))),
        )
    });
    let edited = |edit: fn(&mut Sealed)| -> Make {
        Box::new(move |sealed, _| {
            let mut sealed = sealed.clone();
            edit(&mut sealed);
            render(&sealed)
        })
    };
    let others: [Kind; 3] = [
        (
            "without a signature",
            edited(|sealed| {
                let headers = &mut sealed.request.headers;
                headers.retain(|(name, _)| !name.eq_ignore_ascii_case("signature"));
            }),
        ),
        (
            "an unknown path",
            edited(|sealed| sealed.request.target = "/v1/nothing".into()),
        ),
        ("a known one as it is", edited(|_| {})),
    ];
    others.into_iter().chain(of_certificates).collect()
}

/// The cost and the answers of one kind of request.
fn rush(besieged: &Besieged, kind: &Kind, count: u32) -> (f64, BTreeMap<(u16, String), u32>) {
    let (next, answers) = (AtomicU32::new(0), Mutex::new(BTreeMap::new()));
    let before = besieged.used();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (next, answers) = (&next, &answers);
            scope.spawn(move || {
                let stranger = |number| Stranger {
                    besieged,
                    from: address(client * ADDRESSES + number),
                    connection: None,
                };
                let mut strangers: Vec<_> = (0..ADDRESSES).map(stranger).collect();
                let mut sealed = besieged.gate.seal(&bogus());
                for turn in 0.. {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    if turn % 1_000 == 999 {
                        sealed = besieged.gate.seal(&bogus());
                    }
                    let at = turn % strangers.len();
                    let stranger = &mut strangers[at];
                    let told = stranger.send(&(kind.1)(&sealed, number));
                    *answers.lock().unwrap().entry(told).or_default() += 1;
                }
            });
        }
    });
    let used = besieged.used() - before;
    (
        used as f64 / f64::from(count),
        answers.into_inner().unwrap(),
    )
}

/// The figures that `make flood` prints.
//= QUO-12 accepted
//= QUO-12 refused
#[test]
#[ignore = "it measures, for a minute or more"]
fn a_hundred_thousand_strangers() {
    let number = |name: &str, default: u32| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap())
    };
    let count = number("PORTVAKT_FLOOD", 100_000);
    let most = number("PORTVAKT_FLOOD_CPU", 250);
    let besieged = Besieged::start("rates: {per_address: off}");
    let mut known = besieged.connect(Ipv4Addr::LOCALHOST);
    besieged.serves(&mut known);
    let kinds = kinds();
    let each = count / u32::try_from(kinds.len()).unwrap();
    for kind in &kinds {
        rush(&besieged, kind, 200);
    }
    let begun = besieged.resident();
    let (over, mut used, mut longest) = (AtomicBool::new(false), 0.0, Duration::ZERO);
    std::thread::scope(|scope| {
        let ends = Over(&over);
        // A known TPP is served throughout.
        let served = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let watch = Stopwatch::start();
                besieged.serves(&mut known);
                longest = longest.max(watch.elapsed());
                let_pass(Duration::from_millis(20));
            }
            longest
        });
        for kind in &kinds {
            let (cpu, answers) = rush(&besieged, kind, each);
            let more = besieged.resident().saturating_sub(begun);
            println!(
                "{:>36}: {cpu:>4.0} µs, {more:>6} KiB more, {answers:?}",
                kind.0
            );
            used += cpu * f64::from(each);
        }
        drop(ends);
        longest = served.join().unwrap();
    });
    let more = besieged.resident().saturating_sub(begun);
    let mean = used / f64::from(each) / kinds.len() as f64;
    println!(
        "{count} requests: {mean:.0} µs each and {more} KiB more; a known TPP waited {longest:?} at most"
    );
    assert!(more <= MOST_KIB, "{more} KiB more");
    assert!(mean <= f64::from(most), "{mean} µs");
}
