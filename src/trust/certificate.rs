//! What a certificate says: the TPP's identity, its roles and its key.
//!
//! A [`Certificate`] holds facts that do not change while the anchors stand: it was read, its key is strong enough,
//! it chains to an anchor, it is of an accepted type and carries a PSD2 identity. It is not a permission: validity and
//! role are judged on every request.

use super::{Anchors, CertificateFault, decode, name::Name, qc::Statements};
use crate::clock::Timestamp;
use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256};
use rsa::{RsaPublicKey, pkcs8::DecodePublicKey, traits::PublicKeyParts};
use std::{fmt, ops::RangeInclusive, sync::OnceLock};
use x509_parser::{
    certificate::X509Certificate,
    der_parser::{Oid, oid},
    prelude::FromDer,
};

/// SIG-5: the sizes of RSA keys that are accepted, in bits.
const KEY_BITS: RangeInclusive<usize> = 2048..=4096;
/// SIG-5: the exponents that are accepted (ETSI TS 119 312); even ones are none.
const EXPONENTS: RangeInclusive<u64> = 65_537..=1 << 32;

const ORGANIZATION_IDENTIFIER: Oid<'static> = oid!(2.5.4.97);

/// A certificate that chains to an anchor and identifies a TPP (CRT-1 to CRT-4).
#[derive(Debug)]
pub struct Certificate {
    /// The header's value that showed it.
    presented: Box<[u8]>,
    /// The Trust that judged it.
    generation: u64,
    tpp_id: String,
    tpp_name: String,
    roles: Roles,
    nca_id: String,
    /// Big-endian, without leading zeros.
    serial: Vec<u8>,
    issuer: Name,
    key: ParsedPublicKey,
    /// Of every member of the chain.
    validity: Vec<Validity>,
    /// The first spelling of keyId's issuer that named this one: the next time, comparing bytes is enough.
    spelling: OnceLock<Box<[u8]>>,
}

/// When a certificate is valid, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: Timestamp,
    /// The last second.
    pub not_after: Timestamp,
}

impl Validity {
    /// Whether `now` lies in it.
    pub fn contains(self, now: Timestamp) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }
}

impl Certificate {
    /// Judges a header's value by the anchors: the cheap checks first, the chain when only it is left.
    pub(super) fn judge(
        presented: &[u8],
        anchors: &Anchors,
        generation: u64,
        now: Timestamp,
    ) -> Result<Self, CertificateFault> {
        let decoded = decode::decode(presented)?;
        let certificate = parse(&decoded.leaf)?;
        let key = signing_key(&certificate)?;
        if certificate.is_ca() {
            return Err(CertificateFault::Untrusted(
                "it is the certificate of a CA".into(),
            ));
        }
        let validity = anchors.chain(&decoded.leaf, &decoded.pool, now)?;
        judge_validity(&validity, now)?;
        let statements = statements(&certificate)?;
        judge_type(&certificate, &statements)?;
        let psd2 = statements
            .psd2
            .ok_or(CertificateFault::NotPsd2("it has no PSD2 statement"))?;
        if psd2.roles.is_empty() {
            return Err(CertificateFault::NotPsd2("its PSD2 statement has no role"));
        }
        let issuer = Name::from_der(certificate.issuer().as_raw())
            .map_err(|_| CertificateFault::Malformed("its issuer name cannot be read"))?;
        Ok(Self {
            presented: presented.into(),
            generation,
            tpp_id: tpp_id(&certificate)?,
            tpp_name: tpp_name(&certificate),
            roles: psd2.roles,
            nca_id: psd2.nca_id,
            serial: without_leading_zeros(certificate.raw_serial()).to_vec(),
            issuer,
            key,
            validity,
            spelling: OnceLock::new(),
        })
    }

    /// The TPP's identity: the organizationIdentifier, upper-cased and trimmed (CRT-4, QUO-15).
    pub fn tpp_id(&self) -> &str {
        &self.tpp_id
    }

    /// The TPP's name: the organization, or where there is none the common name.
    pub fn tpp_name(&self) -> &str {
        &self.tpp_name
    }

    /// The roles in the PSD2 statement.
    pub const fn roles(&self) -> Roles {
        self.roles
    }

    /// The id of the competent authority.
    pub fn nca_id(&self) -> &str {
        &self.nca_id
    }

    /// The issuer's name.
    pub const fn issuer(&self) -> &Name {
        &self.issuer
    }

    /// The serial number in upper-case hexadecimal, as keyId should have it (SIG-3).
    pub fn serial_hex(&self) -> String {
        self.serial
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect()
    }

    /// The key that signatures are verified with.
    pub const fn key(&self) -> &ParsedPublicKey {
        &self.key
    }

    /// Whether every member of the chain is valid (CRT-2: at the moment of each request).
    ///
    /// # Errors
    /// [`CertificateFault::Expired`] or [`CertificateFault::NotYetValid`].
    pub fn judge_validity(&self, now: Timestamp) -> Result<(), CertificateFault> {
        judge_validity(&self.validity, now)
    }

    /// Whether hexadecimal digits name this certificate's serial number (SIG-3); leading zeros and case don't matter.
    pub fn has_serial(&self, hex: &[u8]) -> bool {
        let digits = |byte: &u8| char::from(*byte).to_digit(16);
        let own = self
            .serial
            .iter()
            .flat_map(|byte| [u32::from(byte >> 4), u32::from(byte & 15)])
            .skip_while(|digit| *digit == 0);
        let given = hex.iter().map(digits).skip_while(|digit| *digit == Some(0));
        given.eq(own.map(Some))
    }

    /// Whether the issuer in a keyId names this certificate's issuer (SIG-4).
    ///
    /// # Errors
    /// Where the names differ.
    pub fn has_issuer(&self, spelling: &[u8]) -> Result<(), super::name::NameMismatch> {
        if self
            .spelling
            .get()
            .is_some_and(|known| **known == *spelling)
        {
            return Ok(());
        }
        self.issuer.compare(spelling)?;
        let _ = self.spelling.set(spelling.into());
        Ok(())
    }

    /// Whether it is the one that this header value shows, judged by this Trust.
    pub(super) fn is(&self, presented: &[u8], generation: u64) -> bool {
        self.generation == generation && *self.presented == *presented
    }
}

/// The PSD2 roles of a TPP (ETSI TS 119 495, 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    const NAMES: [(u8, &'static str); 4] =
        [(1, "PSP_AS"), (2, "PSP_PI"), (3, "PSP_AI"), (4, "PSP_IC")];

    /// These and the role with this number; other numbers mean nothing to this interface.
    pub fn with(self, number: u8) -> Self {
        if Self::NAMES.iter().any(|(known, _)| *known == number) {
            Self(self.0 | 1 << number)
        } else {
            self
        }
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// May it initiate payments?
    pub const fn payment_initiation(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// May it read account information?
    pub const fn account_information(self) -> bool {
        self.0 & 1 << 3 != 0
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Self::NAMES
            .iter()
            .filter(|(number, _)| self.0 & 1 << number != 0);
        f.write_str(&held.map(|(_, name)| *name).collect::<Vec<_>>().join(","))
    }
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, CertificateFault> {
    let (rest, certificate) = X509Certificate::from_der(der)
        .map_err(|_| CertificateFault::Malformed("it is not a DER certificate"))?;
    if !rest.is_empty() {
        return Err(CertificateFault::Malformed("bytes follow the certificate"));
    }
    if certificate.signature_algorithm != certificate.tbs_certificate.signature {
        return Err(CertificateFault::Malformed(
            "its two signature algorithms differ",
        ));
    }
    Ok(certificate)
}

/// SIG-5. Size and exponent are looked at before any arithmetic: a key can be made that costs a thousand verifications.
fn signing_key(certificate: &X509Certificate<'_>) -> Result<ParsedPublicKey, CertificateFault> {
    let weak = |why: &str| CertificateFault::Weak(why.into());
    let key = RsaPublicKey::from_public_key_der(certificate.public_key().raw)
        .map_err(|_| weak("its key is not RSA of 2048 to 4096 bits"))?;
    let bits = key.n().bits();
    let exponent = key.e().to_str_radix(10).parse::<u64>().unwrap_or_default();
    if !KEY_BITS.contains(&bits) || !EXPONENTS.contains(&exponent) || exponent % 2 == 0 {
        return Err(CertificateFault::Weak(format!(
            "its RSA key has {bits} bits and the exponent {exponent}"
        )));
    }
    ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, certificate.public_key().raw)
        .map_err(|_| weak("its key cannot be used"))
}

fn statements(certificate: &X509Certificate<'_>) -> Result<Statements, CertificateFault> {
    let extension = certificate
        .extensions()
        .iter()
        .find(|extension| extension.oid.to_id_string() == super::qc::EXTENSION);
    extension.map_or(
        Err(CertificateFault::WrongType("it has no QcStatements")),
        |extension| Statements::parse(extension.value),
    )
}

/// CRT-3.
fn judge_type(
    certificate: &X509Certificate<'_>,
    statements: &Statements,
) -> Result<(), CertificateFault> {
    if !statements.qualified {
        return Err(CertificateFault::WrongType("it does not say QcCompliance"));
    }
    if !statements.eseal && !statements.web {
        return Err(CertificateFault::WrongType(
            "its QcType is neither eseal nor web",
        ));
    }
    let usage = certificate
        .key_usage()
        .ok()
        .flatten()
        .map(|usage| usage.value);
    if !usage.is_some_and(|usage| usage.digital_signature() || usage.non_repudiation()) {
        return Err(CertificateFault::WrongType(
            "its key usage has neither digitalSignature nor nonRepudiation",
        ));
    }
    Ok(())
}

/// CRT-4: `PSD<country>-<NCA>-<id>`.
fn tpp_id(certificate: &X509Certificate<'_>) -> Result<String, CertificateFault> {
    let mut attributes = certificate.subject().iter_by_oid(&ORGANIZATION_IDENTIFIER);
    let missing = CertificateFault::NotPsd2("its subject has no organizationIdentifier");
    let identifier = attributes
        .next()
        .and_then(|attribute| attribute.as_str().ok())
        .ok_or(missing)?
        .trim()
        .to_uppercase();
    if is_psd2_identifier(&identifier) {
        Ok(identifier)
    } else {
        Err(CertificateFault::NotPsd2(
            "its organizationIdentifier is not PSD<country>-<NCA>-<id>",
        ))
    }
}

fn is_psd2_identifier(identifier: &str) -> bool {
    let Some((country, rest)) = identifier
        .strip_prefix("PSD")
        .and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    let Some((nca, id)) = rest.split_once('-') else {
        return false;
    };
    let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    country.len() == 2
        && letters(country)
        && (2..=8).contains(&nca.len())
        && letters(nca)
        && !id.is_empty()
        && id.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn tpp_name(certificate: &X509Certificate<'_>) -> String {
    let subject = certificate.subject();
    let name = subject
        .iter_organization()
        .chain(subject.iter_common_name())
        .find_map(|attribute| attribute.as_str().ok());
    name.unwrap_or_default().to_owned()
}

fn judge_validity(members: &[Validity], now: Timestamp) -> Result<(), CertificateFault> {
    match members.iter().find(|validity| !validity.contains(now)) {
        Some(validity) if now < validity.not_before => {
            Err(CertificateFault::NotYetValid(validity.not_before))
        }
        Some(validity) => Err(CertificateFault::Expired(validity.not_after)),
        None => Ok(()),
    }
}

fn without_leading_zeros(mut bytes: &[u8]) -> &[u8] {
    while let [0, rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities() {
        for good in [
            "PSDNO-FSA-123456",
            "PSDFI-FINFSA-29884997",
            "PSDDE-BAFIN-A B",
        ] {
            assert!(is_psd2_identifier(good), "{good}");
        }
        for bad in [
            "PSDNO-FSA",
            "PSDNO-FSA-",
            "PSDNOR-FSA-1",
            "NTRNO-123456",
            "PSD12-FSA-1",
            "PSDNO-F-1",
            "PSDNO-FIN_FSA-1",
            "",
            "PSDNO-FSA-\u{e6}",
        ] {
            assert!(!is_psd2_identifier(bad), "{bad}");
        }
    }

    #[test]
    fn roles() {
        let roles = Roles::default().with(3).with(2).with(9);
        assert!(roles.account_information() && roles.payment_initiation());
        assert_eq!(roles.to_string(), "PSP_PI,PSP_AI");
        assert!(Roles::default().with(0).with(5).is_empty());
    }
}
