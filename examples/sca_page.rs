//! A bank's SCA page: it reads the request from the gateway, identifies the PSU, and reports the result (docs/sca.md).
//!
//!     cargo run --example sca_page -- 127.0.0.1:8081 http://127.0.0.1:9100
//!
//! The gateway needs `sca: {page: http://127.0.0.1:8081/sca}` in its configuration. A real page authenticates the PSU, keeps a
//! table of the PSU-IDs that it gave out, and shows the payment or the accounts. This example trusts the customer number.

use axum::extract::{Form, Query, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::{Router, middleware::map_response, routing::get};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, error::Error};
use tokio::net::TcpListener;

type Fields = HashMap<String, String>;

/// Calls the gateway's control listener.
async fn call(url: String, body: &Value) -> Result<Value, Box<dyn Error>> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let call = client.post(url).header("content-type", "application/json");
    let answer = call.body(body.to_string()).send().await?;
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}

/// Shows the form. The link carries the token; the form posts to the same URL, so the token stays in the query.
async fn show(State(control): State<String>, Query(link): Query<Fields>) -> Html<String> {
    let body = json!({ "request": link.get("request") });
    let asked = call(format!("{control}/sca/read"), &body).await.ok();
    let text = |name| asked.as_ref()?.get(name)?.as_str();
    let Some(operation) = text("operation") else {
        return Html("<h1>This link is not valid</h1>".into());
    };
    let name = text("tpp_name").unwrap_or("A TPP");
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    Html(format!(
        "<h1>{name} asks for {operation}</h1><form method=post><input name=customer>\
         <button name=step value=approve>Approve</button><button>Refuse</button></form>"
    ))
}

/// The PSU approves or refuses; the gateway's answer contains the URI that the browser goes to.
async fn submit(
    State(control): State<String>,
    Query(link): Query<Fields>,
    Form(form): Form<Fields>,
) -> Result<Redirect, Html<&'static str>> {
    let ended = end(&control, link.get("request"), &form).await.ok();
    let uri = ended
        .as_ref()
        .and_then(|answer| answer.get("redirect_uri")?.as_str());
    uri.map(Redirect::to)
        .ok_or(Html("<h1>This did not succeed</h1>"))
}

async fn end(
    control: &str,
    token: Option<&String>,
    form: &Fields,
) -> Result<Value, Box<dyn Error>> {
    let customer = form.get("customer").filter(|number| !number.is_empty());
    let (Some(customer), Some(_)) = (customer, form.get("step")) else {
        let refusal = json!({"request": token, "system": "sca", "status": 403, "code": "FORBIDDEN", "message": "refused"});
        return call(format!("{control}/sca/fail"), &refusal).await;
    };
    let asked = call(format!("{control}/sca/read"), &json!({ "request": token })).await?;
    let asked = |name| asked.get(name).and_then(Value::as_str);
    // A person has one PSU-ID at each TPP, and it never changes.
    let digest = Sha256::digest(format!("{:?} {customer}", asked("tpp")));
    let psu_id = uuid::Uuid::from_slice(digest.get(..16).unwrap_or_default())?.to_string();
    let done = json!({"request": token, "psu_id": psu_id, "context": asked("context").unwrap_or("PRIVATE"),
        "psu_corporate_id": asked("psu_corporate_id")});
    call(format!("{control}/sca/complete"), &done).await
}

/// ERR-7: the token stays between the browser and the bank.
async fn private(answer: Response) -> impl IntoResponse {
    let uncached = [("cache-control", "no-store")];
    (uncached, [("referrer-policy", "no-referrer")], answer)
}

/// Serves on a listener. `control` is the URL of the gateway's control listener.
pub(crate) async fn serve(listener: TcpListener, control: String) -> std::io::Result<()> {
    let page = Router::new().route("/sca", get(show).post(submit));
    let page = page.layer(map_response(private)).with_state(control);
    axum::serve(listener, page).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let [address, control] = [1, 2].map(|at| std::env::args().nth(at).unwrap_or_default());
    Ok(serve(TcpListener::bind(address).await?, control).await?)
}
