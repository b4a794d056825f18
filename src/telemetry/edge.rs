//! Metrics of connections, their ends, and pending requests at the core.

use prometheus::{Encoder, IntCounterVec, IntGauge, Opts, Registry, TextEncoder, core::Collector};

/// Gauges and counters of the public listener and of the upstream client.
#[derive(Debug)]
pub(super) struct EdgeMetrics {
    registry: Registry,
    pub(super) connections: IntGauge,
    pub(super) in_flight: IntGauge,
    handshakes: IntCounterVec,
    cut: IntCounterVec,
}

impl EdgeMetrics {
    pub(super) fn new() -> Self {
        let metrics = Self {
            registry: Registry::new(),
            connections: gauge(
                "portvakt_open_connections",
                "Connections of clients that are open, handshakes included.",
            ),
            in_flight: gauge(
                "portvakt_upstream_in_flight",
                "Requests that the core has and has not answered.",
            ),
            handshakes: counters(
                "portvakt_handshakes_total",
                "TLS handshakes by how they ended.",
                "outcome",
            ),
            cut: counters(
                "portvakt_cut_total",
                "Connections and answers that the gateway ended, and requests that it held back from the core, by the cause.",
                "cause",
            ),
        };
        let all: [Box<dyn Collector>; 4] = [
            Box::new(metrics.connections.clone()),
            Box::new(metrics.in_flight.clone()),
            Box::new(metrics.handshakes.clone()),
            Box::new(metrics.cut.clone()),
        ];
        for collector in all {
            if let Err(error) = metrics.registry.register(collector) {
                tracing::error!(%error, "a metric cannot be registered");
            }
        }
        metrics
    }

    pub(super) fn handshake(&self, outcome: &str) {
        self.handshakes.with_label_values(&[outcome]).inc();
    }

    pub(super) fn cut(&self, cause: &str) {
        self.cut.with_label_values(&[cause]).inc();
    }

    /// The metrics in Prometheus' text format.
    pub(super) fn text(&self) -> String {
        let mut text = Vec::new();
        let encoded = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        match encoded {
            Ok(()) => String::from_utf8(text).unwrap_or_default(),
            Err(_) => String::new(),
        }
    }
}

#[allow(
    clippy::expect_used,
    reason = "the names are constants, and every test starts with them"
)]
fn gauge(name: &str, help: &str) -> IntGauge {
    IntGauge::new(name, help).expect("a valid metric")
}

#[allow(
    clippy::expect_used,
    reason = "the names are constants, and every test starts with them"
)]
fn counters(name: &str, help: &str, label: &str) -> IntCounterVec {
    IntCounterVec::new(Opts::new(name, help), &[label]).expect("a valid metric")
}
