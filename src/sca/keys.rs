//! The keys that seal tokens: one file with at most two keys.
//!
//! Each line is a key: its id as eight hexadecimal digits, a space, and 32 bytes in base64. The first key seals, and both keys open. A
//! larger id means a newer key, so that [`rotate`](super::rotate) can tell which of two keys is the new one. Invariants: a file that others
//! than its owner can read is refused, and an existing file is overwritten only by a rotation. `Debug` shows no key.

use super::{
    SealsFault,
    key_id::{ID_LENGTH, parse_id},
};
use crate::{clock::Timestamp, private_file};
use aws_lc_rs::{
    aead::{AES_256_GCM, LessSafeKey, UnboundKey},
    rand,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// The length of an AES-256 key in bytes.
const SECRET_LENGTH: usize = 32;

/// The maximum size of a key file in bytes: two lines have 108.
const MAX_FILE: usize = 4_096;

/// The keys of tokens.
pub struct TokenKeys {
    first: Key,
    second: Option<Key>,
}

/// One key.
pub(super) struct Key {
    id: [u8; ID_LENGTH],
    secret: [u8; SECRET_LENGTH],
    aead: LessSafeKey,
}

/// The reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] private_file::FileFault),
    /// The file cannot be written.
    #[error("{0}")]
    Written(#[from] io::Error),
    /// The file holds no key.
    #[error("it holds no key; remove it, and the gateway makes a new one when it starts")]
    Empty,
    /// The file holds more than two keys.
    #[error(
        "it holds more than two keys; the first seals, the second only opens, and more there are not"
    )]
    TooMany,
    /// Both keys have the same id.
    #[error("both of its keys have the same id")]
    SameId,
    /// A line is not a key. The message does not repeat the line.
    #[error(
        "line {0} is no key; expected eight hexadecimal digits in lower case, a space, and 32 bytes in base64"
    )]
    Line(usize),
    /// The file is much longer than two keys, or is not text.
    #[error("it is no key file: it is no text, or longer than {MAX_FILE} bytes")]
    NotAKeyFile,
    /// The seals of the keys cannot be counted.
    #[error("the count of their seals {0}: {1}; sca.token_seals names another place")]
    Seals(PathBuf, SealsFault),
    /// No random numbers are available.
    #[error("no random numbers can be had")]
    Random,
}

impl TokenKeys {
    /// Reads a key file.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub fn read(path: &Path) -> Result<Self, KeyFault> {
        Self::from_bytes(private_file::read(path, MAX_FILE)?)
    }

    /// Reads a key file, or creates the file and its folder if there is none: mode 0600, durable when this function returns. If two
    /// processes do this at once, one creates the file and both read it.
    ///
    /// # Errors
    /// The reason why the file cannot be used or created.
    pub fn read_or_make(path: &Path, now: Timestamp) -> Result<Self, KeyFault> {
        let new_text = || {
            let first = Key::make(now, None)?;
            let keys = Self {
                first,
                second: None,
            };
            Ok::<_, KeyFault>(keys.text())
        };
        Self::from_bytes(private_file::read_or_make(path, MAX_FILE, new_text)?)
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Self, KeyFault> {
        match String::from_utf8(bytes) {
            Ok(text) if text.len() <= MAX_FILE => Self::parse(&text),
            _ => Err(KeyFault::NotAKeyFile),
        }
    }

    /// Parses the text of a key file.
    ///
    /// # Errors
    /// The first fault in the text.
    pub fn parse(text: &str) -> Result<Self, KeyFault> {
        let lines = text.lines().map(str::trim_end).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty());
        let mut keys = lines.map(|(line, number)| Key::parse(line).ok_or(KeyFault::Line(number)));
        let first = keys.next().ok_or(KeyFault::Empty)??;
        let second = keys.next().transpose()?;
        let others = keys.collect::<Result<Vec<_>, _>>()?;
        if !others.is_empty() {
            return Err(KeyFault::TooMany);
        }
        if second.as_ref().is_some_and(|second| second.id == first.id) {
            return Err(KeyFault::SameId);
        }
        Ok(Self { first, second })
    }

    /// Replaces the file atomically.
    pub(super) fn replace(&self, path: &Path) -> Result<(), KeyFault> {
        Ok(private_file::replace(path, self.text().as_bytes())?)
    }

    /// The key that seals.
    pub(super) const fn sealing(&self) -> &Key {
        &self.first
    }

    /// The key that only opens.
    pub(super) const fn second(&self) -> Option<&Key> {
        self.second.as_ref()
    }

    pub(super) fn find(&self, id: [u8; ID_LENGTH]) -> Option<&Key> {
        self.all().find(|key| key.id == id)
    }

    /// A pair of keys in this order.
    pub(super) const fn of(first: Key, second: Key) -> Self {
        Self {
            first,
            second: Some(second),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// The text of the key file.
    fn text(&self) -> String {
        self.all().map(Key::line).collect()
    }
}

impl Key {
    /// A new key with a larger id than another key.
    pub(super) fn make(now: Timestamp, than: Option<&Self>) -> Result<Self, KeyFault> {
        let mut secret = [0; SECRET_LENGTH];
        rand::fill(&mut secret).map_err(|_| KeyFault::Random)?;
        let now = u32::try_from(now.unix()).unwrap_or(u32::MAX);
        let id = than.map_or(now, |than| now.max(than.age().saturating_add(1)));
        Self::new(id.to_be_bytes(), secret).ok_or(KeyFault::Random)
    }

    /// A copy of the key.
    pub(super) fn copy(&self) -> Option<Self> {
        Self::new(self.id, self.secret)
    }

    pub(super) const fn id(&self) -> &[u8; ID_LENGTH] {
        &self.id
    }

    pub(super) const fn aead(&self) -> &LessSafeKey {
        &self.aead
    }

    /// The order of keys by age, larger for a newer key. For keys that the gateway made, this is the second of their creation.
    pub(super) const fn age(&self) -> u32 {
        u32::from_be_bytes(self.id)
    }

    fn new(id: [u8; ID_LENGTH], secret: [u8; SECRET_LENGTH]) -> Option<Self> {
        let aead = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret).ok()?);
        Some(Self { id, secret, aead })
    }

    fn parse(line: &str) -> Option<Self> {
        let (id, secret) = line.split_once(' ')?;
        let id = parse_id(id)?;
        let secret = BASE64_STANDARD.decode(secret).ok()?;
        let secret: [u8; SECRET_LENGTH] = secret.try_into().ok()?;
        // A line of zeros was filled in by hand, and seals nothing.
        (secret != [0; SECRET_LENGTH]).then(|| Self::new(id.to_be_bytes(), secret))?
    }

    fn line(&self) -> String {
        let secret = BASE64_STANDARD.encode(self.secret);
        format!("{:08x} {secret}\n", self.age())
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenKeys(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

    fn line(id: &str) -> String {
        format!("{id} {}\n", BASE64_STANDARD.encode([7; 32]))
    }

    #[test]
    fn key_files() {
        let good = [
            line("00000001"),
            line("00000001") + &line("00000002"),
            format!("\n{}\n\n", line("deadbeef")),
            line("00000001").replace('\n', "\r\n"),
            line("00000001").trim().to_owned(),
        ];
        for text in good {
            assert!(TokenKeys::parse(&text).is_ok(), "{text}");
        }
        let bad = [
            (String::new(), "it holds no key"),
            (line("00000001").repeat(2), "same id"),
            (
                line("00000001") + &line("00000002") + &line("00000003"),
                "more than two keys",
            ),
            (line("0000001"), "line 1 is no key"),
            (line("DEADBEEF"), "line 1 is no key"),
            (line("+0000001"), "line 1 is no key"),
            (line("00000001").replace(' ', "  "), "line 1 is no key"),
            (line("00000001").replace("BwcH", ""), "line 1 is no key"),
            (line("00000001").replace('=', ""), "line 1 is no key"),
            (line("00000001") + "\nhunter2", "line 3 is no key"),
        ];
        for (text, expected) in bad {
            let fault = TokenKeys::parse(&text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{text}: {fault}");
            assert!(!fault.contains("hunter2") && !fault.contains("BwcH"));
        }
    }

    #[test]
    fn the_first_start_makes_a_file_that_later_starts_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/token.keys");
        let made = TokenKeys::read_or_make(&path, NOW).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        let later = Timestamp::from_unix(NOW.unix() + 60);
        let read = TokenKeys::read_or_make(&path, later).unwrap();
        assert_eq!(made.sealing().secret, read.sealing().secret);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(format!("{read:?}"), "TokenKeys(***)");
    }

    #[test]
    fn of_many_first_starts_one_makes_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token.keys");
        let start = || {
            TokenKeys::read_or_make(&path, NOW)
                .unwrap()
                .sealing()
                .secret
        };
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token.keys");
        fs::write(&path, line("00000001")).unwrap();
        for (mode, good) in [(0o600, true), (0o640, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = TokenKeys::read_or_make(&path, NOW);
            assert_eq!(read.is_ok(), good, "{mode:o}: {read:?}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "x".repeat(5_000)).unwrap();
        let fault = TokenKeys::read(&path).unwrap_err();
        assert!(matches!(fault, KeyFault::NotAKeyFile), "{fault}");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        let fault = TokenKeys::read(&path).unwrap_err();
        assert!(matches!(fault, KeyFault::NotAKeyFile), "{fault}");
    }
}
