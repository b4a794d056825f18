//! The way to the core: a request goes out, its answer comes back (FWD-3, FWD-4, SIG-12).
//!
//! Nothing is sent but what an [`Admitted`](crate::admission::Admitted) holds: a request that was not admitted ends here
//! with 500 before a connection is opened (SIG-11).
//!
//! pingora's own way runs the two directions as two tasks with a channel between them, and asks at once whether the
//! caller has gone; for a gateway whose requests are whole before they are forwarded, one direction after the other is
//! enough, and costs about a third of it less. It is also the only way to hold the head of an answer until its body is
//! known, which a signature needs. A body that is longer than may be held goes on as it comes, unsigned. Deliberately
//! not here: the gateway's own answers, which `respond` signs.

use super::{
    answer::{self, is_bodiless},
    assertion,
    connection::CoreConnection,
    forward,
    inner_address::Inside,
    pool::Pool,
    proxy::{Exchange, Gate},
};
use crate::signing::{AnswerSigner, AnswerSigning, Asserter};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header, response::Parts};
use pingora::{
    Error, ErrorType, Result,
    http::{RequestHeader, ResponseHeader},
    prelude::timeout,
    protocols::http::{ServerSession as Session, date::get_cached_date, v1::client::HttpSession},
};
use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

/// How often a request is sent at most.
const MAX_TRIES: usize = 2;

/// How long the core may think before anybody looks whether the caller is still there: looking costs more than most
/// answers take.
const PATIENCE: Duration = Duration::from_millis(100);

/// The core.
pub(super) struct Upstream {
    address: SocketAddr,
    host: HeaderValue,
    connect_timeout: Duration,
    /// The connections that wait; none where each is closed after its answer (FWD-3).
    pool: Option<Pool>,
    inside: Inside,
    read_timeout: Duration,
    asserter: Option<Arc<Asserter>>,
    signing: Option<AnswerSigning>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Upstream")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A request that failed, and whether it may be sent once more.
struct Failed {
    error: Box<Error>,
    again: bool,
}

impl From<Box<Error>> for Failed {
    fn from(error: Box<Error>) -> Self {
        Self {
            error,
            again: false,
        }
    }
}

impl Upstream {
    /// The core at an address. `asserter` signs what it is told (FWD-1), `signing` what it answers (SIG-12).
    pub(super) fn new(
        settings: &crate::config::Upstream,
        asserter: Option<Arc<Asserter>>,
        signing: Option<AnswerSigning>,
    ) -> Self {
        Self {
            address: settings.address,
            host: settings.host.clone(),
            inside: Inside::new(settings.address.ip(), &settings.host),
            connect_timeout: settings.connect_timeout,
            pool: settings.reuse.then(|| Pool::new(settings.idle_timeout)),
            read_timeout: settings.read_timeout,
            asserter,
            signing,
        }
    }

    /// What signs answers.
    pub(super) fn signer(&self) -> Option<&AnswerSigner> {
        self.signing.as_ref().map(|signing| &*signing.signer)
    }

    /// Which hosts no answer may give away.
    pub(super) const fn inside(&self) -> &Inside {
        &self.inside
    }

    /// Sends an admitted request to the core, and its answer to the caller.
    ///
    /// # Errors
    /// The request was not admitted, or either side failed.
    pub(super) async fn forward(
        &self,
        gate: &Gate,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let mut tries = 0_usize;
        let (mut core, head) = loop {
            tries = tries.saturating_add(1);
            match self.ask(gate, session, exchange).await {
                Ok(answer) => break answer,
                Err(failed) if failed.again && tries < MAX_TRIES => {}
                Err(failed) => return Err(failed.error),
            }
        };
        let mut head = Parts::from(head);
        let bodiless = is_bodiless(&head, &session.req_header().method);
        gate.answered(&mut head, exchange).await?;
        gate.close_after(session);
        match &self.signing {
            None => pass(gate, session, exchange, &mut core, head).await?,
            Some(signing) => hold((gate, signing), session, exchange, &mut core, head).await?,
        }
        self.keep(core, bodiless).await;
        Ok(())
    }

    /// Keeps the connection for another request, where nothing more can come on it that belongs to this answer (FWD-3). A
    /// core that sends a body where there is none sends it behind the head, and nobody knows when.
    async fn keep(&self, mut core: HttpSession, bodiless: bool) {
        let Some(pool) = self.pool.as_ref().filter(|_| !bodiless) else {
            return core.shutdown().await;
        };
        core.respect_keepalive();
        let kept = core.reuse().await;
        if let Some(Ok(connection)) = kept.map(|stream| stream.into_any().downcast()) {
            pool.put(connection);
        }
    }

    /// Sends the request once, and reads the head of the answer.
    async fn ask(
        &self,
        gate: &Gate,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> std::result::Result<(HttpSession, ResponseHeader), Failed> {
        let admitted = exchange.admitted()?;
        let mut request = forward::upstream_head(admitted, &self.host)?;
        if let Some(asserter) = &self.asserter {
            assertion::insert(asserter, admitted, &mut request, gate.now())?;
        }
        let body = admitted.body().clone();
        exchange.began_upstream();
        let kept = self.pool.as_ref().and_then(Pool::take);
        let reused = kept.is_some();
        let connection = match kept {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        exchange.connected();
        let mut core = HttpSession::new(connection);
        core.read_timeout = Some(self.read_timeout);
        let safe = session.req_header().method.is_safe();
        let exchanged = self
            .exchange_heads(session, &mut core, request, &body)
            .await;
        match exchanged {
            Ok(head) => Ok((core, head)),
            // FWD-3: a request is sent a second time only where that can do no harm.
            Err(mut error) => {
                error.retry.decide_reuse(reused);
                let again = safe && error.retry() && !answer::has_begun(&core);
                Err(Failed { error, again })
            }
        }
    }

    /// A connection that no request has gone out on.
    async fn connect(&self) -> Result<Box<CoreConnection>> {
        let opened = CoreConnection::open(self.address, self.connect_timeout).await;
        let connection = opened.map_err(Error::into_up)?;
        // What speaks first is no HTTP server, and what it says is no answer (FWD-3).
        if connection.is_quiet() {
            return Ok(Box::new(connection));
        }
        Error::e_explain(ErrorType::ConnectError, "an answer before the request")
            .map_err(Error::into_up)
    }

    /// Sends a request and reads the head of its answer. A safe request ends when its caller goes away; another one runs
    /// to its end (FWD-4).
    async fn exchange_heads(
        &self,
        session: &mut Session,
        core: &mut HttpSession,
        request: Box<RequestHeader>,
        body: &Bytes,
    ) -> Result<ResponseHeader> {
        let safe = request.method.is_safe();
        let mut exchanging = std::pin::pin!(async {
            core.write_request_header(request).await?;
            if !body.is_empty() {
                core.write_body(body).await?;
            }
            core.finish_body().await?;
            answer::read_head(core).await
        });
        let patience = PATIENCE.min(self.read_timeout);
        if let Ok(head) = timeout(patience, &mut exchanging).await {
            return head.map_err(Error::into_up);
        }
        let rest = self.read_timeout.saturating_sub(patience);
        let mut waiting = std::pin::pin!(timeout(rest, exchanging));
        let mut watched = safe;
        loop {
            tokio::select! {
                head = &mut waiting => return match head {
                    Ok(head) => head.map_err(Error::into_up),
                    Err(_) => Error::e_explain(ErrorType::ReadTimedout, "no answer").map_err(Error::into_up),
                },
                idle = session.read_body_or_idle(true), if watched => match idle {
                    // Bytes of a next request, or an empty line, mean that the caller is still there (RFC 9112, sections 2.2 and
                    // 9.3.2). They are lost, so the connection ends with this answer.
                    Err(error) if *error.etype() == ErrorType::ConnectError => {
                        watched = false;
                        session.set_keepalive(None);
                    }
                    Err(error) => return Err(error.into_down()),
                    Ok(_) => return Error::e_explain(ErrorType::ConnectionClosed, "the caller went away").map_err(Error::into_down),
                },
            }
        }
    }
}

/// Hands on an answer as it comes.
async fn pass(
    gate: &Gate,
    session: &mut Session,
    exchange: &mut Exchange,
    core: &mut HttpSession,
    head: Parts,
) -> Result<()> {
    let (part, end) = next_part(gate, core, exchange).await?;
    let empty = end && part.as_ref().is_none_or(Bytes::is_empty);
    let head = session.write_response_header(Box::new(head.into())).await;
    head.map_err(Error::into_down)?;
    if empty {
        return Ok(());
    }
    stream(gate, session, exchange, core, (part, end)).await
}

/// The rest of a body, from a part that was read.
async fn stream(
    gate: &Gate,
    session: &mut Session,
    exchange: &mut Exchange,
    core: &mut HttpSession,
    (mut part, mut end): (Option<Bytes>, bool),
) -> Result<()> {
    loop {
        let sent = session.write_response_body(part.unwrap_or_default(), end);
        sent.await.map_err(Error::into_down)?;
        if end {
            return Ok(());
        }
        (part, end) = next_part(gate, core, exchange).await?;
    }
}

/// Reads the body, as far as it may be held, and hands on head and body, signed (SIG-12).
async fn hold(
    (gate, signing): (&Gate, &AnswerSigning),
    session: &mut Session,
    exchange: &mut Exchange,
    core: &mut HttpSession,
    mut head: Parts,
) -> Result<()> {
    let mut held = Vec::new();
    loop {
        let (part, end) = next_part(gate, core, exchange).await?;
        held.extend_from_slice(&part.unwrap_or_default());
        if end {
            break;
        }
        if held.len() > signing.body_limit {
            let head = session.write_response_header(Box::new(head.into())).await;
            head.map_err(Error::into_down)?;
            let held = (Some(held.into()), false);
            return stream(gate, session, exchange, core, held).await;
        }
    }
    let bodiless = is_bodiless(&head, &session.req_header().method);
    if !bodiless {
        head.headers.remove(header::TRANSFER_ENCODING);
        head.headers
            .insert(header::CONTENT_LENGTH, held.len().into());
    }
    if held.len() <= signing.body_limit {
        sign(&signing.signer, &mut head.headers, &held)?;
    }
    let empty = bodiless || held.is_empty();
    let head = session.write_response_header(Box::new(head.into())).await;
    head.map_err(Error::into_down)?;
    if !empty {
        let body = session.write_response_body(held.into(), true).await;
        body.map_err(Error::into_down)?;
    }
    Ok(())
}

/// Adds what signs an answer to its head.
///
/// pingora writes its own Date over that of every answer, so that Date is what is signed; and it is signed once more where
/// a second ended meanwhile.
///
/// # Errors
/// It cannot be signed: a fault of the machine.
pub(super) fn sign(signer: &AnswerSigner, headers: &mut HeaderMap, body: &[u8]) -> Result<()> {
    loop {
        let date = get_cached_date();
        headers.insert(header::DATE, date.clone());
        let signed = signer.sign(headers, body).ok_or_else(|| {
            Error::explain(ErrorType::InternalError, "the answer cannot be signed")
        })?;
        if get_cached_date() == date {
            for (name, value) in signed {
                headers.insert(name, value);
            }
            return Ok(());
        }
    }
}

/// The next part of a body as the caller gets it, and whether it is the last.
async fn next_part(
    gate: &Gate,
    core: &mut HttpSession,
    exchange: &mut Exchange,
) -> Result<(Option<Bytes>, bool)> {
    let (part, end) = if core.is_body_done() {
        (None, true)
    } else {
        let part = core.read_body_bytes().await.map_err(Error::into_up)?;
        if let Some(first) = part.as_deref()
            && first.len() == core.body_bytes_received()
        {
            gate.look_at(first, exchange);
        }
        let end = part.is_none() || core.is_body_done();
        (part, end)
    };
    Ok((exchange.pass(part, end), end))
}
