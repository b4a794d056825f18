//! The other codes of a payment, with the lists of the interface: BIC (PAY-7), purpose and regulatory reporting (PAY-10).
//!
//! The lists have the notation of the interface, and a test compares them with its text.

use crate::character;

/// §Payment creation request, purposeCode.
pub(super) const PURPOSES: &str =
    "INVS, SALA, IDCP, CASH, CORT, INTC, PENS, SSBE, SUPP, TAXS, TREA, VATX, LOAN, OTHR";

/// §Payment creation request, regulatoryReportingCode.
pub(super) const REPORTING: &str = "14, 26, 29, 31, 35, 38, 41, 43, 45, 51, 52, 53, 71, 79, 81, 82";

/// Whether a code is in a list with commas between the codes.
pub(super) fn is_one_of(code: &str, list: &str) -> bool {
    list.split(", ").any(|known| known == code)
}

/// Whether a code is in a set that is grouped by first letters.
pub(super) fn is_listed(code: &str, set: &[(&str, &str)]) -> bool {
    let Some((first, rest)) = code.split_at_checked(1) else {
        return false;
    };
    let row = set.iter().find(|row| row.0 == first);
    row.is_some_and(|row| row.1.split(' ').any(|known| known == rest))
}

/// The form of a BIC in a payment: ISO 9362:2022 allows digits among the first four characters.
pub(super) const BIC: &str = "^[A-Z0-9]{4}[A-Z]{2}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?$";

/// The form that the interface shows of a BIC (§Transaction details, creditorAgent), with letters only at its beginning.
#[cfg(test)]
pub(super) const SHOWN_BIC: &str = "^[A-Z]{6,6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3,3}){0,1}$";

/// Judges a code as a [`BIC`].
///
/// # Errors
/// The first part that is wrong.
pub(super) fn judge_bic(code: &str) -> Result<(), String> {
    let length = code.chars().count();
    if !matches!(length, 8 | 11) {
        return Err(format!(
            "a BIC has 8 or 11 characters, as in DNBANOKK; this one has {length}"
        ));
    }
    let capital_or_digit = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    for (at, c) in code.chars().enumerate() {
        let (fits, text) = match at {
            0..4 => (
                capital_or_digit(c),
                "the first four characters of a BIC, the bank, are capitals or digits",
            ),
            4..6 => (
                c.is_ascii_uppercase(),
                "characters 5 and 6 of a BIC, the country, are capitals",
            ),
            6 => (
                capital_or_digit(c) && !matches!(c, '0' | '1'),
                "character 7 of a BIC is a capital, or a digit from 2 to 9",
            ),
            7 => (
                capital_or_digit(c) && c != 'O',
                "character 8 of a BIC is a digit, or a capital other than O",
            ),
            _ => (
                capital_or_digit(c),
                "characters 9 to 11 of a BIC, the branch, are capitals or digits",
            ),
        };
        if !fits {
            let (at, found) = (at.saturating_add(1), character::name(c));
            return Err(format!("{text}; its character {at} is {found}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bics() {
        for good in [
            "DNBANOKK",
            "DNBANOKKXXX",
            "ABCDEF29",
            "ABCDEFAN123",
            "WG11US335AB",
        ] {
            assert_eq!(judge_bic(good), Ok(()), "{good}");
        }
        for (bad, part) in [
            ("", "8 or 11"),
            ("DNBANOK", "8 or 11"),
            ("DNBANOKKX", "8 or 11"),
            ("DNBANOKKXX", "8 or 11"),
            ("DNBANOKKXXXX", "8 or 11"),
            ("dnbanokk", "first four"),
            ("D-BANOKK", "first four"),
            ("DNBA1OKK", "the country"),
            ("ABCDEF0A", "character 7"),
            ("ABCDEF1A", "character 7"),
            ("ABCDEFAO", "character 8"),
            (
                "DNBANOK\u{e6}",
                "its character 8 is U+00E6, which is outside ASCII",
            ),
            ("DNBA NOK", "its character 5 is a blank"),
            ("DNBANOKKxxx", "the branch"),
        ] {
            assert!(judge_bic(bad).unwrap_err().contains(part), "{bad}");
        }
    }

    #[test]
    fn lists() {
        assert!(is_one_of("INVS", PURPOSES) && is_one_of("82", REPORTING));
        for bad in ["", "invs", "INVS,", "ABCD", "INVS, SALA"] {
            assert!(!is_one_of(bad, PURPOSES), "{bad}");
        }
    }
}
