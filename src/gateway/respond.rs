//! The gateway's own answers (ERR-1 to ERR-5, ERR-7, ERR-9).

use super::{
    answer_head::{AnswerContext, write_common_headers, write_quota_headers},
    error_body::{self, ErrorBodySettings},
    request_body,
    sca_link::links_object,
};
use crate::interface::{Reason, Refusal, openapi::page::Document};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header, response::Parts};
use pingora::{Error, ErrorType, OrErr, Result, protocols::http::ServerSession as Session};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// The content type of all the gateway's own answers (ERR-1).
const JSON: &str = "application/json; charset=utf-8";

/// The time for which a client may send an unwanted body before its connection is closed.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// The number of bytes of such a body that are read. Closing a connection with unread bytes would discard the answer too.
const DRAIN_BYTES: usize = 256 * 1024;

/// Sends the gateway's own answers.
#[derive(Debug)]
pub(super) struct Responder {
    origin: ErrorBodySettings,
}

impl Responder {
    /// Creates a responder for this `system` (ERR-1) and this base of `documentation` (ERR-10).
    pub(super) const fn new(origin: ErrorBodySettings) -> Self {
        Self { origin }
    }

    /// Refuses a request whose head was not read (ERR-8). Its end is unknown, so the connection ends with the answer.
    pub(super) async fn refuse_head(
        &self,
        session: &mut Session,
        refusal: &Refusal,
        id: Uuid,
        context: &AnswerContext<'_>,
    ) -> Result<()> {
        let body = Bytes::from(error_body::of(refusal, id, &self.origin, None).to_string());
        let head = head(refusal, context, body.len())?;
        session.set_keepalive(None);
        send(session, head, Some(body)).await
    }

    /// Sends a refusal. The connection stays open if the request was read to its end.
    pub(super) async fn refuse(
        &self,
        session: &mut Session,
        refusal: &Refusal,
        id: Uuid,
        context: &AnswerContext<'_>,
    ) -> Result<()> {
        let body = error_body::of(refusal, id, &self.origin, context.operation);
        let body = Bytes::from(body.to_string());
        let mut head = head(refusal, context, body.len())?;
        // The end of a wrongly framed request is unknown, and a slow one is not awaited. After these refusals, and after a head
        // that is too large (HTTP-9), the connection is closed.
        let lost = matches!(
            refusal.reason(),
            Reason::MalformedRequest | Reason::RequestTimeout
        );
        // A TPP that has to wait for its turn keeps its connection.
        if refusal.reason() == Reason::TooManyAtOnce {
            request_body::discard_arrived(session).await;
        }
        let unread = !session.is_body_done();
        if lost || unread || refusal.reason() == Reason::HeadersTooLarge {
            session.set_keepalive(None);
        }
        // An answer to HEAD has no body, but the HTTP/2 library would send one.
        let bodiless = session.req_header().method == Method::HEAD;
        let body = if bodiless { Bytes::new() } else { body };
        if let Some(signed) = context.signed(head.status) {
            signed.sign(&mut head.headers, &body).await?;
        }
        send(session, head, (!bodiless).then_some(body)).await?;
        if unread && !lost {
            drain(session).await;
        }
        Ok(())
    }

    /// Sends a description of the interface. The connection stays open if the request was read to its end.
    pub(super) async fn document(
        &self,
        session: &mut Session,
        document: &Document,
        context: &AnswerContext<'_>,
    ) -> Result<()> {
        let mut head = json_head(StatusCode::OK, document.body.len());
        write_common_headers(&mut head, context)?;
        let content_type = HeaderValue::from_static(document.content_type);
        let policy = document.policy.clone();
        let nosniff = HeaderValue::from_static("nosniff");
        head.headers.insert(header::CONTENT_TYPE, content_type);
        head.headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        head.headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        if !session.is_body_done() {
            session.set_keepalive(None);
        }
        let is_head = session.req_header().method == Method::HEAD;
        let body = (!is_head).then(|| document.body.clone());
        send(session, head, body).await
    }

    /// Sends the link that starts an SCA (SCA-20).
    pub(super) async fn sca_redirect(
        &self,
        session: &mut Session,
        href: &str,
        context: &AnswerContext<'_>,
    ) -> Result<()> {
        let body = Bytes::from(json!({ "_links": links_object(href) }).to_string());
        let mut head = json_head(StatusCode::OK, body.len());
        write_common_headers(&mut head, context)?;
        if let Some(signed) = context.signed(head.status) {
            signed.sign(&mut head.headers, &body).await?;
        }
        send(session, head, Some(body)).await
    }
}

/// Sends an answer. An error is one of the caller's connection: no other answer can reach the caller.
async fn send(session: &mut Session, head: Parts, body: Option<Bytes>) -> Result<()> {
    let written = session.write_response_header(Box::new(head.into())).await;
    written.map_err(Error::into_down)?;
    if let Some(body) = body {
        let written = session.write_response_body(body, true).await;
        written.map_err(Error::into_down)?;
    }
    Ok(())
}

/// The head of the gateway's own answer. pingora's function for adding a header would copy its name twice.
fn json_head(status: StatusCode, length: usize) -> Parts {
    let (mut head, ()) = http::Response::new(()).into_parts();
    head.status = status;
    head.headers.reserve(8);
    head.headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    head.headers.insert(header::CONTENT_LENGTH, length.into());
    // ERR-9.
    head.headers
        .insert(header::CONTENT_LANGUAGE, HeaderValue::from_static("en"));
    head
}

fn head(refusal: &Refusal, context: &AnswerContext<'_>, length: usize) -> Result<Parts> {
    let status = StatusCode::from_u16(refusal.status());
    let status = status.or_err(ErrorType::InternalError, "a status")?;
    let mut head = json_head(status, length);
    if let Some(allow) = refusal.allow() {
        let allow = HeaderValue::try_from(allow);
        let allow = allow.or_err(ErrorType::InternalError, "a header value")?;
        head.headers.insert(header::ALLOW, allow);
    }
    if let Some(seconds) = refusal.seconds_to_retry() {
        head.headers.insert(header::RETRY_AFTER, seconds.into());
    } else if refusal.status() == 503 {
        head.headers
            .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if let Some(left) = refusal.quota() {
        write_quota_headers(&mut head.headers, left)?;
    }
    write_common_headers(&mut head, context)?;
    Ok(head)
}

/// Reads and discards the client's further bytes, within the limits.
async fn drain(session: &mut Session) {
    let reading = async {
        let mut taken = 0_usize;
        while taken < DRAIN_BYTES {
            let Ok(Some(chunk)) = session.read_request_body().await else {
                return;
            };
            taken = taken.saturating_add(chunk.len());
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
}
