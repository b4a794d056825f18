//! Reads the keys of a mapping.
//!
//! Invariant: after [`Section::finish`], every key of the mapping was requested or reported as unknown; an operator would rely
//! on a silently ignored key. Deliberately not here: the forms of values ([`Value`]) and defaults, which are an `unwrap_or` at
//! the call site; a faulty value has been reported, so its default is never used.

use super::expected::Expected;
use super::fault::{FilePosition, nearest};
use super::inspection::Inspection;
use super::tree::{Content, Entry, Node, key_path};
use super::value::Value;

/// A mapping while it is read. A missing section, or a value that is no mapping, has been reported and returns `None` for every
/// key without a second fault, so that call sites need no branches.
#[must_use = "end with finish(), or unknown keys go unnoticed"]
pub struct Section<'a> {
    pub(super) inspection: &'a Inspection,
    place: FilePosition,
    entries: Option<&'a [Entry]>,
    asked: Vec<&'static str>,
    open: bool,
}

impl<'a> Section<'a> {
    /// Reads the mapping in `node`; reports any other value. An absent value is an empty mapping: its keys may be commented
    /// out.
    pub(super) fn of(node: &'a Node, place: FilePosition, inspection: &'a Inspection) -> Self {
        Self::or_words(node, place, inspection, "")
    }

    /// The same for a value that may also be a word: `words` completes "expected a mapping of keys".
    pub(super) fn or_words(
        node: &'a Node,
        place: FilePosition,
        inspection: &'a Inspection,
        words: &str,
    ) -> Self {
        inspection.record().note(&place.path, || Expected::Section);
        let entries = match &node.content {
            Content::Mapping(entries) => Some(entries.as_slice()),
            Content::Null => Some([].as_slice()),
            Content::Typed(_) | Content::Text(_) | Content::List(_) => {
                // The fault is at the value, but the section's own position is its key's: a missing key belongs below that
                // line.
                let value = Value::new(node, place.path.clone(), &place, inspection);
                inspection.report(
                    value.place().clone(),
                    format!("found {}; expected a mapping of keys{words}", value.found()),
                );
                None
            }
        };
        Self {
            inspection,
            place,
            entries,
            asked: Vec::new(),
            open: false,
        }
    }

    fn absent(place: FilePosition, inspection: &'a Inspection) -> Self {
        Self {
            inspection,
            place,
            entries: None,
            asked: Vec::new(),
            open: false,
        }
    }

    /// The position of the section: its key, the item of a list, or the start of the file.
    pub fn place(&self) -> &FilePosition {
        &self.place
    }

    /// The value of a required key; its absence is reported.
    pub fn required(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.note(key, true);
        let found = self.optional(key);
        if found.is_none() {
            self.report_missing(key);
        }
        found
    }

    /// The value of an optional key. A key without a value (`key:`) is present, and its value is refused.
    pub fn optional(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.entry(key).map(|entry| self.value(entry, key))
    }

    /// A required mapping.
    pub fn section(&mut self, key: &'static str) -> Section<'a> {
        self.note(key, true);
        self.optional_section(key).unwrap_or_else(|| {
            self.report_missing(key);
            Section::absent(self.place_of(key), self.inspection)
        })
    }

    /// An optional mapping. A key without a value is an empty section, not a missing one.
    pub fn optional_section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let entry = self.entry(key)?;
        let place = entry
            .key
            .place(&self.place.file, key_path(&self.place.path, key));
        Some(Section::of(&entry.value, place, self.inspection))
    }

    /// The elements of a required list, which may be empty. `None` only after a fault.
    pub fn list(&mut self, key: &'static str) -> Option<Vec<Value<'a>>> {
        self.required(key)?.as_list()
    }

    /// The elements of an optional list; empty if the key is missing. `None` only after a fault.
    pub fn optional_list(&mut self, key: &'static str) -> Option<Vec<Value<'a>>> {
        self.optional(key)
            .map_or_else(|| Some(Vec::new()), |value| value.as_list())
    }

    /// All entries, key and value, in the order of the file: for a mapping whose keys the operator chooses. No key is unknown
    /// then.
    pub fn entries(&mut self) -> Vec<(Value<'a>, Value<'a>)> {
        self.open = true;
        let record = self.inspection.record();
        record.note(&self.place.path, || Expected::Entries);
        self.entries
            .unwrap_or_default()
            .iter()
            .filter_map(|entry| {
                let name = entry.name()?;
                let path = key_path(&self.place.path, name);
                let key = Value::new(&entry.key, path, &self.place, self.inspection);
                Some((key, self.value(entry, name)))
            })
            .collect()
    }

    /// Whether the key is present, with any value. The key counts as requested.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.entry(key).is_some()
    }

    /// Reports a fault at `key`, or at the section if the key is missing.
    pub fn fault(&self, key: &str, text: impl Into<String>) {
        self.inspection.report(self.place_of(key), text);
    }

    /// Warns, in production, that `key` is weaker than the default.
    pub(super) fn weakens(&self, key: &str, text: impl Into<String>) {
        self.inspection.warn_of_weaker(self.place_of(key), text);
    }

    /// The position of `key`, or of the section if the key is missing; for faults that are found later.
    pub fn place_of(&self, key: &str) -> FilePosition {
        let path = key_path(&self.place.path, key);
        match self.find(key) {
            Some(entry) => entry.key.place(&self.place.file, path),
            None => FilePosition {
                path,
                ..self.place.clone()
            },
        }
    }

    /// Whether the key is present, for a section whose keys were all read.
    pub(super) fn has_entry(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Reports every key that was not requested, with the nearest one that was.
    pub fn finish(&self) {
        if self.open {
            return;
        }
        for entry in self.entries.unwrap_or_default() {
            let Some(name) = entry.name().filter(|name| !self.asked.contains(name)) else {
                continue;
            };
            let place = entry
                .key
                .place(&self.place.file, key_path(&self.place.path, name));
            let text = match nearest(name, self.asked.iter().copied()) {
                _ if name == "<<" => {
                    "unknown key; merge keys are not supported, write the keys out".to_owned()
                }
                Some(known) => format!("unknown key; did you mean \"{known}\"?"),
                None => "unknown key".to_owned(),
            };
            self.inspection.report(place, text);
        }
    }

    fn note(&self, key: &'static str, required: bool) {
        let record = self.inspection.record();
        record.note(&self.place.path, || Expected::Key(key, required));
    }

    fn entry(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.note(key, false);
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.find(key)
    }

    fn find(&self, key: &str) -> Option<&'a Entry> {
        self.entries?.iter().find(|entry| entry.name() == Some(key))
    }

    fn value(&self, entry: &'a Entry, key: &str) -> Value<'a> {
        Value::new(
            &entry.value,
            key_path(&self.place.path, key),
            &self.place,
            self.inspection,
        )
    }

    fn report_missing(&self, key: &str) {
        if self.entries.is_some() {
            self.inspection.report(self.place_of(key), "missing key");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::super::document::Document;
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    enum Environment {
        Production,
        Sandbox,
    }

    const ENVIRONMENTS: [(&str, Environment); 2] = [
        ("production", Environment::Production),
        ("sandbox", Environment::Sandbox),
    ];

    fn check(text: &str, read: impl FnOnce(&mut Section<'_>), expected: &[&str]) {
        let inspection = Inspection::new();
        let document = Document::read("f", text).unwrap();
        let mut root = document.root(&inspection);
        read(&mut root);
        root.finish();
        let found = inspection
            .finish()
            .err()
            .map_or_else(String::new, |faults| faults.to_string());
        assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn every_fault_of_a_file_is_a_line() {
        let text = "\
environment: prodution
listener:
  adress: 127.0.0.1:8443
  port: 70000
  header_timeout: 90
  tls: yes
body:
  limit: 2MiB
anchors:
  - folder: certs
    role: [qwac]
  - folder:
  - certs
upstream: http://core
upstream: http://other
";
        let seconds = Duration::from_secs(1)..=Duration::from_secs(60);
        let read = |root: &mut Section<'_>| {
            root.required("environment")
                .and_then(|v| v.one_of(&ENVIRONMENTS));
            let mut listener = root.section("listener");
            listener
                .required("address")
                .and_then(|v| v.parse::<SocketAddr>("an address"));
            listener
                .optional("port")
                .and_then(|v| v.integer::<u16>(1..=65_535));
            listener
                .optional("header_timeout")
                .and_then(|v| v.duration(seconds));
            listener.optional("tls").and_then(|v| v.boolean());
            listener.finish();
            let mut body = root.section("body");
            body.required("limit").and_then(|v| v.size(1024..=64 << 10));
            body.finish();
            for anchor in root.list("anchors").unwrap() {
                let mut anchor = anchor.as_section();
                anchor
                    .required("folder")
                    .and_then(|v| v.as_str().map(str::to_owned));
                anchor
                    .optional("role")
                    .and_then(|v| v.as_str().map(str::to_owned));
                anchor.finish();
            }
            root.required("upstream");
        };
        check(
            text,
            read,
            &[
                "f:1:14: environment: found \"prodution\"; expected one of \"production\", \"sandbox\"; did you mean \"production\"?",
                "f:2:1: listener.address: missing key",
                "f:3:3: listener.adress: unknown key; did you mean \"address\"?",
                "f:4:9: listener.port: found 70000; expected a whole number from 1 to 65535",
                "f:5:19: listener.header_timeout: found 90; expected a duration with its unit (ms, s, m, h), from 1s to 1m",
                "f:6:8: listener.tls: found \"yes\"; expected true or false",
                "f:8:10: body.limit: found \"2MiB\"; expected a size in bytes, KiB, MiB or GiB, from 1KiB to 64KiB",
                "f:11:11: anchors[0].role: found a list; expected text",
                "f:12:11: anchors[1].folder: found nothing; expected text",
                "f:13:5: anchors[2]: found \"certs\"; expected a mapping of keys",
                "f:15:1: upstream: duplicate key",
            ],
        );
    }

    #[test]
    fn unknown_keys_are_reported_with_the_nearest_known_one() {
        let text =
            "certificate-policy: strict\nbody: {}\nbodyy: 1\nsomething_else: 2\n\"a\\nb\": 3\n";
        let read = |root: &mut Section<'_>| {
            root.optional("certificate_policy");
            root.optional_section("body").unwrap().finish();
        };
        check(
            text,
            read,
            &[
                "f:1:1: certificate-policy: unknown key; did you mean \"certificate_policy\"?",
                "f:3:1: bodyy: unknown key; did you mean \"body\"?",
                "f:4:1: something_else: unknown key",
                "f:5:1: \"a\\nb\": unknown key",
            ],
        );
    }

    #[test]
    fn a_section_that_is_absent_or_no_mapping_is_one_fault() {
        let read = |root: &mut Section<'_>| {
            let mut listener = root.section("listener");
            let mut tls = listener.section("tls");
            assert!(tls.required("certificate").is_none());
            assert!(tls.list("names").is_none());
            tls.finish();
            assert!(listener.optional_section("h2").is_none());
            listener.finish();
        };
        check("{}", read, &["f:1:1: listener: missing key"]);
        check(
            "listener: on\n",
            read,
            &["f:1:11: listener: found \"on\"; expected a mapping of keys"],
        );
        check(
            "listener: {tls: [1]}\n",
            read,
            &["f:1:17: listener.tls: found a list; expected a mapping of keys"],
        );
        check("listener:\n", read, &["f:1:1: listener.tls: missing key"]);
        let missing = [
            "f:2:3: listener.tls.certificate: missing key",
            "f:2:3: listener.tls.names: missing key",
        ];
        check("listener:\n  tls:\n", read, &missing);
    }

    #[test]
    fn an_empty_file_lacks_required_keys() {
        let read = |root: &mut Section<'_>| assert!(root.required("environment").is_none());
        check(
            "",
            read,
            &[
                "f:1:1: the file is empty",
                "f:1:1: environment: missing key",
            ],
        );
    }

    #[test]
    fn lists() {
        let read = |root: &mut Section<'_>| {
            let ports = |values: Option<Vec<Value<'_>>>| {
                values.map(|values| {
                    values
                        .iter()
                        .map(|value| value.integer::<u16>(1..=9))
                        .collect::<Vec<_>>()
                })
            };
            assert_eq!(ports(root.list("a")), Some(vec![Some(1), None, Some(3)]));
            assert_eq!(ports(root.optional_list("b")), Some(vec![]));
            assert_eq!(ports(root.optional_list("c")), Some(vec![]));
            assert_eq!(ports(root.list("d")), None);
            assert_eq!(ports(root.list("e")), None);
        };
        let faults = [
            "f:1:1: e: missing key",
            "f:1:8: a[1]: found \"2\"; expected a whole number from 1 to 9",
            "f:3:4: d: found 4; expected a list",
        ];
        check("a: [1, '2', 3]\nc:\nd: 4\n", read, &faults);
    }

    #[test]
    fn a_mapping_whose_keys_are_the_operators() {
        let read = |root: &mut Section<'_>| {
            let mut rates = root.section("rates");
            for (key, value) in rates.entries() {
                key.parse::<SocketAddr>("an address");
                value.integer::<u32>(1..=10);
            }
            rates.finish();
        };
        let faults = [
            "f:2:3: rates.\"::1\": found \"::1\"; expected an address (invalid socket address syntax)",
            "f:3:17: rates.\"[::1]:1\": found 11; expected a whole number from 1 to 10",
        ];
        check("rates:\n  '::1': 1\n  '[::1]:1':    11\n", read, &faults);
    }

    #[test]
    fn callers_can_report_faults() {
        let read = |root: &mut Section<'_>| {
            assert!(root.has("from") && !root.has("step"));
            root.required("to").unwrap().fault("is before \"from\"");
            root.fault("step", "is needed with \"from\"");
            root.fault("from", "is after \"to\"");
        };
        let faults = [
            "f:1:1: from: is after \"to\"",
            "f:1:1: step: is needed with \"from\"",
            "f:2:5: to: is before \"from\"",
        ];
        check("from: 2\nto: 1\n", read, &faults);
    }
}
