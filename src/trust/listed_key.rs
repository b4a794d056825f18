//! The keys of services of trusted lists, in forms that no chain may have (CRT-13; ETSI TS 119 612, clause 5.5.3).
//!
//! Invariant: a key has the hash that a usual certificate of the same numbers has, so that a CA which a list names is recognised by its usual
//! certificate too. Deliberately not here: keys in chains, which `key_hash` compares and which have fewer forms.

use super::{
    der::{Element, dotted, tag},
    key_hash::KeyHash,
};
use openssl::{
    asn1::Asn1Object,
    bn::{BigNum, BigNumContext},
    ec::{EcGroup, EcKey, EcPoint},
    error::ErrorStack,
    nid::Nid,
    pkey::{PKey, Public},
    rsa::Rsa,
};

/// The longest number of an RSA key, in bytes.
const MAX_RSA_BYTES: usize = 4096;

/// The object identifier id-ecPublicKey, with its tag and length.
const EC_PUBLIC_KEY: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01";

impl KeyHash {
    /// That of a SubjectPublicKeyInfo, whichever identifier of an algorithm stands before its numbers: id-ecDH and id-RSAES-OAEP are read too,
    /// and a curve that is written by its parameters, if it is one that has a name. `None` if no such numbers are found.
    pub fn of_listed_key(der: &[u8]) -> Option<Self> {
        let usual = PKey::public_key_from_der(der).and_then(|key| Self::of_key(&key));
        usual.ok().or_else(|| of_numbers(der))
    }

    /// That of an RSA key by its modulus and its exponent, as unsigned numbers with the first byte first. `None` if they are none.
    pub fn of_rsa_numbers(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let is_number =
            |bytes: &[u8]| bytes.len() <= MAX_RSA_BYTES && bytes.iter().any(|it| *it != 0);
        if !is_number(modulus) || !is_number(exponent) {
            return None;
        }
        let key = || {
            let (modulus, exponent) = (BigNum::from_slice(modulus)?, BigNum::from_slice(exponent)?);
            PKey::from_rsa(Rsa::from_public_components(modulus, exponent)?)
        };
        of_made(key())
    }

    /// That of an elliptic curve's key by the object identifier of the curve in dotted decimal, and the point (SEC 1, 2.3.3). `None` if there
    /// is no such curve, or the point is not on it.
    pub fn of_point(curve: &str, point: &[u8]) -> Option<Self> {
        // The library takes a text with a zero in it for a fault of the program.
        let is_oid = curve
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let curve = is_oid.then(|| Asn1Object::from_str(curve).ok())??.nid();
        of_made(on_curve(curve, point))
    }
}

/// The hash of a key that was made of numbers.
fn of_made(key: Result<PKey<Public>, ErrorStack>) -> Option<KeyHash> {
    key.and_then(|key| KeyHash::of_key(&key)).ok()
}

fn on_curve(curve: Nid, point: &[u8]) -> Result<PKey<Public>, ErrorStack> {
    let group = EcGroup::from_curve_name(curve)?;
    let mut context = BigNumContext::new()?;
    let point = EcPoint::from_bytes(&group, point, &mut context)?;
    PKey::from_ec_key(EcKey::from_public_key(&group, &point)?)
}

/// The hash by the numbers in a SubjectPublicKeyInfo alone.
fn of_numbers(der: &[u8]) -> Option<KeyHash> {
    let mut rest = der;
    let mut inner = Element::take(&mut rest)?.content_of(tag::SEQUENCE)?;
    let mut algorithm = Element::take(&mut inner)?.content_of(tag::SEQUENCE)?;
    // The first byte says how many bits of the last are unused: none.
    let (_, key) = Element::take(&mut inner)?
        .content_of(tag::BIT_STRING)?
        .split_first()?;
    Element::take(&mut algorithm)?.content_of(tag::OBJECT_IDENTIFIER)?;
    if let Some(hash) = of_rsa(key) {
        return Some(hash);
    }
    let parameters = Element::take(&mut algorithm)?;
    match parameters.tag {
        tag::OBJECT_IDENTIFIER => KeyHash::of_point(&dotted(parameters.content)?, key),
        _ => of_explicit(parameters.whole, key),
    }
}

/// The hash of RSAPublicKey (RFC 8017, A.1.1).
fn of_rsa(key: &[u8]) -> Option<KeyHash> {
    let mut rest = key;
    let mut numbers = Element::take(&mut rest)?.content_of(tag::SEQUENCE)?;
    let modulus = Element::take(&mut numbers)?.content_of(tag::INTEGER)?;
    let exponent = Element::take(&mut numbers)?.content_of(tag::INTEGER)?;
    KeyHash::of_rsa_numbers(modulus, exponent)
}

/// The hash of a key whose curve is written by its parameters. OpenSSL compares these with the curves that have a name.
fn of_explicit(parameters: &[u8], point: &[u8]) -> Option<KeyHash> {
    let algorithm = element(tag::SEQUENCE, &[EC_PUBLIC_KEY, parameters])?;
    let key = element(tag::BIT_STRING, &[&[0], point])?;
    let written = element(tag::SEQUENCE, &[&algorithm, &key])?;
    let key = PKey::public_key_from_der(&written).ok()?.ec_key().ok()?;
    of_made(on_curve(key.group().curve_name()?, point))
}

/// Writes an element of DER; `None` if its content is longer than 64 KiB.
fn element(tag: u8, parts: &[&[u8]]) -> Option<Vec<u8>> {
    let content = parts.concat();
    let [high, low] = u16::try_from(content.len()).ok()?.to_be_bytes();
    let mut whole = vec![tag];
    match (high, low) {
        (0, 0..0x80) => whole.push(low),
        (0, _) => whole.extend([0x81, low]),
        _ => whole.extend([0x82, high, low]),
    }
    whole.extend(content);
    Some(whole)
}

#[cfg(test)]
mod tests;
