//! `portvakt psu`: imports the PSUs that the bank had before the gateway.

use crate::{
    clock::Clock,
    config::{ConfigFaults, Settings},
    control::import::{ImportFault, import},
    state::{OpenFault, StateStore},
};
use clap::Subcommand;
use std::{
    fs::File,
    io::{self, BufReader, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

/// `portvakt psu …`
#[derive(Debug, Subcommand)]
pub enum PsuCommand {
    /// Import PSUs from a file: one JSON object per line, like the body of /psu/bind (docs/sca.md). The gateway may run
    /// meanwhile. Exits with 0 if every line is stored, with 1 if a line is refused, with 2 if the import was interrupted.
    Import {
        /// The file, newline-delimited JSON.
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
    let PsuCommand::Import { file, config } = command;
    let unusable = |error| PsuFault::File(file.clone(), error);
    let settings = Settings::load(config).map_err(PsuFault::Config)?;
    let input = BufReader::with_capacity(1 << 20, File::open(file).map_err(unusable)?);
    let runtime = tokio::runtime::Runtime::new().map_err(unusable)?;
    let imported = runtime.block_on(async {
        let store = Arc::new(StateStore::open(&settings.fixed.state)?);
        let account_ids = &settings.reloadable.snapshot.policy.account_ids;
        Ok::<_, PsuFault>(import(input, &store, clock, account_ids, progress).await?)
    })?;
    Ok(match imported.bad {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
