//! The bank's key for the customers in events (CTL-3).

use super::{
    events::CustomerPseudonym,
    hash_key,
    settings::{EventSettings, OpenFault},
};
use aws_lc_rs::hmac;
use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// The bank's key for the customers in events: 32 bytes, never shown.
pub(super) struct EventKey([u8; 32]);

impl EventKey {
    /// Reads the key of the settings; `None` if they name none.
    ///
    /// # Errors
    /// There is no such file, others may read it, or it is no key.
    pub(super) fn read(settings: &EventSettings) -> Result<Option<Self>, OpenFault> {
        let Some(path) = &settings.customer_key else {
            return Ok(None);
        };
        let missing = || {
            let text = "there is no such file, and the gateway never makes it";
            OpenFault::File(path.clone(), std::io::Error::other(text))
        };
        hash_key::read_one(path)?
            .ok_or_else(missing)
            .map(|key| Some(Self(key)))
    }

    /// A value that identifies the key. It is the pseudonym of no customer, because a customer is UTF-8.
    pub(super) fn check(&self) -> KeyCheck {
        KeyCheck(self.pseudonym(b"\xff key check"))
    }

    pub(super) fn pseudonym(&self, customer: &[u8]) -> CustomerPseudonym {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let tag = hmac::sign(&key, customer);
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        CustomerPseudonym::from_bytes(bytes)
    }
}

/// A value that identifies a key for customers, as it is stored beside the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyCheck(CustomerPseudonym);

impl KeyCheck {
    /// Whether it is the value that a state has recorded.
    pub(super) fn is(self, recorded: Option<&str>) -> bool {
        recorded.is_some_and(|recorded| recorded == self.to_string())
    }
}

impl fmt::Display for KeyCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The key of this process, beside the one that the state has recorded: the bank may change the key while the process runs.
#[derive(Default)]
pub(super) struct KeyInUse {
    own: OnceLock<KeyCheck>,
    is_former: AtomicBool,
}

impl KeyInUse {
    /// Keeps the key of this process.
    pub(super) fn begin(&self, own: KeyCheck) {
        let _ = self.own.set(own);
    }

    /// Compares what the state has recorded. What a decision may use is compared in its own transaction.
    pub(super) fn heed(&self, recorded: Option<&str>) {
        let is_former = self.own.get().is_some_and(|own| !own.is(recorded));
        if self.is_former.swap(is_former, Ordering::Relaxed) == is_former {
            return;
        }
        if is_former {
            tracing::error!("the state has another key for customers: {FORMER}");
        } else {
            tracing::info!("the state has the key for customers of this process again");
        }
    }

    /// What the operator has to do, if the state has recorded another key.
    pub(super) fn fault(&self) -> Option<&'static str> {
        self.is_former.load(Ordering::Relaxed).then_some(FORMER)
    }
}

const FORMER: &str = "restart this gateway with the new state.events.customer_key; it names no customer in events meanwhile";

impl EventSettings {
    /// Checks the key, if the settings name one.
    ///
    /// # Errors
    /// There is no such file, others may read it, or it is no key.
    pub fn check(&self) -> Result<(), OpenFault> {
        EventKey::read(self).map(drop)
    }

    /// The check value of the key; `None` if the settings name no key.
    ///
    /// # Errors
    /// There is no such file, others may read it, or it is no key.
    pub(super) fn key_check(&self) -> Result<Option<String>, OpenFault> {
        let key = EventKey::read(self)?;
        Ok(key.map(|key| key.check().to_string()))
    }

    /// Judges the check value that a state has recorded. Returns the one to record where there is none.
    pub(super) fn judge_key(&self, found: Option<String>) -> Result<Option<String>, OpenFault> {
        let (Some(path), Some(own)) = (&self.customer_key, self.key_check()?) else {
            return Ok(None);
        };
        match found {
            None => Ok(Some(own)),
            Some(found) if found == own => Ok(None),
            Some(_) => Err(OpenFault::CustomerKeyForeign(path.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= CTL-3 accepted
    #[test]
    fn the_check_value_tells_keys_apart_and_shows_none() {
        let [one, other] = [[1; 32], [2; 32]].map(EventKey);
        assert_eq!(one.check(), EventKey([1; 32]).check());
        assert_ne!(one.check(), other.check());
        let text = one.check().to_string();
        assert!(!text.contains("0101"));
        assert!(one.check().is(Some(&text)));
        assert!(!other.check().is(Some(&text)));
        assert!(!one.check().is(None));
    }
}
