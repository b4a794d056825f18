//! Metrics of the logs, of the traces and of the audit, read at a scrape.

use super::{
    labels::Lines,
    samples::{Families, number},
    stream::LineCounts,
    table::{self, Metric},
    values::LineResult,
};
use crate::audit::AuditCounts;

/// Adds the numbers of lines of both logs, of spans, and of records of the audit.
pub(super) fn add([access, events, spans]: [LineCounts; 3], audit: AuditCounts, to: &mut Families) {
    add_stream(&table::TRACE_SPANS, spans, to);
    add_stream(&table::ACCESS_LINES, access, to);
    add_stream(&table::EVENT_LINES, events, to);
    let AuditCounts {
        written,
        dropped,
        failed,
    } = audit;
    let records = LineCounts {
        written,
        dropped,
        failed,
    };
    add_stream(&table::AUDIT_RECORDS, records, to);
}

fn add_stream(metric: &'static Metric<Lines>, counts: LineCounts, to: &mut Families) {
    let LineCounts {
        written,
        dropped,
        failed,
    } = counts;
    let all = [
        (LineResult::Written, number(written)),
        (LineResult::Dropped, number(dropped)),
        (LineResult::Failed, number(failed)),
    ];
    to.each(metric, all);
}
