//! Metrics of the logs, of the traces and of the audit, read at a scrape.

use super::{
    labels::Lines,
    samples::{Families, number},
    stream::LineCounts,
    table::{self, Metric},
    values::{Destination, LineResult},
};
use crate::{audit::AuditCounts, write_fault::WriteFault};

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

/// Adds why the access log, the log of events and the audit cannot be written.
pub(super) fn add_faults([access, events, audit]: [Option<WriteFault>; 3], to: &mut Families) {
    let all = [
        (Destination::AccessLog, access),
        (Destination::EventLog, events),
        (Destination::Audit, audit),
    ];
    let all = all.map(|(of, fault)| {
        let cause = fault.map(|fault| fault.cause);
        ((of, cause), u8::from(cause.is_some()).into())
    });
    to.each(&table::WRITE_FAULT, all);
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
