//! The program `portvakt`; the library does the work.

use clap::Parser;
use portvakt::{
    cli::{self, Cli},
    hsm,
};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    disable_huge_pages();
    // The first provider that is installed stays, so this comes before any TLS.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    hsm::leave(cli::run(&Cli::parse()))
}

/// mimalloc asks for huge pages. The first access to one blocks while the kernel zeroes 2 MiB, for milliseconds on some
/// machines, and the thread serves no request in that time (docs/performance.md). If the system refuses, nothing changes.
fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
