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

// Faults of names, and differences between them.
mod fault;

// RDNs, and the types and values of their attributes.
mod kind;
mod rdn;
mod value;

// Names as text, and the encodings that clients add.
mod reading;
mod text;

pub use fault::{NameFault, NameMismatch};

use super::der::{Element, tag};
use rdn::{Rdn, separated};
use std::{borrow::Cow, fmt};

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
            rdns.push(Rdn::from_der(&mut sets, rdns.len())?);
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

#[cfg(test)]
mod tests;
