//! Algorithms: the mechanism of PKCS#11 and the bytes that a token signs, and the form of the signature in TLS.
//!
//! Hashes are computed here, so that a call carries at most 83 bytes, and every token that signs RSA or ECDSA at all is enough.

use cryptoki::{
    mechanism::{
        Mechanism, MechanismType,
        rsa::{PkcsMgfType, PkcsPssParams},
    },
    types::Ulong,
};
use openssl::{
    bn::BigNum,
    ecdsa::EcdsaSig,
    hash::MessageDigest,
    pkey::{PKeyRef, Public},
    rsa::Padding,
    sign::{RsaPssSaltlen, Verifier},
};
use rustls::{SignatureAlgorithm, SignatureScheme};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// The schemes of an RSA key, the preferred first: every token knows SHA-256, and every client offers it.
pub(crate) const RSA: &[SignatureScheme] = &[
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
];

/// The scheme of a key on P-256.
pub(crate) const P256: &[SignatureScheme] = &[SignatureScheme::ECDSA_NISTP256_SHA256];

/// The length of R, and of S, on P-256 in bytes.
const COORDINATE: usize = 32;

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rsa,
    P256,
}

impl Kind {
    pub(crate) const fn schemes(self) -> &'static [SignatureScheme] {
        match self {
            Self::Rsa => RSA,
            Self::P256 => P256,
        }
    }

    pub(crate) const fn algorithm(self) -> SignatureAlgorithm {
        match self {
            Self::Rsa => SignatureAlgorithm::RSA,
            Self::P256 => SignatureAlgorithm::ECDSA,
        }
    }
}

/// What a token signs.
#[derive(Debug)]
pub(crate) struct Call {
    scheme: SignatureScheme,
    message: Vec<u8>,
    bytes: Vec<u8>,
}

/// A signature that verified by the certificate: only [`Call::verified`] makes one, and nothing else is given out.
#[derive(Debug)]
pub(crate) struct Verified(Vec<u8>);

impl Verified {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The mechanism of a scheme.
pub(crate) const fn mechanism_of(scheme: SignatureScheme) -> MechanismType {
    match padding(scheme) {
        Some(Form::Pkcs1) => MechanismType::RSA_PKCS,
        Some(Form::Pss) => MechanismType::RSA_PKCS_PSS,
        None => MechanismType::ECDSA,
    }
}

/// The padding of RSA.
#[derive(Clone, Copy)]
enum Form {
    Pkcs1,
    Pss,
}

/// `None` for ECDSA.
const fn padding(scheme: SignatureScheme) -> Option<Form> {
    match scheme {
        SignatureScheme::RSA_PKCS1_SHA256
        | SignatureScheme::RSA_PKCS1_SHA384
        | SignatureScheme::RSA_PKCS1_SHA512 => Some(Form::Pkcs1),
        SignatureScheme::RSA_PSS_SHA256
        | SignatureScheme::RSA_PSS_SHA384
        | SignatureScheme::RSA_PSS_SHA512 => Some(Form::Pss),
        _ => None,
    }
}

/// The hash function of a scheme.
#[derive(Clone, Copy)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    const fn of(scheme: SignatureScheme) -> Self {
        match scheme {
            SignatureScheme::RSA_PKCS1_SHA384 | SignatureScheme::RSA_PSS_SHA384 => Self::Sha384,
            SignatureScheme::RSA_PKCS1_SHA512 | SignatureScheme::RSA_PSS_SHA512 => Self::Sha512,
            _ => Self::Sha256,
        }
    }

    fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha384 => Sha384::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }

    /// The beginning of the `DigestInfo` (RFC 8017, 9.2, note 1): last byte of the OID, and the three lengths.
    const fn digest_info(self) -> [u8; 19] {
        let (whole, oid, length) = match self {
            Self::Sha256 => (0x31, 1, 0x20),
            Self::Sha384 => (0x41, 2, 0x30),
            Self::Sha512 => (0x51, 3, 0x40),
        };
        [
            0x30, whole, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            oid, 0x05, 0x00, 0x04, length,
        ]
    }

    fn pss(self) -> PkcsPssParams {
        let (hash_alg, mgf, length) = match self {
            Self::Sha256 => (MechanismType::SHA256, PkcsMgfType::MGF1_SHA256, 32_u64),
            Self::Sha384 => (MechanismType::SHA384, PkcsMgfType::MGF1_SHA384, 48),
            Self::Sha512 => (MechanismType::SHA512, PkcsMgfType::MGF1_SHA512, 64),
        };
        PkcsPssParams {
            hash_alg,
            mgf,
            s_len: Ulong::from(length),
        }
    }

    fn openssl(self) -> MessageDigest {
        match self {
            Self::Sha256 => MessageDigest::sha256(),
            Self::Sha384 => MessageDigest::sha384(),
            Self::Sha512 => MessageDigest::sha512(),
        }
    }
}

impl Call {
    /// The call that signs this message.
    pub(crate) fn new(scheme: SignatureScheme, message: &[u8]) -> Self {
        let hash = Hash::of(scheme);
        let digest = hash.digest(message);
        let bytes = match padding(scheme) {
            Some(Form::Pkcs1) => [hash.digest_info().as_slice(), &digest].concat(),
            Some(Form::Pss) | None => digest,
        };
        Self {
            scheme,
            message: message.to_vec(),
            bytes,
        }
    }

    pub(crate) fn mechanism(&self) -> Mechanism<'static> {
        match padding(self.scheme) {
            Some(Form::Pkcs1) => Mechanism::RsaPkcs,
            Some(Form::Pss) => Mechanism::RsaPkcsPss(Hash::of(self.scheme).pss()),
            None => Mechanism::Ecdsa,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The signature that the token returned, as TLS has it. `None` if it is not that of the message by the private key of this public one.
    pub(crate) fn verified(&self, raw: Vec<u8>, key: &PKeyRef<Public>) -> Option<Verified> {
        let signature = self.signature(raw)?;
        verifies(self.scheme, key, &self.message, &signature).then_some(Verified(signature))
    }

    /// The signature as TLS has it: of ECDSA in DER. `None` if the token returned no signature.
    fn signature(&self, raw: Vec<u8>) -> Option<Vec<u8>> {
        if padding(self.scheme).is_some() {
            return Some(raw);
        }
        let (r, s) = raw.split_at_checked(COORDINATE)?;
        if s.len() != COORDINATE {
            return None;
        }
        let (r, s) = (BigNum::from_slice(r).ok()?, BigNum::from_slice(s).ok()?);
        EcdsaSig::from_private_components(r, s).ok()?.to_der().ok()
    }
}

/// Whether the signature is that of the message by the private key of this public one.
fn verifies(
    scheme: SignatureScheme,
    key: &PKeyRef<Public>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let hash = Hash::of(scheme);
    let verify = || {
        let mut verifier = Verifier::new(hash.openssl(), key)?;
        match padding(scheme) {
            Some(Form::Pss) => {
                verifier.set_rsa_padding(Padding::PKCS1_PSS)?;
                verifier.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
                verifier.set_rsa_mgf1_md(hash.openssl())?;
            }
            Some(Form::Pkcs1) => verifier.set_rsa_padding(Padding::PKCS1)?,
            None => {}
        }
        verifier.verify_oneshot(signature, message)
    };
    verify().is_ok_and(|verified| verified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openssl::{
        ec::{EcGroup, EcKey},
        nid::Nid,
        pkey::PKey,
        rsa::Rsa,
    };

    #[test]
    fn a_digest_info_with_a_bare_rsa_operation_is_pkcs1() {
        let rsa = Rsa::generate(2048).unwrap();
        let public = rsa.public_key_to_der().unwrap();
        let public = PKey::public_key_from_der(&public).unwrap();
        for scheme in &RSA[3..] {
            let call = Call::new(*scheme, b"message");
            let mut raw = vec![0; 256];
            let length = rsa.private_encrypt(call.bytes(), &mut raw, Padding::PKCS1);
            assert_eq!(length.unwrap(), 256);
            assert!(call.verified(raw.clone(), &public).is_some());
            assert!(
                Call::new(*scheme, b"another")
                    .verified(raw.clone(), &public)
                    .is_none()
            );
            raw[100] ^= 1;
            assert!(call.verified(raw, &public).is_none());
        }
    }

    #[test]
    fn r_and_s_become_der() {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        let key = EcKey::generate(&group).unwrap();
        let public = PKey::from_ec_key(EcKey::from_public_key(&group, key.public_key()).unwrap());
        let call = Call::new(P256[0], b"message");
        let signed = EcdsaSig::sign(call.bytes(), &key).unwrap();
        let [r, s] = [signed.r(), signed.s()].map(|part| part.to_vec_padded(32).unwrap());
        let (public, mut raw) = (public.unwrap(), [r, s].concat());
        assert!(call.verified(raw.clone(), &public).is_some());
        raw[40] ^= 1;
        for wrong in [raw, vec![0; 64], vec![255; 64]] {
            assert!(call.verified(wrong, &public).is_none());
        }
        for length in [0, 31, 63, 65, 96] {
            assert!(call.signature(vec![1; length]).is_none());
        }
    }
}
