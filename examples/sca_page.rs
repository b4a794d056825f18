//! A bank's SCA page: it reads the request from the gateway, identifies the PSU, and reports the result (docs/sca.md).
//!
//!     cargo run --example sca_page -- 127.0.0.1:8081 http://127.0.0.1:9100
//!
//! The gateway needs `sca: {page: http://127.0.0.1:8081/sca}` in its configuration. A real page authenticates the PSU, keeps a
//! table of the PSU-IDs that it gave out, and shows the payment or the accounts. This example trusts the customer number.

#![allow(clippy::indexing_slicing, reason = "a missing member of JSON is null")]

use axum::extract::{Form, Query, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::{Router, middleware::map_response, routing::get};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, io::Result};
use tokio::net::TcpListener;

type Fields = HashMap<String, String>;

const FORM: &str = "<form method=post>Customer number, or nothing to refuse: <input name=customer>\
                    <button>Send</button></form>";

/// Calls the gateway's control listener; `None` if it does not answer.
async fn call(control: &str, path: &str, body: Value) -> Option<Value> {
    let client = reqwest::Client::builder().no_proxy().build().ok()?;
    let call = client.post(format!("{control}/sca/{path}"));
    let call = call.header("content-type", "application/json");
    let answer = call.body(body.to_string()).send().await.ok()?;
    serde_json::from_slice(&answer.bytes().await.ok()?).ok()
}

/// Shows the form. The link carries the token; the form posts to the same URL, so the token stays in the query.
async fn show(State(control): State<String>, Query(link): Query<Fields>) -> Html<String> {
    let token = json!({ "request": link.get("request") });
    let pending = call(&control, "read", token).await.unwrap_or_default();
    let Some(operation) = pending["operation"].as_str() else {
        return Html("<h1>This link is not valid</h1>".into());
    };
    let name = pending["tpp_name"].as_str().unwrap_or("A TPP");
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    Html(format!("<h1>{name} asks for {operation}</h1>{FORM}"))
}

type Sent = (State<String>, Query<Fields>, Form<Fields>);

/// The PSU approves or refuses; the gateway's answer contains the URI that the browser goes to.
async fn submit((State(control), Query(link), Form(form)): Sent) -> Response {
    let ended = end(&control, link.get("request"), &form).await;
    match ended.unwrap_or_default()["redirect_uri"].as_str() {
        Some(uri) => Redirect::to(uri).into_response(),
        None => Html("<h1>This did not succeed</h1>").into_response(),
    }
}

async fn end(control: &str, token: Option<&String>, form: &Fields) -> Option<Value> {
    let Some(customer) = form.get("customer").filter(|number| !number.is_empty()) else {
        let refusal = json!({"request": token, "system": "sca", "status": 403, "code": "FORBIDDEN", "message": "refused"});
        return call(control, "fail", refusal).await;
    };
    let pending = call(control, "read", json!({ "request": token })).await?;
    // A person has one PSU-ID at each TPP, and it never changes.
    let digest = Sha256::digest(format!("{} {customer}", pending["tpp"]));
    let psu_id = uuid::Uuid::from_slice(digest.get(..16)?).ok()?.to_string();
    let context = pending["context"].as_str().unwrap_or("PRIVATE");
    let done = json!({"request": token, "psu_id": psu_id, "context": context, "psu_corporate_id": pending["psu_corporate_id"]});
    call(control, "complete", done).await
}

/// ERR-7: the token stays between the browser and the bank.
async fn private(answer: Response) -> impl IntoResponse {
    let uncached = [("cache-control", "no-store")];
    (uncached, [("referrer-policy", "no-referrer")], answer)
}

/// Serves on a listener. `control` is the URL of the gateway's control listener.
pub(crate) async fn serve(listener: TcpListener, control: String) -> Result<()> {
    let page = Router::new().route("/sca", get(show).post(submit));
    let page = page.layer(map_response(private)).with_state(control);
    axum::serve(listener, page).await
}

#[tokio::main]
async fn main() -> Result<()> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let [address, control] = [1, 2].map(|at| std::env::args().nth(at).unwrap_or_default());
    serve(TcpListener::bind(address).await?, control).await
}
