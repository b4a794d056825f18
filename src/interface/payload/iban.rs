//! IBANs (PAY-6; ISO 13616-1): the structure of each country, and the check digits of ISO 7064.
//!
//! Only the electronic form is accepted: capitals and digits without spaces.

/// The maximum length of an IBAN (§Account reference), in characters.
pub(super) const MAX_LENGTH: usize = 34;

/// Country, length in characters, and the structure after the two check digits: a number of `n` digits, `a` capitals, or `c` of both. From
/// the IBAN registry, with adjacent parts of the same kind combined.
pub(super) const COUNTRIES: [(&str, usize, &str); 87] = [
    ("AD", 24, "8n 12c"),
    ("AE", 23, "19n"),
    ("AL", 28, "8n 16c"),
    ("AT", 20, "16n"),
    ("AZ", 28, "4a 20c"),
    ("BA", 20, "16n"),
    ("BE", 16, "12n"),
    ("BG", 22, "4a 6n 8c"),
    ("BH", 22, "4a 14c"),
    ("BI", 27, "23n"),
    ("BR", 29, "23n 1a 1c"),
    ("BY", 28, "4c 4n 16c"),
    ("CH", 21, "5n 12c"),
    ("CR", 22, "18n"),
    ("CY", 28, "8n 16c"),
    ("CZ", 24, "20n"),
    ("DE", 22, "18n"),
    ("DJ", 27, "23n"),
    ("DK", 18, "14n"),
    ("DO", 28, "4c 20n"),
    ("EE", 20, "16n"),
    ("EG", 29, "25n"),
    ("ES", 24, "20n"),
    ("FI", 18, "14n"),
    ("FK", 18, "2a 12n"),
    ("FO", 18, "14n"),
    ("FR", 27, "10n 11c 2n"),
    ("GB", 22, "4a 14n"),
    ("GE", 22, "2a 16n"),
    ("GI", 23, "4a 15c"),
    ("GL", 18, "14n"),
    ("GR", 27, "7n 16c"),
    ("GT", 28, "24c"),
    ("HR", 21, "17n"),
    ("HU", 28, "24n"),
    ("IE", 22, "4a 14n"),
    ("IL", 23, "19n"),
    ("IQ", 23, "4a 15n"),
    ("IS", 26, "22n"),
    ("IT", 27, "1a 10n 12c"),
    ("JO", 30, "4a 4n 18c"),
    ("KW", 30, "4a 22c"),
    ("KZ", 20, "3n 13c"),
    ("LB", 28, "4n 20c"),
    ("LC", 32, "4a 24c"),
    ("LI", 21, "5n 12c"),
    ("LT", 20, "16n"),
    ("LU", 20, "3n 13c"),
    ("LV", 21, "4a 13c"),
    ("LY", 25, "21n"),
    ("MC", 27, "10n 11c 2n"),
    ("MD", 24, "20c"),
    ("ME", 22, "18n"),
    ("MK", 19, "3n 10c 2n"),
    ("MN", 20, "16n"),
    ("MR", 27, "23n"),
    ("MT", 31, "4a 5n 18c"),
    ("MU", 30, "4a 19n 3a"),
    ("NI", 28, "4a 20n"),
    ("NL", 18, "4a 10n"),
    ("NO", 15, "11n"),
    ("OM", 23, "3n 16c"),
    ("PL", 28, "24n"),
    ("PS", 29, "4a 21c"),
    ("PT", 25, "21n"),
    ("QA", 29, "4a 21c"),
    ("RO", 24, "4a 16c"),
    ("RS", 22, "18n"),
    ("RU", 33, "14n 15c"),
    ("SA", 24, "2n 18c"),
    ("SC", 31, "4a 20n 3a"),
    ("SD", 18, "14n"),
    ("SE", 24, "20n"),
    ("SI", 19, "15n"),
    ("SK", 24, "20n"),
    ("SM", 27, "1a 10n 12c"),
    ("SO", 23, "19n"),
    ("ST", 25, "21n"),
    ("SV", 28, "4a 20n"),
    ("TL", 23, "19n"),
    ("TN", 24, "20n"),
    ("TR", 26, "6n 16c"),
    ("UA", 29, "6n 19c"),
    ("VA", 22, "18n"),
    ("VG", 24, "4a 16n"),
    ("XK", 20, "16n"),
    ("YE", 30, "4a 4n 18c"),
];

/// Whether the text is a valid IBAN of its country.
pub(super) fn is_valid(text: &str) -> bool {
    let country = text.get(..2).unwrap_or_default();
    let row = COUNTRIES
        .binary_search_by(|row| row.0.cmp(country))
        .ok()
        .and_then(|at| COUNTRIES.get(at));
    let Some((_, length, structure)) = row else {
        return false;
    };
    text.len() == *length
        && text.get(2..4).is_some_and(|check| fits(check, "2n"))
        && text.get(4..).is_some_and(|rest| fits(rest, structure))
        && remainder(text) == Some(1)
}

/// Whether the text has a structure such as `4a 2n`. The caller has compared the lengths.
fn fits(text: &str, structure: &str) -> bool {
    let mut bytes = text.bytes();
    structure.split(' ').all(|run| {
        let (count, kind) = run.split_at(run.len().saturating_sub(1));
        let count = count.parse().unwrap_or(usize::MAX);
        let mut taken = bytes.by_ref().take(count);
        taken.all(|byte| match kind {
            "n" => byte.is_ascii_digit(),
            "a" => byte.is_ascii_uppercase(),
            _ => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
        })
    })
}

/// ISO 7064, MOD 97-10, over the text with its first four characters at the end; a letter counts as two digits.
fn remainder(text: &str) -> Option<u32> {
    let (front, back) = text.split_at_checked(4)?;
    back.bytes()
        .chain(front.bytes())
        .try_fold(0_u32, |rest, byte| {
            let digit = char::from(byte).to_digit(36)?;
            let shift = if digit < 10 { 10 } else { 100 };
            rest.checked_mul(shift)?.checked_add(digit)?.checked_rem(97)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iban::Iban;

    /// Compares the table with the registry, as an independent implementation reads it.
    #[test]
    fn the_table_is_sorted_and_true() {
        assert!(COUNTRIES.is_sorted_by(|one, other| one.0 < other.0));
        for (country, length, structure) in COUNTRIES {
            let rest: String = structure
                .split(' ')
                .flat_map(|run| {
                    let (count, kind) = run.split_at(run.len() - 1);
                    let letter = if kind == "n" { "7" } else { "B" };
                    vec![letter; count.parse().unwrap()]
                })
                .collect();
            let check = 98 - remainder(&format!("{country}00{rest}")).unwrap();
            let text = format!("{country}{check:02}{rest}");
            assert_eq!(text.len(), length, "{text}");
            assert!(length <= MAX_LENGTH && is_valid(&text), "{text}");
            assert!(text.parse::<Iban>().is_ok(), "{text}");
            // Every change of one character is detected, here and by the independent implementation.
            for at in 0..text.len() {
                for byte in "0123456789ABZ".bytes() {
                    let mut changed = text.clone().into_bytes();
                    changed[at] = byte;
                    let changed = String::from_utf8(changed).unwrap();
                    assert_eq!(
                        is_valid(&changed),
                        changed.parse::<Iban>().is_ok(),
                        "{changed}"
                    );
                }
            }
        }
    }

    #[test]
    fn ibans() {
        assert!(is_valid("NO9386011117947"));
        for bad in [
            "",
            "NO",
            "NO93",
            "no9386011117947",
            "NO93 8601 1117 947",
            "NO9386011117948",
            "NO938601111794",
            "NO93860111179470",
            "XX9386011117947",
            "NO938601111794\u{e6}",
            "\u{1f600}\u{1f600}\u{1f600}\u{1f600}",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
    }
}
