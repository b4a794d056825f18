//! The life of one request, hook by hook.

use super::{
    answers::Answers,
    assertion,
    body::{self, DownstreamBody},
    demand::Demand,
    door::Connection,
    forward,
    respond::{self, Setting},
    settle,
};
use crate::{
    admission::{self, Admission, Admitted, Announced, Framing, Head, Outcome, Record, Snapshot},
    clock::{Clock, Stopwatch},
    config::Upstream,
    interface::{
        QuotaLeft, Reason, Refusal,
        headers::{self, content, identifier},
    },
    signing::{AnswerSigning, Asserter},
    state::{Kept, Store},
    telemetry::{Handles, Telemetry},
};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, header, request::Parts, uri::Authority};
use pingora::{
    Error, ErrorType, Result,
    http::{RequestHeader, ResponseHeader},
    modules::http::HttpModules,
    protocols::Digest,
    proxy::{FailToProxy, ProxyHttp, Session},
    upstreams::peer::HttpPeer,
};
use std::{net::SocketAddr, os::fd::RawFd, sync::Arc, time::Duration};

/// What requests are judged by, and the metric handles made for it: replaced together, never one without the other.
#[derive(Debug)]
pub struct World {
    snapshot: Snapshot,
    handles: Handles,
}

impl World {
    /// A snapshot that is taken into use.
    pub fn new(snapshot: Snapshot, telemetry: &Telemetry) -> Self {
        let handles = telemetry.handles(&snapshot.catalogue);
        Self { snapshot, handles }
    }

    pub(super) const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// The gate: pingora calls it at each step of a request.
#[derive(Debug)]
pub struct Gate {
    world: Arc<ArcSwap<World>>,
    store: Store,
    kept: Arc<Kept>,
    clock: Clock,
    telemetry: Arc<Telemetry>,
    settings: GateSettings,
    peer: HttpPeer,
    answers: Option<Answers>,
}

/// What a gate is told.
#[derive(Debug)]
pub struct GateSettings {
    /// ERR-1's `system`.
    pub system: String,
    /// How long a connection is kept open between two requests, in whole seconds.
    pub keepalive: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Where admitted requests go.
    pub upstream: Upstream,
    /// What signs the core's assertions (FWD-1), where there are any.
    pub asserter: Option<Arc<Asserter>>,
    /// What signs answers (SIG-12), where they are signed.
    pub response_signing: Option<AnswerSigning>,
}

/// What is known of the request that is on its way.
#[derive(Debug)]
pub struct Exchange {
    world: Arc<World>,
    record: Record,
    admitted: Option<Admitted>,
    outcome: Option<Outcome>,
    operator: Option<String>,
    request_id: Option<HeaderValue>,
    /// The status of an upstream's answer that is being replaced (ERR-6).
    replaced: Option<u16>,
    /// An answer of the upstream that gets a link (SCA-14).
    demand: Option<Demand>,
    /// Whether the upstream was connected to.
    connected: bool,
    upstream: Option<Stopwatch>,
    upstream_took: Option<Duration>,
}

impl Gate {
    /// A gate in front of one upstream.
    pub fn new(
        world: World,
        kept: Arc<Kept>,
        clock: Clock,
        telemetry: Arc<Telemetry>,
        mut settings: GateSettings,
    ) -> Self {
        let answers = settings.response_signing.take().map(Answers::new);
        let upstream = &settings.upstream;
        let mut peer = HttpPeer::new(upstream.address, false, String::new());
        peer.options.connection_timeout = Some(upstream.connect_timeout);
        peer.options.total_connection_timeout = Some(upstream.connect_timeout);
        peer.options.read_timeout = Some(upstream.read_timeout);
        peer.options.write_timeout = Some(upstream.read_timeout);
        peer.options.idle_timeout = Some(upstream.idle_timeout);
        Self {
            world: Arc::new(ArcSwap::from_pointee(world)),
            store: Store::Kept(Arc::clone(&kept)),
            kept,
            clock,
            telemetry,
            settings,
            peer,
            answers,
        }
    }

    /// Where the world stands that the next request is judged by.
    pub(super) const fn world(&self) -> &Arc<ArcSwap<World>> {
        &self.world
    }

    /// Judges the request that a session has brought.
    async fn judge(
        &self,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> std::result::Result<Admission, Refusal> {
        let digest = session
            .digest()
            .and_then(|digest| digest.ssl_digest.clone());
        let arrival = Arrival::of(
            session,
            digest.as_deref().and_then(|digest| digest.extension.get()),
        );
        if arrival.connection.is_some_and(Connection::is_excess) {
            session.set_keepalive(None);
            return Err(Refusal::new(Reason::Overloaded));
        }
        let world = &exchange.world.snapshot;
        let record = &mut exchange.record;
        if body::announced(session) == Announced::Nothing {
            let received = session.req_header();
            let head = arrival.head(received, received.raw_path());
            return admission::admit(&head, &mut Bytes::new(), world, &self.store, record).await;
        }
        // The session that a body is read from also holds the head, so a request with a body is judged by a copy of
        // its head. The copy shares every value.
        let received = session.req_header().as_owned_parts();
        let target = session.req_header().raw_path().to_vec();
        let head = arrival.head(&received, &target);
        let mut body = DownstreamBody::new(session, self.settings.body_timeout);
        admission::admit(&head, &mut body, world, &self.store, record).await
    }

    /// What is settled when the upstream answers; what is left of the quota.
    async fn settle(
        &self,
        exchange: &Exchange,
        head: &mut ResponseHeader,
    ) -> Result<Option<QuotaLeft>> {
        let admitted = exchange.admitted()?;
        let status = head.status.as_u16();
        let left = settle::answered(admitted, &self.kept, status).await;
        let unknown_psu = exchange.world.snapshot.policy.unknown_psu;
        let since = unknown_psu.learning_since(exchange.record.received());
        if let Some(since) = since.filter(|_| head.status.is_success()) {
            settle::learn(admitted, &head.headers, since, &self.kept, &self.telemetry).await;
        }
        let ours = |name: &&header::HeaderName| settle::is_for_the_gateway(name);
        let ours: Vec<_> = head.headers.keys().filter(ours).cloned().collect();
        for name in ours {
            head.remove_header(&name);
        }
        Ok(left)
    }

    /// Gives back what a request took that the upstream never answered (QUO-5, REP-1). One that a client left, or that
    /// the upstream was too slow for, stays counted: the core may have done it.
    async fn undo(&self, exchange: &Exchange, error: &Error) {
        let answered = exchange.outcome.is_some() || exchange.replaced.is_some();
        let unreachable = respond::failure(error)
            .is_some_and(|refusal| refusal.reason() == Reason::UpstreamUnreachable);
        let claim = exchange.admitted.as_ref().and_then(Admitted::claim);
        if let Some(claim) = claim
            && !answered
            && (unreachable || !exchange.connected)
        {
            settle::give_back(claim, &self.kept, exchange.connected).await;
        }
    }

    fn setting<'a>(&'a self, exchange: &'a Exchange) -> Setting<'a> {
        Setting {
            system: &self.settings.system,
            operation: exchange.record.operation().map(Arc::as_ref),
            request_id: exchange.request_id.as_ref(),
            now: self.clock.now(),
            catalogue: &exchange.world.snapshot.catalogue,
            signer: self.answers.as_ref().map(Answers::signer),
        }
    }

    async fn refuse(&self, session: &mut Session, exchange: &mut Exchange, refusal: &Refusal) {
        exchange.operator = refusal.operator().map(str::to_owned);
        let setting = self.setting(exchange);
        if respond::refuse(session, refusal, &setting).await.is_err() {
            exchange.outcome = Some(Outcome::Abandoned);
        }
    }
}

/// How a request arrived.
struct Arrival<'a> {
    raw: Option<Bytes>,
    target_rewritten: bool,
    peer: Option<SocketAddr>,
    connection: Option<&'a Connection>,
}

impl<'a> Arrival<'a> {
    fn of(session: &Session, connection: Option<&'a Connection>) -> Self {
        Self {
            raw: session
                .as_http1()
                .map(|http1| http1.get_headers_raw_bytes()),
            target_rewritten: connection.is_some_and(Connection::begin_request),
            peer: session
                .client_addr()
                .and_then(|address| address.as_inet())
                .copied(),
            connection,
        }
    }

    fn head<'h>(&'h self, received: &'h Parts, target: &'h [u8]) -> Head<'h> {
        Head {
            method: &received.method,
            target,
            headers: &received.headers,
            authority: received
                .uri
                .authority()
                .filter(|_| self.raw.is_none())
                .map(Authority::as_str),
            framing: match &self.raw {
                Some(raw) => Framing::Lines {
                    raw,
                    target_rewritten: self.target_rewritten,
                },
                None => Framing::Frames,
            },
            peer: self.peer,
            slot: self.connection.map(|connection| &connection.slot),
            client: self
                .connection
                .and_then(|connection| connection.client.as_ref()),
        }
    }
}

impl Exchange {
    /// The guard of the doors to the upstream: without an admission there is no way through.
    fn admitted(&self) -> Result<&Admitted> {
        self.admitted
            .as_ref()
            .ok_or_else(|| Error::explain(ErrorType::InternalError, "the request was not admitted"))
    }
}

#[async_trait]
impl ProxyHttp for Gate {
    type CTX = Exchange;

    fn new_ctx(&self) -> Exchange {
        Exchange {
            world: self.world.load_full(),
            record: Record::open(&self.clock),
            admitted: None,
            outcome: None,
            operator: None,
            request_id: None,
            replaced: None,
            demand: None,
            connected: false,
            upstream: None,
            upstream_took: None,
        }
    }

    /// None: pingora's own would compress, and cost every request a look.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(
        &self,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<()> {
        session.set_keepalive(Some(self.settings.keepalive.as_secs()));
        let id = headers::X_REQUEST_ID.get(&session.req_header().headers);
        exchange.request_id = id
            .filter(|id| identifier::is_valid(headers::trim(id.as_bytes())))
            .cloned();
        Ok(())
    }

    async fn request_filter(&self, session: &mut Session, exchange: &mut Exchange) -> Result<bool> {
        match self.judge(session, exchange).await {
            Ok(Admission::Forward(admitted)) => {
                exchange.admitted = Some(admitted);
                Ok(false)
            }
            Ok(Admission::Answer(answer)) => {
                exchange.outcome = Some(Outcome::Answered);
                let setting = self.setting(exchange);
                respond::sca_redirect(session, answer.href(), &setting).await?;
                Ok(true)
            }
            Err(refusal) => {
                exchange.outcome = Some(Outcome::Refused(refusal.reason()));
                self.refuse(session, exchange, &refusal).await;
                Ok(true)
            }
        }
    }

    /// Where answers are signed, pingora does not proxy.
    async fn proxy_upstream_filter(
        &self,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<bool> {
        let Some(answers) = &self.answers else {
            return Ok(true);
        };
        answers.forward(self, session, exchange).await?;
        Ok(false)
    }

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<Box<HttpPeer>> {
        exchange.admitted()?;
        exchange.upstream = Some(Stopwatch::start());
        Ok(Box::new(self.peer.clone()))
    }

    async fn upstream_request_filter(
        &self,
        _session: &mut Session,
        head: &mut RequestHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let admitted = exchange.admitted()?;
        *head = *forward::upstream_head(admitted)?;
        match &self.settings.asserter {
            Some(asserter) => assertion::insert(asserter, admitted, head, self.clock.now()),
            None => Ok(()),
        }
    }

    async fn connected_to_upstream(
        &self,
        _session: &mut Session,
        _reused: bool,
        _peer: &HttpPeer,
        _fd: RawFd,
        _digest: Option<&Digest>,
        exchange: &mut Exchange,
    ) -> Result<()> {
        exchange.connected = true;
        Ok(())
    }

    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let admitted = exchange.admitted()?.body();
        if end {
            *body = (!admitted.is_empty()).then(|| admitted.clone());
        } else if body.is_some() {
            *body = Some(Bytes::new());
        }
        Ok(())
    }

    /// A request is sent a second time only where that can do no harm (FWD-3).
    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        session: &mut Session,
        mut error: Box<Error>,
        _exchange: &mut Exchange,
        reused: bool,
    ) -> Box<Error> {
        if session.req_header().method.is_safe() {
            error.retry.decide_reuse(reused);
        } else {
            error.set_retry(false);
        }
        error
    }

    async fn response_filter(
        &self,
        _session: &mut Session,
        head: &mut ResponseHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        if head.status.is_informational() {
            return Ok(());
        }
        exchange.upstream_took = exchange.upstream.as_ref().map(Stopwatch::elapsed);
        let status = head.status.as_u16();
        let left = self.settle(exchange, head).await?;
        if status >= 400 && !says_json(head) {
            exchange.replaced = Some(status);
            return Err(Error::explain(
                ErrorType::HTTPStatus(status),
                "the upstream's error is not JSON",
            ));
        }
        exchange.outcome = Some(Outcome::Forwarded(status));
        for name in [
            header::SERVER,
            header::VIA,
            header::HeaderName::from_static("x-powered-by"),
        ] {
            head.remove_header(&name);
        }
        if status == 401 && Demand::takes(content_length(head)) {
            exchange.demand = exchange.admitted()?.sca_redirect().map(Demand::new);
            if exchange.demand.is_some() {
                // How long it will be is known at its end.
                head.remove_header(&header::CONTENT_LENGTH);
                head.insert_header(header::TRANSFER_ENCODING, "chunked")?;
            }
        }
        if let Some(left) = left {
            respond::say_quota(head, left)?;
        }
        respond::seal(head, &self.setting(exchange))
    }

    fn response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        exchange: &mut Exchange,
    ) -> Result<Option<Duration>> {
        if let Some(demand) = &mut exchange.demand {
            *body = demand.pass(body.take(), end);
        }
        Ok(None)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut Exchange,
    ) -> FailToProxy {
        self.undo(exchange, error).await;
        let replaced = exchange
            .replaced
            .map(|status| Refusal::new(Reason::UpstreamError).with_status(status));
        let Some(refusal) = replaced.or_else(|| respond::failure(error)) else {
            exchange.outcome = Some(Outcome::Abandoned);
            return FailToProxy {
                error_code: 0,
                can_reuse_downstream: false,
            };
        };
        exchange.outcome = Some(Outcome::Failed(refusal.reason()));
        // Once an answer has begun, a second one would only garble it: the connection ends.
        let begun = session
            .response_written()
            .is_some_and(|head| !head.status.is_informational());
        if !begun {
            self.refuse(session, exchange, &refusal).await;
        }
        FailToProxy {
            error_code: refusal.status(),
            can_reuse_downstream: !begun,
        }
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, exchange: &mut Exchange) {
        let digest = session
            .digest()
            .and_then(|digest| digest.ssl_digest.as_ref());
        if let Some(connection) = digest.and_then(|digest| digest.extension.get::<Connection>()) {
            connection.end_request();
        }
        let cut_off =
            error.is_some() && matches!(exchange.outcome, Some(Outcome::Forwarded(_)) | None);
        let outcome = match exchange.outcome {
            Some(outcome) if !cut_off => outcome,
            _ => Outcome::Abandoned,
        };
        let status = session.response_written().map(|head| head.status.as_u16());
        self.telemetry.take(
            &exchange.world.handles,
            crate::telemetry::Finished {
                record: &exchange.record,
                outcome,
                status,
                request_id: exchange.request_id.as_ref(),
                operator: exchange.operator.as_deref(),
                upstream: exchange.upstream_took,
                at: self.clock.now(),
            },
        );
    }

    /// pingora would log every client that goes away; the access log has it.
    fn suppress_error_log(&self, _session: &Session, _exchange: &Exchange, _error: &Error) -> bool {
        true
    }
}

/// ERR-6.
fn says_json(head: &ResponseHeader) -> bool {
    let kind = head
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| content::is_json(kind.split(';').next().unwrap_or_default()))
}

fn content_length(head: &ResponseHeader) -> Option<usize> {
    let length = head.headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}
