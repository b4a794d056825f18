//! The authorisation of a TPP in the EBA's register.

use crate::trust::Roles;

/// The authorisation of one TPP in the EBA's register.
///
/// One identity can stand there several times: the same company as a payment institution that has become an e-money
/// institution, or with a branch. Each entry is an authorisation of that one company, so together they are a union, and
/// a withdrawn one adds nothing to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EbaListing {
    /// The roles in the host country.
    pub here: Roles,
    /// The roles in other countries.
    pub elsewhere: Roles,
    /// Whether any of its entries is an authorisation that stands.
    pub authorised: bool,
}

impl EbaListing {
    pub(super) fn merge(&mut self, other: Self) {
        self.here = self.here.or(other.here);
        self.elsewhere = self.elsewhere.or(other.elsewhere);
        self.authorised |= other.authorised;
    }
}
