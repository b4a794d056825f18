//! Collects the faults and warnings of all files of a configuration.
//!
//! Invariants: [`Inspection::conclude`] returns a value only if no fault was reported, regardless of how the caller handled each `None`; and
//! a [`Warning`] prevents nothing.

use super::expected::Record;
use super::fault::{ConfigFault, ConfigFaults, FilePosition};
use super::named_file::NamedFile;
use super::warning::{Condition, Warning};
use crate::{hsm::Pin, private_file, way::OwnUsers};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Collects faults. It is shared by reference, so that the readers of several sections and files can report at the same time.
#[derive(Debug, Default)]
pub struct Inspection {
    faults: RefCell<Vec<ConfigFault>>,
    warnings: RefCell<Vec<Warning>>,
    files: RefCell<Vec<NamedFile>>,
    /// Whether the configuration is one of production.
    production: Cell<bool>,
    own_users: RefCell<OwnUsers>,
    /// The PINs of tokens in an HSM, by module and token.
    pins: RefCell<BTreeMap<(PathBuf, String), Pin>>,
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
        self.warn_while(place, Condition::Always(text.into()));
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

    /// Warns while this condition is met.
    pub(super) fn warn_while(&self, place: FilePosition, condition: Condition) {
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

    /// Root checks a configuration for the gateway's user, who owns the folder of the state `file`. Any other user checks for itself.
    pub(super) fn is_run_by_owner_of(&self, file: &Path) {
        let folder = fs::metadata(private_file::folder_of(file));
        if let Ok(folder) = folder
            && rustix::process::geteuid().is_root()
        {
            self.own_users.borrow_mut().add(folder.uid());
        }
    }

    /// The users who decide anyway what the gateway reads.
    pub(super) fn own_users(&self) -> OwnUsers {
        self.own_users.borrow().clone()
    }

    /// Whether a key of a token has the PIN of the others of that token. The first one sets it.
    pub(super) fn is_pin_of(&self, module: &Path, token: &str, pin: &Pin) -> bool {
        // Several paths may lead to one library.
        let module = fs::canonicalize(module).unwrap_or_else(|_| module.to_owned());
        let mut pins = self.pins.borrow_mut();
        let first = pins.entry((module, token.to_owned()));
        *first.or_insert_with(|| pin.clone()) == *pin
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
        ConfigFaults::or(self.faults.into_inner())
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
}
