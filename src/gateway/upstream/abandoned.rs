//! A request at the core whose caller has left (FWD-4, ERR-4).
//!
//! The gateway ends its side of the connection, by which a core can notice. The request keeps its place in flight until the core has
//! noticed or answered: otherwise a caller that resets its requests would give the core more of them than it may have. Deliberately not
//! here: noticing that the caller has left ([`crate::gateway::caller_watch`]).

use super::answer::{CoreBody, read_head};
use crate::{
    gateway::failure::{self, ForwardFailure},
    upstreams::{Endpoint, Group, InFlightRequest},
};
use pingora::{Error, ErrorSource, protocols::http::v1::client::HttpSession};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// A request at the core whose caller has left.
pub(in crate::gateway) struct Abandoned {
    core: Box<HttpSession>,
    endpoint: Arc<Endpoint>,
    /// Whether the head of the answer was read.
    is_answering: bool,
}

impl Abandoned {
    /// A request without an answer.
    pub(super) fn unanswered(core: HttpSession, endpoint: &Arc<Endpoint>) -> Self {
        Self {
            core: Box::new(core),
            endpoint: Arc::clone(endpoint),
            is_answering: false,
        }
    }

    /// A request of whose answer the body has not ended.
    pub(in crate::gateway) fn answering(body: CoreBody) -> Self {
        Self {
            core: Box::new(body.core),
            endpoint: body.endpoint,
            is_answering: true,
        }
    }

    /// The endpoint that has the request.
    pub(in crate::gateway) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Ends the request at the core. It counts as `in_flight` until the core closes its side or sends more of an answer, and for
    /// at most `within`. Then the connection is closed, so that a core that still sends fails.
    pub(in crate::gateway) fn end(self, in_flight: InFlightRequest, within: Duration) {
        tokio::spawn(async move {
            // Both outcomes of the wait end the request.
            let _ = timeout(within, self.wait()).await;
            drop(in_flight);
        });
    }

    /// Waits for the core.
    async fn wait(self) {
        let mut core = self.core;
        core.read_timeout = None;
        core.shutdown().await;
        if self.is_answering {
            let _ = core.read_body_bytes().await;
        } else {
            let _ = read_head(&mut core).await;
        }
    }
}

/// The failure of an answer that has begun. If its caller has left, the request keeps its place until the core ends it.
pub(in crate::gateway) fn broken_off(
    error: Box<Error>,
    safe: bool,
    body: CoreBody,
    in_flight: InFlightRequest,
    group: &Group,
) -> ForwardFailure {
    if *error.esource() == ErrorSource::Downstream {
        Abandoned::answering(body).end(in_flight, group.settings().timeout);
    }
    failure::unanswered(error, safe, true).into()
}
