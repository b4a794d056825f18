//! How old the configuration in use is, and when what it trusts ends.

use crate::clock::Timestamp;
use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
};

/// Counts since the start, and moments in seconds of Unix time; 0 where there is none.
#[derive(Debug, Default)]
pub(super) struct ReloadMetrics {
    taken: AtomicU64,
    refused: AtomicU64,
    since: AtomicU64,
    anchors: AtomicU64,
    own: AtomicU64,
}

impl ReloadMetrics {
    pub(super) fn count(&self, taken: bool) {
        let counter = if taken { &self.taken } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn took_into_use(
        &self,
        at: Timestamp,
        anchors: Option<Timestamp>,
        own: Option<Timestamp>,
    ) {
        let moments = [
            (&self.since, Some(at)),
            (&self.anchors, anchors),
            (&self.own, own),
        ];
        for (gauge, moment) in moments {
            gauge.store(moment.map_or(0, Timestamp::unix), Ordering::Relaxed);
        }
    }

    /// In Prometheus' text format.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        write!(
            out,
            "# HELP portvakt_reloads_total Reloads of the configuration, by whether it was taken into use.\n\
             # TYPE portvakt_reloads_total counter\n\
             portvakt_reloads_total{{result=\"taken\"}} {}\n\
             portvakt_reloads_total{{result=\"refused\"}} {}\n\
             # HELP portvakt_configuration_timestamp_seconds When the configuration in use was taken into use.\n\
             # TYPE portvakt_configuration_timestamp_seconds gauge\n\
             portvakt_configuration_timestamp_seconds {}\n\
             # HELP portvakt_certificate_end_timestamp_seconds When a certificate ends: the gateway's own, and the anchor that ends first.\n\
             # TYPE portvakt_certificate_end_timestamp_seconds gauge\n",
            of(&self.taken),
            of(&self.refused),
            of(&self.since),
        )?;
        for (name, end) in [("anchor", of(&self.anchors)), ("listener", of(&self.own))] {
            if end != 0 {
                writeln!(
                    out,
                    "portvakt_certificate_end_timestamp_seconds{{of=\"{name}\"}} {end}"
                )?;
            }
        }
        Ok(())
    }
}
