//! Metrics of the current registers. The registers keep their own counters, which a scrape reads.

use super::{
    samples::{Families, number},
    table,
};
use crate::{clock::Timestamp, trust::Registers};

/// Adds the samples.
pub(super) fn add(registers: &Registers, now: Timestamp, to: &mut Families) {
    let entries = u64::try_from(registers.len()).unwrap_or(u64::MAX);
    to.one(
        &table::REGISTER_STALE_PASSED,
        number(registers.passed_stale()),
    );
    to.one(&table::REGISTER_IDENTITIES, number(entries));
    if let Some(as_of) = registers.as_of() {
        let age = now.unix().saturating_sub(as_of.unix());
        let max_age = registers.settings().max_age;
        to.one(&table::REGISTER_AS_OF, number(as_of.unix()));
        to.one(&table::REGISTER_AGE, number(age));
        to.one(&table::REGISTER_MAX_AGE, max_age.as_secs_f64());
    }
}
