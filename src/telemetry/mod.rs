//! Takes records of requests; gives metrics and the access log.
//!
//! Nothing here looks up a label or formats a line on a request's own time: handles are resolved when a snapshot is
//! taken into use, lines are written by a thread of their own, and where it cannot keep up, lines are dropped and
//! counted rather than requests held up.

mod access;
mod metrics;
mod per_tpp;
mod registers;
mod reload;
mod revocation;
mod seals;
mod state;

pub use metrics::Handles;
pub use seals::token_seals;

use crate::{
    admission::{Outcome, Record},
    clock::Timestamp,
    interface::operations::Catalogue,
    state::Counters,
    trust::{Registers, Seen, revocation::Counters as RevocationCounters},
};
use access::AccessLog;
use http::HeaderValue;
use metrics::Metrics;
use registers::RegisterMetrics;
use reload::ReloadMetrics;
use revocation::RevocationMetrics;
use std::{sync::Arc, time::Duration};

/// A request that has ended.
#[derive(Debug)]
pub struct Finished<'a> {
    /// What was judged.
    pub record: &'a Record,
    /// How it ended.
    pub outcome: Outcome,
    /// The status that was sent, where one was.
    pub status: Option<u16>,
    /// X-Request-ID, where it is well-formed.
    pub request_id: Option<&'a HeaderValue>,
    /// What only the operator reads.
    pub operator: Option<&'a str>,
    /// From choosing the upstream to the head of its answer.
    pub upstream: Option<Duration>,
    /// When it ended.
    pub at: Timestamp,
}

/// Metrics and access log of one gateway.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Metrics,
    registers: RegisterMetrics,
    revocation: RevocationMetrics,
    reload: ReloadMetrics,
    access: Option<AccessLog>,
}

impl Telemetry {
    /// With or without an access log on standard output.
    pub fn new(access: bool) -> Self {
        Self {
            metrics: Metrics::new(),
            registers: RegisterMetrics::default(),
            revocation: RevocationMetrics::default(),
            reload: ReloadMetrics::default(),
            access: access.then(AccessLog::to_standard_output),
        }
    }

    /// The handles for a catalogue's operations.
    pub fn handles(&self, catalogue: &Catalogue) -> Handles {
        self.metrics.handles(catalogue)
    }

    /// An answer of the core named a host that only the bank's network has (FWD-7).
    pub fn inner_address(&self, place: &str, done: &str) {
        self.metrics.inner_address(place, done);
    }

    /// Takes a request that has ended.
    pub fn take(&self, handles: &Handles, finished: Finished<'_>) {
        handles.count(&finished);
        self.metrics.count_admitted(finished.record);
        self.metrics.count_tolerated(finished.record);
        if let Some(access) = &self.access
            && !access.write(&finished)
        {
            self.metrics.line_dropped();
        }
    }

    /// Writes the lines of the access log that wait. False where that took too long.
    pub fn flush(&self, within: Duration) -> bool {
        self.access
            .as_ref()
            .is_none_or(|access| access.flush(within))
    }

    /// Counts a request that the HTTP layer refused by itself (HTTP-7).
    pub fn refused_by_http(&self) {
        self.metrics.refused_by_http();
    }

    /// Counts a connection beyond the limit.
    pub fn connection_turned_away(&self) {
        self.metrics.connection_turned_away();
    }

    /// Counts a PSU-ID that was to be bound to a second TPP (SCA-19): by a `completion`, by `bind`, by `learning`.
    pub fn psu_bound_elsewhere(&self, by: &'static str) {
        self.metrics.psu_bound_elsewhere(by);
    }

    /// Shows the registers that are in use.
    pub fn watch_registers(&self, registers: &Arc<Registers>) {
        self.registers.watch(registers);
    }

    /// Shows the counters of the revocation that is in use; none where it is not checked.
    pub fn watch_revocation(&self, counters: Option<&Arc<RevocationCounters>>) {
        self.revocation.watch(counters);
    }

    /// Counts a reload, and whether the configuration was taken into use.
    pub fn reloaded(&self, taken: bool) {
        self.reload.count(taken);
    }

    /// From now on this configuration is in use: when what it names ends, by what it is, and the TPP certificates that are seen.
    pub fn took_into_use(&self, at: Timestamp, ends: Vec<(&'static str, Timestamp)>, seen: Seen) {
        self.reload.took_into_use(at, ends, seen);
    }

    /// Everything, in Prometheus' text format, with what the store counted.
    pub fn metrics(&self, state: &Counters) -> String {
        self.metrics.text(state::families(state))
            + &self.registers.text()
            + &self.revocation.text()
            + &self.reload.text()
    }
}
