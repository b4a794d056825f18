//! Where finished requests are written one by one: the access log, and spans for a collector.
//!
//! Invariant: a request waits for neither. Deliberately not here: the audit, whose records a request may have to wait for.

use super::{
    access::AccessLog,
    facts::Finished,
    notices::Due,
    stream::{LAST_WITHIN, LineCounts},
    traces::Traces,
};
use crate::{
    clock::{LogTime, Stopwatch},
    write_fault::WriteFault,
};
use std::time::Duration;

/// The access log and the traces of one gateway, if it has them.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    pub(super) access: Option<AccessLog>,
    pub(super) traces: Option<Traces>,
}

impl Outputs {
    /// Enqueues the line and the spans of a request.
    pub(super) fn write(&self, finished: &Finished<'_>) {
        if let Some(access) = &self.access {
            access.write(finished);
        }
        if let Some(traces) = &self.traces {
            traces.write(finished);
        }
    }

    /// Says in the access log what was left out. Returns what cannot be said.
    pub(super) fn say_left_out(&self, due: Vec<Due>, is_end: bool, at: LogTime) -> Vec<Due> {
        let access = self.access.as_ref();
        access.map_or_else(Vec::new, |access| access.say_left_out(due, is_end, at))
    }

    /// Opens the file of the access log by its name again; `Err` is why not.
    pub(super) fn reopen(&self) -> Result<(), String> {
        let access = self.access.as_ref();
        access.map_or(Ok(()), |access| access.reopen(LAST_WITHIN))
    }

    /// Why the last lines of the access log could not be written.
    pub(super) fn fault(&self) -> Option<WriteFault> {
        self.access.as_ref().and_then(AccessLog::fault)
    }

    /// Flushes the access log `within` this time, and the traces in what it leaves of it. False if the log is not flushed: a collector that
    /// takes no spans is no fault of the gateway.
    pub(super) fn flush(&self, within: Duration) -> bool {
        let waited = Stopwatch::start();
        let access = self.access.as_ref();
        let is_logged = access.is_none_or(|access| access.flush(within));
        if let Some(traces) = &self.traces {
            traces.flush(within.saturating_sub(waited.elapsed()));
        }
        is_logged
    }

    /// The numbers of lines, and of spans, since the start.
    pub(super) fn counts(&self) -> [LineCounts; 2] {
        let lines = self.access.as_ref().map(AccessLog::counts);
        let spans = self.traces.as_ref().map(Traces::counts);
        [lines, spans].map(Option::unwrap_or_default)
    }
}
