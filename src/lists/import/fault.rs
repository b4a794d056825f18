//! Why an import is refused: which file, and why.

use crate::fault::Refusal;
use std::path::{Path, PathBuf};

/// A fault of an import.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file is refused.
    #[error("{file}: {refusal}", file = file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason and the line.
        refusal: Refusal,
    },
    /// Something is wrong with all of it.
    #[error("{0}")]
    Whole(Refusal),
}

impl Fault {
    /// A fault of a file.
    pub fn of(file: &Path, refusal: Refusal) -> Self {
        Self::File {
            file: file.to_owned(),
            refusal,
        }
    }

    /// The reason.
    pub const fn refusal(&self) -> &Refusal {
        match self {
            Self::File { refusal, .. } | Self::Whole(refusal) => refusal,
        }
    }
}
