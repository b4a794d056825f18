//! The gateway's program: see the library.

use clap::Parser;
use portvakt::cli::{self, Cli};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else speaks TLS: the first provider that is installed stays.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli::run(&Cli::parse())
}
