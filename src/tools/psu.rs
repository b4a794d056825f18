//! `portvakt psu`: the PSUs of the time before the gateway.

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
    /// Bring in PSUs from a file: on each line one JSON object, like the body of /psu/bind (docs/sca.md). It may run beside
    /// the gateway. Ends with 0 where every line is kept, with 1 where one is not, with 2 where it could not go on.
    Import {
        /// The file, newline-delimited JSON.
        file: PathBuf,
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// Why an import did not reach the end of its file.
#[derive(Debug, thiserror::Error)]
pub enum PsuFault {
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(ConfigFaults),
    /// The file cannot be opened, or no thread started.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// State cannot be opened.
    #[error(transparent)]
    State(#[from] OpenFault),
    /// It ended early.
    #[error(transparent)]
    Import(#[from] ImportFault),
}

/// Imports a file; how far it is and what is wrong with it goes to `progress`.
///
/// # Errors
/// Why it did not reach the file's end; what was kept until then stays kept.
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
        let kept = Arc::new(StateStore::open(&settings.fixed.state)?);
        let account_ids = &settings.reloadable.snapshot.policy.account_ids;
        Ok::<_, PsuFault>(import(input, &kept, clock, account_ids, progress).await?)
    })?;
    Ok(match imported.bad {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
