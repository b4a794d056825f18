//! A PSU's binding, session and consents: facts with their times. Admission decides the permissions that follow.

use super::{
    AccountHash, CorporateHash, CustomerHash, CustomerPseudonym, Keys, SessionHash,
    customer::NamedCustomer,
};
use portvakt_base::clock::Timestamp;

/// A PSU that is bound to a TPP (SCA-3). A consent is independent of an SCA (SCA-18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psu {
    /// Whether only the core's answer binds the PSU, and no statement of the bank (SCA-19).
    pub learned: bool,
    /// The time of the PSU's last completed SCA for this TPP, for any purpose (SCA-7); `None` if unknown.
    pub last_sca: Option<Timestamp>,
    /// The one session of (TPP, PSU), if one was completed and not ended since (SCA-6, SCA-16). It may have expired.
    pub session: Option<Session>,
    /// The contexts in which an SCA was completed: the private one, and one for each corporate agreement (SCA-17).
    pub contexts: Vec<Context>,
    /// The keyed hash of the bank's own key for its customer, if the bank named one (CTL-1).
    pub customer: Option<CustomerHash>,
    /// The customer as events name it (CTL-3); `None` if the bank named none, or there was no key for it.
    pub pseudonym: Option<CustomerPseudonym>,
    /// The last SCA by whose age the consents have ended, as it was noted (CTL-3). Consents have not ended if it is another one.
    pub consents_ended: Option<Timestamp>,
}

/// A TPP-Session-ID with which an SCA was completed (SCA-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The keyed hash of the TPP-Session-ID.
    pub id: SessionHash,
    /// The time at which the SCA was completed; use does not extend the session (SCA-5).
    pub completed: Timestamp,
}

/// One context of a PSU: PRIVATE, or one corporate agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The keyed hash of the PSU-Corporate-ID; `None` is PRIVATE.
    pub corporate: Option<CorporateHash>,
    /// Who confirmed the context.
    pub origin: ContextOrigin,
    /// The time of the last completed SCA in this context (QUO-9); `None` if unknown.
    pub last_sca: Option<Timestamp>,
    /// The consent to account information, if given and not withdrawn (SCA-18).
    pub consent: Option<Consent>,
    /// The first second of the last day (UTC) on which the TPP used the context (CTL-1); `None` if unknown.
    pub used: Option<Timestamp>,
}

/// Who confirmed a context of a PSU (SCA-17, SCA-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextOrigin {
    /// A version before the mark wrote it. While PSUs were learned, such versions kept every agreement that a TPP named.
    Unknown,
    /// The bank said it by a call: a completed SCA, or `POST /psu/bind`.
    Bank,
    /// The bank imported it.
    Import,
    /// The core said it by a header of its answer, while PSUs were learned.
    Core,
}

/// A PSU's consent to account information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// The time of the consent; QUO-10 counts from it.
    pub given: Timestamp,
    /// The accounts of the consent.
    pub accounts: Accounts,
}

/// The accounts of a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accounts {
    /// All of them.
    All,
    /// These, by the keyed hashes of their ids.
    Named(Vec<AccountHash>),
}

/// The accounts that a consent is given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsentAccounts {
    /// All of them.
    All,
    /// These, by their percent-decoded ids. The store keeps their hashes.
    Named(Vec<String>),
}

impl Psu {
    /// The context of a corporate agreement, or the private one.
    pub fn context(&self, corporate: Option<CorporateHash>) -> Option<&Context> {
        self.contexts
            .iter()
            .find(|context| context.corporate == corporate)
    }

    /// Keeps the customer that the bank names. A gateway without the key for events that the state has recorded leaves what another one
    /// computed.
    pub(super) fn set_customer(&mut self, named: Option<NamedCustomer>, recorded: Option<&str>) {
        let Some(named) = named else {
            return;
        };
        let is_known = self.customer == Some(named.customer);
        let known = self.pseudonym.filter(|_| is_known);
        self.customer = Some(named.customer);
        self.pseudonym = named.pseudonym(recorded).or(known);
    }

    /// Changes the context of a corporate agreement, or the private one, by the word of `origin`; creates it if there is none. Contexts are
    /// sorted by their hashes, the private one first.
    pub(super) fn update_context(
        &mut self,
        corporate: Option<CorporateHash>,
        origin: ContextOrigin,
        change: impl FnOnce(&mut Context),
    ) {
        let found = self
            .contexts
            .binary_search_by_key(&corporate, |context| context.corporate);
        match found {
            Ok(index) => {
                if let Some(context) = self.contexts.get_mut(index) {
                    context.origin = context.origin.confirmed_by(origin);
                    change(context);
                }
            }
            Err(index) => {
                let mut context = Context {
                    corporate,
                    origin,
                    last_sca: None,
                    consent: None,
                    used: None,
                };
                change(&mut context);
                self.contexts.insert(index, context);
            }
        }
    }
}

impl ContextOrigin {
    const ALL: [Self; 4] = [Self::Unknown, Self::Bank, Self::Import, Self::Core];

    /// The number in the tables.
    pub(super) fn number(self) -> i64 {
        let position = Self::ALL.iter().position(|origin| *origin == self);
        position.map_or(0, |position| i64::try_from(position).unwrap_or(0))
    }

    /// The origin of a stored row. A number that this version does not write says nothing about the origin.
    pub(super) fn stored(number: i64) -> Self {
        let position = usize::try_from(number).ok();
        let stored = position.and_then(|position| Self::ALL.get(position));
        stored.copied().unwrap_or(Self::Unknown)
    }

    /// The origin of a context that is stated again: the bank's own word stays, and replaces any other.
    const fn confirmed_by(self, origin: Self) -> Self {
        match self {
            Self::Bank | Self::Import => self,
            Self::Unknown | Self::Core => origin,
        }
    }
}

impl Accounts {
    /// The same accounts, hashed.
    pub(super) fn hashed(keys: &Keys, accounts: &ConsentAccounts) -> Self {
        match accounts {
            ConsentAccounts::All => Self::All,
            ConsentAccounts::Named(ids) => {
                Self::Named(ids.iter().map(|id| keys.account(id)).collect())
            }
        }
    }

    /// Whether both name the same accounts, in whatever order and number.
    pub(super) fn are_those_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::Named(these), Self::Named(those)) => {
                these.iter().all(|account| those.contains(account))
                    && those.iter().all(|account| these.contains(account))
            }
            (Self::All, Self::Named(_)) | (Self::Named(_), Self::All) => false,
        }
    }

    /// Whether the consent includes an account.
    pub fn include(&self, account: AccountHash) -> bool {
        match self {
            Self::All => true,
            Self::Named(accounts) => accounts.contains(&account),
        }
    }
}
