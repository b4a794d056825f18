//! `portvakt-sandbox core`: a small stand-in for the bank's core, to be put behind the gateway.
//!
//! Invariant: it answers every operation of the interface, believes whatever it is told, and writes down each request as it came,
//! so that a demo can show what went upstream.
//! Deliberately not here: any check of a header, a signature or a right. That is the gateway's, and this is what it protects.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

mod operations;

/// The most that a body may hold, in bytes: HTTP-6, the gateway forwards no more.
const BODY_LIMIT: usize = 64 * 1024;

/// The command line of the core.
#[derive(Debug, clap::Args)]
pub(crate) struct CoreArgs {
    /// The address to listen on, without TLS.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// A file that gets one line of JSON per request.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Serves until the process is ended.
pub(crate) fn run(args: &CoreArgs) -> Result<(), Box<dyn std::error::Error>> {
    let journal = Journal::open(args.log.as_ref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await?;
        let address = listener.local_addr()?;
        writeln!(io::stdout().lock(), "core listening on http://{address}")?;
        axum::serve(listener, router(journal)).await?;
        Ok(())
    })
}

/// The core as a service. One handler, because the operations are a table of their own.
fn router(journal: Journal) -> Router {
    Router::new().fallback(answer).with_state(Arc::new(journal))
}

async fn answer(State(journal): State<Arc<Journal>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return reply(status, &operations::error(status.as_u16(), "BAD_REQUEST"));
    };
    let target = head
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    journal.append(&entry(head.method.as_str(), target, &head.headers, &body));
    let (status, answer) = operations::answer(head.method.as_str(), head.uri.path());
    reply(
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        &answer,
    )
}

fn reply(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// What is written down of one request. Header names come in lower case, those that repeat stand together.
fn entry(method: &str, target: &str, headers: &HeaderMap, body: &[u8]) -> Value {
    let headers: Vec<[String; 2]> = headers
        .iter()
        .map(|(name, value)| {
            [
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            ]
        })
        .collect();
    let digest: String = Sha256::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    json!({
        "method": method,
        "target": target,
        "headers": headers,
        "body_length": body.len(),
        "body_sha256": digest,
    })
}

/// The file that requests are written to, if any. One write per line, so that lines of two requests never mix.
struct Journal(Option<Mutex<File>>);

impl Journal {
    fn open(path: Option<&PathBuf>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        Ok(Self(path.map(open).transpose()?.map(Mutex::new)))
    }

    /// A line that cannot be written is reported and costs the caller nothing: the journal serves the demo, not the other way round.
    fn append(&self, entry: &Value) {
        let Some(file) = &self.0 else { return };
        let line = format!("{entry}\n");
        let written = match file.lock() {
            Ok(mut file) => file.write_all(line.as_bytes()),
            Err(poisoned) => poisoned.into_inner().write_all(line.as_bytes()),
        };
        if let Err(fault) = written {
            eprintln!("portvakt-sandbox: the request log cannot be written: {fault}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn exchange(log: &std::path::Path, request: &[u8]) -> String {
        let journal = Journal::open(Some(&log.to_path_buf())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router(journal)).await });
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        server.abort();
        answer
    }

    #[tokio::test]
    async fn a_request_is_answered_and_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("core.jsonl");
        let request = b"POST /v1/payments/norwegian-domestic-credit-transfers?a=%20 HTTP/1.1\r\n\
            Host: core\r\nPSU-ID: b\r\nGateway-Tpp-Id: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        let answer = exchange(&log, request).await;
        assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
        assert!(answer.contains("startAuthorisation"));
        let line: Value = serde_json::from_str(&std::fs::read_to_string(log).unwrap()).unwrap();
        assert_eq!(line["method"], "POST");
        assert_eq!(
            line["target"],
            "/v1/payments/norwegian-domestic-credit-transfers?a=%20"
        );
        assert_eq!(line["headers"][1], json!(["psu-id", "b"]));
        assert_eq!(line["headers"][2], json!(["gateway-tpp-id", "a"]));
        assert_eq!(line["body_length"], 2);
        assert_eq!(
            line["body_sha256"],
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("core.jsonl");
        let mut request =
            b"POST /v1/consents HTTP/1.1\r\nHost: core\r\nConnection: close\r\nContent-Length: 65537\r\n\r\n"
                .to_vec();
        request.resize(request.len() + 65_537, b'x');
        let answer = exchange(&log, &request).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }
}
