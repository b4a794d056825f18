//! The registers of TPPs: the EBA's register and the bank's own lists (CRT-7).
//!
//! A TPP is listed under the identity in its certificate, `PSD<country>-<NCA>-<id>`, in capitals (CRT-4). Registers and CAs write the id
//! with or without spaces and dashes. If a register does not have exactly this identity, the lookup takes the one entry that differs only
//! in spaces and dashes; if there are several such entries, the lookup takes none. A block applies to every such spelling. The registers
//! keep two sets of roles and three flags for each TPP.
//!
//! Deliberately not here: the requirements of an operation and the answers to callers (admission); agents, who use the certificate of the
//! institution that they act for; downloads, because the operator supplies the files.

// The EBA's export, what is downloaded in its place, and its stored entries.
mod begin;
mod eba;
mod listing;

pub use eba::EbaFault;
pub use listing::EbaListing;

use super::Roles;
use eba::EbaExport;
use portvakt_base::clock::Timestamp;
use portvakt_interface::{Forbidden, ForbiddenTpp, Permitted, PermittedTpp, Registered, TppId};
use std::{
    collections::HashSet,
    io::BufRead,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The registers in use. A reload replaces them as a whole.
#[derive(Debug)]
pub struct Registers {
    /// The EBA's register (CRT-4).
    listed: Registered<EbaListing>,
    /// The TPPs that the bank's own list allows: exactly these.
    allowed: Permitted<Roles>,
    /// The TPPs that the bank's own list blocks, in every spelling.
    blocked: Forbidden<()>,
    settings: RegisterSettings,
    /// The date of the EBA's file; `None` without a file.
    as_of: Option<Timestamp>,
    /// The counts of the EBA's file.
    read: Option<EbaFileCounts>,
    passed_stale: AtomicU64,
}

/// The settings of the registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterSettings {
    /// The country of the bank's interface, two capitals. A service that the EBA's register limits to countries must include this one.
    /// Default `NO`.
    pub host_country: String,
    /// The maximum age of the EBA's file. Default seven days.
    pub max_age: Duration,
    /// The action for an older file. Default refuse.
    pub stale: WhenStale,
}

impl Default for RegisterSettings {
    fn default() -> Self {
        Self {
            host_country: "NO".to_owned(),
            max_age: Duration::from_secs(7 * 24 * 3_600),
            stale: WhenStale::Refuse,
        }
    }
}

/// The action when the EBA's file exceeds its maximum age and the bank's own lists do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenStale {
    /// Refuses every request with 503.
    Refuse,
    /// Decides by the old file, and counts and logs the requests that depend on it. A TPP that is not in the file is refused, so that an
    /// old register does not admit everybody.
    Pass,
}

/// The entries of one TPP in the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The bank blocks the TPP; the other fields then do not count.
    pub blocked: bool,
    /// The roles in the bank's own list. Other banks need it, because they are not in the EBA's register.
    pub allowed: Roles,
    /// The authorisation in the EBA's register.
    pub listed: Option<EbaListing>,
}

impl Registration {
    /// The roles of the TPP by both registers.
    pub fn roles(&self) -> Roles {
        self.listed
            .map_or(self.allowed, |listed| self.allowed.or(listed.here))
    }
}

impl Registers {
    /// Registers without an entry: no TPP is registered.
    pub fn new(settings: RegisterSettings) -> Self {
        Self {
            listed: Registered::default(),
            allowed: Permitted::default(),
            blocked: Forbidden::default(),
            settings,
            as_of: None,
            read: None,
            passed_stale: AtomicU64::new(0),
        }
    }

    /// Reads the EBA's export as a stream. `modified` is the modification time of the file.
    ///
    /// The age of the file is that of its latest entry change, which copying does not affect. The file never counts as newer than its
    /// modification time, so an entry with a date in the future does not keep the file fresh for ever.
    ///
    /// # Errors
    /// The file is not the EBA's export (with line and column), or has no institution.
    pub fn take_eba(&mut self, reader: impl BufRead, modified: Timestamp) -> Result<(), EbaFault> {
        let export = EbaExport::read(reader, &self.settings.host_country)?;
        let said = export.latest.as_deref().and_then(eba::moment);
        self.as_of = Some(said.map_or(modified, |said| said.min(modified)));
        self.read = Some(EbaFileCounts {
            institutions: export.institutions,
            agents: export.agents,
            without_identity: export.without_identity,
        });
        // Certificates use the national id. Some authorities also number their institutions. Such a number is used only if no TPP has it as
        // its national id, because short numbers of different companies can collide.
        let mut listed = Registered::default();
        for (identity, listing) in export.by_national_id {
            listed.insert(identity, listing);
        }
        let mut codes = export.by_code;
        codes.retain(|code, _| !listed.has_alike(&ForbiddenTpp::of(code)));
        for (identity, listing) in codes {
            listed.insert(identity, listing);
        }
        self.listed = listed;
        Ok(())
    }

    /// Allows exactly this TPP in these roles, independent of the EBA's register.
    pub fn allow(&mut self, tpp: PermittedTpp, roles: Roles) {
        self.allowed.insert(tpp, roles);
    }

    /// Blocks a TPP in every spelling of its identity, independent of its other entries.
    pub fn block(&mut self, tpp: ForbiddenTpp) {
        self.blocked.insert(tpp, ());
    }

    /// Whether the bank's own list blocks this TPP.
    pub fn blocks(&self, tpp: &ForbiddenTpp) -> bool {
        self.blocked.tpps().any(|blocked| blocked == tpp)
    }

    /// The entries of the TPP with this identity; the default for an unknown TPP.
    pub fn find(&self, tpp: &TppId) -> Registration {
        Registration {
            blocked: self.blocked.get(tpp).is_some(),
            allowed: self.allowed.get(tpp).copied().unwrap_or_default(),
            listed: self.listed.get(tpp).copied(),
        }
    }

    /// The TPP that the bank's own list allows and whose identity differs from this one in spaces and dashes, for a hint to the operator.
    pub fn allowed_alike(&self, tpp: &TppId) -> Option<&TppId> {
        self.allowed.alike(tpp).filter(|other| *other != tpp)
    }

    /// Whether the EBA's file is past its maximum age.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.good_until().is_some_and(|last| now > last)
    }

    /// The last second in which the EBA's file is not too old; `None` without a file.
    pub fn good_until(&self) -> Option<Timestamp> {
        let max_age = self.settings.max_age.as_secs();
        let as_of = self.as_of?.unix();
        Some(Timestamp::from_unix(as_of.saturating_add(max_age)))
    }

    /// The settings of the registers.
    pub const fn settings(&self) -> &RegisterSettings {
        &self.settings
    }

    /// The number of TPPs with an entry. A block counts where nothing else names its TPP.
    pub fn len(&self) -> usize {
        let allowed = self.allowed.tpps();
        let only_allowed = allowed.filter(|tpp| !self.listed.has(tpp)).count();
        let allowed: HashSet<_> = self.allowed.tpps().map(ForbiddenTpp::of).collect();
        let blocked = self.blocked.tpps();
        let only_blocked =
            blocked.filter(|tpp| !self.listed.has_alike(tpp) && !allowed.contains(*tpp));
        let only_blocked = only_blocked.count();
        self.listed
            .len()
            .saturating_add(only_allowed)
            .saturating_add(only_blocked)
    }

    /// Whether no TPP has an entry.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.allowed.is_empty() && self.blocked.is_empty()
    }

    /// The date of the EBA's file; `None` without one.
    pub const fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// The counts of the EBA's file; `None` without one.
    pub const fn read(&self) -> Option<EbaFileCounts> {
        self.read
    }

    /// The authorisations in the EBA's file, one for each identity.
    pub fn listings(&self) -> impl Iterator<Item = EbaListing> + '_ {
        self.listed.values().copied()
    }

    /// The number of identities that differ from another one only in spaces and dashes. Only a certificate with exactly such an identity
    /// is found.
    pub fn spelled_alike(&self) -> usize {
        self.listed.spelled_alike()
    }

    /// Counts a request that passed although the file exceeds its maximum age.
    pub fn pass_stale(&self) {
        self.passed_stale.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of requests that passed although the file exceeded its maximum age.
    pub fn passed_stale(&self) -> u64 {
        self.passed_stale.load(Ordering::Relaxed)
    }
}

/// The counts of the EBA's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EbaFileCounts {
    /// The number of entries other than agents.
    pub institutions: u64,
    /// The number of agents, which are not kept.
    pub agents: u64,
    /// The number of institutions without an authority or an id, which no certificate can name.
    pub without_identity: u64,
}

#[cfg(test)]
mod tests;
