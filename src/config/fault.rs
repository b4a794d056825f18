//! Faults and warnings of a configuration, with their positions.
//!
//! An [`Inspection`] collects both over all files; [`ConfigFaults`] is its result if there are faults. Invariants:
//! [`Inspection::conclude`] returns a value only if no fault was reported, regardless of how the caller handled each `None`; and a
//! [`Warning`] prevents nothing.

use std::cell::{Cell, RefCell};
use std::fmt;

use super::expected::Record;
use super::named_file::NamedFile;
pub use super::position::FilePosition;
use crate::clock::Timestamp;
use crate::trust::Validity;

/// One fault of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigFault {
    /// The position of the fault.
    pub place: FilePosition,
    /// The value found and the values accepted. Never contains a secret.
    pub text: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// A condition of a valid configuration that its operator should change. The gateway starts with it.
#[derive(Clone, Debug)]
pub struct Warning {
    place: FilePosition,
    condition: Condition,
}

#[derive(Clone, Debug)]
enum Condition {
    /// At any time.
    Always(String),
    /// Before and after a period, with a text for each.
    Outside(Validity, [String; 2]),
    /// In the last [`SOON`] of a period.
    Soon(Validity, String),
    /// While certificates of a folder or file are not valid, or end soon: the folder, and the consequence if none of them is valid.
    Folder(String, Vec<Validity>, &'static str),
}

/// The time before a certificate's end from which the gateway warns, in seconds: 30 days, as the alert PortvaktCertificateEndsSoon.
const SOON: u64 = 30 * 86_400;

/// Whether a certificate with this period is valid, and ends soon.
fn ends_soon(period: Validity, now: Timestamp) -> bool {
    period.contains(now) && period.not_after.distance(now) < SOON
}

impl Warning {
    /// The warning as a line; `None` if its condition is not met at `now`.
    pub fn at(&self, now: Timestamp) -> Option<ConfigFault> {
        let text = match &self.condition {
            Condition::Always(text) => text.clone(),
            Condition::Outside(period, _) if period.contains(now) => return None,
            Condition::Outside(period, [before, _]) if now < period.not_before => before.clone(),
            Condition::Outside(_, [_, after]) => after.clone(),
            Condition::Soon(period, text) if ends_soon(*period, now) => text.clone(),
            Condition::Soon(..) => return None,
            Condition::Folder(folder, periods, consequence) => {
                let invalid = periods.iter().filter(|period| !period.contains(now));
                match (invalid.count(), periods.len()) {
                    (0, all) => {
                        let ends = periods.iter().filter(|period| ends_soon(**period, now));
                        let ends: Vec<_> = ends.map(|period| period.not_after).collect();
                        let (count, first) = (ends.len(), ends.iter().min()?);
                        format!(
                            "{count} of {all} certificates in {folder} end within 30 days, the first at {first}"
                        )
                    }
                    (count, all) if count == all => {
                        format!("no certificate in {folder} is valid now{consequence}")
                    }
                    (count, all) => {
                        format!("{count} of {all} certificates in {folder} are not valid now")
                    }
                }
            }
        };
        Some(ConfigFault {
            place: self.place.clone(),
            text,
        })
    }
}

/// All faults of the files that were read: never empty, ordered by file, line and column, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFaults(Vec<ConfigFault>);

impl ConfigFaults {
    /// The faults in order, at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigFault> {
        self.0.iter()
    }
}

impl From<ConfigFault> for ConfigFaults {
    fn from(fault: ConfigFault) -> Self {
        Self(vec![fault])
    }
}

impl IntoIterator for ConfigFaults {
    type Item = ConfigFault;
    type IntoIter = std::vec::IntoIter<ConfigFault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ConfigFaults {
    type Item = &'a ConfigFault;
    type IntoIter = std::slice::Iter<'a, ConfigFault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ConfigFaults {
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

impl std::error::Error for ConfigFaults {}

/// Collects faults. It is shared by reference, so that the readers of several sections and files can report at the same time.
#[derive(Debug, Default)]
pub struct Inspection {
    faults: RefCell<Vec<ConfigFault>>,
    warnings: RefCell<Vec<Warning>>,
    files: RefCell<Vec<NamedFile>>,
    /// Whether the configuration is one of production.
    production: Cell<bool>,
    record: Record,
}

impl Inspection {
    /// An inspection without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// An inspection that also records what the readers ask for.
    pub(super) fn recording() -> Self {
        Self {
            record: Record::on(),
            ..Self::default()
        }
    }

    /// The record of what the readers ask for.
    pub(super) const fn record(&self) -> &Record {
        &self.record
    }

    /// Reports one fault. For a fault that involves several values, pass the [`FilePosition`] of the value to change.
    pub fn report(&self, place: FilePosition, text: impl Into<String>) {
        self.faults.borrow_mut().push(ConfigFault {
            place,
            text: text.into(),
        });
    }

    /// Warns at any time.
    pub(super) fn warn(&self, place: FilePosition, text: impl Into<String>) {
        let condition = Condition::Always(text.into());
        self.warnings
            .borrow_mut()
            .push(Warning { place, condition });
    }

    /// From here on the configuration is known to be one of production.
    pub(super) fn is_of_production(&self) {
        self.production.set(true);
    }

    /// Warns of a setting of production that is weaker than the default.
    pub(super) fn warn_of_weaker(&self, place: FilePosition, text: impl Into<String>) {
        if self.production.get() {
            self.warn(place, text);
        }
    }

    /// Warns before and after a period, with a text for each.
    pub(super) fn warn_outside(&self, place: FilePosition, period: Validity, texts: [String; 2]) {
        let condition = Condition::Outside(period, texts);
        self.warnings
            .borrow_mut()
            .push(Warning { place, condition });
    }

    /// Warns in the last 30 days of a period.
    pub(super) fn warn_soon(&self, place: FilePosition, period: Validity, text: String) {
        let condition = Condition::Soon(period, text);
        self.warnings
            .borrow_mut()
            .push(Warning { place, condition });
    }

    /// Warns while certificates in a folder or file, which have these periods, are not valid or end within 30 days. `consequence` completes
    /// the text if none is valid.
    pub(super) fn warn_of_folder(
        &self,
        place: FilePosition,
        folder: String,
        periods: Vec<Validity>,
        consequence: &'static str,
    ) {
        let condition = Condition::Folder(folder, periods, consequence);
        self.warnings
            .borrow_mut()
            .push(Warning { place, condition });
    }

    /// The warnings so far, in the order of the file.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.warnings.borrow().clone();
        warnings.sort_by(|left, right| left.place.cmp(&right.place));
        warnings
    }

    /// Adds the faults of an unreadable file, so that the other files are still inspected.
    pub fn absorb(&self, faults: ConfigFaults) {
        self.faults.borrow_mut().extend(faults);
    }

    /// Records a file or folder that the configuration names.
    pub(super) fn names(&self, file: NamedFile) {
        self.files.borrow_mut().push(file);
    }

    /// The files and folders recorded so far.
    pub(super) fn named(&self) -> Vec<NamedFile> {
        self.files.borrow().clone()
    }

    /// The number of faults reported so far.
    pub(super) fn count(&self) -> usize {
        self.faults.borrow().len()
    }

    /// Whether no fault has been reported so far.
    pub fn is_clean(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// Ends the inspection.
    ///
    /// # Errors
    ///
    /// Every fault that was recorded.
    pub fn finish(self) -> Result<(), ConfigFaults> {
        let mut faults = self.faults.into_inner();
        if faults.is_empty() {
            return Ok(());
        }
        faults.sort();
        faults.dedup();
        Err(ConfigFaults(faults))
    }

    /// Ends the inspection with the value that was built from `file`.
    ///
    /// # Errors
    ///
    /// All reported faults; also if there is neither a value nor a fault, which would be an error of the reader.
    pub fn conclude<T>(self, file: &str, value: Option<T>) -> Result<T, ConfigFaults> {
        self.finish()?;
        value.ok_or_else(|| {
            ConfigFault {
                place: FilePosition::start_of(file),
                text: "refused without a reason: please report this".into(),
            }
            .into()
        })
    }
}

/// The most characters of a faulty value or key that a fault repeats.
const SHOWN_CHARS: usize = 60;

/// Truncates a text that a fault repeats.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The nearest candidate to `word`, if one is near enough: at most one edit in three letters.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    // Keys are short, and the distance takes quadratic time: a longer word is no misspelling.
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

/// Levenshtein distance in characters, ignoring case and treating `-` as `_`.
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
    fn faults_of_several_files_are_ordered_and_unique() {
        let inspection = Inspection::new();
        inspection.report(place("b.yaml", 1, 1, ""), "late");
        inspection.report(place("a.yaml", 10, 2, "x.y"), "tenth");
        inspection.report(place("a.yaml", 9, 30, "x"), "ninth");
        inspection.report(place("a.yaml", 9, 30, "x"), "ninth");
        inspection.absorb(
            ConfigFault {
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
    fn conclude_returns_a_value_only_without_faults() {
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
    fn faults_are_send_and_sync_errors() {
        fn travels<T: std::error::Error + Send + Sync + 'static>() {}
        travels::<ConfigFaults>();
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
