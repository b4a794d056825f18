//! Reports refusals below HTTP, which have no exchange (ERR-8): connections that were cut, and requests that the HTTP/2 library
//! refused by itself.
//!
//! Invariant: each is counted, and few lines of each cause are written of one TPP or network, because unauthenticated clients cause them
//! (FWD-8). Deliberately not here: refusals that the gateway answers.

use super::{
    client::ClientConnection,
    frames::{Cut, LibraryRefusal},
};
use crate::{
    admission::{Outcome, Record},
    clock::Clock,
    in_use::Current,
    interface::Reason,
    telemetry::{CallerEvent, CutCause, Finished, HttpFacts, Subject, Telemetry},
};
use std::{fmt, sync::Arc};
use tracing::Level;

/// Reports to telemetry.
pub(super) struct Reports {
    telemetry: Arc<Telemetry>,
    current: Arc<Current>,
    clock: Clock,
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
        }
    }

    /// Reports the end of this client's connection.
    pub(super) fn cut(&self, cut: Cut, client: Option<&ClientConnection>) {
        self.telemetry.cut(cut.cause());
        match cut.reason() {
            Some(reason) => self.refused(reason, None, cut.cause(), client),
            None => self.ended(cut.cause(), client),
        }
    }

    /// Reports a refusal by the HTTP/2 library.
    pub(super) fn refused_by_library(
        &self,
        refusal: LibraryRefusal,
        client: Option<&ClientConnection>,
    ) {
        self.telemetry.cut(refusal.cause());
        match refusal.reason() {
            Some(reason) => self.refused(reason, refusal.status(), refusal.cause(), client),
            None => self.ended(refusal.cause(), client),
        }
    }

    /// Reports what ends no request, or requests with lines of their own.
    fn ended(&self, cause: CutCause, client: Option<&ClientConnection>) {
        let caller = client.map(ClientConnection::ip);
        let event = self
            .telemetry
            .caller_event(Level::INFO, cause.name(), subject(client), caller);
        if let Some(CallerEvent { network }) = event {
            let (cause, network) = (cause.name(), network.as_deref());
            tracing::info!(cause, network, "a connection or a stream was ended");
        }
    }

    /// Counts a refused request, and writes its line if its subject has a place for one.
    fn refused(
        &self,
        reason: Reason,
        status: Option<u16>,
        cause: CutCause,
        client: Option<&ClientConnection>,
    ) {
        if !self.telemetry.has_line(cause.name(), subject(client)) {
            return self.telemetry.refused_by_http(reason);
        }
        let finished = Finished {
            record: &Record::open(),
            outcome: Outcome::Refused(reason),
            status,
            id: None,
            request_id: None,
            trace: None,
            http: HttpFacts {
                caller: client.map(ClientConnection::ip),
                ..HttpFacts::default()
            },
            operator: Some(cause.name()),
            core: None,
            endpoint: None,
            is_audited: false,
            at: self.clock.log_time(),
        };
        self.telemetry.request_begun();
        self.telemetry.take(&self.current.load().handles, finished);
    }
}

/// Whose connection it is.
fn subject(client: Option<&ClientConnection>) -> Subject {
    client.map_or_else(|| Subject::network(None), ClientConnection::subject)
}
