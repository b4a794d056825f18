//! Who may ask, where a bearer token is set; and that nobody keeps an answer (ERR-7).
//!
//! /livez and /readyz need no token: a balancer has none, and they tell of no TPP and no PSU. Nor do the public keys, which
//! a core fetches. Where client certificates are asked for, TLS has seen to them before anything is read.

use super::{Desk, fault::ApiFault};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use std::sync::Arc;

/// What is answered without a token.
const OPEN: [&str; 3] = ["/livez", "/readyz", "/.well-known/jwks.json"];

/// Stands in front of every route.
pub(super) async fn admit(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    let mut answer = if may_ask(&desk, &request) {
        next.run(request).await
    } else {
        ApiFault::Unauthorized.answer(&desk)
    };
    let no_store = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(header::CACHE_CONTROL, no_store);
    answer
}

fn may_ask(desk: &Desk, request: &Request) -> bool {
    let current = desk.current.load();
    let Some(token) = &current.token else {
        return true;
    };
    let expected = token.text().unwrap_or_default().as_bytes();
    OPEN.contains(&request.uri().path())
        || shown(request.headers()).is_some_and(|shown| {
            aws_lc_rs::constant_time::verify_slices_are_equal(shown, expected).is_ok()
        })
}

/// The bearer token that a request shows (RFC 6750, section 2.1).
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}
