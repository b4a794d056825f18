//! A YAML file as a tree of nodes with positions.
//!
//! serde stops at the first error, but an operator wants all of them. YAML is therefore deserialised into this tree, which
//! accepts any value, and each section's code then reads the tree ([`Section`]). Invariants: scalars keep their text (`NO`
//! stays `NO` and `0600` stays `0600`, regardless of their YAML type); a duplicate key in a mapping is always a fault; nesting,
//! aliases and size are bounded while parsing, so a file cannot exhaust the process. Deliberately not here: the meaning of
//! keys, reading from disk, merge keys (`<<` is an unknown key).

use std::fmt;
use std::sync::Arc;

use serde_saphyr::Error;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::fault::{ConfigFault, ConfigFaults, FilePosition};
use super::inspection::Inspection;
use super::section::Section;
use super::syntax::syntax;
use super::tree::{Content, Node, STANDS_TWICE};

/// The longest file that is read, in bytes. A full configuration is some 20 KiB; one of 1 MiB is a wrong file.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// A parsed YAML file, with a position for every key and value.
///
/// ```
/// use std::net::SocketAddr;
/// use std::time::Duration;
/// use portvakt::config::{Document, Inspection};
///
/// let text = "
/// listener:
///   adress: 127.0.0.1:8443
///   header_timeout: 90
/// ";
/// let inspection = Inspection::new();
/// let document = Document::read("gateway.yaml", text).unwrap();
/// let mut root = document.root(&inspection);
/// let mut listener = root.section("listener");
/// let address = listener.required("address").and_then(|v| v.parse::<SocketAddr>("an address such as 0.0.0.0:8443"));
/// let header_timeout = listener
///     .optional("header_timeout")
///     .and_then(|v| v.duration(Duration::from_secs(1)..=Duration::from_secs(60)))
///     .unwrap_or(Duration::from_secs(10));
/// listener.finish();
/// root.finish();
///
/// let built = address.map(|address| (address, header_timeout));
/// assert_eq!(inspection.conclude("gateway.yaml", built).unwrap_err().to_string(), "\
/// gateway.yaml:2:1: listener.address: missing key
/// gateway.yaml:3:3: listener.adress: unknown key; did you mean \"address\"?
/// gateway.yaml:4:19: listener.header_timeout: found 90; expected a duration with its unit (ms, s, m, h), from 1s to 1m");
/// ```
pub struct Document {
    file: Arc<str>,
    root: Node,
    /// A duplicate that the parser found. Reading the tree finds it again, unless the parser compares keys as numbers (`1` and
    /// `0x1`).
    duplicate: Option<ConfigFault>,
}

impl Document {
    /// Parses a file. `file` is its name in faults, `text` its content.
    ///
    /// # Errors
    ///
    /// One fault, with its position, if the file is not YAML, holds several documents, is longer than 1 MiB, has more than
    /// 24 levels, or goes beyond serde-saphyr's default budget (250 000 nodes and 64 MiB of scalars, those behind aliases counted each time).
    pub fn read(file: &str, text: &str) -> Result<Self, ConfigFaults> {
        let start = FilePosition::start_of(file);
        let file = Arc::clone(&start.file);
        if text.len() > MAX_FILE_BYTES {
            return Err(ConfigFault {
                place: start,
                text: format!("longer than {MAX_FILE_BYTES} bytes"),
            }
            .into());
        }
        // Byte offsets refer to the text without its byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (root, duplicate) = match Node::parse(text, DuplicateKeyPolicy::Error) {
            Ok(root) => (root, None),
            // Parsed again with duplicates allowed, so that the other faults of the file are found as well.
            Err(error) if matches!(error, Error::DuplicateMappingKey { .. }) => {
                let root = Node::parse(text, DuplicateKeyPolicy::LastWins)
                    .map_err(|error| syntax(&start, &error, text))?;
                (
                    root,
                    Some(ConfigFault {
                        text: STANDS_TWICE.to_owned(),
                        ..syntax(&start, &error, text)
                    }),
                )
            }
            Err(error) => return Err(syntax(&start, &error, text).into()),
        };
        Ok(Self {
            file,
            root,
            duplicate,
        })
    }

    /// The tree.
    pub(super) const fn node(&self) -> &Node {
        &self.root
    }

    /// The root, which must be a mapping. An empty file is a fault, and its required keys are missing.
    ///
    /// Duplicate keys are reported here, for the whole file, whether or not a reader requests them.
    pub fn root<'a>(&'a self, inspection: &'a Inspection) -> Section<'a> {
        let place = FilePosition::start_of(Arc::clone(&self.file));
        if matches!(self.root.content, Content::Null) {
            inspection.report(place.clone(), "the file is empty");
        }
        let before = inspection.count();
        self.root.report_keys(&place, inspection);
        if let Some(fault) = self
            .duplicate
            .as_ref()
            .filter(|_| inspection.count() == before)
        {
            inspection.report(fault.place.clone(), fault.text.clone());
        }
        Section::of(&self.root, place, inspection)
    }
}

impl fmt::Debug for Document {
    /// The file's name only: the content may contain a misplaced secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The faults of a file whose reader requests `a`, `b`, and the list `c`.
    fn faults(text: &str) -> String {
        let inspection = Inspection::new();
        match Document::read("f", text) {
            Err(faults) => inspection.absorb(faults),
            Ok(document) => {
                let mut root = document.root(&inspection);
                root.optional("a");
                root.optional("b");
                root.optional_list("c");
                root.finish();
            }
        }
        inspection
            .finish()
            .err()
            .map_or_else(String::new, |faults| faults.to_string())
    }

    #[test]
    fn a_root_that_is_no_mapping_is_refused() {
        for (text, expected) in [
            ("a: 1\n", ""),
            ("\u{feff}a: 1\n", ""),
            ("", "f:1:1: the file is empty"),
            ("# only a comment\n", "f:1:1: the file is empty"),
            ("---\n", "f:1:1: the file is empty"),
            ("- a\n", "f:1:1: found a list; expected a mapping of keys"),
            (
                "  text\n",
                "f:1:3: found \"text\"; expected a mapping of keys",
            ),
            (
                "? [x, y]\n: 1\n~: 2\nb: 3\n",
                "f:1:3: a key must be a scalar\nf:3:1: a key must be a scalar",
            ),
            (
                "<<: {a: 1}\n",
                "f:1:1: \"<<\": unknown key; merge keys are not supported, write the keys out",
            ),
        ] {
            assert_eq!(faults(text), expected, "{text:?}");
        }
    }

    #[test]
    fn invalid_yaml_is_one_fault_with_its_position() {
        for (text, position) in [
            ("a: 1\nb: [1, 2\n", "f:2:4: unclosed"),
            ("a: 1\n\tb: 2\n", "f:2:1: a tab in the indentation"),
            ("a:\n  \tb: 2\n \tc: ]\n", "f:2:3: a tab"),
            ("a: \"open\n", "f:1:4: a quote opens here"),
            ("a: 1\n---\na: 2\n", "f:3:1: only single YAML document"),
            ("a: *nobody\n", "f:1:4: "),
            ("a: &x [*x]\n", "f:1:8: Recursive"),
            ("a: !custom 1\n", "f:1:12: unsupported tag"),
            ("a: 1\nb: \"open\nc: 2\nd: 3\n", "f:2:4: a quote opens here"),
            ("a: 'open\nb: it's\n", "f:1:4: a quote opens here"),
            ("c: [1, 'x, 2]\nb: 2\n", "f:1:8: a quote opens here"),
            (
                "# it's \"\na: it's\nb: 'is''t' # '\nc: \"o\\\"pen\nd: 1\n",
                "f:4:4: a quote",
            ),
            ("a: 1\nb: [::1]:443\n", "f:2:4: an IPv6 address with a port"),
            ("a: {b: [2001:db8::1]:443}\n", "f:1:8: an IPv6 address"),
            ("a: 1\nc:\n- [::]:9100\n", "f:3:3: an IPv6 address"),
        ] {
            let found = faults(text);
            assert!(
                found.starts_with(position) && found.lines().count() == 1,
                "{text:?}: {found}"
            );
            assert!(
                !found.contains("at line "),
                "the position is said once: {found}"
            );
        }
    }

    #[test]
    fn duplicate_keys_are_reported_with_all_other_faults() {
        for (text, expected) in [
            ("a: 1\na: 2\n", "f:2:1: a: duplicate key"),
            ("a: 1\n'a': 2\n", "f:2:1: a: duplicate key"),
            (
                "a: {x: 1, y: {z: 1, z: 2}}\n",
                "f:1:21: a.y.z: duplicate key",
            ),
            ("c:\n  - p: 1\n    p: 2\n", "f:3:5: c[0].p: duplicate key"),
            (
                "a: 1\na: 2\nb: 3\nb: 4\nd: 5\nb: 6\n",
                "f:2:1: a: duplicate key\nf:4:1: b: duplicate key\nf:5:1: d: unknown key; did you mean \"a\"?\n\
                 f:6:1: b: duplicate key",
            ),
            ("a: {1: x, 0x1: y}\n", "f:1:11: duplicate key"),
            ("a: {1: x, 1: y}\n", "f:1:11: duplicate key"),
            ("a: {1: x, 01: y}\nb: 2\n", ""),
        ] {
            assert_eq!(faults(text), expected, "{text:?}");
        }
    }

    #[test]
    fn scalars_stay_as_written() {
        let text = "a: [NO, 0600, 1e3, 1_000, 0x1F, .inf, 127.0.0.1:8443, 'it''s', \"\\u0041\", true , ~, 2026-01-01]\n\
                    b: &n 007 # agent\nc: [*n]\n";
        let inspection = Inspection::new();
        let document = Document::read("f", text).unwrap();
        let mut root = document.root(&inspection);
        let texts: Vec<_> = root
            .list("a")
            .unwrap()
            .iter()
            .map(|value| (value.place().column, value.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (5, Some("NO")),
                (9, Some("0600")),
                (15, Some("1e3")),
                (20, Some("1_000")),
                (27, Some("0x1F")),
                (33, Some(".inf")),
                (39, Some("127.0.0.1:8443")),
                (55, Some("it's")),
                (64, Some("A")),
                (74, Some("true")),
                (81, None),
                (84, Some("2026-01-01")),
            ]
        );
        assert_eq!(root.required("b").unwrap().as_str(), Some("007"));
        let alias = root.list("c").unwrap().remove(0);
        assert_eq!(
            (alias.as_str(), alias.place().line, alias.place().column),
            (Some("007"), 3, 5)
        );
        assert_eq!(
            inspection.finish().unwrap_err().to_string(),
            "f:1:81: a[10]: found nothing; expected text"
        );
    }

    #[test]
    fn columns_count_characters_with_crlf_line_endings() {
        assert_eq!(
            faults("a: 'æøå' # 🔑\r\nß: 1\r\n"),
            "f:2:1: \"ß\": unknown key; did you mean \"a\"?"
        );
        let inspection = Inspection::new();
        let document = Document::read("f", "a: {'æøå🔑': 12}\r\nb: 70\r\n").unwrap();
        let mut root = document.root(&inspection);
        let (_, value) = root.section("a").entries().remove(0);
        assert_eq!((value.place().column, value.as_str()), (13, Some("12")));
        assert_eq!(root.required("b").unwrap().as_str(), Some("70"));
    }

    #[test]
    fn deep_nesting_is_refused() {
        for text in [
            format!("a: {}1{}", "[".repeat(20), "]".repeat(20)),
            format!("a: {}1{}", "{x: ".repeat(20), "}".repeat(20)),
        ] {
            assert_eq!(faults(&text), "");
        }
        let mut block = String::new();
        for depth in 0..1_000 {
            writeln!(block, "{}a:", " ".repeat(depth)).unwrap();
        }
        for text in [
            format!("a: {}", "[".repeat(100_000)),
            format!("a: {}1{}", "[".repeat(25), "]".repeat(25)),
            format!("a: {}1{}", "{x: ".repeat(5_000), "}".repeat(5_000)),
            format!("a: {}", "- ".repeat(50_000)),
            block,
        ] {
            let found = faults(&text);
            assert!(
                found.starts_with("f:") && found.lines().count() == 1 && found.len() < 200,
                "{found}"
            );
        }
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let alias = format!("*a{}", level - 1);
            writeln!(bomb, "a{level}: &a{level} [{}]", vec![alias; 9].join(", ")).unwrap();
        }
        let found = faults(&bomb);
        assert!(
            found.starts_with("f:") && found.lines().count() == 1,
            "{found}"
        );

        let long = format!(
            "a: &a {}\nc: [{}]\n",
            "x".repeat(100_000),
            vec!["*a"; 5_000].join(", ")
        );
        let found = faults(&long);
        assert!(
            found.starts_with("f:") && found.lines().count() == 1,
            "{found}"
        );
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        assert_eq!(
            faults(&format!("a: {}", "x".repeat(MAX_FILE_BYTES - 3))),
            ""
        );
        assert_eq!(
            faults(&format!("a: {}", "x".repeat(MAX_FILE_BYTES - 2))),
            "f:1:1: longer than 1048576 bytes"
        );
    }

    #[test]
    fn a_long_key_is_shortened() {
        let found = faults(&format!("{}: 1\n", "k".repeat(900)));
        assert_eq!(
            found,
            format!("f:1:1: \"{}…\": unknown key", "k".repeat(60))
        );
    }

    #[test]
    fn a_document_does_not_show_what_it_holds() {
        let document = Document::read("f", "token: hunter2").unwrap();
        assert!(!format!("{document:?}").contains("hunter2"));
    }
}
