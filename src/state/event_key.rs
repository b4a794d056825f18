//! The bank's key for the customers in events (CTL-3).

use super::{
    events::CustomerPseudonym,
    hash_key,
    settings::{EventSettings, OpenFault},
};
use aws_lc_rs::hmac;

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

    /// A value that identifies the key, as it is stored beside the rows. It is the pseudonym of no customer, because a customer is UTF-8.
    fn check_value(&self) -> String {
        self.pseudonym(b"\xff key check").to_string()
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
        Ok(key.map(|key| key.check_value()))
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
        assert_eq!(one.check_value(), EventKey([1; 32]).check_value());
        assert_ne!(one.check_value(), other.check_value());
        assert!(!one.check_value().contains("0101"));
    }
}
