//! `portvakt explain` says what the gateway says, on every form of a saved request, or names what the form has lost.
//!
//! Each request is sent to a running gateway, recorded in all six forms as curl, browsers and mitmproxy write them, and explained by the
//! same configuration at the same moment. The dice have a seed, so that every run asks the same.

/// Changes of a request.
mod changes;
/// The six forms.
mod forms;
/// Requests of all kinds.
mod requests;

use crate::{
    corpus,
    harness::{Answer, Connection, Connector, Dice, Gate, GateBuilder, Protocol, Tls, missing},
};
use forms::Form;
use portvakt::{
    clock::{Clock, Timestamp},
    tools::explain::{ExplainedSettings, saved_request},
};
use requests::{Recorded, Wire};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::{Command, ExitCode},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// The least number of requests that each form records.
const LEAST: usize = 500;

/// The number of connections at once.
const WORKERS: usize = 8;

/// Reasons of checks that need the state, which `explain` leaves out.
const BY_STATE: [&str; 5] = [
    "sca-required",
    "account-unknown",
    "quota-exceeded",
    "history-too-old",
    "request-replayed",
];

fn gate() -> GateBuilder {
    // The dice and the signatures take their time; the Date must stay good.
    corpus::gate()
        .clock(&Clock::standing(Clock::System.now()))
        .file("intermediates/letters.pem", requests::intermediate())
        .with_a_file()
}

fn settings(gate: &Gate) -> ExplainedSettings {
    ExplainedSettings::load(&gate.folder().join("gateway.yaml")).unwrap()
}

/// The gateway's answer in a word: `admitted`, or status and reason.
fn decided(answer: &Answer) -> String {
    let reason = answer.reason();
    if answer.status < 400 || BY_STATE.contains(&reason.as_str()) {
        return "admitted".to_owned();
    }
    format!("{} {reason}", answer.status)
}

/// The output of `explain`.
#[derive(Debug)]
struct Explained {
    verdict: String,
    notes: Vec<String>,
    text: String,
}

fn explain(settings: &ExplainedSettings, file: &[u8], at: Timestamp) -> Explained {
    let mut out = Vec::new();
    let status = saved_request(file, settings, at, &mut out);
    let text = String::from_utf8(out).unwrap();
    let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let (verdict, expected) = match status {
        Err(ref fault) => (format!("unreadable: {fault}"), None),
        Ok(_) if line("undecided: ").is_some() => ("undecided".to_owned(), Some(2)),
        Ok(_) if line("admitted: ").is_some() => ("admitted".to_owned(), Some(0)),
        Ok(_) => {
            let mut words = line("refused: ").unwrap_or_default().split(' ');
            let (status, reason) = (words.next(), words.nth(1));
            let verdict = format!(
                "{} {}",
                status.unwrap_or_default(),
                reason.unwrap_or_default()
            );
            (verdict, Some(1))
        }
    };
    if let (Ok(status), Some(expected)) = (status, expected) {
        assert_eq!(status, ExitCode::from(expected), "{text}");
    }
    let notes = text.lines().filter_map(|line| line.strip_prefix("note: "));
    Explained {
        verdict,
        notes: notes.map(str::to_owned).collect(),
        text,
    }
}

/// Runs a function on every item, some at a time.
fn on_all<T: Sync, R: Send>(items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    let result = run(item);
                    results.lock().unwrap().insert(at, result);
                }
            });
        }
    });
    results.into_inner().unwrap().into_values().collect()
}

/// The answer over HTTP/1.1 to these bytes; `None` if the connection ends without one.
fn ask(gate: &Gate, tls: &Connector, bytes: &[u8], method: &str) -> Option<Answer> {
    let mut connection = Connection::over(gate.address(), tls).unwrap();
    // The gateway may close during a write; its answer counts.
    let _ = connection.send(bytes);
    connection.answer(method).ok()
}

fn send(gate: &Gate, tls: &Connector, request: &Recorded) -> String {
    match &request.wire {
        Wire::Http1 => {
            let answer = ask(gate, tls, &request.bytes(), &request.method());
            decided(&answer.unwrap_or_else(|| panic!("{request:?}: no answer")))
        }
        Wire::Http2(sealed) => decided(&gate.send_sealed(sealed, Protocol::Http2).unwrap()),
    }
}

/// What is wrong with an explanation, if anything is.
fn fault(form: Form, request: &Recorded, expected: &str, found: &Explained) -> Option<String> {
    let agrees = found.verdict == expected;
    if form.loses_nothing(request) {
        return match (agrees, found.notes.is_empty()) {
            (true, true) => None,
            (false, _) => Some("it disagrees".to_owned()),
            (true, false) => Some("it notes a loss, and nothing was lost".to_owned()),
        };
    }
    if found.verdict == "undecided" {
        let is_due = !request.body.is_empty() && form.may_lose_the_body();
        return (!is_due).then(|| "undecided without need".to_owned());
    }
    // A note names the place, and the place is one.
    for note in &found.notes {
        if let Some((_, places)) = note.split_once("Nothing vouches for ") {
            let places = places.split(": ").next().unwrap_or_default();
            let wrong = places.split(", ").find(|place| !request.is_doubtful(place));
            if let Some(wrong) = wrong {
                return Some(format!("it names {wrong:?}, where no byte is lost"));
            }
        }
    }
    (!agrees && found.notes.is_empty()).then(|| "it disagrees, and names no loss".to_owned())
}

/// Issue 40, item 6: at least 500 requests in each of six forms, and no disagreement that is not named.
#[test]
fn every_form_of_a_request_is_explained_as_the_gateway_decides() {
    let gate = gate().start();
    let tls = Tls::default().connector(gate.world());
    let requests = requests::all(&gate, &mut Dice(40));
    let at = gate.now();
    let decisions = on_all(&requests, |request| send(&gate, &tls, request));
    let settings = settings(&gate);
    let mut counts: BTreeMap<Form, [usize; 3]> = BTreeMap::new();
    let mut reasons = BTreeSet::new();
    let mut faults = Vec::new();
    for form in Form::ALL {
        let explained = on_all(&requests, |request| {
            let file = form.record(request)?;
            Some(explain(&settings, &file, at))
        });
        for ((request, expected), found) in requests.iter().zip(&decisions).zip(explained) {
            let Some(found) = found else { continue };
            reasons.insert(expected);
            let [recorded, agreed, named] = counts.entry(form).or_default();
            *recorded += 1;
            *agreed += usize::from(found.verdict == *expected);
            *named += usize::from(found.verdict != *expected);
            if let Some(fault) = fault(form, request, expected, &found) {
                faults.push(format!(
                    "{form:?} of {}: {fault}: the gateway says {expected}\n{}",
                    request.name, found.text
                ));
            }
        }
    }
    for (form, [recorded, agreed, named]) in &counts {
        println!("{form:?}: {recorded} recorded, {agreed} agree, {named} name a loss");
        assert!(*recorded >= LEAST, "{form:?}: {recorded}");
        assert!(*agreed * 10 >= *recorded * 6, "{form:?}: {agreed}");
    }
    println!("{} verdicts: {reasons:?}", reasons.len());
    assert!(reasons.len() >= 25, "{reasons:?}");
    let shown = faults.iter().take(5).cloned().collect::<Vec<_>>();
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        shown.join("\n\n")
    );
}

/// HTTP-7, HTTP-9, HTTP-10: the corpus of damaged requests, raw and in hexadecimal.
#[test]
fn damaged_requests_are_explained_as_the_gateway_decides() {
    let gate = gate().start();
    let tls = Tls::default().connector(gate.world());
    let cases = corpus::single_requests(&gate);
    let at = gate.now();
    let answers = on_all(&cases, |(_, bytes, method)| ask(&gate, &tls, bytes, method));
    let settings = settings(&gate);
    let (mut agreed, mut faults) = (0, Vec::new());
    for ((name, bytes, _), answer) in cases.iter().zip(&answers) {
        let Some(answer) = answer else { continue };
        let expected = decided(answer);
        for (form, file) in [
            (Form::Raw, bytes.clone()),
            (Form::Trace, forms::trace(bytes, &[], false)),
        ] {
            // curl writes `HTTP/2` where it was sent over HTTP/2, and only there.
            let line = bytes.split(|byte| *byte == b'\r').next().unwrap();
            if form == Form::Trace
                && [b"HTTP/2", b"HTTP/3"]
                    .iter()
                    .any(|end| line.ends_with(*end))
            {
                continue;
            }
            let found = explain(&settings, &file, at);
            // The gateway waits for the rest of such a request, and a file has none.
            let waits = expected == "408 request-timeout";
            let is_named = !found.notes.is_empty() || found.verdict.starts_with("unreadable: ");
            // The answer to HEAD has no reason.
            let agrees = match expected.ends_with(' ') {
                true => found.verdict.starts_with(&expected),
                false => found.verdict == expected,
            };
            if agrees {
                agreed += 1;
            } else if !waits && !is_named {
                faults.push(format!(
                    "{form:?} of {name}: the gateway says {expected}, and explain {}",
                    found.verdict
                ));
            }
        }
    }
    println!("{agreed} of {} agree", 2 * cases.len());
    assert!(
        cases.len() >= LEAST && agreed * 10 >= cases.len() * 18,
        "{agreed}"
    );
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The forms as curl itself writes them.
#[test]
fn what_curl_records_is_explained() {
    if Command::new("curl").arg("--version").output().is_err() {
        return missing("curl");
    }
    let gate = gate().start();
    let settings = settings(&gate);
    let cacert = gate.folder().join("tls.pem");
    fs::write(&cacert, gate.world().tls_ca.pem()).unwrap();
    let base = format!("https://localhost:{}", gate.address().port());
    for (name, call) in requests::for_curl() {
        for (option, form) in [
            ("-v", "curl -v"),
            ("--trace", "curl --trace"),
            ("--trace-ascii", "curl --trace-ascii"),
        ] {
            let sealed = gate.seal(&call);
            let (file, body) = (gate.folder().join("trace"), gate.folder().join("body"));
            let curl = sealed.request.as_curl(&base, Some(&cacert));
            let option = match option {
                "-v" => format!("-v 2> {}", file.display()),
                option => format!("{option} {}", file.display()),
            };
            let script = format!(
                "{curl} --http1.1 -s -S -o {} -w '%{{http_code}}' {option}",
                body.display()
            );
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            let status = String::from_utf8(output.stdout).unwrap();
            let answer = Answer {
                status: status
                    .parse()
                    .unwrap_or_else(|_| panic!("{script}\n{status}")),
                headers: Vec::new(),
                body: fs::read(&body).unwrap_or_default(),
            };
            let expected = decided(&answer);
            let found = explain(&settings, &fs::read(&file).unwrap(), gate.now());
            assert!(
                found.text.contains(&format!("from {form})")),
                "{}",
                found.text
            );
            let has_body = sealed
                .request
                .body
                .as_ref()
                .is_some_and(|body| !body.is_empty());
            let is_lost = option.starts_with("-v") && has_body && found.verdict == "undecided";
            let is_named = form == "curl --trace-ascii" && !found.notes.is_empty();
            assert!(
                found.verdict == expected || is_lost || is_named,
                "{name} by {form}: the gateway says {expected}\n{}",
                found.text
            );
            if name == "plain" {
                assert_eq!(found.notes, [""; 0], "{form}");
            }
        }
    }
}
