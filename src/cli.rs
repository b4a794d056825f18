//! The command line.

use crate::{
    clock::Clock,
    config::{ConfigFaults, Settings},
    gateway::{self, Checked, Inherited, Ports, StartFault, StartFaults, Startup},
    telemetry,
    terminal::{self, Terminal},
    tools::{
        audit::{self, AuditCommand, AuditToolFault},
        cert::{self, CertArgs},
        config::{self, ConfigCommand},
        explain::{self, ExplainArgs, ExplainFault},
        health::{self, HealthArgs, HealthFault},
        observe::{self, ObserveCommand},
        psu::{self, PsuCommand, PsuFault},
        register::{self, RegisterCommand, RegisterFault},
        report::{self, ReportArgs, ReportFault},
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
    /// Run the gateway. SIGTERM and SIGQUIT stop it: /readyz answers 503 while requests are still accepted (shutdown.lame_duck), then
    /// pending requests finish (shutdown.finish). SIGINT does the same without the first step, and each further signal ends the current
    /// step. SIGHUP reloads the configuration.
    Serve {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Check a configuration, every file that it names, and that the gateway can start with it on this machine, by this user. Creates
    /// and changes no file. Exits with 0 and all warnings if it can, with 1 and all faults if the machine prevents it, or with 2 and all
    /// faults if the configuration is wrong.
    Check {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Do not try the listeners' addresses, because a gateway or a socket unit of systemd holds them.
        #[arg(long)]
        no_bind: bool,
        /// Exit with 1 if there is a warning.
        #[arg(long)]
        strict: bool,
    },
    /// Show the configuration in effect, or the schema of configurations.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Ask the control listener whether the gateway can serve (/readyz), as a health check of a container. Exits with 0 if it can, with 1
    /// if it cannot or does not answer, and with 2 if the configuration or an argument is unusable.
    Health(HealthArgs),
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
    /// Show the requests that checks in observe mode would refuse.
    #[command(subcommand)]
    Observe(ObserveCommand),
    /// Import the PSUs that the bank had before the gateway.
    #[command(subcommand)]
    Psu(PsuCommand),
    /// Manage the keys of SCA links.
    #[command(subcommand)]
    Sca(ScaCommand),
    /// Show the content of the EBA's register, and what all registers say of a TPP.
    #[command(subcommand)]
    Register(RegisterCommand),
    /// Act as a TPP: sign a request, send it, verify a saved message.
    #[command(subcommand)]
    Tpp(TppCommand),
    /// Maintain the state: show it, back it up, compact its file, accept the clock. Exits with 0, or with 2 after a failure.
    #[command(subcommand)]
    State(StateCommand),
    /// Prove and search the audit.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Print the quarterly figures of the interface, by day, from access logs: availability, mean response times of AIS and PIS, error
    /// rate.
    Report(ReportArgs),
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
        Command::Serve { config } => serve(config),
        Command::Check {
            config,
            no_bind,
            strict,
        } => check(config, *no_bind, *strict),
        Command::Config(command) => match config::run(command) {
            Ok(text) => say(text.trim_end()),
            Err(faults) => bad_configuration(&faults),
        },
        Command::Openapi { config } => {
            with_settings(config, |settings| say(&format!("{:#}", settings.openapi())))
        }
        Command::Health(args) => ask_health(args),
        Command::Explain(args) => {
            match explain::run(args, Clock::System.now(), &mut Terminal::output()) {
                Ok(status) => status,
                Err(ExplainFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::Cert(args) => {
            let judged = cert::run(args, Clock::System.now(), &mut Terminal::output());
            judged.unwrap_or_else(|fault| unusable(&fault))
        }
        Command::Observe(command) => {
            let reported = observe::run(command, &mut Terminal::output());
            reported.unwrap_or_else(|fault| unusable(&fault))
        }
        Command::Psu(command) => match psu::run(command, &Clock::System, &mut Terminal::errors()) {
            Ok(status) => status,
            Err(PsuFault::Config(faults)) => bad_configuration(&faults),
            Err(fault) => unusable(&fault),
        },
        Command::Sca(command) => {
            match sca::run(command, Clock::System.now(), &mut Terminal::output()) {
                Ok(status) => status,
                Err(ScaFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::Register(command) => {
            match register::run(command, Clock::System.now(), &mut Terminal::output()) {
                Ok(status) => status,
                Err(RegisterFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::State(command) => {
            match state::run(command, Clock::System.now(), &mut Terminal::output()) {
                Ok(status) => status,
                Err(StateFault::Config(faults)) => bad_configuration(&faults),
                Err(fault) => unusable(&fault),
            }
        }
        Command::Audit(command) => audited(command),
        Command::Report(args) => report(args),
        Command::Completions { shell } => written(Terminal::data().write_all(&completions(*shell))),
        Command::Man { folder } => written(write_manual(folder)),
        Command::Tpp(command) => act_as_tpp(command),
    }
}

fn act_as_tpp(command: &TppCommand) -> ExitCode {
    let now = Clock::System.now().system_time();
    match tpp::run(command, now, &mut Terminal::data()) {
        Ok(status) => status,
        Err(fault) => {
            fail(&fault);
            fault.exit_code()
        }
    }
}

fn ask_health(args: &HealthArgs) -> ExitCode {
    match health::run(args, &mut Terminal::output()) {
        Ok(status) => status,
        Err(HealthFault::Config(faults)) => bad_configuration(&faults),
        Err(fault @ HealthFault::NoAnswer(_)) => fail(&fault),
        Err(fault) => unusable(&fault),
    }
}

fn with_settings(config: &Path, run: impl FnOnce(Settings) -> ExitCode) -> ExitCode {
    match Settings::load(config) {
        Ok(settings) => run(settings),
        Err(faults) => bad_configuration(&faults),
    }
}

fn audited(command: &AuditCommand) -> ExitCode {
    match audit::run(command, &mut Terminal::output()) {
        Ok(status) => status,
        Err(AuditToolFault::Config(faults)) => bad_configuration(&faults),
        Err(fault) => unusable(&fault),
    }
}

fn report(args: &ReportArgs) -> ExitCode {
    let now = Clock::System.now();
    match report::run(args, now, &mut Terminal::output(), &mut Terminal::errors()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ReportFault::Config(faults)) => bad_configuration(&faults),
        Err(fault) => unusable(&fault),
    }
}

fn serve(config: &Path) -> ExitCode {
    // Before anything else: no signal that is sent during the start may end the process.
    let startup = match Startup::take() {
        Ok(startup) => startup,
        Err(error) => return fail(&error),
    };
    let settings = match Settings::load(config) {
        Ok(settings) => settings,
        Err(faults) => return bad_configuration(&faults),
    };
    let log = &settings.fixed.log;
    if let Err(error) = telemetry::write_events(log.level, log.events_output.clone()) {
        return cannot_start(&StartFault::EventLog(error).into());
    }
    tracing::info!(address = %settings.fixed.listener.address, control = %settings.fixed.control, "starting");
    let ports = startup.ports(&settings.fixed);
    let checked = match Checked::new(settings, ports, Clock::System.now()) {
        Ok(checked) => checked,
        Err(faults) => return cannot_start(&faults),
    };
    let served = gateway::serve(checked, startup);
    telemetry::flush_events(telemetry::LAST_WITHIN);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fail(&fault),
    }
}

fn check(config: &Path, no_bind: bool, strict: bool) -> ExitCode {
    // Before anything that starts a thread.
    let inherited = Inherited::take();
    with_settings(config, |settings| {
        let ports = if no_bind {
            Ports::SKIP
        } else {
            inherited.ports(&settings.fixed)
        };
        check_start(config, settings, ports, strict)
    })
}

fn check_start(config: &Path, settings: Settings, ports: Ports, strict: bool) -> ExitCode {
    let checked = match Checked::new(settings, ports, Clock::System.now()) {
        Ok(checked) => checked,
        Err(faults) => return cannot_start(&faults),
    };
    for warning in checked.warnings() {
        terminal::complain("warning", warning);
    }
    let snapshot = &checked.settings().reloadable.snapshot;
    let said = say(&format!(
        "{}: good ({} operations)\n{}",
        config.display(),
        snapshot.catalogue.operations().len(),
        checked.needs()
    ));
    if strict && !checked.warnings().is_empty() {
        return ExitCode::FAILURE;
    }
    said
}

fn cannot_start(faults: &StartFaults) -> ExitCode {
    for fault in faults.iter() {
        fail(fault);
    }
    ExitCode::FAILURE
}

fn bad_configuration(faults: &ConfigFaults) -> ExitCode {
    let mut errors = Terminal::errors();
    for fault in faults {
        let _ = errors.line(fault);
    }
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
    written(writeln!(Terminal::output(), "{text}"))
}

fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(fault: &dyn std::error::Error) -> ExitCode {
    terminal::complain("portvakt", fault);
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
