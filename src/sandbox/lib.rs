//! `portvakt-sandbox`: what a developer needs beside the gateway, a PKI and a core to stand behind it.
//!
//! Invariant: the program uses the gateway's library only as an outsider could, and no deployed gateway contains it. Deliberately
//! not here: any decision on a request.
//!
//! A request reaches the gateway by the network alone; the proxy is unknown here:
//!
//! ```compile_fail,E0432
//! use pingora::Error;
//! ```

use clap::{Parser, Subcommand};
use portvakt_base::terminal::complain;
use std::path::PathBuf;
use std::process::ExitCode;
use time::OffsetDateTime;

pub mod http1;

mod core;
mod demo;
mod mint;
#[cfg(test)]
mod pki_tests;
mod probe;
mod tail;

/// Tools for developing against the gateway.
#[derive(Debug, Parser)]
#[command(name = "portvakt-sandbox", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a development PKI: trust anchors, a TLS server certificate, TPP certificates, right and broken ones.
    Pki {
        /// The folder to fill. A complete PKI that is there already is kept.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Make it anew even so.
        #[arg(long)]
        force: bool,
    },
    /// Run a small core that answers every operation of the interface with a plausible example.
    Core(core::CoreArgs),
    /// Be the PSU: open an scaRedirect link of the simulated bank, authenticate and approve; print where the bank redirects to.
    Approve(demo::browser::ApproveArgs),
    /// Test a core of your own: does it believe the gateway alone, answer as docs/upstream-contract.md says, and survive what may come?
    /// Prints what to mend. Ends with 0 where that is nothing, with 1 where it is something, with 2 where the core cannot be tested.
    Probe(probe::ProbeArgs),
    /// Print the token by which a TPP sees its own latest requests at a simulated bank with --tail.
    Token(tail::TokenArgs),
    /// Print a TPP's latest requests, with the reason of each refusal and its correction, and each new one until interrupted.
    Tail(tail::TailArgs),
    /// Start the gateway before that core, and send it requests as a TPP would, right and broken ones.
    Demo(demo::DemoArgs),
}

/// Runs the program.
pub fn run() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Pki { out, force } => mint::run(&out, force, OffsetDateTime::now_utc()),
        Command::Core(args) => core::run(&args),
        Command::Approve(args) => demo::browser::run(&args),
        Command::Probe(args) => return probe::run(&args),
        Command::Token(args) => tail::print_token(&args),
        Command::Tail(args) => tail::print(&args),
        Command::Demo(args) => demo::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            complain("portvakt-sandbox", fault);
            ExitCode::FAILURE
        }
    }
}
