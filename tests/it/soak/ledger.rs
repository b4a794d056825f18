//! Records of the answers to clients and of the upstream's requests, and their checks.

use super::history::Summary;
use crate::harness::{Dice, Sealed, Seen, world};
use portvakt::clock::Stopwatch;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    time::Duration,
};

/// The prefix of the id of a call that the upstream lets the gateway give back.
pub(super) const GIVEN_BACK: &str = "given-back-";

/// Calls of a quota.
const ALLOWED: u32 = 4;

/// Payments that are repeated.
const RECENT: usize = 24;

/// The period in which a payment is repeated: its Date is valid for a minute.
const FRESH: Duration = Duration::from_secs(30);

/// The period in which a session is checked; the session lasts an hour.
const IN_SESSION: Duration = Duration::from_secs(50 * 60);

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A call without the PSU.
    Balances,
    /// A new payment; another client may have sent the same bytes earlier.
    Payment,
    /// The bytes of an earlier one.
    Replay,
    /// The account list of an unknown PSU.
    Sca,
    /// The completion of that SCA.
    Completion,
    /// The account list under the new session.
    Session,
    /// The same after a restart.
    Check,
    /// The balances of an account of the consent, or of another one, without the session.
    Consent,
}

/// An SCA whose completion was answered 200.
#[derive(Clone, Debug)]
pub(super) struct Completed {
    pub(super) psu: String,
    pub(super) session: String,
    /// The number of accounts of its consent.
    pub(super) accounts: u64,
    at: Stopwatch,
}

impl Completed {
    pub(super) fn new(psu: &str, session: &str, accounts: u64) -> Self {
        Self {
            psu: psu.into(),
            session: session.into(),
            accounts,
            at: Stopwatch::start(),
        }
    }

    /// The id of an account of this PSU: of the consent, if the number is less than that of its accounts.
    pub(super) fn account(&self, number: u64) -> String {
        format!("{}-{number}", self.psu)
    }

    pub(super) fn who(&self) -> Value {
        json!({ "tpp": world().both.id(), "psu_id": self.psu })
    }
}

/// All records.
#[derive(Default)]
pub(super) struct Ledger {
    answers: BTreeMap<(What, u16), u64>,
    broken: u64,
    starts: Vec<Duration>,
    not_started: u64,
    /// Answers 200 by target, and calls that the upstream received and did not have given back.
    read: HashMap<String, u32>,
    seen_reads: HashMap<String, u32>,
    given_back: u64,
    /// Answers 200 by request id, and the number of times that the upstream received each.
    paid: HashMap<String, u32>,
    seen_payments: HashMap<String, u32>,
    recent: VecDeque<(Stopwatch, Sealed)>,
    completed: Vec<Completed>,
    repeated: u64,
}

impl Ledger {
    pub(super) fn count(&mut self, what: What, status: u16) {
        *self.answers.entry((what, status)).or_default() += 1;
    }

    pub(super) fn broke_off(&mut self) {
        self.broken += 1;
    }

    pub(super) fn started(&mut self, took: Duration) {
        self.starts.push(took);
    }

    pub(super) fn not_started(&mut self) {
        self.not_started += 1;
    }

    pub(super) fn read(&mut self, target: String) {
        let calls = self.read.entry(target).or_default();
        *calls += 1;
        assert!(*calls <= ALLOWED, "a fifth call was answered");
    }

    pub(super) fn will_pay(&mut self, sealed: &Sealed) {
        self.recent.push_back((Stopwatch::start(), sealed.clone()));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    pub(super) fn earlier_payment(&self, dice: &mut Dice) -> Option<Sealed> {
        let count = u64::try_from(self.recent.len()).unwrap().max(1);
        let chosen = usize::try_from(dice.below(count)).unwrap();
        let (at, sealed) = self.recent.get(chosen)?;
        (at.elapsed() < FRESH).then(|| sealed.clone())
    }

    pub(super) fn paid(&mut self, id: String) {
        let times = self.paid.entry(id).or_default();
        *times += 1;
        assert_eq!(*times, 1, "a replay was answered as a first");
    }

    pub(super) fn complete(&mut self, completed: Completed, tries: u64) {
        self.completed.push(completed);
        self.repeated += u64::from(tries > 1);
    }

    /// The request ids of the payments that the upstream received.
    pub(super) fn seen_payments(&self) -> impl Iterator<Item = &str> {
        self.seen_payments.keys().map(String::as_str)
    }

    pub(super) fn completed(&self) -> &[Completed] {
        &self.completed
    }

    /// The last completions, and some earlier ones.
    pub(super) fn sample(&self, dice: &mut Dice) -> Vec<Completed> {
        let last = self.completed.iter().rev().take(4);
        let count = u64::try_from(self.completed.len()).unwrap().max(1);
        let earlier = (0..3).filter_map(|_| {
            let chosen = usize::try_from(dice.below(count)).unwrap();
            self.completed.get(chosen)
        });
        last.chain(earlier)
            .filter(|completed| completed.at.elapsed() < IN_SESSION)
            .cloned()
            .collect()
    }

    /// Asserts that the upstream's new requests are allowed, given all earlier ones.
    pub(super) fn saw(&mut self, seen: &Seen) {
        let id = seen.header("x-request-id").unwrap_or_default().to_owned();
        if seen.method == "POST" {
            let times = self.seen_payments.entry(id).or_default();
            *times += 1;
            assert_eq!(*times, 1, "the upstream saw a payment twice");
        } else if is_given_back(seen) {
            self.given_back += 1;
        } else if seen.target.ends_with("/balances") {
            let calls = self.seen_reads.entry(seen.target.clone()).or_default();
            *calls += 1;
            assert!(*calls <= ALLOWED, "the upstream saw a fifth call");
        } else {
            // SCA-5: a caller that reads accounts here has a session.
            assert_eq!(seen.header("gateway-sca"), Some("session"));
        }
    }

    /// Asserts that the upstream received every answered request.
    pub(super) fn check_the_whole(&self) {
        for (target, answered) in &self.read {
            assert!(answered <= &self.seen_reads[target], "{target}");
        }
        for id in self.paid.keys() {
            assert_eq!(self.seen_payments[id], 1);
        }
    }

    /// The calls that the upstream let the gateway give back.
    pub(super) fn given_back(&self) -> usize {
        usize::try_from(self.given_back).unwrap()
    }

    /// Asserts that the database committed what the upstream received, and each completion that was answered.
    pub(super) fn was_committed(&self, committed: &Summary) {
        let calls = self.seen_reads.values().sum::<u32>();
        assert!(committed.calls >= usize::try_from(calls).unwrap());
        assert!(committed.ids >= self.seen_payments.len());
        assert!(committed.tokens >= self.completed.len());
    }

    /// Whether each kind of call has been answered.
    pub(super) fn has_everything(&self) -> bool {
        !self.completed.is_empty() && !self.paid.is_empty() && !self.read.is_empty()
    }
}

/// Whether the upstream's answer to this call makes the gateway give the call back.
pub(super) fn is_given_back(seen: &Seen) -> bool {
    seen.header("x-request-id")
        .is_some_and(|id| id.starts_with(GIVEN_BACK))
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut starts = self.starts.clone();
        starts.sort_unstable();
        let full = self.seen_reads.values().filter(|calls| **calls == ALLOWED);
        writeln!(
            f,
            "starts: {}, p50 {:?}, longest {:?}, failed {}",
            starts.len(),
            starts[starts.len() / 2],
            starts[starts.len() - 1],
            self.not_started
        )?;
        for ((what, status), count) in &self.answers {
            writeln!(f, "{what:?} {status}: {count}")?;
        }
        writeln!(f, "requests without an answer: {}", self.broken)?;
        writeln!(
            f,
            "quotas: {}, four calls seen of {}, more of none; {} calls given back",
            self.seen_reads.len(),
            full.count(),
            self.given_back
        )?;
        writeln!(
            f,
            "payments: {} seen once, {} answered, none seen twice",
            self.seen_payments.len(),
            self.paid.len()
        )?;
        write!(
            f,
            "completions: {}, {} of them repeated until they were answered",
            self.completed.len(),
            self.repeated
        )
    }
}
