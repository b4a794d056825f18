//! The registers of TPPs: the EBA's register, further ones, and the bank's own lists (CRT-7, CRT-14).
//!
//! A TPP is listed under the identity in its certificate, `PSD<country>-<NCA>-<id>`, in capitals (CRT-4). Registers and CAs write the id
//! with or without spaces and dashes. If a register does not have exactly this identity, the lookup takes the one entry that differs only
//! in spaces and dashes; if there are several such entries, the lookup takes none. A block applies to every such spelling.
//!
//! Where the registers differ: the bank's block refuses; else the bank's own list authorises the roles that it names; else a register that
//! has the authorisation as withdrawn refuses, unless its [`WhenWithdrawn`] says otherwise; else each register adds its roles.
//!
//! Deliberately not here: the requirements of an operation and the answers to callers (admission); agents, who use the certificate of the
//! institution that they act for; downloads, because the operator supplies the files.

// The EBA's export, what is downloaded in its place, and its stored entries.
mod begin;
mod eba;
mod listing;
// Other registers, as CSV or JSON, by a mapping.
mod mapped;
// One register, whatever its form.
mod source;

pub use eba::EbaFault;
pub use listing::Listing;
pub use mapped::{MappedFault, MappedFormat, Mapping, Member, Origin};
pub use source::{EBA, FileCounts, Register, RegisterName, WhenWithdrawn};

use super::Roles;
use eba::EbaExport;
use portvakt_base::clock::Timestamp;
use portvakt_interface::{Forbidden, ForbiddenTpp, Permitted, PermittedTpp, Registered, TppId};
use std::{
    io::BufRead,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The registers in use. A reload replaces them as a whole.
#[derive(Debug)]
pub struct Registers {
    /// The registers of authorities (CRT-4), in the order in which a text names them.
    registers: Vec<Register>,
    /// The TPPs that the bank's own list allows: exactly these.
    allowed: Permitted<Roles>,
    /// The TPPs that the bank's own list blocks, in every spelling.
    blocked: Forbidden<()>,
    settings: RegisterSettings,
    passed_stale: AtomicU64,
}

/// The settings of the registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterSettings {
    /// The country of the bank's interface, two capitals. A service that a register limits to countries must include this one.
    /// Default `NO`.
    pub host_country: String,
    /// The maximum age of a register that has none of its own. Default seven days.
    pub max_age: Duration,
    /// The action for an older one. Default refuse.
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

/// The action when a register exceeds its maximum age and nothing else authorises the TPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenStale {
    /// Refuses the request with 503.
    Refuse,
    /// Decides by the old file, and counts and logs the requests that depend on it. A TPP that is not in the file is refused, so that an
    /// old register does not admit everybody.
    Pass,
}

/// The entries of one TPP in the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration<'a> {
    /// The bank blocks the TPP; the other fields then do not count.
    pub blocked: bool,
    /// The roles in the bank's own list.
    pub allowed: Roles,
    /// The authorisations in all registers together; `None` if no register has the TPP.
    pub listed: Option<Listing>,
    /// The first register that has the TPP.
    pub listed_by: Option<&'a RegisterName>,
    /// The register that has the authorisation as withdrawn, so that no other register authorises the TPP.
    pub withdrawn_by: Option<&'a RegisterName>,
}

impl Registration<'_> {
    /// The roles of the TPP by everything together.
    pub fn roles(&self) -> Roles {
        match self.listed {
            Some(listed) if self.withdrawn_by.is_none() => self.allowed.or(listed.here),
            _ => self.allowed,
        }
    }
}

impl Registers {
    /// Registers without an entry: no TPP is registered.
    pub fn new(settings: RegisterSettings) -> Self {
        Self {
            registers: Vec::new(),
            allowed: Permitted::default(),
            blocked: Forbidden::default(),
            settings,
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
        // Certificates use the national id. Some authorities also number their institutions. Such a number is used only if no TPP has it as
        // its national id, because short numbers of different companies can collide.
        let mut listed = Registered::default();
        for (identity, entry) in export.by_national_id {
            listed.insert(identity, entry);
        }
        let mut codes = export.by_code;
        codes.retain(|code, _| !listed.has_alike(&ForbiddenTpp::of(code)));
        for (identity, entry) in codes {
            listed.insert(identity, entry);
        }
        self.registers.push(Register {
            name: RegisterName::new(EBA),
            entries: listed,
            as_of: said.map_or(modified, |said| said.min(modified)),
            max_age: self.settings.max_age,
            withdrawn: WhenWithdrawn::Ignore,
            counts: export.counts,
            unknown_roles: Vec::new(),
        });
        Ok(())
    }

    /// Reads another register as a stream (CRT-14). `modified` is the modification time of the file; without an own `max_age` that of the
    /// settings counts.
    ///
    /// # Errors
    /// The file is not of the mapping's form (with its place), or has no identity.
    pub fn take_mapped(
        &mut self,
        name: RegisterName,
        mapping: &Mapping,
        reader: impl BufRead,
        modified: Timestamp,
    ) -> Result<(), MappedFault> {
        let read = mapping.read(reader, &self.settings.host_country)?;
        let mut entries = Registered::default();
        for (identity, entry) in read.entries {
            entries.insert(identity, entry);
        }
        self.registers.push(Register {
            name,
            entries,
            as_of: read.latest.map_or(modified, |latest| latest.min(modified)),
            max_age: mapping.max_age.unwrap_or(self.settings.max_age),
            withdrawn: mapping.withdrawn,
            counts: read.counts,
            unknown_roles: read.unknown_roles,
        });
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

    /// The entries of the TPP with this identity, whatever the age of the registers; the default for an unknown TPP.
    pub fn find(&self, tpp: &TppId) -> Registration<'_> {
        self.found(tpp, |_| true)
    }

    /// The same by the registers that are not too old at `now`; a withdrawal counts in an old one too.
    pub fn find_fresh(&self, tpp: &TppId, now: Timestamp) -> Registration<'_> {
        self.found(tpp, |register| !register.is_stale(now))
    }

    fn found(&self, tpp: &TppId, authorises: impl Fn(&Register) -> bool) -> Registration<'_> {
        let mut found = Registration {
            blocked: self.blocked.get(tpp).is_some(),
            allowed: self.allowed.get(tpp).copied().unwrap_or_default(),
            ..Registration::default()
        };
        for register in &self.registers {
            let Some(listing) = register.find(tpp) else {
                continue;
            };
            if !listing.authorised && register.withdrawn == WhenWithdrawn::Refuse {
                found.withdrawn_by = found.withdrawn_by.or(Some(&register.name));
            }
            if authorises(register) {
                found.listed_by = found.listed_by.or(Some(&register.name));
                found.listed.get_or_insert_default().merge(listing);
            }
        }
        found
    }

    /// The TPP's name by the first register that has one, whatever its age (CTL-1).
    pub fn tpp_name(&self, tpp: &TppId) -> Option<&str> {
        let mut registers = self.registers.iter();
        registers.find_map(|register| register.tpp_name(tpp))
    }

    /// The TPP that the bank's own list allows and whose identity differs from this one in spaces and dashes, for a hint to the operator.
    pub fn allowed_alike(&self, tpp: &TppId) -> Option<&TppId> {
        self.allowed.alike(tpp).filter(|other| *other != tpp)
    }

    /// The registers of authorities.
    pub fn each(&self) -> &[Register] {
        &self.registers
    }

    /// The first register that is past its maximum age.
    pub fn stale(&self, now: Timestamp) -> Option<&Register> {
        self.registers
            .iter()
            .find(|register| register.is_stale(now))
    }

    /// The settings of the registers.
    pub const fn settings(&self) -> &RegisterSettings {
        &self.settings
    }

    /// The number of TPPs in the bank's own list.
    pub fn local_len(&self) -> usize {
        let (allowed, blocked) = (self.allowed.tpps(), self.blocked.tpps());
        allowed.count().saturating_add(blocked.count())
    }

    /// Whether no TPP has an entry.
    pub fn is_empty(&self) -> bool {
        let is_empty = |register: &Register| register.is_empty();
        self.registers.iter().all(is_empty) && self.local_len() == 0
    }

    /// Counts a request that passed although a register exceeds its maximum age.
    pub fn pass_stale(&self) {
        self.passed_stale.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of requests that passed although a register exceeded its maximum age.
    pub fn passed_stale(&self) -> u64 {
        self.passed_stale.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
