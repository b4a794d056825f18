//! Times in the form of the tables.

use portvakt_base::clock::Timestamp;

/// A time for a bigint.
pub(super) fn seconds(at: Timestamp) -> i64 {
    i64::try_from(at.unix()).unwrap_or(i64::MAX)
}

/// A stored time.
pub(super) fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_unix(u64::try_from(seconds).unwrap_or(0))
}
