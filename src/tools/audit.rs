//! `portvakt audit verify | checkpoint | find`: proves and searches an audit.
//!
//! Invariant: nothing is changed. Deliberately not here: the erasure of a PSU ([`super::psu`]).

use super::input::{self, InputFault};
use crate::{
    audit::{self, AuditFault, Checkpoint, Found, Wanted},
    config::{ConfigFaults, Settings},
    interface::{Reason, headers::PsuId},
    state::{Known, OpenFault, StateStore},
    terminal::tame,
};
use clap::{Args, Subcommand};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// `portvakt audit …`
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Prove that no line was changed, removed, doubled or moved, and that no file is missing. Exits with 0 if the audit is whole, with 1
    /// and every fault, or with 2 if it cannot be read.
    Verify {
        /// The folder of the audit (`audit.folder`).
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// A file of checkpoints that was kept elsewhere: the output of `audit checkpoint`, or events of the gateway. It proves that no
        /// tail was cut off; lines after it are named.
        #[arg(long, value_name = "FILE")]
        checkpoints: Vec<PathBuf>,
    },
    /// Print the end of each chain, to be kept elsewhere.
    Checkpoint {
        /// The folder of the audit (`audit.folder`).
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Find records, such as why a TPP was refused: `audit find state/audit --tpp PSDNO-FSA-123456 --at 2026-01-31T14:03`. Exits with 1 if
    /// there is none.
    Find(FindArgs),
}

/// The arguments of `portvakt audit find`.
#[derive(Debug, Args)]
pub struct FindArgs {
    /// The folder of the audit (`audit.folder`).
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The TPP, as in PSDNO-FSA-123456.
    #[arg(long)]
    tpp: Option<String>,
    /// The beginning of the time in UTC, as in 2026-01-31T14:03 for one minute.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The kind of record (docs/audit.md).
    #[arg(long)]
    kind: Option<String>,
    /// X-Request-ID, the `id` of an error answer, or a trace.
    #[arg(long)]
    id: Option<String>,
    /// A file with a PSU-ID, or - for standard input; needs --config. A PSU-ID among the arguments would be seen by every user.
    #[arg(long, value_name = "FILE", requires = "config")]
    psu: Option<PathBuf>,
    /// The configuration, for the key of PSUs' hashes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the records as they are.
    #[arg(long)]
    json: bool,
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum AuditToolFault {
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// An input cannot be read.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// The audit cannot be read.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
    /// The salts cannot be read.
    #[error(transparent)]
    Salts(#[from] AuditFault),
    /// The state cannot be opened.
    #[error(transparent)]
    State(#[from] OpenFault),
    /// The file holds no PSU-ID.
    #[error("{0} holds no PSU-ID: a UUID with its hyphens is expected")]
    NoPsu(String),
    /// A file holds no checkpoint.
    #[error("{0} holds no checkpoint: the output of `portvakt audit checkpoint` is expected")]
    NoCheckpoint(PathBuf),
    /// The result cannot be written.
    #[error("the result cannot be written: {0}")]
    Output(io::Error),
}

/// Runs a command, and writes its result to `out`.
///
/// # Errors
/// The reason of the failure.
pub fn run(command: &AuditCommand, out: &mut impl Write) -> Result<ExitCode, AuditToolFault> {
    let (text, is_good) = match command {
        AuditCommand::Verify {
            folder,
            checkpoints,
        } => verify(folder, checkpoints)?,
        AuditCommand::Checkpoint { folder } => {
            let ends = audit::checkpoints(folder).map_err(unreadable(folder))?;
            (ends.iter().map(line).collect(), true)
        }
        AuditCommand::Find(args) => find(args)?,
    };
    out.write_all(text.as_bytes())
        .map_err(AuditToolFault::Output)?;
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn unreadable(folder: &Path) -> impl FnOnce(io::Error) -> AuditToolFault {
    |error| AuditToolFault::Folder(folder.to_owned(), error)
}

fn line(checkpoint: &Checkpoint) -> String {
    let Checkpoint { chain, seq, hash } = checkpoint;
    let line = serde_json::json!({ "chain": chain, "seq": seq, "hash": hash });
    format!("{line}\n")
}

fn verify(folder: &Path, files: &[PathBuf]) -> Result<(String, bool), AuditToolFault> {
    let mut checkpoints = Vec::new();
    for file in files {
        let text = input::read(file)?;
        let text = String::from_utf8_lossy(&text);
        let before = checkpoints.len();
        checkpoints.extend(text.lines().filter_map(Checkpoint::parse));
        if checkpoints.len() == before {
            return Err(AuditToolFault::NoCheckpoint(file.clone()));
        }
    }
    let verified = audit::verify(folder, &checkpoints).map_err(unreadable(folder))?;
    let mut text = String::new();
    for finding in &verified.findings {
        text += &format!("{}: {}\n", finding.path.display(), finding.text);
    }
    if !checkpoints.is_empty() {
        text.extend(
            verified
                .ends
                .iter()
                .filter_map(|end| unproved(end, &checkpoints)),
        );
    }
    text += &format!(
        "{}: {} lines in {} files, {} checkpoints, {} faults\n",
        folder.display(),
        verified.lines,
        verified.files,
        checkpoints.len(),
        verified.findings.len()
    );
    Ok((text, verified.findings.is_empty()))
}

/// Says which lines at the end of a chain no checkpoint proves: whoever can write the folder could have made them.
fn unproved(end: &Checkpoint, checkpoints: &[Checkpoint]) -> Option<String> {
    let own = checkpoints.iter().filter(|it| it.chain == end.chain);
    match own.map(|checkpoint| checkpoint.seq).max() {
        None => Some(format!("{}: no checkpoint proves any line\n", end.chain)),
        Some(last) => (last < end.seq).then(|| {
            let first = last.saturating_add(1);
            format!(
                "{}: no checkpoint proves lines {first} to {}\n",
                end.chain, end.seq
            )
        }),
    }
}

fn find(args: &FindArgs) -> Result<(String, bool), AuditToolFault> {
    let mut wanted = Wanted {
        tpp: args.tpp.clone(),
        at: args.at.clone(),
        kind: args.kind.clone(),
        id: args.id.clone(),
        psu: None,
    };
    if let (Some(file), Some(config)) = (&args.psu, &args.config) {
        let psu = psu_id(file)?;
        let settings = Settings::load(config).map_err(AuditToolFault::Config)?;
        let runtime = tokio::runtime::Runtime::new().map_err(unreadable(&args.folder))?;
        let store = runtime.block_on(async { StateStore::open(&settings.fixed.state) })?;
        let hashes = store.keys().psu_of_every_level(psu);
        let pseudonyms = audit::pseudonyms(&args.folder, &hashes)?;
        if pseudonyms.is_empty() {
            return Ok(("no records of this PSU\n".to_owned(), false));
        }
        wanted.psu = Some(pseudonyms);
    }
    let found = audit::search(&args.folder, &wanted).map_err(unreadable(&args.folder))?;
    let show = |record: &Found| {
        if args.json {
            format!("{}\n", serde_json::Value::Object(record.0.clone()))
        } else {
            describe(record)
        }
    };
    let text: String = found.iter().map(show).collect();
    let is_empty = found.is_empty();
    Ok((
        if is_empty {
            "no records\n".into()
        } else {
            text
        },
        !is_empty,
    ))
}

/// A PSU-ID in a file, or on standard input: the operator's word.
///
/// # Errors
/// The file cannot be read, or holds no PSU-ID.
pub(super) fn psu_id(file: &Path) -> Result<Known<PsuId>, AuditToolFault> {
    let bytes = input::read(file)?;
    let psu = PsuId::parse(bytes.trim_ascii()).map(Known::by_bank);
    psu.ok_or_else(|| AuditToolFault::NoPsu(input::name(file)))
}

/// The members that a record's first line shows, in this order.
const SHOWN: [&str; 5] = ["kind", "tpp", "shown_tpp", "operation", "reason"];

/// A record in words: its first line, its other members, and the title of its reason.
fn describe(record: &Found) -> String {
    let mut text = record.text("time").unwrap_or_default().to_owned();
    for name in SHOWN {
        if let Some(value) = record.text(name) {
            text += &format!(" {}", tame(value));
        }
    }
    text.push('\n');
    if let Some(reason) = record.text("reason").and_then(Reason::from_slug) {
        text += &format!(
            "  {} (portvakt explain {})\n",
            reason.title(),
            reason.slug()
        );
    }
    let hidden = ["seq", "prev", "time"];
    let others = record
        .0
        .iter()
        .filter(|(name, _)| !SHOWN.contains(&name.as_str()) && !hidden.contains(&name.as_str()));
    for (name, value) in others {
        text += &format!("  {}: {}\n", tame(name), tame(&value.to_string()));
    }
    text
}
