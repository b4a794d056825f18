//! The form of values in the tables of every engine: what one wrote, `portvakt state copy` writes into another.

use crate::{Accounts, CorporateHash, Hash};
use portvakt_base::clock::Timestamp;

/// A time, in seconds since 1970.
pub(crate) fn seconds(at: Timestamp) -> i64 {
    i64::try_from(at.unix()).unwrap_or(i64::MAX)
}

/// The time of stored seconds.
pub(crate) fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_unix(u64::try_from(seconds).unwrap_or(0))
}

/// The agreement of a context; that of a private one is empty.
pub(crate) fn corporate_bytes(corporate: Option<CorporateHash>) -> Vec<u8> {
    corporate.map_or_else(Vec::new, |hash| hash.as_bytes().to_vec())
}

/// The agreement of stored bytes.
pub(crate) fn corporate(stored: &[u8]) -> Option<CorporateHash> {
    hash(stored)
}

/// The accounts of a consent: concatenated hashes; `None` means all accounts.
pub(crate) fn accounts_bytes(accounts: &Accounts) -> Option<Vec<u8>> {
    match accounts {
        Accounts::All => None,
        Accounts::Named(accounts) => {
            let bytes = accounts.iter().flat_map(|account| *account.as_bytes());
            Some(bytes.collect())
        }
    }
}

/// The accounts of stored bytes.
pub(crate) fn accounts(stored: Option<&[u8]>) -> Accounts {
    stored.map_or(Accounts::All, |bytes| {
        Accounts::Named(bytes.chunks(16).filter_map(hash).collect())
    })
}

fn hash<K>(bytes: &[u8]) -> Option<Hash<K>> {
    bytes.try_into().ok().map(Hash::from_bytes)
}
