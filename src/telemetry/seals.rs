//! The number of SCA tokens that each key has sealed, and the limit at which the key must be rotated.

use super::{
    samples::{Families, number},
    table,
};
use crate::sca::{MOST_SEALS, SEALS_ALERT};

/// Adds the samples. The label is the key's id, which every token contains.
pub(super) fn add(keys: &[(String, u64)], to: &mut Families) {
    let keys = keys
        .iter()
        .map(|(key, count)| (key.as_str(), number(*count)));
    to.each(&table::TOKEN_SEALS, keys);
    to.one(&table::TOKEN_SEALS_ALERT, number(SEALS_ALERT));
    to.one(&table::TOKEN_SEALS_LIMIT, number(MOST_SEALS));
}
