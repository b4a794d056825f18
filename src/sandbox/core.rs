//! `portvakt-sandbox core`: a simulated bank, to be put behind the gateway, and the reference of how a core trusts it.
//!
//! Life of a request: it is written down for the demo, its Gateway-Assertion is verified (or, where that is switched off, its headers
//! are believed), its operation answers from the ledger, in one transaction. The bank's SCA page and the bank's own channel stand
//! beside: a PSU's browser and a person at this machine come without the gateway.
//! Invariants: an operation of the interface is answered to the gateway alone, unless `--danger-believe-anyone` says otherwise; all
//! that is known is in the ledger before an answer goes out. Deliberately not here: any check that the gateway has made.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header, request::Parts};
use axum::routing::get;
use portvakt::clock::Clock;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use uuid::Uuid;

// Arithmetic without I/O: numbers, references, days, rates.
mod calendar;
mod kid;
mod money;
mod rates;

// What the bank keeps: a ledger by double entry, and whose it is.
mod bank;
mod customer;
mod history;
mod ledger;
mod psu;
mod seed;

// Payments and baskets, and what moves them.
mod basket;
mod payment;

// Who calls, and whether it is the gateway.
mod assertion;
mod caller;

// What the gateway forwards, and what is answered.
mod answers;
mod journal;
mod operations;

// The bank's SCA page, and the gateway's listener by which an SCA ends.
mod control;
mod html;
mod page;

// Double entry under a hundred thousand operations, and under kill -9.
#[cfg(test)]
mod model_tests;

use self::assertion::{Assertions, Covered, NotTheGateway};
use self::bank::{Bank, BankFault};
use self::caller::Caller;
use self::control::Control;
use self::journal::Journal;
use self::operations::{Answer, Asked, error};
use self::rates::Rates;
pub(crate) use self::seed::WITH_AGREEMENT;

/// The most that a body may hold, in bytes: HTTP-6, the gateway forwards no more.
const BODY_LIMIT: usize = 64 * 1024;

/// What it calls itself in errors and failed redirects.
const SYSTEM: &str = "sandbox-core";

/// How often somebody looks whether the batch is due.
const LOOK: Duration = Duration::from_secs(10);

/// The command line of the core.
#[derive(Debug, clap::Args)]
pub(crate) struct CoreArgs {
    /// The address to listen on, without TLS. The SCA page is /sca.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The gateway's control listener, by which an SCA ends, and which publishes the keys of assertions.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9100")]
    control: String,
    /// The file of the ledger. It is made, with its folder, where it is not there. Without one all is forgotten at the end.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// A file of exchange rates, in place of those that the program brings along.
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// The gateway's system, the issuer of its assertions.
    #[arg(long, value_name = "NAME", default_value = "portvakt")]
    issuer: String,
    /// The gateway's assertion.audience.
    #[arg(long, value_name = "NAME", default_value = "core")]
    audience: String,
    /// Believe the headers of whoever calls: for a gateway without assertion.key. Whoever reaches the address is then any TPP.
    #[arg(long)]
    danger_believe_anyone: bool,
    /// A file that gets one line of JSON per request that the gateway forwards.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Serves until the process is ended.
pub(crate) fn run(args: &CoreArgs) -> Result<(), Box<dyn std::error::Error>> {
    let rates = Rates::load(args.rates.as_deref())?;
    let core = Arc::new(Core {
        journal: Journal::open(args.log.as_ref())?,
        bank: Mutex::new(Bank::open(args.ledger.as_deref(), rates, Clock::System)?),
        control: Control::new(&args.control),
        trust: match args.danger_believe_anyone {
            true => Trust::Anyone,
            false => Trust::Gateway(Assertions::new(&args.issuer, &args.audience, Clock::System)),
        },
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await?;
        let address = listener.local_addr()?;
        writeln!(io::stdout().lock(), "core listening on http://{address}")?;
        tokio::spawn(run_batches(Arc::clone(&core)));
        let service = router(core).into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, service).await?;
        Ok(())
    })
}

/// Whom the core believes.
#[derive(Debug)]
enum Trust {
    /// The gateway, by its assertion.
    Gateway(Assertions),
    /// Whoever calls.
    Anyone,
}

/// What all requests share.
struct Core {
    journal: Journal,
    bank: Mutex<Bank>,
    control: Control,
    trust: Trust,
}

impl Core {
    /// Never held while something else than the ledger is waited for. A panic of another request leaves a bank that still holds.
    fn bank(&self) -> MutexGuard<'_, Bank> {
        self.bank.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who calls, where that is believed.
    async fn caller(&self, head: &Parts, body: &[u8]) -> Result<Caller, NotTheGateway> {
        let path = head.uri.path();
        if is_own_channel(path) && is_beside(head) {
            return Ok(Caller::default());
        }
        match &self.trust {
            Trust::Anyone => Ok(Caller::by_headers(&head.headers)),
            Trust::Gateway(assertions) => {
                let covered = Covered {
                    method: head.method.as_str(),
                    target: target(head),
                    headers: &head.headers,
                    body,
                };
                let claims = assertions.verify(&covered, &self.control).await?;
                Ok(Caller::by_claims(&claims, &head.headers))
            }
        }
    }
}

/// The bank's own channel and the simulation's: no TPP's business, but a person's at this machine.
fn is_own_channel(path: &str) -> bool {
    path == "/v1/sandbox/batch"
        || path.starts_with("/v1/sandbox/payments/") && path.ends_with("/cancellation")
}

/// Whether a program on this machine calls, for itself: from a loopback address and to one, not forwarded, and no page in a browser,
/// which would name its Origin.
fn is_beside(head: &Parts) -> bool {
    let peer = head.extensions.get::<ConnectInfo<SocketAddr>>();
    let host = head
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default();
    let named = host.rsplit_once(':').map_or(host, |(name, _)| name);
    peer.is_some_and(|ConnectInfo(peer)| peer.ip().is_loopback())
        && ["localhost", "127.0.0.1", "[::1]"].contains(&named)
        && ["origin", "forwarded", "gateway-tpp-id"]
            .iter()
            .all(|name| !head.headers.contains_key(*name))
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
    let entry = journal::entry(head.method.as_str(), target(&head), &head.headers, &body);
    core.journal.append(&entry);
    let caller = match core.caller(&head, &body).await {
        Ok(caller) => caller,
        Err(fault) => {
            eprintln!("portvakt-sandbox: refused: {fault}");
            let text = format!("This core answers the gateway alone: {fault}.");
            return reply(error(403, "FORBIDDEN", &text));
        }
    };
    // The ledger waits for the disk.
    let answered = tokio::task::spawn_blocking(move || {
        let asked = Asked {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query().unwrap_or_default(),
            caller: &caller,
            body: &body,
        };
        operations::answer(&asked, &core.bank())
    });
    reply(
        answered
            .await
            .unwrap_or_else(|_| error(500, "SYSTEM_ERROR", "The simulated bank cannot answer.")),
    )
}

fn target(head: &Parts) -> &str {
    let target = head.uri.path_and_query();
    target.map_or("", |target| target.as_str())
}

fn reply((status, body): Answer) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, json);
    response
}

/// Runs the batch when it is due (SBX-2), and once after a pause in which it was.
async fn run_batches(core: Arc<Core>) {
    loop {
        let ran = core.bank().atomically::<_, BankFault>(Bank::run_if_due);
        if let Err(fault) = ran {
            eprintln!("portvakt-sandbox: the batch did not run: {fault}");
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn new_id() -> String {
    Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests;
