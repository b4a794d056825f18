//! `portvakt cert`: the gateway's decision on a certificate.
//!
//! Invariant: each check is the request path's own function (`trust::judgement`, `trust::chain`); the request path stops at the
//! first fault, this command reports all. A fault names the violated clause of a standard if the clause is certain, and otherwise
//! only the document. Whether the certificate passes is the request path's own decision, of which revocation is left out. Deliberately not
//! here: revocation and registers, which are not part of a certificate and only have a current status, and private keys: a key in the same
//! file is never read, and a warning says that it is there.

// All faults, with the violated clauses.
mod faults;
// The content of the certificate.
mod report;

// The gateway that judges.
mod judges;
// Its decisions on both uses.
mod passing;
// Which service of a trusted list vouches for the issuer.
mod vouched;
// Key usages, and a QWAC without clientAuth.
mod usage;

use super::{
    input::{self, InputFault},
    moment, presented,
};
use crate::{
    clock::Timestamp,
    config::{self, ConfigFaults, Settings},
    trust::{Anchors, CertificateFault, CertificateTypes, Trust, judgement},
};
use judges::{Configured, Judges, Lists};
use openssl::error::ErrorStack;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The warning of a file that may not be passed on with the certificate in it.
const WARNING_OF_KEY: &str = "warning: the file also has a private key, which is not read: keep it in a file of its own, apart from the certificate";

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

/// Judges a certificate as of `--at`, or `now`, and writes the result to `out`.
///
/// The exit code is success for a certificate without faults as that of a signature, 1 otherwise.
///
/// # Errors
/// [`CertFault`], for which 2 is the exit code.
pub fn run(args: &CertArgs, now: Timestamp, out: &mut dyn Write) -> Result<ExitCode, CertFault> {
    let at = args.at.unwrap_or(now);
    let unreadable = |fault| CertFault::Unreadable {
        path: args.file.clone(),
        fault,
    };
    let file = input::read(&args.file)?;
    let (presented, notes) = presented::read(&file).map_err(unreadable)?;
    let (certificate, rest) = judgement::read(&presented.leaf).map_err(unreadable)?;
    let judges = judges(args)?;
    let path = |anchors: &Anchors, types| anchors.path(&presented.leaf, &presented.pool, types, at);
    let signing = path(judges.trust.anchors(), judges.trust.types()).map_err(unreadable)?;
    let client = path(judges.trust.client_anchors(), CertificateTypes::WEB).map_err(unreadable)?;
    let listed = judges.listed_paths(&presented, at).map_err(unreadable)?;
    let has_anchors = judges.anchors.is_some();
    let types = has_anchors.then(|| judges.trust.types());
    let mut faults = faults::of_signing(&certificate, rest, &signing, types, at);
    let too_long = faults::too_long(&presented.leaf);
    let refusal = |fault: CertificateFault| (fault.reason(), faults::text(&fault));
    let signs = match &too_long {
        Some(finding) => passing::refused(finding),
        None => judges.signing(&presented, at).map_err(refusal),
    };
    let connects = judges.client(&presented, at).map_err(refusal);
    let connects = connects.map(|()| Vec::new());
    faults.extend(too_long);
    for note in notes {
        writeln!(out, "note: {note}")?;
    }
    if presented::has_private_key(&file) {
        writeln!(out, "{WARNING_OF_KEY}")?;
    }
    let subject = report::Subject {
        certificate: &certificate,
        judges: &judges,
        signing: &signing,
        listed: listed.as_ref(),
        verdicts: has_anchors.then_some((&signs, &connects)),
    };
    report::write(&subject, at, out)?;
    // A certificate for seals is none for TLS, which the decision says in one line.
    let is_web = judgement::statements(&certificate).is_ok_and(|statements| statements.web);
    let of_client =
        (has_anchors && is_web).then(|| faults::of_client(&certificate, rest, &client, at));
    report::write_faults(&faults, of_client.as_deref(), has_anchors, out)?;
    Ok(if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn judges(args: &CertArgs) -> Result<Judges, CertFault> {
    if let Some(path) = &args.config {
        let settings = Settings::load(path).map_err(CertFault::Config)?;
        let snapshot = settings.reloadable.snapshot;
        let (trust, files) = (snapshot.trust, settings.reloadable.trust);
        let anchors = files.shown_anchors();
        let lists = files.bundle.map(|bundle| Lists::new(bundle, &trust));
        return Ok(Judges {
            configured: Some(Configured {
                lists: lists.transpose()?,
                client_auth: settings.fixed.listener.client_auth,
                catalogue: snapshot.catalogue,
            }),
            trust: trust.with_revocation(None),
            anchors: Some(anchors),
        });
    }
    let Some(folder) = &args.anchors else {
        return Ok(Judges {
            trust: Trust::new(Anchors::of_operator(Vec::new(), Vec::new())?),
            anchors: None,
            configured: None,
        });
    };
    let read = |path: &Path| match config::certificates_in(path) {
        (found, faults) if faults.is_empty() => Ok(found),
        (_, faults) => Err(CertFault::Folder(faults)),
    };
    let intermediates = args.intermediates.as_deref().map(read).transpose()?;
    let anchors = Anchors::of_operator(read(folder)?, intermediates.unwrap_or_default())?;
    Ok(Judges {
        trust: Trust::new(anchors),
        anchors: Some(folder.display().to_string()),
        configured: None,
    })
}

#[cfg(all(test, feature = "sandbox"))]
mod tests;
