//! The state that the tasks of a store share.

use super::{
    connect::{Connector, Link},
    settings::PostgresSettings,
    standby,
};
use crate::{
    Counters, Unavailable, freshness::Freshness, lock::lock, process::Process, sweep::Cursors,
};
use portvakt_base::clock::Stopwatch;
use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};
use uuid::Uuid;

/// The least time between two lines of the log about one outage: its causes may alternate several times a second.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Shared by the tasks.
pub(super) struct Shared {
    pub(super) settings: PostgresSettings,
    pub(super) connector: Connector,
    pub(super) process: Arc<Process>,
    pub(super) freshness: Arc<Freshness>,
    /// The latest time in the database, and the number of accepted clocks.
    pub(super) kept_latest: AtomicU64,
    pub(super) accepted: AtomicU64,
    /// The connection that looks PSUs up.
    pub(super) reader: Mutex<Option<Arc<Link>>>,
    /// The reason why the last proof failed that the database commits; `None` if it succeeded.
    pub(super) fault: Mutex<Outage>,
    /// The reason why the last transaction of a worker failed; `None` if it succeeded. Proofs have a connection and a table of their own.
    pub(super) write_fault: Mutex<Outage>,
    /// The reason why commits do not wait for a standby; `None` if they do.
    pub(super) unsafe_commits: Mutex<Option<String>>,
    pub(super) counters: Mutex<Counters>,
    /// Housekeeping, with the first keys to visit.
    pub(super) cursors: Mutex<Cursors<Uuid>>,
}

impl Shared {
    /// Counts a transaction, and keeps its fault.
    pub(super) fn note(&self, changes: usize, took: Duration, outcome: &Result<(), Unavailable>) {
        let mut counters = lock(&self.counters);
        counters.count(u32::try_from(changes).unwrap_or(u32::MAX), took);
        if outcome.is_err() {
            counters.failed += 1;
        }
        drop(counters);
        self.set_write_fault(outcome.as_ref().err().map(|fault| fault.0.clone()));
    }

    /// Keeps the fault of the last proof, or its absence.
    pub(super) fn set_fault(&self, fault: Option<String>) {
        let said = ["the database is not heard", "the database is heard again"];
        keep(&self.fault, fault, said);
    }

    /// Keeps the fault of the last transaction of a worker, or its absence.
    pub(super) fn set_write_fault(&self, fault: Option<String>) {
        let said = ["state cannot be written", "state is written again"];
        keep(&self.write_fault, fault, said);
    }

    /// Whether changes succeed, by the last attempts.
    ///
    /// # Errors
    /// The reason for the operator.
    pub(super) fn health(&self) -> Result<(), Unavailable> {
        self.connector.check_state().map_err(Unavailable)?;
        for fault in [&self.fault, &self.write_fault] {
            if let Some(fault) = &lock(fault).fault {
                return Err(Unavailable(fault.clone()));
            }
        }
        self.require_sync()
    }

    /// Keeps whether commits wait for a synchronous standby.
    pub(super) fn set_unsafe_commits(&self, reason: Option<String>) {
        let mut last = lock(&self.unsafe_commits);
        if *last != reason {
            match &reason {
                Some(reason) => tracing::warn!(reason, "commits do not wait for a standby"),
                None => tracing::info!("commits wait for a standby"),
            }
        }
        *last = reason;
    }

    /// Whether changes are refused because commits do not wait for a standby.
    ///
    /// # Errors
    /// The reason for the operator.
    pub(super) fn require_sync(&self) -> Result<(), Unavailable> {
        if !self.settings.require_sync {
            return Ok(());
        }
        match &*lock(&self.unsafe_commits) {
            None => Ok(()),
            Some(reason) => Err(Unavailable(standby::refusal(reason))),
        }
    }
}

/// A fault that lasts.
#[derive(Default)]
pub(super) struct Outage {
    /// The present fault; `None` if there is none.
    pub(super) fault: Option<String>,
    /// The last logged fault of the outage, and the time since then.
    logged: Option<(String, Stopwatch)>,
}

/// Keeps a fault. Logs its begin, its end, and another cause.
fn keep(outage: &Mutex<Outage>, fault: Option<String>, [begins, ends]: [&str; 2]) {
    let mut outage = lock(outage);
    let logged = outage.logged.as_ref();
    match &fault {
        Some(fault)
            if is_news(
                logged.map(|(last, ago)| (last.as_str(), ago.elapsed())),
                fault,
            ) =>
        {
            tracing::error!(fault, "{begins}");
            outage.logged = Some((fault.clone(), Stopwatch::start()));
        }
        None if outage.logged.take().is_some() => tracing::info!("{ends}"),
        _ => {}
    }
    outage.fault = fault;
}

/// Whether a fault is logged, after the last one that was, that long ago.
fn is_news(logged: Option<(&str, Duration)>, fault: &str) -> bool {
    logged.is_none_or(|(last, ago)| last != fault && ago >= BETWEEN_LINES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_cause_of_an_outage_is_logged_but_not_without_end() {
        let short = Duration::from_secs(1);
        for (logged, fault, expected) in [
            (None, "connection refused", true),
            (Some(("connection refused", short)), "restored", false),
            (
                Some(("connection refused", BETWEEN_LINES)),
                "restored",
                true,
            ),
            (Some(("restored", BETWEEN_LINES)), "restored", false),
        ] {
            assert_eq!(is_news(logged, fault), expected, "{logged:?}");
        }
    }

    #[test]
    fn an_outage_has_its_present_cause() {
        let outage = Mutex::default();
        for (fault, logged) in [
            (Some("connection refused"), Some("connection refused")),
            (Some("restored"), Some("connection refused")),
            (None, None),
        ] {
            keep(&outage, fault.map(str::to_owned), ["begins", "ends"]);
            let outage = lock(&outage);
            assert_eq!(outage.fault.as_deref(), fault);
            let last = outage.logged.as_ref().map(|(last, _)| last.as_str());
            assert_eq!(last, logged);
        }
    }
}
