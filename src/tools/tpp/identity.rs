//! The signer: a TPP's certificate and its private key.
//!
//! Invariant: certificate and key are a pair, and `Debug` never shows the key.
//! Deliberately not checked: the validity of the certificate. A faulty one can be sent to the gateway too.

use super::TppFault;
use crate::trust::{judgement, name::Name};
use base64::prelude::{BASE64_STANDARD, Engine};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{Id, PKey, Private};
use openssl::sign::Signer;
use std::fmt;
use std::path::Path;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A TPP that can sign: certificate, key, and how the certificate is named in a keyId.
pub struct TppIdentity {
    certificate: Vec<u8>,
    key_id: String,
    key: PKey<Private>,
}

impl TppIdentity {
    /// Reads a certificate and a private key from PEM files.
    pub fn from_pem_files(certificate: &Path, key: &Path) -> Result<Self, TppFault> {
        Self::from_pem(&read_text(certificate)?, &read_text(key)?)
    }

    /// Reads the first certificate and the private key (RSA; PKCS#8 or PKCS#1, not encrypted) of two PEM texts.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, TppFault> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes())
            .map_err(|_| TppFault::Certificate)?;
        let (_, parsed) =
            X509Certificate::from_der(&pem.contents).map_err(|_| TppFault::Certificate)?;
        // Without a passphrase: OpenSSL would ask for one at the terminal.
        let key = PKey::private_key_from_pem_callback(key.as_bytes(), |_| Ok(0));
        let key = key.ok().filter(|key| key.id() == Id::RSA);
        let key = key.ok_or(TppFault::Key)?;
        let public = PKey::public_key_from_der(parsed.public_key().raw);
        if public.is_ok_and(|public| public.id() == Id::RSA && !public.public_eq(&key)) {
            return Err(TppFault::KeyMismatch);
        }
        let issuer = Name::from_der(parsed.issuer().as_raw()).map_err(|_| TppFault::Issuer)?;
        Ok(Self {
            key_id: format!(
                "SN={},CA={}",
                judgement::serial_hex(parsed.raw_serial()),
                in_ascii(&issuer.to_string())
            ),
            certificate: pem.contents.clone(),
            key,
        })
    }

    /// The keyId of the certificate, `SN=<serial in upper-case hexadecimal>,CA=<issuer per RFC 2253>` (SIG-3, SIG-4).
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The value of TPP-Signature-Certificate: base64 of the DER certificate (CRT-1).
    pub fn certificate_header(&self) -> String {
        BASE64_STANDARD.encode(&self.certificate)
    }

    /// The base64 of the PKCS#1 v1.5 RSA-SHA256 signature over `signing_string` (SIG-9).
    pub fn signature(&self, signing_string: &str) -> Result<String, TppFault> {
        let signed = || -> Result<Vec<u8>, ErrorStack> {
            let mut signer = Signer::new(MessageDigest::sha256(), &self.key)?;
            signer.sign_oneshot_to_vec(signing_string.as_bytes())
        };
        let signature = signed().map_err(|_| TppFault::Signing)?;
        Ok(BASE64_STANDARD.encode(signature))
    }
}

impl fmt::Debug for TppIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TppIdentity")
            .field("key_id", &self.key_id)
            .field("key", &"***")
            .finish_non_exhaustive()
    }
}

/// Escapes characters outside ASCII as their UTF-8 bytes (RFC 2253): every HTTP client transmits an ASCII header unchanged.
pub(in crate::tools) fn in_ascii(name: &str) -> String {
    let escaped = |byte: u8| {
        if byte.is_ascii() {
            char::from(byte).to_string()
        } else {
            format!("\\{byte:02X}")
        }
    };
    name.bytes().map(escaped).collect()
}

fn read_text(path: &Path) -> Result<String, TppFault> {
    std::fs::read_to_string(path).map_err(|source| TppFault::File {
        path: path.to_owned(),
        source,
    })
}
