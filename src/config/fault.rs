//! Faults of a configuration, with their positions.
//!
//! Deliberately not here: collecting them, which an `Inspection` does.

pub use super::position::FilePosition;
use std::{borrow::Cow, fmt};

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

/// All faults of the files that were read: never empty, ordered by file, line and column, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFaults(Vec<ConfigFault>);

impl ConfigFaults {
    /// Fails with these faults in order, unless there are none.
    pub(super) fn or(mut faults: Vec<ConfigFault>) -> Result<(), Self> {
        if faults.is_empty() {
            return Ok(());
        }
        faults.sort();
        faults.dedup();
        Err(Self(faults))
    }

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

/// The most characters of a faulty value or key that a fault repeats.
const SHOWN_CHARS: usize = 60;

/// The text that a fault repeats: the first characters, and no user, password and query of an address.
pub(super) fn shortened(text: &str) -> String {
    let text = without_secrets(text);
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// An address without its user, password and query, which an operator may have written where no secret belongs.
fn without_secrets(text: &str) -> Cow<'_, str> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    // A password that was not encoded may have any character, so all before the last "@" is left out.
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) if !scheme.is_empty() || user.contains(':') => ("…@", host),
        _ => ("", rest),
    };
    let (host, query) = match host.split_once('?') {
        Some((host, _)) if !scheme.is_empty() => (host, "?…"),
        _ => (host, ""),
    };
    if user.is_empty() && query.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{scheme}{user}{host}{query}"))
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
    fn an_address_is_repeated_without_secrets() {
        for (text, shown) in [
            ("https://u:p@host/path", "https://…@host/path"),
            ("https://u:p@ss/w?o#rd@host:1/path", "https://…@host:1/path"),
            ("https://token@host", "https://…@host"),
            ("https://host/path?token=1", "https://host/path?…"),
            ("u:p@host:1", "…@host:1"),
            ("post@bank.example", "post@bank.example"),
            ("https://host/path", "https://host/path"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("what?", "what?"),
            ("", ""),
        ] {
            assert_eq!(shortened(text), shown, "{text}");
        }
        let long = format!("https://user:{}@host", "p".repeat(100));
        assert_eq!(shortened(&long), "https://…@host");
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
