//! Reads one value: from text to a typed setting.
//!
//! Every reader returns `None` only after it has reported the value found and the values accepted. Invariant: no value is
//! guessed. Durations have units, numbers have one spelling, booleans are `true` and `false`, and a quoted number is a string.
//! Deliberately not here: whether a path exists or an address can be bound.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::amount::{SIZE_UNITS, duration, is_decimal, measured, show_duration, show_size};
use super::expected::Expected;
use super::fault::{FilePosition, nearest, shortened};
use super::inspection::Inspection;
use super::named_file::NamedFile;
use super::secret::Secret;
use super::tree::{Content, Node};
use super::warning::Condition;
use crate::interface::{ForbiddenTpp, PermittedTpp};

/// The form of a TPP's identity, for faults.
const TPP: &str = "an identity as in certificates, such as PSDNO-FSA-123456";

/// A value of a configuration file, not yet parsed.
#[derive(Clone)]
pub struct Value<'a> {
    node: &'a Node,
    place: FilePosition,
    inspection: &'a Inspection,
    /// The words that the value may be in place of what is read after them, such as `off`: a fault names them (ERR-10).
    words: RefCell<Vec<&'static str>>,
}

impl<'a> Value<'a> {
    pub(super) fn new(
        node: &'a Node,
        path: String,
        parent: &FilePosition,
        inspection: &'a Inspection,
    ) -> Self {
        Self {
            node,
            place: node.place(&parent.file, path),
            inspection,
            words: RefCell::default(),
        }
    }

    pub(super) fn node(&self) -> &'a Node {
        self.node
    }

    pub(super) fn inspection(&self) -> &'a Inspection {
        self.inspection
    }

    /// The position of the value, for faults that are found later.
    pub fn place(&self) -> &FilePosition {
        &self.place
    }

    /// Reports a fault of this value.
    pub fn fault(&self, text: impl Into<String>) {
        self.inspection.report(self.place.clone(), text);
    }

    /// Warns of this value at any time.
    pub(super) fn warn(&self, text: impl Into<String>) {
        self.inspection.warn(self.place.clone(), text);
    }

    /// Warns, in production, that this value is weaker than the default.
    pub(super) fn weakens(&self, text: impl Into<String>) {
        self.inspection.warn_of_weaker(self.place.clone(), text);
    }

    /// Whether the value is the word `off`, which switches a protection off: in production a warning says what is lost.
    pub(super) fn is_off(&self, lost: &str) -> bool {
        let is_off = self.is("off");
        if is_off {
            self.weakens(lost);
        }
        is_off
    }

    /// Warns of this value while this condition is met.
    pub(super) fn warn_while(&self, condition: Condition) {
        self.inspection.warn_while(self.place.clone(), condition);
    }

    /// Whether the value is a list; for keys that accept several shapes.
    pub fn is_list(&self) -> bool {
        matches!(self.node.content, Content::List(_))
    }

    /// Whether the value is a mapping; for keys that accept several shapes.
    pub(super) fn is_mapping(&self) -> bool {
        matches!(self.node.content, Content::Mapping(_))
    }

    /// Whether the value is exactly this word; for keys that accept a word or a number.
    pub(super) fn is(&self, word: &'static str) -> bool {
        self.note(|| Expected::Words(vec![word.to_owned()]));
        self.words.borrow_mut().push(word);
        self.scalar() == Some(word)
    }

    /// The text as written, quoted or not: `NO`, `0600` and `1e3` stay as they are. An empty string and `${` are refused.
    pub fn as_str(&self) -> Option<&'a str> {
        self.text("text")
    }

    /// The same, where `expected` says more than "text".
    pub(super) fn text(&self, expected: &str) -> Option<&'a str> {
        self.note(|| Expected::Text);
        self.scalar()
            .filter(|text| !text.is_empty() && !text.contains("${"))
            .or_else(|| self.refuse(expected))
    }

    fn note(&self, expected: impl FnOnce() -> Expected) {
        self.inspection.record().note(&self.place.path, expected);
    }

    /// Any type that implements `FromStr`. `expected` completes "expected …": `an address such as 0.0.0.0:8443`.
    pub fn parse<T: FromStr<Err: Display>>(&self, expected: &str) -> Option<T> {
        self.note(|| Expected::Text);
        let Some(text) = self.scalar() else {
            return self.refuse(expected);
        };
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => self.refuse(&format!("{expected} ({error})")),
        }
    }

    /// A TPP that something is permitted to: exactly this one (FWD-6).
    pub(super) fn permitted_tpp(&self) -> Option<PermittedTpp> {
        PermittedTpp::parse(self.as_str()?).or_else(|| self.refuse(TPP))
    }

    /// A TPP that something is forbidden to, in every spelling (FWD-6).
    pub(super) fn forbidden_tpp(&self) -> Option<ForbiddenTpp> {
        ForbiddenTpp::parse(self.as_str()?).or_else(|| self.refuse(TPP))
    }

    /// One of the words of `choices`, in exactly this spelling.
    pub fn one_of<T: Clone>(&self, choices: &[(&str, T)]) -> Option<T> {
        self.note(|| {
            let words = choices.iter().map(|(word, _)| (*word).to_owned());
            Expected::Words(words.collect())
        });
        let found = self.scalar();
        if let Some((_, value)) = choices.iter().find(|(word, _)| Some(*word) == found) {
            return Some(value.clone());
        }
        let words: Vec<String> = choices
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        let hint = found
            .and_then(|found| nearest(found, choices.iter().map(|(word, _)| *word)))
            .map_or_else(String::new, |word| format!("; did you mean \"{word}\"?"));
        self.refuse(&format!("one of {}{hint}", words.join(", ")))
    }

    /// A whole number in decimal, without quotes, leading zeros, `_`, `+` or an exponent, within `range`.
    pub fn integer<T: FromStr + PartialOrd + Display>(
        &self,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        self.note(|| Expected::Integer(range.start().to_string(), range.end().to_string()));
        let number = match &self.node.content {
            Content::Typed(text) if is_decimal(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number| range.contains(number)).or_else(|| {
            self.refuse(&format!(
                "a whole number from {} to {}",
                range.start(),
                range.end()
            ))
        })
    }

    /// `true` or `false`, without quotes. `yes` and `on` are refused: YAML 1.2 reads them as strings, YAML 1.1 as booleans.
    pub fn boolean(&self) -> Option<bool> {
        self.note(|| Expected::Boolean);
        match &self.node.content {
            Content::Typed(text) if text == "true" => Some(true),
            Content::Typed(text) if text == "false" => Some(false),
            _ => self.refuse("true or false"),
        }
    }

    /// A duration in one unit: `250ms`, `60s`, `15m`, `24h`. The unit is required, even for `0`.
    pub fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        self.note(|| Expected::Duration);
        self.scalar()
            .and_then(duration)
            .filter(|duration| range.contains(duration))
            .or_else(|| {
                let (from, to) = (show_duration(*range.start()), show_duration(*range.end()));
                self.refuse(&format!(
                    "a duration with its unit (ms, s, m, h), from {from} to {to}"
                ))
            })
    }

    /// A size in bytes: `16384`, `64KiB`, `1MiB`, `2GiB`.
    pub fn size(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.note(|| Expected::Size);
        self.scalar()
            .and_then(|text| measured(text, &SIZE_UNITS))
            .filter(|size| range.contains(size))
            .or_else(|| {
                let (from, to) = (show_size(*range.start()), show_size(*range.end()));
                self.refuse(&format!(
                    "a size in bytes, KiB, MiB or GiB, from {from} to {to}"
                ))
            })
    }

    /// A path, relative to `relative_to` (the folder of the configuration file). The file system is not accessed.
    pub fn path(&self, relative_to: &Path) -> Option<PathBuf> {
        self.note(|| Expected::Text);
        match self.scalar() {
            Some(text) if !text.contains("${") => self.path_of(text, relative_to, false),
            _ => self.refuse("a path"),
        }
    }

    /// The path of a file with a secret. In it, `${NAME}` is replaced by an environment variable, such as systemd's
    /// `${CREDENTIALS_DIRECTORY}`; a missing variable is reported.
    pub fn secret_path(&self, relative_to: &Path) -> Option<PathBuf> {
        self.note(|| Expected::Text);
        let Some(text) = self.scalar() else {
            return self.refuse("a path");
        };
        self.path_of(&self.replaced(text)?, relative_to, true)
    }

    /// A secret from the environment. The value is one `${NAME}` and nothing else: no secret stands in the configuration, which is copied,
    /// shown and kept in version control. The faults do not repeat the value.
    pub fn secret(&self) -> Option<Secret> {
        self.note(|| Expected::Text);
        let text = self.scalar().unwrap_or_default();
        let name = text
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'));
        if name.is_none_or(|name| name.contains('}')) {
            self.fault("expected ${NAME}, an environment variable: no secret stands in the configuration itself");
            return None;
        }
        self.replaced(text).map(Secret::new)
    }

    fn replaced(&self, text: &str) -> Option<String> {
        let replaced = replace_variables(text, |name| std::env::var(name).ok());
        replaced.map_err(|fault| self.fault(fault)).ok()
    }

    fn path_of(&self, text: &str, relative_to: &Path, secret: bool) -> Option<PathBuf> {
        if text.trim().is_empty() || text.contains('\0') {
            return self.refuse("a path");
        }
        let path = relative_to.join(text);
        self.inspection.names(NamedFile {
            place: self.place.clone(),
            path: path.clone(),
            secret,
        });
        Some(path)
    }

    /// Reports the value found and the value that was `expected`.
    pub(super) fn refuse<T>(&self, expected: &str) -> Option<T> {
        let variable = match self.scalar() {
            Some(text) if text.contains("${") => "; ${…} is not replaced in this value",
            _ => "",
        };
        self.fault(format!(
            "found {}; expected {expected}{}{variable}",
            self.found(),
            self.or_words()
        ));
        None
    }

    /// The words that the value may be instead, for a fault.
    pub(super) fn or_words(&self) -> String {
        let words = self.words.borrow();
        words
            .iter()
            .map(|word| format!(", or \"{word}\""))
            .collect()
    }

    /// The value as faults show it: short, on one line, in quotes if it is a string.
    pub(super) fn found(&self) -> String {
        match &self.node.content {
            Content::Null => "nothing".to_owned(),
            Content::List(_) => "a list".to_owned(),
            Content::Mapping(_) => "a mapping".to_owned(),
            Content::Typed(text) => shortened(text).escape_debug().to_string(),
            Content::Text(text) => format!("{:?}", shortened(text)),
        }
    }

    fn scalar(&self) -> Option<&'a str> {
        match &self.node.content {
            Content::Typed(text) | Content::Text(text) => Some(text),
            Content::Null | Content::List(_) | Content::Mapping(_) => None,
        }
    }
}

/// Whether a node is a whole number, which only an unquoted text can be.
pub(super) fn is_whole(node: &Node) -> bool {
    matches!(&node.content, Content::Typed(text) if is_decimal(text))
}

/// Replaces each `${NAME}` in a text. The texts of faults never repeat a variable's value.
fn replace_variables(
    mut text: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut replaced = String::new();
    while let Some((before, rest)) = text.split_once("${") {
        let (name, after) = rest
            .split_once('}')
            .ok_or("a variable begins with ${ and has no }")?;
        let found = value(name).filter(|value| !value.is_empty());
        let found = found.ok_or_else(|| {
            format!(
                "the environment variable {:?} is not set, or is empty",
                shortened(name)
            )
        })?;
        replaced.push_str(before);
        replaced.push_str(&found);
        text = after;
    }
    replaced.push_str(text);
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::net::SocketAddr;

    use super::super::document::Document;
    use super::*;

    /// Reads `v: <text>`; returns the value, or the text of the only fault.
    fn read<T: Debug>(
        text: &str,
        reader: impl FnOnce(&Value<'_>) -> Option<T>,
    ) -> Result<T, String> {
        let inspection = Inspection::new();
        let document = Document::read("f", &format!("v: {text}\n")).unwrap();
        let value = document
            .root(&inspection)
            .required("v")
            .and_then(|value| reader(&value));
        inspection.conclude("f", value).map_err(|faults| {
            assert_eq!(faults.iter().count(), 1, "{faults}");
            faults.iter().next().unwrap().text.clone()
        })
    }

    fn check<T: Debug + PartialEq>(
        reader: impl Fn(&Value<'_>) -> Option<T>,
        expected: &str,
        cases: &[(&str, Option<T>)],
    ) {
        for (text, value) in cases {
            match (read(text, &reader), value) {
                (Ok(found), Some(value)) => assert_eq!(found, *value, "{text}"),
                (Err(fault), None) => assert!(
                    fault.starts_with("found ") && fault.ends_with(expected),
                    "{text}: {fault}"
                ),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn variables_are_replaced_in_paths_of_secrets_only() {
        let home = std::env::var("HOME").unwrap();
        let base = Path::new("/base");
        let secret = |text: &str| read(text, |value| value.secret_path(base));
        assert_eq!(secret("a/b"), Ok("/base/a/b".into()));
        let key = format!("{home}/key").into();
        assert_eq!(secret("${HOME}/key"), Ok(key));
        let missing = "the environment variable \"NO_SUCH_VARIABLE\" is not set, or is empty";
        assert_eq!(secret("${NO_SUCH_VARIABLE}/key"), Err(missing.into()));
        assert!(secret("\"${HOME/key\"").unwrap_err().contains("has no }"));
        let fault = read("${HOME}/key", |value| value.path(base)).unwrap_err();
        assert!(fault.contains("is not replaced in this value"), "{fault}");
        assert!(!fault.contains(&home), "{fault}");
    }

    #[test]
    fn a_secret_stands_in_the_environment() {
        let secret = |text: &str| read(text, |value| value.secret());
        let found = secret("${HOME}").unwrap();
        assert_eq!(found.text(), std::env::var("HOME").ok().as_deref());
        for text in [
            "hunter2",
            "x${HOME}",
            "${HOME}x",
            "'${A}${B}'",
            "[hunter2]",
            "${HOME",
            "''",
        ] {
            let fault = secret(text).unwrap_err();
            assert!(fault.starts_with("expected ${NAME}, an"), "{text}: {fault}");
            assert!(!fault.contains("hunter2"), "{fault}");
        }
        let fault = secret("${NO_SUCH_VARIABLE}").unwrap_err();
        assert!(fault.contains("is not set"), "{fault}");
    }

    #[test]
    fn integers() {
        let cases = [
            ("1", Some(1)),
            ("65535", Some(65_535)),
            ("0", None),
            ("65536", None),
            ("-1", None),
            ("99999999999999999999999999", None),
            ("'80'", None),
            ("080", None),
            ("+80", None),
            ("0x50", None),
            ("8_0", None),
            ("80.0", None),
            ("8e1", None),
            ("true", None),
            ("", None),
            ("[80]", None),
        ];
        check(
            |v| v.integer::<u16>(1..=65_535),
            "; expected a whole number from 1 to 65535",
            &cases,
        );
        check(
            |v| v.integer(-5..=5),
            "from -5 to 5",
            &[
                ("-5", Some(-5)),
                ("0", Some(0)),
                ("-0", Some(0)),
                ("-6", None),
                ("-05", None),
            ],
        );
    }

    #[test]
    fn booleans() {
        let cases = [
            ("true", Some(true)),
            ("false", Some(false)),
            ("True", None),
            ("yes", None),
            ("NO", None),
            ("on", None),
            ("1", None),
            ("'true'", None),
            ("~", None),
        ];
        check(|v| v.boolean(), "; expected true or false", &cases);
    }

    #[test]
    fn durations() {
        let range = Duration::from_millis(250)..=Duration::from_secs(86_400);
        let cases = [
            ("250ms", Some(Duration::from_millis(250))),
            ("60s", Some(Duration::from_secs(60))),
            ("'15m'", Some(Duration::from_secs(900))),
            ("24h", Some(Duration::from_secs(86_400))),
            ("249ms", None),
            ("86401s", None),
            ("60", None),
            ("0", None),
            ("60 s", None),
            ("1h30m", None),
            ("1.5h", None),
            ("1d", None),
            ("060s", None),
            ("-1s", None),
            ("s", None),
            ("60S", None),
            ("99999999999999999999h", None),
            ("9999999999999999999h", None),
            ("{s: 1}", None),
        ];
        check(
            |v| v.duration(range.clone()),
            "; expected a duration with its unit (ms, s, m, h), from 250ms to 24h",
            &cases,
        );
        assert!(read("0ms", |v| v.duration(Duration::ZERO..=Duration::MAX)).is_ok());
    }

    #[test]
    fn sizes() {
        let cases = [
            ("16384", Some(16_384)),
            ("64KiB", Some(65_536)),
            ("1MiB", Some(1_048_576)),
            ("1GiB", Some(1 << 30)),
            ("0", None),
            ("2GiB", None),
            ("64KB", None),
            ("64k", None),
            ("64 KiB", None),
            ("0x10", None),
            ("1.5MiB", None),
            ("99999999999GiB", None),
            ("KiB", None),
            ("", None),
        ];
        check(
            |v| v.size(1..=1 << 30),
            "; expected a size in bytes, KiB, MiB or GiB, from 1 to 1GiB",
            &cases,
        );
    }

    #[test]
    fn words_and_addresses() {
        let fault = read("Prod", |v| v.one_of(&[("production", 1), ("sandbox", 2)])).unwrap_err();
        assert_eq!(
            fault,
            "found \"Prod\"; expected one of \"production\", \"sandbox\""
        );
        assert_eq!(
            read("sandbox", |v| v
                .one_of(&[("production", 1), ("sandbox", 2)])),
            Ok(2)
        );
        let address = |v: &Value<'_>| v.parse::<SocketAddr>("an address such as 0.0.0.0:8443");
        assert_eq!(
            read("127.0.0.1:8443", address),
            Ok(SocketAddr::from(([127, 0, 0, 1], 8443)))
        );
        let fault = read("localhost", address).unwrap_err();
        assert_eq!(
            fault,
            "found \"localhost\"; expected an address such as 0.0.0.0:8443 (invalid socket address syntax)"
        );
        assert_eq!(
            read("''", |v| v.as_str().map(str::to_owned)).unwrap_err(),
            "found \"\"; expected text"
        );
    }

    #[test]
    fn faults_shorten_values_and_escape_control_characters() {
        let fault = read(&format!("'{}'", "å".repeat(500)), |v| v.boolean()).unwrap_err();
        assert_eq!(
            fault,
            format!("found \"{}…\"; expected true or false", "å".repeat(60))
        );
        assert_eq!(
            read("\"\\e[2J\\n\"", |v| v.boolean()).unwrap_err(),
            "found \"\\u{1b}[2J\\n\"; expected true or false"
        );
    }

    #[test]
    fn paths_are_relative_to_the_files_folder() {
        let path = |v: &Value<'_>| v.path(Path::new("/etc/portvakt"));
        assert_eq!(
            read("certs/x.pem", path),
            Ok(PathBuf::from("/etc/portvakt/certs/x.pem"))
        );
        assert_eq!(read("/run/x.pem", path), Ok(PathBuf::from("/run/x.pem")));
        for text in ["", "''", "' '", "\"a\\0b\"", "[a]"] {
            assert!(
                read(text, path).unwrap_err().ends_with("; expected a path"),
                "{text}"
            );
        }
    }
}
