//! The life of one request, step by step.

use super::{
    answer,
    body::{self, DownstreamBody},
    demand::Demand,
    door::Connection,
    drain::Underway,
    inner_address::{Done, Place},
    respond::{self, Setting},
    settle,
    upstream::Upstream,
};
use crate::{
    admission::{self, Admission, Admitted, Announced, Framing, Head, Outcome, Record, Trial},
    clock::{Clock, Stopwatch, Timestamp},
    config,
    in_use::{Current, InUse},
    interface::{
        QuotaLeft, Reason, Refusal,
        headers::{self, Fields, content, identifier},
    },
    signing::{AnswerSigning, Asserter},
    state::Kept,
    telemetry::Telemetry,
};
use async_trait::async_trait;
use bytes::Bytes;
use http::{
    HeaderValue, Method, header,
    request::Parts,
    response::Parts as AnswerHead,
    uri::{Authority, Scheme},
};
use pingora::{
    Error, ErrorType, Result,
    apps::{HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream},
    prelude::timeout,
    protocols::http::{
        ServerSession as Session,
        v2::server::{H2Options, default_h2_options},
    },
    server::ShutdownWatch,
};
use std::{
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// HTTP/2: the headers of one request. A certificate and a signature take 3 to 6 KiB.
const H2_MAX_HEADER_LIST: u32 = 32 * 1024;

/// HTTP/2: requests at once on one connection.
const H2_MAX_STREAMS: u32 = 64;

/// How long a connection is listened to once more when the listener closes: what its caller sent until then counts.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// How long a head may take that has begun to arrive when the listener closes.
const LAST_HEAD: Duration = Duration::from_secs(3);

/// What a changed body makes untrue.
const OF_OTHER_BYTES: [&str; 5] = [
    "content-length",
    "etag",
    "content-md5",
    "content-digest",
    "repr-digest",
];

/// The gate: what is done with a request.
#[derive(Debug)]
pub struct Gate {
    current: Arc<Current>,
    kept: Arc<Kept>,
    clock: Clock,
    telemetry: Arc<Telemetry>,
    settings: GateSettings,
    upstream: Upstream,
    server_options: HttpServerOptions,
    underway: Arc<Underway>,
    /// The listener is closed: no connection is to wait for another request.
    closed: AtomicBool,
    closing: Notify,
    /// The minute in which an inner address was last spoken of.
    warned: AtomicU64,
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
    pub upstream: config::Upstream,
    /// What signs the core's assertions (FWD-1), where there are any.
    pub asserter: Option<Arc<Asserter>>,
    /// What signs answers (SIG-12), where they are signed.
    pub response_signing: Option<AnswerSigning>,
}

/// What is known of the request that is on its way.
#[derive(Debug)]
pub struct Exchange {
    in_use: Arc<InUse>,
    record: Record,
    admitted: Option<Admitted>,
    outcome: Option<Outcome>,
    operator: Option<String>,
    request_id: Option<HeaderValue>,
    /// The status of an upstream's answer that is being replaced (ERR-6).
    replaced: Option<u16>,
    /// The gateway's own answer in place of the upstream's (SCA-19).
    instead: Option<Refusal>,
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
        current: Arc<Current>,
        kept: Arc<Kept>,
        clock: Clock,
        telemetry: Arc<Telemetry>,
        mut settings: GateSettings,
    ) -> Self {
        let mut server_options = HttpServerOptions::default();
        server_options.h2_idle_timeout = Some(settings.keepalive);
        let signing = settings.response_signing.take();
        let upstream = Upstream::new(&settings.upstream, settings.asserter.take(), signing);
        Self {
            current,
            kept,
            clock,
            telemetry,
            settings,
            upstream,
            server_options,
            underway: Arc::default(),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            warned: AtomicU64::new(0),
        }
    }

    /// What is measured.
    pub(super) const fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// The requests that are not finished.
    pub(super) const fn underway(&self) -> &Arc<Underway> {
        &self.underway
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
        let InUse {
            snapshot, links, ..
        } = exchange.in_use.as_ref();
        let trial = Trial::open(snapshot, &self.clock, &mut exchange.record);
        if body::announced(session) == Announced::Nothing {
            let received = session.req_header();
            let head = arrival.head(received, received.raw_path());
            let mut none = Bytes::new();
            let proven = pin!(admission::prove(&head, &mut none, trial)).await?;
            return pin!(admission::authorise(proven, links, &self.kept)).await;
        }
        // The session that a body is read from also holds the head, so a request with a body is judged by a copy of
        // its head. The copy shares every value.
        let received = session.req_header().as_owned_parts();
        let target = session.req_header().raw_path().to_vec();
        let head = arrival.head(&received, &target);
        let mut body = DownstreamBody::new(session, self.settings.body_timeout);
        // Pinned where it is made: a future that is awaited by value is copied first.
        let proven = pin!(admission::prove(&head, &mut body, trial)).await?;
        pin!(admission::authorise(proven, links, &self.kept)).await
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What is done to the head of the core's answer before it goes to the caller.
    pub(super) async fn answered(
        &self,
        head: &mut AnswerHead,
        exchange: &mut Exchange,
    ) -> Result<()> {
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
        answer::clean(&mut head.headers);
        let catalogue = &exchange.in_use.snapshot.catalogue;
        let inside = self.upstream.inside();
        inside.clean(&mut head.headers, catalogue, |place, done| {
            self.names_inside(exchange, place, done);
        });
        let bodiless = answer::is_bodiless(head, exchange.admitted()?.method());
        answer::frame(head, bodiless);
        if status == 401 && Demand::takes(content_length(head)) {
            let demand = Demand::of(exchange.admitted()?);
            exchange.demand = demand.map_err(respond::no_link)?;
            if exchange.demand.is_some() {
                // How long it will be is known at its end, and what vouches for the core's own bytes is not true of others.
                for name in OF_OTHER_BYTES {
                    head.headers.remove(name);
                }
                let chunked = HeaderValue::from_static("chunked");
                head.headers.insert(header::TRANSFER_ENCODING, chunked);
            }
        }
        if let Some(left) = left {
            respond::say_quota(&mut head.headers, left)?;
        }
        respond::seal(head, &self.setting(exchange))
    }

    /// Looks at the first part of an answer's body, as it came (FWD-7). The gateway's own page is nobody's secret.
    pub(super) fn look_at(&self, part: &[u8], exchange: &Exchange) {
        let page = Some(exchange.in_use.links.page());
        if self.upstream.inside().is_linked_in(part, page) {
            self.names_inside(exchange, Place::Body, Done::Passed);
        }
    }

    /// An answer names a host inside: it is counted, and said once a minute at most.
    fn names_inside(&self, exchange: &Exchange, place: Place, done: Done) {
        self.telemetry.inner_address(place.name(), done.name());
        let minute = self.now().unix() / 60;
        if self.warned.swap(minute, Ordering::Relaxed) != minute {
            let operation = exchange.record.operation();
            let operation = operation.map(|operation| operation.name.as_str());
            let (place, done) = (place.name(), done.name());
            tracing::warn!(
                operation,
                place,
                done,
                "an answer of the core names a host that only the bank's network has"
            );
        }
    }

    /// What is settled when the upstream answers; what is left of the quota.
    ///
    /// # Errors
    /// The core refuses a PSU that is being learned: the gateway answers by itself (SCA-19).
    async fn settle(
        &self,
        exchange: &mut Exchange,
        head: &AnswerHead,
    ) -> Result<Option<QuotaLeft>> {
        let admitted = exchange.admitted()?;
        if settle::is_not_learned(admitted, head.status, &head.headers) {
            settle::answered(admitted, &self.kept, 401).await;
            exchange.instead = Some(admitted.not_learned());
            let status = ErrorType::HTTPStatus(head.status.as_u16());
            return Err(Error::explain(status, "the core does not know the PSU"));
        }
        let left = settle::answered(admitted, &self.kept, head.status.as_u16()).await;
        if head.status.is_success() {
            let now = self.clock.now();
            let account_ids = &exchange.in_use.snapshot.policy.account_ids;
            let (kept, telemetry) = (&*self.kept, &*self.telemetry);
            settle::learn(admitted, &head.headers, now, account_ids, kept, telemetry).await;
        }
        Ok(left)
    }

    /// Gives back what a request took that the upstream never answered (QUO-5, REP-1). One that a client left, or that
    /// the upstream was too slow for, stays counted: the core may have done it.
    async fn undo(&self, exchange: &Exchange, error: &Error) {
        let replaced = exchange.replaced.is_some() || exchange.instead.is_some();
        let answered = exchange.outcome.is_some() || replaced;
        // An answer that is not taken is none that the caller had.
        let unreachable = respond::failure(error).is_some_and(|refusal| {
            matches!(
                refusal.reason(),
                Reason::UpstreamUnreachable | Reason::UpstreamError
            )
        });
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
            catalogue: &exchange.in_use.snapshot.catalogue,
            signer: self.upstream.signer(),
        }
    }

    async fn refuse(&self, session: &mut Session, exchange: &mut Exchange, refusal: &Refusal) {
        self.close_after(session);
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
            fields: Fields::of(&received.headers),
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
                None => Framing::Frames {
                    other_scheme: received
                        .uri
                        .scheme()
                        .is_some_and(|scheme| *scheme != Scheme::HTTPS),
                },
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
    pub(super) fn admitted(&self) -> Result<&Admitted> {
        self.admitted
            .as_ref()
            .ok_or_else(|| Error::explain(ErrorType::InternalError, "the request was not admitted"))
    }

    /// A connection to the upstream is being looked for.
    pub(super) fn began_upstream(&mut self) {
        self.upstream = Some(Stopwatch::start());
    }

    /// The upstream was connected to.
    pub(super) const fn connected(&mut self) {
        self.connected = true;
    }

    /// A part of the answer's body as the caller gets it.
    pub(super) fn pass(&mut self, part: Option<Bytes>, end: bool) -> Option<Bytes> {
        match &mut self.demand {
            Some(demand) => demand.pass(part, end),
            None => part,
        }
    }
}

/// A request under way. Where it is dropped before it is finished, since the process ends, it has its line all the same.
struct Counted<'a> {
    gate: &'a Gate,
    exchange: &'a mut Exchange,
    logged: bool,
}

impl<'a> Counted<'a> {
    fn begin(gate: &'a Gate, exchange: &'a mut Exchange) -> Self {
        gate.underway.begin();
        Self {
            gate,
            exchange,
            logged: false,
        }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if !self.logged {
            self.gate
                .write_line(self.exchange, Outcome::Abandoned, None);
        }
        self.gate.underway.end();
    }
}

/// pingora calls it once for each request.
#[async_trait]
impl HttpServerApp for Gate {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: Session,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        if !self.read_head(&mut session).await {
            return None;
        }
        let stopping = *shutdown.borrow();
        session.set_keepalive((!stopping).then_some(self.settings.keepalive.as_secs()));
        // It is moved with the future that holds it: a large one would cost every request.
        let mut exchange = Box::new(self.open(&session));
        let mut counted = Counted::begin(self, &mut exchange);
        let exchange = &mut *counted.exchange;
        let error = self.serve(&mut session, exchange).await.err();
        let reusable = match &error {
            Some(error) => self.fail(&mut session, error, exchange).await,
            None => true,
        };
        self.log(&session, error.is_some(), exchange);
        counted.logged = true;
        if let Some(error) = error {
            session.on_proxy_failure(error);
        }
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
        let mut options = default_h2_options();
        options
            .max_header_list_size(H2_MAX_HEADER_LIST)
            .max_concurrent_streams(H2_MAX_STREAMS);
        Some(options)
    }

    async fn http_cleanup(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
    }
}

impl Gate {
    /// Reads the head of the next request. False where there is none, or where HTTP itself refuses it (HTTP-7).
    async fn read_head(&self, session: &mut Session) -> bool {
        let Some(read) = self.read_while_open(session).await else {
            session.shutdown().await;
            return false;
        };
        let refused = match read {
            Ok(true) if session.req_header().method != Method::CONNECT => return true,
            Ok(true) => Some(405),
            Ok(false) => return false,
            Err(error) => matches!(error.etype(), ErrorType::InvalidHTTPHeader).then_some(400),
        };
        if let Some(status) = refused {
            // A caller that is gone needs no answer.
            let _ = session.respond_error(status).await;
        }
        session.shutdown().await;
        false
    }

    /// Reads a head. None where the listener is closed and none is on its way: a connection that waits ends with it. Over
    /// HTTP/2 heads are whole when they come, and the connection itself says which is the last.
    async fn read_while_open(&self, session: &mut Session) -> Option<Result<bool>> {
        let digest = session
            .digest()
            .and_then(|digest| digest.ssl_digest.clone());
        let mut reading = std::pin::pin!(session.read_request());
        tokio::select! {
            biased;
            read = &mut reading => return Some(read),
            () = self.listener_closed() => {}
        }
        if let Ok(read) = timeout(LAST_LOOK, &mut reading).await {
            return Some(read);
        }
        let connection: &Connection = digest.as_deref()?.extension.get()?;
        if !connection.is_arriving() {
            return None;
        }
        timeout(LAST_HEAD, reading).await.ok()
    }

    async fn listener_closed(&self) {
        let closing = self.closing.notified();
        if !self.closed.load(Ordering::Acquire) {
            closing.await;
        }
    }

    /// Where the listener is closed, the answer says that its connection ends with it.
    pub(super) fn close_after(&self, session: &mut Session) {
        if self.closed.load(Ordering::Acquire) {
            session.set_keepalive(None);
        }
    }

    /// What is known of a request whose head was read: nothing is admitted yet.
    pub fn open(&self, session: &Session) -> Exchange {
        let id = session.get_header(&headers::X_REQUEST_ID.name);
        Exchange {
            in_use: self.current.load_full(),
            record: Record::open(),
            admitted: None,
            outcome: None,
            operator: None,
            request_id: id
                .filter(|id| identifier::is_valid(headers::trim(id.as_bytes())))
                .cloned(),
            replaced: None,
            instead: None,
            demand: None,
            connected: false,
            upstream: None,
            upstream_took: None,
        }
    }

    /// Judges a request, and answers it, or has the core answer it.
    async fn serve(&self, session: &mut Session, exchange: &mut Exchange) -> Result<()> {
        match self.judge(session, exchange).await {
            Ok(Admission::Forward(admitted)) => {
                exchange.admitted = Some(admitted);
                self.forward(session, exchange).await
            }
            Ok(Admission::Answer(answer)) => {
                exchange.outcome = Some(Outcome::Answered);
                let setting = self.setting(exchange);
                respond::sca_redirect(session, answer.href(), &setting).await
            }
            Err(refusal) => {
                exchange.outcome = Some(Outcome::Refused(refusal.reason()));
                self.refuse(session, exchange, &refusal).await;
                Ok(())
            }
        }
    }

    /// Sends the request to the core, and the core's answer to the caller.
    ///
    /// # Errors
    /// The request was not admitted, or either side failed.
    pub async fn forward(&self, session: &mut Session, exchange: &mut Exchange) -> Result<()> {
        self.upstream.forward(self, session, exchange).await
    }

    /// Says that a request failed, where that can still be said. Whether the connection can be used again.
    pub async fn fail(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut Exchange,
    ) -> bool {
        self.undo(exchange, error).await;
        let replaced = exchange
            .replaced
            .map(|status| Refusal::new(Reason::UpstreamError).with_status(status));
        let instead = exchange.instead.take();
        let outcome = instead
            .as_ref()
            .map(|refusal| Outcome::Refused(refusal.reason()));
        let Some(refusal) = instead.or(replaced).or_else(|| respond::failure(error)) else {
            exchange.outcome = Some(Outcome::Abandoned);
            return false;
        };
        exchange.outcome = Some(outcome.unwrap_or(Outcome::Failed(refusal.reason())));
        // Once an answer has begun, a second one would only garble it: the connection ends.
        let begun = session
            .response_written()
            .is_some_and(|head| !head.status.is_informational());
        if !begun {
            self.refuse(session, exchange, &refusal).await;
        }
        !begun
    }

    fn log(&self, session: &Session, failed: bool, exchange: &Exchange) {
        let digest = session
            .digest()
            .and_then(|digest| digest.ssl_digest.as_ref());
        if let Some(connection) = digest.and_then(|digest| digest.extension.get::<Connection>()) {
            connection.end_request();
        }
        let cut_off = failed && matches!(exchange.outcome, Some(Outcome::Forwarded(_)) | None);
        let outcome = match exchange.outcome {
            Some(outcome) if !cut_off => outcome,
            _ => Outcome::Abandoned,
        };
        let status = session.response_written().map(|head| head.status.as_u16());
        self.write_line(exchange, outcome, status);
    }

    fn write_line(&self, exchange: &Exchange, outcome: Outcome, status: Option<u16>) {
        self.telemetry.take(
            &exchange.in_use.handles,
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
}

/// ERR-6.
/// Whether an answer says that it is JSON, once: of two types somebody may read the other.
fn says_json(head: &AnswerHead) -> bool {
    let mut kinds = head.headers.get_all(header::CONTENT_TYPE).iter();
    let (first, another) = (kinds.next(), kinds.next());
    let kind = first.and_then(|kind| kind.to_str().ok());
    another.is_none()
        && kind.is_some_and(|kind| content::is_json(kind.split(';').next().unwrap_or_default()))
}

fn content_length(head: &AnswerHead) -> Option<usize> {
    let length = head.headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}
