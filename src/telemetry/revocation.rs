//! Metrics of revocation. The counters are read at each scrape.

use crate::trust::revocation::Counters;
use std::fmt::Write;

/// Writes the samples in Prometheus' text format.
pub(super) fn write(counters: &Counters, out: &mut String) -> std::fmt::Result {
    out.write_str(
        "# HELP portvakt_revocation_fetches_total CRLs and OCSP answers fetched, by how it ended.\n\
         # TYPE portvakt_revocation_fetches_total counter\n",
    )?;
    for (result, count) in counters.fetches() {
        writeln!(
            out,
            "portvakt_revocation_fetches_total{{result=\"{result}\"}} {count}"
        )?;
    }
    let single = [
        (
            "portvakt_revocation_let_pass_total",
            "counter",
            "Requests admitted although the revocation status of their certificate was unknown.",
            counters.let_pass(),
        ),
        (
            "portvakt_revocation_sources",
            "gauge",
            "OCSP responses and CRLs in use.",
            counters.sources(),
        ),
        (
            "portvakt_revocation_overdue_seconds",
            "gauge",
            "Seconds since the nextUpdate of the most overdue of them.",
            counters.overdue(),
        ),
    ];
    for (name, kind, help, value) in single {
        writeln!(
            out,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
        )?;
    }
    let name = "portvakt_crl_next_update_timestamp_seconds";
    let lists = counters.lists();
    if !lists.is_empty() {
        writeln!(
            out,
            "# HELP {name} When a CRL that requests rest on is to be replaced, by its issuer and where it is from; at most {}.\n\
             # TYPE {name} gauge",
            Counters::MOST_LISTS
        )?;
    }
    for ((issuer, from), next) in lists.iter() {
        let (issuer, from) = (quoted(issuer), quoted(from));
        let next = next.unix();
        writeln!(out, "{name}{{issuer={issuer},from={from}}} {next}")?;
    }
    Ok(())
}

/// Escapes a label's value: names come from certificates and may contain any character.
pub(super) fn quoted(text: &str) -> String {
    let plain = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", plain.replace('\n', "\\n"))
}
