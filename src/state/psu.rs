//! What is known of a PSU: facts with their times, and no judgement of them.

use super::Hash;
use crate::clock::Timestamp;

/// A PSU that is bound to a TPP (SCA-3). Consent is apart from SCA (SCA-18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psu {
    /// Whether only the core's answer binds it, and not the bank's own word (SCA-19).
    pub learned: bool,
    /// When the PSU last completed an SCA for this TPP, whatever it was for (SCA-7); none where nobody said.
    pub last_sca: Option<Timestamp>,
    /// The one session of (TPP, PSU), if any was completed and not ended since (SCA-6, SCA-16). It may have expired.
    pub session: Option<Session>,
    /// The contexts that SCA was completed in: the private one, and one for each corporate agreement (SCA-17).
    pub contexts: Vec<Context>,
}

/// A TPP-Session-ID with which an SCA was completed (SCA-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The keyed hash of the TPP-Session-ID.
    pub id: Hash,
    /// When the SCA was completed; it never slides (SCA-5).
    pub completed: Timestamp,
}

/// One context of a PSU: PRIVATE, or one corporate agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The keyed hash of the PSU-Corporate-ID; none is PRIVATE.
    pub corporate: Option<Hash>,
    /// When an SCA was last completed in this context (QUO-9); none where nobody said.
    pub last_sca: Option<Timestamp>,
    /// The consent to account information, if given and not withdrawn (SCA-18).
    pub consent: Option<Consent>,
}

/// A PSU's consent to account information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// When it was given; QUO-10 counts from here.
    pub given: Timestamp,
    /// For which accounts.
    pub accounts: Accounts,
}

/// The accounts of a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accounts {
    /// All of them.
    All,
    /// These, by the keyed hashes of their ids.
    Named(Vec<Hash>),
}

impl Psu {
    /// The context of a corporate agreement, or the private one.
    pub fn context(&self, corporate: Option<Hash>) -> Option<&Context> {
        self.contexts
            .iter()
            .find(|context| context.corporate == corporate)
    }
}

impl Accounts {
    /// Whether an account is among them.
    pub fn include(&self, account: Hash) -> bool {
        match self {
            Self::All => true,
            Self::Named(accounts) => accounts.contains(&account),
        }
    }
}
