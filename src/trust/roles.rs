//! The PSD2 roles of a TPP.

use std::fmt;

/// The PSD2 roles of a TPP (ETSI TS 119 495, 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    const NAMES: [(u8, &'static str); 6] = [
        (1, "PSP_AS"),
        (2, "PSP_PI"),
        (3, "PSP_AI"),
        (4, "PSP_IC"),
        (5, "PSP_CB"),
        (6, "PSP_PA"),
    ];

    /// Every role, for a TPP whose certificate is not at hand.
    pub const ALL: Self = Self(0b0111_1110);

    /// Adds the role with this number; other numbers have no meaning in this interface.
    pub fn with(self, number: u8) -> Self {
        if Self::NAMES.iter().any(|(known, _)| *known == number) {
            Self(self.0 | 1 << number)
        } else {
            self
        }
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The roles in either.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The roles that the other does not have.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Each of the roles alone, in the order of the standard.
    pub fn each(self) -> impl Iterator<Item = Self> {
        let numbers = Self::NAMES.iter().map(|(number, _)| *number);
        numbers
            .map(move |number| Self::default().with(number).and(self))
            .filter(|role| !role.is_empty())
    }

    /// The roles in both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// May it initiate payments?
    pub const fn payment_initiation(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// May it read account information?
    pub const fn account_information(self) -> bool {
        self.0 & 1 << 3 != 0
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Self::NAMES
            .iter()
            .filter(|(number, _)| self.0 & 1 << number != 0);
        f.write_str(&held.map(|(_, name)| *name).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles() {
        let roles = Roles::default().with(3).with(2).with(9);
        assert!(roles.account_information() && roles.payment_initiation());
        assert_eq!(roles.to_string(), "PSP_PI,PSP_AI");
        assert_eq!(
            Roles::default().with(6).with(5).to_string(),
            "PSP_CB,PSP_PA"
        );
        let each: Vec<_> = roles.each().map(|role| role.to_string()).collect();
        assert_eq!(each, ["PSP_PI", "PSP_AI"]);
        assert!(Roles::default().with(0).with(7).is_empty());
        let all = Roles::NAMES.iter().map(|(number, _)| *number);
        assert_eq!(all.fold(Roles::default(), Roles::with), Roles::ALL);
    }
}
