//! `portvakt sca`: the keys of SCA links.
//!
//! Deliberately not here: copying the file to other replicas and restarting them; the command prints these steps for the
//! operator.

use crate::{
    clock::Timestamp,
    config::{ConfigFaults, Settings},
    sca::{KeyFault, Rotated, rotate},
};
use clap::Subcommand;
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// `portvakt sca …`
#[derive(Debug, Subcommand)]
pub enum ScaCommand {
    /// Take the next of the two steps of a rotation of the token keys, and print the operator's next action.
    RotateKey {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// The reason why no step was taken.
#[derive(Debug, thiserror::Error)]
pub enum ScaFault {
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// The file of keys does not exist.
    #[error("{0} does not exist yet: the first start creates it")]
    NoKeys(PathBuf),
    /// The file of keys cannot be used.
    #[error("{0}: {1}")]
    Keys(PathBuf, KeyFault),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Takes one step of a rotation (SCA-12).
///
/// # Errors
/// The reason why no step was taken.
pub fn run(
    command: &ScaCommand,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<ExitCode, ScaFault> {
    let ScaCommand::RotateKey { config } = command;
    let settings = Settings::load(config).map_err(ScaFault::Config)?;
    let path = &settings.reloadable.sca.token_keys;
    let shown = path.display();
    let rotated = rotate(path, now).map_err(|fault| match fault {
        KeyFault::File(fault) if fault.is_missing() => ScaFault::NoKeys(path.clone()),
        fault => ScaFault::Keys(path.clone(), fault),
    })?;
    match rotated {
        Rotated::Prepared => writeln!(
            out,
            "{shown}: step 1 of 2: a new key stands second; it opens tokens and seals none yet.\n\
             Copy the file to every replica, which a reload takes into use. When all of them have it, run this again, once."
        )?,
        Rotated::Switched => writeln!(
            out,
            "{shown}: step 2 of 2: the new key seals tokens, the old one still opens those that are under way.\n\
             Copy the file to every replica and reload each. The next rotation drops the old key: begin it when all\n\
             of them have had this file for {} minutes, or later.",
            settings
                .reloadable
                .sca
                .token_lifetime
                .as_secs()
                .div_ceil(60)
        )?,
    }
    Ok(ExitCode::SUCCESS)
}
