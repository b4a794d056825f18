//! Metrics of the current registers. The registers keep their own counters, which a scrape reads.

use super::{
    samples::{Families, number},
    table,
};
use crate::{
    clock::Timestamp,
    trust::{Registers, register::Register},
};

/// The label of the bank's own list, which has no date.
const LOCAL: &str = "local";

/// Adds the samples.
pub(super) fn add(registers: &Registers, now: Timestamp, to: &mut Families) {
    to.one(
        &table::REGISTER_STALE_PASSED,
        number(registers.passed_stale()),
    );
    let each = |value: fn(&Register, Timestamp) -> f64| {
        let registers = registers.each().iter();
        registers.map(move |register| (register.name().as_str(), value(register, now)))
    };
    let local = (LOCAL, count(registers.local_len()));
    let identities = each(|register, _| count(register.len())).chain([local]);
    to.each(&table::REGISTER_IDENTITIES, identities);
    to.each(
        &table::REGISTER_AS_OF,
        each(|register, _| number(register.as_of().unix())),
    );
    to.each(
        &table::REGISTER_AGE,
        each(|register, now| number(now.unix().saturating_sub(register.as_of().unix()))),
    );
    to.each(
        &table::REGISTER_MAX_AGE,
        each(|register, _| register.max_age().as_secs_f64()),
    );
}

fn count(entries: usize) -> f64 {
    number(u64::try_from(entries).unwrap_or(u64::MAX))
}
