//! The life of one request: head, decision, forwarding or the gateway's own answer, report.

use super::{
    arrival::{Arrival, peer_of},
    closing::Closing,
    delivery::{await_written, cut_of, end_request},
    descriptions::{self, Descriptions, Found},
    drain::Underway,
    error_body::ErrorBodySettings,
    exchange::{Exchange, Ledger},
    failure::{self, ForwardFailure},
    forwarding::Forwarder,
    head_limits::{forget_fields, judge_expectation, judge_size},
    listener::{ClientConnection, http2_options},
    opening::Opening,
    overload::Overload,
    refusals::{Refusals, has_begun},
    request_body::{self, BodyPace, DownstreamBody},
    request_head::{NextHead, RefusedHead, read_head},
    respond::Responder,
    room,
    upstream::Upstream,
};
use crate::{
    admission::{self, Admission, Announced, Outcome},
    clock::Clock,
    config::ListenerLimits,
    in_use::Current,
    interface::{Reason, Refusal},
    state::StateStore,
    telemetry::Telemetry,
    upstreams::RequestRoom,
};
use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderValue;
use pingora::{
    apps::{HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream},
    protocols::http::{ServerSession as Session, v2::server::H2Options},
    server::ShutdownWatch,
};
use std::{pin::pin, sync::Arc, time::Duration};

/// Serves requests, one after another on each connection.
#[derive(Debug)]
pub(super) struct Gate {
    current: Arc<Current>,
    store: Arc<StateStore>,
    ledger: Ledger,
    forwarder: Forwarder,
    responder: Responder,
    keepalive: Duration,
    body_pace: BodyPace,
    limits: ListenerLimits,
    server_options: HttpServerOptions,
    overload: Arc<Overload>,
    descriptions: Descriptions,
    closing: Arc<Closing>,
}

/// The settings of a gate.
#[derive(Debug)]
pub(super) struct GateSettings {
    /// ERR-1's `system`, and the pages about reasons (ERR-10).
    pub(super) origin: ErrorBodySettings,
    /// How long an idle connection is kept open, in whole seconds.
    pub(super) keepalive: Duration,
    /// The time-out of a request's body.
    pub(super) body_timeout: Duration,
    /// The max-age of Strict-Transport-Security; `None` for no such header.
    pub(super) hsts: Option<Duration>,
    /// The limits of a connection (HTTP-9).
    pub(super) limits: ListenerLimits,
}

impl Gate {
    /// Creates a gate in front of the core.
    pub(super) fn new(
        current: Arc<Current>,
        store: Arc<StateStore>,
        clock: Clock,
        telemetry: Arc<Telemetry>,
        settings: GateSettings,
    ) -> Self {
        let mut server_options = HttpServerOptions::default();
        server_options.h2_idle_timeout = Some(settings.keepalive);
        let overload = Overload::new(settings.limits.overload_delay, Arc::clone(&telemetry));
        let closing = Arc::new(Closing::default());
        Self {
            current: Arc::clone(&current),
            ledger: Ledger::new(
                clock.clone(),
                Arc::clone(&telemetry),
                settings.hsts.and_then(strict_transport_security),
            ),
            responder: Responder::new(settings.origin),
            forwarder: Forwarder::new(
                Upstream::new(clock, Arc::clone(&telemetry)),
                &settings.limits,
                Arc::clone(&store),
                telemetry,
                Arc::clone(&closing),
                current,
            ),
            store,
            keepalive: settings.keepalive,
            body_pace: BodyPace {
                timeout: settings.body_timeout,
                rate: settings.limits.body_rate,
            },
            limits: settings.limits,
            server_options,
            overload,
            descriptions: Descriptions::new(),
            closing,
        }
    }

    /// The telemetry that exchanges are reported to.
    pub(super) const fn telemetry(&self) -> &Arc<Telemetry> {
        self.ledger.telemetry()
    }

    /// Refuses strangers while the threads cannot keep up.
    pub(super) const fn overload(&self) -> &Arc<Overload> {
        &self.overload
    }

    /// The pending requests.
    pub(super) const fn underway(&self) -> &Arc<Underway> {
        self.ledger.underway()
    }

    /// Serves a request whose head was read. Returns whether the connection can be reused: never without an answer, or the answer to the next
    /// request would be taken for that to this one.
    async fn serve(&self, session: &mut Session, exchange: &mut Exchange<'_>) -> bool {
        let answered = pin!(self.answer(session, exchange)).await;
        let is_whole = match answered {
            Ok(is_whole) => is_whole,
            Err(failure) => pin!(self.fail(session, failure, exchange)).await,
        };
        is_whole && has_begun(session)
    }

    /// Judges a request, and refuses or forwards it. Returns whether the caller got a whole answer.
    async fn answer(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
    ) -> Result<bool, ForwardFailure> {
        let mut room = None;
        let judged = pin!(self.judge(session, exchange, &mut room)).await;
        let mut judged =
            judged.map_err(|refusal| exchange.count_refused(refusal, peer_of(session)));
        let room = room.filter(|_| matches!(judged, Ok(Admission::Forward(_))));
        match &mut judged {
            Ok(Admission::Forward(admitted)) => {
                pin!(self.forwarder.forward(session, exchange, admitted, room)).await?;
                Ok(true)
            }
            Ok(Admission::Answer(answer)) => {
                exchange.set_outcome(Outcome::Answered);
                let context = exchange.answer_context();
                let answered = self
                    .responder
                    .sca_redirect(session, answer.href(), &context);
                answered.await?;
                Ok(true)
            }
            Err(refusal) if refusal.reason() == Reason::OperationUnknown => {
                pin!(self.describe(session, exchange)).await
            }
            Err(refusal) => Ok(pin!(self.refuse_as(session, exchange, refusal)).await),
        }
    }

    /// Answers a request for the description of the interface, and refuses any other unknown path.
    async fn describe(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
    ) -> Result<bool, ForwardFailure> {
        let documents = &exchange.in_use().documents;
        match self.descriptions.find(session.req_header(), documents) {
            Found::Document(document) => {
                exchange.set_outcome(Outcome::Answered);
                let context = exchange.answer_context();
                let answered = self.responder.document(session, &document, &context);
                answered.await?;
                Ok(true)
            }
            Found::Nothing => {
                let catalogue = &exchange.in_use().snapshot.catalogue;
                let unknown = admission::unknown_path(session.req_header().raw_path(), catalogue);
                Ok(self.refuse_as(session, exchange, &unknown).await)
            }
            Found::TooMany => {
                let refusal = descriptions::too_many();
                Ok(self.refuse_as(session, exchange, &refusal).await)
            }
        }
    }

    /// Judges the request of a session.
    async fn judge(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
        room: &mut Option<RequestRoom>,
    ) -> Result<Admission, Refusal> {
        let digest = session
            .digest()
            .and_then(|digest| digest.proxy_digest.clone());
        let arrival = Arrival::of(
            session,
            digest.as_deref().and_then(ClientConnection::in_digest),
            exchange.trace(),
        );
        if let Some(reason) = arrival.excess() {
            session.set_keepalive(None);
            return Err(Refusal::new(reason));
        }
        self.overload.judge(|| arrival.is_strange())?;
        if self.telemetry().audit().refuses() {
            return Err(failure::not_audited());
        }
        let waiting = room::await_room(exchange, session.req_header(), &arrival);
        *room = pin!(waiting).await?;
        if let Err(refusal) = judge_size(session.req_header(), &self.limits) {
            let refusal = exchange.count_refused(refusal, peer_of(session));
            forget_fields(session);
            return Err(refusal);
        }
        judge_expectation(session.req_header())?;
        let (trial, links) = exchange.trial(self.store.blocks());
        let present = self.current.as_ref();
        if request_body::announced(session) == Announced::Nothing {
            if arrival.is_followed() {
                session.set_keepalive(None);
            }
            let received = session.req_header();
            let head = arrival.head(received, received.raw_path());
            let mut none = Bytes::new();
            let proven = pin!(admission::prove(&head, &mut none, trial)).await?;
            return pin!(admission::authorise(proven, links, &self.store, present)).await;
        }
        // Reading the body borrows the session with its head, so the request is judged by a copy of its head, which shares every value.
        let received = session.req_header().as_owned_parts();
        let target = session.req_header().raw_path().to_vec();
        let head = arrival.head(&received, &target);
        let mut body = DownstreamBody::new(session, self.body_pace);
        // Pinned in place: awaiting a future by value would copy it first.
        let proven = pin!(admission::prove(&head, &mut body, trial)).await?;
        pin!(admission::authorise(proven, links, &self.store, present)).await
    }

    /// Refuses a request whose head was not read, and reports it like any other (ERR-8).
    async fn refuse_head(&self, session: &mut Session, head: RefusedHead) {
        let refusal = &head.refusal;
        let opening = Opening::unread(session, self.ledger.trace_ids(), head.request_id);
        let mut exchange = Box::new(self.ledger.begin(self.current.load_full(), opening));
        exchange.set_outcome(Outcome::Refused(refusal.reason()));
        let id = exchange.make_id();
        let context = exchange.answer_context();
        let refused = self.responder.refuse_head(session, refusal, id, &context);
        if let Err(error) = refused.await {
            exchange.set_undelivered(cut_of(session, &error));
        }
        exchange.end(session);
    }

    /// Answers a request that failed, if that is still possible. Returns whether the connection can be reused.
    async fn fail(
        &self,
        session: &mut Session,
        failure: ForwardFailure,
        exchange: &mut Exchange<'_>,
    ) -> bool {
        let (outcome, refusal) = match failure {
            ForwardFailure::PsuUnknown(refusal) | ForwardFailure::NoLongerPermitted(refusal) => {
                (Outcome::Refused(refusal.reason()), *refusal)
            }
            ForwardFailure::TooManyInFlight(full) => {
                (Outcome::Refused(full.reason()), Refusal::new(full.reason()))
            }
            ForwardFailure::NotAudited => (
                Outcome::Refused(Reason::StateUnavailable),
                failure::not_audited(),
            ),
            ForwardFailure::ErrorReplaced(status) => {
                let refusal = failure::not_json(status);
                (Outcome::Failed(refusal.reason()), refusal)
            }
            ForwardFailure::Error(error) if failure::is_unsigned(&error) => {
                return pin!(self.refusals().end_unsigned(session, exchange)).await;
            }
            ForwardFailure::Error(error) => {
                let Some(refusal) = failure::refusal(&error) else {
                    exchange.set_undelivered(cut_of(session, &error));
                    return false;
                };
                (Outcome::Failed(refusal.reason()), refusal)
            }
        };
        exchange.set_outcome(outcome);
        // If an answer has begun, a second one would corrupt it, so the connection ends.
        if has_begun(session) {
            exchange.set_operator_text(refusal.operator());
            return false;
        }
        pin!(self.refusals().send(session, exchange, &refusal)).await
    }

    /// Refuses a request; the refusal is its outcome. Returns whether the caller got the whole answer.
    async fn refuse_as(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
        refusal: &Refusal,
    ) -> bool {
        exchange.set_outcome(Outcome::Refused(refusal.reason()));
        pin!(self.refusals().send(session, exchange, refusal)).await
    }

    fn refusals(&self) -> Refusals<'_> {
        Refusals::new(&self.responder, &self.closing, self.telemetry())
    }
}

/// pingora calls this once per request.
#[async_trait]
impl HttpServerApp for Gate {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: Session,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let next = pin!(read_head(&mut session, &self.closing)).await;
        if !matches!(next, NextHead::Read) {
            if let NextHead::Refused(head) = next {
                pin!(self.refuse_head(&mut session, *head)).await;
            }
            session.shutdown().await;
            return None;
        }
        // Over HTTP/1.1 the connection's own time-out ends a blocked write, and counts it: of two, the other could come first.
        if session.as_http1().is_none() {
            session.set_write_timeout(Some(self.limits.write_timeout));
        }
        let stopping = *shutdown.borrow();
        // Not kept open: HTTP/1.0 without `Connection: keep-alive`.
        let keeps = session.get_keepalive().is_some() && !stopping;
        session.set_keepalive(keeps.then_some(self.keepalive.as_secs()));
        // `in_use` is moved with the future that holds it, so a large value would cost every request.
        let in_use = self.current.load_full();
        let opening = Opening::of(&session, self.ledger.trace_ids());
        let mut exchange = Box::new(self.ledger.begin(in_use, opening));
        let reusable = pin!(self.serve(&mut session, &mut exchange)).await;
        let (time, telemetry) = (self.limits.write_timeout, self.telemetry());
        let written = await_written(&mut session, &mut exchange, reusable, time, telemetry);
        pin!(written).await;
        end_request(&session);
        exchange.end(&session);
        if !reusable {
            return None;
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let stream = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(stream, settings))
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.server_options)
    }

    fn h2_options(&self) -> Option<H2Options> {
        Some(http2_options(&self.limits))
    }

    async fn http_cleanup(&self) {
        self.closing.close();
    }
}

/// The value of Strict-Transport-Security (RFC 6797, section 6.1).
fn strict_transport_security(max_age: Duration) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("max-age={}", max_age.as_secs())).ok()
}
