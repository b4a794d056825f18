//! Takes records of requests; gives metrics and the access log.
//!
//! Nothing here looks up a label or formats a line on a request's own time: handles are resolved when a snapshot is
//! taken into use, lines are written by a thread of their own, and where it cannot keep up, lines are dropped and
//! counted rather than requests held up.

mod access;
mod edge;
mod metrics;
mod per_tpp;
mod registers;
mod reload;
mod revocation;
mod seals;
mod state;

pub use metrics::Handles;

use crate::{
    admission::{Outcome, Record},
    clock::Timestamp,
    interface::{headers::RequestId, operations::Catalogue},
    state::Counters,
    trust::{Registers, VerifiedCertificates, revocation::Counters as RevocationCounters},
};
use access::AccessLog;
use edge::EdgeMetrics;
use metrics::Metrics;
use reload::ReloadMetrics;
use std::time::Duration;

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
    pub request_id: Option<&'a RequestId>,
    /// What only the operator reads.
    pub operator: Option<&'a str>,
    /// From choosing the upstream to the head of its answer.
    pub upstream: Option<Duration>,
    /// When it ended.
    pub at: Timestamp,
}

/// What metrics show of the configuration in use.
#[derive(Debug)]
pub struct ConfigurationFacts<'a> {
    /// When it was taken into use.
    pub since: Timestamp,
    /// When certificates end: the listener's own, and of each set of anchors the one that ends first.
    pub ends: Vec<(&'static str, Timestamp)>,
    /// The certificates of TPPs by which a signature has verified.
    pub seen: VerifiedCertificates,
    /// The registers; none where they are not checked.
    pub registers: Option<&'a Registers>,
    /// The counters of revocation; none where it is not checked.
    pub revocation: Option<&'a RevocationCounters>,
    /// The number of tokens that each key of SCA links has sealed, by the key's id.
    pub seals: Vec<(String, u64)>,
}

/// Metrics and access log of one gateway.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Metrics,
    edge: EdgeMetrics,
    reload: ReloadMetrics,
    access: Option<AccessLog>,
}

impl Telemetry {
    /// With or without an access log on standard output.
    pub fn new(access: bool) -> Self {
        Self {
            metrics: Metrics::new(),
            edge: EdgeMetrics::new(),
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

    /// A connection of a client was accepted.
    pub fn connection_opened(&self) {
        self.edge.connections.inc();
    }

    /// A connection of a client is closed.
    pub fn connection_closed(&self) {
        self.edge.connections.dec();
    }

    /// Counts a TLS handshake by its outcome: `done`, `failed` or `too_slow`.
    pub fn handshake(&self, outcome: &'static str) {
        self.edge.handshake(outcome);
    }

    /// Counts a connection or an answer that the gateway ended, or a request that it held back from the core.
    pub fn cut(&self, cause: &'static str) {
        self.edge.cut(cause);
    }

    /// A request goes to the core.
    pub fn core_has_request(&self) {
        self.edge.in_flight.inc();
    }

    /// The core has answered it, or never will.
    pub fn core_has_answered(&self) {
        self.edge.in_flight.dec();
    }

    /// Counts a connection beyond the limit.
    pub fn connection_turned_away(&self) {
        self.metrics.connection_turned_away();
    }

    /// Counts a PSU-ID that was to be bound to a second TPP (SCA-19): by a `completion`, by `bind`, by `learning`.
    pub fn psu_bound_elsewhere(&self, by: &'static str) {
        self.metrics.psu_bound_elsewhere(by);
    }

    /// Counts a reload, and whether the configuration was taken into use.
    pub fn reloaded(&self, taken: bool) {
        self.reload.count(taken);
    }

    /// Everything in Prometheus' text format, with the counters of the store and the facts of the configuration in use.
    pub fn metrics(&self, state: &Counters, facts: &ConfigurationFacts<'_>) -> String {
        let mut text = self.metrics.text(state::families(state)) + &self.edge.text();
        // Nothing that is written to a string fails.
        let _ = self.write_configuration(facts, &mut text);
        text
    }

    fn write_configuration(
        &self,
        facts: &ConfigurationFacts<'_>,
        out: &mut String,
    ) -> std::fmt::Result {
        if let Some(registers) = facts.registers {
            registers::write(registers, out)?;
        }
        if let Some(counters) = facts.revocation {
            revocation::write(counters, out)?;
        }
        self.reload.write(out)?;
        reload::write_facts(facts, out)?;
        seals::write(&facts.seals, out)
    }
}
