//! The hash by which trusted lists and chains are compared: that of an issuer's public key (ETSI TS 119 612, clause 5.5.3).
//!
//! Invariant: one key has one hash, however a certificate writes it: a certificate with a compressed point, or with other parameters of RSA,
//! is no other issuer. A key whose curve has no name has no hash, so that no chain through it is trusted.

use super::digests::sha256;
use openssl::{
    bn::BigNumRef,
    ec::{Asn1Flag, EcGroup, EcKey},
    error::ErrorStack,
    nid::Nid,
    pkey::{Id, PKey, PKeyRef, Public},
    rsa::Rsa,
    x509::X509Ref,
};
use portvakt_base::hex;
use std::fmt;

/// The SHA-256 of a public key: of its SubjectPublicKeyInfo (RFC 5280, 4.1.2.7), made anew from its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// That of a certificate's key.
    ///
    /// # Errors
    /// OpenSSL cannot read the key, its curve has no name, or its algorithm is none of RSA, ECDSA, Ed25519 and Ed448.
    pub fn of(certificate: &X509Ref) -> Result<Self, ErrorStack> {
        Self::of_key(&*certificate.public_key()?)
    }

    /// That of a key.
    ///
    /// # Errors
    /// Those of [`Self::of`].
    pub fn of_key(key: &PKeyRef<Public>) -> Result<Self, ErrorStack> {
        let written = key.public_key_to_der()?;
        let hashed = match is_canonical(&written) {
            true => written,
            false => canonical(key)?,
        };
        Ok(Self(sha256(&[&hashed])))
    }

    /// Reads hexadecimal digits; `None` if they are not 32 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return None;
        };
        let bytes = pairs.iter().map(|[high, low]| hex::byte(*high, *low));
        let bytes: Vec<_> = bytes.collect::<Option<_>>()?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// How a canonical key on a usual curve begins: P-256, P-384 and P-521, with the first byte of a point that is not compressed.
const CURVES: [&[u8]; 3] = [
    b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04",
    b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00\x04",
    b"\x30\x81\x9b\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23\x03\x81\x86\x00\x04",
];

/// The algorithm of a canonical RSA key, behind the four bytes that begin the sequence: rsaEncryption, and NULL.
const RSA: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

/// Whether what OpenSSL writes of a key is the canonical form: the usual one, which need not be made twice for each new certificate. OpenSSL
/// writes the numbers of a key anew, and takes from the certificate only the algorithm's parameters and the form of a point.
fn is_canonical(written: &[u8]) -> bool {
    let is_rsa = written.get(4..).is_some_and(|it| it.starts_with(RSA));
    is_rsa || CURVES.iter().any(|begin| written.starts_with(begin))
}

/// The SubjectPublicKeyInfo of a key, made of its numbers alone.
fn canonical(key: &PKeyRef<Public>) -> Result<Vec<u8>, ErrorStack> {
    match key.id() {
        Id::RSA | Id::RSA_PSS => {
            let rsa = key.rsa()?;
            let copy = BigNumRef::to_owned;
            let rsa = Rsa::from_public_components(copy(rsa.n())?, copy(rsa.e())?)?;
            PKey::from_rsa(rsa)?.public_key_to_der()
        }
        Id::ED25519 | Id::ED448 => key.public_key_to_der(),
        Id::EC => {
            let key = key.ec_key()?;
            let group = key.group();
            let is_named = group.asn1_flag() == Asn1Flag::NAMED_CURVE;
            let curve = group.curve_name().filter(|_| is_named);
            PKey::from_ec_key(EcKey::from_public_key(&*named(curve)?, key.public_key())?)?
                .public_key_to_der()
        }
        _ => named(None).map(|_| Vec::new()),
    }
}

/// The curve of a name; for none the error that OpenSSL has for it.
fn named(curve: Option<Nid>) -> Result<EcGroup, ErrorStack> {
    EcGroup::from_curve_name(curve.unwrap_or(Nid::UNDEF))
}

#[cfg(test)]
mod tests;
