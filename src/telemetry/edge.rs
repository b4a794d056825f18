//! Metrics of the callers' connections, and of the way to the core.

use super::{
    labels::{Cut, Done, Failure, Handshake, Place, Shed, Tls},
    registry::{Counters, Registrar},
    table,
    values::{
        AddressAction, AddressPlace, ConnectionUse, CutCause, FailureKind, HandshakeOutcome,
        Stranger, TlsVersion,
    },
};
use prometheus::{IntCounter, IntGauge};

/// Gauges and counters of the public listener and of the upstream client.
#[derive(Debug)]
pub(super) struct EdgeMetrics {
    pub(super) connections: IntGauge,
    pub(super) turned_away: IntCounter,
    handshakes: Counters<(Handshake, Tls)>,
    cuts: Counters<Cut>,
    shed: Counters<Shed>,
    pub(super) upstream_in_flight: IntGauge,
    read_ahead: IntGauge,
    pub(super) upstream_idle: IntGauge,
    /// Connections that are new, and those from the pool.
    connected: [IntCounter; 2],
    upstream_failures: Counters<Failure>,
    pub(super) ejections: IntCounter,
    inner_addresses: Counters<(Place, Done)>,
}

impl EdgeMetrics {
    pub(super) fn new(registrar: &Registrar) -> Self {
        let connected = registrar.counters(&table::UPSTREAM_CONNECTIONS);
        Self {
            connections: registrar.gauge(&table::OPEN_CONNECTIONS),
            turned_away: registrar.counter(&table::TURNED_AWAY),
            handshakes: registrar.counters(&table::HANDSHAKES),
            cuts: registrar.counters(&table::CUTS),
            shed: registrar.counters(&table::SHED),
            upstream_in_flight: registrar.gauge(&table::UPSTREAM_IN_FLIGHT),
            read_ahead: registrar.gauge(&table::READ_AHEAD),
            upstream_idle: registrar.gauge(&table::UPSTREAM_IDLE),
            connected: [ConnectionUse::New, ConnectionUse::Reused].map(|kind| connected.of(kind)),
            upstream_failures: registrar.counters(&table::UPSTREAM_FAILURES),
            ejections: registrar.counter(&table::EJECTIONS),
            inner_addresses: registrar.counters(&table::INNER_ADDRESSES),
        }
    }

    pub(super) fn handshake(&self, outcome: HandshakeOutcome, version: Option<TlsVersion>) {
        self.handshakes.of((outcome, version)).inc();
    }

    pub(super) fn cut(&self, cause: CutCause) {
        self.cuts.of(cause).inc();
    }

    pub(super) fn shed(&self, who: Stranger) {
        self.shed.of(who).inc();
    }

    pub(super) fn read_ahead(&self, bytes: usize) {
        self.read_ahead
            .add(i64::try_from(bytes).unwrap_or_default());
    }

    pub(super) fn taken(&self, bytes: usize) {
        self.read_ahead
            .sub(i64::try_from(bytes).unwrap_or_default());
    }

    pub(super) fn connected_upstream(&self, reused: bool) {
        let [new, from_pool] = &self.connected;
        let counter = if reused { from_pool } else { new };
        counter.inc();
    }

    pub(super) fn upstream_failed(&self, kind: FailureKind) {
        self.upstream_failures.of(kind).inc();
    }

    pub(super) fn inner_address(&self, place: AddressPlace, done: AddressAction) {
        self.inner_addresses.of((place, done)).inc();
    }
}
