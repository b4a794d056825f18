//! Signed answers (SIG-12): an answer of the core whose head waits until its body is known.
//!
//! pingora's own way hands on the head before the body has come, and no hook of it can hold the head back. Where answers
//! are signed the request is therefore sent and its answer read here, through the same hooks in the same order: the
//! doors that only an admission opens, the rules by which a request is sent again, what is done to an answer. A body
//! that is longer than the bound goes on as it comes, unsigned. Deliberately not here: the gateway's own answers, which
//! `respond` signs, and the empty 400 of the HTTP layer, which nobody can sign.

use super::proxy::{Exchange, Gate};
use crate::signing::{AnswerSigner, AnswerSigning};
use bytes::Bytes;
use http::{Method, header};
use pingora::{
    Error, ErrorType, Result,
    connectors::{ConnectorOptions, http::v1::Connector},
    http::{RequestHeader, ResponseHeader},
    protocols::{UniqueID, http::v1::client::HttpSession},
    proxy::{ProxyHttp, Session},
    upstreams::peer::{HttpPeer, Peer},
};
use std::fmt;

/// How often a request is sent at most: as often as the proxy does (`max_retries` of the server).
const MAX_TRIES: usize = 2;

/// Connections to the core that are kept for the next request.
const POOL: usize = 512;

/// What signs answers, and fetches those of the core.
pub(super) struct Answers {
    signing: AnswerSigning,
    connector: Connector,
}

impl fmt::Debug for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signing.fmt(formatter)
    }
}

impl Answers {
    pub(super) fn new(signing: AnswerSigning) -> Self {
        Self {
            signing,
            connector: Connector::new(Some(ConnectorOptions::new(POOL))),
        }
    }

    pub(super) const fn signer(&self) -> &AnswerSigner {
        &self.signing.signer
    }

    /// Sends the request to the core and its answer, signed, to the caller.
    pub(super) async fn forward(
        &self,
        gate: &Gate,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let mut tries = 0_usize;
        let (mut core, mut head, peer) = loop {
            tries = tries.saturating_add(1);
            let error = match self.ask(gate, session, exchange).await {
                Ok(asked) => break asked,
                Err(error) => error,
            };
            if tries >= MAX_TRIES || !error.retry() {
                return Err(error);
            }
        };
        frame(&mut head, &session.req_header().method);
        gate.response_filter(session, &mut head, exchange).await?;
        self.pass(gate, session, exchange, &mut core, head).await?;
        let idle = peer.idle_timeout();
        self.connector.release_http_session(core, &peer, idle).await;
        Ok(())
    }

    /// Sends the request once, and reads the head of the answer.
    async fn ask(
        &self,
        gate: &Gate,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<(HttpSession, ResponseHeader, HttpPeer)> {
        let peer = gate.upstream_peer(session, exchange).await?;
        let connected = self.connector.get_http_session(&*peer).await;
        let (mut core, reused) = connected.map_err(|error| {
            gate.fail_to_connect(session, &peer, exchange, error.into_up())
                .into_up()
        })?;
        core.read_timeout = peer.options.read_timeout;
        core.write_timeout = peer.options.write_timeout;
        let id = core.id();
        gate.connected_to_upstream(session, reused, &peer, id, Some(core.digest()), exchange)
            .await?;
        let mut request = RequestHeader::build_no_case(Method::GET, b"/", None)?;
        gate.upstream_request_filter(session, &mut request, exchange)
            .await?;
        let mut body = Some(Bytes::new());
        gate.request_body_filter(session, &mut body, true, exchange)
            .await?;
        match exchange_heads(session, &mut core, request, body).await {
            Ok(head) => Ok((core, head, *peer)),
            Err(error) => Err(gate.error_while_proxy(&peer, session, error, exchange, reused)),
        }
    }

    /// Reads the body, as far as it may be held, and hands on head and body.
    async fn pass(
        &self,
        gate: &Gate,
        session: &mut Session,
        exchange: &mut Exchange,
        core: &mut HttpSession,
        mut head: ResponseHeader,
    ) -> Result<()> {
        let mut held = Vec::new();
        loop {
            let (mut part, end) = next_part(core).await?;
            gate.response_body_filter(session, &mut part, end, exchange)?;
            held.extend_from_slice(&part.unwrap_or_default());
            if end {
                break;
            }
            if held.len() > self.signing.body_limit {
                return stream(gate, session, exchange, core, (head, held)).await;
            }
        }
        let bodiless = is_bodiless(&head, &session.req_header().method);
        if !bodiless {
            head.remove_header(&header::TRANSFER_ENCODING);
            head.insert_header(header::CONTENT_LENGTH, held.len())?;
        }
        if held.len() <= self.signing.body_limit {
            sign(&self.signing.signer, &mut head, &held)?;
        }
        let empty = bodiless || held.is_empty();
        let head = session.write_response_header(Box::new(head), empty).await;
        head.map_err(Error::into_down)?;
        if !empty {
            let body = session.write_response_body(Some(held.into()), true).await;
            body.map_err(Error::into_down)?;
        }
        Ok(())
    }
}

/// Adds what signs an answer to its head.
///
/// # Errors
/// It cannot be signed: a fault of the machine.
pub(super) fn sign(signer: &AnswerSigner, head: &mut ResponseHeader, body: &[u8]) -> Result<()> {
    let signed = signer.sign(&head.headers, body);
    let signed = signed
        .ok_or_else(|| Error::explain(ErrorType::InternalError, "the answer cannot be signed"))?;
    for (name, value) in signed {
        head.insert_header(name, value)?;
    }
    Ok(())
}

/// Sends a request and reads the head of its answer. A safe request ends when its caller goes away; another one runs to
/// its end (FWD-4).
async fn exchange_heads(
    session: &mut Session,
    core: &mut HttpSession,
    request: RequestHeader,
    body: Option<Bytes>,
) -> Result<ResponseHeader> {
    let safe = session.req_header().method.is_safe();
    let exchanging = async {
        core.write_request_header(Box::new(request)).await?;
        if let Some(body) = body {
            core.write_body(&body).await?;
        }
        core.finish_body().await?;
        loop {
            let head = core.read_resp_header_parts().await?;
            if !head.status.is_informational() {
                return Ok(*head);
            }
        }
    };
    tokio::select! {
        head = exchanging => head.map_err(Error::into_up),
        idle = session.as_mut().read_body_or_idle(true), if safe => match idle {
            Err(error) => Err(error.into_down()),
            Ok(_) => Error::e_explain(ErrorType::ConnectionClosed, "the caller went away").map_err(Error::into_down),
        },
    }
}

/// The next part of a body, and whether it is the last.
async fn next_part(core: &mut HttpSession) -> Result<(Option<Bytes>, bool)> {
    if core.is_body_done() {
        return Ok((None, true));
    }
    let part = core.read_body_bytes().await.map_err(Error::into_up)?;
    let end = part.is_none() || core.is_body_done();
    Ok((part, end))
}

/// Hands on an answer that is too long to be held, unsigned.
async fn stream(
    gate: &Gate,
    session: &mut Session,
    exchange: &mut Exchange,
    core: &mut HttpSession,
    (head, held): (ResponseHeader, Vec<u8>),
) -> Result<()> {
    let head = session.write_response_header(Box::new(head), false).await;
    head.map_err(Error::into_down)?;
    let mut sent = session.write_response_body(Some(held.into()), false).await;
    loop {
        sent.map_err(Error::into_down)?;
        let (mut part, end) = next_part(core).await?;
        gate.response_body_filter(session, &mut part, end, exchange)?;
        sent = session.write_response_body(part, end).await;
        if end {
            return sent.map_err(Error::into_down);
        }
    }
}

/// RFC 9110, section 6.4.1.
fn is_bodiless(head: &ResponseHeader, method: &Method) -> bool {
    *method == Method::HEAD || matches!(head.status.as_u16(), 204 | 304)
}

/// A body that ends with its connection is chunked on the way to the caller, whose connection stays.
fn frame(head: &mut ResponseHeader, method: &Method) {
    let framed = [header::TRANSFER_ENCODING, header::CONTENT_LENGTH]
        .iter()
        .any(|name| head.headers.contains_key(name));
    if !framed && !is_bodiless(head, method) {
        head.set_version(http::Version::HTTP_11);
        let _ = head.insert_header(header::TRANSFER_ENCODING, "chunked");
    }
}
