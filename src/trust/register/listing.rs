//! The entry of a TPP in a register: its authorisation, and its name.

use crate::Roles;

/// The most characters of a name that are kept, as of the name in a certificate.
const LONGEST_NAME: usize = 128;

/// The authorisation of one TPP in one register, or in several together.
///
/// A register can have several entries for one identity: the company as a payment institution that became an e-money institution, or with
/// a branch. Each entry is an authorisation of the same company, so the roles of the entries are united, and a withdrawn entry adds no
/// role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The roles in the host country.
    pub here: Roles,
    /// The roles in other countries.
    pub elsewhere: Roles,
    /// Whether at least one entry is a valid authorisation.
    pub authorised: bool,
}

impl Listing {
    pub(super) fn merge(&mut self, other: Self) {
        self.here = self.here.or(other.here);
        self.elsewhere = self.elsewhere.or(other.elsewhere);
        self.authorised |= other.authorised;
    }
}

/// The entry of one TPP in one register.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) listing: Listing,
    name: Option<Box<str>>,
}

impl Entry {
    /// Adds a further entry of the same identity. The first name stays.
    pub(super) fn merge(&mut self, listing: Listing, name: Option<&str>) {
        self.listing.merge(listing);
        if self.name.is_none() {
            self.name = name.and_then(plain);
        }
    }

    /// The TPP's name (CTL-1): plain text, without control characters.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// The text of a name as it is kept; `None` if nothing is left of it.
fn plain(name: &str) -> Option<Box<str>> {
    let characters = name.trim().chars().filter(|it| !it.is_control());
    let name: String = characters.take(LONGEST_NAME).collect();
    (!name.is_empty()).then(|| name.into())
}
