//! Where a key is, and how it may be used.

use std::{fmt, path::PathBuf, time::Duration};

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
}
