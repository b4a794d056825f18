//! `portvakt cert`: the gateway's decision on a certificate.
//!
//! Invariant: each check is the request path's own function (`trust::judgement`, `trust::chain`); the request path stops at the
//! first fault, this command reports all. A fault names the violated clause of a standard if the clause is certain, and otherwise
//! only the document. Deliberately not here: revocation and registers, which are not part of a certificate and only have a
//! current status, and private keys: a key in the same file is never read.

// All faults, with the violated clauses.
mod faults;
// The content of the certificate.
mod report;

use super::{
    input::{self, InputFault},
    moment, presented,
};
use crate::{
    clock::Timestamp,
    config::{self, ConfigFaults, Settings},
    trust::{Anchors, CertificateFault, CertificateTypes, judgement},
};
use openssl::error::ErrorStack;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The certificate to judge, and the anchors.
#[derive(Debug, clap::Args)]
pub struct CertArgs {
    /// The certificate: a value of TPP-Signature-Certificate in any of its spellings, PEM, or DER; - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Judge it by the anchors of this configuration.
    #[arg(long, value_name = "FILE", conflicts_with = "anchors")]
    config: Option<PathBuf>,
    /// Judge it by the anchors in this folder, PEM.
    #[arg(long, value_name = "DIR")]
    anchors: Option<PathBuf>,
    /// With the help of the certificates in this folder, PEM.
    #[arg(long, value_name = "DIR", requires = "anchors")]
    intermediates: Option<PathBuf>,
    /// Judge it as of this moment: '…, 06 Nov 1994 08:49:37 GMT', seconds since 1970, or RFC 3339. Default: now.
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    at: Option<Timestamp>,
}

/// The reason why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum CertFault {
    /// The file cannot be read.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// The file contains no certificate.
    #[error(
        "{} holds no certificate: {fault} (CRT-1, certificate-malformed)",
        input::name(path)
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The parser's fault.
        fault: CertificateFault,
    },
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// A folder of anchors or intermediates cannot be used.
    #[error("{}", .0.join("\n"))]
    Folder(Vec<String>),
    /// OpenSSL rejects the anchors.
    #[error("OpenSSL does not take the anchors: {0}")]
    Anchors(#[from] ErrorStack),
    /// The output cannot be written.
    #[error(transparent)]
    Terminal(#[from] io::Error),
}

/// The anchors of a decision.
pub(super) enum Judges {
    /// Anchors, the types of certificate that may sign, and their origin.
    By(Box<Anchors>, CertificateTypes, String),
    /// No anchors: only the path is shown.
    Nobody(Box<Anchors>),
}

/// Judges a certificate as of `--at`, or `now`, and writes the result to `out`.
///
/// The exit code is success for a certificate without faults, 1 otherwise.
///
/// # Errors
/// [`CertFault`], for which 2 is the exit code.
pub fn run(args: &CertArgs, now: Timestamp, out: &mut dyn Write) -> Result<ExitCode, CertFault> {
    let at = args.at.unwrap_or(now);
    let unreadable = |fault| CertFault::Unreadable {
        path: args.file.clone(),
        fault,
    };
    let (presented, notes) = presented::read(&input::read(&args.file)?).map_err(unreadable)?;
    let (certificate, rest) = judgement::read(&presented.leaf).map_err(unreadable)?;
    let judges = judges(args)?;
    let (anchors, types, whose) = match &judges {
        Judges::By(anchors, types, whose) => (anchors, Some(*types), Some(whose.as_str())),
        Judges::Nobody(anchors) => (anchors, None, None),
    };
    let path = anchors
        .path(&presented.leaf, &presented.pool, at)
        .map_err(unreadable)?;
    let mut faults = faults::all(&certificate, rest, &path, types, at);
    faults.extend(faults::too_long(&presented.leaf));
    for note in notes {
        writeln!(out, "note: {note}")?;
    }
    report::write(&certificate, &path, whose, at, out)?;
    report::write_faults(&faults, whose.is_some(), out)?;
    Ok(if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn judges(args: &CertArgs) -> Result<Judges, CertFault> {
    if let Some(path) = &args.config {
        let settings = Settings::load(path).map_err(CertFault::Config)?;
        let whose = settings.reloadable.trust.shown_anchors();
        let trust = settings.reloadable.snapshot.trust;
        let types = trust.types();
        return Ok(Judges::By(Box::new(trust.into_anchors()), types, whose));
    }
    let Some(folder) = &args.anchors else {
        let anchors = Anchors::new(Vec::new(), Vec::new())?;
        return Ok(Judges::Nobody(Box::new(anchors)));
    };
    let read = |path: &Path| match config::certificates_in(path) {
        (found, faults) if faults.is_empty() => Ok(found),
        (_, faults) => Err(CertFault::Folder(faults)),
    };
    let intermediates = args.intermediates.as_deref().map(read).transpose()?;
    let anchors = Anchors::new(read(folder)?, intermediates.unwrap_or_default())?;
    let types = CertificateTypes::default();
    let whose = folder.display().to_string();
    Ok(Judges::By(Box::new(anchors), types, whose))
}

#[cfg(all(test, feature = "sandbox"))]
mod tests;
