//! The program `portvakt-sandbox`; its crate does the work.

use std::process::ExitCode;

fn main() -> ExitCode {
    portvakt::hsm::leave(portvakt_sandbox::run())
}
