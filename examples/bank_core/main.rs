//! A core that answers a request only if the gateway signed an assertion for this request (docs/upstream-contract.md).
//!
//!     cargo run --example bank_core -- 127.0.0.1:8080 http://127.0.0.1:9100/.well-known/jwks.json
//!
//! The gateway needs `assertion: {key: ../state/assertion.key}` in its configuration.

use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::{Json, Router, body::Bytes, extract::State};
use serde_json::{Value, json};
use std::{collections::HashMap, error::Error, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::Mutex, time::Instant};

// The function `verify`, as docs/upstream-contract.md shows it.
include!("verify.rs");

/// The URL of the gateway's public keys, and the last fetched keys with their time.
type Keys = (String, Mutex<Option<(Instant, JwkSet)>>);

/// The keys, and the ids of assertions that changed something, with the time until which they are kept.
type Shared = Arc<(Keys, Mutex<HashMap<String, Instant>>)>;

/// For how long the library accepts an assertion: its minute, and a minute for another clock.
const LIFETIME: Duration = Duration::from_secs(120);

/// The keys. An unknown key id makes the core fetch them again, at most once a minute.
async fn keys_for(assertion: &str, (url, fetched): &Keys) -> Option<JwkSet> {
    let kid = decode_header(assertion).ok()?.kid?;
    let mut fetched = fetched.lock().await;
    if let Some((at, keys)) = &*fetched
        && (keys.find(&kid).is_some() || at.elapsed() < Duration::from_secs(60))
    {
        return Some(keys.clone());
    }
    let client = reqwest::Client::builder().no_proxy().build().ok()?;
    let text = client.get(url).send().await.ok()?.bytes().await.ok()?;
    let keys: JwkSet = serde_json::from_slice(&text).ok()?;
    *fetched = Some((Instant::now(), keys.clone()));
    Some(keys)
}

/// Whether the assertion is new. A GET may come again, with the same one.
async fn is_new(claims: &Value, method: &Method, used: &Mutex<HashMap<String, Instant>>) -> bool {
    let id = claims.get("jti").and_then(Value::as_str);
    let mut used = used.lock().await;
    used.retain(|_, until| *until > Instant::now());
    *method == Method::GET
        || id.is_some_and(|id| {
            used.insert(id.to_owned(), Instant::now() + LIFETIME)
                .is_none()
        })
}

/// Answers from the claims alone: the core trusts no header without the gateway's signature.
async fn answer(
    State(shared): State<Shared>,
    (method, uri, headers): (Method, Uri, HeaderMap),
    body: Bytes,
) -> (StatusCode, Json<Value>) {
    let header = |name: &str| headers.get(name).map(|value| value.as_bytes());
    let assertion = header("gateway-assertion").unwrap_or_default();
    let assertion = str::from_utf8(assertion).unwrap_or_default();
    let target = uri.to_string();
    let (keys, used) = &*shared;
    let mut claims = keys_for(assertion, keys)
        .await
        .and_then(|keys| verify(assertion, &keys, method.as_str(), &target, header, &body));
    if let Some(found) = &claims
        && !is_new(found, &method, used).await
    {
        claims = None;
    }
    let claim = |name: &str| claims.as_ref()?.get(name)?.as_str();
    let (status, answer) = match claim("gateway-operation") {
        None => (
            StatusCode::FORBIDDEN,
            json!({"code": "FORBIDDEN", "message": "only the gateway may call"}),
        ),
        Some("account-list") => {
            let account = json!({"resourceId": "a-1", "ownerPsuId": claim("psu_id")});
            (StatusCode::OK, json!({ "accounts": [account] }))
        }
        Some(_) => (StatusCode::NOT_FOUND, json!({"code": "RESOURCE_UNKNOWN"})),
    };
    (status, Json(answer))
}

/// Serves on a listener. `url` is where the gateway publishes its keys.
pub(crate) async fn serve(listener: TcpListener, url: String) -> std::io::Result<()> {
    let shared: Shared = Arc::new(((url, Mutex::default()), Mutex::default()));
    axum::serve(listener, Router::new().fallback(answer).with_state(shared)).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let [address, url] = [1, 2].map(|at| std::env::args().nth(at).unwrap_or_default());
    Ok(serve(TcpListener::bind(address).await?, url).await?)
}
