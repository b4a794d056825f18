//! Valid JSON that is refused (PAY-14, PAY-17): a name that a core may read as a known name, and text whose display differs from its value.
//!
//! The text that a PSU signs must be the text that is booked. The reader records the position of each oddity; only a body with an oddity is
//! read again, to find the path.

use super::violation::Violations;

/// The members whose text may have several lines, at any path (PAY-17).
const OF_LINES: [&str; 2] = [
    "remittanceInformationUnstructured",
    "regulatoryReportingInformation",
];

/// The maximum number of oddities that are recorded for one body, which bounds the length of the answer.
const MAX_NOTED: usize = 16;

/// The maximum length of a name that a path repeats.
const MAX_SHOWN: usize = 64;

/// The oddities of a body, each by the position of its opening quotation mark.
#[derive(Debug)]
pub(super) struct Oddities<'a> {
    found: Vec<(usize, Oddity<'a>)>,
    /// Whether the body has a byte that an oddity requires.
    may_be: bool,
}

/// A reason to refuse a name or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity<'a> {
    /// A name that some cores read as this known name.
    ReadsAs(&'a str),
    /// A text or a name with this control character.
    Control(char),
    /// A text or a name with this character, which changes the direction of display.
    Direction(char),
}

/// Whether the string of a member may have several lines.
pub(super) fn takes_lines(name: &str) -> bool {
    OF_LINES.contains(&name)
}

/// The oddity of a text.
fn find(text: &str, takes_lines: bool) -> Option<Oddity<'static>> {
    text.chars().find_map(|character| match character {
        '\r' | '\n' | '\t' if takes_lines => None,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(Oddity::Direction(character)),
        character => character.is_control().then_some(Oddity::Control(character)),
    })
}

impl<'a> Oddities<'a> {
    /// An empty record for a body. Few bodies have an escape, or a byte that begins one of these characters; JSON allows no unescaped C0
    /// character in a string.
    pub(super) fn of(body: &str) -> Self {
        let bytes = body.as_bytes();
        let begins = memchr::memchr3(0x7f, 0xc2, 0xe2, bytes).is_some();
        Self {
            found: Vec::new(),
            may_be: begins || memchr::memchr(b'\\', bytes).is_some(),
        }
    }

    pub(super) fn note(&mut self, at: usize, why: Oddity<'a>) {
        if self.found.len() < MAX_NOTED {
            self.found.push((at, why));
        }
    }

    /// Records the oddity of a text.
    pub(super) fn look_at(&mut self, at: usize, text: &str, takes_lines: bool) {
        if self.may_be
            && let Some(why) = find(text, takes_lines)
        {
            self.note(at, why);
        }
    }

    /// The violations, in the order of the rules.
    pub(super) fn report(&self, text: &str, violations: &mut Violations) {
        let is_name = |found: &&(usize, Oddity<'_>)| matches!(found.1, Oddity::ReadsAs(_));
        let names = self.found.iter().filter(is_name);
        let texts = self.found.iter().filter(|found| !is_name(found));
        for (at, why) in names.chain(texts) {
            violations.add(path(text, *at), why.text());
        }
    }
}

impl Oddity<'_> {
    fn text(self) -> String {
        match self {
            Self::ReadsAs(known) => format!(
                "some servers read this name as {known}: write {known}, once, or choose another name"
            ),
            Self::Control(character) => format!(
                "it holds the control character U+{:04X}; CR, LF and TAB may stand in remittanceInformationUnstructured and regulatoryReportingInformation, and no other anywhere",
                u32::from(character)
            ),
            Self::Direction(character) => format!(
                "it holds U+{:04X}, a bidirectional override or isolate: it would not show as it reads",
                u32::from(character)
            ),
        }
    }
}

/// An array or an object that contains the position.
enum OpenLevel<'a> {
    /// An array, with the index of the element.
    Array(usize),
    /// An object, with the latest name as written, and whether a name is next.
    Object(&'a str, bool),
}

/// The path of the string at a position of a text, which is JSON: the path of the value, or of the member with this name.
fn path(text: &str, at: usize) -> String {
    let bytes = text.as_bytes();
    let (mut levels, mut here) = (Vec::new(), 0_usize);
    while let Some(byte) = bytes.get(here).filter(|_| here <= at) {
        match (byte, levels.last_mut()) {
            (b'{', _) => levels.push(OpenLevel::Object("", true)),
            (b'[', _) => levels.push(OpenLevel::Array(0)),
            (b'}' | b']', _) => drop(levels.pop()),
            (b',', Some(OpenLevel::Array(index))) => *index = index.saturating_add(1),
            (b',', Some(OpenLevel::Object(_, is_next))) => *is_next = true,
            (b':', Some(OpenLevel::Object(_, is_next))) => *is_next = false,
            (b'"', level) => {
                let from = here.saturating_add(1);
                here = end_of_string(bytes, from);
                if let Some(OpenLevel::Object(name, true)) = level {
                    *name = text.get(from..here).unwrap_or_default();
                }
            }
            _ => {}
        }
        here = here.saturating_add(1);
    }
    shown(&levels)
}

/// The position of the quotation mark that ends a string.
fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut here = from;
    loop {
        match bytes.get(here) {
            Some(b'\\') => here = here.saturating_add(2),
            Some(b'"') | None => return here,
            Some(_) => here = here.saturating_add(1),
        }
    }
}

/// The path for a violation. An unknown name is repeated only if it consists of letters, so that it contains no personal data.
fn shown(levels: &[OpenLevel<'_>]) -> String {
    let mut path = String::new();
    for level in levels {
        match level {
            OpenLevel::Array(index) => path.push_str(&format!("[{index}]")),
            OpenLevel::Object(name, _) => {
                if !path.is_empty() {
                    path.push('.');
                }
                let is_plain = (1..=MAX_SHOWN).contains(&name.len())
                    && name.bytes().all(|byte| byte.is_ascii_alphabetic());
                path.push_str(if is_plain { name } else { "*" });
            }
        }
    }
    if path.is_empty() {
        path.push('$');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (text, sought, expected) in [
            (r#""x""#, "x", "$"),
            (r#"{"x": 1}"#, "x", "x"),
            (r#"["a", ["b", "x"]]"#, "x", "[1][1]"),
            (
                r#"{"a": {"b": "}]{[,:\"", "c": [1, {"d": 2, "e": "x"}]}}"#,
                "x",
                "a.c[1].e",
            ),
            (r#"{"a": [{}], "b7": {"x": 1}}"#, "x", "*.x"),
            (r#"{"a\"": {"": "x"}}"#, "x", "*.*"),
            (r#"[[], [], "x"]"#, "x", "[2]"),
        ] {
            let at = text.find(&format!("\"{sought}\"")).unwrap();
            assert_eq!(path(text, at), expected, "{text}");
        }
    }

    #[test]
    fn what_is_odd() {
        for (text, why) in [
            ("plain", None),
            ("Bær – € 😀 \u{a0}\u{200b}\u{2028}\u{2065}\u{206a}", None),
            ("a\0", Some(Oddity::Control('\0'))),
            ("a\u{7f}", Some(Oddity::Control('\u{7f}'))),
            ("\u{80}", Some(Oddity::Control('\u{80}'))),
            ("\u{9f}", Some(Oddity::Control('\u{9f}'))),
            ("a\nb", Some(Oddity::Control('\n'))),
            ("\u{202a}", Some(Oddity::Direction('\u{202a}'))),
            ("\u{202e}", Some(Oddity::Direction('\u{202e}'))),
            ("\u{2066}", Some(Oddity::Direction('\u{2066}'))),
            ("\u{2069}", Some(Oddity::Direction('\u{2069}'))),
        ] {
            assert_eq!(find(text, false), why, "{text:?}");
        }
        assert_eq!(find("a\r\n\tb", true), None);
        assert_eq!(find("a\u{b}", true), Some(Oddity::Control('\u{b}')));
        assert_eq!(
            find("a\n\u{202e}", true),
            Some(Oddity::Direction('\u{202e}'))
        );
    }
}
