//! The life of one request: head, decision, forwarding or the gateway's own answer, report.

use super::{
    arrival::Arrival,
    closing::Closing,
    drain::Underway,
    exchange::{Exchange, Ledger},
    failure,
    forwarding::{ForwardFailure, Forwarder},
    listener::{ClientConnection, http2_options},
    overload::{Overload, Stranger},
    request_body::{self, BodyPace, DownstreamBody},
    request_head::{NextHead, read_head},
    respond::Responder,
    upstream::Upstream,
};
use crate::{
    admission::{self, Admission, Announced, Outcome},
    clock::Clock,
    config::{self, ListenerLimits},
    in_use::Current,
    interface::{
        Fault, Reason, Refusal,
        headers::{self, RequestId},
    },
    signing::{AnswerSigning, AssertionSigner},
    state::StateStore,
    telemetry::Telemetry,
};
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Version, header, request::Parts};
use pingora::{
    apps::{HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream},
    http::RequestHeader,
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
    closing: Arc<Closing>,
}

/// The settings of a gate.
#[derive(Debug)]
pub(super) struct GateSettings {
    /// ERR-1's `system`.
    pub(super) system: String,
    /// How long an idle connection is kept open, in whole seconds.
    pub(super) keepalive: Duration,
    /// The time-out of a request's body.
    pub(super) body_timeout: Duration,
    /// The max-age of Strict-Transport-Security; `None` for no such header.
    pub(super) hsts: Option<Duration>,
    /// The limits of a connection (HTTP-9).
    pub(super) limits: ListenerLimits,
    /// The destination of admitted requests.
    pub(super) upstream: config::Upstream,
    /// Signs assertions for the core (FWD-1), if they are configured.
    pub(super) assertion_signer: Option<Arc<AssertionSigner>>,
    /// Signs answers (SIG-12), if that is configured.
    pub(super) response_signing: Option<AnswerSigning>,
}

impl Gate {
    /// Creates a gate in front of one upstream.
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
        let signing = settings.response_signing;
        let closing = Arc::new(Closing::default());
        Self {
            current,
            ledger: Ledger::new(
                clock.clone(),
                Arc::clone(&telemetry),
                settings.hsts.and_then(strict_transport_security),
            ),
            responder: Responder::new(settings.system, signing.clone()),
            forwarder: Forwarder::new(
                Upstream::new(
                    &settings.upstream,
                    settings.assertion_signer,
                    clock,
                    Arc::clone(&telemetry),
                ),
                &settings.upstream,
                settings.limits.answer_timeout,
                signing,
                Arc::clone(&store),
                telemetry,
                Arc::clone(&closing),
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

    /// Serves a request whose head was read. Returns whether the connection can be reused.
    async fn serve(&self, session: &mut Session, exchange: &mut Exchange<'_>) -> bool {
        let answered = pin!(self.answer(session, exchange)).await;
        match answered {
            Ok(()) => true,
            Err(failure) => pin!(self.fail(session, failure, exchange)).await,
        }
    }

    /// Judges a request, and refuses or forwards it.
    async fn answer(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), ForwardFailure> {
        let judged = pin!(self.judge(session, exchange)).await;
        match &judged {
            Ok(Admission::Forward(admitted)) => {
                pin!(self.forwarder.forward(session, exchange, admitted)).await
            }
            Ok(Admission::Answer(answer)) => {
                exchange.set_outcome(Outcome::Answered);
                let context = exchange.answer_context();
                let answered = self
                    .responder
                    .sca_redirect(session, answer.href(), &context);
                Ok(answered.await?)
            }
            Err(refusal) => {
                exchange.set_outcome(Outcome::Refused(refusal.reason()));
                self.refuse(session, exchange, refusal).await;
                Ok(())
            }
        }
    }

    /// Judges the request of a session.
    async fn judge(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
    ) -> Result<Admission, Refusal> {
        let digest = session
            .digest()
            .and_then(|digest| digest.proxy_digest.clone());
        let arrival = Arrival::of(
            session,
            digest.as_deref().and_then(ClientConnection::in_digest),
        );
        if arrival.is_excess() {
            session.set_keepalive(None);
            return Err(Refusal::new(Reason::Overloaded));
        }
        if self.overload.is_refusing()
            && arrival.is_strange()
            && !self.overload.serves(Stranger::Request)
        {
            return Err(Refusal::new(Reason::Overloaded));
        }
        if let Err(refusal) = self.judge_size(session.req_header()) {
            forget_fields(session);
            return Err(refusal);
        }
        judge_expectation(session.req_header())?;
        let (trial, links) = exchange.trial();
        if request_body::announced(session) == Announced::Nothing {
            if arrival.is_followed() {
                session.set_keepalive(None);
            }
            let received = session.req_header();
            let head = arrival.head(received, received.raw_path());
            let mut none = Bytes::new();
            let proven = pin!(admission::prove(&head, &mut none, trial)).await?;
            return pin!(admission::authorise(proven, links, &self.store)).await;
        }
        // Reading the body borrows the session, which also holds the head. Therefore a request with a body is judged by a copy of
        // its head; the copy shares every value.
        let received = session.req_header().as_owned_parts();
        let target = session.req_header().raw_path().to_vec();
        let head = arrival.head(&received, &target);
        let mut body = DownstreamBody::new(session, self.body_pace);
        // Pinned in place: awaiting a future by value would copy it first.
        let proven = pin!(admission::prove(&head, &mut body, trial)).await?;
        pin!(admission::authorise(proven, links, &self.store)).await
    }

    /// HTTP-9, for both protocols: HTTP/2 names and values are counted in their HTTP/1.1 form.
    fn judge_size(&self, head: &Parts) -> Result<(), Refusal> {
        let fields = &head.headers;
        let is_small = fields.len() <= self.limits.head_fields && {
            // ": " and the line ending.
            let of = |(name, value): (&HeaderName, &HeaderValue)| {
                name.as_str()
                    .len()
                    .saturating_add(value.len())
                    .saturating_add(4)
            };
            fields.iter().map(of).sum::<usize>() <= self.limits.head_size
        };
        is_small
            .then_some(())
            .ok_or_else(|| Refusal::new(Reason::HeadersTooLarge))
    }

    /// Refuses a request whose head was not read, and reports it like any other (ERR-8).
    async fn refuse_head(&self, session: &mut Session, reason: Reason) {
        let mut exchange = Box::new(self.ledger.begin(self.current.load_full(), None));
        exchange.set_outcome(Outcome::Refused(reason));
        let refusal = Refusal::new(reason);
        let context = exchange.answer_context();
        let refused = self.responder.refuse_head(session, &refusal, &context);
        if refused.await.is_err() {
            exchange.set_outcome(Outcome::Abandoned);
        }
        exchange.end(session.response_written().map(|head| head.status.as_u16()));
    }

    /// Answers a request that failed, if that is still possible. Returns whether the connection can be reused.
    async fn fail(
        &self,
        session: &mut Session,
        failure: ForwardFailure,
        exchange: &mut Exchange<'_>,
    ) -> bool {
        let (outcome, refusal) = match failure {
            ForwardFailure::PsuUnknown(refusal) => (Outcome::Refused(refusal.reason()), *refusal),
            ForwardFailure::TooManyInFlight => {
                let refusal = Refusal::new(Reason::Overloaded);
                (Outcome::Refused(refusal.reason()), refusal)
            }
            ForwardFailure::ErrorReplaced(status) => {
                let refusal = Refusal::new(Reason::UpstreamError).with_status(status);
                (Outcome::Failed(refusal.reason()), refusal)
            }
            ForwardFailure::Error(error) => {
                let Some(refusal) = failure::refusal(&error) else {
                    exchange.set_outcome(Outcome::Abandoned);
                    return false;
                };
                (Outcome::Failed(refusal.reason()), refusal)
            }
        };
        exchange.set_outcome(outcome);
        // If an answer has begun, a second one would corrupt it, so the connection ends.
        let begun = session
            .response_written()
            .is_some_and(|head| !head.status.is_informational());
        if !begun {
            self.refuse(session, exchange, &refusal).await;
        }
        !begun
    }

    async fn refuse(&self, session: &mut Session, exchange: &mut Exchange<'_>, refusal: &Refusal) {
        self.closing.end_with_answer(session);
        exchange.set_operator_text(refusal.operator());
        let context = exchange.answer_context();
        let refused = self.responder.refuse(session, refusal, &context).await;
        if let Err(error) = refused {
            failure::count_blocked(self.telemetry(), session, &error);
            exchange.set_outcome(Outcome::Abandoned);
        }
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
        match next {
            NextHead::Read => {}
            NextHead::Refused(reason) => {
                pin!(self.refuse_head(&mut session, reason)).await;
                session.shutdown().await;
                return None;
            }
            NextHead::Absent => {
                session.shutdown().await;
                return None;
            }
        }
        session.set_write_timeout(Some(self.limits.write_timeout));
        let stopping = *shutdown.borrow();
        // Not kept open: HTTP/1.0 without `Connection: keep-alive`.
        let keeps = session.get_keepalive().is_some() && !stopping;
        session.set_keepalive(keeps.then_some(self.keepalive.as_secs()));
        // `in_use` is moved with the future that holds it, so a large value would cost every request.
        let in_use = self.current.load_full();
        let mut exchange = Box::new(self.ledger.begin(in_use, request_id(&session)));
        let reusable = pin!(self.serve(&mut session, &mut exchange)).await;
        end_request(&session);
        exchange.end(session.response_written().map(|head| head.status.as_u16()));
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

/// RFC 9110, section 10.1.1: no other expectation can be met. HTTP/1.0 has none.
fn judge_expectation(head: &Parts) -> Result<(), Refusal> {
    let mut values = head.headers.get_all(header::EXPECT).iter();
    let is_met = values.all(|value| {
        let mut members = value.as_bytes().split(|byte| *byte == b',');
        members.all(|member| member.trim_ascii().eq_ignore_ascii_case(b"100-continue"))
    });
    if is_met || head.version == Version::HTTP_10 {
        return Ok(());
    }
    let text = "the only expectation that is met is 100-continue";
    let fault = Fault::header(Reason::ExpectationFailed, "Expect", text);
    Err(Refusal::from(fault))
}

/// Frees the fields of a head that is too large: over HTTP/2, its answer may wait for the client for a while.
fn forget_fields(session: &mut Session) {
    if session.as_http1().is_none()
        && let Ok(empty) = RequestHeader::build(session.req_header().method.clone(), b"/", None)
    {
        *session.req_header_mut() = empty;
    }
}

/// X-Request-ID, if it is well-formed.
fn request_id(session: &Session) -> Option<RequestId> {
    let id = session.get_header(&headers::X_REQUEST_ID.name)?;
    RequestId::parse(id)
}

/// Marks the answer as finished: the connection waits for its next request.
fn end_request(session: &Session) {
    if let Some(connection) = session.digest().and_then(ClientConnection::of) {
        connection.end_request();
    }
}
