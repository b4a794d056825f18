//! The algorithms that a list's signature may have: a closed list (ETSI TS 119 312), by their identifiers (RFC 9231).

use super::shape::{DS, children, none_in, only_child};
use crate::{
    certificate::{Certificate, decode_base64},
    fault::Refusal,
    tree::Element,
};
use aws_lc_rs::{digest, signature as verification};
use x509_parser::{oid_registry as oid, prelude::X509Certificate};

/// The shortest RSA key, in bits (ETSI TS 119 312: 1 900). Norway signed by a key of 2 032 bits in 2019.
const MIN_RSA_BITS: usize = 1900;

const MORE: &str = "http://www.w3.org/2001/04/xmldsig-more#";
const MORE_2007: &str = "http://www.w3.org/2007/05/xmldsig-more#";

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// The function that a DigestMethod names.
    ///
    /// # Errors
    /// It is no SHA-2 function, or has parameters.
    pub(super) fn of(method: Element<'_>) -> Result<Self, Refusal> {
        none_in(method)?;
        match method.attribute(None, "Algorithm").unwrap_or_default() {
            "http://www.w3.org/2001/04/xmlenc#sha256" => Ok(Self::Sha256),
            "http://www.w3.org/2001/04/xmldsig-more#sha384" => Ok(Self::Sha384),
            "http://www.w3.org/2001/04/xmlenc#sha512" => Ok(Self::Sha512),
            other => Err(method.refuse(format_args!(
                "the digest {other:?}: only SHA-256, SHA-384 and SHA-512 are accepted"
            ))),
        }
    }

    /// The implementation.
    pub(super) const fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }
}

/// The digest of a certificate by the function that a CertDigest names. SHA-1 is accepted here, since lists up to 2023 have it: the
/// certificate is compared byte for byte with a pinned one, so that this digest adds no trust.
///
/// # Errors
/// It names another function.
pub(super) fn certificate_digest(
    method: Element<'_>,
    certificate: &Certificate,
) -> Result<digest::Digest, Refusal> {
    let sha1 = "http://www.w3.org/2000/09/xmldsig#sha1";
    let algorithm = match method.attribute(None, "Algorithm") {
        Some(name) if name == sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        _ => Hash::of(method)?.algorithm(),
    };
    Ok(digest::digest(algorithm, certificate.der()))
}

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// RSASSA-PKCS1-v1_5.
    Rsa(Hash),
    /// RSASSA-PSS: MGF1 with the same hash, and a salt as long as the hash.
    RsaPss(Hash),
    /// ECDSA; the certificate's key says the curve.
    Ecdsa(Hash),
}

impl Algorithm {
    /// The algorithm that a SignatureMethod names.
    ///
    /// # Errors
    /// It is not in the list, or its parameters are not.
    pub(super) fn of(method: Element<'_>) -> Result<Self, Refusal> {
        let identifier = method.attribute(None, "Algorithm").unwrap_or_default();
        if identifier.strip_prefix(MORE_2007) == Some("rsa-pss") {
            return pss_parameters(method).map(Self::RsaPss);
        }
        none_in(method)?;
        let found = match (
            identifier.strip_prefix(MORE),
            identifier.strip_prefix(MORE_2007),
        ) {
            (Some("rsa-sha256"), _) => Some(Self::Rsa(Hash::Sha256)),
            (Some("rsa-sha384"), _) => Some(Self::Rsa(Hash::Sha384)),
            (Some("rsa-sha512"), _) => Some(Self::Rsa(Hash::Sha512)),
            (Some("ecdsa-sha256"), _) => Some(Self::Ecdsa(Hash::Sha256)),
            (Some("ecdsa-sha384"), _) => Some(Self::Ecdsa(Hash::Sha384)),
            (Some("ecdsa-sha512"), _) => Some(Self::Ecdsa(Hash::Sha512)),
            (_, Some("sha256-rsa-MGF1")) => Some(Self::RsaPss(Hash::Sha256)),
            (_, Some("sha384-rsa-MGF1")) => Some(Self::RsaPss(Hash::Sha384)),
            (_, Some("sha512-rsa-MGF1")) => Some(Self::RsaPss(Hash::Sha512)),
            _ => None,
        };
        found.ok_or_else(|| {
            method.refuse(format_args!(
                "the signature algorithm {identifier:?}: only RSA (PKCS#1, PSS) and ECDSA with SHA-256, SHA-384 or SHA-512 are accepted"
            ))
        })
    }

    /// Verifies a signature by the key of a certificate.
    ///
    /// # Errors
    /// The key is of another algorithm or too weak, or the signature does not verify.
    pub(super) fn verify(
        self,
        signer: &Certificate,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Refusal> {
        let certificate = signer.parse()?;
        let key = certificate.public_key();
        let bytes = key.subject_public_key.data.as_ref();
        let verified = match self {
            Self::Rsa(hash) if is_rsa(&certificate) => {
                let algorithm = rsa(hash, rsa_bits(&certificate)?);
                verify_with(algorithm, bytes, message, signature)
            }
            Self::RsaPss(hash) if is_rsa(&certificate) || is_pss(&certificate, hash) => {
                verify_with(rsa_pss(hash), bytes, message, signature)
            }
            Self::Ecdsa(hash) => {
                let (algorithm, width) = ecdsa(&certificate, hash)?;
                let der = encode_ecdsa(signature, width).ok_or_else(|| {
                    Refusal::new("an ECDSA signature of another length than its curve's")
                })?;
                verify_with(algorithm, bytes, message, &der)
            }
            Self::Rsa(_) | Self::RsaPss(_) => {
                return Err(Refusal::new(
                    "the signature algorithm is RSA, and the signer's key is not",
                ));
            }
        };
        verified.then_some(()).ok_or_else(|| {
            Refusal::new("the signature does not verify by the signer's key: SignedInfo or SignatureValue was altered")
        })
    }
}

/// The hash of RSASSA-PSS with its parameters (RFC 9231, 2.3.9). What may be left out has the standard's default.
fn pss_parameters(method: Element<'_>) -> Result<Hash, Refusal> {
    let Some(parameters) = only_child(method)? else {
        return Ok(Hash::Sha256);
    };
    if !parameters.is(MORE_2007, "RSAPSSParams") {
        return Err(parameters.refuse("another parameter of RSASSA-PSS than RSAPSSParams"));
    }
    let mut hash = Hash::Sha256;
    let mut mask = None;
    let mut salt = None;
    for part in children(parameters, MORE_2007_OR_DS)? {
        match part.local() {
            "DigestMethod" => hash = Hash::of(part)?,
            "MaskGenerationFunction" => mask = Some(mask_hash(part)?),
            "SaltLength" => salt = Some(part.text().trim().to_owned()),
            "TrailerField" if part.text().trim() == "1" => {}
            other => return Err(part.refuse(format_args!("RSASSA-PSS with this {other}"))),
        }
    }
    if mask.unwrap_or(Hash::Sha256) != hash {
        return Err(parameters.refuse("RSASSA-PSS whose mask has another hash than the message"));
    }
    let expected = hash.algorithm().output_len().to_string();
    match salt {
        Some(length) if length != expected => Err(parameters.refuse(format_args!(
            "RSASSA-PSS with a salt of {length:?} bytes, not {expected}"
        ))),
        _ => Ok(hash),
    }
}

const MORE_2007_OR_DS: &[&str] = &[MORE_2007, DS];

/// The hash of a mask generation function, which must be MGF1.
fn mask_hash(function: Element<'_>) -> Result<Hash, Refusal> {
    let identifier = function.attribute(None, "Algorithm").unwrap_or_default();
    if identifier.strip_prefix(MORE_2007) != Some("MGF1") {
        return Err(function.refuse("another mask generation function than MGF1"));
    }
    match only_child(function)? {
        Some(method) if method.is(DS, "DigestMethod") => Hash::of(method),
        Some(other) => Err(other.refuse("another parameter of MGF1 than DigestMethod")),
        None => Ok(Hash::Sha256),
    }
}

fn verify_with(
    algorithm: &'static dyn verification::VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> bool {
    verification::UnparsedPublicKey::new(algorithm, key)
        .verify(message, signature)
        .is_ok()
}

/// RSASSA-PKCS1-v1_5 for a key of so many bits. The library names its parameters for short keys "legacy", and has none with SHA-384.
const fn rsa(hash: Hash, bits: usize) -> &'static verification::RsaParameters {
    match hash {
        Hash::Sha256 if bits < 2048 => {
            &verification::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY
        }
        Hash::Sha512 if bits < 2048 => {
            &verification::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY
        }
        Hash::Sha256 => &verification::RSA_PKCS1_2048_8192_SHA256,
        Hash::Sha384 => &verification::RSA_PKCS1_2048_8192_SHA384,
        Hash::Sha512 => &verification::RSA_PKCS1_2048_8192_SHA512,
    }
}

/// The bits of the modulus of an RSA key.
fn rsa_bits(certificate: &X509Certificate<'_>) -> Result<usize, Refusal> {
    let bits = match certificate.public_key().parsed() {
        Ok(x509_parser::public_key::PublicKey::RSA(rsa)) => {
            let digits = rsa.modulus.iter().skip_while(|byte| **byte == 0);
            8 * digits.count()
        }
        _ => 0,
    };
    match bits {
        MIN_RSA_BITS.. => Ok(bits),
        _ => Err(Refusal::new(format_args!(
            "the signer's RSA key has {bits} bits, fewer than {MIN_RSA_BITS} (ETSI TS 119 312)"
        ))),
    }
}

const fn rsa_pss(hash: Hash) -> &'static verification::RsaParameters {
    match hash {
        Hash::Sha256 => &verification::RSA_PSS_2048_8192_SHA256,
        Hash::Sha384 => &verification::RSA_PSS_2048_8192_SHA384,
        Hash::Sha512 => &verification::RSA_PSS_2048_8192_SHA512,
    }
}

/// Whether the key is an RSA key for any use.
fn is_rsa(certificate: &X509Certificate<'_>) -> bool {
    certificate.public_key().algorithm.algorithm == oid::OID_PKCS1_RSAENCRYPTION
}

/// Whether the key is an RSA key for RSASSA-PSS only, and for this hash (RFC 4055, 3.1).
fn is_pss(certificate: &X509Certificate<'_>, hash: Hash) -> bool {
    let algorithm = &certificate.public_key().algorithm;
    if algorithm.algorithm != oid::OID_PKCS1_RSASSAPSS {
        return false;
    }
    let Some(parameters) = &algorithm.parameters else {
        return true;
    };
    let expected = match hash {
        Hash::Sha256 => oid::OID_NIST_HASH_SHA256,
        Hash::Sha384 => oid::OID_NIST_HASH_SHA384,
        Hash::Sha512 => oid::OID_NIST_HASH_SHA512,
    };
    x509_parser::signature_algorithm::RsaSsaPssParams::try_from(parameters)
        .is_ok_and(|parameters| *parameters.hash_algorithm_oid() == expected)
}

/// The algorithm for the curve of the key, and the bytes of each half of a signature.
fn ecdsa(
    certificate: &X509Certificate<'_>,
    hash: Hash,
) -> Result<(&'static verification::EcdsaVerificationAlgorithm, usize), Refusal> {
    let algorithm = &certificate.public_key().algorithm;
    let is_ec = algorithm.algorithm == oid::OID_KEY_TYPE_EC_PUBLIC_KEY;
    let parameters = algorithm.parameters.as_ref().filter(|_| is_ec);
    let curve = parameters.and_then(|parameters| parameters.as_oid().ok());
    let curve = curve.ok_or_else(|| {
        Refusal::new(
            "the signature algorithm is ECDSA, and the signer's key is not of a named curve",
        )
    })?;
    let p521 = oid::asn1_rs::oid!(1.3.132.0.35);
    Ok(match hash {
        Hash::Sha256 if curve == oid::OID_EC_P256 => (&verification::ECDSA_P256_SHA256_ASN1, 32),
        Hash::Sha384 if curve == oid::OID_EC_P256 => (&verification::ECDSA_P256_SHA384_ASN1, 32),
        Hash::Sha512 if curve == oid::OID_EC_P256 => (&verification::ECDSA_P256_SHA512_ASN1, 32),
        Hash::Sha256 if curve == oid::OID_NIST_EC_P384 => {
            (&verification::ECDSA_P384_SHA256_ASN1, 48)
        }
        Hash::Sha384 if curve == oid::OID_NIST_EC_P384 => {
            (&verification::ECDSA_P384_SHA384_ASN1, 48)
        }
        Hash::Sha512 if curve == oid::OID_NIST_EC_P384 => {
            (&verification::ECDSA_P384_SHA512_ASN1, 48)
        }
        Hash::Sha256 if curve == p521 => (&verification::ECDSA_P521_SHA256_ASN1, 66),
        Hash::Sha384 if curve == p521 => (&verification::ECDSA_P521_SHA384_ASN1, 66),
        Hash::Sha512 if curve == p521 => (&verification::ECDSA_P521_SHA512_ASN1, 66),
        _ => {
            return Err(Refusal::new(format_args!(
                "the signer's key is of the curve {curve}: only P-256, P-384 and P-521 are accepted"
            )));
        }
    })
}

/// A signature of two halves of fixed width (RFC 9231, 2.3.6) as the DER of ECDSA-Sig-Value, which the library takes for every pair of
/// curve and hash. `None` if it has another length.
fn encode_ecdsa(signature: &[u8], width: usize) -> Option<Vec<u8>> {
    let (r, s) = signature.split_at_checked(width)?;
    if s.len() != width {
        return None;
    }
    let mut body = Vec::with_capacity(2 * width + 6);
    for half in [r, s] {
        let zeros = half.iter().take_while(|byte| **byte == 0).count();
        let digits = half.get(zeros.min(width - 1)..)?;
        let sign = digits.first().is_some_and(|byte| *byte > 0x7f);
        body.extend([2, u8::try_from(digits.len() + usize::from(sign)).ok()?]);
        body.extend(sign.then_some(0));
        body.extend(digits);
    }
    let length = u8::try_from(body.len()).ok()?;
    let mut der = vec![0x30];
    der.extend((length > 0x7f).then_some(0x81));
    der.push(length);
    der.extend(body);
    Some(der)
}

/// Whether a KeyValue has the key of a certificate. The key is never taken from there; one that differs is refused all the same.
///
/// # Errors
/// It has another key, or one that is neither RSA nor of a named curve.
pub(super) fn check_key_value(value: Element<'_>, signer: &Certificate) -> Result<(), Refusal> {
    let certificate = signer.parse()?;
    let key = certificate.public_key();
    let inner = only_child(value)?.ok_or_else(|| value.refuse("an empty KeyValue"))?;
    let is_same = match (inner.local(), key.parsed()) {
        ("RSAKeyValue", Ok(x509_parser::public_key::PublicKey::RSA(rsa))) => {
            let [modulus, exponent] =
                super::shape::exactly(inner, [(DS, "Modulus"), (DS, "Exponent")])?;
            same_number(modulus, rsa.modulus)? && same_number(exponent, rsa.exponent)?
        }
        ("ECKeyValue", Ok(x509_parser::public_key::PublicKey::EC(point))) => {
            let stated = inner.required("http://www.w3.org/2009/xmldsig11#", "PublicKey")?;
            decode_base64(&stated.text())? == point.data()
        }
        _ => false,
    };
    is_same
        .then_some(())
        .ok_or_else(|| value.refuse("KeyValue has another key than the signer's certificate"))
}

/// Whether an element has a number's bytes, leading zeros apart.
fn same_number(stated: Element<'_>, number: &[u8]) -> Result<bool, Refusal> {
    let stated = decode_base64(&stated.text())?;
    let strip = |bytes: &[u8]| -> Vec<u8> {
        bytes
            .iter()
            .copied()
            .skip_while(|byte| *byte == 0)
            .collect()
    };
    Ok(strip(&stated) == strip(number))
}
