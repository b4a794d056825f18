//! The state that the tasks of a store share.

use super::{
    connect::{Connector, Link},
    cursors::Sweep,
    freshness::Freshness,
    settings::PostgresSettings,
};
use crate::state::{Counters, Unavailable, lock::lock, process::Process};
use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

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
    pub(super) fault: Mutex<Option<String>>,
    /// The reason why the last transaction of a worker failed; `None` if it succeeded. Proofs have a connection and a table of their own.
    pub(super) write_fault: Mutex<Option<String>>,
    /// The reason why commits do not wait for a standby; `None` if they do.
    pub(super) unsafe_commits: Mutex<Option<String>>,
    pub(super) counters: Mutex<Counters>,
    pub(super) sweep: Mutex<Sweep>,
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
        self.connector.fence.check_state().map_err(Unavailable)?;
        for fault in [&self.fault, &self.write_fault] {
            if let Some(fault) = &*lock(fault) {
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
            Some(reason) => Err(Unavailable(format!(
                "state.postgres.require_sync: {reason}"
            ))),
        }
    }
}

/// Keeps a fault, and logs its begin and its end.
fn keep(last: &Mutex<Option<String>>, fault: Option<String>, [begins, ends]: [&str; 2]) {
    let mut last = lock(last);
    match (&*last, &fault) {
        (None, Some(fault)) => tracing::error!(fault, "{begins}"),
        (Some(_), None) => tracing::info!("{ends}"),
        _ => {}
    }
    *last = fault;
}
