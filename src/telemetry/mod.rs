//! Takes records of requests; gives metrics and the access log.
//!
//! No label is looked up and no line is formatted on a request's path: handles are resolved when a snapshot is taken into use,
//! and a separate thread writes the lines. If that thread cannot keep up, lines are dropped and counted; requests never wait.

mod access;
mod edge;
mod facts;
mod metrics;
mod per_tpp;
mod registers;
mod reload;
mod revocation;
mod seals;
mod state;

pub use facts::{ConfigurationFacts, Finished};
pub use metrics::Handles;

use crate::{interface::operations::Catalogue, state::Counters};
use access::AccessLog;
use edge::EdgeMetrics;
use metrics::Metrics;
use reload::ReloadMetrics;
use std::time::Duration;

/// Metrics and access log of one gateway.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Metrics,
    edge: EdgeMetrics,
    reload: ReloadMetrics,
    access: Option<AccessLog>,
}

impl Telemetry {
    /// Creates the metrics, and an access log on standard output if `access` is set.
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

    /// Counts a host in an answer of the core that exists only in the bank's network (FWD-7).
    pub fn inner_address(&self, place: &str, done: &str) {
        self.metrics.inner_address(place, done);
    }

    /// Records a request that has ended.
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

    /// Flushes the access log. False on a timeout.
    pub fn flush(&self, within: Duration) -> bool {
        self.access
            .as_ref()
            .is_none_or(|access| access.flush(within))
    }

    /// Counts a request that the HTTP layer refused by itself (HTTP-7).
    pub fn refused_by_http(&self) {
        self.metrics.refused_by_http();
    }

    /// Counts an accepted connection.
    pub fn connection_opened(&self) {
        self.edge.connections.inc();
    }

    /// Counts a closed connection.
    pub fn connection_closed(&self) {
        self.edge.connections.dec();
    }

    /// Counts a TLS handshake by its outcome: `done`, `failed` or `too_slow`.
    pub fn handshake(&self, outcome: &'static str) {
        self.edge.handshake(outcome);
    }

    /// Counts a connection or an answer that the gateway aborted, or a request that was not sent to the core.
    pub fn cut(&self, cause: &'static str) {
        self.edge.cut(cause);
    }

    /// Counts a request sent to the core.
    pub fn core_has_request(&self) {
        self.edge.in_flight.inc();
    }

    /// Counts the end of a request sent to the core, with an answer or without.
    pub fn core_has_answered(&self) {
        self.edge.in_flight.dec();
    }

    /// Counts a connection that was closed because of `max_connections`.
    pub fn connection_turned_away(&self) {
        self.metrics.connection_turned_away();
    }

    /// Counts an attempt to bind a PSU-ID to a second TPP (SCA-19); `by` is `completion`, `bind` or `learning`.
    pub fn psu_bound_elsewhere(&self, by: &'static str) {
        self.metrics.psu_bound_elsewhere(by);
    }

    /// Counts a reload; `taken` is whether the configuration was taken into use.
    pub fn reloaded(&self, taken: bool) {
        self.reload.count(taken);
    }

    /// All metrics in Prometheus' text format, with the counters of the store and the facts of the current configuration.
    pub fn metrics(&self, state: &Counters, facts: &ConfigurationFacts<'_>) -> String {
        let mut text = self.metrics.text(state::families(state)) + &self.edge.text();
        // Writing to a string never fails.
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
