//! An entry of the file, read.

use crate::config::fault::FilePosition;
use crate::interface::operations::Operation;

/// An entry of the file, and the position of its path for faults.
pub(super) struct OperationEntry {
    pub(super) operation: Operation,
    pub(super) place: FilePosition,
    pub(super) origin: EntryOrigin,
}

/// The order decides which of two colliding operations the catalogue names: the one whose path is in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryOrigin {
    BuiltIn,
    BuiltInMoved,
    Added,
}
