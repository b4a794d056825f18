//! The tries of one request: what each left behind, and whether there is another one (FWD-3).
//!
//! Deliberately not here: the sending.

use super::{abandoned::Abandoned, answer::CoreAnswer};
use crate::{
    clock::Stopwatch,
    config::UpstreamGroup,
    gateway::failure,
    interface::Refusal,
    telemetry::FailureKind,
    upstreams::{Endpoint, Failure, Group, TppMark},
};
use pingora::{Error, ErrorSource, ErrorType};
use std::{sync::Arc, time::Duration};

/// The most times that a request is sent.
const MAX_TRIES: usize = 3;

/// The tries of one request.
pub(super) struct Tries<'a> {
    group: &'a Group,
    safe: bool,
    tpp: TppMark,
    /// Since the search for an endpoint.
    pub(super) watch: Stopwatch,
    /// The endpoints that failed.
    tried: Vec<Arc<Endpoint>>,
    /// Those of them of which only a connection that had been idle has ended.
    pub(super) stale: Vec<Arc<Endpoint>>,
    /// Whether any connection was made.
    connected: bool,
    /// Whether an endpoint that was connected did not answer in time.
    pub(super) timed_out: bool,
}

impl<'a> Tries<'a> {
    pub(super) fn begin(group: &'a Group, safe: bool, tpp: TppMark) -> Self {
        group.count_request();
        Self {
            group,
            safe,
            tpp,
            watch: Stopwatch::start(),
            tried: Vec::new(),
            stale: Vec::new(),
            connected: false,
            timed_out: false,
        }
    }

    /// The time that the group still allows.
    pub(super) fn left(&self) -> Duration {
        let all = self.group.settings().timeout;
        all.saturating_sub(self.watch.elapsed())
    }

    /// Notes a failed try that had this time, and counts it at the endpoint. True if it may only mean that a connection which had been idle
    /// has ended for its age: that is no failure of the endpoint, if the request is sent again.
    pub(super) fn note(
        &mut self,
        endpoint: &Arc<Endpoint>,
        failed: &TryFailure,
        kind: Option<FailureKind>,
        left: Duration,
    ) -> bool {
        self.connected |= failed.connected;
        self.timed_out |= failed.connected && kind == Some(FailureKind::Timeout);
        let is_stale = failed.reused && kind == Some(FailureKind::Reset);
        if is_stale {
            self.stale.push(Arc::clone(endpoint));
        } else if let Some(kind) = kind
            && (self.tried.is_empty() || !failed.is_cut_short(kind, self.group.settings(), left))
        {
            self.count_failure(endpoint, failed, kind);
        }
        self.tried.push(Arc::clone(endpoint));
        is_stale
    }

    /// Counts a failed try at its endpoint.
    pub(super) fn count_failure(
        &self,
        endpoint: &Endpoint,
        failed: &TryFailure,
        kind: FailureKind,
    ) {
        let failure = match failed.connected {
            true => Failure::OfRequest(self.tpp),
            false => Failure::NoConnection,
        };
        self.group.failed(endpoint, kind.name(), failure);
    }

    /// The endpoint for another try; `None` if the request must not be sent again. FWD-3: a safe request is, if no byte of an answer came;
    /// any other only if no connection was made. A group with one endpoint repeats on that one, if the connection had been idle; another
    /// group does so after all others.
    pub(super) fn next_endpoint(&self, failed: &TryFailure) -> Option<Arc<Endpoint>> {
        let group = self.group;
        if self.tried.len() >= MAX_TRIES || self.watch.elapsed() >= group.settings().timeout {
            return None;
        }
        if *failed.error.esource() != ErrorSource::Upstream || failed.has_begun {
            return None;
        }
        // The endpoint is chosen last: a choice moves the round on.
        if !group.has_others() {
            let again = self.safe && failed.error.retry() && group.may_retry();
            return again.then(|| group.choose(&[])).flatten();
        }
        let again = (self.safe || !failed.connected) && group.may_retry();
        let next = again.then(|| group.choose(&self.tried)).flatten();
        // The others failed: an endpoint of which only a kept connection had ended gets the request on a new one.
        let stale = self.stale.first();
        let stale = stale.filter(|one| again && self.safe && !one.is_drained());
        next.or_else(|| stale.map(Arc::clone))
    }

    /// The failure of the request after its last try.
    pub(super) fn end(self, failed: TryFailure) -> SendFailure {
        SendFailure {
            error: failure::unanswered(failed.error, self.safe, self.connected),
            connected: self.connected,
            timed_out: self.timed_out,
            took: self.watch.elapsed(),
            endpoint: match failed.refused {
                Some(_) => None,
                None => self.tried.last().map(Arc::clone),
            },
            abandoned: failed.abandoned,
            refused: failed.refused,
        }
    }
}

/// A failed try.
pub(super) struct TryFailure {
    pub(super) error: Box<Error>,
    pub(super) connected: bool,
    /// Whether a byte of an answer has arrived.
    pub(super) has_begun: bool,
    /// Whether the connection had been idle: the core may have closed it before it saw the request.
    pub(super) reused: bool,
    /// The request at the core, if its caller has left.
    pub(super) abandoned: Option<Abandoned>,
    /// The refusal of a request that is no longer permitted: it was not sent.
    pub(super) refused: Option<Box<Refusal>>,
}

impl TryFailure {
    /// The failure of a try without a connection.
    pub(super) const fn unconnected(error: Box<Error>) -> Self {
        Self {
            error,
            connected: false,
            has_begun: false,
            reused: false,
            abandoned: None,
            refused: None,
        }
    }

    /// The failure of a try that sent nothing, because the request is no longer permitted.
    pub(super) fn refused(refusal: Refusal) -> Self {
        Self {
            refused: Some(Box::new(refusal)),
            ..Self::unconnected(Error::new(ErrorType::InternalError))
        }
    }

    /// Whether it may have its cause in earlier endpoints, which left less than two thirds of its time (`left`).
    fn is_cut_short(&self, kind: FailureKind, settings: &UpstreamGroup, left: Duration) -> bool {
        let limit = match self.connected {
            true => settings.read_timeout,
            false => settings.connect_timeout,
        };
        let own = limit.min(settings.timeout);
        kind == FailureKind::Timeout && left.saturating_mul(3) < own.saturating_mul(2)
    }
}

/// The failure of a request without an answer.
pub(in crate::gateway) struct SendFailure {
    /// The error, with its source.
    pub(in crate::gateway) error: Box<Error>,
    /// Whether any connection was made: the core may have the request.
    pub(in crate::gateway) connected: bool,
    /// Whether an endpoint that was connected did not answer in time: it may have executed the request, whatever the error of the last one.
    pub(in crate::gateway) timed_out: bool,
    /// The time since the search for an endpoint.
    pub(in crate::gateway) took: Duration,
    /// The endpoint of the last try; `None` for a request that was not sent.
    pub(in crate::gateway) endpoint: Option<Arc<Endpoint>>,
    /// The request at the core, if its caller has left.
    pub(in crate::gateway) abandoned: Option<Abandoned>,
    /// The refusal of a request that is no longer permitted.
    pub(in crate::gateway) refused: Option<Box<Refusal>>,
}

impl SendFailure {
    /// The failure of a request whose answer is rejected.
    pub(in crate::gateway) fn rejected(answer: &CoreAnswer, error: Box<Error>) -> Self {
        Self {
            error,
            connected: true,
            timed_out: answer.timed_out,
            took: answer.took,
            endpoint: Some(answer.body.endpoint()),
            abandoned: None,
            refused: None,
        }
    }
}
