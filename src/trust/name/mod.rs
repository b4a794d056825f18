//! Distinguished names: whether the issuer that a TPP writes in keyId is the issuer of its certificate (SIG-4).
//!
//! Names are compared as names. Text compared with text is the commonest reason for refusing a signature that holds, because every library
//! prints a name in its own way.
//!
//! Invariant: a text matches a name only if one of a few fixed readings of the whole text has the same RDNs in the same order, each with the
//! same attributes. What stands escaped or quoted inside a value is never a boundary between RDNs.
//!
//! Not here: the serial number and the rest of keyId (SIG-3), and whether the name is a trusted one. The signature proves who signed; this
//! comparison only shows that the TPP meant the certificate that it sent.

mod kind;
mod reading;
mod text;
mod value;

use std::borrow::Cow;
use std::fmt;

use super::der::{self, Element, tag};
use value::AttributeValue;

/// The longest text that is compared, in bytes.
///
/// RFC 5280's upper bounds let an issuer of ten attributes of 64 letters each be 640 letters; with every letter written as two hex pairs
/// (`\C3\AD`) that is 3 840 bytes. The longest real one seen has 173.
pub const MAX_TEXT: usize = 4096;

/// A distinguished name, its RDNs in RFC 2253 order: the last of the certificate first.
#[derive(Debug, Clone)]
pub struct Name {
    rdns: Vec<Rdn>,
}

impl Name {
    /// Reads the DER of an X.501 Name, as it stands in a certificate.
    ///
    /// # Errors
    ///
    /// A [`NameFault`] if the bytes are not exactly one Name in DER. A string whose bytes are not what its type promises is no fault: it
    /// is kept as DER, and matches only as `#hex`.
    pub fn from_der(der: &[u8]) -> Result<Name, NameFault> {
        let mut sets = Element::only(der)
            .and_then(|name| name.content_of(tag::SEQUENCE))
            .ok_or(NameFault::NotASequence)?;
        let mut rdns = Vec::new();
        while !sets.is_empty() {
            rdns.push(rdn_from_der(&mut sets, rdns.len())?);
        }
        rdns.reverse();
        Ok(Name { rdns })
    }

    /// Whether `text`, the raw bytes that stand in keyId after `CA=`, spells this name (SIG-4).
    ///
    /// The text is read as it is (UTF-8, or Latin-1 where it is not UTF-8), with one level of quoted-string escaping removed, percent-decoded
    /// once, and both; and each of these also as UTF-8 that was mistaken for Latin-1.
    ///
    /// # Errors
    ///
    /// A [`NameMismatch`] if no reading is this name; it speaks of the reading that came nearest.
    pub fn compare(&self, text: &[u8]) -> Result<(), NameMismatch> {
        if text.len() > MAX_TEXT {
            return Err(NameMismatch::Unreadable {
                at: MAX_TEXT,
                why: "the issuer is longer than 4096 bytes",
            });
        }
        let Err(mut nearest) = self.compare_bytes(text) else {
            return Ok(());
        };
        for other in reading::respelled(text) {
            match self.compare_bytes(&other) {
                Ok(()) => return Ok(()),
                Err(mismatch) => nearest = nearest.or_nearer(mismatch),
            }
        }
        Err(nearest)
    }

    fn compare_bytes(&self, bytes: &[u8]) -> Result<(), NameMismatch> {
        let text = reading::decoded(bytes);
        let Err(mismatch) = self.compare_text(&text) else {
            return Ok(());
        };
        let mismatch = match (&text, mismatch) {
            // The place is meant in the header's bytes: a letter of Latin-1 is one of them.
            (Cow::Owned(latin1), NameMismatch::Unreadable { at, why }) => {
                NameMismatch::Unreadable {
                    at: latin1.get(..at).map_or(at, |before| before.chars().count()),
                    why,
                }
            }
            (_, other) => other,
        };
        match reading::unmojibaked(&text) {
            Some(mended) => self
                .compare_text(&mended)
                .map_err(|other| mismatch.or_nearer(other)),
            None => Err(mismatch),
        }
    }

    fn compare_text(&self, text: &str) -> Result<(), NameMismatch> {
        let found = text::read(text)?;
        if self.rdns.len() != found.len() {
            return Err(NameMismatch::RdnCount {
                expected: self.rdns.len(),
                found: found.len(),
            });
        }
        let mut pairs = self.rdns.iter().zip(&found).enumerate();
        let Some((index, (expected, other))) =
            pairs.find(|(_, (expected, other))| !expected.is(other))
        else {
            return Ok(());
        };
        if self
            .rdns
            .iter()
            .zip(found.iter().rev())
            .all(|(expected, other)| expected.is(other))
        {
            return Err(NameMismatch::Reversed);
        }
        Err(NameMismatch::Rdn {
            index,
            expected: expected.to_string(),
            found: other.to_string(),
        })
    }
}

/// The name as RFC 2253 writes it, UTF-8 as it is. A type outside that standard's table is a dotted OID, its value still text: so
/// organizationIdentifier is `2.5.4.97=PSDNO-FSA-...`. [`Name::compare`] accepts it.
impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(&self.rdns, ",", out)
    }
}

/// Why bytes are not a Name in DER. RDNs are counted from 0, in the order of the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// Not one SEQUENCE, or something stands after it.
    #[error("the name is not exactly one DER SEQUENCE")]
    NotASequence,
    /// Not a SET, or an empty one, or something in it is not a type with one value.
    #[error("RDN {rdn} of the name is not a SET of attributes")]
    Rdn {
        /// Which RDN.
        rdn: usize,
    },
    /// Not an OBJECT IDENTIFIER in DER, or one with an arc wider than 128 bits.
    #[error("an attribute type in RDN {rdn} of the name is not an OBJECT IDENTIFIER")]
    AttributeType {
        /// Which RDN.
        rdn: usize,
    },
}

/// How the text in keyId differs from the certificate's issuer. Its `Display` tells a TPP's developer what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameMismatch {
    /// The text is not a name, or too long for one ([`MAX_TEXT`]).
    #[error("the issuer cannot be read at byte {at}: {why}")]
    Unreadable {
        /// Bytes from the start of the text.
        at: usize,
        /// What was expected there.
        why: &'static str,
    },
    /// The names have not as many RDNs.
    #[error("the certificate's issuer has {expected} RDNs, the issuer in keyId {found}")]
    RdnCount {
        /// RDNs of the certificate's issuer.
        expected: usize,
        /// RDNs of the text.
        found: usize,
    },
    /// The text has the right RDNs, the wrong way round.
    #[error("the RDNs stand in reverse: RFC 2253 starts with the last")]
    Reversed,
    /// The first RDN that differs.
    #[error("RDN {position} of the issuer is {expected} in the certificate and {found} in keyId", position = .index.saturating_add(1))]
    Rdn {
        /// Which RDN, from 0, in RFC 2253 order. The message counts from 1.
        index: usize,
        /// The certificate's, as RFC 2253 writes it.
        expected: String,
        /// The text's, in the same way.
        found: String,
    },
}

impl NameMismatch {
    /// The one of two mismatches that says more; the first if neither does, because the first reading is what the TPP wrote.
    fn or_nearer(self, other: NameMismatch) -> NameMismatch {
        if other.nearness() > self.nearness() {
            other
        } else {
            self
        }
    }

    fn nearness(&self) -> u8 {
        match self {
            NameMismatch::Unreadable { .. } => 0,
            NameMismatch::RdnCount { .. } => 1,
            NameMismatch::Rdn { .. } => 2,
            NameMismatch::Reversed => 3,
        }
    }
}

impl From<text::Unreadable> for NameMismatch {
    fn from(fault: text::Unreadable) -> Self {
        NameMismatch::Unreadable {
            at: fault.at,
            why: fault.why,
        }
    }
}

/// One relative distinguished name: a set of attributes, kept sorted, so that their order in the text is of no account.
#[derive(Debug, Clone)]
struct Rdn {
    attributes: Vec<Attribute>,
    /// Second spellings of the attributes, sorted: type and spelling, and the folded value that they stand for.
    seconds: Vec<(Cow<'static, str>, AttributeValue, AttributeValue)>,
}

impl Rdn {
    fn new(mut attributes: Vec<Attribute>) -> Rdn {
        attributes.sort_by(|one, other| one.key().cmp(&other.key()));
        let mut seconds: Vec<_> = attributes
            .iter()
            .filter_map(Attribute::second_spelling)
            .collect();
        seconds.sort();
        Rdn {
            attributes,
            seconds,
        }
    }

    /// Whether a text's RDN is this one of the certificate.
    fn is(&self, found: &Rdn) -> bool {
        if self.attributes.len() != found.attributes.len() {
            return false;
        }
        let mut keys: Vec<_> = found
            .attributes
            .iter()
            .map(|attribute| self.meant(attribute))
            .collect();
        keys.sort_unstable();
        self.attributes.iter().map(Attribute::key).eq(keys)
    }

    /// What an attribute of a text means in this RDN: by its first spelling if this RDN holds that, and else by its second.
    fn meant<'a>(&'a self, found: &'a Attribute) -> (&'a str, &'a AttributeValue) {
        let oid = &*found.oid;
        let held = |value| self.held(oid, value).map(|held| (oid, held));
        held(&found.folded)
            .or_else(|| found.second.as_ref().and_then(held))
            .unwrap_or(found.key())
    }

    /// The folded value of this RDN that `value` spells, if any does.
    fn held<'a>(&'a self, oid: &str, value: &'a AttributeValue) -> Option<&'a AttributeValue> {
        let key = (oid, value);
        if self
            .attributes
            .binary_search_by(|attribute| attribute.key().cmp(&key))
            .is_ok()
        {
            return Some(value);
        }
        let found = self
            .seconds
            .binary_search_by(|(oid, spelling, _)| (&**oid, spelling).cmp(&key))
            .ok()?;
        self.seconds.get(found).map(|(_, _, meant)| meant)
    }
}

impl fmt::Display for Rdn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(&self.attributes, "+", out)
    }
}

/// An attribute: its type as a dotted OID, its value as written and as compared.
#[derive(Debug, Clone)]
struct Attribute {
    oid: Cow<'static, str>,
    value: AttributeValue,
    folded: AttributeValue,
    /// A second spelling that Java gives the value, folded. In a certificate: its RFC 2253 text of string types other than UTF8String. In a
    /// text: a quoted value with its quotes, because `toString` prints a value that begins and ends with quotation marks as it is, so
    /// that `O="ACME"` may mean a name with them or a name without.
    second: Option<AttributeValue>,
}

impl Attribute {
    fn new(
        oid: Cow<'static, str>,
        value: AttributeValue,
        second: Option<&AttributeValue>,
    ) -> Attribute {
        Attribute {
            oid,
            folded: value.folded(),
            value,
            second: second.map(AttributeValue::folded),
        }
    }

    fn key(&self) -> (&str, &AttributeValue) {
        (&self.oid, &self.folded)
    }

    fn second_spelling(&self) -> Option<(Cow<'static, str>, AttributeValue, AttributeValue)> {
        let second = self.second.clone()?;
        Some((self.oid.clone(), second, self.folded.clone()))
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", kind::keyword_of(&self.oid), self.value)
    }
}

fn rdn_from_der(sets: &mut &[u8], rdn: usize) -> Result<Rdn, NameFault> {
    let mut pairs = Element::take(sets)
        .and_then(|set| set.content_of(tag::SET))
        .filter(|pairs| !pairs.is_empty())
        .ok_or(NameFault::Rdn { rdn })?;
    let mut attributes = Vec::new();
    while !pairs.is_empty() {
        let mut pair = Element::take(&mut pairs)
            .and_then(|pair| pair.content_of(tag::SEQUENCE))
            .ok_or(NameFault::Rdn { rdn })?;
        let oid = Element::take(&mut pair)
            .and_then(|oid| oid.content_of(tag::OBJECT_IDENTIFIER))
            .and_then(der::dotted)
            .ok_or(NameFault::AttributeType { rdn })?;
        let value = Element::only(pair).ok_or(NameFault::Rdn { rdn })?;
        let second = AttributeValue::as_java_reads_it(&value);
        attributes.push(Attribute::new(
            Cow::Owned(oid),
            AttributeValue::from_element(&value),
            second.as_ref(),
        ));
    }
    Ok(Rdn::new(attributes))
}

fn separated<T: fmt::Display>(
    parts: &[T],
    separator: &str,
    out: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.write_str(separator)?;
        }
        write!(out, "{part}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
