//! Metrics of reloads: their results, the age of the current configuration, and the ends of validity of its certificates.

use super::{facts::ConfigurationFacts, revocation::quoted};
use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
};

/// The number of TPP certificates that are shown, those that expire first.
const MOST_CERTIFICATES: usize = 200;

/// Reloads since the start.
#[derive(Debug, Default)]
pub(super) struct ReloadMetrics {
    taken: AtomicU64,
    refused: AtomicU64,
}

impl ReloadMetrics {
    pub(super) fn count(&self, taken: bool) {
        let counter = if taken { &self.taken } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes them in Prometheus' text format.
    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        writeln!(
            out,
            "# HELP portvakt_reloads_total Reloads of the configuration, by whether it was taken into use.\n\
             # TYPE portvakt_reloads_total counter\n\
             portvakt_reloads_total{{result=\"taken\"}} {}\n\
             portvakt_reloads_total{{result=\"refused\"}} {}",
            of(&self.taken),
            of(&self.refused),
        )
    }
}

/// Writes the dates of the current configuration in Prometheus' text format.
pub(super) fn write_facts(facts: &ConfigurationFacts<'_>, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "# HELP portvakt_configuration_timestamp_seconds When the configuration in use was taken into use.\n\
         # TYPE portvakt_configuration_timestamp_seconds gauge\n\
         portvakt_configuration_timestamp_seconds {}\n\
         # HELP portvakt_certificate_end_timestamp_seconds When a certificate ends: the gateway's own, and of each set the anchor that ends first.\n\
         # TYPE portvakt_certificate_end_timestamp_seconds gauge",
        facts.since.unix(),
    )?;
    for (name, end) in &facts.ends {
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
    for (end, certificate) in facts.seen.first_to_end(MOST_CERTIFICATES) {
        let (tpp, serial) = (
            quoted(certificate.tpp_id().as_str()),
            certificate.serial_hex(),
        );
        let end = end.unix();
        writeln!(out, "{name}{{tpp={tpp},serial=\"{serial}\"}} {end}")?;
    }
    Ok(())
}
