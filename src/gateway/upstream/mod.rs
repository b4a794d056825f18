//! The upstream client: sends an admitted request to the core, and reads the head of its answer (FWD-3, FWD-4).
//!
//! Invariant: [`Upstream::send`] takes an admitted request, which only `admission::authorise` constructs: for a request that was not
//! admitted, nothing is sent and no connection is opened (SIG-11). Each try judges the age of what is known of the PSU after its connection
//! and before its head (SCA-6, SCA-13). Deliberately not here: the handling of the answer, which is returned.
//!
//! pingora's proxy runs the two directions as two tasks with a channel between them, and watches the caller from the start. The
//! gateway has the whole request before it forwards it, so one direction after the other is enough, and costs about a third less.
//! It also allows the head of an answer to be held until its body is known, as a signature requires.

// A request whose caller has left.
mod abandoned;
// The head of an answer, and the body behind it.
mod answer;
// The tries of one request, and the choice of the next endpoint.
mod tries;

pub(super) use abandoned::{Abandoned, broken_off};
pub(super) use answer::{BodyPart, CoreAnswer, CoreBody};
pub(super) use tries::SendFailure;

use super::{
    assertion,
    caller_watch::work_for,
    failure,
    forward::{self, HeadDraft},
};
use crate::{
    admission::{Fresh, UnderWay},
    clock::{Clock, Stopwatch},
    in_use::InUse,
    signing::AssertionSigner,
    telemetry::{FailureKind, Telemetry},
    upstreams::{Endpoint, Group, TppMark},
};
use answer::{connection, has_begun, read_head};
use bytes::Bytes;
use pingora::{
    Error, ErrorSource, ErrorType, Result,
    http::{RequestHeader, ResponseHeader},
    protocols::http::{ServerSession as Session, v1::client::HttpSession},
};
use std::{fmt, pin::pin, sync::Arc, time::Duration};
use tries::{Tries, TryFailure};

/// The client of the core.
pub(super) struct Upstream {
    clock: Clock,
    telemetry: Arc<Telemetry>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Upstream").finish_non_exhaustive()
    }
}

/// Where a request goes, by the configuration that it was judged by.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    group: &'a Group,
    /// Signs the facts that the gateway established (FWD-1).
    assertion_signer: Option<&'a AssertionSigner>,
}

impl<'a> Destination<'a> {
    pub(super) fn of(in_use: &'a InUse, group: &'a Group) -> Self {
        Self {
            group,
            assertion_signer: in_use.assertion_signer.as_deref(),
        }
    }
}

impl Upstream {
    /// Creates a client.
    pub(super) const fn new(clock: Clock, telemetry: Arc<Telemetry>) -> Self {
        Self { clock, telemetry }
    }

    /// Sends an admitted request to an endpoint of its group, and to another one where that is harmless (FWD-3). Failures are counted at
    /// the endpoint; whether the answer is one is known at the end of its body only, and left to the caller. `caller` is watched
    /// meanwhile: a safe request ends when its caller disconnects, any other request is completed (FWD-4).
    ///
    /// # Errors
    /// There is no answer, or a rejected one.
    pub(super) async fn send(
        &self,
        destination: Destination<'_>,
        request: &mut UnderWay<'_>,
        tpp: TppMark,
        caller: &mut Session,
    ) -> std::result::Result<CoreAnswer, SendFailure> {
        let group = destination.group;
        let mut tries = Tries::begin(group, request.admitted().method().is_safe(), tpp);
        let Some(mut endpoint) = group.choose(&[]) else {
            self.telemetry.upstream_failed(FailureKind::Unreachable);
            return Err(tries.end(TryFailure::unconnected(failure::no_endpoint())));
        };
        loop {
            let left = tries.left();
            // The connections that are kept may all have ended: a core that starts again ends them at once.
            let may_be_kept = tries.stale.is_empty();
            let sent = self.send_once(destination, &endpoint, left, may_be_kept, request, caller);
            let sent = pin!(sent).await;
            let failed = match sent {
                Ok(mut answer) => {
                    answer.took = tries.watch.until(answer.since);
                    answer.timed_out = tries.timed_out;
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            let kind = failure::kind(&failed.error, failed.has_begun);
            if let Some(kind) = kind {
                self.telemetry.upstream_failed(kind);
            }
            let is_stale = tries.note(&endpoint, &failed, kind, left);
            let Some(next) = tries.next_endpoint(&failed) else {
                if is_stale {
                    tries.count_failure(&endpoint, &failed, FailureKind::Reset);
                }
                return Err(tries.end(failed));
            };
            endpoint = next;
        }
    }

    /// Keeps the connection for another request, if no more bytes of this answer can arrive on it (FWD-3). A core that sends a
    /// body where none is allowed sends it after the head, at an unknown time.
    pub(super) async fn recycle(&self, body: CoreBody, bodiless: bool) {
        let CoreBody {
            mut core, endpoint, ..
        } = body;
        let Some(pool) = endpoint.open_pool().filter(|_| !bodiless) else {
            return core.shutdown().await;
        };
        core.respect_keepalive();
        let kept = core.reuse().await;
        if let Some(Ok(connection)) = kept.map(|stream| stream.into_any().downcast()) {
            pool.put(connection);
        }
    }

    /// Sends the request once, and reads the head of the answer. `left` is the time that the group still allows.
    async fn send_once(
        &self,
        destination: Destination<'_>,
        endpoint: &Arc<Endpoint>,
        left: Duration,
        may_be_kept: bool,
        request: &mut UnderWay<'_>,
        caller: &mut Session,
    ) -> std::result::Result<CoreAnswer, TryFailure> {
        let settings = destination.group.settings();
        // First, so that no connection is opened for a request that is not sent.
        let draft = match request.refresh(&self.clock).await {
            Ok(fresh) => self.draft(destination, &fresh),
            Err(refusal) => return Err(TryFailure::refused(refusal)),
        };
        let draft = draft.map_err(TryFailure::unconnected)?;
        let connecting = endpoint.connect(settings.connect_timeout.min(left), may_be_kept);
        let (opened, reused) = connecting.await.map_err(TryFailure::unconnected)?;
        self.telemetry.connected_upstream(reused);
        let mut core = HttpSession::new(opened);
        core.read_timeout = Some(settings.read_timeout);
        let within = settings.read_timeout.min(left);
        // Again, because connecting takes time.
        let head = match request.refresh(&self.clock).await {
            Ok(fresh) => self.release(destination, draft, &fresh),
            Err(refusal) => return Err(TryFailure::refused(refusal)),
        };
        let head = head.map_err(TryFailure::unconnected)?;
        let sent = Stopwatch::start();
        let exchanged = pin!(exchange_heads(
            caller,
            &mut core,
            head,
            request.admitted().body(),
            within
        ))
        .await;
        match exchanged {
            Ok(head) => {
                let since = Stopwatch::start();
                endpoint.named().took(sent.until(since));
                let endpoint = Arc::clone(endpoint);
                Ok(CoreAnswer::new(head, CoreBody::new(core, endpoint), since))
            }
            Err(mut error) => {
                let has_left = *error.esource() == ErrorSource::Downstream;
                let refused = connection(&core).and_then(|core| endpoint.refused(core));
                if let Some(refused) = refused.filter(|_| !has_left) {
                    return Err(TryFailure::unconnected(refused));
                }
                error.retry.decide_reuse(reused);
                let has_begun = has_begun(&core);
                if has_left || failure::kind(&error, has_begun) == Some(FailureKind::Timeout) {
                    endpoint.named().took(sent.elapsed());
                }
                Err(TryFailure {
                    error,
                    connected: true,
                    has_begun,
                    reused,
                    abandoned: has_left.then(|| Abandoned::unanswered(core, endpoint)),
                    refused: None,
                })
            }
        }
    }

    /// The request's head, with the assertion if it is configured (FWD-1).
    fn draft(&self, destination: Destination<'_>, fresh: &Fresh<'_>) -> Result<HeadDraft> {
        let mut draft = forward::upstream_head(fresh, &destination.group.settings().host)?;
        if let Some(signer) = destination.assertion_signer {
            let now = self.clock.now();
            assertion::insert(signer, fresh.admitted(), draft.head_mut(), now)?;
        }
        Ok(draft)
    }

    /// The head that is sent: the draft, or another one if the request was judged again since.
    fn release(
        &self,
        destination: Destination<'_>,
        draft: HeadDraft,
        fresh: &Fresh<'_>,
    ) -> Result<Box<RequestHeader>> {
        if let Some(head) = draft.release(fresh) {
            return Ok(head);
        }
        let head = self.draft(destination, fresh)?.release(fresh);
        head.ok_or_else(|| Error::new(ErrorType::InternalError))
    }
}

/// Sends a request and reads the head of its answer. A safe request ends when its caller disconnects; any other request is
/// completed (FWD-4).
async fn exchange_heads(
    caller: &mut Session,
    core: &mut HttpSession,
    request: Box<RequestHeader>,
    body: &Bytes,
    within: Duration,
) -> Result<ResponseHeader> {
    let safe = request.method.is_safe();
    let exchanging = async {
        core.write_request_header(request).await?;
        if !body.is_empty() {
            core.write_body(body).await?;
        }
        core.finish_body().await?;
        read_head(core).await
    };
    work_for(caller, safe, within, exchanging).await
}
