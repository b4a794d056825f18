//! The registers in use, as metrics. The registers count; their counters are read when somebody asks.

use crate::{clock::Timestamp, trust::Registers};
use std::fmt::Write;

/// Writes them in Prometheus' text format.
pub(super) fn write(registers: &Registers, out: &mut String) -> std::fmt::Result {
    let entries = u64::try_from(registers.len()).unwrap_or(u64::MAX);
    let as_of = registers.as_of().map(Timestamp::unix);
    let all = [
        (
            "portvakt_register_stale_passed_total",
            "counter",
            "Requests let pass by a register past its maximum age.",
            Some(registers.passed_stale()),
        ),
        (
            "portvakt_register_identities",
            "gauge",
            "Identities of whom the registers say something.",
            Some(entries),
        ),
        (
            "portvakt_register_as_of_seconds",
            "gauge",
            "When what the EBA's register says was so, in seconds since 1970.",
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
