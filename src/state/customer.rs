//! The bank's own key for one of its customers (CTL-1).
//!
//! It links PSU-IDs of several TPPs, which nothing else in the state does: so it is optional, kept as a keyed hash, and can be forgotten.

use super::{CustomerHash, CustomerPseudonym, event_key::KeyCheck};
use std::fmt;

/// The most characters of a key.
const LONGEST: usize = 128;

/// The bank's own key for its customer: opaque, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct CustomerKey(String);

impl CustomerKey {
    /// A key of 1 to 128 characters, without control characters, and without space at its ends.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = !text.is_empty()
            && text.trim() == text
            && text.chars().count() <= LONGEST
            && !text.chars().any(char::is_control);
        is_key.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CustomerKey(***)")
    }
}

/// A customer of the bank, as it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedCustomer {
    pub(super) customer: CustomerHash,
    /// The customer as events name it, and the key that made this of it (CTL-3).
    pub(super) pseudonym: Option<(CustomerPseudonym, KeyCheck)>,
}

impl NamedCustomer {
    /// The customer as events name it, if it was made with the key that the state has recorded: the bank may have changed the key since
    /// this process began.
    pub(super) fn pseudonym(&self, recorded: Option<&str>) -> Option<CustomerPseudonym> {
        let (pseudonym, key) = self.pseudonym?;
        key.is(recorded).then_some(pseudonym)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_customers() {
        let longest = "ø".repeat(LONGEST);
        for key in ["1", "0042 A", longest.as_str()] {
            assert!(CustomerKey::parse(key).is_some(), "{key}");
        }
        let longer = longest.clone() + "a";
        for key in ["", " 1", "1 ", "a\nb", "a\u{85}b", longer.as_str()] {
            assert!(CustomerKey::parse(key).is_none(), "{key:?}");
        }
        let key = CustomerKey::parse("1").unwrap();
        assert_eq!(format!("{key:?}"), "CustomerKey(***)");
    }
}
