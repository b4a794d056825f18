//! The rotation of the token keys, during which every link keeps working.
//!
//! A key may seal only when every replica can open with it. So a rotation has two steps, each in one run:
//!
//! 1. *prepare*: a new key becomes the second key, which opens; the old key still seals. The file is copied to all replicas, and each
//!    takes it into use by a reload.
//! 2. *switch*: the new key becomes the first key, which seals. The old key opens the tokens that are still in use. The file is copied to
//!    all replicas again.
//!
//! The next *prepare* removes the old key, whose tokens have then expired. The file shows the next step: if the second key is newer than
//! the first, *switch* is next.

use super::{
    TokenKeys,
    keys::{Key, KeyFault},
};
use crate::clock::Timestamp;
use std::path::Path;

/// The step that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotated {
    /// The new key opens, and does not seal yet.
    Prepared,
    /// The new key seals, and the old key opens.
    Switched,
}

/// Performs the next step on the file, atomically.
///
/// # Errors
/// The reason why the file cannot be used or written.
pub fn rotate(path: &Path, now: Timestamp) -> Result<Rotated, KeyFault> {
    let keys = TokenKeys::read(path)?;
    let copy = |key: &Key| key.copy().ok_or(KeyFault::Random);
    let first = keys.sealing();
    let (next, step) = match keys.second() {
        Some(second) if second.age() > first.age() => (
            TokenKeys::of(copy(second)?, copy(first)?),
            Rotated::Switched,
        ),
        _ => (
            TokenKeys::of(copy(first)?, Key::make(now, Some(first))?),
            Rotated::Prepared,
        ),
    };
    next.replace(path)?;
    Ok(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        interface::{
            TppId,
            headers::{RedirectUri, SessionId},
            operations::Environment,
        },
        sca::{Links, Pending},
    };
    use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

    const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

    fn links(path: &Path) -> Links {
        let keys = TokenKeys::read(path).unwrap();
        Links::new(
            "https://b.example",
            Duration::from_secs(900),
            Environment::Sandbox,
            keys,
        )
    }

    /// Whether the replica with one file opens the tokens that the replica with the other file seals.
    fn opens(sealer: &Links, opener: &Links) -> bool {
        let pending = Pending {
            environment: Environment::Sandbox,
            tpp: TppId::parse("PSDNO-FSA-1").unwrap(),
            tpp_name: "Tredjepart AS".into(),
            session: SessionId::from_text("s").unwrap(),
            redirect_uri: RedirectUri::from_text("https://t.example", Environment::Sandbox)
                .unwrap(),
            preferred: true,
            operation: "o".into(),
            resource: None,
            asks_consent: false,
            context: None,
            corporate: None,
            psu: None,
        };
        let link = sealer.link(&pending, NOW).unwrap();
        opener.open(link.split_once('=').unwrap().1, NOW).is_ok()
    }

    #[test]
    fn replicas_that_are_one_step_apart_open_each_others_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token.keys");
        // Ids differ even if the clock shows the same second.
        TokenKeys::read_or_make(&path, NOW).unwrap();
        let mut before = links(&path);
        for turn in 0..6 {
            let step = rotate(&path, NOW).unwrap();
            let expected = [Rotated::Prepared, Rotated::Switched][turn % 2];
            assert_eq!(step, expected, "{turn}");
            let after = links(&path);
            assert!(opens(&before, &after) && opens(&after, &before), "{turn}");
            before = after;
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_old_key_is_gone_after_the_next_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token.keys");
        TokenKeys::read_or_make(&path, NOW).unwrap();
        let old = links(&path);
        for _ in 0..2 {
            rotate(&path, NOW).unwrap();
        }
        assert!(opens(&old, &links(&path)));
        rotate(&path, NOW).unwrap();
        assert!(!opens(&old, &links(&path)));
    }

    #[test]
    fn a_file_that_cannot_be_used_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token.keys");
        assert!(matches!(rotate(&path, NOW), Err(KeyFault::File(_))));
        fs::write(&path, "nonsense").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(rotate(&path, NOW), Err(KeyFault::Line(1))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "nonsense");
    }
}
