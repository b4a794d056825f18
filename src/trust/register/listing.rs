//! The authorisation of a TPP in a register.

use crate::Roles;

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
