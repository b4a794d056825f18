//! The latency of known TPPs while revocation sources of other TPPs fail: it must not grow beyond the cost of unknown TPPs as such.
//!
//! A gateway with revocation checks serves known TPPs at a constant rate; each request is sent at its due time, independently of the
//! previous one. Meanwhile, unknown TPPs call, and the server of their CRLs answers, hangs, sends garbage or sends without end. Intervals
//! of each kind alternate in one run, so that other load on the machine affects all kinds. Each interval is compared with the one of the
//! same round that has the same callers and working servers. The report also gives the cost of unknown TPPs as such.
//! `make faults` runs the measurement; PORTVAKT_FAULTS is the number of rounds (10), PORTVAKT_RATE the requests per second (400),
//! PORTVAKT_STRANGERS the unknown certificates per second (5).

use super::revocation::{now, signed};
use crate::harness::{
    Call, Connection, Crl, Gate, Said, Sealed, Source, Tls, Tpp, let_pass, pki::LeafSpec, world,
};
use portvakt::clock::Stopwatch;
use std::time::Duration;

/// How long an interval is, in seconds.
const SECONDS: usize = 4;

/// Connections of known TPPs.
const CONNECTIONS: usize = 4;

/// The state of unknown TPPs in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No unknown TPPs call.
    Alone,
    /// The server of their CRLs answers.
    Quiet,
    Hanging,
    Nonsense,
    Endless,
}

const KINDS: [Kind; 5] = [
    Kind::Alone,
    Kind::Quiet,
    Kind::Hanging,
    Kind::Nonsense,
    Kind::Endless,
];

impl Kind {
    /// The answer of the CRL server, and the expected answers to unknown TPPs.
    fn says(self) -> (Said, u16) {
        let list = signed(&Crl::at(now()));
        match self {
            Self::Alone | Self::Quiet => (Said::ok(list), 200),
            Self::Hanging => {
                let after = Duration::from_secs(8);
                (
                    Said {
                        after,
                        ..Said::ok(list)
                    },
                    503,
                )
            }
            Self::Nonsense => (Said::ok(b"<html>Gateway Timeout</html>".to_vec()), 503),
            Self::Endless => (Said::ok(vec![0x30; 6 * 1024 * 1024]), 503),
        }
    }
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The call of a new TPP whose CRL is at this address.
fn tpp(number: usize, list: String) -> Call {
    let number = u32::try_from(number).unwrap();
    let serial = [&[0x44][..], &number.to_be_bytes()].concat();
    let spec = LeafSpec {
        serial: Some(serial),
        organization_identifier: Some(format!("PSDNO-FSA-{:06}", 500_000 + number)),
        crl_urls: vec![list],
        ..world().leaf()
    };
    Call::accounts().by(&Tpp::of(world().issuing.issue(&spec).unwrap()))
}

/// Sends each request at its due time on one connection; returns each latency from the due time.
fn send_when_due(
    begun: Stopwatch,
    mut connection: Connection,
    requests: &[(Duration, &Sealed)],
) -> (Connection, Vec<Duration>) {
    let mut took = Vec::with_capacity(requests.len());
    for (due, sealed) in requests {
        let mut from = *due;
        if let Some(wait) = due.checked_sub(begun.elapsed()) {
            let_pass(wait);
            // The delay of the wake-up is not the gateway's.
            from = begun.elapsed();
        }
        assert_eq!(connection.exchange(sealed).unwrap().status, 200);
        took.push(begun.elapsed().saturating_sub(from));
    }
    (connection, took)
}

fn p99(mut took: Vec<Duration>) -> f64 {
    took.sort_unstable();
    took[took.len() * 99 / 100].as_secs_f64() * 1e6
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
#[ignore = "a measurement of minutes on a machine that does nothing else: make faults"]
fn known_tpps_do_not_feel_the_responders_of_others() {
    let (rounds, rate) = (
        setting("PORTVAKT_FAULTS", 10),
        setting("PORTVAKT_RATE", 400),
    );
    let strangers = setting("PORTVAKT_STRANGERS", 5);
    let (own, others) = (
        Source::serving(signed(&Crl::at(now()))),
        Source::serving(Vec::new()),
    );
    let gate = Gate::builder()
        .threads(2)
        .file("anchors/root.pem", world().issuing.pem())
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
        .line("revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1]}")
        .start();
    let known: Vec<_> = (0..20).map(|number| tpp(number, own.url())).collect();
    let connector = Tls::default().connector(world());
    let open = || Connection::over(gate.address(), &connector).unwrap();
    let mut connections: Vec<_> = (0..CONNECTIONS).map(|_| open()).collect();
    for call in &known {
        for connection in &mut connections {
            assert_eq!(connection.exchange(&gate.seal(call)).unwrap().status, 200);
        }
    }
    let mut next = 1_000;
    // For each kind: every latency, and the p99 of every round.
    let mut all = vec![Vec::new(); KINDS.len()];
    let mut each = vec![Vec::new(); KINDS.len()];
    for round in 0..rounds {
        for (index, kind) in KINDS.into_iter().enumerate() {
            let (said, status) = kind.says();
            others.say(move |_| said.clone());
            let count = if kind == Kind::Alone {
                0
            } else {
                strangers * SECONDS
            };
            // Signed in advance: a signature costs more than all the gateway's work.
            let coming: Vec<_> = (0..count)
                .map(|_| {
                    next += 1;
                    gate.seal(&tpp(next, format!("{}{next}", others.url())))
                })
                .collect();
            let sealed: Vec<_> = (0..rate * SECONDS)
                .map(|number| gate.seal(&known[number % known.len()]))
                .collect();
            let due = |number: usize, of: usize| {
                Duration::from_secs_f64(0.2 + (number * SECONDS) as f64 / of as f64)
            };
            let strangers: Vec<_> = coming.iter().map(|sealed| (open(), sealed)).collect();
            let begun = Stopwatch::start();
            let mut took = Vec::new();
            connections = std::thread::scope(|scope| {
                let sending: Vec<_> = std::mem::take(&mut connections)
                    .into_iter()
                    .enumerate()
                    .map(|(first, connection)| {
                        let own = sealed.iter().enumerate().skip(first).step_by(CONNECTIONS);
                        let own: Vec<_> = own
                            .map(|(number, sealed)| (due(number, rate * SECONDS), sealed))
                            .collect();
                        scope.spawn(move || send_when_due(begun, connection, &own))
                    })
                    .collect();
                for (number, (mut stranger, sealed)) in strangers.into_iter().enumerate() {
                    // Not in phase with the other connections.
                    let apart = (number as f64 * 0.618).fract() / rate as f64;
                    let due = due(number, coming.len()) + Duration::from_secs_f64(apart);
                    scope.spawn(move || {
                        let_pass(due.saturating_sub(begun.elapsed()));
                        assert_eq!(stranger.exchange(sealed).unwrap().status, status);
                    });
                }
                sending
                    .into_iter()
                    .map(|one| {
                        let (connection, own) = one.join().unwrap();
                        took.extend(own);
                        connection
                    })
                    .collect()
            });
            gate.upstream().take();
            all[index].extend_from_slice(&took);
            let p99 = p99(took);
            each[index].push(p99);
            println!("round {round} {kind:?}: p99 {p99:.0} µs");
        }
    }
    println!("{rate} requests/s, {strangers} strangers/s, {rounds} rounds of {SECONDS} s:");
    let quiet = KINDS.iter().position(|kind| *kind == Kind::Quiet).unwrap();
    for (index, kind) in KINDS.into_iter().enumerate() {
        let ratios = each[index]
            .iter()
            .zip(&each[quiet])
            .map(|(one, quiet)| one / quiet);
        let (whole, quiet) = (p99(all[index].clone()), p99(all[quiet].clone()));
        println!(
            "{kind:?}: p99 {whole:.0} µs of all rounds together, {:.2} of the quiet one; median of the rounds' ratios {:.2}",
            whole / quiet,
            median(ratios.collect())
        );
    }
}
