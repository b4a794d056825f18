//! Positions in configuration files.

use std::fmt;
use std::sync::Arc;

/// A position in a configuration file, and the path of keys that leads to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    /// The file as the operator named it: `config/gateway.yaml`.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: u64,
    /// Column in characters, counted from 1.
    pub column: u64,
    /// Keys from the root, `listener.address` or `anchors[2].folder`; empty for the file itself.
    pub path: String,
}

impl FilePosition {
    /// The start of a file.
    pub fn start_of(file: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            line: 1,
            column: 1,
            path: String::new(),
        }
    }
}

impl fmt::Display for FilePosition {
    /// `file:line:column: path`, which editors and CI logs turn into links.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        if self.path.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.path)
        }
    }
}
