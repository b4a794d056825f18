//! The first difference of two signing strings, and the common mistake that it resembles.
//!
//! A hint is for people and decides nothing.

use crate::tools::visible::visible;

/// The number of bytes that are shown before and after the first difference.
const AROUND: usize = 32;

/// The first byte that differs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The offset, from 0.
    pub(super) offset: usize,
    /// The line, from 1; lines end at LF.
    pub(super) line: usize,
    /// The column in bytes, from 1.
    pub(super) column: usize,
    /// The common text before it, escaped.
    pub(super) before: String,
    /// The gateway's text from there on, escaped.
    pub(super) ours: String,
    /// The caller's text, escaped.
    pub(super) theirs: String,
}

/// The first difference; `None` if the strings are equal.
pub(super) fn first(ours: &[u8], theirs: &[u8]) -> Option<Difference> {
    let same = ours
        .iter()
        .zip(theirs)
        .take_while(|(one, other)| one == other);
    let offset = same.count();
    if offset == ours.len() && offset == theirs.len() {
        return None;
    }
    let before = ours.get(..offset).unwrap_or_default();
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at.saturating_add(1));
    let newlines = memchr::memchr_iter(b'\n', before).count();
    let shown_from = offset.saturating_sub(AROUND);
    let shown = |bytes: &[u8]| {
        let rest = bytes.get(offset..).unwrap_or_default();
        if rest.is_empty() {
            return "(it ends here)".to_owned();
        }
        visible(rest.get(..AROUND).unwrap_or(rest))
    };
    Some(Difference {
        offset,
        line: newlines.saturating_add(1),
        column: offset.saturating_sub(start).saturating_add(1),
        before: goes_on(before.get(shown_from..).unwrap_or_default()),
        ours: shown(ours),
        theirs: shown(theirs),
    })
}

/// Escapes bytes that others follow: a space at their end is not at the end of a line.
fn goes_on(bytes: &[u8]) -> String {
    let mut shown = visible(&[bytes, b"."].concat());
    shown.pop();
    shown
}

/// The hints, the most general first.
pub(super) fn hints(ours: &[u8], theirs: &[u8]) -> Vec<String> {
    let mut hints = Vec::new();
    let mut hint = |text: &str| hints.push(text.to_owned());
    let mut rest = theirs;
    if let Some(after) = rest.strip_prefix("\u{feff}".as_bytes()) {
        hint("yours begins with a byte order mark; save it as UTF-8 without one");
        rest = after;
    }
    if memchr::memmem::find(rest, b"\r\n").is_some() {
        hint("lines end in CRLF in yours; a single LF stands between lines (SIG-8)");
    } else if memchr::memchr(b'\n', rest).is_none() && memchr::memmem::find(rest, b"\\n").is_some()
    {
        hint("yours holds a backslash and an n where a newline should stand");
    }
    let stripped = rest.trim_ascii_end();
    if rest.ends_with(b"\n") && !ours.ends_with(b"\n") {
        hint(
            "yours ends with a newline, and nothing may follow the last line (if an editor added it to the file, this is not the fault)",
        );
        rest = stripped;
    }
    hints.extend(line_hints(ours, rest));
    hints
}

/// The hints about lines, apart from line endings.
fn line_hints(ours: &[u8], theirs: &[u8]) -> Vec<String> {
    let one: Vec<&[u8]> = lines(ours).collect();
    let other: Vec<&[u8]> = lines(theirs).collect();
    let mut hints = Vec::new();
    let sorted = |lines: &[&[u8]]| {
        let mut names: Vec<Vec<u8>> = lines
            .iter()
            .map(|line| name(line).to_ascii_lowercase())
            .collect();
        names.sort_unstable();
        names
    };
    let names = |lines: &[&[u8]]| {
        lines
            .iter()
            .map(|line| name(line).to_ascii_lowercase())
            .collect::<Vec<_>>()
    };
    let in_order = names(&one) == names(&other);
    if !in_order && sorted(&one) == sorted(&other) {
        hints.push(
            "the lines stand in another order; they follow the list in headers, name by name"
                .to_owned(),
        );
    } else if !in_order {
        hints.extend(absent(&one, &other, "yours has no line for"));
        hints.extend(absent(
            &other,
            &one,
            "yours has a line that the list in headers does not name:",
        ));
    }
    for ours in &one {
        let same = |theirs: &&&[u8]| name(theirs).eq_ignore_ascii_case(name(ours));
        let Some(theirs) = other.iter().find(same).filter(|theirs| *theirs != ours) else {
            continue;
        };
        hints
            .extend(line_hint(ours, theirs).map(|text| format!("{}: {text}", visible(name(ours)))));
    }
    hints
}

fn absent(of: &[&[u8]], from: &[&[u8]], text: &str) -> Option<String> {
    let missing = of.iter().filter(|line| {
        !from
            .iter()
            .any(|other| name(other).eq_ignore_ascii_case(name(line)))
    });
    let names: Vec<String> = missing.map(|line| visible(name(line))).take(8).collect();
    (!names.is_empty()).then(|| format!("{text} {}", names.join(", ")))
}

/// The hints about two lines of one header.
fn line_hint(ours: &[u8], theirs: &[u8]) -> Option<&'static str> {
    let (our_value, their_value) = (value(ours), value(theirs));
    if name(ours) != name(theirs) {
        return Some("the name must be in lower case");
    }
    if !theirs
        .get(name(theirs).len()..)
        .is_some_and(|rest| rest.starts_with(b": "))
    {
        return Some("a colon and one space stand between name and value");
    }
    if our_value == their_value.trim_ascii() {
        return Some("white space around the value is not signed");
    }
    match name(ours) {
        b"(request-target)" => target_hint(our_value, their_value),
        b"host"
            if our_value
                .strip_prefix(their_value)
                .is_some_and(|rest| rest.starts_with(b":")) =>
        {
            Some("the port is missing: it is signed as it stands in Host")
        }
        b"host"
            if their_value
                .strip_prefix(our_value)
                .is_some_and(|rest| rest.starts_with(b":")) =>
        {
            Some("the request names no port: a client leaves the default one out")
        }
        b"date" => {
            Some("another date was sent than was signed: HTTP clients like to write Date anew")
        }
        b"digest" => Some(
            "another digest was sent than was signed: the body, or its encoding, changed in between",
        ),
        _ if our_value.eq_ignore_ascii_case(their_value) => {
            Some("the letter case differs; values are signed as they are sent")
        }
        _ if in_utf8(their_value).as_deref() == Some(our_value)
            || in_utf8(our_value).as_deref() == Some(their_value) =>
        {
            Some("one has the text in UTF-8, the other in ISO-8859-1")
        }
        _ => None,
    }
}

fn target_hint(ours: &[u8], theirs: &[u8]) -> Option<&'static str> {
    let path = |target: &[u8]| {
        target
            .split(|byte| *byte == b'?')
            .next()
            .unwrap_or_default()
            .to_vec()
    };
    let after_method = |target: &[u8]| {
        let at = memchr::memchr(b' ', target)?;
        target.get(at.saturating_add(1)..).map(<[u8]>::to_vec)
    };
    let our_target = after_method(ours).unwrap_or_default();
    if ours.contains(&b'?') && path(ours).eq_ignore_ascii_case(theirs) {
        Some("the query is missing: path and query are signed as they are sent")
    } else if ours.eq_ignore_ascii_case(theirs) {
        Some("the method must be in lower case (and the path as it is sent)")
    } else if theirs == our_target {
        Some("the method, in lower case, and a space stand before the path")
    } else if memchr::memmem::find(theirs, b"://").is_some() {
        Some("only path and query are signed, without scheme and host")
    } else if after_method(theirs).is_some_and(|theirs| decoded(&theirs) == decoded(&our_target)) {
        Some("the percent-encoding differs: the target is signed as it is sent")
    } else {
        None
    }
}

fn decoded(bytes: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(bytes).collect()
}

/// The text after decoding these bytes as ISO-8859-1, in UTF-8.
fn in_utf8(bytes: &[u8]) -> Option<Vec<u8>> {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    (!bytes.is_ascii()).then(|| text.into_bytes())
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// `(request-target)` has no colon in it either.
fn name(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b':').next().unwrap_or_default()
}

fn value(line: &[u8]) -> &[u8] {
    let after = memchr::memchr(b':', line).and_then(|at| line.get(at.saturating_add(1)..));
    let after = after.unwrap_or_default();
    after.strip_prefix(b" ").unwrap_or(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "(request-target): get /v1/a?b=%20\ndate: Sun, 06 Nov 1994 08:49:37 GMT\nhost: a:8443\nx-request-id: r-1";

    #[test]
    fn the_first_byte() {
        assert_eq!(first(b"a", b"a"), None);
        let found = first(b"date: x\nhost: a", b"date: x\r\nhost: a").unwrap();
        assert_eq!((found.offset, found.line, found.column), (7, 1, 8));
        assert_eq!(
            (found.ours.as_str(), found.theirs.as_str()),
            ("\\nhost: a", "\\r\\nhost: a")
        );
        let found = first(b"a: b\nc: d", b"a: b\nc: d\n").unwrap();
        assert_eq!((found.offset, found.line, found.column), (9, 2, 5));
        assert_eq!(
            (found.ours.as_str(), found.theirs.as_str()),
            ("(it ends here)", "\\n")
        );
        let found = first("a: \u{f8}".as_bytes(), b"a: \xf8").unwrap();
        assert_eq!(
            (found.ours.as_str(), found.theirs.as_str()),
            ("\\xC3\\xB8", "\\xF8")
        );
        assert_eq!(first(b"a: b", b"a: c").unwrap().before, "a: ");
        assert_eq!(first(b"", b"x").unwrap().offset, 0);
    }

    #[test]
    fn classic_mistakes() {
        let table = [
            (OURS.replace('\n', "\r\n"), "CRLF"),
            (format!("{OURS}\n"), "ends with a newline"),
            (OURS.replace('\n', "\\n"), "a backslash and an n"),
            (format!("\u{feff}{OURS}"), "byte order mark"),
            (
                OURS.replace("date:", "Date:"),
                "date: the name must be in lower case",
            ),
            (
                OURS.replace("date: ", "date:"),
                "date: a colon and one space",
            ),
            (
                OURS.replace("r-1", " r-1"),
                "x-request-id: white space around",
            ),
            (
                OURS.replace("r-1", "r-1 "),
                "x-request-id: white space around",
            ),
            (OURS.replace("r-1", "R-1"), "x-request-id: the letter case"),
            (OURS.replace(":8443", ""), "host: the port is missing"),
            (
                OURS.replace(": get", ": GET"),
                "(request-target): the method must be in lower case",
            ),
            (
                OURS.replace("?b=%20", ""),
                "(request-target): the query is missing",
            ),
            (
                OURS.replace("get /", "/"),
                "(request-target): the method, in lower case",
            ),
            (
                OURS.replace("get /", "get https://a/"),
                "(request-target): only path and query",
            ),
            (
                OURS.replace("%20", " "),
                "(request-target): the percent-encoding",
            ),
            (OURS.replace(":37", ":38"), "date: another date"),
            (
                OURS.replace("\nx-request-id: r-1", ""),
                "yours has no line for x-request-id",
            ),
            (format!("{OURS}\npsu-id: p"), "does not name: psu-id"),
        ];
        for (theirs, hint) in table {
            assert_ne!(theirs, OURS, "{hint}");
            let found = hints(OURS.as_bytes(), theirs.as_bytes());
            assert!(
                found.iter().any(|text| text.contains(hint)),
                "{hint}: {found:?}"
            );
        }
        let mut lines: Vec<_> = OURS.lines().collect();
        lines.swap(0, 1);
        let found = hints(OURS.as_bytes(), lines.join("\n").as_bytes());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("another order"));
        let found = hints("x: \u{f8}".as_bytes(), b"x: \xf8");
        assert!(found[0].contains("ISO-8859-1"), "{found:?}");
        assert!(hints(b"a: b", b"a: c").is_empty());
    }
}
