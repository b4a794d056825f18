//! The list of reasons, and the nearest reason to a misspelt word.

use crate::interface::{Code, Reason, guide};
use std::fmt::Write;

/// Every reason with its status and its title, in the order of the rules.
pub(super) fn list() -> String {
    lines(Reason::ALL.iter())
}

/// The reasons of a code.
pub(super) fn of_code(code: Code) -> String {
    lines(
        Reason::ALL
            .iter()
            .filter(|reason| reason.code() == Some(code)),
    )
}

fn lines<'a>(reasons: impl Iterator<Item = &'a Reason>) -> String {
    let mut text = String::new();
    let width = Reason::ALL.iter().map(|reason| reason.slug().len()).max();
    let width = width.unwrap_or_default();
    for reason in reasons {
        // Writing to a String never fails.
        let _ = writeln!(
            text,
            "{:width$}  {}  {}",
            reason.slug(),
            reason.status(),
            reason.title()
        );
    }
    text.push_str("\nportvakt explain REASON says when it is given and what to do.\n");
    text
}

/// The guide to one reason, under its name.
pub(super) fn describe(reason: Reason) -> String {
    format!("{}\n\n{}", reason.slug(), guide::describe(reason))
}

/// The most similar slug: one that contains the word, or else the one with the smallest edit distance, up to a third of the
/// word's letters.
pub(super) fn nearest(word: &str) -> Option<&'static str> {
    let word: String = word
        .to_ascii_lowercase()
        .replace(['_', ' '], "-")
        .chars()
        .take(64)
        .collect();
    let slugs = || Reason::ALL.iter().map(|reason| reason.slug());
    let holding = slugs().find(|slug| word.len() > 3 && slug.contains(&word));
    holding.or_else(|| {
        let measured = slugs().map(|slug| (distance(&word, slug), slug));
        let (letters, slug) = measured.min_by_key(|(letters, _)| *letters)?;
        (letters <= word.len() / 3).then_some(slug)
    })
}

/// The edit distance (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut corner = index;
        let mut left = index.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, found) in row.iter_mut().skip(1).zip(other.chars()) {
            let changed = corner.saturating_add(usize::from(letter != found));
            corner = *cell;
            left = changed
                .min(corner.saturating_add(1))
                .min(left.saturating_add(1));
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words() {
        for (word, slug) in [
            ("signature-missmatch", "signature-mismatch"),
            ("SIGNATURE_MISMATCH", "signature-mismatch"),
            ("date-skew", "date-skewed"),
            ("skewed", "date-skewed"),
            ("certifcate-expired", "certificate-expired"),
        ] {
            assert_eq!(nearest(word), Some(slug), "{word}");
        }
        for word in ["", "x", "nonsense", "401", "403", &"x".repeat(10_000)] {
            assert_eq!(nearest(word), None, "{word}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn all_are_listed() {
        let list = list();
        assert!(
            Reason::ALL
                .iter()
                .all(|reason| list.contains(reason.title()))
        );
    }
}
