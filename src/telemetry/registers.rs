//! What there is to see of the registers, as metrics: read where it is counted, at the moment that somebody asks.

use crate::{clock::Timestamp, trust::Registers};
use arc_swap::ArcSwapOption;
use std::{fmt::Write, sync::Arc};

/// The registers in use; none where they are not checked.
#[derive(Debug, Default)]
pub(super) struct RegisterMetrics(ArcSwapOption<Registers>);

impl RegisterMetrics {
    /// From now on these are shown.
    pub(super) fn watch(&self, registers: &Arc<Registers>) {
        self.0.store(Some(Arc::clone(registers)));
    }

    /// In Prometheus' text format.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Some(registers) = self.0.load_full() {
            let _ = write(&registers, &mut text);
        }
        text
    }
}

fn write(registers: &Registers, out: &mut String) -> std::fmt::Result {
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
