//! Metrics of keys in an HSM, whose calls the process counts; a scrape reads them.

use super::{
    samples::{Families, number},
    table,
};
use crate::hsm::{self, Cause, PurposeCounts};

/// Adds the samples.
pub(super) fn add(to: &mut Families) {
    let counts = hsm::counts();
    let series = counts.iter().map(|(purpose, counts)| {
        let PurposeCounts {
            by_seconds, spent, ..
        } = counts;
        (*purpose, by_seconds.to_vec(), spent.as_secs_f64())
    });
    to.histograms(&table::HSM_SIGN_SECONDS, series);
    let errors = counts.iter().flat_map(|(purpose, counts)| {
        let errors = Cause::ALL.iter().zip(counts.errors);
        errors.map(|(cause, count)| ((*purpose, *cause), number(count)))
    });
    to.each(&table::HSM_ERRORS, errors);
}
