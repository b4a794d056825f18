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
        hash_key::read(path)?
            .ok_or_else(missing)
            .map(|key| Some(Self(key)))
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
}
