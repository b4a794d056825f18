//! Takes records of requests; gives metrics and the access log.
//!
//! No label is looked up and no line is formatted on a request's path: handles are resolved when a snapshot is taken into use,
//! and a separate thread writes the lines. If that thread cannot keep up, lines are dropped and counted; requests never wait.

// The table of metrics, which docs/metrics.md is made from.
#[cfg(test)]
mod document;
mod labels;
#[cfg(test)]
mod series;
mod table;
mod values;

// Making metrics, and writing their samples.
mod histogram;
mod registry;
mod samples;

// The facts that telemetry takes.
mod facts;

// Whose evidence it is, and the share of each.
mod noise;
mod notices;
mod reserve;
mod sampling;
mod shares;
mod subject;

// Metrics that count by themselves.
mod consumers;
mod edge;
mod events;
mod handles;
mod per_tpp;
mod reload;
mod requests;

// What operators look at.
mod connections;
mod look;
mod top;

// Metrics that a scrape reads.
mod disks;
mod expiring;
mod hsm;
mod logs;
mod process;
mod registers;
mod revocation;
mod seals;
mod state;
mod upstreams;

// Logs: a stream of lines and its destination, the lines of requests, the lines of events; records of requests for the audit.
mod access;
mod audited;
mod event_log;
mod left_out;
mod log_level;
mod object;
mod outputs;
mod sink;
mod stream;
// Spans of requests, pushed to a collector.
mod traces;
// The comparison of lines with docs/logs.md.
#[cfg(test)]
pub(crate) mod schema;

pub use access::AccessLog;
pub use connections::{Connected, ConnectionState, SeenConnection, SeenConnections};
pub use disks::WrittenFolders;
pub use event_log::{configured_level, flush_events, write_events};
pub use facts::{ConfigurationFacts, CoreTook, Finished, HttpFacts, Scrape};
pub use handles::Handles;
pub use log_level::{OwnModule, raise_level, restore_level};
pub use notices::CallerEvent;
pub use process::COMMIT;
pub use sink::{LogFault, try_log};
pub use stream::LAST_WITHIN;
pub use subject::Subject;
pub use top::{Count, MINUTES, TopCounts, keyed};
pub use traces::{TraceFault, Traces};
pub use upstreams::{CoreEndpoint, EndpointFacts};
pub use values::{
    AddressAction, AddressPlace, BindingSource, CutCause, Degradation, FailureKind, FolderUse,
    HandshakeOutcome, HttpVersion, LineKind, PollResult, Psd2Service, ReadinessCondition,
    RegistrationEvent, ScaEvent, Stranger, TlsVersion, UpgradeResult,
};

use crate::{
    audit::{Audit, AuditEvent},
    clock::{Clock, Timestamp},
    expiring::Finding,
    interface::{Reason, operations::Catalogue},
    write_fault::WriteFault,
};
use audited::RefusalRecords;
use connections::Connections;
use consumers::ConsumerMetrics;
use edge::EdgeMetrics;
use events::EventMetrics;
use notices::Notices;
use outputs::Outputs;
use registry::Registrar;
use reload::ReloadMetrics;
use requests::RequestMetrics;
use std::{net::IpAddr, time::Duration};
use top::Top;

/// Metrics and access log of one gateway.
#[derive(Debug)]
pub struct Telemetry {
    registrar: Registrar,
    requests: RequestMetrics,
    edge: EdgeMetrics,
    events: EventMetrics,
    /// The consumers of events (CTL-3).
    pub(crate) consumers: ConsumerMetrics,
    reload: ReloadMetrics,
    since: Timestamp,
    outputs: Outputs,
    audit: Audit,
    refusals: RefusalRecords,
    /// The events that callers cause, and the lines without a request of theirs.
    notices: Notices,
    lines: Notices,
    folders: WrittenFolders,
    top: Top,
    connections: Connections,
}

/// What was left out is said before the audit and the logs are closed.
impl Drop for Telemetry {
    fn drop(&mut self) {
        self.say_left_out(true);
    }
}

impl Telemetry {
    /// Creates the metrics. Each request has a line in `access`, if there is one.
    pub fn new(access: Option<AccessLog>) -> Self {
        // Each gateway has its own registry, so that two in one process do not share counters.
        let registrar = Registrar::default();
        // The kernel's clock, also where the gateway's stands still: this is about the process.
        let since = Clock::System.now();
        let events = EventMetrics::new(&registrar);
        let consumers = ConsumerMetrics::new(&registrar);
        Self {
            requests: RequestMetrics::new(&registrar),
            edge: EdgeMetrics::new(&registrar),
            reload: ReloadMetrics::new(&registrar, since),
            outputs: Outputs {
                access,
                traces: None,
            },
            audit: Audit::default(),
            refusals: RefusalRecords::default(),
            notices: Notices::default(),
            lines: Notices::default(),
            folders: WrittenFolders::default(),
            top: Top::new(),
            connections: Connections::default(),
            events,
            consumers,
            registrar,
            since,
        }
    }

    /// Keeps records of requests in this audit.
    #[must_use]
    pub fn with_audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Pushes the spans of requests to a collector.
    #[must_use]
    pub fn with_traces(mut self, traces: Option<Traces>) -> Self {
        self.outputs.traces = traces;
        self
    }

    /// Shows how much place the disks of these folders have.
    #[must_use]
    pub fn with_folders(mut self, folders: WrittenFolders) -> Self {
        self.folders = folders;
        self
    }

    /// The disks that are full, or nearly.
    pub fn full_disks(&self) -> Vec<Finding> {
        self.folders.findings()
    }

    /// The audit.
    pub const fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The handles for a catalogue's operations.
    pub fn handles(&self, catalogue: &Catalogue) -> Handles {
        self.requests.handles(catalogue)
    }

    /// Counts a host in an answer of the core that exists only in the bank's network (FWD-7).
    pub fn inner_address(&self, place: AddressPlace, done: AddressAction) {
        self.edge.inner_address(place, done);
    }

    /// Counts a request whose head was read.
    pub fn request_begun(&self) {
        self.requests.in_flight.inc();
    }

    /// Records a request that has ended.
    pub fn take(&self, handles: &Handles, finished: Finished<'_>) {
        self.requests.count(handles, &finished);
        self.events.count_quota(&finished);
        self.top.ended(&finished);
        if self.audit.is_on() {
            self.refusals.record(&finished, &self.audit);
        }
        self.outputs.write(&finished);
        // Whoever sees no request in flight sees everything that was counted of it.
        self.requests.in_flight.dec();
    }

    /// Records a refused call of the control listener in the audit, a bounded number in each second.
    pub fn refused_call(&self, caller: Option<IpAddr>, event: impl FnOnce() -> AuditEvent) {
        self.refusals.record_call(&self.audit, caller, event);
    }

    /// Opens the files of the logs by their names again, after a tool has moved them. Waits for each writer, at most [`LAST_WITHIN`].
    /// Returns the logs that were not opened, with the reason.
    pub fn reopen_logs(&self) -> Vec<(&'static str, String)> {
        let events = event_log::reopen(LAST_WITHIN);
        let all = [("access log", self.outputs.reopen()), ("event log", events)];
        all.into_iter()
            .filter_map(|(log, reopened)| Some((log, reopened.err()?)))
            .collect()
    }

    /// Why the last lines of the access log, and of the log of events, could not be written.
    pub fn log_faults(&self) -> [Option<WriteFault>; 2] {
        [self.outputs.fault(), event_log::fault()]
    }

    /// Flushes the audit, and then the access log with the traces, each `within` this time. False on a timeout of the audit or the log.
    pub fn flush(&self, within: Duration) -> bool {
        let is_audited = self.audit.flush(within);
        self.outputs.flush(within) && is_audited
    }

    /// Counts a request that the HTTP layer refused by itself, and that gets no line (ERR-8).
    pub fn refused_by_http(&self, reason: Reason) {
        self.requests.refused_by_http(reason);
    }

    /// Counts a TLS handshake by its outcome, and the version of TLS, if there is a connection.
    pub fn handshake(&self, outcome: HandshakeOutcome, version: Option<TlsVersion>) {
        self.edge.handshake(outcome, version);
    }

    /// Counts a connection or an answer that the gateway aborted, or a request that was not sent to the core.
    pub fn cut(&self, cause: CutCause) {
        self.edge.cut(cause);
    }

    /// Counts a stranger that was refused because of overload.
    pub fn shed(&self, who: Stranger) {
        self.edge.shed(who);
    }

    /// Counts a request sent to the core.
    pub fn core_has_request(&self) {
        self.edge.upstream_in_flight.inc();
    }

    /// Counts the end of a request sent to the core, with an answer or without.
    pub fn core_has_answered(&self) {
        self.edge.upstream_in_flight.dec();
    }

    /// Counts bytes of an answer that are read before its slow caller takes them.
    pub fn read_ahead(&self, bytes: usize) {
        self.edge.read_ahead(bytes);
    }

    /// Ends the count of such bytes.
    pub fn taken(&self, bytes: usize) {
        self.edge.taken(bytes);
    }

    /// Counts a connection to the core on which a request is sent.
    pub fn connected_upstream(&self, reused: bool) {
        self.edge.connected_upstream(reused);
    }

    /// Adds to the number of idle connections to the core.
    pub fn upstream_idle(&self, change: i64) {
        self.edge.upstream_idle.add(change);
    }

    /// Counts a failed attempt to get an answer of the core.
    pub fn upstream_failed(&self, kind: FailureKind) {
        self.edge.upstream_failed(kind);
    }

    /// Counts an endpoint of the core that was ejected.
    pub fn endpoint_ejected(&self) {
        self.edge.ejections.inc();
    }

    /// Counts a connection that was closed because of `max_connections`.
    pub fn connection_turned_away(&self) {
        self.edge.turned_away.inc();
    }

    /// Counts an attempt to bind a PSU-ID to a second TPP (SCA-19).
    pub fn psu_bound_elsewhere(&self, by: BindingSource) {
        self.events.bound_elsewhere(by);
    }

    /// Counts a call that was given back to its quota (QUO-5).
    pub fn quota_given_back(&self) {
        self.events.quota_given_back();
    }

    /// Counts an event of an SCA, but for those that are counted elsewhere: links that are made, and those that are read.
    pub fn sca(&self, event: ScaEvent) {
        self.events.sca(event);
    }

    /// Counts a change in who may call (CRT-14).
    pub fn registration(&self, event: RegistrationEvent) {
        self.events.registration(event);
    }

    /// Counts an SCA as started when the bank's service reads its link for the first time; `token` is the id of the link's token.
    pub fn sca_read(&self, token: [u8; 16]) {
        self.events.sca_read(token);
    }

    /// Counts a reload: `taken` is the number of changed keys that need a restart, if the configuration was taken into use.
    pub fn reloaded(&self, taken: Option<usize>, at: Timestamp) {
        self.reload.count(taken, at);
    }

    /// Counts an upgrade.
    pub fn upgraded(&self, result: UpgradeResult) {
        self.events.upgraded(result);
    }

    /// All metrics in Prometheus' text format.
    pub fn metrics(&self, scrape: &Scrape<'_>) -> String {
        let Scrape {
            now,
            state,
            not_ready,
            degraded,
            configuration,
        } = scrape;
        let mut families = self.registrar.gather();
        self.events.add(configuration.sca_links, &mut families);
        let [access, spans] = self.outputs.counts();
        logs::add(
            [access, event_log::counts(), spans],
            self.audit.counts(),
            &mut families,
        );
        let [access, events] = self.log_faults();
        let audit = self.audit.fault().map(|(_, fault)| fault);
        logs::add_faults([access, events, audit], &mut families);
        state::add(state, *now, &mut families);
        hsm::add(&mut families);
        self.consumers.add(*now, &mut families);
        if let Some(registers) = configuration.registers {
            registers::add(registers, *now, &mut families);
        }
        if let Some(revocation) = configuration.revocation {
            revocation::add(revocation, &mut families);
        }
        reload::add(configuration, &mut families);
        seals::add(&configuration.seals, &mut families);
        upstreams::add(&configuration.endpoints, &mut families);
        disks::add(&self.folders, &mut families);
        let disks = self.folders.findings();
        expiring::add(configuration.findings.iter().chain(&disks), &mut families);
        process::add(self.since, not_ready, degraded, &mut families);
        families.text()
    }
}
