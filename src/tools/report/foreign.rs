//! Lines that are not counted as they stand: how many of each kind, and where the first of them are.
//!
//! Invariant: a note repeats nothing of a line, which may be one of another program with personal data. Its memory is bounded.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
};

/// The most places of a kind that are named.
const MOST_PLACES: usize = 10;

/// Why a line is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Oddity {
    NotJson,
    TooLong,
    OtherProgram,
    Event,
    Incomplete,
    WrongType,
    OutOfRange,
    UnknownName,
    UnknownMember,
    Repeated,
    FarOutside,
    Outside,
}

impl Oddity {
    /// What the lines are, and whether they count.
    const fn text(self) -> &'static str {
        match self {
            Self::NotJson => {
                "no JSON, such as a text of another program or a part of a line; not counted"
            }
            Self::TooLong => "longer than 1048576 bytes, which no line is; not counted",
            Self::OtherProgram => {
                "JSON of another program or another version, of a kind that this version does not write; not counted"
            }
            Self::Event => "events of the gateway, which are no lines of this log; not counted",
            Self::Incomplete => "without a member that every such line has; not counted",
            Self::WrongType => "with a member of another type; not counted",
            Self::OutOfRange => "with a number or time out of its range; not counted",
            Self::UnknownName => {
                "with a value that this version does not know; counted by the other members"
            }
            Self::UnknownMember => {
                "with a member that this version does not know; counted without it"
            }
            Self::Repeated => "the same as an earlier line; counted once",
            Self::FarOutside => "more than 366 days before or after the period; not counted",
            Self::Outside => "of days before or after the period; not counted in any day",
        }
    }
}

/// The lines of a kind.
#[derive(Debug, Default)]
struct Told {
    count: u64,
    /// The first of them.
    places: Vec<(PathBuf, u64)>,
}

/// The lines of all kinds.
#[derive(Debug, Default)]
pub(super) struct Foreign(BTreeMap<Oddity, Told>);

impl Foreign {
    /// Notes a line by its number in a file, from 1.
    pub(super) fn note(&mut self, oddity: Oddity, file: &Path, line: u64) {
        let told = self.0.entry(oddity).or_default();
        told.count = told.count.saturating_add(1);
        if told.places.len() < MOST_PLACES {
            told.places.push((file.to_owned(), line));
        }
    }

    /// Writes a line for each kind. `of` says of what they are, as in "access log".
    pub(super) fn write(&self, of: &str, notes: &mut impl Write) {
        for (oddity, told) in &self.0 {
            let places = told.places.iter();
            let mut places: Vec<_> = places
                .map(|(file, line)| format!("{} line {line}", crate::tools::input::name(file)))
                .collect();
            let named = u64::try_from(places.len()).unwrap_or(u64::MAX);
            let more = told.count.saturating_sub(named);
            if more > 0 {
                places.push(format!("and {more} more"));
            }
            let places = places.join(", ");
            let Told { count, .. } = told;
            let _ = writeln!(
                notes,
                "{of}: lines that are {}: {count} ({places})",
                oddity.text()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ten_of_a_kind_are_named_and_all_are_counted() {
        let mut foreign = Foreign::default();
        for line in 1..=12 {
            foreign.note(Oddity::NotJson, Path::new("a.log"), line);
        }
        foreign.note(Oddity::Repeated, Path::new("-"), 7);
        let mut notes = Vec::new();
        foreign.write("access log", &mut notes);
        let notes = String::from_utf8(notes).unwrap();
        let lines: Vec<_> = notes.lines().collect();
        let [first, second] = lines[..] else {
            panic!("{notes}");
        };
        assert!(
            first.ends_with(
                ": 12 (a.log line 1, a.log line 2, a.log line 3, a.log line 4, a.log line 5, \
                 a.log line 6, a.log line 7, a.log line 8, a.log line 9, a.log line 10, and 2 more)"
            ),
            "{first}"
        );
        assert!(
            second.ends_with("counted once: 1 (standard input line 7)"),
            "{second}"
        );
    }
}
