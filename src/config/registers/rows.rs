//! What the rows of a register's file say of its mapping: most mistakes in a mapping leave a valid file that authorises nobody.
//!
//! Invariant: the counts of the file decide, so that no row is read twice. Deliberately not here: faults of a mapping by itself (lists.rs),
//! and files that are not of its form (trust::register).

use super::super::value::Value;
use crate::trust::register::{FileCounts, Mapping, Member, Register};

/// Warns of rows that the mapping leaves without an effect, each time with what to change. `country` is that of the bank.
pub(super) fn warn(file: &Value<'_>, register: &Register, mapping: &Mapping, country: &str) {
    let counts = register.counts();
    let has = |member: Member| {
        let mut origins = mapping.origins.iter();
        origins.any(|(mapped, _)| *mapped == member)
    };
    let warnings = [
        unknown_roles(register.unknown_roles()),
        without_identity(counts, has(Member::Tpp)),
        without_effect(counts, has(Member::Countries), country),
        without_date(counts, has(Member::Changed)),
    ];
    for text in warnings.into_iter().flatten() {
        file.warn(text);
    }
}

fn unknown_roles(words: &[String]) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let words = words.join(", ");
    Some(format!(
        "the file has roles that the mapping does not name, and that authorise nothing: {words}; name them in roles, as none where they do not matter"
    ))
}

/// Rows that no certificate can name, if they are more than the others.
fn without_identity(counts: FileCounts, is_whole: bool) -> Option<String> {
    let (rows, without) = (counts.institutions, counts.without_identity);
    if rows.saturating_sub(without) >= without {
        return None;
    }
    let members = if is_whole {
        "tpp"
    } else {
        "country, authority and id"
    };
    Some(format!(
        "{without} of {rows} rows have no identity that a certificate can have (PSD<country>-<authority>-<id>), and authorise nobody: compare {members} of the mapping with the file"
    ))
}

/// Rows none of which authorises anybody in the bank's country.
fn without_effect(counts: FileCounts, has_countries: bool, country: &str) -> Option<String> {
    if counts.authorised == 0 {
        return Some(
            "no row has an authorisation that stands, so that the file authorises nobody: compare authorised with the texts of status in the file"
                .to_owned(),
        );
    }
    if counts.with_role > 0 {
        return None;
    }
    let countries = if has_countries {
        ", and countries and everywhere with registers.host_country"
    } else {
        ""
    };
    Some(format!(
        "no row that stands has PSP_AI or PSP_PI in {country}, so that the file authorises nobody: compare roles and list_separator with the texts of roles in the file{countries}"
    ))
}

/// Rows without a date although one is mapped.
fn without_date(counts: FileCounts, has_changed: bool) -> Option<String> {
    (has_changed && counts.dated == 0).then(|| {
        "no row has a date, though changed is mapped: the modification time of the file counts, which a copy renews; compare changed with the file, or leave it out"
            .to_owned()
    })
}
