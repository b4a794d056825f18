//! The keys of TLS session tickets that replicas share (`listener.ticket_keys`).
//!
//! Each line of the file is a key: its id as eight hexadecimal digits, a space, and 32 random bytes in base64. The first key encrypts new
//! tickets, and every key decrypts. Invariants: a file that others than its owner can read is refused; ids and keys differ; no key is all
//! zeros; `Debug` shows no key. Deliberately not here: the form of tickets, and their lifetime.

use super::value::Value;
use crate::{hex, private_file};
use aws_lc_rs::aead::{AES_256_GCM_SIV, RandomizedNonceKey};
use base64::{Engine, prelude::BASE64_STANDARD};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The length of an id in bytes.
pub const TICKET_KEY_ID: usize = 4;

/// The bytes of a key.
type Secret = [u8; 32];

/// The most keys: the current one, and those of three rotations before.
const MOST_KEYS: usize = 4;

/// The longest file that is read, in bytes: four lines have 216.
const MAX_FILE: usize = 4_096;

/// The keys of a file.
pub struct TicketKeys {
    newest: TicketKey,
    older: Vec<TicketKey>,
}

/// One key.
pub struct TicketKey {
    /// Names the key in a ticket.
    pub id: [u8; TICKET_KEY_ID],
    /// AES-256-GCM-SIV (RFC 8452) with random nonces. Unlike AES-GCM, it stays safe if replicas happen to draw the same nonce.
    pub aead: RandomizedNonceKey,
}

/// The reason why a file of ticket keys cannot be used. No message repeats a line.
#[derive(Debug, thiserror::Error)]
enum TicketKeyFault {
    #[error("{0}")]
    File(#[from] private_file::FileFault),
    #[error("it holds no key")]
    Empty,
    #[error("it holds more than {MOST_KEYS} keys")]
    TooMany,
    #[error("two of its keys have the same id")]
    SameId,
    #[error("lines {0} and {1} have the same key under two ids")]
    SameKey(usize, usize),
    #[error("line {0} has a key of zeros; make one with \"openssl rand -base64 32\"")]
    Zeros(usize),
    #[error(
        "line {0} is no key; expected eight hexadecimal digits in lower case, a space, and 32 bytes in base64"
    )]
    Line(usize),
    #[error("it is no key file: it is no text, or longer than {MAX_FILE} bytes")]
    NotAKeyFile,
}

impl TicketKeys {
    /// The key that encrypts new tickets.
    pub const fn newest(&self) -> &TicketKey {
        &self.newest
    }

    /// The key with this id.
    pub fn find(&self, id: &[u8]) -> Option<&TicketKey> {
        let mut all = std::iter::once(&self.newest).chain(&self.older);
        all.find(|key| key.id == id)
    }

    /// Reads the file that a value names.
    pub(super) fn read(value: &Value<'_>, base: &Path) -> Option<Arc<Self>> {
        let path = value.secret_path(base)?;
        Self::from_file(&path)
            .map_err(|fault| value.fault(format!("{}: {fault}", path.display())))
            .ok()
            .map(Arc::new)
    }

    fn from_file(path: &Path) -> Result<Self, TicketKeyFault> {
        match String::from_utf8(private_file::read(path, MAX_FILE)?) {
            Ok(text) if text.len() <= MAX_FILE => Self::parse(&text),
            _ => Err(TicketKeyFault::NotAKeyFile),
        }
    }

    fn parse(text: &str) -> Result<Self, TicketKeyFault> {
        let lines = text.lines().map(str::trim_end).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty());
        let mut seen: Vec<([u8; TICKET_KEY_ID], Secret, usize)> = Vec::new();
        let mut keys = lines.map(|(line, number)| {
            let (key, secret) = TicketKey::parse(line).ok_or(TicketKeyFault::Line(number))?;
            if secret == Secret::default() {
                return Err(TicketKeyFault::Zeros(number));
            }
            if seen.iter().any(|(id, ..)| *id == key.id) {
                return Err(TicketKeyFault::SameId);
            }
            if let Some((.., before)) = seen.iter().find(|(_, before, _)| *before == secret) {
                return Err(TicketKeyFault::SameKey(*before, number));
            }
            seen.push((key.id, secret, number));
            Ok(key)
        });
        let newest = keys.next().ok_or(TicketKeyFault::Empty)??;
        let mut older: Vec<TicketKey> = Vec::new();
        for key in keys {
            let key = key?;
            if older.len() >= MOST_KEYS.saturating_sub(1) {
                return Err(TicketKeyFault::TooMany);
            }
            older.push(key);
        }
        Ok(Self { newest, older })
    }
}

impl TicketKey {
    fn parse(line: &str) -> Option<(Self, Secret)> {
        let (id, secret) = line.split_once(' ')?;
        let id = hex::lower_case_number(id.as_bytes()).filter(|_| id.len() == 2 * TICKET_KEY_ID)?;
        let id = u32::try_from(id).ok()?.to_be_bytes();
        let secret = BASE64_STANDARD.decode(secret).ok()?;
        let secret: Secret = secret.try_into().ok()?;
        let aead = RandomizedNonceKey::new(&AES_256_GCM_SIV, &secret).ok()?;
        Some((Self { id, aead }, secret))
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TicketKeys")
            .field("older", &self.older.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line whose key follows from the id.
    fn line(id: &str) -> String {
        line_with(id, id.as_bytes().last().copied().unwrap_or(1))
    }

    fn line_with(id: &str, byte: u8) -> String {
        format!("{id} {}\n", BASE64_STANDARD.encode([byte; 32]))
    }

    #[test]
    fn the_first_key_encrypts_and_all_decrypt() {
        let text = ["00000002", "00000001", "0000000a", "00000000"].map(line);
        let keys = TicketKeys::parse(&text.concat()).unwrap();
        assert_eq!(keys.newest().id, [0, 0, 0, 2]);
        assert!(keys.find(&[0, 0, 0, 10]).is_some() && keys.find(&[0, 0, 0, 0]).is_some());
        assert!(keys.find(&[0, 0, 0, 3]).is_none() && keys.find(&[]).is_none());
        assert_eq!(format!("{keys:?}"), "TicketKeys { older: 3, .. }");
    }

    #[test]
    fn faults_do_not_repeat_a_line() {
        let five = ["00000002", "00000001", "0000000a", "00000000", "0000000b"].map(line);
        let twice = [line("00000002"), line("00000001"), line("00000001")];
        let expected = "is no key; expected eight hexadecimal digits in lower case, a space, and 32 bytes in base64";
        for (text, fault) in [
            (String::new(), "it holds no key".to_owned()),
            (five.concat(), "it holds more than 4 keys".to_owned()),
            (
                twice.concat(),
                "two of its keys have the same id".to_owned(),
            ),
            (
                [line("00000002"), line_with("00000003", b'2')].concat(),
                "lines 1 and 2 have the same key under two ids".to_owned(),
            ),
            (
                line_with("00000002", 0),
                "line 1 has a key of zeros; make one with \"openssl rand -base64 32\"".to_owned(),
            ),
            (line("0000000A"), format!("line 1 {expected}")),
            (line("+0000001"), format!("line 1 {expected}")),
            (line("0000001"), format!("line 1 {expected}")),
            (
                format!("{}\n00000002 c2hvcnQ=\n", line("00000001")),
                format!("line 3 {expected}"),
            ),
        ] {
            assert_eq!(TicketKeys::parse(&text).unwrap_err().to_string(), fault);
        }
    }
}
