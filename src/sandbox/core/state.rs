//! The state that all requests share, and the callers that the core trusts.
//!
//! Invariant: a caller is known only after the check that [`Trust`] demands; a request on the bank's own channel comes from this
//! machine. Deliberately not here: routes, and what is done with the state.

use super::assertion::{Assertions, Covered, NotTheGateway};
use super::bank::Bank;
use super::caller::Caller;
use super::control::Control;
use super::form_token::FormTokens;
use super::frames::Frames;
use super::journal::Journal;
use super::request_key::RequestKey;
use super::stage::{AccessStage, Stage};
use axum::extract::ConnectInfo;
use axum::http::{header, request::Parts};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The callers that the core trusts.
#[derive(Debug)]
pub(super) enum Trust {
    /// The gateway, by its assertion.
    Gateway(Assertions),
    /// Any caller.
    Anyone,
}

/// The state that all requests share.
pub(super) struct Core {
    pub(super) journal: Journal,
    pub(super) bank: Mutex<Bank>,
    pub(super) control: Control,
    /// Held while an SCA ends.
    pub(super) endings: tokio::sync::Mutex<()>,
    /// The forms of the SCA page.
    pub(super) forms: FormTokens<(RequestKey, Stage)>,
    /// The forms of the page of accesses.
    pub(super) accesses: FormTokens<AccessStage>,
    /// The origins that may frame the SCA page.
    pub(super) frames: Frames,
    /// The forms of the console.
    pub(super) console: FormTokens<()>,
    pub(super) trust: Trust,
}

impl Core {
    /// The lock is never held while waiting for anything but the ledger. After a panic of another request, the bank is still
    /// consistent.
    pub(super) fn bank(&self) -> MutexGuard<'_, Bank> {
        self.bank.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bank's time, in seconds of Unix time.
    pub(super) fn seconds(&self) -> u64 {
        let now = self.bank().now().timestamp().as_second();
        now.try_into().unwrap_or_default()
    }

    /// The caller, if it is trusted.
    pub(super) async fn caller(&self, head: &Parts, body: &[u8]) -> Result<Caller, NotTheGateway> {
        let path = head.uri.path();
        if is_own_channel(path) && is_beside(head) {
            return Ok(Caller::default());
        }
        match &self.trust {
            Trust::Anyone => Ok(Caller::by_headers(&head.headers)),
            Trust::Gateway(assertions) => {
                let covered = Covered {
                    method: head.method.as_str(),
                    target: target(head),
                    headers: &head.headers,
                    body,
                };
                let claims = assertions.verify(&covered, &self.control).await?;
                Ok(Caller::by_claims(&claims, &head.headers))
            }
        }
    }
}

/// Whether the path belongs to the bank's own channel or to the simulation, which a person at this machine uses, and no TPP.
fn is_own_channel(path: &str) -> bool {
    let is = |prefix: &str, suffix: &str| path.starts_with(prefix) && path.ends_with(suffix);
    path == "/v1/sandbox/batch"
        || is("/v1/sandbox/payments/", "/cancellation")
        || is("/v1/sandbox/payments/", "/change")
        || is("/v1/sandbox/accounts/", "/payments")
}

/// Whether a program on this machine calls, and not a page in a browser, which would send Origin.
fn is_beside(head: &Parts) -> bool {
    is_local(head) && !head.headers.contains_key(header::ORIGIN)
}

/// Whether the caller is on this machine: between loopback addresses, under a name of this machine, and not forwarded.
pub(super) fn is_local(head: &Parts) -> bool {
    let peer = head.extensions.get::<ConnectInfo<SocketAddr>>();
    let host = head
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default();
    let named = host.rsplit_once(':').map_or(host, |(name, _)| name);
    peer.is_some_and(|ConnectInfo(peer)| peer.ip().is_loopback())
        && ["localhost", "127.0.0.1", "[::1]"].contains(&named)
        && ["forwarded", "x-forwarded-for", "gateway-tpp-id"]
            .iter()
            .all(|name| !head.headers.contains_key(*name))
}

/// Path and query of a request.
pub(super) fn target(head: &Parts) -> &str {
    let target = head.uri.path_and_query();
    target.map_or("", |target| target.as_str())
}
