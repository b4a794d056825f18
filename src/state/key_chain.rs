//! The keys of the hash key's file as those of levels: a state has the first of them, as many as its level.

use super::{
    OpenFault,
    hash_key::{self, Secrets},
    keys::Keys,
};
use std::path::Path;

/// The keys of all levels.
pub(super) struct KeyChain(Secrets);

impl KeyChain {
    /// Reads the file; `None` if there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, OpenFault> {
        Ok(hash_key::read(path)?.map(Self))
    }

    /// Creates the file durably, with one key. If another process has just created one, that file is used.
    pub(super) fn make(path: &Path) -> Result<Self, OpenFault> {
        hash_key::make(path).map(Self)
    }

    /// The number of keys.
    pub(super) fn count(&self) -> usize {
        self.0.later.len().saturating_add(1)
    }

    /// The keys of a level; the further ones are prepared.
    fn of_level(&self, level: usize) -> Keys {
        let Secrets { first, later } = &self.0;
        let (used, prepared) = match later.split_at_checked(level.saturating_sub(1)) {
            Some(parts) => parts,
            None => (later.as_slice(), &[][..]),
        };
        Keys::of_level(first, used, prepared)
    }

    /// The keys of a new state: all of them.
    pub(super) fn newest(&self) -> Keys {
        self.of_level(self.count())
    }

    /// The keys of the level that has this check value; `None` if no level has it.
    pub(super) fn with_check(&self, check: &str) -> Option<Keys> {
        let mut levels = (1..=self.count()).map(|level| self.of_level(level));
        levels.find(|keys| keys.check_value() == check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_key::MOST_KEYS;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    #[test]
    fn a_key_is_added_behind_those_that_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["hash.key", "link.key"].map(|name| folder.path().join(name));
        let first = KeyChain::make(&path).unwrap().newest().check_value();
        let before = fs::read(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        symlink(&path, &link).unwrap();
        // What a command that was killed has left, and two files that it did not write.
        let left = format!("hash.key.{}", "0a".repeat(16));
        for name in [
            &left,
            "hash.key.bak",
            "other.0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a",
        ] {
            fs::write(folder.path().join(name), "left").unwrap();
        }
        hash_key::add(&link, 1).unwrap();
        assert!(!folder.path().join(left).exists());
        // Of two that add the second key, the later one finds it.
        hash_key::add(&path, 1).unwrap();
        let after = fs::read(&path).unwrap();
        assert_eq!((after.len(), &after[..32]), (64, &before[..]));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o440
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        let chain = KeyChain::read(&path).unwrap().unwrap();
        assert_eq!(chain.with_check(&first).unwrap().level(), 1);
        let second = chain.newest();
        assert_eq!(second.level(), 2);
        assert_eq!(chain.with_check(&second.check_value()).unwrap().level(), 2);
        let next = chain.with_check(&first).unwrap().next_level().unwrap();
        assert_eq!(next.keys.check_value(), second.check_value());
        assert!(chain.with_check("").is_none());
        for count in 2..MOST_KEYS {
            hash_key::add(&path, count).unwrap();
        }
        let full = hash_key::add(&path, MOST_KEYS).unwrap_err().to_string();
        assert!(full.contains("16 keys"), "{full}");
    }
}
