//! The answer to `GET /tail`, and the reading of the log.
//!
//! Invariants: without a token of this bank nothing is read or shown; the TPP is the token's, never one that the request names. The log is
//! also read while nobody asks, so that a flood of other requests hides none of a TPP's.

use super::lines::LogLines;
use super::recent::{Recent, ShownTail};
use super::token::TailKey;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use portvakt_base::terminal::complain;
use portvakt_interface::TppId;
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The interval at which the log is read.
const LOOK: Duration = Duration::from_secs(1);

/// The key of the tokens, and the latest requests.
pub(crate) struct Tail {
    key: TailKey,
    watched: Mutex<Watched>,
}

struct Watched {
    lines: LogLines,
    recent: Recent,
}

impl Watched {
    /// Reads the new lines of the log.
    fn look(&mut self) -> io::Result<()> {
        let Self { lines, recent } = self;
        lines.read(|line| recent.note(line))
    }
}

impl Tail {
    /// The requests in the access log at a path, for tokens of this key.
    pub(super) fn new(key: TailKey, log: PathBuf) -> Self {
        let watched = Watched {
            lines: LogLines::new(log),
            recent: Recent::default(),
        };
        Self {
            key,
            watched: Mutex::new(watched),
        }
    }

    fn look(&self) -> io::Result<()> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.look()
    }

    /// The latest requests of a TPP, as the log has them now.
    fn of(&self, tpp: &TppId) -> io::Result<ShownTail> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.look()?;
        Ok(watched.recent.of(tpp))
    }
}

/// The route `/tail`.
pub(crate) fn router(tail: Arc<Tail>) -> Router {
    Router::new().route("/tail", get(show)).with_state(tail)
}

/// Reads the log until the process ends.
pub(crate) async fn watch(tail: Arc<Tail>) {
    let mut has_failed = false;
    loop {
        let reader = Arc::clone(&tail);
        let looked = tokio::task::spawn_blocking(move || reader.look()).await;
        let fault = looked.map_err(io::Error::other).flatten().err();
        if let Some(fault) = fault.as_ref().filter(|_| !has_failed) {
            complain(
                "portvakt-sandbox",
                format_args!("the access log cannot be read: {fault}"),
            );
        }
        has_failed = fault.is_some();
        tokio::time::sleep(LOOK).await;
    }
}

async fn show(State(tail): State<Arc<Tail>>, headers: HeaderMap) -> Response<Body> {
    let token = bearer_token(&headers);
    let Some(tpp) = token.and_then(|token| tail.key.verify(token)) else {
        let text = json!({ "error": "The request has no token of this bank." });
        let mut refused = answer(StatusCode::UNAUTHORIZED, text.to_string());
        let scheme = HeaderValue::from_static("Bearer");
        refused
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme);
        return refused;
    };
    // The log is a file, so it is read on a blocking thread.
    let read = tokio::task::spawn_blocking(move || tail.of(&tpp)).await;
    let shown = read.map_err(io::Error::other).flatten();
    match shown.and_then(|shown| serde_json::to_string(&shown).map_err(io::Error::other)) {
        Ok(body) => answer(StatusCode::OK, body),
        Err(fault) => {
            complain(
                "portvakt-sandbox",
                format_args!("the access log cannot be read: {fault}"),
            );
            let text = json!({ "error": "The access log cannot be read." });
            answer(StatusCode::INTERNAL_SERVER_ERROR, text.to_string())
        }
    }
}

/// The token of the one Authorization header (RFC 6750, section 2.1).
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && values.next().is_none();
    is_bearer.then(|| token.trim_matches(' '))
}

fn answer(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let no_store = HeaderValue::from_static("no-store");
    headers.insert(header::CACHE_CONTROL, no_store);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use serde_json::Value;

    const OWN: &str = "PSDNO-FSA-1";

    async fn ask(tail: &Arc<Tail>, values: &[String]) -> (u16, Value) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        let answer = show(State(Arc::clone(tail)), headers).await;
        let status = answer.status();
        assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store");
        let challenged = answer.headers().contains_key(header::WWW_AUTHENTICATE);
        assert_eq!(challenged, status == StatusCode::UNAUTHORIZED);
        let body = to_bytes(answer.into_body(), 100_000).await.unwrap();
        (status.as_u16(), serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_token_shows_the_requests_of_its_tpp_and_every_other_is_401() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("access.jsonl");
        let line = |tpp: &str, id: &str| {
            let line =
                json!({"kind": "access", "time": "t", "tpp": tpp, "request_id": id, "status": 200});
            format!("{line}\n")
        };
        std::fs::write(&log, line(OWN, "own") + &line("PSDNO-FSA-2", "other")).unwrap();
        let key = TailKey::read_or_make(&folder.path().join("key")).unwrap();
        let [own, other, third] = [OWN, "PSDNO-FSA-2", "PSDNO-FSA-3"]
            .map(|id| format!("Bearer {}", key.token(&TppId::parse(id).unwrap())));
        let tail = Arc::new(Tail::new(key, log));
        for (token, expected) in [
            (&own, vec!["own"]),
            (&own.replacen("Bearer", "bearer", 1), vec!["own"]),
            (&other, vec!["other"]),
            (&third, vec![]),
        ] {
            let (status, body) = ask(&tail, std::slice::from_ref(token)).await;
            assert_eq!(status, 200);
            let requests = body["requests"].as_array().unwrap().iter();
            let ids = requests.map(|request| request["requestId"].as_str().unwrap());
            assert_eq!(ids.collect::<Vec<_>>(), expected);
        }
        let altered = own.replacen("UFNETk8tRlNBLTE", "UFNETk8tRlNBLTI", 1);
        assert_ne!(altered, own);
        for wrong in [
            vec![],
            vec![String::new()],
            vec!["Bearer".to_owned()],
            vec![altered],
            vec![own.replacen("Bearer", "Basic", 1)],
            vec![own.clone(), other],
        ] {
            let (status, body) = ask(&tail, &wrong).await;
            assert_eq!(status, 401, "{wrong:?}");
            assert_eq!(body["requests"], Value::Null);
        }
    }
}
