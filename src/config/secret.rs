//! A secret from a file that the configuration names: a private key of TLS or a bearer token.
//!
//! Invariant: neither `Debug` nor `Display` reveals a byte of it, or its length. Deliberately not here: zeroing memory (the
//! process that uses the secret could be read anyway) and comparing (callers compare tokens in constant time).

use crate::private_file::{self, FileFault};
use std::fmt;
use std::io;
use std::path::Path;

/// The longest secret file that is read, in bytes: longer than a PEM chain with its key, shorter than most wrong files (a log,
/// a device).
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Bytes that must not be shown, such as a bearer token or a key.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Wraps these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Reads a secret from a file, with all its bytes.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is empty, is longer than 64 KiB, or others may read it ([`private_file::read`]).
    pub fn read(path: &Path) -> Result<Self, FileFault> {
        let bytes = private_file::read(path, MAX_SECRET_BYTES)?;
        let unusable = |reason| Err(io::Error::new(io::ErrorKind::InvalidData, reason).into());
        match bytes.len() {
            0 => unusable("the file is empty"),
            length if length > MAX_SECRET_BYTES => unusable("the file is longer than 64 KiB"),
            _ => Ok(Self(bytes)),
        }
    }

    /// The bytes of the file, with any line ending, for binary keys.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The secret as text, without one trailing line ending, which editors and `echo` add. `None` if it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.0).ok()?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        Some(text.strip_suffix('\r').unwrap_or(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?} {:?}", Some(&secret)),
            "*** *** *** Some(***)"
        );
    }

    #[test]
    fn text_loses_one_line_ending_and_bytes_lose_none() {
        for (raw, text) in [
            ("a b\n", "a b"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a", "a"),
        ] {
            let secret = Secret::new(raw);
            assert_eq!(secret.text(), Some(text));
            assert_eq!(secret.bytes(), raw.as_bytes());
        }
        assert_eq!(Secret::new([0xff, 0x0a]).text(), None);
    }

    #[test]
    fn files_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(Secret::read(&path).unwrap_err().is_missing());
        private_file::make(&path, b"").unwrap();
        for (length, held) in [(0, false), (1, true), (65_536, true), (65_537, false)] {
            std::fs::write(&path, vec![b'x'; length]).unwrap();
            assert_eq!(Secret::read(&path).is_ok(), held, "{length}");
        }
        assert!(Secret::read(folder.path()).is_err());
    }
}
