//! The metric of everything that ends or fills, by the worst of each kind. Its two alerts cover every kind.

use super::{samples::Families, table};
use crate::expiring::{Expiring, Finding};

/// Adds the samples.
pub(super) fn add<'a>(findings: impl Iterator<Item = &'a Finding>, to: &mut Families) {
    let findings: Vec<_> = findings.collect();
    let samples = Expiring::ALL.iter().map(|of| {
        let levels = findings.iter().filter(|finding| finding.of == *of);
        let worst = levels.map(|finding| finding.level).max();
        (*of, worst.map_or(0.0, |level| level.value()))
    });
    to.each(&table::EXPIRING, samples);
}
