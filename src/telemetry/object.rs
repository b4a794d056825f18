//! A JSON object that is appended to a text, member by member.
//!
//! A line is written for every request, and a serializer takes twice the instructions: it writes each sign of punctuation by itself, and
//! looks for characters to escape in names too. Deliberately not here: the members of a line.

use serde::Serialize;
use std::{fmt::Display, io::Write};

/// The name of a member with the punctuation around it. The name must need no escape.
macro_rules! member {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}
pub(super) use member;

/// An object that is being written. Its members are named by `member!`.
pub(super) struct Object<'t> {
    text: &'t mut Vec<u8>,
    start: usize,
}

impl<'t> Object<'t> {
    /// Begins an object at the end of a text.
    pub(super) const fn begin(text: &'t mut Vec<u8>) -> Self {
        Self {
            start: text.len(),
            text,
        }
    }

    /// Adds one of the gateway's own words, which needs no escape, or null.
    pub(super) fn word(&mut self, member: &'static str, word: Option<&'static str>) {
        match word {
            Some(word) => self.digits(member, word),
            None => {
                self.raw(member);
                self.raw("null");
            }
        }
    }

    /// Adds the digits of an id, which need no escape.
    pub(super) fn digits(&mut self, member: &'static str, digits: &str) {
        self.raw(member);
        self.text.push(b'"');
        self.raw(digits);
        self.text.push(b'"');
    }

    /// Adds a value whose text needs no escape, such as a time.
    pub(super) fn shown(&mut self, member: &'static str, value: impl Display) {
        self.raw(member);
        self.text.push(b'"');
        // Writing to a Vec cannot fail.
        let _ = write!(self.text, "{value}");
        self.text.push(b'"');
    }

    /// Adds any other value.
    pub(super) fn value(&mut self, member: &'static str, value: &impl Serialize) {
        self.raw(member);
        // Serialising into a Vec cannot fail; if it did, a reader would skip the line.
        let _ = serde_json::to_writer(&mut *self.text, value);
    }

    /// Adds members that another object was begun with.
    pub(super) fn members(&mut self, members: &[u8]) {
        self.text.extend_from_slice(members);
    }

    /// Adds an object of whole numbers, whose members are named like others.
    pub(super) fn numbers(
        &mut self,
        member: &'static str,
        numbers: impl Iterator<Item = (&'static str, u64)>,
    ) {
        self.raw(member);
        let mut inner = Object::begin(self.text);
        for (member, number) in numbers {
            inner.value(member, &number);
        }
        inner.end();
    }

    /// Ends the object. The comma before its first member becomes the brace.
    pub(super) fn end(self) {
        match self.text.get_mut(self.start) {
            Some(comma) => *comma = b'{',
            None => self.text.push(b'{'),
        }
        self.text.push(b'}');
    }

    fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_what_a_serializer_writes() {
        let mut text = b"before".to_vec();
        let mut object = Object::begin(&mut text);
        object.shown(member!("id"), 7);
        object.word(member!("kind"), Some("access"));
        object.word(member!("reason"), None);
        let odd = "a\"\\\r\n\u{1}{\"}";
        object.value(member!("odd"), &odd);
        object.value(member!("none"), &None::<u64>);
        let numbers = [(member!("a"), 1), (member!("b"), 22)];
        object.numbers(member!("checks"), numbers.into_iter());
        object.numbers(member!("empty"), std::iter::empty());
        object.end();
        let expected = serde_json::json!({
            "id": "7", "kind": "access", "reason": null, "odd": odd, "none": null,
            "checks": {"a": 1, "b": 22}, "empty": {},
        });
        assert_eq!(
            String::from_utf8(text).unwrap(),
            format!("before{expected}")
        );
        let mut empty = Vec::new();
        Object::begin(&mut empty).end();
        assert_eq!(empty, b"{}");
    }
}
