//! The rules for a parsed certificate: one function each. The functions do not depend on each other's order.
//!
//! The request path calls them in the order of the rules and stops at the first fault
//! ([`Certificate::judge`](super::Certificate)); `portvakt cert` calls every one of them. So both apply
//! the same rules. Deliberately not here: the chain, which OpenSSL verifies.

use super::{
    CertificateFault, Validity,
    der::{Element, tag},
    distinguished,
    fault::Member,
    name::Name,
    qc::{self, CertificateTypes, Psd2Statement, QcStatements},
    tolerance::{Tolerance, Tolerated},
    undecodable,
};
use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256};
use portvakt_base::{clock::Timestamp, hex};
use portvakt_interface::tpp_id::{TppId, is_authority};
use rsa::{RsaPublicKey, pkcs8::DecodePublicKey, traits::PublicKeyParts};
use std::{borrow::Cow, ops::RangeInclusive};
use x509_parser::{
    certificate::X509Certificate,
    der_parser::{Oid, oid},
    prelude::FromDer,
};

/// SIG-5: the sizes of RSA keys that are accepted, in bits.
const KEY_BITS: RangeInclusive<usize> = 2048..=4096;
/// SIG-5: the accepted exponents (ETSI TS 119 312); an even exponent is not valid.
const EXPONENTS: RangeInclusive<u64> = 65_537..=1 << 32;

/// rsaEncryption (RFC 8017).
const RSA: Oid<'static> = oid!(1.2.840.113549.1.1.1);

/// organizationIdentifier.
pub const ORGANIZATION_IDENTIFIER: Oid<'static> = oid!(2.5.4.97);

/// CRT-1: DER throughout, and a certificate. Also returns the bytes after the certificate, which [`ends`] judges.
pub fn read(der: &[u8]) -> Result<(X509Certificate<'_>, &[u8]), CertificateFault> {
    let instead = |fault| undecodable::bytes(der).unwrap_or(fault);
    distinguished::judge(der).map_err(|fault| instead(CertificateFault::NotDer(fault)))?;
    let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| {
        instead(CertificateFault::Malformed(
            "it is DER, but no certificate".into(),
        ))
    })?;
    Ok((certificate, rest))
}

/// CRT-10: nothing follows the certificate.
pub fn ends(rest: &[u8]) -> Result<(), CertificateFault> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(CertificateFault::Malformed(
            "bytes follow the certificate".into(),
        ))
    }
}

/// CRT-10: inner and outer signature algorithm agree.
pub fn algorithms_agree(certificate: &X509Certificate<'_>) -> Result<(), CertificateFault> {
    if certificate.signature_algorithm == certificate.tbs_certificate.signature {
        Ok(())
    } else {
        Err(CertificateFault::Malformed(
            "its two signature algorithms differ".into(),
        ))
    }
}

/// SIG-5. Size and exponent are checked before any arithmetic: a crafted key can make one verification cost as much as a thousand.
pub fn signing_key(certificate: &X509Certificate<'_>) -> Result<ParsedPublicKey, CertificateFault> {
    let weak = |why: String| CertificateFault::Weak(why);
    let info = certificate.public_key();
    if info.algorithm.algorithm != RSA {
        return Err(weak("its key is not an RSA key".to_owned()));
    }
    let key = RsaPublicKey::from_public_key_der(info.raw).map_err(|_| {
        let bits = info.parsed().map_or(0, |key| key.key_size());
        weak(match bits > *KEY_BITS.end() {
            true => format!("its RSA key has {bits} bits"),
            false => "its RSA key cannot be read".to_owned(),
        })
    })?;
    let bits = key.n().bits();
    if !KEY_BITS.contains(&bits) {
        return Err(weak(format!("its RSA key has {bits} bits")));
    }
    let exponent = key.e().to_str_radix(10);
    let is_accepted = exponent
        .parse()
        .is_ok_and(|exponent: u64| EXPONENTS.contains(&exponent) && exponent % 2 == 1);
    if !is_accepted {
        return Err(weak(format!("its RSA key has the exponent {exponent}")));
    }
    ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, info.raw)
        .map_err(|_| weak("its RSA key cannot be used".to_owned()))
}

/// CRT-10: the leaf is no CA.
pub fn is_no_ca(certificate: &X509Certificate<'_>) -> Result<(), CertificateFault> {
    if certificate.is_ca() {
        Err(CertificateFault::OfCa)
    } else {
        Ok(())
    }
}

/// CRT-2, at `now`. The fault is that of the first member of the chain that is not valid.
pub fn validity(members: &[Validity], now: Timestamp) -> Result<(), CertificateFault> {
    let Some(depth) = members.iter().position(|validity| !validity.contains(now)) else {
        return Ok(());
    };
    let member = Member::at(depth);
    match members.get(depth) {
        Some(validity) if now < validity.not_before => {
            Err(CertificateFault::NotYetValid(validity.not_before, member))
        }
        Some(validity) => Err(CertificateFault::Expired(validity.not_after, member)),
        None => Ok(()),
    }
}

/// CRT-3, CRT-4: the extension qcStatements is present and well-formed.
pub fn statements(certificate: &X509Certificate<'_>) -> Result<QcStatements, CertificateFault> {
    statements_by(
        certificate,
        &mut Tolerance::of(super::CertificatePolicy::Strict),
    )
}

/// The same, but accepts the faults that a policy tolerates.
pub(crate) fn statements_by(
    certificate: &X509Certificate<'_>,
    tolerance: &mut Tolerance,
) -> Result<QcStatements, CertificateFault> {
    let extension = certificate
        .extensions()
        .iter()
        .find(|extension| extension.oid.to_id_string() == qc::EXTENSION);
    extension.map_or(
        Err(CertificateFault::WrongType("it has no QcStatements")),
        |extension| QcStatements::parse_by(extension.value, tolerance),
    )
}

/// CRT-3: QcCompliance.
pub const fn qualified(statements: &QcStatements) -> Result<(), CertificateFault> {
    if statements.qualified {
        Ok(())
    } else {
        Err(CertificateFault::WrongType("it does not say QcCompliance"))
    }
}

/// CRT-3: QcType eseal or web, of those that are accepted. A certificate of both types passes as either.
pub const fn qc_type(
    statements: &QcStatements,
    accepted: CertificateTypes,
) -> Result<(), CertificateFault> {
    if statements.eseal && accepted.eseal || statements.web && accepted.web {
        return Ok(());
    }
    Err(CertificateFault::WrongType(
        match (accepted.eseal, accepted.web) {
            (true, false) => "its QcType is not eseal",
            (false, true) => "its QcType is not web",
            _ => "its QcType is neither eseal nor web",
        },
    ))
}

/// TLS-3: QcType web.
pub const fn web(statements: &QcStatements) -> Result<(), CertificateFault> {
    if statements.web {
        Ok(())
    } else {
        Err(CertificateFault::WrongType("its QcType is not web"))
    }
}

/// CRT-3: the key usage allows signatures.
pub fn key_usage(certificate: &X509Certificate<'_>) -> Result<(), CertificateFault> {
    let usage = certificate
        .key_usage()
        .ok()
        .flatten()
        .map(|usage| usage.value);
    if usage.is_some_and(|usage| usage.digital_signature() || usage.non_repudiation()) {
        Ok(())
    } else {
        Err(CertificateFault::WrongType(
            "its key usage has neither digitalSignature nor nonRepudiation",
        ))
    }
}

/// CRT-4: the PSD2 statement is present.
pub fn psd2(statements: &QcStatements) -> Result<&Psd2Statement, CertificateFault> {
    statements
        .psd2
        .as_ref()
        .ok_or(CertificateFault::NotPsd2(Cow::Borrowed(
            "it has no PSD2 statement",
        )))
}

/// CRT-4: the PSD2 statement, complete, or with the faults that a policy tolerates.
pub(crate) fn psd2_by(
    statements: &QcStatements,
    tolerance: &mut Tolerance,
) -> Result<Psd2Statement, CertificateFault> {
    let psd2 = psd2(statements)?;
    roles(psd2).or_else(|fault| tolerance.allows(Tolerated::RolesEmpty).ok_or(fault))?;
    authority(psd2).or_else(|fault| tolerance.allows(Tolerated::NcaIdMalformed).ok_or(fault))?;
    Ok(psd2.clone())
}

/// CRT-4: the PSD2 statement has a role.
pub fn roles(psd2: &Psd2Statement) -> Result<(), CertificateFault> {
    if !psd2.roles.is_empty() {
        return Ok(());
    }
    Err(CertificateFault::NotPsd2(match &psd2.unknown_role {
        Some(role) => format!(
            "its PSD2 statement has the role {role} alone, which is none of ETSI TS 119 495 (0.4.0.19495.1.1 to .6)"
        )
        .into(),
        None => "its PSD2 statement has no role".into(),
    }))
}

/// CRT-4: the NCA id has the form of ETSI TS 119 495, `<country>-<NCA>`.
pub fn authority(psd2: &Psd2Statement) -> Result<(), CertificateFault> {
    match psd2.nca_id.split_once('-') {
        Some((country, nca)) if is_authority(country, nca) => Ok(()),
        _ => Err(CertificateFault::NotPsd2(
            "the NCA id in its PSD2 statement is not <country>-<NCA>, such as NO-FSA".into(),
        )),
    }
}

/// CRT-1, SIG-4: the issuer's name can be read.
pub fn issuer(certificate: &X509Certificate<'_>) -> Result<Name, CertificateFault> {
    Name::from_der(certificate.issuer().as_raw())
        .map_err(|_| CertificateFault::Malformed("its issuer name cannot be read".into()))
}

/// CRT-4: exactly one `PSD<country>-<NCA>-<id>`. With two it would be unknown which of them the CA has checked.
pub fn tpp_id(certificate: &X509Certificate<'_>) -> Result<TppId, CertificateFault> {
    let mut attributes = certificate.subject().iter_by_oid(&ORGANIZATION_IDENTIFIER);
    let first = attributes
        .next()
        .ok_or(CertificateFault::NotPsd2(Cow::Borrowed(
            "its subject has no organizationIdentifier",
        )))?;
    if attributes.next().is_some() {
        return Err(CertificateFault::NotPsd2(
            "its subject has more than one organizationIdentifier".into(),
        ));
    }
    let identifier = first.as_str().map_err(|_| {
        CertificateFault::NotPsd2("its organizationIdentifier is no text that can be read".into())
    })?;
    TppId::parse(identifier).ok_or_else(|| {
        let why = TppId::fault(identifier);
        CertificateFault::NotPsd2(
            format!("its organizationIdentifier is not PSD<country>-<NCA>-<id>: {why}").into(),
        )
    })
}

/// The organizationName, or the commonName if there is none.
pub fn tpp_name(certificate: &X509Certificate<'_>) -> String {
    let subject = certificate.subject();
    let name = subject
        .iter_organization()
        .chain(subject.iter_common_name())
        .find_map(|attribute| attribute.as_str().ok());
    name.unwrap_or_default().to_owned()
}

/// A serial number in upper-case hexadecimal, as keyId should have it (SIG-3): whole bytes, without leading zeros.
pub fn serial_hex(serial: &[u8]) -> String {
    let mut digits = hex::encode(match without_leading_zeros(serial) {
        [] => &[0],
        bytes => bytes,
    });
    digits.make_ascii_uppercase();
    digits
}

/// Whether hexadecimal digits name a serial number (SIG-3); leading zeros and letter case do not matter.
pub(crate) fn is_serial(serial: &[u8], digits: &[u8]) -> bool {
    let own = serial
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .skip_while(|digit| *digit == 0);
    let given = digits.iter().map(|digit| hex::digit(*digit));
    let given = given.skip_while(|digit| *digit == Some(0));
    given.eq(own.map(Some))
}

/// Whether decimal digits name a serial number, which keyId has in hexadecimal (SIG-3): for the text of a fault alone.
pub(crate) fn is_decimal_serial(serial: &[u8], decimal: &[u8]) -> bool {
    // RFC 5280, section 4.1.2.2: at most 20 octets, which are 49 digits.
    if decimal.is_empty() || decimal.len() > 49 {
        return false;
    }
    // Base 256, the last byte first.
    let mut number: Vec<u8> = Vec::with_capacity(21);
    for digit in decimal {
        let Some(digit) = char::from(*digit).to_digit(10) else {
            return false;
        };
        let mut carry = digit;
        for byte in &mut number {
            let next = u32::from(*byte).saturating_mul(10).saturating_add(carry);
            let [low, high, ..] = next.to_le_bytes();
            *byte = low;
            carry = u32::from(high);
        }
        if carry > 0 {
            number.extend(carry.to_le_bytes().first());
        }
    }
    number.iter().rev().eq(without_leading_zeros(serial))
}

/// The length of a signature by this RSA key, a SubjectPublicKeyInfo: that of its modulus, in bytes.
pub(crate) fn signature_length(info: &[u8]) -> Option<usize> {
    let mut rest = Element::only(info)?.content_of(tag::SEQUENCE)?;
    Element::take(&mut rest)?;
    let key = Element::take(&mut rest)?.content_of(tag::BIT_STRING)?;
    let mut key = Element::only(key.strip_prefix(&[0])?)?.content_of(tag::SEQUENCE)?;
    let modulus = Element::take(&mut key)?.content_of(tag::INTEGER)?;
    Some(without_leading_zeros(modulus).len())
}

/// The bytes of a number without those that only keep it positive.
pub fn without_leading_zeros(mut bytes: &[u8]) -> &[u8] {
    while let [0, rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials() {
        assert_eq!(serial_hex(&[0, 0x8a, 1]), "8A01");
        assert_eq!(serial_hex(&[0x0a]), "0A");
        assert_eq!(serial_hex(&[0]), "00");
        for good in ["8A01", "8a01", "008a01"] {
            assert!(is_serial(&[0, 0x8a, 1], good.as_bytes()), "{good}");
        }
        for bad in ["8A0", "35329", "8A01 ", ""] {
            assert!(!is_serial(&[0, 0x8a, 1], bad.as_bytes()), "{bad}");
        }
        for good in ["35329", "0035329"] {
            assert!(is_decimal_serial(&[0, 0x8a, 1], good.as_bytes()), "{good}");
        }
        for bad in ["35328", "8A01", "", "353290", "3532"] {
            assert!(!is_decimal_serial(&[0, 0x8a, 1], bad.as_bytes()), "{bad}");
        }
        let most = "1461501637330902918203684832716283019655932542975";
        assert!(is_decimal_serial(&[0xff; 20], most.as_bytes()));
        assert!(!is_decimal_serial(
            &[0xff; 20],
            format!("0{most}").as_bytes()
        ));
        assert!(is_decimal_serial(&[1, 0, 0], b"65536"));
    }
}
