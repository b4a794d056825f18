//! JSON, read once from front to back (PAY-1; RFC 8259).
//!
//! A type that implements [`ReadMembers`] reads the members that it keeps and skips the others, so that nothing is allocated for a member
//! that no rule reads. The reader stops at bytes that are not JSON, and at bytes that two servers could read differently: duplicate
//! members, lone surrogates, bytes after the value.
//!
//! The reader does not stop at valid JSON that is ambiguous (PAY-14, PAY-17): it records the position.
//!
//! The time is linear in the bytes: numbers are not computed, the names of an object with many members are compared through a hash, and
//! nesting is limited to [`MAX_DEPTH`].

use super::{
    misplaced,
    odd::{self, Oddities, Oddity},
    value::{JsonKind, ObjectMember, TextMember},
};
use crate::fold;
use portvakt_base::hex;
use std::{borrow::Cow, collections::HashSet};

/// The maximum nesting of arrays and objects (PAY-1).
pub const MAX_DEPTH: u8 = 32;

/// From this number of members, the names of an object are looked up in a hash set; fewer names are compared one by one.
const MANY: usize = 16;

/// The first position at which a body breaks PAY-1, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

type ReadResult<T> = Result<T, Malformed>;

/// An object with members that the rules read.
pub(super) trait ReadMembers<'a>: Default {
    /// Reads the value of a known member, or passes the member to [`JsonReader::unknown`].
    fn member(&mut self, name: &str, reader: &mut JsonReader<'a>) -> ReadResult<()>;
}

/// Parses one value.
pub(super) struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
    /// The names of every open object, the outermost object first.
    names: Vec<Cow<'a, str>>,
    /// The position of the latest name.
    name_at: usize,
    /// Whether the string at this position, the value of a member, may have several lines.
    takes_lines: bool,
    odd: Oddities<'a>,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            names: Vec::with_capacity(2 * MANY),
            name_at: 0,
            takes_lines: false,
            odd: Oddities::of(text),
        }
    }

    /// Skips the white space before the value; other bytes are refused.
    pub(super) fn start(&mut self) -> ReadResult<()> {
        if self.text.starts_with('\u{feff}') {
            return self.fault("a byte order mark stands in front: leave it out");
        }
        self.space();
        match self.peek() {
            Some(_) => Ok(()),
            None => self.fault("there is no JSON value"),
        }
    }

    /// Skips the white space after the value; other bytes are refused. Returns the oddities of the body.
    pub(super) fn end(mut self) -> ReadResult<Oddities<'a>> {
        self.space();
        match self.peek() {
            Some(_) => self.fault("something stands behind the JSON value"),
            None => Ok(self.odd),
        }
    }

    /// Reads a value, and keeps only a string.
    pub(super) fn found(&mut self) -> ReadResult<TextMember<'a>> {
        match self.peek() {
            Some(b'"') => self.text().map(TextMember::Text),
            _ => self.skip().map(TextMember::Other),
        }
    }

    /// Reads a value, and keeps only an object.
    pub(super) fn part<T: ReadMembers<'a>>(&mut self) -> ReadResult<ObjectMember<T>> {
        if self.peek() != Some(b'{') {
            return self.skip().map(ObjectMember::Other);
        }
        let mut part = T::default();
        self.object(|name, reader| part.member(name, reader))?;
        Ok(ObjectMember::Object(part))
    }

    /// Skips the value of a member that no rule reads, in an object with these known members (PAY-14).
    pub(super) fn unknown(&mut self, name: &str, known: &'static [&'static str]) -> ReadResult<()> {
        self.look_at_name(name, known.iter().copied());
        self.skip().map(drop)
    }

    /// Records the latest name if a core could read it as one of these known names (PAY-14).
    pub(super) fn look_at_name(&mut self, name: &str, mut known: impl Iterator<Item = &'a str>) {
        if let Some(known) = known.find(|known| fold::reads_as(name, known)) {
            self.odd.note(self.name_at, Oddity::ReadsAs(known));
        }
    }

    /// Skips a value of any type.
    pub(super) fn skip(&mut self) -> ReadResult<JsonKind> {
        match self.peek() {
            Some(b'"') => self.text().map(|_| JsonKind::Text),
            Some(b'{') => {
                self.object(|_, reader| reader.skip().map(drop))?;
                Ok(JsonKind::Object)
            }
            Some(b'[') => {
                self.array(|_, reader| reader.skip().map(drop))?;
                Ok(JsonKind::Array)
            }
            Some(b't') => self.word("true", JsonKind::Boolean),
            Some(b'f') => self.word("false", JsonKind::Boolean),
            Some(b'n') => self.word("null", JsonKind::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fault(misplaced::value(self.text, self.at)),
        }
    }

    /// Reads an array; `element` reads or skips each element, and gets the number of elements before it.
    pub(super) fn array(
        &mut self,
        mut element: impl FnMut(usize, &mut Self) -> ReadResult<()>,
    ) -> ReadResult<()> {
        self.enter()?;
        if !self.took(b']') {
            let mut index = 0_usize;
            loop {
                element(index, self)?;
                index = index.saturating_add(1);
                self.space();
                if self.took(b']') {
                    break;
                }
                if !self.took(b',') {
                    return self.fault(misplaced::in_array(self.peek()));
                }
                self.space();
            }
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    /// Reads an object; `member` reads or skips the value of each member.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&str, &mut Self) -> ReadResult<()>,
    ) -> ReadResult<()> {
        self.enter()?;
        let first = self.names.len();
        let mut many = HashSet::new();
        if !self.took(b'}') {
            loop {
                let name = self.name(first, &mut many)?;
                self.takes_lines = odd::takes_lines(&name);
                member(&name, self)?;
                self.space();
                if self.took(b'}') {
                    break;
                }
                if !self.took(b',') {
                    return self.fault(misplaced::in_object(self.peek()));
                }
                self.space();
            }
        }
        self.takes_lines = false;
        self.names.truncate(first);
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    /// Reads the name of a member and the colon. The names of one object must differ: they are those from `first` on, or those in `many`.
    fn name(&mut self, first: usize, many: &mut HashSet<Cow<'a, str>>) -> ReadResult<Cow<'a, str>> {
        let at = self.at;
        if self.peek() != Some(b'"') {
            return self.fault(misplaced::name(self.peek()));
        }
        let name = self.string()?;
        self.name_at = at;
        self.odd.look_at(at, &name, false);
        if self.names.len().saturating_sub(first) >= MANY {
            many.extend(self.names.drain(first..));
        }
        let known = self.names.get(first..).unwrap_or_default();
        let is_new = if many.is_empty() {
            let is_new = !known.contains(&name);
            self.names.push(name.clone());
            is_new
        } else {
            many.insert(name.clone())
        };
        if !is_new {
            let why = "a member of this name stands in the object already";
            return Err(Malformed { at, why });
        }
        self.space();
        if !self.took(b':') {
            return self.fault("a colon must stand here");
        }
        self.space();
        Ok(name)
    }

    /// Reads a string that is a value (PAY-17).
    fn text(&mut self) -> ReadResult<Cow<'a, str>> {
        let at = self.at;
        let text = self.string()?;
        self.odd.look_at(at, &text, self.takes_lines);
        Ok(text)
    }

    /// Reads a string and decodes it. Only a string with escapes is copied.
    fn string(&mut self) -> ReadResult<Cow<'a, str>> {
        self.advance(1);
        let mut decoded: Option<String> = None;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest
                .bytes()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let Some(run) = plain.and_then(|length| rest.get(..length)) else {
                self.at = self.text.len();
                return self.fault("a string has no end");
            };
            self.advance(run.len());
            match self.peek() {
                Some(b'"') => {
                    self.advance(1);
                    return Ok(match decoded {
                        Some(decoded) => Cow::Owned(decoded + run),
                        None => Cow::Borrowed(run),
                    });
                }
                Some(b'\\') => {
                    let decoded = decoded.get_or_insert_default();
                    decoded.push_str(run);
                    decoded.push(self.escape()?);
                }
                _ => return self.fault("a control character in a string must be escaped"),
            }
        }
    }

    fn escape(&mut self) -> ReadResult<char> {
        let at = self.at;
        self.advance(1);
        let letter = self.peek();
        self.advance(1);
        let plain = match letter {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(at),
            _ => {
                let why = "there is no such escape in JSON";
                return Err(Malformed { at, why });
            }
        };
        Ok(plain)
    }

    /// Reads the digits after `\u`; a character outside the basic multilingual plane is a pair of surrogates.
    fn unicode(&mut self, at: usize) -> ReadResult<char> {
        let unit = self.four_digits()?;
        let point = if (0xd800..0xdc00).contains(&unit) {
            let low = if self.took(b'\\') && self.took(b'u') {
                self.four_digits()?
            } else {
                0
            };
            let high = unit.wrapping_sub(0xd800) << 10;
            let low = (0xdc00..0xe000).contains(&low).then_some(low & 0x3ff);
            low.map(|low| (high | low).wrapping_add(0x1_0000))
        } else {
            Some(unit)
        };
        let why = "an escape is half of a surrogate pair";
        point.and_then(char::from_u32).ok_or(Malformed { at, why })
    }

    fn four_digits(&mut self) -> ReadResult<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at.saturating_add(4));
        let unit = digits.and_then(|digits| {
            digits.iter().try_fold(0_u32, |unit, digit| {
                Some(unit << 4 | u32::from(hex::digit(*digit)?))
            })
        });
        match unit {
            Some(unit) => {
                self.advance(4);
                Ok(unit)
            }
            None => self.fault("four hexadecimal digits must stand behind \\u"),
        }
    }

    fn number(&mut self) -> ReadResult<JsonKind> {
        self.took(b'-');
        if !self.took(b'0') {
            self.digits()?;
        } else if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.fault("a number has no leading zero");
        }
        if self.took(b'.') {
            self.digits()?;
        }
        if self.took(b'e') || self.took(b'E') {
            if !self.took(b'+') {
                self.took(b'-');
            }
            self.digits()?;
        }
        Ok(JsonKind::Number)
    }

    fn digits(&mut self) -> ReadResult<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.advance(count);
        match count {
            0 => self.fault("a digit must stand here"),
            _ => Ok(()),
        }
    }

    fn word(&mut self, word: &str, kind: JsonKind) -> ReadResult<JsonKind> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.advance(word.len());
            Ok(kind)
        } else {
            self.fault(misplaced::value(self.text, self.at))
        }
    }

    /// Enters an array or an object, after its opening bracket.
    fn enter(&mut self) -> ReadResult<()> {
        if self.depth == MAX_DEPTH {
            return self.fault("arrays and objects are nested more than 32 levels deep");
        }
        self.depth = self.depth.saturating_add(1);
        self.takes_lines = false;
        self.advance(1);
        self.space();
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.advance(1);
        }
    }

    fn took(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.advance(1);
        }
        is_next
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    const fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    const fn fault<T>(&self, why: &'static str) -> ReadResult<T> {
        Err(Malformed { at: self.at, why })
    }
}
