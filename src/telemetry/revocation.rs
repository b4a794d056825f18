//! Metrics of revocation. The counters are read at each scrape.

use super::{
    samples::{Families, number},
    table,
};
use crate::trust::Revocation;

/// Adds the samples.
pub(super) fn add(revocation: &Revocation, to: &mut Families) {
    let counters = revocation.counters();
    let fetches = counters
        .fetches()
        .map(|(result, count)| (result, number(count)));
    to.each(&table::REVOCATION_FETCHES, fetches);
    to.one(&table::REVOCATION_LET_PASS, number(counters.let_pass()));
    to.one(&table::REVOCATION_SOURCES, number(counters.sources()));
    to.one(&table::REVOCATION_OVERDUE, number(counters.overdue()));
    to.one(
        &table::REVOCATION_MAX_OVERDUE,
        revocation.stale().as_secs_f64(),
    );
    let lists = revocation.lists();
    let lists = lists.iter().map(|((issuer, from), next)| {
        let labels = (issuer.as_str(), from.as_str());
        (labels, number(next.unix()))
    });
    to.each(&table::CRL_NEXT_UPDATE, lists);
}
