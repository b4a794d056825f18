//! Reports refusals below HTTP, which have no exchange (ERR-8): connections that were cut, and requests that the HTTP/2 library
//! refused by itself.
//!
//! Invariant: each is counted, and few lines of each cause are written, because unauthenticated clients cause them. Deliberately not
//! here: refusals that the gateway answers.

use super::{
    frames::{Cut, LibraryRefusal},
    notice::NoticeLimit,
};
use crate::{
    admission::{Outcome, Record},
    clock::Clock,
    in_use::Current,
    interface::Reason,
    telemetry::{Finished, HttpFacts, Telemetry},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Reports to telemetry.
pub(super) struct Reports {
    telemetry: Arc<Telemetry>,
    current: Arc<Current>,
    clock: Clock,
    /// By cause.
    lines: Mutex<HashMap<&'static str, Arc<NoticeLimit>>>,
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
            lines: Mutex::default(),
        }
    }

    /// Reports the end of a connection.
    pub(super) fn cut(&self, cut: Cut) {
        self.telemetry.cut(cut.label());
        match cut.reason() {
            Some(reason) => self.refused(reason, None, cut.label()),
            None => self.ended(cut.label()),
        }
    }

    /// Reports a refusal by the HTTP/2 library.
    pub(super) fn refused_by_library(&self, refusal: LibraryRefusal) {
        self.telemetry.cut(refusal.label());
        match refusal.reason() {
            Some(reason) => self.refused(reason, refusal.status(), refusal.label()),
            None => self.ended(refusal.label()),
        }
    }

    /// Reports what ends no request, or requests with lines of their own.
    fn ended(&self, cause: &'static str) {
        self.limit(cause)
            .warn(|unsaid| tracing::info!(cause, unsaid, "a connection or a stream was ended"));
    }

    /// The limit on lines of this cause.
    fn limit(&self, cause: &'static str) -> Arc<NoticeLimit> {
        let mut limits = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(limits.entry(cause).or_default())
    }

    /// Counts a refused request, and writes its line if the limit allows it.
    fn refused(&self, reason: Reason, status: Option<u16>, cause: &'static str) {
        let mut is_written = false;
        self.limit(cause).warn(|unsaid| {
            is_written = true;
            let operator = match unsaid {
                0 => cause.to_owned(),
                more => format!("{cause}; {more} lines before it were not written"),
            };
            let finished = Finished {
                record: &Record::open(),
                outcome: Outcome::Refused(reason),
                status,
                id: None,
                request_id: None,
                trace: None,
                http: HttpFacts::default(),
                operator: Some(&operator),
                core: None,
                is_audited: false,
                at: self.clock.log_time(),
            };
            self.telemetry.request_begun();
            self.telemetry.take(&self.current.load().handles, finished);
        });
        if !is_written {
            self.telemetry.refused_by_http(reason);
        }
    }
}
