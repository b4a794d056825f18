//! Certificates of those who sign lists, and of the services that lists name.
//!
//! A certificate is its bytes: two are the same if they are byte for byte equal. Nothing here builds a chain, since a list is trusted
//! because its signer's certificate is pinned (TS 119 612, clause 5.7.1), whoever issued it.

use crate::fault::Refusal;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use openssl::{error::ErrorStack, x509::X509};
use portvakt_base::clock::Timestamp;
use portvakt_trust::KeyHash;
use sha2::{Digest as _, Sha256};
use std::fmt;
use x509_parser::{
    asn1_rs::{FromDer as _, Header, Tag},
    certificate::Validity,
    oid_registry::{OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_ORGANIZATION_NAME},
    prelude::X509Certificate,
    time::ASN1Time,
    x509::{AttributeTypeAndValue, RelativeDistinguishedName, X509Name},
};

/// The longest certificate, in bytes of DER. Those of the lists have at most 3 KiB.
const MAX_DER: usize = 64 * 1024;

/// A certificate, as DER that parses.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Certificate(Vec<u8>);

impl Certificate {
    /// Reads DER.
    ///
    /// # Errors
    /// It is no X.509 certificate, or bytes follow it.
    pub fn from_der(der: Vec<u8>) -> Result<Self, Refusal> {
        if der.len() > MAX_DER {
            return Err(Refusal::new("a certificate is longer than 64 KiB"));
        }
        match X509Certificate::from_der(&der) {
            Ok(([], _)) => Ok(Self(der)),
            Ok(_) => Err(Refusal::new("bytes follow a certificate")),
            Err(fault) => Err(Refusal::new(format_args!(
                "not an X.509 certificate: {fault}"
            ))),
        }
    }

    /// Reads base64 of DER, as lists have it: white space may stand anywhere in it.
    ///
    /// # Errors
    /// It is no base64, or not of one certificate.
    pub fn from_base64(text: &str) -> Result<Self, Refusal> {
        Self::from_der(decode_base64(text)?)
    }

    /// Reads every certificate of a PEM file.
    ///
    /// # Errors
    /// It has none, or one that is malformed.
    pub fn from_pem(pem: &[u8]) -> Result<Vec<Self>, Refusal> {
        let certificates: Result<Vec<_>, _> = x509_parser::pem::Pem::iter_from_buffer(pem)
            .map(|block| match block {
                Ok(block) if block.label == "CERTIFICATE" => Self::from_der(block.contents),
                Ok(block) => Err(Refusal::new(format_args!(
                    "a PEM file of certificates has a {}",
                    block.label
                ))),
                Err(fault) => Err(Refusal::new(format_args!("not PEM: {fault}"))),
            })
            .collect();
        match certificates {
            Ok(none) if none.is_empty() => Err(Refusal::new("no PEM certificate in the file")),
            other => other,
        }
    }

    /// The DER.
    pub fn der(&self) -> &[u8] {
        &self.0
    }

    /// The SHA-256 of the DER.
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }

    /// The subject's name, for people.
    pub fn subject(&self) -> String {
        match self.parse() {
            Ok(certificate) => certificate.subject().to_string(),
            Err(fault) => fault.to_string(),
        }
    }

    /// The country, the organisation and the common name of its subject, as [`Self::subject`] writes them. Other attributes of a signer of lists
    /// may be personal, such as an identity number.
    pub fn signer_name(&self) -> String {
        match self.parse() {
            Ok(certificate) => signer_name(certificate.subject()),
            Err(fault) => fault.to_string(),
        }
    }

    /// The hash of its public key.
    ///
    /// # Errors
    /// OpenSSL does not read the certificate or its key, or the key is in no form that is compared.
    pub fn key(&self) -> Result<KeyHash, ErrorStack> {
        KeyHash::of(&*X509::from_der(&self.0)?)
    }

    /// The first second of its validity; 1970 for an earlier one.
    pub fn not_before(&self) -> Timestamp {
        self.time(|validity| validity.not_before)
    }

    /// The last second of its validity; 1970 for an earlier one.
    pub fn not_after(&self) -> Timestamp {
        self.time(|validity| validity.not_after)
    }

    fn time(&self, of: impl Fn(&Validity) -> ASN1Time) -> Timestamp {
        let parsed = self.parse().ok();
        let seconds = parsed.and_then(|it| u64::try_from(of(it.validity()).timestamp()).ok());
        Timestamp::from_unix(seconds.unwrap_or_default())
    }

    /// The certificate's parts. They were parsed once, so that this succeeds.
    pub(crate) fn parse(&self) -> Result<X509Certificate<'_>, Refusal> {
        match X509Certificate::from_der(&self.0) {
            Ok((_, certificate)) => Ok(certificate),
            Err(fault) => Err(Refusal::new(format_args!(
                "not an X.509 certificate: {fault}"
            ))),
        }
    }

    /// The PEM, with a line feed at its end.
    pub fn pem(&self) -> String {
        let base64 = STANDARD.encode(&self.0);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        for (position, character) in base64.chars().enumerate() {
            if position > 0 && position.is_multiple_of(64) {
                pem.push('\n');
            }
            pem.push(character);
        }
        pem.push_str("\n-----END CERTIFICATE-----\n");
        pem
    }
}

fn signer_name(subject: &X509Name<'_>) -> String {
    let is_kept = |of: &&AttributeTypeAndValue<'_>| {
        let kinds = [
            OID_X509_COUNTRY_NAME,
            OID_X509_ORGANIZATION_NAME,
            OID_X509_COMMON_NAME,
        ];
        kinds.contains(of.attr_type())
    };
    let parts = subject.iter_rdn().filter_map(|part| {
        let kept: Vec<_> = part.iter().filter(is_kept).cloned().collect();
        (!kept.is_empty()).then(|| RelativeDistinguishedName::new(kept))
    });
    X509Name::new(parts.collect(), &[]).to_string()
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({})", self.signer_name())
    }
}

/// The hash of the public key in DER of a certificate, also where bytes follow it, its other parts cannot be read, or its key has a form that no
/// chain may have: by OpenSSL, or by its place in the sequence (RFC 5280, 4.1).
pub(crate) fn listed_key(der: &[u8]) -> Option<KeyHash> {
    let read = X509::from_der(der).and_then(|certificate| KeyHash::of(&certificate));
    read.ok().or_else(|| {
        let (_, certificate, _) = part(der)?;
        let (_, body, _) = part(certificate)?;
        let (first, _, mut rest) = part(body)?;
        // The version may be missing. Then come the serial number, the algorithm, the issuer, the validity, the subject, and the key.
        let parts = if first == Tag::Integer { 5 } else { 6 };
        let mut start = rest;
        for _ in 0..parts {
            start = rest;
            (_, _, rest) = part(rest)?;
        }
        let length = start.len().checked_sub(rest.len())?;
        KeyHash::of_listed_key(start.get(..length)?)
    })
}

/// The first part of DER: its tag, its content, which is not looked at, and what follows it.
fn part(der: &[u8]) -> Option<(Tag, &[u8], &[u8])> {
    let (rest, header) = Header::from_der(der).ok()?;
    let length = header.length().definite().ok()?;
    let (content, rest) = rest.split_at_checked(length)?;
    Some((header.tag(), content, rest))
}

/// Decodes base64 with white space anywhere in it (XML Schema's base64Binary).
///
/// # Errors
/// Another character, or padding that is not canonical.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, Refusal> {
    let characters: Vec<u8> = text
        .bytes()
        .filter(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        .collect();
    STANDARD
        .decode(characters)
        .map_err(|fault| Refusal::new(format_args!("not base64: {fault}")))
}
