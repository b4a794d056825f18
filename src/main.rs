//! The gateway's program: see the library.

use clap::Parser;
use portvakt::cli::{self, Cli};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    keep_to_small_pages();
    // Before anything else speaks TLS: the first provider that is installed stays.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli::run(&Cli::parse())
}

/// The allocator asks for huge pages, and a request that is the first to touch one waits while the kernel writes zeros to 2 MiB:
/// for milliseconds on some machines, in which its thread serves nobody (docs/performance.md). Where the system refuses, nothing changes.
fn keep_to_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
