//! Whether a certificate is DER throughout (CRT-1; X.690, clauses 10 and 11), before anything else reads it.
//!
//! BER has many spellings of one certificate, and readers disagree on which of them they accept. Invariants: one walk, no recursion, no
//! allocation by a length in the input. Deliberately not here, because CAs break these rules and they do not lengthen a value: the order
//! in a SET OF, a DEFAULT that is written, and trailing zero bits of a named bit list. Content whose type the tag does not say stays as it
//! is, but for the public key of RSA and the extensions of RFC 5280 and RFC 3739.

use super::der::{Element, tag};

/// A place of a certificate that is not DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not DER: {what}, at byte {at} of the certificate")]
pub struct NotDer {
    what: &'static str,
    at: usize,
}

/// The object identifiers under which extnValue holds DER: id-ce (RFC 5280) and id-pe (RFC 5280, RFC 3739).
const EXTENSIONS: [&[u8]; 2] = [&[0x55, 0x1d], &[0x2b, 6, 1, 5, 5, 7, 1]];
/// rsaEncryption (RFC 8017): subjectPublicKey holds DER.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
const ENUMERATED: u8 = 0x0a;
const CONSTRUCTED: u8 = 0x20;

/// Walks over the first element of `der`; the bytes after it are not judged.
///
/// # Errors
/// The first place that is not DER.
pub(super) fn judge(der: &[u8]) -> Result<(), NotDer> {
    let mut first = der;
    // What is left of the elements around the current one, the outermost first.
    let mut open = vec![take(der, &mut first, &mut &[][..])?];
    let mut last_oid: &[u8] = &[];
    while let Some(mut content) = open.pop() {
        if !content.is_empty() {
            let inner = take(der, &mut content, &mut last_oid)?;
            open.push(content);
            open.push(inner);
        }
    }
    Ok(())
}

/// Takes an element off the front of `input`, judges it, and returns the elements that it consists of: nothing for a plain value.
/// `last_oid` is the last object identifier that no string has followed yet: it says what a string holds.
fn take<'a>(der: &[u8], input: &mut &'a [u8], last_oid: &mut &'a [u8]) -> Result<&'a [u8], NotDer> {
    let at = input.as_ptr().addr().saturating_sub(der.as_ptr().addr());
    let element = Element::take(input).ok_or_else(|| NotDer {
        what: fault_of_form(input),
        at,
    })?;
    let content = element.content;
    let what = match element.tag {
        0x00 => "a mark of the end of a value that has no length",
        BOOLEAN if !matches!(content, [0x00 | 0xff]) => "a BOOLEAN that is neither 00 nor FF",
        INTEGER | ENUMERATED if !is_shortest_integer(content) => {
            "an INTEGER that is not in its shortest form"
        }
        NULL if !content.is_empty() => "a NULL with content",
        BIT_STRING if !has_zero_padding(content) => "a BIT STRING whose unused bits are not zero",
        tag::OBJECT_IDENTIFIER if !is_shortest_oid(content) => {
            "an OBJECT IDENTIFIER that is not in its shortest form"
        }
        0x10 | 0x11 => "a SEQUENCE or a SET whose tag says that it has no members",
        0x20..=0x2f | 0x32..=0x3f => "a value in parts",
        tag => return Ok(inside(tag, content, last_oid)),
    };
    Err(NotDer { what, at })
}

/// The elements that an element consists of.
fn inside<'a>(tag: u8, content: &'a [u8], last_oid: &mut &'a [u8]) -> &'a [u8] {
    let inner = match tag {
        tag::OBJECT_IDENTIFIER => {
            *last_oid = content;
            return &[];
        }
        BIT_STRING if std::mem::take(last_oid) == RSA => content.get(1..),
        OCTET_STRING => {
            let oid = std::mem::take(last_oid);
            let is_der = EXTENSIONS.iter().any(|prefix| oid.starts_with(prefix));
            is_der.then_some(content)
        }
        tag => (tag & CONSTRUCTED != 0).then_some(content),
    };
    inner.unwrap_or_default()
}

/// Why no element can be taken off the front of `input`.
fn fault_of_form(input: &[u8]) -> &'static str {
    match input {
        [tag, ..] if tag & 0x1f == 0x1f => "a tag above 30",
        [_, 0x80, ..] => "a value without a length",
        // A length that DER writes in fewer octets.
        [_, 0x81, 0..0x80, ..] | [_, 0x82..=0xff, 0, ..] => {
            "a length that is not in its shortest form"
        }
        _ => "a value that is cut off: by its length it goes on",
    }
}

const fn is_shortest_integer(content: &[u8]) -> bool {
    !matches!(content, [] | [0x00, 0..0x80, ..] | [0xff, 0x80..=0xff, ..])
}

/// Each arc begins with an octet other than 80, and the last octet ends one.
fn is_shortest_oid(content: &[u8]) -> bool {
    let begins = std::iter::once(&0).chain(content).zip(content);
    content.last().is_some_and(|last| *last < 0x80)
        && begins
            .into_iter()
            .all(|(before, octet)| *before >= 0x80 || *octet != 0x80)
}

/// The first octet counts the unused bits of the last one.
fn has_zero_padding(content: &[u8]) -> bool {
    match content {
        [0] => true,
        [unused @ 0..8, .., last] => u32::from(*unused) <= last.trailing_zeros(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(der: &[u8], expect: Option<(&str, usize)>) {
        let found = judge(der).err().map(|fault| (fault.what, fault.at));
        assert_eq!(found, expect, "{der:02x?}");
    }

    #[test]
    fn values_in_their_shortest_form() {
        for der in [
            &[0x30, 0][..],
            &[0x30, 3, 1, 1, 0xff],
            &[0x30, 3, 2, 1, 0],
            &[0x30, 4, 2, 2, 0, 0x80],
            &[0x30, 4, 2, 2, 0xff, 0x7f],
            &[0x30, 3, 3, 1, 0],
            &[0x30, 4, 3, 2, 7, 0x80],
            &[0x30, 4, 6, 2, 0x88, 0x37],
            &[0x30, 4, 0xa3, 2, 5, 0],
            // Not an extension, so not DER inside.
            &[0x30, 7, 6, 2, 0x2a, 3, 4, 1, 0x1f],
            // An extension with an OCTET STRING inside.
            &[0x30, 10, 6, 3, 0x55, 0x1d, 0x0e, 4, 3, 4, 1, 0x1f],
            // What follows is not judged here.
            &[0x30, 0, 0x1f],
        ] {
            check(der, None);
        }
    }

    #[test]
    fn everything_else() {
        const END: &str = "a value that is cut off: by its length it goes on";
        const LENGTH: &str = "a length that is not in its shortest form";
        const INTEGER: &str = "an INTEGER that is not in its shortest form";
        const OID: &str = "an OBJECT IDENTIFIER that is not in its shortest form";
        const BITS: &str = "a BIT STRING whose unused bits are not zero";
        let table: [(&[u8], &str, usize); 21] = [
            (&[], END, 0),
            (&[0x30, 1], END, 0),
            (&[0x30, 0x81, 0], LENGTH, 0),
            (&[0x30, 4, 2, 0x81, 1, 0], LENGTH, 2),
            (&[0x30, 5, 2, 0x82, 0, 1, 0], LENGTH, 2),
            (&[0x30, 0x80, 0, 0], "a value without a length", 0),
            (&[0x3f, 0x22, 0], "a tag above 30", 0),
            (
                &[0x30, 3, 1, 1, 1],
                "a BOOLEAN that is neither 00 nor FF",
                2,
            ),
            (&[0x30, 2, 2, 0], INTEGER, 2),
            (&[0x30, 4, 2, 2, 0, 0x7f], INTEGER, 2),
            (&[0x30, 4, 2, 2, 0xff, 0x80], INTEGER, 2),
            (&[0x30, 3, 5, 1, 0], "a NULL with content", 2),
            (&[0x30, 2, 3, 0], BITS, 2),
            (&[0x30, 3, 3, 1, 1], BITS, 2),
            (&[0x30, 4, 3, 2, 1, 1], BITS, 2),
            (&[0x30, 4, 3, 2, 8, 0], BITS, 2),
            (&[0x30, 4, 6, 2, 0x80, 1], OID, 2),
            (&[0x30, 3, 6, 1, 0x80], OID, 2),
            (&[0x30, 5, 0x24, 3, 4, 1, 0], "a value in parts", 2),
            (&[0x30, 9, 6, 3, 0x55, 0x1d, 0x0e, 4, 2, 4, 1], END, 9),
            (
                &[0x30, 2, 0, 0],
                "a mark of the end of a value that has no length",
                2,
            ),
        ];
        for (der, what, at) in table {
            check(der, Some((what, at)));
        }
    }
}
