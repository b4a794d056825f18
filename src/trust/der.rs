//! A reader of DER (X.690) for names and QcStatements: one element at a time, and object identifiers.
//!
//! Invariants: an element is read whole or not at all; no length in the input causes an allocation; no function recurses.
//! Deliberately not here: indefinite lengths and lengths that are not minimal, which are not DER, and tags above 30, which are not used.

/// The universal tags that names are made of (X.690).
pub(super) mod tag {
    pub(in super::super) const INTEGER: u8 = 0x02;
    pub(in super::super) const BIT_STRING: u8 = 0x03;
    pub(in super::super) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(in super::super) const UTF8_STRING: u8 = 0x0c;
    pub(in super::super) const NUMERIC_STRING: u8 = 0x12;
    pub(in super::super) const PRINTABLE_STRING: u8 = 0x13;
    pub(in super::super) const TELETEX_STRING: u8 = 0x14;
    pub(in super::super) const IA5_STRING: u8 = 0x16;
    pub(in super::super) const VISIBLE_STRING: u8 = 0x1a;
    pub(in super::super) const UNIVERSAL_STRING: u8 = 0x1c;
    pub(in super::super) const BMP_STRING: u8 = 0x1e;
    pub(in super::super) const SEQUENCE: u8 = 0x30;
    pub(in super::super) const SET: u8 = 0x31;
}

/// One element: its tag, its content, and its whole encoding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    pub(super) whole: &'a [u8],
}

impl<'a> Element<'a> {
    /// Takes one element off the front of `input`; `None`, with `input` unchanged, if `input` does not start with an element.
    pub(super) fn take(input: &mut &'a [u8]) -> Option<Element<'a>> {
        let (&tag, after_tag) = input.split_first()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, after_length) = take_length(after_tag)?;
        let (content, rest) = after_length.split_at_checked(length)?;
        let whole = input.get(..input.len().checked_sub(rest.len())?)?;
        *input = rest;
        Some(Element {
            tag,
            content,
            whole,
        })
    }

    /// Reads `input` as exactly one element, with nothing after it.
    pub(super) fn only(mut input: &'a [u8]) -> Option<Element<'a>> {
        let element = Element::take(&mut input)?;
        input.is_empty().then_some(element)
    }

    /// The content, if the element has the tag `tag`.
    pub(super) fn content_of(&self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.content)
    }
}

/// The content of an OBJECT IDENTIFIER in dotted decimal; `None` if it is not DER or an arc is wider than 128 bits (no arc in use is: the
/// widest are UUIDs under 2.25).
pub(super) fn dotted(content: &[u8]) -> Option<String> {
    use std::fmt::Write as _;

    let mut text = String::new();
    let mut arc = 0_u128;
    let mut inside = false;
    for &octet in content {
        if !inside && octet == 0x80 {
            return None;
        }
        arc = arc
            .checked_mul(0x80)?
            .checked_add(u128::from(octet & 0x7f))?;
        inside = octet & 0x80 != 0;
        if inside {
            continue;
        }
        if text.is_empty() {
            let first = (arc / 40).min(2);
            write!(text, "{first}.{}", arc.checked_sub(first * 40)?).ok()?;
        } else {
            write!(text, ".{arc}").ok()?;
        }
        arc = 0;
    }
    (!inside && !text.is_empty()).then_some(text)
}

/// The length octets of DER: definite, minimal, and at most 4 GiB.
fn take_length(input: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        return Some((usize::from(first), rest));
    }
    let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
    if octets.is_empty() || octets.len() > 4 || octets.first() == Some(&0) {
        return None;
    }
    let length = octets.iter().try_fold(0_usize, |sum, &octet| {
        sum.checked_mul(0x100)?.checked_add(usize::from(octet))
    })?;
    (length >= 0x80).then_some((length, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_definite_and_minimal() {
        assert_eq!(take_length(&[0x7f, 1]), Some((0x7f, &[1][..])));
        assert_eq!(take_length(&[0x81, 0x80]), Some((0x80, &[][..])));
        assert_eq!(take_length(&[0x82, 1, 0]), Some((0x100, &[][..])));
        assert_eq!(
            take_length(&[0x84, 1, 0, 0, 0]),
            Some((0x100_0000, &[][..]))
        );
        for not_der in [
            &[][..],
            &[0x80],
            &[0x81],
            &[0x81, 0x7f],
            &[0x82, 0, 0x80],
            &[0x85, 1, 0, 0, 0, 0],
            &[0xff],
        ] {
            assert_eq!(take_length(not_der), None, "{not_der:02x?}");
        }
    }

    #[test]
    fn tags_above_30_are_none() {
        for several_octets in [0x1f, 0x3f, 0x5f, 0x9f, 0xff] {
            assert!(Element::only(&[several_octets, 1, 0]).is_none());
        }
        for one_octet in [0x00, 0x1e, 0x30, 0xa0] {
            let bytes = [one_octet, 1, 7];
            let content = Element::only(&bytes).unwrap().content_of(one_octet);
            assert_eq!(content, Some(&[7][..]));
        }
    }

    #[test]
    fn object_identifiers_are_dotted() {
        let check = |content: &[u8], expect: Option<&str>| {
            assert_eq!(dotted(content).as_deref(), expect, "{content:02x?}");
        };
        check(&[0x55, 4, 3], Some("2.5.4.3"));
        check(&[0x27], Some("0.39"));
        check(&[0x2a, 0x86, 0x48], Some("1.2.840"));
        check(&[0x88, 0x37], Some("2.999"));
        check(&[], None);
        check(&[0x55, 0x80, 4], None);
        check(&[0x55, 0x84], None);
        check(&[0xff; 30], None);
    }
}
