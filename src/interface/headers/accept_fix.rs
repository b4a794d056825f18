//! `x-accept-fix` (HDR-16): breaking changes that a TPP asks for early, by the names of the versioning table.
//!
//! The table has days without a time zone. From the first second of its day in UTC, a fix is on for every request, so that
//! the time of the change is the same in every process.

use crate::character::OddCharacter;
use http::HeaderValue;
use portvakt_base::clock::Timestamp;
use std::sync::LazyLock;

/// A breaking change of the versioning table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The name in the header. The comparison of names is case-sensitive.
    pub name: &'static str,
    /// The time from which the fix is on for every request ("Made default").
    pub default_from: Timestamp,
}

/// The number of fixes.
pub const COUNT: usize = 4;

/// Every fix, in the order of the versioning table (§Versioning 2).
pub static TABLE: [Fix; COUNT] = [
    // 01-Aug-2020
    fix("amount-as-string", 1_596_240_000),
    // 13-Nov-2024
    fix(
        "cardaccount-switch-originalamount-and-transactionamount",
        1_731_456_000,
    ),
    // 01-Oct-2024
    fix("longer-names", 1_727_740_800),
    // 13-Nov-2024
    fix("cash-account-type-iso", 1_731_456_000),
];

const fn fix(name: &'static str, default_from: u64) -> Fix {
    Fix {
        name,
        default_from: Timestamp::from_unix(default_from),
    }
}

/// A set of fixes of the [`TABLE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixes([bool; COUNT]);

/// The header does not name fixes of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it must name fixes, separated by commas; those that exist are {}", Fixes::ALL.joined(", "))]
pub struct UnknownFix;

/// Parses the header's values: several field lines form one list (RFC 9110, section 5.3), and empty elements are ignored
/// (section 5.6.1). Without the header the set is empty.
///
/// # Errors
/// A name that is not in the table, or a header without one.
pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Fixes, UnknownFix> {
    let mut named = Fixes::default();
    for value in values {
        // Some documents of this interface show the value, or each name, in quotes: nothing is decided by them.
        let quotes = value.iter().filter(|byte| **byte == b'"').count();
        let mut elements = value
            .split(|byte| *byte == b',')
            .map(|element| unquoted(super::trim(element), quotes))
            .filter(|element| !element.is_empty())
            .peekable();
        if elements.peek().is_none() {
            return Err(UnknownFix);
        }
        for element in elements {
            *named.flag_mut(element).ok_or(UnknownFix)? = true;
        }
    }
    Ok(named)
}

/// The reason why the values do not name fixes of the table (ERR-10). Elements count from 1, over all field lines.
pub fn fault<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut number = 0_usize;
    for value in values {
        let quotes = value.iter().filter(|byte| **byte == b'"').count();
        if quotes % 2 == 1 {
            return format!("a quotation mark in it has no second one; {UnknownFix}");
        }
        let before = number;
        for element in value.split(|byte| *byte == b',') {
            let element = unquoted(super::trim(element), quotes);
            if element.is_empty() {
                continue;
            }
            number = number.saturating_add(1);
            let mut known = TABLE.iter().map(|fix| fix.name.as_bytes());
            if known.clone().any(|name| name == element) {
                continue;
            }
            let what = match OddCharacter::outside_ascii(element) {
                Some(odd) => odd.within(&format!("element {number}")),
                None if known.any(|name| name.eq_ignore_ascii_case(element)) => {
                    format!("element {number} stands in another letter case")
                }
                None => format!("element {number} is none of the fixes"),
            };
            return format!("{what}; {UnknownFix}");
        }
        if number == before {
            return format!("it names nothing; {UnknownFix}");
        }
    }
    UnknownFix.to_string()
}

/// An element without the quotes around it, if the value has pairs of them.
fn unquoted(element: &[u8], quotes: usize) -> &[u8] {
    if quotes == 0 || quotes % 2 == 1 {
        return element;
    }
    let element = element.strip_prefix(b"\"").unwrap_or(element);
    super::trim(element.strip_suffix(b"\"").unwrap_or(element))
}

/// The fixes that are on for a request: those that it names, and those whose default date is before `now`.
pub fn resolve(named: Fixes, now: Timestamp) -> Fixes {
    let mut on = named;
    for (fix, flag) in TABLE.iter().zip(&mut on.0) {
        *flag |= fix.default_from <= now;
    }
    on
}

impl Fixes {
    const ALL: Self = Self([true; COUNT]);

    /// Whether each fix of the [`TABLE`] is in the set, in its order.
    pub const fn flags(&self) -> &[bool; COUNT] {
        &self.0
    }

    /// The header value for the core: the names in the order of the table, with commas between them. `None` if the set is
    /// empty.
    pub fn header_value(&self) -> Option<HeaderValue> {
        // Once all default dates have passed, every request has this one.
        static ALL: LazyLock<Option<HeaderValue>> = LazyLock::new(|| Fixes::ALL.written());
        if *self == Self::ALL {
            ALL.clone()
        } else {
            self.written()
        }
    }

    fn written(&self) -> Option<HeaderValue> {
        let names = self.joined(",");
        (!names.is_empty()).then(|| HeaderValue::try_from(names).ok())?
    }

    fn joined(&self, separator: &str) -> String {
        let on = TABLE.iter().zip(&self.0).filter(|(_, flag)| **flag);
        let names: Vec<_> = on.map(|(fix, _)| fix.name).collect();
        names.join(separator)
    }

    fn flag_mut(&mut self, name: &[u8]) -> Option<&mut bool> {
        let mut all = TABLE.iter().zip(&mut self.0);
        all.find(|(fix, _)| fix.name.as_bytes() == name)
            .map(|(_, flag)| flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::date;

    const BEFORE_ALL: Timestamp = Timestamp::from_unix(1_500_000_000);
    const AFTER_ALL: Timestamp = Timestamp::from_unix(1_800_000_000);

    fn named(values: &[&str]) -> Result<String, UnknownFix> {
        let fixes = parse(values.iter().map(|value| value.as_bytes()))?;
        Ok(fixes.joined(" "))
    }

    #[test]
    fn the_dates_are_those_of_the_interface() {
        let dates = TABLE.map(|fix| date::format(fix.default_from));
        let expected = [
            "Sat, 01 Aug 2020 00:00:00 GMT",
            "Wed, 13 Nov 2024 00:00:00 GMT",
            "Tue, 01 Oct 2024 00:00:00 GMT",
            "Wed, 13 Nov 2024 00:00:00 GMT",
        ];
        assert_eq!(dates, expected);
    }

    /// Where its text is beside this checkout: the rows of the versioning table, in its order.
    #[test]
    fn the_table_is_that_of_the_interface() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let Ok(text) = std::fs::read_to_string(root.join("../../../shared/spec/interface.md"))
        else {
            return;
        };
        let (_, table) = text.split_once("| x-accept-fix value |").unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        let rows = table.lines().skip(2).map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            (cells[1].to_owned(), cells[4].replace('-', " "))
        });
        let known = TABLE.map(|fix| {
            let date = date::format(fix.default_from);
            (fix.name.to_owned(), date[5..16].to_owned())
        });
        assert_eq!(rows.collect::<Vec<_>>(), known);
    }

    //= HDR-16 accepted
    #[test]
    fn lists_of_names() {
        const TWO: &str = "amount-as-string longer-names";
        let table: [(&[&str], &str); 10] = [
            (&[], ""),
            (&["longer-names"], "longer-names"),
            (&["longer-names,amount-as-string"], TWO),
            (&[" longer-names ,\tamount-as-string "], TWO),
            (&["longer-names", "amount-as-string"], TWO),
            (&["longer-names,longer-names"], "longer-names"),
            (&[",longer-names,,"], "longer-names"),
            (&["\"longer-names, amount-as-string\""], TWO),
            (&["\"longer-names\", \" amount-as-string \""], TWO),
            (&["\"longer-names\"", "amount-as-string"], TWO),
        ];
        for (values, expected) in table {
            assert_eq!(named(values).as_deref(), Ok(expected), "{values:?}");
        }
    }

    //= HDR-16 refused
    #[test]
    fn other_names() {
        let table: [&[&str]; 12] = [
            &["amount-as-number"],
            &["Amount-As-String"],
            &["amount-as-string;q=1"],
            &["amount-as-string longer-names"],
            &["amount-as-string,unknown"],
            &["amount-as-string", "unknown"],
            &["amount-as-string", ""],
            &[" , "],
            &["\"longer-names"],
            &["\"\"longer-names\"\""],
            &["longer\"\"-names"],
            &["\"\""],
        ];
        for values in table {
            assert_eq!(named(values), Err(UnknownFix), "{values:?}");
        }
        let text = UnknownFix.to_string();
        assert!(TABLE.iter().all(|fix| text.contains(fix.name)), "{text}");
    }

    #[test]
    fn a_default_date_that_has_passed_turns_a_fix_on() {
        let none = Fixes::default();
        let longer = parse([&b"longer-names"[..]]).unwrap();
        assert_eq!(resolve(longer, BEFORE_ALL), longer);
        assert_eq!(resolve(none, BEFORE_ALL), none);
        assert_eq!(resolve(none, AFTER_ALL), Fixes::ALL);
        let day = TABLE[2].default_from.unix();
        let on = |at| resolve(none, Timestamp::from_unix(at)).joined(" ");
        assert_eq!(on(day - 1), "amount-as-string");
        assert_eq!(on(day), "amount-as-string longer-names");
    }

    #[test]
    fn what_goes_upstream_is_in_the_order_of_the_table() {
        let two = parse([&b"longer-names, amount-as-string"[..]]).unwrap();
        assert_eq!(two.header_value().unwrap(), "amount-as-string,longer-names");
        assert_eq!(
            Fixes::ALL.header_value().unwrap(),
            "amount-as-string,cardaccount-switch-originalamount-and-transactionamount,longer-names,cash-account-type-iso"
        );
        assert_eq!(Fixes::default().header_value(), None);
    }
}
