//! The settings of SCA.

use super::{
    KeyFault, Links, SealsFault, TokenKeys,
    seals::{self, Seals},
};
use crate::{clock::Timestamp, interface::operations::Environment};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// The section `sca` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaSettings {
    /// The bank's SCA page, the target of links: an absolute URL without a fragment.
    pub page: String,
    /// The file of token keys; the first start creates it. Default `../state/sca-token.keys`.
    pub token_keys: PathBuf,
    /// The file that counts their seals; the first start creates it. Default: `token_keys` with the suffix `.seals`.
    pub token_seals: PathBuf,
    /// The lifetime of a link. Default 15 min.
    pub token_lifetime: Duration,
    /// The requirement of account information with the PSU present (SCA-16). Default `session-when-sent`.
    pub psu_present: PsuPresent,
    /// The treatment of a PSU-ID that no SCA gave to the TPP (SCA-19). Default `refuse`.
    pub unknown_psu: UnknownPsu,
}

/// The requirement of account information with the PSU present (SCA-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PsuPresent {
    /// A valid session if TPP-Session-ID is sent, otherwise a consent.
    #[default]
    SessionWhenSent,
    /// Always a valid session.
    Session,
    /// A consent is sufficient.
    Consent,
}

/// The treatment of a PSU-ID that no SCA gave to the TPP (SCA-19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownPsu {
    /// The PSU-ID counts as absent.
    #[default]
    Refuse,
    /// The PSU-ID is forwarded, and bound to the TPP if the core confirms it.
    Learn {
        /// The start of the first day of learning.
        since: Timestamp,
        /// The first second after learning.
        until: Timestamp,
    },
}

impl UnknownPsu {
    /// Whether PSU-IDs are learned at this time.
    pub fn is_learned(self, now: Timestamp) -> bool {
        match self {
            Self::Learn { since, until } => (since..until).contains(&now),
            Self::Refuse => false,
        }
    }
}

impl ScaSettings {
    /// The links of a gateway with its token keys; creates the keys if there are none.
    ///
    /// # Errors
    /// The reason why the key file cannot be used or created.
    pub fn links(&self, environment: Environment, now: Timestamp) -> Result<Links, KeyFault> {
        let keys = TokenKeys::read_or_make(&self.token_keys, now)?;
        let seals = Seals::open(&self.token_seals).map_err(|fault| self.uncounted(fault))?;
        Ok(self.counted(environment, keys, Arc::new(seals)))
    }

    /// The links after a reload. A reload creates no keys, because new keys in place of a lost file would invalidate every pending SCA. The
    /// counts of seals continue.
    ///
    /// # Errors
    /// The reason why the key file cannot be used.
    pub fn links_again(&self, environment: Environment, before: &Links) -> Result<Links, KeyFault> {
        let keys = TokenKeys::read(&self.token_keys)?;
        let seals = match before.seals() {
            seals if seals.is_of(&self.token_seals) => Arc::clone(seals),
            _ => Arc::new(Seals::open(&self.token_seals).map_err(|fault| self.uncounted(fault))?),
        };
        Ok(self.counted(environment, keys, seals))
    }

    /// The number of tokens that each key of the files has sealed, by the key's id. Empty if a file is missing or cannot be used, which the
    /// start reports.
    pub fn sealed(&self) -> Vec<(String, u64)> {
        let keys = TokenKeys::read(&self.token_keys).ok();
        let counts = seals::counts(&self.token_seals).ok();
        let Some((keys, counts)) = keys.zip(counts) else {
            return Vec::new();
        };
        let counts = counts.into_iter();
        let used = counts.filter(|(id, _)| keys.find(id.to_be_bytes()).is_some());
        used.map(|(id, count)| (format!("{id:08x}"), count))
            .collect()
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
