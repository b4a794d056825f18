//! Why a file cannot be written: a sentence for operators, and its kind for a metric.

use crate::values;
use std::{
    fmt::{self, Display, Formatter},
    io::{self, ErrorKind},
};

values! {
    /// The kind of a fault of writing.
    pub enum WriteCause {
        /// The process may not write the file, or its folder.
        NoPermission = "no_permission",
        /// The folder is not there.
        NoFolder = "no_folder",
        /// The disk is full, or its quota is used up.
        NoSpace = "no_space",
        /// The file system is mounted for reading.
        ReadOnly = "read_only",
        /// The reader of a pipe, FIFO or socket has ended.
        NoReader = "no_reader",
        /// The disk neither writes nor refuses.
        NoAnswer = "no_answer",
        /// Another fault; its text has it.
        Other = "other",
    }
}

/// Why a file cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteFault {
    /// The kind.
    pub cause: WriteCause,
    /// The sentence.
    pub text: String,
}

impl WriteFault {
    /// The fault of this error of the system, in these words.
    pub fn new(error: &io::Error, text: String) -> Self {
        let cause = match error.kind() {
            ErrorKind::PermissionDenied => WriteCause::NoPermission,
            ErrorKind::NotFound | ErrorKind::NotADirectory => WriteCause::NoFolder,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::WriteZero => {
                WriteCause::NoSpace
            }
            ErrorKind::ReadOnlyFilesystem => WriteCause::ReadOnly,
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => {
                WriteCause::NoReader
            }
            _ => WriteCause::Other,
        };
        Self { cause, text }
    }
}

impl Display for WriteFault {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn errors_of_the_system_have_their_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let missing = File::create(folder.path().join("none/log")).unwrap_err();
        let full = io::Write::write(&mut File::create("/dev/full").unwrap(), b"a").unwrap_err();
        let of = |error: &io::Error| WriteFault::new(error, error.to_string()).cause;
        assert_eq!(of(&missing), WriteCause::NoFolder);
        assert_eq!(of(&full), WriteCause::NoSpace);
        // Root may write everywhere, so these come by their numbers: EACCES, EROFS, EPIPE, EIO.
        let numbered = [13, 30, 32, 5].map(|number| of(&io::Error::from_raw_os_error(number)));
        let expected = [
            WriteCause::NoPermission,
            WriteCause::ReadOnly,
            WriteCause::NoReader,
            WriteCause::Other,
        ];
        assert_eq!(numbered, expected);
    }
}
