//! Metrics of the current registers. The registers keep their own counters, which a scrape reads.

use crate::{clock::Timestamp, trust::Registers};
use std::fmt::Write;

/// Writes the samples in Prometheus' text format.
pub(super) fn write(registers: &Registers, out: &mut String) -> std::fmt::Result {
    let entries = u64::try_from(registers.len()).unwrap_or(u64::MAX);
    let as_of = registers.as_of().map(Timestamp::unix);
    let all = [
        (
            "portvakt_register_stale_passed_total",
            "counter",
            "Requests admitted by a register past its maximum age.",
            Some(registers.passed_stale()),
        ),
        (
            "portvakt_register_identities",
            "gauge",
            "Identities that the registers have an entry for.",
            Some(entries),
        ),
        (
            "portvakt_register_as_of_seconds",
            "gauge",
            "The date of the EBA register's content, in seconds since 1970.",
            as_of,
        ),
    ];
    for (name, kind, help, value) in all {
        if let Some(value) = value {
            writeln!(
                out,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            )?;
        }
    }
    Ok(())
}
