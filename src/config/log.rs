//! The section `log`: the access log and the log of events.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use tracing::Level;

use super::section::Section;

/// The largest `log.sample`: one line for a million accepted requests.
const MOST: u32 = 1_000_000;

/// Where the lines of a log go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogOutput {
    /// Standard output.
    StandardOutput,
    /// Standard error.
    StandardError,
    /// This file; lines are appended.
    File(PathBuf),
}

impl fmt::Display for LogOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardOutput => formatter.write_str("standard output"),
            Self::StandardError => formatter.write_str("standard error"),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// The section `log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Whether the access log is on. Default true.
    pub access: bool,
    /// Where its lines go. Default standard output.
    pub access_output: LogOutput,
    /// Of the accepted requests of each TPP, one of this number has a line. Default 1.
    pub sample: NonZeroU32,
    /// The least severe level of events that is logged. Default `info`.
    pub level: Level,
    /// Where events go. Default standard error.
    pub events_output: LogOutput,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            access: true,
            access_output: LogOutput::StandardOutput,
            sample: NonZeroU32::MIN,
            level: Level::INFO,
            events_output: LogOutput::StandardError,
        }
    }
}

/// Reads the section, which is optional.
pub(super) fn read(root: &mut Section<'_>, base: &Path) -> Log {
    let mut log = Log::default();
    let Some(mut section) = root.optional_section("log") else {
        return log;
    };
    if let Some(access) = section.optional("access").and_then(|value| value.boolean()) {
        log.access = access;
        if !access {
            section.weakens("access", "no request leaves a line");
        }
    }
    let level = section.optional("level").and_then(|value| {
        value.one_of(&[
            ("error", Level::ERROR),
            ("warn", Level::WARN),
            ("info", Level::INFO),
            ("debug", Level::DEBUG),
            ("trace", Level::TRACE),
        ])
    });
    log.level = level.unwrap_or(log.level);
    let mut file = |key| section.optional(key).and_then(|value| value.path(base));
    if let Some(path) = file("access_file") {
        log.access_output = LogOutput::File(path);
    }
    if let Some(path) = file("events_file") {
        log.events_output = LogOutput::File(path);
    }
    let sample = section.optional("sample");
    let sample = sample.and_then(|value| value.integer(1..=MOST));
    log.sample = sample.and_then(NonZeroU32::new).unwrap_or(log.sample);
    section.finish();
    log
}
