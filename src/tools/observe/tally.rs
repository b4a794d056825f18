//! The counts of an access log, and the report of them.
//!
//! Invariant: memory is bounded by the number of senders, and that is bounded.

use super::line::{LoggedRequest, Sender};
use crate::{admission::ObservableCheck, clock::Timestamp, interface::TppId, terminal::tame};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

/// The maximum number of senders that are counted by themselves. A bank has some tens of TPPs, but a log names shown certificates too.
const MAX_SENDERS: usize = 10_000;

/// The maximum number of those that only a certificate names: anybody can make one with any name, and they must not displace TPPs.
const MAX_SHOWN: usize = 1_000;

/// The maximum number of reasons of one sender: more than the gateway has.
const MAX_REASONS: usize = 256;

/// The maximum number of senders that the line of a check names, and of unreadable lines that are named.
const MAX_NAMED: u64 = 5;

/// The counts of all lines.
#[derive(Default)]
pub(super) struct Tally {
    requests: u64,
    refused: u64,
    would: u64,
    others: u64,
    unreadable: u64,
    /// The places of the first of the unreadable lines.
    places: Vec<String>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    senders: BTreeMap<Sender, OfSender>,
    /// The number of senders that only a certificate names.
    shown: usize,
}

/// The counts of one sender.
#[derive(Default)]
struct OfSender {
    requests: u64,
    /// Requests that passed although a check failed.
    would: u64,
    /// Those of them that were answered without an error.
    served: u64,
    reasons: BTreeMap<(ObservableCheck, String), Failed>,
    checks: BTreeMap<ObservableCheck, u64>,
}

/// The requests that failed a check for one reason.
#[derive(Default)]
struct Failed {
    all: u64,
    /// Those for which this is the first reason: the one for which the gateway would refuse.
    first: u64,
}

fn one_more(count: &mut u64) {
    *count = count.saturating_add(1);
}

impl Tally {
    /// The number of requests.
    pub(super) const fn requests(&self) -> u64 {
        self.requests
    }

    /// Whether no request would be refused that was not refused.
    pub(super) const fn is_clean(&self) -> bool {
        self.would == 0
    }

    /// Counts a line that is not a request.
    pub(super) const fn add_other(&mut self) {
        self.others = self.others.saturating_add(1);
    }

    /// Counts a line that may hold a request and cannot be read; `place` is its file and number.
    pub(super) fn add_unreadable(&mut self, place: impl FnOnce() -> String) {
        one_more(&mut self.unreadable);
        if self.unreadable <= MAX_NAMED {
            self.places.push(place());
        }
    }

    /// Whether every line was read. Otherwise the report calls no check safe.
    pub(super) const fn is_complete(&self) -> bool {
        self.unreadable == 0
    }

    /// Counts a request.
    pub(super) fn add(&mut self, request: LoggedRequest) {
        self.requests = self.requests.saturating_add(request.count);
        if let Some(at) = request.at {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
        let is_known = self.senders.contains_key(&request.sender);
        let is_shown = matches!(request.sender, Sender::Shown(_));
        let is_bounded = self.senders.len() < MAX_SENDERS && (!is_shown || self.shown < MAX_SHOWN);
        let sender = if is_known || is_bounded {
            if is_shown && !is_known {
                self.shown = self.shown.saturating_add(1);
            }
            request.sender.clone()
        } else {
            Sender::Other
        };
        let of = self.senders.entry(sender).or_default();
        of.requests = of.requests.saturating_add(request.count);
        if request.refused {
            one_more(&mut self.refused);
            return;
        }
        if request.observed.is_empty() {
            return;
        }
        one_more(&mut self.would);
        of.add(request);
    }

    /// Writes the report.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_summary(out)?;
        let failing = self.senders.iter().filter(|(_, of)| of.would > 0);
        for (sender, of) in failing {
            of.write(&shown(sender), out)?;
        }
        if self.would > 0 {
            writeln!(out)?;
        }
        for check in ObservableCheck::ALL {
            self.write_check(*check, out)?;
        }
        writeln!(out)?;
        self.write_section(out)
    }

    fn write_summary(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{}", counted(self.requests, "request"))?;
        if let (Some(first), Some(last)) = (self.first, self.last) {
            write!(out, " from {first} to {last}")?;
        }
        match self.others {
            0 => writeln!(out)?,
            others => writeln!(out, "; {}", counted(others, "other line"))?,
        }
        let was = if self.refused == 1 { "was" } else { "were" };
        writeln!(
            out,
            "{} {was} refused; {} more would be refused if every check refused\n",
            self.refused, self.would
        )?;
        self.write_unreadable(out)
    }

    fn write_unreadable(&self, out: &mut impl Write) -> io::Result<()> {
        if self.is_complete() {
            return Ok(());
        }
        writeln!(
            out,
            "This report is not complete: {} cannot be read ({}{}).\n\
             Give it every line as the gateway wrote it; from the journal: journalctl -u portvakt -o cat\n",
            counted(self.unreadable, "line"),
            self.places.join(", "),
            more(self.unreadable)
        )
    }

    fn write_check(&self, check: ObservableCheck, out: &mut impl Write) -> io::Result<()> {
        let failing = self.senders.iter();
        let failing = failing.filter_map(|(sender, of)| Some((sender, of.checks.get(&check)?)));
        let failing: Vec<_> = failing.collect();
        let name = check.name();
        if failing.is_empty() {
            let text = if self.is_complete() {
                "safe to enforce"
            } else {
                "not known: no line that was read fails it"
            };
            return writeln!(out, "{name:<16} {text}");
        }
        let count = failing
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(**count));
        let named: Vec<_> = failing
            .iter()
            .zip(0..MAX_NAMED)
            .map(|((sender, _), _)| shown(sender))
            .collect();
        let more = more(u64::try_from(failing.len()).unwrap_or(u64::MAX));
        let count = counted(count, "request");
        writeln!(
            out,
            "{name:<16} would refuse {count} that passed: {}{more}",
            named.join(", ")
        )
    }

    /// The section of the configuration that observes no more than this log needs: a TPP has its own set, and other senders share one.
    fn write_section(&self, out: &mut impl Write) -> io::Result<()> {
        if self.is_clean() {
            let end = if self.is_complete() {
                ": no section observe is needed."
            } else {
                "."
            };
            return writeln!(
                out,
                "None of these requests fails a check that is only observed{end}"
            );
        }
        // Senders beyond the bound may be any TPP, also one with its own set.
        let others = self.senders.get(&Sender::Other);
        let of_others: Vec<_> = others.iter().flat_map(|of| of.checks.keys()).collect();
        let mut shared = BTreeSet::new();
        let mut tpps = BTreeMap::<_, (_, BTreeSet<_>)>::new();
        for (sender, of) in self.senders.iter().filter(|(_, of)| of.would > 0) {
            let checks = of.checks.keys().copied();
            let (tpp, own): (_, Vec<_>) = match sender {
                Sender::Proven(tpp) => (tpp, checks.collect()),
                // A TPP's set applies to these checks also where only a certificate names the TPP.
                Sender::Shown(tpp) => {
                    let (own, others) = checks.partition(|check| check.is_of_shown());
                    shared.extend::<Vec<_>>(others);
                    (tpp, own)
                }
                Sender::Unknown | Sender::Other => {
                    shared.extend(checks);
                    continue;
                }
            };
            // A set is for exactly its TPP (FWD-6).
            match TppId::parse(tpp) {
                Some(id) if !own.is_empty() => {
                    let (_, set) = tpps.entry(id).or_insert((tpp, BTreeSet::new()));
                    set.extend(own);
                }
                _ => shared.extend(own),
            }
        }
        writeln!(
            out,
            "This section refuses none of the requests that passed:"
        )?;
        writeln!(out, "observe:\n  checks: [{}]", names(&shared))?;
        if !tpps.is_empty() {
            writeln!(out, "  tpps:")?;
        }
        for (tpp, mut own) in tpps.into_values() {
            own.extend(of_others.iter().copied());
            writeln!(out, "    {}: [{}]", key(tpp), names(&own))?;
        }
        Ok(())
    }
}

impl OfSender {
    fn add(&mut self, request: LoggedRequest) {
        one_more(&mut self.would);
        if request.served {
            one_more(&mut self.served);
        }
        let checks: BTreeSet<_> = request.observed.iter().map(|(check, _)| *check).collect();
        for check in checks {
            one_more(self.checks.entry(check).or_default());
        }
        for (index, fault) in request.observed.into_iter().enumerate() {
            if self.reasons.len() >= MAX_REASONS && !self.reasons.contains_key(&fault) {
                continue;
            }
            let failed = self.reasons.entry(fault).or_default();
            one_more(&mut failed.all);
            if index == 0 {
                one_more(&mut failed.first);
            }
        }
    }

    fn write(&self, sender: &str, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{sender}: {} of {} requests would be refused; the core served {} of them",
            self.would, self.requests, self.served
        )?;
        for ((check, reason), failed) in &self.reasons {
            writeln!(
                out,
                "  {:<14} {:<32} {:>4} failed, {} first",
                check.name(),
                tame(reason),
                failed.all,
                failed.first
            )?;
        }
        Ok(())
    }
}

/// A sender for a terminal. Its text is from a certificate.
fn shown(sender: &Sender) -> String {
    tame(&sender.to_string())
}

/// A TPP's identity as a key of YAML.
fn key(tpp: &str) -> String {
    let is_plain = tpp
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_plain {
        tpp.to_owned()
    } else {
        serde_json::Value::from(tame(tpp)).to_string()
    }
}

fn names(checks: &BTreeSet<ObservableCheck>) -> String {
    let names: Vec<_> = checks.iter().map(|check| check.name()).collect();
    names.join(", ")
}

/// The number of those that are not named.
fn more(all: u64) -> String {
    match all.saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
