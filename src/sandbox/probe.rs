//! `portvakt-sandbox probe`: tests a core as a gateway and as somebody who comes past the gateway would.
//!
//! The probe holds the gateway's signing key, so it runs where that key may be: against a test system. It sends requests to one
//! operation that reads and one that writes, the TPP's contact address by default, and reports what the core team has to mend.
//! Deliberately not here: the bank's own logic, which only the bank can judge.

use axum::http::{Method, Uri};
use portvakt::signing::{AssertionKey, AssertionSigner};
use portvakt_base::terminal::{Terminal, complain};
use portvakt_interface::operations::{Catalogue, Environment, Lookup, Sca, builtin};
use portvakt_interface::path::Target;
use std::cell::RefCell;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use uuid::Uuid;

// HTTP/1.1 as the core speaks it.
mod wire;

// Requests and assertions, right and wrong.
mod request;

// Requests in turn, and their outcomes.
mod session;

// Keys on a listener.
mod publish;

// The payment or basket that a request made, and the words that tell answers apart.
mod created;
mod marks;

// Headers beside other claims.
mod plant;

// What is checked.
mod amounts;
mod answers;
mod assertion;
mod endurance;
mod facts;
mod forged;
mod owner;
mod replay;

// The result.
mod report;

use self::request::{Example, Gateway};
use self::session::Session;
use self::wire::CoreAddress;

/// The exit status of a core with faults, and that of a probe that could not be made.
const TO_MEND: u8 = 1;
const NOT_MADE: u8 = 2;

/// The command line of the probe.
#[derive(Debug, clap::Args)]
pub(crate) struct ProbeArgs {
    /// The core's address, without TLS: http://HOST:PORT.
    #[arg(long, value_name = "URL")]
    core: String,
    /// The gateway's assertion.key, which signs what the core is to believe.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The gateway's system, the issuer of its assertions.
    #[arg(long, value_name = "NAME", default_value = "portvakt")]
    issuer: String,
    /// The gateway's assertion.audience.
    #[arg(long, value_name = "NAME", default_value = "core")]
    audience: String,
    /// Publish the public key here while the probe runs, as the control listener of a gateway does: for a core without one.
    #[arg(long, value_name = "ADDRESS")]
    publish: Option<SocketAddr>,
    /// The TPP that the requests come from, as in Gateway-Tpp-Id.
    #[arg(long, value_name = "ID", default_value = "PSDNO-FSA-000000")]
    tpp: String,
    /// A PSU of that TPP at the core, for operations that need one. Without it the requests name none.
    #[arg(long, value_name = "PSU-ID")]
    psu: Option<Uuid>,
    /// Path and query of an operation with GET that the core answers to that TPP.
    #[arg(long, value_name = "TARGET", default_value = "/v1/tpp/contact")]
    read: String,
    /// Method, path and query of an operation that changes something, and may do so many times.
    #[arg(
        long,
        value_name = "METHOD TARGET",
        default_value = "PUT /v1/tpp/contact"
    )]
    write: String,
    /// The JSON body of that operation.
    #[arg(
        long,
        value_name = "JSON",
        default_value = r#"{"email": "probe@tpp.example"}"#
    )]
    body: String,
    /// The most seconds until the core has answered a request: upstream.read_timeout.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// The seconds after which a request that changed something is sent again: 50 shows that the core keeps jti nearly until exp.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=50))]
    replay_after: u64,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// The reason why a probe cannot be made.
#[derive(Debug, thiserror::Error)]
enum ProbeFault {
    /// The core's address cannot be used.
    #[error("--core: {0} is no http://HOST:PORT")]
    Address(String),
    /// The gateway has no such operation.
    #[error("{0} is no operation of the interface: name one of docs/upstream-contract.md")]
    Operation(String),
    /// The operation is about a PSU.
    #[error("{0} needs a PSU: name one of the core's by --psu")]
    Psu(String),
    /// The body is none.
    #[error("--body: it is no JSON ({0})")]
    Body(#[from] serde_json::Error),
    /// The key cannot be used.
    #[error("--key {}: {fault}", file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        fault: portvakt::signing::AssertionKeyFault,
    },
    /// The core cannot be reached.
    #[error("the core at {0} cannot be reached: {1}")]
    Away(String, wire::NoAnswer),
    /// The key cannot be published.
    #[error("--publish {0}: {1}")]
    Publish(SocketAddr, io::Error),
    /// The report cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Makes the probe and prints its report. Ends with 0 where there is nothing to mend, with 1 where there is, and with 2 where the
/// probe could not be made.
pub(crate) fn run(args: &ProbeArgs) -> ExitCode {
    match probe(args) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(TO_MEND),
        Err(fault) => {
            complain("portvakt-sandbox probe", fault);
            ExitCode::from(NOT_MADE)
        }
    }
}

/// The number of faults.
fn probe(args: &ProbeArgs) -> Result<usize, ProbeFault> {
    let session = session(args)?;
    let published = session.gateway.signer.published().to_owned();
    let _published = args
        .publish
        .map(|address| {
            publish::publish(address, published)
                .map_err(|fault| ProbeFault::Publish(address, fault))
        })
        .transpose()?;
    let connected = session.core.connect();
    connected.map_err(|fault| ProbeFault::Away(args.core.clone(), fault))?;
    let mut checks = assertion::checks(&session);
    checks.extend(endurance::checks(&session));
    checks.extend(answers::checks(&session));
    let mut out = Terminal::output();
    match args.json {
        true => writeln!(out, "{:#}", report::json(&args.core, &checks))?,
        false => write!(out, "{}", report::written(&args.core, &checks))?,
    }
    Ok(report::to_mend(&checks))
}

fn session(args: &ProbeArgs) -> Result<Session, ProbeFault> {
    let _: serde::de::IgnoredAny = serde_json::from_str(&args.body)?;
    let key_fault = |fault| ProbeFault::Key {
        file: args.key.clone(),
        fault,
    };
    let key = AssertionKey::read(&args.key).map_err(key_fault)?;
    let stranger = AssertionKey::random().map_err(key_fault)?;
    let signer = |key| AssertionSigner::new(key, None, &args.issuer, &args.audience);
    let core = CoreAddress {
        authority: authority(&args.core)?,
        timeout: Duration::from_secs(args.timeout),
    };
    Ok(Session {
        gateway: Gateway {
            signer: signer(key),
            stranger: signer(stranger),
            host: core.authority.clone(),
            tpp: args.tpp.clone(),
            psu: args.psu,
        },
        core,
        read: example(args.psu, &format!("GET {}", args.read), Vec::new())?,
        write: example(args.psu, &args.write, args.body.clone().into_bytes())?,
        replay_after: Duration::from_secs(args.replay_after),
        answers: RefCell::default(),
    })
}

/// Host and port of http://HOST:PORT.
fn authority(core: &str) -> Result<String, ProbeFault> {
    let wrong = || ProbeFault::Address(core.to_owned());
    let uri: Uri = core.parse().map_err(|_| wrong())?;
    let authority = uri
        .authority()
        .filter(|_| uri.scheme_str() == Some("http") && uri.path() == "/" && uri.query().is_none());
    let authority = authority.ok_or_else(wrong)?;
    let port = authority.port_u16().unwrap_or(80);
    Ok(format!("{}:{port}", authority.host()))
}

/// An operation of the interface, with an example.
fn example(psu: Option<Uuid>, text: &str, body: Vec<u8>) -> Result<Example, ProbeFault> {
    let unknown = || ProbeFault::Operation(text.to_owned());
    let (method, target) = text.split_once(' ').ok_or_else(unknown)?;
    let method: Method = method.parse().map_err(|_| unknown())?;
    let parsed = Target::parse(target.as_bytes()).map_err(|_| unknown())?;
    let catalogue = Catalogue::new(Environment::Sandbox, builtin()).map_err(|_| unknown())?;
    let Lookup::Found(operation) = catalogue.find(&method, &parsed) else {
        return Err(unknown());
    };
    if operation.sca != Sca::None && psu.is_none() {
        return Err(ProbeFault::Psu(text.to_owned()));
    }
    Ok(Example {
        operation: operation.name.clone(),
        method,
        target: target.to_owned(),
        body,
    })
}
