//! Answers of the gateway itself (ERR-1 to ERR-5, ERR-7).

use super::{answer, deprecation, upstream};
use crate::{
    interface::{
        Code, Fault, Place, QuotaLeft, Reason, Refusal,
        operations::{Catalogue, Operation},
    },
    sca::SealFault,
    signing::AnswerSigner,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, response::Parts};
use pingora::{Error, ErrorType, OrErr, Result, protocols::http::ServerSession as Session};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// X-Request-ID, which goes back as it came (ERR-5).
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The content type of every answer of the gateway (ERR-1).
const JSON: &str = "application/json; charset=utf-8";

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// tppMessages' `text` (§Message object).
const MAX_TEXT: usize = 512;

/// How long a client may go on sending a body that nobody waits for, before its connection is closed.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// How much of such a body is taken in. Closing a connection with bytes unread would take the answer away too.
const DRAIN_BYTES: usize = 256 * 1024;

/// What an answer needs to know of the request and the gateway.
pub(super) struct Setting<'a> {
    /// ERR-1's `system`.
    pub(super) system: &'a str,
    /// The operation, where the request named one.
    pub(super) operation: Option<&'a Operation>,
    /// The request's X-Request-ID.
    pub(super) request_id: Option<&'a HeaderValue>,
    /// Where the successor of a deprecated operation stands (FWD-5).
    pub(super) catalogue: &'a Catalogue,
    /// What signs answers, where they are signed (SIG-12).
    pub(super) signer: Option<&'a AnswerSigner>,
}

/// Answers a request with a refusal. The connection stays open where the request was read to its end.
pub(super) async fn refuse(
    session: &mut Session,
    refusal: &Refusal,
    setting: &Setting<'_>,
) -> Result<()> {
    let body = Bytes::from(body(refusal, setting).to_string());
    let mut head = head(refusal, setting, body.len())?;
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
    if let Some(signer) = setting.signer {
        let signed: &[u8] = if bodiless { &[] } else { &body };
        upstream::sign(signer, &mut head.headers, signed)?;
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
    session: &mut Session,
    href: &str,
    setting: &Setting<'_>,
) -> Result<()> {
    let body = Bytes::from(json!({ "_links": sca_links(href) }).to_string());
    let mut head = json_head(StatusCode::OK, body.len());
    seal(&mut head, setting)?;
    if let Some(signer) = setting.signer {
        upstream::sign(signer, &mut head.headers, &body)?;
    }
    session.write_response_header(Box::new(head.into())).await?;
    session.write_response_body(body, true).await
}

/// The headers that every answer carries, the upstream's too (ERR-5, ERR-7). Date is pingora's, which writes the
/// gateway's own over that of the upstream (DAT-2).
pub(super) fn seal(head: &mut Parts, setting: &Setting<'_>) -> Result<()> {
    let headers = &mut head.headers;
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(id) = setting.request_id {
        headers.insert(X_REQUEST_ID, id.clone());
    }
    let operation = setting.operation;
    match operation.and_then(|operation| operation.deprecated.as_ref()) {
        Some(deprecated) => deprecation::say(headers, deprecated, setting.catalogue),
        None => Ok(()),
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

fn head(refusal: &Refusal, setting: &Setting<'_>, length: usize) -> Result<Parts> {
    let status = StatusCode::from_u16(refusal.status());
    let status = status.or_err(ErrorType::InternalError, "a status")?;
    let mut head = json_head(status, length);
    if let Some(allow) = refusal.allow() {
        head.headers.insert(header::ALLOW, value(allow.to_owned())?);
    }
    if let Some(seconds) = refusal.seconds_to_retry() {
        head.headers.insert(header::RETRY_AFTER, seconds.into());
    } else if refusal.status() == 503 {
        head.headers
            .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if let Some(left) = refusal.quota() {
        say_quota(&mut head.headers, left)?;
    }
    seal(&mut head, setting)?;
    Ok(head)
}

/// QUO-11, as the IETF's draft of these fields has them: four calls in a window of 24 hours, and how many are left.
pub(super) fn say_quota(headers: &mut HeaderMap, left: QuotaLeft) -> Result<()> {
    let policy = HeaderValue::from_static("\"psu-absent\";q=4;w=86400");
    headers.insert(RATE_LIMIT_POLICY, policy);
    let left = format!("\"psu-absent\";r={};t={}", left.calls, left.seconds);
    headers.insert(RATE_LIMIT, value(left)?);
    Ok(())
}

/// A header value that the gateway wrote.
pub(super) fn value(text: String) -> Result<HeaderValue> {
    HeaderValue::try_from(text).or_err(ErrorType::InternalError, "a header value")
}

/// ERR-1.
fn body(refusal: &Refusal, setting: &Setting<'_>) -> Value {
    let reason = refusal.reason();
    let mut body = Map::new();
    body.insert("id".into(), json!(uuid::Uuid::new_v4().to_string()));
    body.insert("system".into(), json!(setting.system));
    body.insert("status".into(), json!(refusal.status()));
    if let Some(code) = code(refusal) {
        body.insert("code".into(), json!(code));
    }
    body.insert("message".into(), json!(reason.title()));
    body.insert("reason".into(), json!(reason.slug()));
    if !refusal.faults().is_empty() || refusal.status() == 400 {
        body.insert(
            "faults".into(),
            faults(refusal).map(|found| fault(&found)).collect(),
        );
    }
    if let Some(href) = refusal.sca_redirect() {
        body.insert("_links".into(), sca_links(href));
    }
    if let Some(signing_string) = refusal.signing_string() {
        body.insert("signingString".into(), json!(signing_string));
    }
    if setting
        .operation
        .is_some_and(|operation| operation.tpp_messages)
    {
        body.insert(
            "tppMessages".into(),
            faults(refusal).map(|found| message(&found)).collect(),
        );
    }
    Value::Object(body)
}

/// ERR-6: an upstream's error that is replaced keeps its status, and the code follows that.
fn code(refusal: &Refusal) -> Option<&'static str> {
    match (refusal.reason(), refusal.status()) {
        (Reason::UpstreamError, 403) => Some("FORBIDDEN"),
        (Reason::UpstreamError, 404) => Some("RESOURCE_UNKNOWN"),
        (Reason::UpstreamError, 409) => Some("CONFLICT"),
        (Reason::UpstreamError, 400..500) => Some("BAD_REQUEST"),
        _ => refusal.code().map(Code::as_str),
    }
}

/// The faults, or where the title says it all, the title.
fn faults(refusal: &Refusal) -> impl Iterator<Item = Fault> {
    let title = refusal
        .faults()
        .is_empty()
        .then(|| Fault::request(refusal.reason(), refusal.reason().title()));
    refusal.faults().iter().cloned().chain(title)
}

fn fault(fault: &Fault) -> Value {
    let mut value = json!({ "reason": fault.reason.slug(), "text": fault.text });
    let place = match &fault.place {
        Place::Header(name) => Some(("header", *name)),
        Place::Query(name) => Some(("query", name.as_str())),
        Place::Member(path) => Some(("path", path.as_str())),
        Place::Request | Place::Body => None,
    };
    if let (Some((member, name)), Some(members)) = (place, value.as_object_mut()) {
        members.insert(member.into(), json!(name));
    }
    value
}

/// §Message object.
fn message(fault: &Fault) -> Value {
    let text: String = fault.text.chars().take(MAX_TEXT).collect();
    // No code of the interface says that SCA is needed; its own SCA_NOT_FOUND comes closest.
    let code = fault.code.unwrap_or(Code::ScaNotFound);
    let mut value = json!({ "category": "ERROR", "code": code.as_str(), "text": text });
    let path = match &fault.place {
        Place::Header(name) => Some(*name),
        Place::Query(name) => Some(name.as_str()),
        Place::Member(path) => Some(path.as_str()),
        Place::Request | Place::Body => None,
    };
    if let (Some(path), Some(members)) = (path, value.as_object_mut()) {
        members.insert("path".into(), json!(path));
    }
    value
}

/// A links map with one link (§Link and links map).
pub(super) fn sca_links(href: &str) -> Value {
    json!({ "scaRedirect": { "href": href, "verbs": ["GET"] } })
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

/// What pingora calls it that no SCA can be started.
const NO_LINK: &str = "no SCA can be started";

/// The end of a request that needs a link which cannot be made.
pub(super) fn no_link(fault: SealFault) -> Box<Error> {
    Error::because(ErrorType::Custom(NO_LINK), "", fault)
}

/// ERR-4: what a failure of the proxy is to the caller. None where there is nobody left to answer.
pub(super) fn failure(error: &Error) -> Option<Refusal> {
    use pingora::ErrorSource::{Downstream, Upstream};
    let reason = match (error.esource(), error.etype()) {
        (Downstream, _) => return None,
        (_, ErrorType::Custom(NO_LINK)) => Reason::StateUnavailable,
        (_, ErrorType::ReadTimedout | ErrorType::WriteTimedout) => Reason::UpstreamTimeout,
        (_, kind) if *kind == answer::REFUSED => Reason::UpstreamError,
        (Upstream, _) => Reason::UpstreamUnreachable,
        (
            _,
            ErrorType::ConnectTimedout
            | ErrorType::ConnectRefused
            | ErrorType::ConnectNoRoute
            | ErrorType::ConnectError,
        ) => Reason::UpstreamUnreachable,
        _ => Reason::Internal,
    };
    Some(Refusal::new(reason).for_operator(error.etype().as_str()))
}
