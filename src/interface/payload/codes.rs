//! The other codes of a payment, with the lists of the interface: BIC (PAY-7), purpose and regulatory reporting (PAY-10).
//!
//! The lists have the notation of the interface, and a test compares them with its text.

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

/// The form of a BIC (§Transaction details, creditorAgent).
pub(super) const BIC: &str = "^[A-Z]{6,6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3,3}){0,1}$";

/// Whether a code is a [`BIC`].
pub(super) fn is_bic(code: &str) -> bool {
    let capital_or_digit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let bytes = code.bytes().enumerate();
    matches!(code.len(), 8 | 11)
        && bytes.into_iter().all(|(at, byte)| match at {
            0..6 => byte.is_ascii_uppercase(),
            6 => capital_or_digit(byte) && !b"01".contains(&byte),
            7 => capital_or_digit(byte) && byte != b'O',
            _ => capital_or_digit(byte),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bics() {
        for good in ["DNBANOKK", "DNBANOKKXXX", "ABCDEF29", "ABCDEFAN123"] {
            assert!(is_bic(good), "{good}");
        }
        for bad in [
            "",
            "DNBANOK",
            "DNBANOKKX",
            "DNBANOKKXX",
            "DNBANOKKXXXX",
            "dnbanokk",
            "DNB1NOKK",
            "ABCDEF0A",
            "ABCDEF1A",
            "ABCDEFAO",
            "DNBANOKKxxx",
            "DNBANOK\u{e6}",
        ] {
            assert!(!is_bic(bad), "{bad}");
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
