//! The program under load, killed at random moments and restarted with the same state and ports. After each kill:
//!
//! - the upstream has received at most four calls of one quota, not counting calls that it let the gateway give back;
//! - every completion that was answered is known after each start, and repeating the completion gets the same answer; its consent is for
//!   its accounts and for no other;
//! - the upstream has received each X-Request-ID of a payment at most once;
//! - the audit is whole, and has a record of each payment that the upstream received;
//! - what the database committed is a history that the rules permit ([`history`]), and has at least as many calls, ids and completions as
//!   were seen.
//!
//! The state is in a file, and in PostgreSQL. `PORTVAKT_SOAK` is the number of kills (`make soak COUNT=1000`), `PORTVAKT_SOAK_SEED` the seed of the moments.

/// The clients.
mod client;
/// What the database committed, and its check.
mod history;
/// The records of the test, and their checks.
mod ledger;

use crate::harness::{
    Call, Connector, Dice, Gate, GateBuilder, LIMIT, Program, Protocol, Reply, Seen, Tls,
    eventually, eventually_within, let_pass, postgres,
};
use client::Client;
use history::Recorded;
use ledger::Ledger;
use portvakt::{
    audit::{self, Wanted},
    clock::Stopwatch,
};
use std::{
    collections::HashSet,
    fs::OpenOptions,
    path::Path,
    process::Stdio,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Concurrent clients.
const CLIENTS: u64 = 4;

/// State that the clients and the killing thread share.
struct Soak {
    gate: Gate,
    connector: Connector,
    /// The number of kills so far, which selects the quotas in use.
    kills: AtomicU64,
    over: AtomicBool,
    /// Whether the hash key is rotated meanwhile: until its restart a gateway then answers 503, and nothing else.
    rotates: bool,
    ledger: Mutex<Ledger>,
}

//= QUO-5 accepted
//= QUO-7 accepted
//= REP-1 refused
//= SCA-12 accepted
#[test]
fn killed_under_load_it_keeps_what_it_promised() {
    kill_under_load(number("PORTVAKT_SOAK", 5));
}

#[test]
fn killed_under_load_it_keeps_what_it_promised_in_postgres() {
    let Some(server) = postgres() else { return };
    let (schema, host) = (server.schema(), server.folder().display());
    let user = schema.get_user().unwrap();
    let state = format!("postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}");
    let load = Load::Recorded(Some(Box::new(schema)));
    soak(
        number("PORTVAKT_SOAK", 5),
        Gate::builder().state(&state),
        load,
    );
}

/// Kills the program this many times, with its state in a file, and checks what it promised.
pub(crate) fn kill_under_load(count: u64) {
    soak(count, Gate::builder(), Load::Recorded(None));
}

/// What is done to a gate that runs under load, before its program is killed.
pub(crate) type Disturb = fn(&Gate, &mut Program, &mut Dice);

/// The same, where the hash key is rotated under load before each kill.
pub(crate) fn rotate_under_load(count: u64, gate: GateBuilder, rotate: Disturb) {
    soak(count, gate, Load::Rotated(rotate));
}

/// What happens beside the calls and the kills.
enum Load {
    /// What this database commits is noted; without one, what the gate's file does.
    Recorded(Option<Box<tokio_postgres::Config>>),
    /// The hash key is rotated before each kill.
    Rotated(Disturb),
}

fn soak(count: u64, gate: GateBuilder, load: Load) {
    let seed = number("PORTVAKT_SOAK_SEED", 1);
    let gate = gate
        .line("rates: {per_tpp: off, unsafe_per_tpp: off, per_address: off, chains_per_address: off, chains: off}")
        .line("audit: {write: on, folder: state/audit}")
        .for_program();
    gate.upstream().reply(Reply::Suited(suit));
    let soak = Soak {
        connector: Tls::default().connector(gate.world()),
        gate,
        kills: AtomicU64::new(0),
        over: AtomicBool::new(false),
        rotates: matches!(load, Load::Rotated(_)),
        ledger: Mutex::default(),
    };
    let (rotate, recorded) = match load {
        Load::Rotated(rotate) => (Some(rotate), None),
        Load::Recorded(Some(config)) => (None, Some(Recorded::Database(config))),
        Load::Recorded(None) => {
            let file = soak.gate.folder().join("state/portvakt.db");
            (None, Some(Recorded::File(file)))
        }
    };
    let mut dice = Dice(seed);
    let began = Stopwatch::start();
    let mut program = soak.start();
    recorded.iter().for_each(Recorded::begin);
    soak.gate.seal(&Call::payment()); // The PSU is brought in.
    std::thread::scope(|scope| {
        let _over = Over(&soak.over);
        for number in 0..CLIENTS {
            let client = Client::new(&soak, dice.below(u64::MAX) ^ number);
            scope.spawn(move || client.call_until_over());
        }
        soak.wait_until_there_is_something_to_lose();
        for kill in 0..count {
            if soak.is_over() {
                return; // A client has failed, and says why.
            }
            // Each kill comes at another moment.
            let_pass(Duration::from_millis(20 + dice.below(180)));
            if let Some(rotate) = rotate {
                rotate(&soak.gate, &mut program, &mut dice);
            }
            program.end();
            soak.kills.store(kill + 1, Ordering::Relaxed);
            soak.note_what_was_seen();
            if dice.one_in(10) {
                // Also killed during the start.
                let mut program = soak.spawn();
                let_pass(Duration::from_millis(dice.below(100)));
                program.end();
                soak.note_what_was_seen();
            }
            program = soak.start();
            soak.check_some(&mut dice);
            if (kill + 1) % 100 == 0 {
                println!("{} kills in {:?}", kill + 1, began.elapsed());
            }
        }
    });
    soak.note_what_was_seen();
    let checked = soak.check_all();
    soak.note_what_was_seen();
    program.end();
    let ledger = soak.ledger.lock().unwrap();
    println!(
        "{count} kills in {:?}, seed {seed}; {checked} completions known at the end\n{ledger}",
        began.elapsed(),
    );
    ledger.check_the_whole();
    check_audit(&soak.gate.folder().join("state/audit"), &ledger);
    if let Some(recorded) = recorded {
        let committed = recorded.validate(ledger.given_back());
        println!("{committed:?}");
        ledger.was_committed(&committed);
    }
}

/// No payment that the core received is missing in the audit, whose chains are whole.
fn check_audit(audit: &Path, ledger: &Ledger) {
    let verified = audit::verify(audit, &[]).unwrap();
    assert_eq!(verified.findings, []);
    let wanted = Wanted {
        kind: Some("forwarding".into()),
        ..Wanted::default()
    };
    let records = audit::search(audit, &wanted).unwrap();
    let recorded: HashSet<_> = records
        .iter()
        .filter_map(|record| record.text("request_id"))
        .collect();
    let mut seen = 0;
    for id in ledger.seen_payments() {
        assert!(recorded.contains(id), "{id} is not in the audit");
        seen += 1;
    }
    println!(
        "audit: {} lines in {} files; {seen} payments of the core are in it",
        verified.lines, verified.files
    );
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// The upstream lets the gateway give some calls of the quota back (QUO-5).
fn suit(seen: &Seen) -> Reply {
    if ledger::is_given_back(seen) {
        Reply::json(404, "{}")
    } else {
        Reply::json(200, "{}")
    }
}

/// Stops the clients at the end of the test, even if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Soak {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn spawn(&self) -> Program {
        let log = self.gate.folder().join("errors.log");
        let log = OpenOptions::new().create(true).append(true).open(log);
        let mut program = self.gate.program();
        let program = program.stdout(Stdio::null()).stderr(log.unwrap());
        Program(program.spawn().unwrap())
    }

    /// Starts the program and waits until it listens. The sockets of the previous process may close a moment after its end.
    fn start(&self) -> Program {
        let began = Stopwatch::start();
        eventually("the program starts again", || {
            let mut program = self.spawn();
            if self.gate.is_up(&mut program.0) {
                self.ledger.lock().unwrap().started(began.elapsed());
                return Some(program);
            }
            self.ledger.lock().unwrap().not_started();
            None
        })
    }

    /// On a loaded machine the start may take longer than the interval between two kills.
    fn wait_until_there_is_something_to_lose(&self) {
        eventually_within(5 * LIMIT, "there is something to lose", || {
            self.is_over() || self.ledger.lock().unwrap().has_everything()
        });
    }

    fn note_what_was_seen(&self) {
        let seen = self.gate.upstream().take();
        let mut ledger = self.ledger.lock().unwrap();
        seen.iter().for_each(|seen| ledger.saw(seen));
    }

    /// The last completions and some earlier ones are known: their sessions are valid.
    fn check_some(&self, dice: &mut Dice) {
        let sample = self.ledger.lock().unwrap().sample(dice);
        let mut client = Client::new(self, dice.below(u64::MAX));
        for completed in sample {
            client.must_have_session(&completed);
        }
    }

    /// Asserts that the control listener knows every completion, and that each consent is as it was given. Returns their number.
    fn check_all(&self) -> usize {
        let all = self.ledger.lock().unwrap().completed().to_vec();
        let mut client = Client::new(self, 0);
        for completed in &all {
            let answer = self.gate.tell("/psu/read", &completed.who());
            assert_eq!(answer.status, 200, "{completed:?}");
            let known = answer.json();
            assert!(known["session"].is_object(), "{completed:?}");
            let consent = &known["contexts"][0]["consent"];
            assert_eq!(consent["accounts"], completed.accounts, "{completed:?}");
            client.must_have_consent(completed);
        }
        all.len()
    }
}

/// Calls use HTTP/1.1, so that a connection can be closed and reopened cheaply.
fn over_http1(call: Call) -> Call {
    call.only(Protocol::Http1)
}
