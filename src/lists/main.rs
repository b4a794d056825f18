//! `portvakt-lists`: imports the EU's trusted lists into a bundle of anchors (CRT-13).

use std::process::ExitCode;

fn main() -> ExitCode {
    portvakt_lists::cli::run()
}
