//! The reason why there is no report, and the faults of a file of figures.

use crate::{
    config::ConfigFaults,
    tools::{input::InputFault, state::StateFault},
};
use jiff::civil::Date;
use std::{
    fmt::{self, Display},
    io,
    path::PathBuf,
};

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportFault {
    /// A file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// A file of figures cannot be read.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// A file of figures is wrong. The notes have its faults.
    #[error("{0} is refused: correct the faults above, there is no report")]
    Figures(PathBuf),
    /// A log was given twice.
    #[error(
        "{0} and {1} have a line in common, which would count twice: give each log once, without links to it and copies of it"
    )]
    Twice(PathBuf, PathBuf),
    /// The lines are of more days than a report has.
    #[error(
        "{0}, line {1} and the lines before it are of more days than the ten years of a report: name the period by --from and --to"
    )]
    TooManyDays(PathBuf, u64),
    /// The gateway's configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateFault),
    /// A folder has no audit.
    #[error("{0} has no records of an audit: name the folder of audit.folder")]
    NoAudit(PathBuf),
    /// A chart has no place for TPPs.
    #[error(
        "a chart shows no TPPs: leave --config and --audit out, or choose --format csv or json"
    )]
    NoChart,
    /// No line counts.
    #[error("there is no line of an access log between these days")]
    Empty,
    /// The days are in the wrong order, or too many.
    #[error("{0} to {1} is not a period of at most ten years")]
    Period(Date, Date),
    /// The report cannot be written.
    #[error("the report cannot be written: {0}")]
    Output(io::Error),
    /// A file of the status page cannot be written.
    #[error("{0} cannot be written: {1}")]
    Page(PathBuf, io::Error),
    /// A file that no status page has is in its place.
    #[error(
        "{0} was not written by `portvakt report --page`, so it stays as it is: name another folder, or move it away"
    )]
    Foreign(PathBuf),
}

/// A fault of a file of figures, and its place there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedFault {
    place: String,
    text: String,
}

impl PlacedFault {
    /// The text says what to change. It repeats nothing of the file, which may be another one with personal data.
    pub(super) fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            text: text.into(),
        }
    }
}

impl Display for PlacedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
