//! Tokens that show the requests of one TPP: its identity, and the HMAC of it under the bank's key.
//!
//! Invariants: a token is computed and never stored; only a process that reads the key's file can make one; the identity in a token is
//! used only after its HMAC has verified. A new key makes every earlier token void. Deliberately without an expiry: a token shows only what the TPP
//! itself sent to a sandbox.

use aws_lc_rs::{hmac, rand};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt_base::hex;
use portvakt_base::private_file::{self, FileFault};
use portvakt_interface::TppId;
use std::path::Path;

/// The random bytes of a key: the output of SHA-256 (RFC 2104, section 3).
const KEY_BYTES: usize = 32;

/// The key in its file: two hexadecimal digits for each byte.
const KEY_DIGITS: usize = 2 * KEY_BYTES;

/// The most bytes of the file: an editor adds a line feed.
const FILE_LIMIT: usize = KEY_DIGITS + 1;

/// The beginning of the text under the HMAC, so that the key proves nothing else.
const PURPOSE: &[u8] = b"portvakt-sandbox tail 1\0";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyFault {
    /// The file cannot be read or made.
    #[error("{0}")]
    File(#[from] FileFault),
    /// The file holds something else.
    #[error("it is no key, which is 64 hexadecimal digits; name another file")]
    NotAKey,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomBytes,
}

/// The key of all tokens of one bank.
pub(super) struct TailKey(hmac::Key);

impl TailKey {
    /// Reads the key; makes it where the file is not there.
    pub(super) fn read_or_make(path: &Path) -> Result<Self, KeyFault> {
        let content = private_file::read_or_make(path, FILE_LIMIT, || {
            let mut bytes = [0_u8; KEY_BYTES];
            rand::fill(&mut bytes).map_err(|_| KeyFault::NoRandomBytes)?;
            Ok::<_, KeyFault>(hex::encode(&bytes))
        })?;
        Self::of(&content)
    }

    /// Reads the key.
    pub(super) fn read(path: &Path) -> Result<Self, KeyFault> {
        Self::of(&private_file::read(path, FILE_LIMIT)?)
    }

    fn of(content: &[u8]) -> Result<Self, KeyFault> {
        let digits = content.trim_ascii();
        if digits.len() != KEY_DIGITS || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(KeyFault::NotAKey);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, digits)))
    }

    /// The token of a TPP: base64url of its identity, a dot, base64url of the HMAC.
    pub(super) fn token(&self, tpp: &TppId) -> String {
        let tag = hmac::sign(&self.0, &signed(tpp));
        let name = BASE64_URL_SAFE_NO_PAD.encode(tpp.as_bytes());
        let tag = BASE64_URL_SAFE_NO_PAD.encode(tag.as_ref());
        format!("{name}.{tag}")
    }

    /// The TPP whose token this is; `None` if this key did not make it. The comparison takes the same time for every wrong HMAC.
    pub(super) fn verify(&self, token: &str) -> Option<TppId> {
        let (name, tag) = token.split_once('.')?;
        let name = BASE64_URL_SAFE_NO_PAD.decode(name).ok()?;
        let name = String::from_utf8(name).ok()?;
        // One spelling only: that of the log.
        let tpp = TppId::parse(&name).filter(|tpp| tpp.as_str() == name)?;
        let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.0, &signed(&tpp), &tag).ok()?;
        Some(tpp)
    }
}

/// The text under the HMAC.
fn signed(tpp: &TppId) -> Vec<u8> {
    [PURPOSE, tpp.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tpp(id: &str) -> TppId {
        TppId::parse(id).unwrap()
    }

    #[test]
    fn a_token_names_the_tpp_that_it_was_made_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/tail.key");
        let key = TailKey::read_or_make(&path).unwrap();
        let token = key.token(&tpp("psdno-fsa-1"));
        assert_eq!(key.verify(&token), Some(tpp("PSDNO-FSA-1")));
        let again = TailKey::read_or_make(&path).unwrap();
        assert_eq!(again.token(&tpp("PSDNO-FSA-1")), token);
        let read = TailKey::read(&path).unwrap();
        assert_eq!(read.verify(&token), Some(tpp("PSDNO-FSA-1")));
    }

    #[test]
    fn an_altered_token_and_one_of_another_key_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let key = TailKey::read_or_make(&folder.path().join("a")).unwrap();
        let other = TailKey::read_or_make(&folder.path().join("b")).unwrap();
        let token = key.token(&tpp("PSDNO-FSA-1"));
        assert_eq!(other.verify(&token), None);
        let (name, tag) = token.split_once('.').unwrap();
        let encode = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        let (another, lower) = (encode("PSDNO-FSA-2"), encode("psdno-fsa-1"));
        for wrong in [
            String::new(),
            ".".to_owned(),
            name.to_owned(),
            format!("{name}."),
            format!("{name}.{}", tag.get(1..).unwrap()),
            format!("{name}.{tag}A"),
            format!("{another}.{tag}"),
            format!("{lower}.{tag}"),
            format!(".{tag}"),
            format!("{token}.{tag}"),
        ] {
            assert_eq!(key.verify(&wrong), None, "{wrong}");
        }
        // Each letter counts.
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[at] = if altered[at] == b'B' { b'C' } else { b'B' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(key.verify(&altered), None, "{altered}");
        }
    }

    #[test]
    fn a_file_that_is_no_key_or_that_others_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let missing = TailKey::read(&path).err().unwrap();
        assert!(matches!(missing, KeyFault::File(fault) if fault.is_missing()));
        for (content, fits) in [
            ("0".repeat(KEY_DIGITS), true),
            ("0".repeat(KEY_DIGITS) + "\n", true),
            ("0".repeat(KEY_DIGITS - 1), false),
            ("0".repeat(KEY_DIGITS + 1), false),
            ("g".repeat(KEY_DIGITS), false),
            (String::new(), false),
        ] {
            std::fs::write(&path, &content).unwrap();
            let private = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, private).unwrap();
            let read = TailKey::read_or_make(&path);
            assert_eq!(read.is_ok(), fits, "{content:?}");
        }
        std::fs::write(&path, "0".repeat(KEY_DIGITS)).unwrap();
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).unwrap();
        let fault = TailKey::read(&path).err().unwrap();
        assert!(matches!(fault, KeyFault::File(FileFault::Open(0o644))));
    }
}
