//! `portvakt explain`: the gateway's decision on a saved request, or the meaning of a reason.
//!
//! Invariant: the verdict is that of `gateway::saved`, which runs the listener's own HTTP layer, its checks of
//! heads and [`admission::prove`](crate::admission::prove), with the same configuration; nothing is checked a second time here, and nothing
//! can be admitted here: that requires [`admission::authorise`](crate::admission::authorise) and the store. Texts beside a verdict are read
//! from the request for people and decide nothing.
//!
//! Nothing is masked: the request is the user's own file on the user's own terminal, and a signing string without a value could
//! not be compared. No private key is read: only certificates and requests. Control characters in external text are escaped, so
//! that they cannot move the terminal's cursor. Deliberately not here: the network. Nothing is sent, and no listener is opened.

// The first difference between the caller's signing string and the gateway's.
mod difference;
// The evidence of each check, in words.
mod evidence;
// Other strings over which a signature verifies.
mod guess;
// The run of the pipeline.
mod judge;
// What vouches for bytes that a format may show otherwise.
mod vouched;
// The reasons.
mod reasons;
// The report.
mod report;

use super::{
    input::{self, InputFault},
    moment,
    saved::{self, SavedFault, SavedRequest},
};
use crate::{
    clock::Timestamp,
    config::{ConfigFaults, Settings},
    interface::{Code, Reason},
};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The exit status for a refused request.
const REFUSED: u8 = 1;
/// The exit status for a request whose file has not enough of it.
const UNDECIDED: u8 = 2;

/// The subject to explain.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Judge REQUEST by this configuration.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Judge it as of this moment: '…, 06 Nov 1994 08:49:37 GMT', seconds since 1970, or RFC 3339. Default: its own Date.
    #[arg(long, value_name = "TIME", value_parser = moment::parse, requires = "config")]
    at: Option<Timestamp>,
    /// Compare the gateway's signing string with the one in this file.
    #[arg(long, value_name = "FILE", requires = "config")]
    theirs: Option<PathBuf>,
    /// Which request of a trace or HAR, counted from 1. Default: the last that is signed.
    #[arg(long, value_name = "N", requires = "config")]
    entry: Option<usize>,
    /// With --config a request: a file, or - for standard input, with raw HTTP/1.1, the output of curl --trace, --trace-ascii or
    /// -v, a HAR, or flows of mitmproxy. Without it a reason, such as signature-mismatch, or a code, such as FORMAT_ERROR; nothing lists all reasons.
    #[arg(value_name = "REQUEST|REASON")]
    what: Option<String>,
}

/// The reason why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainFault {
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// A file cannot be read.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// The input contains no request.
    #[error("{}: {fault}", input::name(path))]
    Saved {
        /// The input.
        path: PathBuf,
        /// The reason.
        fault: SavedFault,
    },
    /// The file of the signing string is empty.
    #[error("{}: the file is empty, and no signing string is", input::name(.0))]
    NoString(PathBuf),
    /// The word is not a reason.
    #[error(
        "there is no reason {word:?}{}; `portvakt explain` lists all of them",
        nearest.map_or_else(String::new, |slug| format!("; did you mean {slug}?"))
    )]
    NoReason {
        /// The word.
        word: String,
        /// The most similar slug, if there is one.
        nearest: Option<&'static str>,
    },
    /// The path does not exist.
    #[error(
        "{0} is no reason, and there is no such file. A request is judged with --config FILE; `portvakt explain` lists the reasons"
    )]
    NoFile(String),
    /// A request without a configuration.
    #[error("{0} is a request, not a reason: name the configuration to judge it by, --config FILE")]
    NoConfig(String),
    /// A configuration without a request.
    #[error("name the request to judge: a file, or - for standard input")]
    NoRequest,
    /// The output cannot be written.
    #[error(transparent)]
    Terminal(#[from] io::Error),
}

/// Explains, and writes to `out`. `now` is the time for a request without a readable Date.
///
/// The exit code is success for an admitted request and for a reason, 1 for a refused request, 2 for one that is undecided because its
/// file has not the body.
///
/// # Errors
/// [`ExplainFault`], for which 2 is the exit code.
pub fn run(
    args: &ExplainArgs,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<ExitCode, ExplainFault> {
    match (&args.config, args.what.as_deref()) {
        (Some(config), Some(what)) => request(args, config, Path::new(what), now, out),
        (Some(_), None) => Err(ExplainFault::NoRequest),
        (None, Some(word)) => reason(word, out),
        (None, None) => {
            write!(out, "{}", reasons::list())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The settings by which saved requests are explained.
pub struct ExplainedSettings(Settings);

impl ExplainedSettings {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The faults of the configuration.
    pub fn load(config: &Path) -> Result<Self, ConfigFaults> {
        let mut settings = Settings::load(config)?;
        // Revocation is a status of the present, and the request is from the past; an explanation also makes no connection.
        settings.reloadable.snapshot.trust =
            settings.reloadable.snapshot.trust.with_revocation(None);
        Ok(Self(settings))
    }
}

fn request(
    args: &ExplainArgs,
    config: &Path,
    file: &Path,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<ExitCode, ExplainFault> {
    let theirs = args.theirs.as_deref().map(theirs).transpose()?;
    let input = input::read(file)?;
    let saved = saved::request(&input, args.entry).map_err(|fault| ExplainFault::Saved {
        path: file.into(),
        fault,
    })?;
    let settings = ExplainedSettings::load(config).map_err(ExplainFault::Config)?;
    let moment = judge::Moment::of(&saved, args.at, now);
    let explained = explained(&saved, &settings, moment, theirs.as_deref(), out);
    Ok(explained?)
}

/// Explains a saved request in any of the formats as of a moment, and writes to `out` as the command does. The exit code is that of the
/// command.
///
/// # Errors
/// [`ExplainFault::Saved`] and [`ExplainFault::Terminal`].
pub fn saved_request(
    input: &[u8],
    settings: &ExplainedSettings,
    at: Timestamp,
    out: &mut dyn Write,
) -> Result<ExitCode, ExplainFault> {
    let saved = saved::request(input, None).map_err(|fault| ExplainFault::Saved {
        path: "-".into(),
        fault,
    })?;
    let moment = judge::Moment::of(&saved, Some(at), at);
    Ok(explained(&saved, settings, moment, None, out)?)
}

fn explained(
    request: &SavedRequest,
    settings: &ExplainedSettings,
    moment: judge::Moment,
    theirs: Option<&[u8]>,
    out: &mut dyn Write,
) -> io::Result<ExitCode> {
    let judged = judge::judge(request, &settings.0, moment)?;
    let snapshot = &settings.0.reloadable.snapshot;
    report::write(request, &judged, snapshot, theirs, out)?;
    Ok(match judged.verdict {
        _ if judged.is_open => ExitCode::from(UNDECIDED),
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(REFUSED),
    })
}

/// The caller's signing string.
fn theirs(path: &Path) -> Result<Vec<u8>, ExplainFault> {
    let string = input::read(path)?;
    if string.trim_ascii().is_empty() {
        return Err(ExplainFault::NoString(path.into()));
    }
    Ok(string)
}

fn reason(word: &str, out: &mut dyn Write) -> Result<ExitCode, ExplainFault> {
    if let Some(reason) = Reason::from_slug(&word.to_ascii_lowercase()) {
        write!(out, "{}", reasons::describe(reason))?;
        return Ok(ExitCode::SUCCESS);
    }
    // An answer contains both code and reason.
    if let Some(code) = Code::ALL.iter().find(|code| code.as_str() == word) {
        write!(out, "{}", reasons::of_code(*code))?;
        return Ok(ExitCode::SUCCESS);
    }
    if word == "-" || Path::new(word).is_file() {
        return Err(ExplainFault::NoConfig(word.to_owned()));
    }
    if word.contains(['.', '/', '\\']) {
        return Err(ExplainFault::NoFile(word.to_owned()));
    }
    Err(ExplainFault::NoReason {
        word: word.to_owned(),
        nearest: reasons::nearest(word),
    })
}

#[cfg(all(test, feature = "sandbox"))]
mod tests;
