//! `portvakt config show | schema`: the configuration in effect, and what a configuration may hold.

use crate::config::{ConfigFaults, schema, show};
use std::path::PathBuf;

/// The commands on configurations.
#[derive(Debug, clap::Subcommand)]
pub enum ConfigCommand {
    /// Print the configuration in effect as YAML: the file, with the defaults of all keys that it leaves out. Files are named, and
    /// their secrets are not shown.
    Show {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Print a JSON Schema of the configuration (draft 7), from which editors complete and check it.
    Schema,
}

/// Runs a command; returns the text to print.
///
/// # Errors
/// The faults of the configuration.
pub fn run(command: &ConfigCommand) -> Result<String, ConfigFaults> {
    match command {
        ConfigCommand::Show { config } => show(config),
        ConfigCommand::Schema => Ok(format!("{:#}", schema())),
    }
}
