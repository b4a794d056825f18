//! The command line.

use crate::{
    clock::Clock,
    config::{Faults, Settings},
    gateway,
    tools::{
        cert::{self, CertArgs},
        explain::{self, ExplainArgs, ExplainFault},
        psu::{self, PsuCommand, PsuFault},
        sca::{self, ScaCommand, ScaFault},
        state::{self, StateCommand, StateFault},
        tpp::{self, TppCommand},
    },
};
use clap::{Parser, Subcommand};
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};
use tracing::Level;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

/// The status for a configuration or an input that cannot be used.
const UNUSABLE: u8 = 2;

/// A security gateway for PSD2 interfaces.
#[derive(Debug, Parser)]
#[command(name = "portvakt", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway. SIGTERM stops it when the requests under way have finished, at most the upstream's and the body's time-outs
    /// and 10 s later; SIGINT, or a second SIGTERM, at once.
    Serve {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Check a configuration and every file that it names. Ends with 0, or with 2 and every fault.
    Check {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Write the interface that a configuration makes, as an OpenAPI 3.1 description (JSON).
    Openapi {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Say what the gateway thinks of a saved request, or what a reason means. Ends with 0 for a request that is admitted,
    /// with 1 for one that is refused, with 2 where there is nothing to judge.
    Explain(ExplainArgs),
    /// Say what the gateway thinks of a certificate. Ends with 0, with 1 and every fault, or with 2 where it cannot be read.
    Cert(CertArgs),
    /// The PSUs of the time before the gateway.
    #[command(subcommand)]
    Psu(PsuCommand),
    /// The keys of SCA links.
    #[command(subcommand)]
    Sca(ScaCommand),
    /// Be a TPP: sign a request as one does, send it, check what was saved.
    #[command(subcommand)]
    Tpp(TppCommand),
    /// Look after what is kept: show it, copy it, make its file smaller, accept the clock. Ends with 0, or with 2 where it
    /// cannot.
    #[command(subcommand)]
    State(StateCommand),
}

/// Runs what the command line asks for. The process's cryptography must have been chosen before.
pub fn run(cli: &Cli) -> ExitCode {
    match &cli.command {
        Command::Serve { config } => match Settings::load(config) {
            Ok(settings) => serve(settings),
            Err(faults) => bad_configuration(&faults),
        },
        Command::Check { config } => match Settings::load(config) {
            Ok(settings) => say(&format!(
                "{}: good ({} operations)",
                config.display(),
                settings.reloadable.snapshot.catalogue.operations().len()
            )),
            Err(faults) => bad_configuration(&faults),
        },
        Command::Openapi { config } => match Settings::load(config) {
            Ok(settings) => say(&format!("{:#}", settings.openapi())),
            Err(faults) => bad_configuration(&faults),
        },
        Command::Explain(args) => {
            match explain::run(args, Clock::System.now(), &mut io::stdout().lock()) {
                Ok(status) => status,
                Err(ExplainFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::Cert(args) => {
            match cert::run(args, Clock::System.now(), &mut io::stdout().lock()) {
                Ok(status) => status,
                Err(fault) => unusable(&fault),
            }
        }
        Command::Psu(command) => {
            match psu::run(command, &Clock::System, &mut io::stderr().lock()) {
                Ok(status) => status,
                Err(PsuFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::Sca(command) => {
            match sca::run(command, Clock::System.now(), &mut io::stdout().lock()) {
                Ok(status) => status,
                Err(ScaFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::State(command) => {
            match state::run(command, Clock::System.now(), &mut io::stdout().lock()) {
                Ok(status) => status,
                Err(StateFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::Tpp(command) => {
            let now = Clock::System.now().system_time();
            match tpp::run(command, now, &mut io::stdout()) {
                Ok(status) => status,
                Err(fault) => {
                    fail(&fault);
                    fault.exit_code()
                }
            }
        }
    }
}

fn serve(settings: Settings) -> ExitCode {
    log_to_standard_error(settings.fixed.log.level);
    tracing::info!(address = %settings.fixed.listener.address, control = %settings.fixed.control, "starting");
    match gateway::serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fail(&fault),
    }
}

/// Events go to standard error; standard output is the access log's.
///
/// No personal data stands in the gateway's own events. Those of libraries show whole headers from debug on, so they end at info.
fn log_to_standard_error(level: Level) {
    let shown = Targets::new()
        .with_default(level.min(Level::INFO))
        .with_target(env!("CARGO_PKG_NAME"), level);
    let events = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    tracing_subscriber::registry()
        .with(events)
        .with(shown)
        .init();
}

fn bad_configuration(faults: &Faults) -> ExitCode {
    let _ = writeln!(io::stderr(), "{faults}");
    ExitCode::from(UNUSABLE)
}

fn unusable(fault: &dyn std::error::Error) -> ExitCode {
    fail(fault);
    ExitCode::from(UNUSABLE)
}

fn say(text: &str) -> ExitCode {
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(fault: &dyn std::error::Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "portvakt: {fault}");
    ExitCode::FAILURE
}
