//! Answers of the gateway itself (ERR-1 to ERR-5, ERR-7).

use super::{
    answer_head::{AnswerContext, write_common_headers, write_quota_headers},
    answer_signature, error_body,
    sca_link::links_object,
};
use crate::{
    interface::{Reason, Refusal},
    signing::AnswerSigning,
};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header, response::Parts};
use pingora::{ErrorType, OrErr, Result, protocols::http::ServerSession as Session};
use serde_json::json;
use std::time::Duration;

/// The content type of every answer of the gateway (ERR-1).
const JSON: &str = "application/json; charset=utf-8";

/// How long a client may go on sending a body that nobody waits for, before its connection is closed.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// How much of such a body is taken in. Closing a connection with bytes unread would take the answer away too.
const DRAIN_BYTES: usize = 256 * 1024;

/// Gives the gateway's own answers.
#[derive(Debug)]
pub(super) struct Responder {
    system: String,
    signing: Option<AnswerSigning>,
}

impl Responder {
    /// Answers as this `system` (ERR-1), signed where answers are signed (SIG-12).
    pub(super) const fn new(system: String, signing: Option<AnswerSigning>) -> Self {
        Self { system, signing }
    }

    /// Refuses a request whose head was not read (ERR-8). Nobody knows where it ends, so the connection ends with it.
    pub(super) async fn refuse_head(
        &self,
        session: &mut Session,
        refusal: &Refusal,
        context: &AnswerContext<'_>,
    ) -> Result<()> {
        let body = Bytes::from(error_body::of(refusal, &self.system, None).to_string());
        let mut head = head(refusal, context, body.len())?;
        session.set_keepalive(None);
        if let Some(signing) = &self.signing {
            answer_signature::sign(&signing.signer, &mut head.headers, &body)?;
        }
        session.write_response_header(Box::new(head.into())).await?;
        session.write_response_body(body, true).await
    }

    /// Answers a request with a refusal. The connection stays open where the request was read to its end.
    pub(super) async fn refuse(
        &self,
        session: &mut Session,
        refusal: &Refusal,
        context: &AnswerContext<'_>,
    ) -> Result<()> {
        let body =
            Bytes::from(error_body::of(refusal, &self.system, context.operation).to_string());
        let mut head = head(refusal, context, body.len())?;
        // Where a request ends that is framed wrongly nobody knows, and one that trickles is not waited for.
        let lost = matches!(
            refusal.reason(),
            Reason::MalformedRequest | Reason::RequestTimeout
        );
        let unread = !session.is_body_done();
        if lost || unread {
            session.set_keepalive(None);
        }
        // HTTP/2 would send the body of an answer to HEAD, which has none.
        let bodiless = session.req_header().method == Method::HEAD;
        if let Some(signing) = &self.signing {
            let signed: &[u8] = if bodiless { &[] } else { &body };
            answer_signature::sign(&signing.signer, &mut head.headers, signed)?;
        }
        session.write_response_header(Box::new(head.into())).await?;
        if !bodiless {
            session.write_response_body(body, true).await?;
        }
        if unread && !lost {
            drain(session).await;
        }
        Ok(())
    }

    /// Answers a request with the link by which SCA starts (SCA-20).
    pub(super) async fn sca_redirect(
        &self,
        session: &mut Session,
        href: &str,
        context: &AnswerContext<'_>,
    ) -> Result<()> {
        let body = Bytes::from(json!({ "_links": links_object(href) }).to_string());
        let mut head = json_head(StatusCode::OK, body.len());
        write_common_headers(&mut head, context)?;
        if let Some(signing) = &self.signing {
            answer_signature::sign(&signing.signer, &mut head.headers, &body)?;
        }
        session.write_response_header(Box::new(head.into())).await?;
        session.write_response_body(body, true).await
    }
}

/// The head of an answer of the gateway's own. pingora's way to add a header copies its name twice.
fn json_head(status: StatusCode, length: usize) -> Parts {
    let (mut head, ()) = http::Response::new(()).into_parts();
    head.status = status;
    head.headers.reserve(8);
    head.headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    head.headers.insert(header::CONTENT_LENGTH, length.into());
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

/// Takes in what the client still sends, within bounds.
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
