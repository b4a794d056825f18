//! How old the configuration in use is, and when what it trusts ends.

use super::revocation::quoted;
use crate::{clock::Timestamp, trust::Seen};
use arc_swap::ArcSwapOption;
use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// As many TPP certificates are shown, those that end first.
const MOST_CERTIFICATES: usize = 200;

/// Counts since the start, and what is in use.
#[derive(Debug, Default)]
pub(super) struct ReloadMetrics {
    taken: AtomicU64,
    refused: AtomicU64,
    in_use: ArcSwapOption<InUse>,
}

#[derive(Debug)]
struct InUse {
    since: Timestamp,
    ends: Vec<(&'static str, Timestamp)>,
    seen: Seen,
}

impl ReloadMetrics {
    pub(super) fn count(&self, taken: bool) {
        let counter = if taken { &self.taken } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn took_into_use(
        &self,
        since: Timestamp,
        ends: Vec<(&'static str, Timestamp)>,
        seen: Seen,
    ) {
        self.in_use
            .store(Some(Arc::new(InUse { since, ends, seen })));
    }

    /// In Prometheus' text format.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        writeln!(
            out,
            "# HELP portvakt_reloads_total Reloads of the configuration, by whether it was taken into use.\n\
             # TYPE portvakt_reloads_total counter\n\
             portvakt_reloads_total{{result=\"taken\"}} {}\n\
             portvakt_reloads_total{{result=\"refused\"}} {}",
            of(&self.taken),
            of(&self.refused),
        )?;
        self.in_use
            .load()
            .as_ref()
            .map_or(Ok(()), |in_use| in_use.write(out))
    }
}

impl InUse {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "# HELP portvakt_configuration_timestamp_seconds When the configuration in use was taken into use.\n\
             # TYPE portvakt_configuration_timestamp_seconds gauge\n\
             portvakt_configuration_timestamp_seconds {}\n\
             # HELP portvakt_certificate_end_timestamp_seconds When a certificate ends: the gateway's own, and of each set the anchor that ends first.\n\
             # TYPE portvakt_certificate_end_timestamp_seconds gauge",
            self.since.unix(),
        )?;
        for (name, end) in &self.ends {
            let end = end.unix();
            writeln!(
                out,
                "portvakt_certificate_end_timestamp_seconds{{of=\"{name}\"}} {end}"
            )?;
        }
        let name = "portvakt_tpp_certificate_end_timestamp_seconds";
        writeln!(
            out,
            "# HELP {name} When the certificates of TPPs end by which a signature has verified, those first that end first; at most {MOST_CERTIFICATES}.\n\
             # TYPE {name} gauge"
        )?;
        for (end, certificate) in self.seen.first_to_end(MOST_CERTIFICATES) {
            let (tpp, serial) = (quoted(certificate.tpp_id()), certificate.serial_hex());
            let end = end.unix();
            writeln!(out, "{name}{{tpp={tpp},serial=\"{serial}\"}} {end}")?;
        }
        Ok(())
    }
}
