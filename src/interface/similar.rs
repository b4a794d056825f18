//! Names that look like a name that is missing, for the text of a fault (ERR-10).
//!
//! Only refused requests come here. The work is bounded: long names are not compared, and no more than two edits are tried. Deliberately not
//! here: names that a core reads as another name ([`super::fold`]), which are refused whether or not that name is missing.

/// The longest name that is compared, in bytes. The interface's names are shorter.
const MAX_LENGTH: usize = 64;

/// From this length on, a name may differ by two edits; a shorter one by one.
const LONG: usize = 8;

/// Whether a name is probably a misspelling of a known one: other letter case, another kind of separator, or few letters that are missing,
/// added, different or in another order. The name itself is no misspelling.
pub fn is_misspelling(name: &str, known: &str) -> bool {
    let (one, other) = (name.as_bytes(), known.as_bytes());
    let edits = if other.len() < LONG { 1 } else { 2 };
    // Most names are told apart by their lengths.
    one != other
        && one.len().abs_diff(other.len()) <= edits
        && one.len() <= MAX_LENGTH
        && is_within(one, other, edits)
}

/// The first name that is probably a misspelling of a known one, if it consists of letters, hyphens and underscores: other names could
/// hold an id.
pub fn find<'n>(mut names: impl Iterator<Item = &'n str>, known: &str) -> Option<&'n str> {
    let is_plain = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    names.find(|name| is_misspelling(name, known) && name.bytes().all(is_plain))
}

/// Whether at most so many edits lead from one name to the other. Each edit branches into four, and there are at most two.
fn is_within(mut one: &[u8], mut other: &[u8], edits: usize) -> bool {
    while let ([a, rest @ ..], [b, other_rest @ ..]) = (one, other)
        && is_same(*a, *b)
    {
        (one, other) = (rest, other_rest);
    }
    let (Some(fewer), false) = (edits.checked_sub(1), one.is_empty() && other.is_empty()) else {
        return one.is_empty() && other.is_empty();
    };
    let (next, other_next) = (one.get(1..), other.get(1..));
    let is_added = next.is_some_and(|next| is_within(next, other, fewer));
    let is_left_out = || other_next.is_some_and(|rest| is_within(one, rest, fewer));
    let is_other = || match (next, other_next) {
        (Some(next), Some(rest)) => is_within(next, rest, fewer),
        _ => false,
    };
    let is_swapped = || match (one, other) {
        ([a, b, rest @ ..], [c, d, other_rest @ ..]) if is_same(*a, *d) && is_same(*b, *c) => {
            is_within(rest, other_rest, fewer)
        }
        _ => false,
    };
    is_added || is_left_out() || is_other() || is_swapped()
}

/// Letter case does not count, nor does the kind of a separator.
fn is_same(one: u8, other: u8) -> bool {
    let plain = |byte: u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings() {
        for (name, known) in [
            ("creditorAcount", "creditorAccount"),
            ("creditorAccuont", "creditorAccount"),
            ("creditoraccount", "creditorAccount"),
            ("creditor_Account", "creditorAccount"),
            ("credtorAcount", "creditorAccount"),
            ("creditorsAccounts", "creditorAccount"),
            ("x_request_id", "x-request-id"),
            ("xrequestid", "x-request-id"),
            ("psu-ip-adress", "psu-ip-address"),
            ("ibn", "iban"),
            ("paymentId", "paymentIds"),
        ] {
            assert!(is_misspelling(name, known), "{name}");
        }
        for (name, known) in [
            ("creditorAccount", "creditorAccount"),
            ("creditorAccount", "debtorAccount"),
            ("creditorName", "creditorAgent"),
            ("bn", "iban"),
            ("date", "psu-id"),
            ("", "iban"),
        ] {
            assert!(!is_misspelling(name, known), "{name}");
        }
        let long = "a".repeat(10_000);
        assert!(!is_misspelling(&long, &long[1..]));
        let names = ["creditorAcount1", "creditorAcount", "creditorAccoun"];
        assert_eq!(
            find(names.into_iter(), "creditorAccount"),
            Some("creditorAcount")
        );
    }
}
