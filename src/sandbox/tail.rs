//! `GET /tail` of the simulated bank: a TPP sees its own latest requests, with their reasons, while it develops.
//!
//! The bank reads the gateway's access log, in which a line names a TPP as `tpp` only if the signature of the request verified.
//! Invariants: a token shows the requests of exactly one TPP; no header but X-Request-ID, no path, no body and no PSU is shown, because
//! the log has none. Deliberately not here: a decision on a request, and a list of tokens. A token is computed from a key, and nothing
//! is stored.

// The parts: tokens, the lines of the log, the latest requests of each TPP, and the answer.
mod lines;
mod recent;
mod service;
mod token;

// The command that prints the latest requests, and its memory.
mod client;
mod seen;

pub(crate) use self::client::{TailArgs, run as print};
pub(crate) use self::service::{Tail, router, watch};

use self::token::TailKey;
use portvakt_base::terminal::Terminal;
use portvakt_interface::TppId;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The options of the bank. Without them there is no `/tail`.
#[derive(Debug, clap::Args)]
pub(crate) struct TailOptions {
    /// The gateway's access log: GET /tail then shows a TPP its own latest requests, by a token of `portvakt-sandbox token`.
    #[arg(long = "tail", value_name = "FILE", requires = "tail_key")]
    tail_log: Option<PathBuf>,
    /// The key of these tokens. It is made, with its folder, where it is not there.
    #[arg(long, value_name = "FILE", requires = "tail_log")]
    tail_key: Option<PathBuf>,
}

impl TailOptions {
    /// What the options ask for; `None` without them.
    pub(crate) fn open(&self) -> Result<Option<Arc<Tail>>, Box<dyn std::error::Error>> {
        let (Some(log), Some(path)) = (&self.tail_log, &self.tail_key) else {
            return Ok(None);
        };
        let key = TailKey::read_or_make(path)
            .map_err(|fault| format!("--tail-key: {}: {fault}", path.display()))?;
        Ok(Some(Arc::new(Tail::new(key, log.clone()))))
    }
}

/// The command line of a new token.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    /// The TPP whose requests the token shows: the organizationIdentifier of its certificate, such as PSDNO-FSA-123456.
    #[arg(long, value_name = "ID")]
    tpp: String,
    /// The --tail-key of the bank.
    #[arg(long, value_name = "FILE", default_value = "state/sandbox-tail.key")]
    key: PathBuf,
}

/// Prints the token of a TPP.
pub(crate) fn print_token(args: &TokenArgs) -> Result<(), Box<dyn std::error::Error>> {
    let tpp = TppId::parse(&args.tpp)
        .ok_or_else(|| format!("--tpp names no TPP: {}", TppId::fault(&args.tpp)))?;
    let key = TailKey::read(&args.key).map_err(|fault| {
        let path = args.key.display();
        format!("--key: {path}: {fault}; the bank makes the file when it starts with --tail-key")
    })?;
    writeln!(Terminal::output(), "{}", key.token(&tpp))?;
    Ok(())
}
