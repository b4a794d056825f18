//! Who is registered, for what, and in which country: the EBA's register and the bank's own lists (CRT-7).
//!
//! A TPP stands here under the identity in its certificate, `PSD<country>-<NCA>-<id>`, in one spelling (`key`): in
//! capitals, without spaces and dashes in the authority and the id. What is kept of a TPP is two sets of roles and three
//! flags, so that a request costs one look-up and no memory but the key's.
//!
//! Deliberately not here: what an operation needs and what a caller is told (admission), agents (who act under the
//! certificate of the institution that they act for), and any download: the operator puts the files in place.

mod eba;

pub use eba::EbaFault;

use super::Roles;
use crate::clock::Timestamp;
use eba::Export;
use std::{
    collections::HashMap,
    io::BufRead,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The registers that requests are judged by. They are replaced whole, never changed.
#[derive(Debug)]
pub struct Registers {
    entries: HashMap<Box<str>, Registration>,
    settings: RegisterSettings,
    /// When what the EBA's file says was so; `None` without one.
    as_of: Option<Timestamp>,
    /// What was found in that file.
    read: Option<Read>,
    passed_stale: AtomicU64,
}

/// How registers are read and used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterSettings {
    /// The country that the bank's interface serves, in two capitals: where the EBA's register says for which countries
    /// a service is, it has to be for this one. Default `NO`.
    pub host_country: String,
    /// How old the EBA's file may be. Default seven days.
    pub max_age: Duration,
    /// What an older one is good for. Default refuse.
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

/// What happens where the EBA's file is past its maximum age and the bank's own lists do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenStale {
    /// Every request is refused: 503.
    Refuse,
    /// The old file's word counts on, and requests that rest on it are counted and logged. Whoever is not in it is
    /// refused as ever: a register that is not renewed must not become none.
    Pass,
}

/// What the registers say of one TPP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The bank blocks it: nothing else counts then.
    pub blocked: bool,
    /// What the bank's own list allows it. Banks need that: they are not in the EBA's register.
    pub allowed: Roles,
    /// What the EBA's register says.
    pub listed: Option<Listed>,
}

/// What the EBA's register says of one TPP.
///
/// One identity can stand there several times: the same company as a payment institution that has become an e-money
/// institution, or with a branch. Each entry is an authorisation of that one company, so together they are a union, and
/// a withdrawn one adds nothing to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The roles in the host country.
    pub here: Roles,
    /// The roles in other countries.
    pub elsewhere: Roles,
    /// Whether any of its entries is an authorisation that stands.
    pub authorised: bool,
}

impl Listed {
    fn merge(&mut self, other: Self) {
        self.here = self.here.or(other.here);
        self.elsewhere = self.elsewhere.or(other.elsewhere);
        self.authorised |= other.authorised;
    }
}

impl Registration {
    /// The roles in which it may call, by either.
    pub fn roles(&self) -> Roles {
        self.listed
            .map_or(self.allowed, |listed| self.allowed.or(listed.here))
    }
}

impl Registers {
    /// Registers without an entry: nobody is registered.
    pub fn new(settings: RegisterSettings) -> Self {
        Self {
            entries: HashMap::new(),
            settings,
            as_of: None,
            read: None,
            passed_stale: AtomicU64::new(0),
        }
    }

    /// Takes in the EBA's export, read as a stream; `modified` is when the file was last changed.
    ///
    /// The file is as old as the latest change of an entry in it says, which no copying makes newer. It is never taken
    /// to be newer than the file itself, so that one entry with a date in the future does not keep it fresh for ever.
    ///
    /// # Errors
    /// Where it is not the EBA's export, with the line and the column; or holds no institution.
    pub fn take_eba(&mut self, reader: impl BufRead, modified: Timestamp) -> Result<(), EbaFault> {
        let export = Export::read(reader, &self.settings.host_country)?;
        let said = export.latest.as_deref().and_then(eba::moment);
        self.as_of = Some(said.map_or(modified, |said| said.min(modified)));
        self.read = Some(Read {
            institutions: export.institutions,
            agents: export.agents,
            without_identity: export.without_identity,
        });
        // The national id is what certificates carry. Some authorities number their institutions besides, and such a
        // number counts only where it is nobody's national id: it may be short, and meet another company's by chance.
        let mut codes = export.by_code;
        codes.retain(|key, _| !export.by_national_id.contains_key(key));
        for (key, listed) in export.by_national_id.into_iter().chain(codes) {
            self.entries.entry(key).or_default().listed = Some(listed);
        }
        Ok(())
    }

    /// Lets a TPP in these roles, whatever the EBA's register says. `None` where `tpp` is no PSD2 identity (CRT-4).
    pub fn allow(&mut self, tpp: &str, roles: Roles) -> Option<()> {
        let entry = self.entry(tpp)?;
        entry.allowed = entry.allowed.or(roles);
        Some(())
    }

    /// Blocks a TPP, whatever else is said of it. `None` where `tpp` is no PSD2 identity (CRT-4).
    pub fn block(&mut self, tpp: &str) -> Option<()> {
        self.entry(tpp)?.blocked = true;
        Some(())
    }

    fn entry(&mut self, tpp: &str) -> Option<&mut Registration> {
        let key = key_of(tpp)?.into_boxed_str();
        Some(self.entries.entry(key).or_default())
    }

    /// What is said of the TPP of this identity; nothing of one that is not known.
    pub fn find(&self, tpp: &str) -> Registration {
        let found = key_of(tpp).and_then(|key| self.entries.get(key.as_str()));
        found.copied().unwrap_or_default()
    }

    /// Whether the EBA's file is past its maximum age.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let age = |as_of: Timestamp| now.unix().saturating_sub(as_of.unix());
        self.as_of
            .is_some_and(|as_of| age(as_of) > self.settings.max_age.as_secs())
    }

    /// How they are used.
    pub const fn settings(&self) -> &RegisterSettings {
        &self.settings
    }

    /// TPPs of whom something is said.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is said of anybody.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When what the EBA's file says was so; `None` without one.
    pub const fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// What was found in the EBA's file; `None` without one.
    pub const fn read(&self) -> Option<Read> {
        self.read
    }

    /// Counts a request that passed by a file past its maximum age.
    pub(crate) fn pass_stale(&self) {
        self.passed_stale.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that passed by a file past its maximum age.
    pub fn passed_stale(&self) -> u64 {
        self.passed_stale.load(Ordering::Relaxed)
    }
}

/// What was found in the EBA's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Entries that are no agents.
    pub institutions: u64,
    /// Agents, of whom nothing is kept.
    pub agents: u64,
    /// Institutions that no certificate can name, for want of an authority or an id.
    pub without_identity: u64,
}

/// The one spelling of a TPP's identity. National ids are written with spaces and dashes or without, and `FI_FIN-FSA` of
/// the EBA is `FINFSA` in certificates, whose authority has letters only (ETSI TS 119 495, 5.2.1).
fn key(country: &str, authority: &str, id: &str) -> String {
    let mut key = String::with_capacity(country.len() + authority.len() + id.len() + 2);
    let kept = |text: &str, key: &mut String| {
        for c in text.chars().filter(|c| !c.is_whitespace() && *c != '-') {
            key.push(c.to_ascii_uppercase());
        }
    };
    kept(country, &mut key);
    key.push('-');
    kept(authority, &mut key);
    key.push('-');
    kept(id, &mut key);
    key
}

/// The key of an organizationIdentifier, `PSD<country>-<NCA>-<id>`.
fn key_of(tpp: &str) -> Option<String> {
    let (country, rest) = tpp.get(..3).zip(tpp.get(3..)).and_then(|(scheme, rest)| {
        let rest = rest.split_once('-')?;
        scheme.eq_ignore_ascii_case("PSD").then_some(rest)
    })?;
    let (authority, id) = rest.split_once('-')?;
    Some(key(country, authority, id))
}

#[cfg(test)]
mod tests;
