//! The reason why there is no report.

use jiff::civil::Date;
use std::{io, path::PathBuf};

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportFault {
    /// A file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// No line counts.
    #[error("there is no line of an access log between these days")]
    Empty,
    /// The days are in the wrong order, or too many.
    #[error("{0} to {1} is not a period of at most ten years")]
    Period(Date, Date),
    /// The report cannot be written.
    #[error("the report cannot be written: {0}")]
    Output(io::Error),
}
