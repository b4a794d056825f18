//! `portvakt psu`: imports the PSUs that the bank had before the gateway, and erases a PSU.

use super::audit::{AuditToolFault, psu_id};
use crate::{
    audit::{self, Audit, AuditFault, AuditKind, AuditUnavailable},
    clock::Clock,
    config::{ConfigFaults, Settings},
    control::import::{ImportFault, ImportJob, Imported, ImportedOfTpp, Mapping, import},
    hex,
    interface::TppId,
    state::{Erased, OpenFault, StateStore, Unavailable},
};
use clap::Subcommand;
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

/// `portvakt psu …`
#[derive(Debug, Subcommand)]
pub enum PsuCommand {
    /// Import PSUs from a file: one JSON object per line, like the body of /psu/bind, or CSV with --mapping (docs/sca.md). The gateway may
    /// run meanwhile. Exits with 0 if every line is stored, with 1 if a line is refused, with 2 if the import was interrupted or the
    /// file has no record.
    Import {
        /// The file: newline-delimited JSON, or CSV whose first line names the columns.
        file: PathBuf,
        /// The file is CSV, and this YAML file says which column is which member.
        #[arg(long, value_name = "FILE")]
        mapping: Option<PathBuf>,
        /// Change nothing: report what the import would do, for each TPP, and every line that it would refuse.
        #[arg(long)]
        dry_run: bool,
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Erase a PSU from the state and from the audit: binding, session and consents, and the way from the PSU-ID to records. The gateway
    /// may run meanwhile. Exits with 0, or with 1 if nothing of this PSU was there.
    Erase {
        /// A file with the PSU-ID, or - for standard input. A PSU-ID among the arguments would be seen by every user.
        file: PathBuf,
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// The reason why an import did not reach the end of its file.
#[derive(Debug, thiserror::Error)]
pub enum PsuFault {
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// The file cannot be opened, or the runtime cannot start.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// The state cannot be opened.
    #[error(transparent)]
    State(#[from] OpenFault),
    /// The file to import has no record.
    #[error("{}: it has no record: nothing was imported", .0.display())]
    NoRecord(PathBuf),
    /// The file holds no PSU-ID.
    #[error(transparent)]
    NoPsu(#[from] AuditToolFault),
    /// The audit cannot be opened, or its salts cannot be changed.
    #[error(transparent)]
    Audit(#[from] AuditFault),
    /// The import has no record. Without the first one nothing was imported.
    #[error("{0}; import the file again, which leaves stored lines intact")]
    NotAudited(#[from] AuditUnavailable),
    /// The state cannot be changed.
    #[error("the state: {0}")]
    Unavailable(#[from] Unavailable),
    /// The import ended early.
    #[error(transparent)]
    Import(#[from] ImportFault),
}

/// Imports a file; writes progress and faulty lines to `progress`.
///
/// # Errors
/// The reason for ending early; lines stored until then stay stored.
pub fn run(
    command: &PsuCommand,
    clock: &Clock,
    progress: &mut impl Write,
) -> Result<ExitCode, PsuFault> {
    let (file, mapping, dry_run, config) = match command {
        PsuCommand::Import {
            file,
            mapping,
            dry_run,
            config,
        } => (file, mapping, dry_run, config),
        PsuCommand::Erase { file, config } => return erase(file, config, clock, progress),
    };
    let unusable = |error| PsuFault::File(file.clone(), error);
    let settings = Settings::load(config).map_err(PsuFault::Config)?;
    let policy = &settings.reloadable.snapshot.policy;
    let mapping = match mapping {
        Some(path) => {
            let text = fs::read_to_string(path);
            let text = text.map_err(|error| PsuFault::File(path.clone(), error))?;
            let read = Mapping::read(path, &text, &policy.time_zone);
            Some(read.map_err(PsuFault::Config)?)
        }
        None => None,
    };
    let input = HashedFile::open(file).map_err(unusable)?;
    let mut input = BufReader::with_capacity(1 << 20, input);
    let audit = match &settings.fixed.audit {
        Some(settings) if !dry_run => Audit::open(settings, clock)?,
        _ => Audit::default(),
    };
    let runtime = tokio::runtime::Runtime::new().map_err(unusable)?;
    let imported = runtime.block_on(async {
        let store = Arc::new(StateStore::open(&settings.fixed.state)?);
        let job = ImportJob {
            store: &store,
            clock,
            account_ids: &policy.account_ids,
            mapping: mapping.as_ref(),
            dry_run: *dry_run,
        };
        audit
            .record_durably(audit.event(AuditKind::ImportBegun))
            .await?;
        let imported = import(&mut input, job, progress).await?;
        record_import(&audit, &imported, input.get_ref().hash()).await?;
        Ok::<_, PsuFault>(imported)
    })?;
    match (imported.kept, imported.bad) {
        (0, 0) => Err(PsuFault::NoRecord(file.clone())),
        (_, 0) => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::FAILURE),
    }
}

/// Records what an import has stored, for each TPP. The records name no PSU: the file does, whose hash they have.
async fn record_import(
    audit: &Audit,
    imported: &Imported,
    hash: String,
) -> Result<(), AuditUnavailable> {
    let tpps = imported.by_tpp.iter();
    let mut tpps: Vec<_> = tpps.map(|(tpp, counts)| (Some(tpp), *counts)).collect();
    if tpps.is_empty() {
        let none = ImportedOfTpp {
            refused: imported.bad,
            ..ImportedOfTpp::default()
        };
        tpps.push((None, none));
    }
    for (tpp, of) in tpps {
        let event = audit
            .event(AuditKind::Imported)
            .with_some("tpp", tpp.map(TppId::as_str))
            .with("stored", of.stored)
            .with("changed", of.changed)
            .with("refused", of.refused)
            .with("file", hash.as_str());
        audit.record_durably(event).await?;
    }
    Ok(())
}

/// A file whose bytes are hashed while they are read.
struct HashedFile {
    file: File,
    digest: Sha256,
}

impl HashedFile {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            digest: Sha256::new(),
        })
    }

    /// The SHA-256 of the bytes so far, in hexadecimal digits.
    fn hash(&self) -> String {
        hex::encode(&self.digest.clone().finalize())
    }
}

impl Read for HashedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.digest.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Erases a PSU, first from the state: a PSU that is bound could get new records.
fn erase(
    file: &Path,
    config: &Path,
    clock: &Clock,
    progress: &mut impl Write,
) -> Result<ExitCode, PsuFault> {
    let unusable = |error| PsuFault::File(file.to_owned(), error);
    let psu = psu_id(file)?;
    let settings = Settings::load(config).map_err(PsuFault::Config)?;
    let runtime = tokio::runtime::Runtime::new().map_err(unusable)?;
    let store = runtime.block_on(async { StateStore::open(&settings.fixed.state) })?;
    let bound = runtime.block_on(store.erase(psu))?;
    let mut said = match &bound {
        Some(Erased { tpp, ended }) => format!(
            "state: erased, it was bound to {}, with {} session and {} consents\n",
            tpp.as_str(),
            ended.sessions,
            ended.consents
        ),
        None => "state: not there\n".to_owned(),
    };
    let erased = match &settings.fixed.audit {
        Some(settings) => {
            let hashes = store.keys().psu_of_every_level(psu);
            audit::erase(&settings.folder, &hashes, bound.is_some(), clock.log_time())?
        }
        None => Vec::new(),
    };
    for pseudonym in &erased {
        said += &format!("audit: erased, the pseudonym was {pseudonym}\n");
    }
    if erased.is_empty() {
        said += "audit: not there\n";
    }
    progress.write_all(said.as_bytes()).map_err(unusable)?;
    Ok(if bound.is_some() || !erased.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
