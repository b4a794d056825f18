//! Where and why a configuration file was refused.
//!
//! An [`Inspection`] gathers faults while files are walked, over as many files as there are; [`Faults`] is what is left when it has
//! found any. Invariant: a value leaves [`Inspection::conclude`] only if not one fault was recorded, whatever the caller did with
//! the `None`s in between. Deliberately not here: warnings. A line is either right or refused.

use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A spot in a configuration file, and the path of keys that leads to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    /// The file as the operator named it: `config/gateway.yaml`.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: u64,
    /// Column in characters, counted from 1.
    pub column: u64,
    /// Keys from the root, `listener.address` or `anchors[2].folder`; empty for the file itself.
    pub path: String,
}

impl FilePosition {
    /// The beginning of a file.
    pub fn start_of(file: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            line: 1,
            column: 1,
            path: String::new(),
        }
    }
}

impl fmt::Display for FilePosition {
    /// `file:line:column: path`, the form that editors and CI logs make clickable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        if self.path.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.path)
        }
    }
}

/// One thing that is wrong in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Where it is.
    pub place: FilePosition,
    /// What was found and what would be accepted. Never a secret.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Every fault of the files that were read: never empty, ordered by file, line and column, each said once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The faults in order, at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Faults {
    /// One fault per line: `config/gateway.yaml:12:5: listener.adress: unknown key; did you mean "address"?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Faults being gathered. It is shared by reference, so that sections and values of several files can report side by side.
#[derive(Debug, Default)]
pub struct Inspection {
    faults: RefCell<Vec<Fault>>,
    files: RefCell<Vec<PathBuf>>,
}

impl Inspection {
    /// Nothing inspected yet, nothing wrong.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one fault. Faults that show only when values are seen together belong here, with the [`FilePosition`] of the value to change.
    pub fn report(&self, place: FilePosition, text: impl Into<String>) {
        self.faults.borrow_mut().push(Fault {
            place,
            text: text.into(),
        });
    }

    /// Takes in the faults of a file that could not be read at all, so that the other files are still looked at.
    pub fn absorb(&self, faults: Faults) {
        self.faults.borrow_mut().extend(faults);
    }

    /// Notes a file or folder that the configuration names.
    pub(super) fn names(&self, path: PathBuf) {
        self.files.borrow_mut().push(path);
    }

    /// What was noted so far.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        self.files.borrow().clone()
    }

    /// How many faults were reported so far.
    pub(super) fn count(&self) -> usize {
        self.faults.borrow().len()
    }

    /// Whether nothing has been reported so far.
    pub fn is_clean(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// Ends the inspection.
    ///
    /// # Errors
    ///
    /// Every fault that was recorded.
    pub fn finish(self) -> Result<(), Faults> {
        let mut faults = self.faults.into_inner();
        if faults.is_empty() {
            return Ok(());
        }
        faults.sort();
        faults.dedup();
        Err(Faults(faults))
    }

    /// Ends the inspection with what was built from `file`.
    ///
    /// # Errors
    ///
    /// Every fault that was recorded; also if there is no value though nobody said why, which would be a fault of the reader.
    pub fn conclude<T>(self, file: &str, value: Option<T>) -> Result<T, Faults> {
        self.finish()?;
        value.ok_or_else(|| {
            Fault {
                place: FilePosition::start_of(file),
                text: "refused without a reason: please report this".into(),
            }
            .into()
        })
    }
}

/// How much of a wrong value or key a fault repeats, in characters.
const SHOWN_CHARS: usize = 60;

/// The beginning of a text that a fault repeats.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The candidate that `word` is most likely a slip of, if one is near: at most one edit in three letters.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    // Names of keys are short. A longer word is no slip of any, and distances are quadratic.
    if word.len() > 64 {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters, ignoring case and taking `-` for `_`, as people do.
fn distance(left: &str, right: &str) -> usize {
    let fold = |c: char| {
        if c == '-' {
            '_'
        } else {
            c.to_ascii_lowercase()
        }
    };
    let right: Vec<char> = right.chars().map(fold).collect();
    let mut costs: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.chars().map(fold).enumerate() {
        let mut before = row + 1;
        let mut next = vec![before];
        for (other, window) in right.iter().zip(costs.windows(2)) {
            let &[diagonal, above] = window else { continue };
            before = (diagonal + usize::from(letter != *other))
                .min(above + 1)
                .min(before + 1);
            next.push(before);
        }
        costs = next;
    }
    costs.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, line: u64, column: u64, path: &str) -> FilePosition {
        FilePosition {
            file: file.into(),
            line,
            column,
            path: path.into(),
        }
    }

    #[test]
    fn faults_of_several_files_are_ordered_and_said_once() {
        let inspection = Inspection::new();
        inspection.report(place("b.yaml", 1, 1, ""), "late");
        inspection.report(place("a.yaml", 10, 2, "x.y"), "tenth");
        inspection.report(place("a.yaml", 9, 30, "x"), "ninth");
        inspection.report(place("a.yaml", 9, 30, "x"), "ninth");
        inspection.absorb(
            Fault {
                place: place("a.yaml", 9, 4, "x"),
                text: "first".into(),
            }
            .into(),
        );
        assert!(!inspection.is_clean());
        assert_eq!(
            inspection.finish().unwrap_err().to_string(),
            "a.yaml:9:4: x: first\na.yaml:9:30: x: ninth\na.yaml:10:2: x.y: tenth\nb.yaml:1:1: late"
        );
    }

    #[test]
    fn a_value_leaves_only_a_clean_inspection() {
        assert_eq!(Inspection::new().conclude("a.yaml", Some(7)).unwrap(), 7);
        assert!(Inspection::new().conclude::<u8>("a.yaml", None).is_err());
        let inspection = Inspection::new();
        inspection.report(place("a.yaml", 1, 1, ""), "bad");
        assert_eq!(
            inspection
                .conclude("a.yaml", Some(7))
                .unwrap_err()
                .to_string(),
            "a.yaml:1:1: bad"
        );
    }

    #[test]
    fn faults_can_travel_as_an_error_between_threads() {
        fn travels<T: std::error::Error + Send + Sync + 'static>() {}
        travels::<Faults>();
    }

    #[test]
    fn the_nearest_word() {
        let known = ["address", "certificate_policy", "anchors", "tls", "body"];
        for (word, expected) in [
            ("adress", Some("address")),
            ("Address", Some("address")),
            ("certificate-policy", Some("certificate_policy")),
            ("anchor", Some("anchors")),
            ("tsl", None),
            ("tl", Some("tls")),
            ("upstream", None),
            ("", None),
            ("ködy", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest(&"a".repeat(10_000), known), None);
    }

    #[test]
    fn distances() {
        for (left, right, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("a-b", "a_b", 0),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }
}
