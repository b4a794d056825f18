//! Why a file is not the register that its mapping says.

use std::io;

/// The reason why a file is not a register of the mapping's form.
#[derive(Debug, thiserror::Error)]
pub enum MappedFault {
    /// The file is something else, by its first bytes (ERR-10).
    #[error("{0}")]
    Other(&'static str),
    /// The file is a zip archive.
    #[error("it is a zip archive: unpack the file in it")]
    Packed,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// A row is not CSV. The text names the line.
    #[error("{0}")]
    Row(String),
    /// The first line does not name a mapped column.
    #[error("there is no column {missing:?}; the columns are {there}")]
    NoColumn {
        /// The column of the mapping.
        missing: String,
        /// Those of the file.
        there: String,
    },
    /// The first line names a mapped column twice.
    #[error("the column {0:?} stands twice: rename one")]
    TwoColumns(String),
    /// No record has a mapped member.
    #[error("no record has the member {0:?}: compare columns")]
    NoMember(String),
    /// The file is not the JSON that the mapping says. The text ends with line and column.
    #[error("it is not a list of objects as the mapping says: {0}")]
    Json(#[from] serde_json::Error),
    /// No row has a date of the form that the mapping says.
    #[error(
        "no row has a date of the form {form:?}; one is {found:?}: change date, or leave out changed"
    )]
    NoDate {
        /// The form of the mapping.
        form: String,
        /// The text of a row.
        found: String,
    },
    /// No row can be named by a certificate.
    #[error(
        "none of its {rows} rows has an identity that a certificate can have (PSD<country>-<authority>-<id>): compare the mapping"
    )]
    Empty {
        /// The number of rows.
        rows: u64,
    },
}
