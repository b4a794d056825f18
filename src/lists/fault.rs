//! Why a list is refused.

use std::fmt;

/// Why a list is refused: the reason, and the line of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    what: String,
    line: Option<usize>,
}

impl Refusal {
    /// A refusal of the whole file.
    pub fn new(what: impl fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            line: None,
        }
    }

    /// A refusal at a line of the file, counted from 1.
    pub fn at(line: usize, what: impl fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            line: Some(line),
        }
    }

    /// The reason, without the place.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The line of the file, counted from 1, if the reason has a place.
    pub const fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}
