//! `X-PSU-IDENTITY` (HDR-12): the PSU's national identity number, for payments without a PSU-ID.
//!
//! Invariant: no type keeps the number, and no fault, log line, metric or `Debug` shows it. The core verifies check digits,
//! because it knows the register of persons.
//!
//! Only the number of digits is configurable. A bank's service is in one country, whose numbers have one length (11 in
//! Norway); a mistake in a configurable regular expression could accept any value.

use crate::character::OddCharacter;

/// The form of an identity number: a number of ASCII digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityForm {
    digits: usize,
}

impl IdentityForm {
    /// The fewest digits that can be configured. Fewer could not identify all persons of a country.
    pub const LEAST: usize = 6;
    /// The most digits that can be configured.
    pub const MOST: usize = 20;

    /// A form of this number of digits, from [`IdentityForm::LEAST`] to [`IdentityForm::MOST`].
    pub const fn of_digits(digits: usize) -> Option<Self> {
        if digits < Self::LEAST || digits > Self::MOST {
            return None;
        }
        Some(Self { digits })
    }

    /// Eleven digits, the Norwegian national identity number.
    pub const NORWEGIAN: Self = Self { digits: 11 };

    /// The number of digits.
    pub const fn digits(self) -> usize {
        self.digits
    }

    /// The reason why a value does not have this form (ERR-10). It shows no digit.
    pub fn fault(self, value: &[u8]) -> String {
        let digits = self.digits;
        match OddCharacter::first(value, |byte| byte.is_ascii_digit()) {
            Some(odd) => format!("{odd}; it must be {digits} digits"),
            None => format!("it has {} digits; it must be {digits}", value.len()),
        }
    }

    /// Whether a value has this form.
    pub fn fits(self, value: &[u8]) -> bool {
        value.len() == self.digits && value.iter().all(u8::is_ascii_digit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= HDR-12 accepted
    #[test]
    fn as_many_digits_as_configured() {
        assert!(IdentityForm::NORWEGIAN.fits(b"01010112345"));
        assert!(IdentityForm::of_digits(12).unwrap().fits(b"200001011234"));
    }

    //= HDR-12 refused
    #[test]
    fn anything_else() {
        let form = IdentityForm::NORWEGIAN;
        let table = [
            "",
            "0101011234",
            "010101123456",
            "010101 12345",
            "0101011234x",
            "-1010112345",
            "010101-1234",
            // Digits of another script, in eleven bytes.
            "\u{660}\u{661}\u{662}\u{663}\u{664}1",
        ];
        for value in table {
            assert!(!form.fits(value.as_bytes()), "{value}");
        }
        assert!(!IdentityForm::of_digits(10).unwrap().fits(b"01010112345"));
        for digits in [0, 5, 21, usize::MAX] {
            assert_eq!(IdentityForm::of_digits(digits), None);
        }
    }
}
