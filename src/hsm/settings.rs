//! Where a key is, and how it may be used.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    sync::LazyLock,
    time::Duration,
};

/// The key of fingerprints, which ends with the process.
static FINGERPRINTS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The PIN of a token's user. `Debug` shows stars.
#[derive(Clone, PartialEq, Eq)]
pub struct Pin(String);

impl Pin {
    /// Wraps the PIN.
    pub fn new(pin: impl Into<String>) -> Self {
        Self(pin.into())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Equal for equal PINs within this process. It outlives the PIN, which is why it is none.
    pub(crate) fn fingerprint(&self) -> u64 {
        FINGERPRINTS.hash_one(self.0.as_bytes())
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// A key in a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pkcs11Settings {
    /// The vendor's library.
    pub module: PathBuf,
    /// The label of the token.
    pub token: String,
    /// The label of the private key (`CKA_LABEL`).
    pub label: String,
    /// The PIN of the token's user.
    pub pin: Pin,
    /// The most signatures at the same time, each in a session; the probe may have one more. Four times as many wait.
    pub sessions: usize,
    /// The longest time that a caller waits for a signature.
    pub timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_prints_as_stars() {
        assert_eq!(format!("{:?}", Some(Pin::new("1234"))), "Some(***)");
    }

    #[test]
    fn a_fingerprint_is_that_of_the_bytes() {
        let [one, same, other] = ["1234", "1234", "1234 "].map(|text| Pin::new(text).fingerprint());
        assert_eq!(one, same);
        assert_ne!(one, other);
    }
}
