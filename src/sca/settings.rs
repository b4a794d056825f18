//! How SCA is asked for, as the operator set it.

use super::{KeyFault, Links, SealsFault, TokenKeys, seals::Seals};
use crate::{clock::Timestamp, interface::operations::Environment};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// The section `sca` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaSettings {
    /// The bank's SCA page, which links lead to: an absolute URL without a fragment.
    pub page: String,
    /// The file of token keys; made at the first start. Default `../state/sca-token.keys`.
    pub token_keys: PathBuf,
    /// The file that counts their seals; made at the first start. Default beside `token_keys`, with `.seals` behind.
    pub token_seals: PathBuf,
    /// How long a link is good. Default 15 min.
    pub token_lifetime: Duration,
    /// The need of account information with the PSU present (SCA-16). Default `session-when-sent`.
    pub psu_present: PsuPresent,
    /// The treatment of a PSU-ID that no SCA gave out (SCA-19). Default `refuse`.
    pub unknown_psu: UnknownPsu,
}

/// The need of account information with the PSU present (SCA-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PsuPresent {
    /// A valid session where TPP-Session-ID is sent, else a consent.
    #[default]
    SessionWhenSent,
    /// A valid session, always.
    Session,
    /// A consent is enough.
    Consent,
}

/// The treatment of a PSU-ID that no SCA gave out (SCA-19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownPsu {
    /// It is as good as none.
    #[default]
    Refuse,
    /// It is forwarded, and bound to the TPP where the core knows it.
    Learn {
        /// The start of the first day of it.
        since: Timestamp,
        /// The first moment at which it is over.
        until: Timestamp,
    },
}

impl UnknownPsu {
    /// Whether it is learned now.
    pub fn is_learned(self, now: Timestamp) -> bool {
        match self {
            Self::Learn { since, until } => (since..until).contains(&now),
            Self::Refuse => false,
        }
    }
}

impl ScaSettings {
    /// The links of a gateway, with its token keys; they are made where there are none yet.
    ///
    /// # Errors
    /// Why the file of keys cannot be used or made.
    pub fn links(&self, environment: Environment, now: Timestamp) -> Result<Links, KeyFault> {
        let keys = TokenKeys::read_or_make(&self.token_keys, now)?;
        let seals = Seals::open(&self.token_seals).map_err(|fault| self.uncounted(fault))?;
        Ok(self.counted(environment, keys, Arc::new(seals)))
    }

    /// The links after a reload. Keys are not made then: a file that is gone would end every SCA under way. Their seals
    /// are counted on.
    ///
    /// # Errors
    /// Why the file of keys cannot be used.
    pub fn links_again(&self, environment: Environment, before: &Links) -> Result<Links, KeyFault> {
        let keys = TokenKeys::read(&self.token_keys)?;
        let seals = match before.seals() {
            seals if seals.is_of(&self.token_seals) => Arc::clone(seals),
            _ => Arc::new(Seals::open(&self.token_seals).map_err(|fault| self.uncounted(fault))?),
        };
        Ok(self.counted(environment, keys, seals))
    }

    fn counted(&self, environment: Environment, keys: TokenKeys, seals: Arc<Seals>) -> Links {
        let page = self.page.as_str();
        Links::counted(page, self.token_lifetime, environment, keys, seals)
    }

    fn uncounted(&self, fault: SealsFault) -> KeyFault {
        KeyFault::Seals(self.token_seals.clone(), fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_begins_and_ends() {
        let [since, until] = [10, 20].map(Timestamp::from_unix);
        let learn = UnknownPsu::Learn { since, until };
        let at = |seconds| learn.is_learned(Timestamp::from_unix(seconds));
        assert_eq!([9, 10, 19, 20].map(at), [false, true, true, false]);
        assert!(!UnknownPsu::Refuse.is_learned(since));
    }
}
