//! `portvakt-sandbox core`: a small stand-in for the bank's core, to be put behind the gateway.
//!
//! Invariant: it answers every operation of the interface, believes whatever the gateway tells it, and writes down each request as it
//! came, so that a demo can show what went upstream. It also has the bank's SCA page, as the browser of a PSU would see it.
//! Deliberately not here: any check of a header, a signature or a right. That is the gateway's, and this is what it protects.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::get;
use jiff::tz::TimeZone;
use portvakt::clock::Clock;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use uuid::Uuid;

// What the bank knows.
mod account;
mod bank;
mod payment;

// What the gateway forwards, and what is answered.
mod answers;
mod examples;
mod operations;

// The bank's SCA page, and the gateway's listener by which an SCA ends.
mod control;
mod html;
mod page;

use self::bank::Bank;
use self::control::Control;
use self::operations::{Asked, error};

/// The most that a body may hold, in bytes: HTTP-6, the gateway forwards no more.
const BODY_LIMIT: usize = 64 * 1024;

/// What it calls itself in errors and failed redirects.
const SYSTEM: &str = "sandbox-core";

/// The command line of the core.
#[derive(Debug, clap::Args)]
pub(crate) struct CoreArgs {
    /// The address to listen on, without TLS. The SCA page is /sca.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The gateway's control listener, by which an SCA ends.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9100")]
    control: String,
    /// A file that gets one line of JSON per request that the gateway forwards.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Serves until the process is ended.
pub(crate) fn run(args: &CoreArgs) -> Result<(), Box<dyn std::error::Error>> {
    let core = Core::new(
        Journal::open(args.log.as_ref())?,
        Control::new(&args.control),
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await?;
        let address = listener.local_addr()?;
        writeln!(io::stdout().lock(), "core listening on http://{address}")?;
        axum::serve(listener, router(Arc::new(core))).await?;
        Ok(())
    })
}

/// What all requests share.
struct Core {
    journal: Journal,
    bank: Mutex<Bank>,
    control: Control,
}

impl Core {
    fn new(journal: Journal, control: Control) -> Result<Self, jiff::Error> {
        let now = jiff::Timestamp::try_from(Clock::System.now().system_time())?;
        Ok(Self {
            journal,
            bank: Mutex::new(Bank::new(now.to_zoned(TimeZone::UTC).date())),
            control,
        })
    }

    /// Never held while something is waited for. A panic of another request leaves a bank that still holds.
    fn bank(&self) -> MutexGuard<'_, Bank> {
        self.bank.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The core as a service. The page is a route of its own, so that nothing of it is written down; the operations are a table of their own.
fn router(core: Arc<Core>) -> Router {
    Router::new()
        .route("/sca", get(page::show).post(page::submit))
        .fallback(answer)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(core)
}

async fn answer(State(core): State<Arc<Core>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return reply(error(413, "BAD_REQUEST", "The body is too long."));
    };
    let (method, path) = (head.method.as_str(), head.uri.path());
    let target = head
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    core.journal
        .append(&entry(method, target, &head.headers, &body));
    let asked = Asked {
        method,
        path,
        headers: &head.headers,
        body: &body,
    };
    let answer = operations::answer(&asked, &mut core.bank());
    reply(answer)
}

fn reply((status, body): operations::Answer) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

fn new_id() -> String {
    Uuid::new_v4().to_string()
}

fn link(href: &str, verb: &str) -> Value {
    json!({"href": href, "verbs": [verb]})
}

/// What nobody may read in a log: a national identity number (HDR-12), and a token that starts an SCA.
const WITHHELD: [&str; 2] = ["x-psu-identity", "gateway-sca-redirect"];

/// What is written down of one request. Header names come in lower case, those that repeat stand together.
fn entry(method: &str, target: &str, headers: &HeaderMap, body: &[u8]) -> Value {
    let headers: Vec<[String; 2]> = headers
        .iter()
        .map(|(name, value)| {
            let value = match WITHHELD.contains(&name.as_str()) {
                true => format!("(withheld, {} bytes)", value.len()),
                false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
            };
            [name.to_string(), value]
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
        let core = Core::new(journal, Control::new("http://127.0.0.1:9")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server =
            tokio::spawn(async move { axum::serve(listener, router(Arc::new(core))).await });
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
            Host: core\r\nPSU-ID: b\r\nGateway-Tpp-Id: a\r\nX-PSU-IDENTITY: 01010112345\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
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
        assert_eq!(
            line["headers"][3],
            json!(["x-psu-identity", "(withheld, 11 bytes)"])
        );
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
