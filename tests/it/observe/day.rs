//! A day of mixed traffic, observed and then enforced: the report names exactly the senders and reasons that enforcement refuses.

use super::{
    breach::{self, Breach, checking_everything},
    observing,
};
use crate::harness::{Call, Connection, Dice, GateBuilder, Protocol, Tpp, ended, world};
use portvakt::admission::ObservableCheck;
use std::{collections::BTreeMap, io::Read, process::Command, sync::Arc};

/// The seed of the traffic.
const SEED: u64 = 22;

/// The number of requests.
const REQUESTS: usize = 300;

/// Senders and reasons, with the number of requests.
type Refusals = BTreeMap<(String, String), u64>;

/// A TPP of the traffic, and the fault that some of its requests have.
struct Persona {
    tpp: Arc<Tpp>,
    fault: Option<ObservableCheck>,
}

/// One TPP for each fault, and some without a fault.
fn personas() -> Vec<Persona> {
    let mut personas = Vec::new();
    for (number, fault) in ObservableCheck::ALL.iter().enumerate() {
        let tpp = match fault {
            ObservableCheck::Certificate => Arc::clone(breach::untrusted()),
            ObservableCheck::Role => Arc::clone(&world().aisp),
            ObservableCheck::Register => breach::issue(breach::UNREGISTERED),
            ObservableCheck::Revocation => breach::revoked(),
            ObservableCheck::RedirectHost => breach::issue(breach::RESTRICTED),
            _ => breach::issue(&format!("PSDNO-FSA-{}", 500_000 + number)),
        };
        let fault = Some(*fault);
        personas.push(Persona { tpp, fault });
    }
    for number in 15..18 {
        personas.push(Persona {
            tpp: breach::issue(&format!("PSDNO-FSA-{}", 500_000 + number)),
            fault: None,
        });
    }
    personas
}

/// A request of a TPP without a fault.
fn ordinary(dice: &mut Dice, number: usize) -> Call {
    match dice.below(5) {
        0 => Call::payment(),
        1 => Call::plain(),
        2 => Call::accounts()
            .at("/v1/accounts/42/transactions?bookingStatus=booked")
            .present(),
        // Each account has its own quota.
        3 => Call::balances().at(&format!("/v1/accounts/a{number}/balances")),
        _ => Call::accounts(),
    }
}

/// The requests of the day, in their order.
fn traffic() -> Vec<Call> {
    let mut dice = Dice(SEED);
    let personas = personas();
    let mut calls = Vec::new();
    let breaches = breach::all();
    while calls.len() < REQUESTS {
        let number = calls.len();
        let chosen = usize::try_from(dice.below(u64::try_from(personas.len()).unwrap())).unwrap();
        let Persona { tpp, fault } = &personas[chosen];
        let call = match fault {
            Some(fault) if dice.one_in(3) => faulty(&breaches, *fault, &mut dice, number),
            Some(ObservableCheck::Role) => Call::accounts(),
            _ => ordinary(&mut dice, number),
        };
        let protocol = Protocol::ALL[usize::from(dice.one_in(4))];
        calls.push(call.by(tpp).only(protocol));
    }
    calls
}

/// A request with a fault of this check; sometimes with another one after it.
fn faulty(breaches: &[Breach], fault: ObservableCheck, dice: &mut Dice, number: usize) -> Call {
    let breach = breaches.iter().find(|breach| breach.check == fault);
    let call = breach.unwrap().call.clone();
    match fault {
        ObservableCheck::Role => Call::payment(),
        ObservableCheck::Certificate | ObservableCheck::Register | ObservableCheck::Revocation => {
            ordinary(dice, number)
        }
        ObservableCheck::Date if dice.one_in(2) => Call::accounts().without("PSU-ID").off_by(300),
        _ => call,
    }
}

/// Sends the traffic to the program; returns the refusals that the callers saw, and the access log.
fn run(builder: GateBuilder, traffic: &[Call]) -> (Refusals, String) {
    let (gate, mut program) = builder.start_program();
    let mut refusals = Refusals::new();
    for call in traffic {
        let sealed = gate.seal(call);
        let answer = match call.protocols()[0] {
            Protocol::Http1 => Connection::open(&gate).exchange(&sealed).unwrap(),
            Protocol::Http2 => gate.send_sealed(&sealed, Protocol::Http2).unwrap(),
        };
        if answer.status != 200 {
            let reason = answer.json()["reason"].as_str().unwrap().to_owned();
            let sender = match &*reason {
                "certificate-untrusted" | "signature-mismatch" => {
                    format!("{} (not proven)", call.tpp().id().unwrap())
                }
                _ => call.tpp().id().unwrap(),
            };
            *refusals.entry((sender, reason)).or_default() += 1;
        }
    }
    let mut output = program.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut log = String::new();
        output.read_to_string(&mut log).unwrap();
        log
    });
    // SIGTERM, so that the last lines are written.
    let id = program.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().unwrap();
    ended(&mut program);
    let log = reader.join().unwrap();
    (refusals, log)
}

/// What the report says would be refused: senders, and reasons that come first.
fn reported(report: &str) -> Refusals {
    let mut refusals = Refusals::new();
    let mut sender = "";
    for line in report.lines() {
        if let Some((name, _)) = line
            .split_once(": ")
            .filter(|(_, rest)| rest.contains(" requests would"))
        {
            sender = name;
        }
        let words: Vec<_> = line.split_whitespace().collect();
        if let [_, reason, _, "failed,", first, "first"] = words[..] {
            let first: u64 = first.parse().unwrap();
            if first > 0 {
                *refusals
                    .entry((sender.to_owned(), reason.to_owned()))
                    .or_default() += first;
            }
        }
    }
    refusals
}

/// Runs `portvakt observe report` on a log.
fn report(log: &str) -> (i32, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), log).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    let output = command
        .args(["observe", "report"])
        .arg(file.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text)
}

//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn the_report_names_what_enforcement_refuses() {
    let traffic = traffic();
    let (refusals, log) = run(observing("all"), &traffic);
    assert_eq!(refusals, Refusals::new());
    let (code, text) = report(&log);
    assert_eq!(code, 1, "{text}");
    let (expected, log) = run(checking_everything(), &traffic);
    assert_eq!(reported(&text), expected, "{text}");
    // Each check refused somebody.
    for check in ObservableCheck::ALL {
        let line = text.lines().find(|line| line.starts_with(check.name()));
        assert!(line.unwrap().contains(" that passed: "), "{text}");
    }

    // The proposed section lets the same traffic pass.
    let (_, section) = text.split_once("that passed:\n").unwrap();
    let (refusals, _) = run(checking_everything().line(section.trim_end()), &traffic);
    assert_eq!(refusals, Refusals::new(), "{section}");

    // Enforced, the log has nothing more to report.
    let (code, text) = report(&log);
    assert_eq!(code, 0, "{text}");
    let sum: u64 = expected.values().sum();
    let line = format!("{sum} were refused; 0 more");
    assert!(text.contains(&line), "{text}");
    println!(
        "{REQUESTS} requests: {sum} refused, for {} pairs",
        expected.len()
    );
}

#[test]
fn a_log_without_requests_is_refused() {
    let (code, text) = report("not a log\n");
    assert_eq!((code, text.as_str()), (2, ""));
}

#[test]
fn a_log_with_a_cut_line_is_not_clean() {
    let line = "{\"outcome\":\"forwarded\",\"status\":200}\n";
    let (code, text) = report(&[line, &line[..20]].concat());
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("1 line cannot be read ("), "{text}");
}
