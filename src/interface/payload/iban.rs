//! IBANs (PAY-6; ISO 13616-1): the structure of each country, and the check digits of ISO 7064.
//!
//! Only the electronic form is accepted: capitals and digits without spaces. A bank adds countries that are not in the registry, or not yet.

use crate::character;
use std::{iter, sync::Arc};

/// The maximum length of an IBAN (§Account reference), in characters.
pub(super) const MAX_LENGTH: usize = 34;

/// The month in which the table was last compared with the registry.
pub(super) const AS_OF: &str = "November 2026";

/// Country, length in characters, and the structure after the two check digits: a number of `n` digits, `a` capitals, or `c` of both. From
/// the IBAN registry, with adjacent parts of the same kind combined.
pub(super) static COUNTRIES: [(&str, usize, &str); 89] = [
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
    ("BR", 29, "8c 15n 2c"),
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
    ("HN", 28, "4a 20n"),
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
    ("PK", 24, "4a 16c"),
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

/// The countries whose IBANs are accepted: those of the registry, and those that a bank adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ibans {
    added: Arc<[IbanCountry]>,
}

/// A country that a bank adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IbanCountry {
    code: String,
    length: usize,
    structure: String,
}

impl IbanCountry {
    /// A country by its code, the length of its IBANs in characters, and the structure after the check digits, such as `4a 20n`.
    ///
    /// # Errors
    /// The expected form.
    pub fn new(code: &str, length: usize, structure: &str) -> Result<Self, &'static str> {
        let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_code {
            return Err("a country as two capitals, such as MA");
        }
        if COUNTRIES.iter().any(|known| known.0 == code) {
            return Err("a country that is not in the IBAN registry: Portvakt knows this one");
        }
        let structure = normal(structure).unwrap_or_default();
        let counts: Option<Vec<_>> = runs(&structure).map(|(count, _)| count).collect();
        let sum = counts.and_then(|counts| counts.into_iter().try_fold(4, usize::checked_add));
        if sum.is_none_or(|sum| sum > MAX_LENGTH) {
            return Err(
                "a structure such as \"4a 20n\", or 4!a20!n as the registry writes it: n digits, a capitals, c both; 30 characters at most",
            );
        }
        if sum != Some(length) {
            return Err(
                "a length that is that of the structure and 4 for country and check digits",
            );
        }
        Ok(Self {
            code: code.to_owned(),
            length,
            structure,
        })
    }
}

/// The part of an IBAN that is wrong (PAY-6, ERR-10). A text names the country, lengths and places, and nothing of the account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IbanFault {
    #[error("it is empty")]
    Empty,
    #[error(
        "its character {at} is {found}; an IBAN consists of capitals and digits, without blanks"
    )]
    Foreign { at: usize, found: String },
    #[error("its country stands in small letters; write it in capitals, such as NO")]
    SmallCountry,
    #[error("it does not begin with a country as two capitals, such as NO")]
    NoCountry,
    #[error("{0} is no country that has IBANs")]
    Country(String),
    #[error("an IBAN of {country} has {length} characters; this one has {found}")]
    Length {
        country: String,
        length: usize,
        found: usize,
    },
    #[error("its character {at} must be {kind}, and is {found}")]
    Character {
        at: usize,
        kind: &'static str,
        found: String,
    },
    #[error("its check digits are 00, 01 or 99, which no IBAN has")]
    NoCheckDigits,
    #[error("its check digits do not fit the rest; one of the characters is not the account's")]
    CheckDigits,
}

impl Ibans {
    /// The registry and these countries.
    pub fn with(added: Vec<IbanCountry>) -> Self {
        Self {
            added: added.into(),
        }
    }

    /// Code, length and structure of every country.
    pub(super) fn countries(&self) -> impl Iterator<Item = (&str, usize, &str)> {
        let added = self.added.iter();
        let added = added.map(|one| (one.code.as_str(), one.length, one.structure.as_str()));
        COUNTRIES.iter().copied().chain(added)
    }

    /// The length and the structure of a country.
    fn find(&self, country: &str) -> Option<(usize, &str)> {
        let known = COUNTRIES.binary_search_by(|row| row.0.cmp(country));
        if let Some((_, length, structure)) = known.ok().and_then(|at| COUNTRIES.get(at)) {
            return Some((*length, structure));
        }
        let added = self.added.iter().find(|one| one.code == country)?;
        Some((added.length, &added.structure))
    }

    /// Judges an IBAN.
    ///
    /// # Errors
    /// The first part that is wrong.
    pub(super) fn judge(&self, text: &str) -> Result<(), IbanFault> {
        let country = text.get(..2).unwrap_or_default();
        let Some((length, structure)) = self.find(country) else {
            return Err(country_fault(text));
        };
        let found = text.chars().count();
        if found != length {
            return Err(foreign(text).unwrap_or_else(|| IbanFault::Length {
                country: country.to_owned(),
                length,
                found,
            }));
        }
        let kinds = runs(structure)
            .flat_map(|(count, kind)| iter::repeat_n(kind, count.unwrap_or_default()));
        let kinds = iter::repeat_n("a", 2)
            .chain(iter::repeat_n("n", 2))
            .chain(kinds);
        let mut pairs = text.chars().zip(kinds).zip(1..);
        if let Some(((character, kind), at)) =
            pairs.find(|((character, kind), _)| !fits(*character, kind))
        {
            let kind = match kind {
                "n" => "a digit",
                "a" => "a capital",
                _ => "a capital or a digit",
            };
            let found = character::name(character);
            return Err(foreign(text).unwrap_or(IbanFault::Character { at, kind, found }));
        }
        // 00, 01 and 99 leave the remainder of 97, 98 and 02 (ISO 13616): an account has one spelling.
        let is_own = text
            .get(2..4)
            .is_some_and(|digits| ("02"..="98").contains(&digits));
        match remainder(text) {
            Some(1) if is_own => Ok(()),
            _ if !is_own => Err(IbanFault::NoCheckDigits),
            _ => Err(IbanFault::CheckDigits),
        }
    }
}

/// A structure in the form of [`COUNTRIES`], from that form, without blanks, or from the registry's (`4!a20!n`).
fn normal(structure: &str) -> Option<String> {
    let mut runs = Vec::new();
    let mut rest = structure;
    while !rest.is_empty() {
        let kind = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (count, after) = rest.split_at(kind);
        let after = after.strip_prefix('!').unwrap_or(after);
        let kind = after.chars().next().filter(|kind| "nac".contains(*kind))?;
        if count.starts_with('0') || !(1..=2).contains(&count.len()) {
            return None;
        }
        runs.push(format!("{count}{kind}"));
        let after = after.strip_prefix(kind)?;
        rest = match after.strip_prefix(' ') {
            Some("") => return None,
            Some(next) => next,
            None => after,
        };
    }
    Some(runs.join(" "))
}

/// The fault of a text that begins with no known country.
fn country_fault(text: &str) -> IbanFault {
    if text.is_empty() {
        return IbanFault::Empty;
    }
    if let Some(fault) = foreign(text) {
        return fault;
    }
    let country = text.get(..2).unwrap_or_default();
    if country.len() < 2 || country.bytes().any(|byte| byte.is_ascii_digit()) {
        IbanFault::NoCountry
    } else if country.bytes().any(|byte| byte.is_ascii_lowercase()) {
        IbanFault::SmallCountry
    } else {
        IbanFault::Country(country.to_owned())
    }
}

/// The first character that no IBAN has, of any country.
fn foreign(text: &str) -> Option<IbanFault> {
    let mut characters = text.chars().zip(1..);
    let (found, at) = characters.find(|(found, _)| !found.is_ascii_alphanumeric())?;
    let found = character::name(found);
    Some(IbanFault::Foreign { at, found })
}

/// The runs of a structure such as `4a 2n`: the number of characters, and their kind.
pub(super) fn runs(structure: &str) -> impl Iterator<Item = (Option<usize>, &str)> {
    structure.split(' ').map(|run| {
        let at = run.len().saturating_sub(1);
        let (count, kind) = run.split_at_checked(at).unwrap_or_default();
        (count.parse().ok(), kind)
    })
}

const fn fits(character: char, kind: &str) -> bool {
    match kind.as_bytes() {
        b"n" => character.is_ascii_digit(),
        b"a" => character.is_ascii_uppercase(),
        _ => character.is_ascii_digit() || character.is_ascii_uppercase(),
    }
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
    use ::iban::{BaseIban, Iban, ParseIbanError};

    /// The countries of the registry as schwifty 2026.10.1 (PyPI) reads it: country, length, structure.
    const ORACLE: &str = include_str!("iban_oracle.txt");

    fn is_valid(text: &str) -> bool {
        Ibans::default().judge(text).is_ok()
    }

    /// An IBAN of a country, with the right check digits.
    fn example(country: &str, structure: &str) -> String {
        let rest: String = runs(structure)
            .map(|(count, kind)| if kind == "n" { "7" } else { "B" }.repeat(count.unwrap()))
            .collect();
        let check = 98 - remainder(&format!("{country}00{rest}")).unwrap();
        format!("{country}{check:02}{rest}")
    }

    /// Every country of two other readers of the registry, with its length and structure, and no country beside them.
    #[test]
    fn the_table_is_that_of_others() {
        assert!(COUNTRIES.is_sorted_by(|one, other| one.0 < other.0));
        let rows = ORACLE.lines().filter(|line| !line.starts_with('#'));
        let rows = rows.map(|line| {
            let (country, rest) = line.split_once(' ').unwrap();
            let (length, structure) = rest.split_once(' ').unwrap();
            (country, length.parse().unwrap(), structure)
        });
        assert_eq!(rows.collect::<Vec<_>>(), COUNTRIES);
        let letters = || 'A'..='Z';
        let mut known = 0;
        for country in letters().flat_map(|one| letters().map(move |other| format!("{one}{other}")))
        {
            let text = example(&country, "11n");
            let base: BaseIban = text.parse().unwrap();
            if !matches!(Iban::try_from(base), Err(ParseIbanError::UnknownCountry(_))) {
                known += 1;
                let is_ours = COUNTRIES.iter().any(|row| row.0 == country);
                assert!(is_ours, "{country}");
            }
        }
        assert!(known >= 87, "{known}");
    }

    /// Every change of one character is detected, here and by the independent implementation.
    #[test]
    fn one_character_that_differs() {
        for (country, length, structure) in COUNTRIES {
            let text = example(country, structure);
            assert_eq!(text.len(), length, "{text}");
            assert!(length <= MAX_LENGTH && is_valid(&text), "{text}");
            // The other implementation has an older structure of Brazil, and lacks two countries.
            let is_known = text.parse::<Iban>().is_ok();
            assert_ne!(is_known, ["BR", "HN", "PK"].contains(&country), "{text}");
            if !is_known {
                continue;
            }
            for at in 0..text.len() {
                for byte in "0123456789ABZ".bytes() {
                    let mut changed = text.clone().into_bytes();
                    changed[at] = byte;
                    let changed = String::from_utf8(changed).unwrap();
                    let theirs = changed.parse::<Iban>().is_ok();
                    assert_eq!(is_valid(&changed), theirs, "{changed}");
                }
            }
        }
    }

    #[test]
    fn each_part_has_its_fault() {
        let fault = |text: &str| Ibans::default().judge(text).err();
        assert_eq!(fault("NO9386011117947"), None);
        for good in [
            "PK68AAAA0000000000000001",
            "DE02000000000000000030",
            "DE97000000000000000066",
            "DE98000000000000000048",
        ] {
            assert_eq!(fault(good), None);
        }
        let table = [
            ("", "it is empty"),
            ("N", "does not begin with a country"),
            ("86011117947", "does not begin with a country"),
            ("no9386011117947", "its country stands in small letters"),
            ("XX9386011117947", "XX is no country that has IBANs"),
            ("\u{1f600}\u{1f600}", "its character 1 is U+1F600"),
            ("DE99000000000000000030", "are 00, 01 or 99"),
            ("DE00000000000000000066", "are 00, 01 or 99"),
            ("DE01000000000000000048", "are 00, 01 or 99"),
            ("NO93", "of NO has 15 characters; this one has 4"),
            ("NO93 8601 1117 947", "its character 5 is a blank"),
            ("NO93-8601-1117-947", "its character 5 is '-'"),
            ("NO938601111794", "of NO has 15 characters; this one has 14"),
            (
                "NO93860111179470",
                "of NO has 15 characters; this one has 16",
            ),
            (
                "NO938601111794\u{e6}",
                "its character 15 is U+00E6, which is outside ASCII",
            ),
            (
                "NOA386011117947",
                "its character 3 must be a digit, and is a capital",
            ),
            (
                "PK68AA1A0000000000000001",
                "its character 7 must be a capital, and is a digit",
            ),
            (
                "PK68AAAA000000000000000a",
                "its character 24 must be a capital or a digit, and is a small letter",
            ),
            ("NO9386011117948", "its check digits do not fit the rest"),
        ];
        for (text, expected) in table {
            let said = fault(text).unwrap().to_string();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn countries_that_a_bank_adds() {
        let country = IbanCountry::new("MA", 28, "24n").unwrap();
        let ibans = Ibans::with(vec![country]);
        let text = example("MA", "24n");
        assert_eq!(ibans.judge(&text), Ok(()));
        assert_eq!(ibans.judge("NO9386011117947"), Ok(()));
        assert!(!is_valid(&text));
        let short = ibans.judge(&text[..27]).unwrap_err().to_string();
        assert_eq!(short, "an IBAN of MA has 28 characters; this one has 27");
        // As the registry writes it, and without the blank.
        for structure in ["4!a20!n", "4a20n", "4!a 20!n"] {
            let country = IbanCountry::new("MA", 28, structure).unwrap();
            assert_eq!(country.structure, "4a 20n", "{structure}");
        }
        for (code, length, structure) in [
            ("ma", 28, "24n"),
            ("MAR", 28, "24n"),
            ("NO", 15, "11n"),
            ("MA", 27, "24n"),
            ("MA", 4, ""),
            ("MA", 4, "0n"),
            ("MA", 28, "24x"),
            ("MA", 28, "20n  4n"),
            ("MA", 28, "24n "),
            ("MA", 28, " 24n"),
            ("MA", 28, "+24n"),
            ("MA", 28, "024n"),
            ("MA", 28, "24!!n"),
            ("MA", 28, "24!"),
            ("MA", 28, "4!a20!n,"),
            ("MA", 35, "31n"),
            ("MA", 28, "n24"),
            ("MA", 28, "24\u{e6}"),
            ("MA", 28, "18446744073709551615n 25n"),
        ] {
            assert!(
                IbanCountry::new(code, length, structure).is_err(),
                "{structure}"
            );
        }
    }
}
