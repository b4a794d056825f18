//! The violations of a body, in the order of the rules (PAY-2).

use super::{iban::Ibans, value::TextMember};
use crate::{Code, Fault, Reason};

/// A member that is missing.
#[derive(Clone, Debug)]
struct MissingMember {
    /// The index of its violation.
    fault: usize,
    /// Its path.
    path: String,
}

/// The violations found so far.
#[derive(Clone, Debug)]
pub(super) struct Violations {
    /// The countries whose IBANs the bank accepts, for the rules that judge accounts.
    ibans: Ibans,
    found: Vec<Fault>,
    /// The members that are missing, in the order of their violations.
    missing: Vec<MissingMember>,
    /// The path of the element that is judged, with a point at its end; empty outside an array.
    within: String,
}

impl Violations {
    /// No violation yet.
    pub(super) const fn new(ibans: Ibans) -> Self {
        Self {
            ibans,
            found: Vec::new(),
            missing: Vec::new(),
            within: String::new(),
        }
    }

    /// The countries whose IBANs the bank accepts.
    pub(super) const fn ibans(&self) -> &Ibans {
        &self.ibans
    }

    /// Adds a violation: `path` names the member, `text` names the accepted form and repeats no value.
    pub(super) fn add(&mut self, path: impl Into<String>, text: impl Into<String>) {
        let path = self.within.clone() + &path.into();
        let fault = Fault::member(Reason::PayloadInvalid, path, text);
        self.found.push(fault);
    }

    /// Adds the violation that a member is missing; [`super::misspelt`] looks for a name that was meant.
    pub(super) fn missing(&mut self, path: &str, text: &str) {
        self.add(path, format!("missing: {text}"));
        self.names_missing(path);
    }

    /// Notes that the latest violation is the absence of the member with this path.
    pub(super) fn names_missing(&mut self, path: &str) {
        self.missing.push(MissingMember {
            fault: self.found.len().saturating_sub(1),
            path: self.within.clone() + path,
        });
    }

    /// The members that are missing, each with the text of its violation.
    pub(super) fn all_missing(&mut self) -> impl Iterator<Item = (&str, &mut String)> {
        let found = &mut self.found;
        let mut rest = found.iter_mut().enumerate();
        self.missing.iter().filter_map(move |missing| {
            let (_, fault) = rest.find(|(index, _)| *index == missing.fault)?;
            Some((missing.path.as_str(), &mut fault.text))
        })
    }

    /// Judges the element of an array: the paths of its violations begin with the path of the element.
    pub(super) fn of_element(path: String, ibans: &Ibans, judge: impl FnOnce(&mut Self)) -> Self {
        let mut violations = Self {
            ibans: ibans.clone(),
            found: Vec::new(),
            missing: Vec::new(),
            within: path + ".",
        };
        judge(&mut violations);
        violations
    }

    /// Adds the violations of an element.
    pub(super) fn extend(&mut self, other: Self) {
        let first = self.found.len();
        let moved = |missing: MissingMember| MissingMember {
            fault: missing.fault.saturating_add(first),
            ..missing
        };
        self.missing.extend(other.missing.into_iter().map(moved));
        self.found.extend(other.found);
    }

    /// The number of violations.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// Adds a violation with a code of its own (PAY-12).
    pub(super) fn add_as(&mut self, code: Code, path: &str, text: impl Into<String>) {
        let path = self.within.clone() + path;
        let fault = Fault::member(Reason::PayloadInvalid, path, text);
        self.found.push(Fault {
            code: Some(code),
            ..fault
        });
    }

    /// The string of an optional member; a value of another type is a violation.
    pub(super) fn text<'f>(
        &mut self,
        found: &'f TextMember<'_>,
        path: impl Into<String>,
    ) -> Option<&'f str> {
        match found {
            TextMember::Text(text) => Some(text),
            TextMember::Absent => None,
            TextMember::Other(kind) => {
                let path = path.into();
                let example = match path.ends_with("mount.amount") {
                    true => " with the fraction digits of its currency, such as \"100.00\"",
                    false => "",
                };
                self.add(path, format!("it is {kind}; it must be a string{example}"));
                None
            }
        }
    }

    /// The string of a required member.
    pub(super) fn required<'f>(
        &mut self,
        found: &'f TextMember<'_>,
        path: &str,
        expected: &str,
    ) -> Option<&'f str> {
        if *found == TextMember::Absent {
            self.missing(path, expected);
        }
        self.text(found, path)
    }

    /// Checks the length of a string, in characters, not bytes.
    pub(super) fn length(&mut self, found: &TextMember<'_>, path: &str, least: usize, most: usize) {
        let Some(text) = self.text(found, path) else {
            return;
        };
        let length = text.chars().count();
        if !(least..=most).contains(&length) {
            let range = match least {
                0 => format!("at most {most}"),
                _ => format!("{least} to {most}"),
            };
            self.add(path, format!("it has {length} characters; {range} pass"));
        }
    }

    /// All violations, as faults.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        self.found
    }
}
