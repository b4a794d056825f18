//! One register: whom it lists, and how old it is.

use super::{Listing, listing::Entry};
use crate::Roles;
use portvakt_base::clock::Timestamp;
use portvakt_interface::{Registered, TppId};
use std::{fmt, time::Duration};

/// The name of the EBA's register of payment and e-money institutions.
pub const EBA: &str = "eba";

/// A register as it was read from its file.
#[derive(Debug)]
pub struct Register {
    /// Its name in metrics, events and errors.
    pub(super) name: RegisterName,
    pub(super) entries: Registered<Entry>,
    /// The date of its content.
    pub(super) as_of: Timestamp,
    /// The age from which it no longer authorises.
    pub(super) max_age: Duration,
    /// The effect of an authorisation that it has as withdrawn.
    pub(super) withdrawn: WhenWithdrawn,
    pub(super) counts: FileCounts,
    /// Words for roles that the mapping does not name, the first few.
    pub(super) unknown_roles: Vec<String>,
}

/// The name of a register. Its text in a sentence is "the EBA's register" or "the register NAME".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterName(Box<str>);

/// The effect of an authorisation that one register has as withdrawn, where another one still has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenWithdrawn {
    /// The TPP is refused: no other register authorises it.
    #[default]
    Refuse,
    /// The entry authorises nothing, and the other registers decide.
    Ignore,
}

/// The counts of a register's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// The number of entries other than agents.
    pub institutions: u64,
    /// The number of agents, which are not kept.
    pub agents: u64,
    /// The number of institutions without an authority or an id, which no certificate can name.
    pub without_identity: u64,
    /// The number of the other institutions whose authorisation stands.
    pub authorised: u64,
    /// The number of those that have PSP_AI or PSP_PI in the host country.
    pub with_role: u64,
    /// The number of entries, agents too, with the date of their last change.
    pub dated: u64,
}

impl FileCounts {
    /// Counts an institution by its authorisation; `None` for one that no certificate can name.
    pub(super) fn add(&mut self, listed: Option<Listing>) {
        let add = |count: &mut u64, counts: bool| {
            *count = count.saturating_add(u64::from(counts));
        };
        let has_role = |roles: Roles| roles.payment_initiation() || roles.account_information();
        add(&mut self.institutions, true);
        add(&mut self.without_identity, listed.is_none());
        let listed = listed.unwrap_or_default();
        add(&mut self.authorised, listed.authorised);
        add(&mut self.with_role, has_role(listed.here));
    }

    /// Counts an agent.
    pub(super) const fn add_agent(&mut self) {
        self.agents = self.agents.saturating_add(1);
    }

    /// Counts the date of an entry.
    pub(super) const fn add_date(&mut self) {
        self.dated = self.dated.saturating_add(1);
    }
}

impl RegisterName {
    /// The name of a register: `eba`, or a key of `registers.lists`.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name alone, as in the configuration.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RegisterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            EBA => f.write_str("the EBA's register"),
            name => write!(f, "the register {name}"),
        }
    }
}

impl Register {
    /// The name.
    pub const fn name(&self) -> &RegisterName {
        &self.name
    }

    /// The date of its content: that of the latest change of an entry, but never later than the modification time of the file.
    pub const fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// The age from which it no longer authorises.
    pub const fn max_age(&self) -> Duration {
        self.max_age
    }

    /// The last second in which it is not too old.
    pub fn good_until(&self) -> Timestamp {
        let max_age = self.max_age.as_secs();
        Timestamp::from_unix(self.as_of.unix().saturating_add(max_age))
    }

    /// Whether it is past its maximum age.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        now > self.good_until()
    }

    /// The effect of an authorisation that it has as withdrawn.
    pub const fn when_withdrawn(&self) -> WhenWithdrawn {
        self.withdrawn
    }

    /// The counts of its file.
    pub const fn counts(&self) -> FileCounts {
        self.counts
    }

    /// Words for roles that stand in the file and that the mapping does not name: the first few.
    pub fn unknown_roles(&self) -> &[String] {
        &self.unknown_roles
    }

    /// The number of identities.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no identity.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The authorisation of the TPP with this identity (CRT-4).
    pub fn find(&self, tpp: &TppId) -> Option<Listing> {
        self.entries.get(tpp).map(|entry| entry.listing)
    }

    /// The name of the TPP with this identity, if the file has one: at most 128 characters, none of them a control character.
    pub fn tpp_name(&self, tpp: &TppId) -> Option<&str> {
        self.entries.get(tpp)?.name()
    }

    /// The authorisations, one for each identity.
    pub fn listings(&self) -> impl Iterator<Item = Listing> + '_ {
        self.entries.values().map(|entry| entry.listing)
    }

    /// The number of identities that differ from another one only in spaces and dashes. Only a certificate with exactly such an identity
    /// is found.
    pub fn spelled_alike(&self) -> usize {
        self.entries.spelled_alike()
    }
}
