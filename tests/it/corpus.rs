//! The corpus of tests/edge: raw HTTP/1.1 requests and HTTP/2 exchanges, each with a stated answer and the sentence of an RFC that
//! the answer rests on (HTTP-7, HTTP-9, HTTP-10, ERR-8; docs/edge.md describes the format).
//!
//! Here, each case runs once, in front of the recording upstream. `systems::corpus` runs them in front of other servers.

/// The cases as data.
mod case;
/// Placeholders become signed requests.
mod fill;
/// One case over HTTP/1.1.
mod http1;
/// One case over HTTP/2.
mod http2;

pub(crate) use case::Case;
pub(crate) use fill::Made;

use crate::harness::{Gate, GateBuilder};
use case::Core;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// The least number of cases.
const HTTP1: usize = 500;
const HTTP2: usize = 180;

/// The number of connections at once.
const WORKERS: usize = 8;

/// The result of one case.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The signed requests of the case, in order.
    pub(crate) made: Vec<Made>,
    /// The ids of these that the core must see, and may see.
    pub(crate) admitted: BTreeSet<String>,
    pub(crate) possible: BTreeSet<String>,
    /// The number of further ones that the core must see: HTTP/2 does not tell which.
    pub(crate) further: usize,
    /// How the answer differs from the stated one.
    pub(crate) fault: Option<String>,
}

/// A gate for the corpus: the deadlines are short, because some cases end with one.
pub(crate) fn gate() -> GateBuilder {
    Gate::builder()
        .listener("head_timeout: 3s")
        .listener("body_timeout: 3s")
        .listener("preface_timeout: 3s")
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
}

/// Runs the cases, some at a time.
pub(crate) fn run(gate: &Gate, cases: &[Case]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(BTreeMap::new());
    let (over1, over2) = (http1::connector(gate), http2::connector(gate));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = match case.is_http2 {
                        true => http2::run(gate, &over2, case),
                        false => http1::run(gate, &over1, case),
                    };
                    outcomes.lock().unwrap().insert(&case.name, outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap();
    let in_order = cases.iter().map(|case| outcomes.remove(&case.name));
    in_order.map(Option::unwrap).collect()
}

/// What differs between the outcomes and the requests that a core saw: method, target and X-Request-ID of each.
pub(crate) fn faults(
    cases: &[Case],
    outcomes: &[Outcome],
    seen: &[(String, String, String)],
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut by_id = BTreeMap::new();
    for (method, target, id) in seen {
        if by_id.insert(id.as_str(), (method, target)).is_some() {
            faults.push(format!("{id}: the core saw it twice"));
        }
    }
    for (case, outcome) in cases.iter().zip(outcomes) {
        let mut wrong = |fault: String| faults.push(format!("{}: {fault}", case.name));
        outcome.fault.iter().cloned().for_each(&mut wrong);
        let mut further = 0;
        for made in &outcome.made {
            let found = by_id.remove(made.id.as_str());
            if found.is_some_and(|found| found != (&made.method, &made.target)) {
                wrong(format!("the core saw {} as {found:?}", made.id));
            }
            let must = outcome.admitted.contains(&made.id);
            if must && found.is_none() {
                wrong(format!("the core did not see {}", made.id));
            }
            if found.is_some() && !must {
                further += 1;
                if !outcome.possible.contains(&made.id) {
                    wrong(format!("the core saw {}", made.id));
                }
            }
        }
        if case.core == Core::Answered && outcome.further != further {
            wrong(format!(
                "the core saw {further} requests, not {}",
                outcome.further
            ));
        }
    }
    for (id, line) in by_id {
        faults.push(format!("the core saw a request of no case: {line:?} {id}"));
    }
    faults
}

/// HTTP-7, HTTP-9, HTTP-10 and ERR-8, one case after the other.
fn all_as_stated(cases: &[Case]) {
    let gate = gate().start();
    let outcomes = run(&gate, cases);
    let seen = gate.upstream().take();
    let seen: Vec<_> = seen
        .into_iter()
        .map(|seen| {
            let odd = seen.names().into_iter().find(|name| {
                name.contains('_') || ["transfer-encoding", "te", "x-trailer"].contains(&&**name)
            });
            assert_eq!(odd, None, "{seen:?}");
            let id = seen.header("x-request-id").unwrap_or_default().to_owned();
            (seen.method, seen.target, id)
        })
        .collect();
    let faults = faults(cases, &outcomes, &seen);
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

//= HTTP-7 accepted
//= HTTP-7 refused
//= HTTP-10 refused
//= ERR-8 refused
#[test]
fn every_request_of_http1_gets_its_answer() {
    all_as_stated(&case::http1());
}

//= HTTP-7 accepted
//= HTTP-7 refused
#[test]
fn every_exchange_of_http2_gets_its_answer() {
    all_as_stated(&case::http2());
}

#[test]
fn the_corpus_is_whole() {
    let (http1, http2) = (case::http1(), case::http2());
    println!("{} over HTTP/1.1, {} over HTTP/2", http1.len(), http2.len());
    assert!(http1.len() >= HTTP1, "{}", http1.len());
    assert!(http2.len() >= HTTP2, "{}", http2.len());
    let sentences = case::sentences();
    let (mut names, mut sent, mut cited) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for case in http1.iter().chain(&http2) {
        let name = &case.name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(
            sent.insert((
                case.is_http2,
                &case.signs,
                case.stream,
                case.opens,
                &case.exchange
            )),
            "{name} sends the same as another case"
        );
        assert!(
            sentences.contains_key(&case.rfc),
            "{name}: {} is no sentence of rfc.yaml",
            case.rfc
        );
        cited.insert(&case.rfc);
        match case.is_http2 {
            true => {
                let stated = http2::Answer::all(case, &case.answer);
                let differs = case.differs.iter();
                let differs = differs.flat_map(|differs| http2::Answer::all(case, differs));
                let is_other = differs.filter(|answer| !stated.contains(answer)).count() > 0;
                assert_eq!(is_other, case.differs.is_some(), "{name}: differs");
            }
            false => {
                assert!(case.differs.is_none(), "{name}");
                http1::Answers::all(case);
            }
        }
    }
    let idle: Vec<_> = sentences
        .keys()
        .filter(|key| !cited.contains(key))
        .collect();
    assert!(idle.is_empty(), "cited by no case: {idle:?}");
}

/// The name, the bytes and the method of each case over HTTP/1.1 that is one request, without the request behind it.
pub(crate) fn single_requests(gate: &Gate) -> Vec<(String, Vec<u8>, String)> {
    let cases = case::http1().into_iter().filter_map(|case| {
        let [part] = &case.exchange[..] else {
            return None;
        };
        let part = part.strip_suffix("${get}").unwrap_or(part);
        let bytes = (!part.contains("${get}")).then(|| fill::Requests::of(gate, &case).fill(part));
        Some((case.name.clone(), bytes?, case.method.clone()))
    });
    cases.collect()
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    [case::http1(), case::http2()].concat()
}
