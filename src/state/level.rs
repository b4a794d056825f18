//! The level of the hash key that an open state has, and whether a rotation ended it.
//!
//! A process computes the hashes of one level. Where the state has another one, its rows cannot be found, and a row that is not found looks
//! like one that is not there. So each transaction and each answer compares the check value of the state with that of this process.
//! Invariant: after a difference nothing of the state is used until the process is started again.

use super::{OpenFault, StateSettings, freshness::Freshness, key_chain::KeyChain, keys::Keys};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

/// The level of this process.
pub(super) struct OwnLevel {
    check: String,
    key: PathBuf,
    freshness: Arc<Freshness>,
    /// Another check value that was found.
    other: OnceLock<String>,
}

impl OwnLevel {
    /// The level of these keys, of a state that reports to `freshness`.
    pub(super) fn new(keys: &Keys, settings: &StateSettings, freshness: Arc<Freshness>) -> Self {
        Self {
            check: keys.check_value(),
            key: settings.hash_key.clone(),
            freshness,
            other: OnceLock::new(),
        }
    }

    /// The check value of this process.
    pub(super) fn check_value(&self) -> &str {
        &self.check
    }

    /// Compares the check value of the state.
    ///
    /// # Errors
    /// The reason for the operator: nothing of the state is used any more.
    pub(super) fn judge(&self, found: &str) -> Result<(), String> {
        if found != self.check && self.other.set(found.to_owned()).is_ok() {
            self.freshness.end();
            tracing::error!(
                fault = self.is_current().err(),
                "the state is not used any more"
            );
        }
        self.is_current()
    }

    /// Whether no other level was found.
    ///
    /// # Errors
    /// The reason for the operator.
    pub(super) fn is_current(&self) -> Result<(), String> {
        match self.other.get() {
            None => Ok(()),
            Some(found) => Err(rotated(&self.key, found)),
        }
    }
}

/// Tells the operator what to do about another check value.
fn rotated(key: &Path, found: &str) -> String {
    let chain = KeyChain::read(key).ok().flatten();
    match chain.and_then(|chain| chain.with_check(found)) {
        Some(_) => "the hash key of the state was rotated: restart the gateway".to_owned(),
        None => format!(
            "the hash key of the state was rotated, and {} lacks the new key: copy the file from the machine on which `portvakt state \
             rotate-hash-key` ran, then restart the gateway",
            key.display()
        ),
    }
}

/// The fault of a key file that has no key with the check value of a state: it lacks the last key if the state has this level by its
/// record, and otherwise it is another one.
pub(super) fn foreign(key: &Path, level: Option<String>, other: OpenFault) -> OpenFault {
    let level = level.and_then(|level| level.parse::<usize>().ok());
    match level {
        Some(level) if level > 1 => OpenFault::KeyRotated {
            key: key.to_owned(),
            level,
        },
        _ => other,
    }
}
