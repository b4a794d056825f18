//! Metrics of the store. The store keeps its own counters, which a scrape reads.

use super::{
    samples::{Families, number},
    table,
    values::StateTable,
};
use crate::{
    clock::Timestamp,
    state::{Counters, Rows},
};

/// Adds the samples.
pub(super) fn add(counters: &Counters, now: Timestamp, to: &mut Families) {
    let Counters {
        failed,
        unclear,
        changes,
        by_changes,
        spent,
        by_seconds,
        rows,
        clock_stepped_back,
        clock_steps,
        latest,
    } = counters;
    to.histogram(&table::STATE_BATCH_SECONDS, by_seconds, spent.as_secs_f64());
    to.histogram(&table::STATE_BATCH_CHANGES, by_changes, number(*changes));
    to.one(&table::STATE_BATCHES_FAILED, number(*failed));
    to.one(&table::STATE_COMMITS_UNCLEAR, number(*unclear));
    let stepped_back = u8::from(*clock_stepped_back);
    to.one(&table::STATE_CLOCK_STEPPED_BACK, stepped_back.into());
    to.one(&table::CLOCK_STEPS, number(*clock_steps));
    to.one(&table::CLOCK, number(now.unix()));
    let behind = latest.map_or(0, |latest| latest.unix().saturating_sub(now.unix()));
    to.one(&table::CLOCK_BEHIND, number(behind));
    add_rows(rows, to);
}

/// Leaves out tables that were not counted yet.
fn add_rows(rows: &Rows, to: &mut Families) {
    let Rows {
        quotas,
        pages,
        requests,
        tokens,
        blocks,
        psus,
        sessions,
    } = *rows;
    let tables = [
        (StateTable::Psu, psus),
        (StateTable::Quota, quotas),
        (StateTable::Page, pages),
        (StateTable::Request, requests),
        (StateTable::Token, tokens),
        (StateTable::Block, blocks),
    ];
    let counted = tables
        .into_iter()
        .filter_map(|(table, rows)| Some((table, number(rows?))));
    to.each(&table::STATE_ROWS, counted);
    if let Some(sessions) = sessions {
        to.one(&table::SESSIONS, number(sessions));
    }
}
