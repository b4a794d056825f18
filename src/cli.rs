//! The command line.

use crate::{
    clock::Clock,
    config::{ConfigFaults, Settings},
    gateway,
    tools::{
        cert::{self, CertArgs},
        explain::{self, ExplainArgs, ExplainFault},
        psu::{self, PsuCommand, PsuFault},
        register::{self, RegisterCommand},
        sca::{self, ScaCommand, ScaFault},
        state::{self, StateCommand, StateFault},
        tpp::{self, TppCommand},
    },
};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::LazyLock,
};
use tracing::Level;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

/// The exit status for an unusable configuration or input.
const UNUSABLE: u8 = 2;

/// The version, and the facts of this build. `.ci/dist.sh` sets PORTVAKT_COMMIT; other builds do not record their commit.
static BUILD: LazyLock<String> = LazyLock::new(|| {
    let profile = if cfg!(debug_assertions) {
        "development"
    } else {
        "release"
    };
    let features = [
        ("sandbox", cfg!(feature = "sandbox")),
        ("bench", cfg!(feature = "bench")),
    ];
    let features = features.iter().filter(|(_, is_on)| *is_on);
    let features: Vec<_> = features.map(|(name, _)| *name).collect();
    format!(
        "{}\ncommit: {}\nbuild: {profile}, {} {}\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        option_env!("PORTVAKT_COMMIT").unwrap_or("not recorded"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        if features.is_empty() {
            "none".to_owned()
        } else {
            features.join(", ")
        },
    )
});

/// A security gateway for PSD2 interfaces.
#[derive(Debug, Parser)]
#[command(name = "portvakt", version, long_version = BUILD.as_str(), about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway. SIGTERM lets pending requests finish and then stops it, at the latest after the time-outs of upstream and body
    /// plus 10 s; SIGINT or a second SIGTERM stops it at once.
    Serve {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Check a configuration and every file that it names. Exits with 0 if it is valid, or with 2 and a list of all faults.
    Check {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Print the interface of a configuration as an OpenAPI 3.1 description (JSON).
    Openapi {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Explain the gateway's decision on a saved request, or a reason. Exits with 0 if the request is admitted,
    /// with 1 if the request is refused, and with 2 if the input is unusable.
    Explain(ExplainArgs),
    /// Explain the gateway's decision on a certificate. Exits with 0, with 1 and all faults, or with 2 if the certificate is unreadable.
    Cert(CertArgs),
    /// Import the PSUs that the bank had before the gateway.
    #[command(subcommand)]
    Psu(PsuCommand),
    /// Manage the keys of SCA links.
    #[command(subcommand)]
    Sca(ScaCommand),
    /// Show the content of the EBA's register.
    #[command(subcommand)]
    Register(RegisterCommand),
    /// Act as a TPP: sign a request, send it, verify a saved message.
    #[command(subcommand)]
    Tpp(TppCommand),
    /// Maintain the state: show it, back it up, compact its file, accept the clock. Exits with 0, or with 2 after a failure.
    #[command(subcommand)]
    State(StateCommand),
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write a manual page for each command to a folder.
    Man {
        /// The folder; it is created if it is missing.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Runs the command. The process must have installed a rustls crypto provider before.
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
            let judged = cert::run(args, Clock::System.now(), &mut io::stdout().lock());
            judged.unwrap_or_else(|fault| unusable(&fault))
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
        Command::Register(command) => {
            let shown = register::run(command, Clock::System.now(), &mut io::stdout().lock());
            shown.unwrap_or_else(|fault| unusable(&fault))
        }
        Command::State(command) => {
            match state::run(command, Clock::System.now(), &mut io::stdout().lock()) {
                Ok(status) => status,
                Err(StateFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::Completions { shell } => written(io::stdout().write_all(&completions(*shell))),
        Command::Man { folder } => written(write_manual(folder)),
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

/// Writes events to standard error; standard output belongs to the access log.
///
/// The gateway's own events contain no personal data. Events of libraries show whole headers at debug level, so theirs end at info.
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

fn bad_configuration(faults: &ConfigFaults) -> ExitCode {
    let _ = writeln!(io::stderr(), "{faults}");
    ExitCode::from(UNUSABLE)
}

fn unusable(fault: &dyn std::error::Error) -> ExitCode {
    fail(fault);
    ExitCode::from(UNUSABLE)
}

/// The completions, in memory: `generate` would panic where a write fails.
fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "portvakt", &mut script);
    script
}

fn write_manual(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}

fn say(text: &str) -> ExitCode {
    written(writeln!(io::stdout(), "{text}"))
}

fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(fault: &dyn std::error::Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "portvakt: {fault}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn the_version_names_commit_build_and_features() {
        let version = Cli::command().render_long_version();
        for line in [
            env!("CARGO_PKG_VERSION"),
            "commit: ",
            "build: ",
            "features: ",
        ] {
            assert!(version.contains(line), "{version}");
        }
        assert_eq!(version.contains("sandbox"), cfg!(feature = "sandbox"));
    }

    #[test]
    fn every_command_has_a_manual_page_and_completions() {
        Cli::command().debug_assert();
        let folder = tempfile::tempdir().unwrap();
        write_manual(&folder.path().join("man")).unwrap();
        for page in [
            "portvakt.1",
            "portvakt-serve.1",
            "portvakt-register-check.1",
        ] {
            let page = fs::read_to_string(folder.path().join("man").join(page)).unwrap();
            assert!(page.contains(".SH SYNOPSIS"), "{page}");
        }
        for shell in Shell::value_variants() {
            let script = String::from_utf8(completions(*shell)).unwrap();
            assert!(script.contains("accept-clock"), "{shell}");
        }
    }
}
