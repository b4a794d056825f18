//! KID, the payment reference of Norway, with its check digit (SBX-12).
//!
//! A creditor agrees with its bank on MOD10 or MOD11; a payment to any other creditor may use either.

/// The check digit of a creditor's references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modulus {
    /// Luhn's: weights 2 and 1 from the right.
    Ten,
    /// Weights 2 to 7 from the right; ten is written as a hyphen.
    Eleven,
}

impl Modulus {
    /// The name in the ledger and in the initialisation's answer.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ten => "MOD10",
            Self::Eleven => "MOD11",
        }
    }

    /// Parses the name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Ten, Self::Eleven]
            .into_iter()
            .find(|modulus| modulus.name() == name)
    }

    /// Whether a reference is valid: 2 to 25 digits, the last of them the check digit.
    pub(super) fn holds(self, kid: &str) -> bool {
        if !(2..=25).contains(&kid.len()) {
            return false;
        }
        let Some((digits, check)) = kid.split_at_checked(kid.len().saturating_sub(1)) else {
            return false;
        };
        digits.bytes().all(|byte| byte.is_ascii_digit()) && check == self.check(digits)
    }

    /// The check digit of these digits.
    pub(super) fn check(self, digits: &str) -> String {
        let digits = digits.chars().rev().filter_map(|digit| digit.to_digit(10));
        match self {
            Self::Ten => {
                let doubled = digits.enumerate().map(|(place, digit)| match place % 2 {
                    0 => digit * 2 / 10 + digit * 2 % 10,
                    _ => digit,
                });
                ((10 - doubled.sum::<u32>() % 10) % 10).to_string()
            }
            Self::Eleven => {
                let weighted = digits
                    .zip((2..=7).cycle())
                    .map(|(digit, weight)| digit * weight);
                match (11 - weighted.sum::<u32>() % 11) % 11 {
                    10 => "-".into(),
                    check => check.to_string(),
                }
            }
        }
    }
}

/// Whether a reference is valid by either.
pub(super) fn holds(kid: &str) -> bool {
    Modulus::Ten.holds(kid) || Modulus::Eleven.holds(kid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_hold_by_their_modulus() {
        // Luhn's well-known example, and 12345678 by hand: 138 is 6 modulo 11.
        assert!(Modulus::Ten.holds("79927398713") && !Modulus::Ten.holds("79927398714"));
        assert!(Modulus::Eleven.holds("123456785") && !Modulus::Eleven.holds("123456784"));
        assert_eq!(Modulus::Eleven.check("6"), "-");
        assert!(Modulus::Eleven.holds("6-"));
        for bad in ["", "1", "a1", "1a", "-1", "12345678901234567890123456", "é"] {
            assert!(!holds(bad), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn one_wrong_digit_is_found(digits in "[0-9]{1,24}", at in 0_usize..24, other in 1_u8..10) {
            for modulus in [Modulus::Ten, Modulus::Eleven] {
                let right = format!("{digits}{}", modulus.check(&digits));
                proptest::prop_assert!(modulus.holds(&right));
                let mut wrong = right.clone().into_bytes();
                let at = at % digits.len();
                wrong[at] = b'0' + (wrong[at] - b'0' + other) % 10;
                proptest::prop_assert!(!modulus.holds(&String::from_utf8(wrong).unwrap()));
            }
        }
    }
}
