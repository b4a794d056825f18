//! Reports refusals below HTTP, which have no exchange (ERR-8): connections that were cut, and requests that the HTTP/2 library
//! refused by itself.
//!
//! Invariant: each is counted, and at most ten lines per second are written, because unauthenticated clients cause them. Deliberately
//! not here: refusals that the gateway answers.

use super::{
    frames::{Cut, LibraryRefusal},
    notice::NoticeLimit,
};
use crate::{
    admission::{Outcome, Record},
    clock::Clock,
    in_use::Current,
    interface::Reason,
    telemetry::{Finished, Telemetry},
};
use std::{fmt, sync::Arc};

/// Reports to telemetry.
pub(super) struct Reports {
    telemetry: Arc<Telemetry>,
    current: Arc<Current>,
    clock: Clock,
    lines: NoticeLimit,
}

impl fmt::Debug for Reports {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reports").finish_non_exhaustive()
    }
}

impl Reports {
    /// Creates reports with the time of `clock` and the metrics of the current configuration.
    pub(super) fn new(telemetry: Arc<Telemetry>, current: Arc<Current>, clock: Clock) -> Self {
        Self {
            telemetry,
            current,
            clock,
            lines: NoticeLimit::default(),
        }
    }

    /// Reports the end of a connection.
    pub(super) fn cut(&self, cut: Cut) {
        self.telemetry.cut(cut.label());
        if let Some(reason) = cut.reason() {
            self.refused(reason, None, cut.label());
        }
    }

    /// Reports a refusal by the HTTP/2 library.
    pub(super) fn refused_by_library(&self, refusal: LibraryRefusal) {
        self.telemetry.cut(refusal.label());
        if let Some(reason) = refusal.reason() {
            self.refused(reason, refusal.status(), refusal.label());
        }
    }

    /// Counts a refused request, and writes its line if this second's limit allows it.
    fn refused(&self, reason: Reason, status: Option<u16>, cause: &str) {
        let mut is_written = false;
        self.lines.warn(|unsaid| {
            is_written = true;
            let operator = match unsaid {
                0 => cause.to_owned(),
                more => format!("{cause}; {more} lines before it were not written"),
            };
            let finished = Finished {
                record: &Record::open(),
                outcome: Outcome::Refused(reason),
                status,
                request_id: None,
                operator: Some(&operator),
                core: None,
                at: self.clock.now(),
            };
            self.telemetry.request_begun();
            self.telemetry.take(&self.current.load().handles, finished);
        });
        if !is_written {
            self.telemetry.refused_by_http(reason);
        }
    }
}
