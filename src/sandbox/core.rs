//! `portvakt-sandbox core`: a simulated bank, to be put behind the gateway, and the reference of how a core trusts it.
//!
//! Life of a request: the core logs it for the demo, verifies its Gateway-Assertion (or trusts its headers, if verification is
//! switched off), and executes its operation on the ledger, in one transaction. The bank's pages and the bank's own channel
//! are separate routes: a PSU's browser and a person at this machine call them without the gateway, and so does a TPP `/tail`, by its
//! token (src/sandbox/tail.rs). Invariants: an operation of the interface is answered only to the gateway, unless
//! `--danger-believe-anyone` is set; every change is in the ledger before its answer is sent; only the SCA page may be framed.
//! Deliberately not here: any check that the gateway has made.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::get;
use portvakt_base::clock::Clock;
use portvakt_base::terminal::{Terminal, complain};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

// Arithmetic without I/O: JSON, numbers, references, days, rates.
mod calendar;
mod coding;
mod distinct;
mod kid;
mod money;
mod rates;

// The bank's records: a ledger by double entry, its customers, and the forms of transaction details.
mod bank;
mod customer;
mod details;
mod history;
mod ledger;
mod psu;
mod seed;

// Payments and baskets, and their processing.
mod basket;
mod payment;
mod payment_status;

// Identification of the caller, and verification of the gateway.
mod assertion;
mod caller;

// Forwarded operations, the reader of their bodies, and their answers.
mod answer;
mod answers;
mod body;
mod journal;
mod operations;

// The bank's pages, and the end of an SCA: the client of the gateway's control listener, what it says of consents, and the approvals that
// are to reach it.
mod access;
mod console;
mod control;
mod ending;
mod form_token;
mod frames;
mod grants;
mod html;
mod language;
mod page;
mod request_key;
mod stage;

// The state that all requests share.
mod state;

// Double entry is checked over twenty thousand operations, and after kill -9.
#[cfg(test)]
mod model_tests;

use self::answer::{Answer, Asked, content_language, error, with_messages};
use self::assertion::Assertions;
use self::bank::{Bank, BankFault};
use self::control::Control;
use self::form_token::FormTokens;
use self::frames::{FrameOrigin, Frames};
use self::journal::Journal;
use self::language::Language;
use self::rates::Rates;
pub(crate) use self::seed::WITH_AGREEMENT;
use self::state::{Core, Trust, target};
use crate::tail::{self, TailOptions};

/// The largest body, in bytes: HTTP-6, the gateway forwards no larger one.
const BODY_LIMIT: usize = 64 * 1024;

/// The interval at which the core checks whether the batch is due.
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
    /// Show the known issue of the interface: neither dateFrom, dateTo nor limit filters the pending transactions of an account that is no
    /// card account.
    #[arg(long)]
    known_issue: bool,
    /// An https origin whose pages may show the SCA page in a frame: scheme, host and perhaps a port. May be repeated; by default none
    /// may.
    #[arg(long = "frame-origin", value_name = "ORIGIN")]
    frame_origins: Vec<FrameOrigin>,
    /// A file that gets one line of JSON per request that the gateway forwards.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    #[command(flatten)]
    tail: TailOptions,
}

/// Serves until the process is ended.
pub(crate) fn run(args: &CoreArgs) -> Result<(), Box<dyn std::error::Error>> {
    let core = Arc::new(Core {
        journal: Journal::open(args.log.as_ref())?,
        bank: Mutex::new(open_bank(args)?),
        control: Control::new(&args.control),
        endings: tokio::sync::Mutex::default(),
        forms: FormTokens::default(),
        accesses: FormTokens::default(),
        frames: Frames::of(&args.frame_origins)?,
        console: FormTokens::default(),
        trust: match args.danger_believe_anyone {
            true => Trust::Anyone,
            false => Trust::Gateway(Assertions::new(&args.issuer, &args.audience, Clock::System)),
        },
    });
    let tail = args.tail.open()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await?;
        let address = listener.local_addr()?;
        writeln!(Terminal::output(), "core listening on http://{address}")?;
        tokio::spawn(run_batches(Arc::clone(&core)));
        tokio::spawn(end_what_is_open(Arc::clone(&core)));
        let mut routes = router(core);
        if let Some(tail) = tail {
            tokio::spawn(tail::watch(Arc::clone(&tail)));
            routes = routes.merge(tail::router(tail));
        }
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, service).await?;
        Ok(())
    })
}

/// The bank that the command line asks for.
fn open_bank(args: &CoreArgs) -> Result<Bank, Box<dyn std::error::Error>> {
    let rates = Rates::load(args.rates.as_deref())?;
    let mut bank = Bank::open(args.ledger.as_deref(), rates, Clock::System)?;
    bank.has_known_issue = args.known_issue;
    Ok(bank)
}

/// The core as a service. The pages have their own routes, so that they are never logged; operations are in their own table.
fn router(core: Arc<Core>) -> Router {
    Router::new()
        .route("/sca", get(page::show).post(page::submit))
        .route(
            "/accesses",
            get(page::accesses::show).post(page::accesses::submit),
        )
        .route("/console", get(console::show).post(console::show))
        .route("/bank.css", get(html::style))
        .route("/bank.svg", get(html::mark))
        .fallback(answer)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(core)
}

async fn answer(State(core): State<Arc<Core>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        let answer = error(413, "BAD_REQUEST", "The body is too long.");
        return reply(answer, Language::English, &head.headers);
    };
    let entry = journal::entry(head.method.as_str(), target(&head), &head.headers, &body);
    core.journal.append(&entry);
    let caller = match core.caller(&head, &body).await {
        Ok(caller) => caller,
        Err(fault) => {
            complain("portvakt-sandbox", format_args!("refused: {fault}"));
            let text = format!("This core answers the gateway alone: {fault}.");
            return reply(
                error(403, "FORBIDDEN", &text),
                Language::English,
                &head.headers,
            );
        }
    };
    let language = caller.language;
    let asked = head.headers.clone();
    // The ledger waits for the disk, so it runs on a blocking thread.
    let answered = tokio::task::spawn_blocking(move || {
        let asked = Asked {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query().unwrap_or_default(),
            caller: &caller,
            body: &body,
        };
        let bank = core.bank();
        let answer = operations::answer(&asked, &bank);
        note_use(&bank, &asked, answer.0);
        answer
    });
    reply(
        answered.await.unwrap_or_else(|_| {
            with_messages(error(
                500,
                "SYSTEM_ERROR",
                "The simulated bank cannot answer.",
            ))
        }),
        language,
        &asked,
    )
}

/// Notes that a TPP read accounts, for their owner to see (SBX-16). The answer does not depend on it.
fn note_use(bank: &Bank, asked: &Asked<'_>, status: u16) {
    let is_read = asked.method == "GET"
        && (asked.path == "/v1/accounts" || asked.path.starts_with("/v1/accounts/"));
    let caller = asked.caller;
    let Some(psu) = caller.psu.filter(|_| is_read && status == 200) else {
        return;
    };
    if let Err(fault) = bank.note_use(&caller.tpp, psu, caller.agreement) {
        complain("portvakt-sandbox", fault);
    }
}

/// An answer to a request with these headers.
fn reply(answer: Answer, accepted: Language, asked: &HeaderMap) -> Response<Body> {
    let language = content_language(&answer, accepted);
    let (status, body) = answer;
    let plain = body.to_string().into_bytes();
    let encoded = coding::in_gzip(&plain, asked);
    let is_encoded = encoded.is_some();
    let mut response = Response::new(Body::from(encoded.unwrap_or(plain)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, json);
    let language = header::HeaderValue::from_static(language);
    headers.insert(header::CONTENT_LANGUAGE, language);
    if is_encoded {
        let gzip = header::HeaderValue::from_static("gzip");
        headers.insert(header::CONTENT_ENCODING, gzip);
    }
    response
}

/// Runs the batch when it is due (SBX-2), and once after a pause in which it was.
async fn run_batches(core: Arc<Core>) {
    loop {
        let ran = core.bank().atomically::<_, BankFault>(Bank::run_if_due);
        if let Err(fault) = ran {
            complain(
                "portvakt-sandbox",
                format_args!("the batch did not run: {fault}"),
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Finishes approvals that a crash or an unavailable gateway left open.
async fn end_what_is_open(core: Arc<Core>) {
    loop {
        if let Err(fault) = ending::recover(&core).await {
            complain(
                "portvakt-sandbox",
                format_args!("approvals cannot be read: {fault}"),
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests;
