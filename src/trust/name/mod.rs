//! Distinguished names: whether the issuer in keyId is the issuer of the TPP's certificate (SIG-4).
//!
//! Names are compared by their structure and not as text, because every library prints a name in its own form. A comparison of texts is the
//! most common reason for the refusal of a valid signature.
//!
//! Invariant: a text matches a name only if one of a few fixed readings of the whole text has the same RDNs in the same order, each with
//! the same attributes. An escaped or quoted character in a value is never a boundary between RDNs.
//!
//! Deliberately not here: the serial number and the rest of keyId (SIG-3), and trust in the issuer. The signature proves the identity of
//! the signer; this comparison only shows that the TPP means the certificate that it sent.

// The faults of names, and the differences between names.
mod fault;

// RDNs, and the types and values of their attributes.
mod kind;
mod rdn;
mod value;

// The text form of names, and the encodings that clients add.
mod reading;
mod text;

pub use fault::{NameFault, NameMismatch};

use super::der::{Element, tag};
use rdn::{Rdn, separated};
use std::{borrow::Cow, fmt};

/// The maximum length of a text that is compared, in bytes.
///
/// By the upper bounds of RFC 5280, an issuer of ten attributes with 64 letters each has 640 letters; if every letter is written as two hex
/// pairs (`\C3\AD`), the text has 3 840 bytes. The longest known text of a real issuer has 173 bytes.
pub const MAX_TEXT: usize = 4096;

/// A distinguished name. The RDNs are in RFC 2253 order: the last RDN of the certificate is the first.
#[derive(Debug, Clone)]
pub struct Name {
    rdns: Vec<Rdn>,
}

impl Name {
    /// Reads the DER of an X.501 Name from a certificate.
    ///
    /// # Errors
    ///
    /// A [`NameFault`] if the bytes are not exactly one Name in DER. A string that is not valid for its type is not a fault: the string is
    /// kept as DER, and matches only as `#hex`.
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

    /// Whether `text`, the raw bytes after `CA=` in keyId, spells this name (SIG-4).
    ///
    /// The function tries these readings of the text: unchanged (UTF-8, or Latin-1 if it is not valid UTF-8), without one level of
    /// quoted-string escaping, percent-decoded once, and both; and each of these also as UTF-8 that was misread as Latin-1.
    ///
    /// # Errors
    ///
    /// A [`NameMismatch`] for the closest reading, if no reading is this name.
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
            // The offset counts the bytes of the header: one for each letter of Latin-1.
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

/// Writes the name in RFC 2253 form, with UTF-8 unescaped. A type outside the table of RFC 2253 is a dotted OID, with its value as text:
/// organizationIdentifier is `2.5.4.97=PSDNO-FSA-...`. [`Name::compare`] accepts this form.
impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(&self.rdns, ",", out)
    }
}

#[cfg(test)]
mod tests;
