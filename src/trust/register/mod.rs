//! The registers of TPPs: the EBA's register and the bank's own lists (CRT-7).
//!
//! A TPP is listed under the identity in its certificate, `PSD<country>-<NCA>-<id>`, in capitals (CRT-4). Registers and CAs write the id
//! with or without spaces and dashes. If a register does not have exactly this identity, the lookup takes the one entry that differs only
//! in spaces and dashes; if there are several such entries, the lookup takes none. A block applies to every such spelling. The registers
//! keep two sets of roles and three flags for each TPP.
//!
//! Deliberately not here: the requirements of an operation and the answers to callers (admission); agents, who use the certificate of the
//! institution that they act for; downloads, because the operator supplies the files.

// The EBA's export, and its stored entries.
mod eba;
mod listing;

pub use eba::EbaFault;
pub use listing::EbaListing;

use super::Roles;
use crate::{
    clock::Timestamp,
    interface::{BareTppId, TppId},
};
use eba::EbaExport;
use std::{
    collections::{HashMap, HashSet},
    io::BufRead,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The registers in use. A reload replaces them as a whole.
#[derive(Debug)]
pub struct Registers {
    /// By identity (CRT-4).
    entries: HashMap<TppId, Registration>,
    /// The identities that differ only in spaces and dashes, by their bare identity.
    alike: HashMap<BareTppId, Vec<TppId>>,
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
            entries: HashMap::new(),
            alike: HashMap::new(),
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
        let national: HashSet<_> = export.by_national_id.keys().map(TppId::bare).collect();
        let mut codes = export.by_code;
        codes.retain(|code, _| !national.contains(&code.bare()));
        for (identity, listed) in export.by_national_id.into_iter().chain(codes) {
            self.entry(identity).listed = Some(listed);
        }
        Ok(())
    }

    /// Allows a TPP in these roles, independent of the EBA's register.
    pub fn allow(&mut self, tpp: TppId, roles: Roles) {
        let entry = self.entry(tpp);
        entry.allowed = entry.allowed.or(roles);
    }

    /// Blocks a TPP, independent of its other entries.
    pub fn block(&mut self, tpp: TppId) {
        self.entry(tpp).blocked = true;
    }

    fn entry(&mut self, tpp: TppId) -> &mut Registration {
        if !self.entries.contains_key(&tpp) {
            let alike = self.alike.entry(tpp.bare()).or_default();
            alike.push(tpp.clone());
        }
        self.entries.entry(tpp).or_default()
    }

    /// The entries of the TPP with this identity; the default for an unknown TPP.
    ///
    /// Each register is searched separately: first for exactly this identity, then for the one entry that differs only in spaces and
    /// dashes.
    pub fn find(&self, tpp: &TppId) -> Registration {
        let mut found = self.entries.get(tpp).copied().unwrap_or_default();
        let alike = self.alike.get(&tpp.bare()).map_or(&[][..], Vec::as_slice);
        let alike = || alike.iter().filter_map(|other| self.entries.get(other));
        found.blocked |= alike().any(|other| other.blocked);
        if found.allowed.is_empty() {
            let allowed = alike().map(|other| other.allowed);
            found.allowed = only(allowed.filter(|roles| !roles.is_empty())).unwrap_or_default();
        }
        if found.listed.is_none() {
            found.listed = only(alike().filter_map(|other| other.listed));
        }
        found
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

    /// The number of TPPs with an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no TPP has an entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
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
        self.entries.values().filter_map(|entry| entry.listed)
    }

    /// The number of identities that differ from another one only in spaces and dashes. Only a certificate with exactly such an identity
    /// is found.
    pub fn spelled_alike(&self) -> usize {
        let groups = self.alike.values().map(Vec::len);
        groups.filter(|identities| *identities > 1).sum()
    }

    /// Counts a request that passed although the file exceeds its maximum age.
    pub(crate) fn pass_stale(&self) {
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

/// The only item; `None` if there are none or several.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next();
    first.filter(|_| all.next().is_none())
}

#[cfg(test)]
mod tests;
