//! Whether the file at a path is still the one that was opened.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The identity of the file, which changes if the file is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the opened file is still at its path.
    ///
    /// # Errors
    /// The message for the operator.
    pub(super) fn check(&self) -> Result<(), String> {
        match Self::of(&self.path) {
            Ok(found) if found == *self => Ok(()),
            Ok(_) => Err(format!(
                "{} was replaced by another file: restart the gateway to use it",
                self.path.display()
            )),
            Err(error) => Err(format!("{}: {error}", self.path.display())),
        }
    }
}
