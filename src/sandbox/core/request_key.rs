//! The name of an SCA request in this bank's records.
//!
//! Invariant: it does not reveal the request's token. Deliberately not here: what is recorded under it (ending.rs, page.rs).

use portvakt_base::hex;
use sha2::{Digest, Sha256};

/// A request's token, hashed: the ledger does not keep the token when the SCA has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestKey(String);

impl RequestKey {
    /// The key of a token.
    pub(super) fn of(request: &str) -> Self {
        Self(hex::encode(&Sha256::digest(request)))
    }

    /// A key that the ledger holds.
    pub(super) const fn stored(hash: String) -> Self {
        Self(hash)
    }

    /// The hash, in hexadecimal.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}
