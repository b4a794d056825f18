//! Digest and Signature of an answer (SIG-12), by the rules for signing requests (§Request signing): keyId
//! names the certificate, algorithm rsa-sha256, headers "date digest x-request-id" as far as the answer has them.

use crate::{
    interface::headers::{DATE, DIGEST, SIGNATURE, TPP_SIGNATURE_CERTIFICATE, X_REQUEST_ID},
    trust::judgement,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::{
    SignatureScheme,
    sign::{CertifiedKey, Signer},
};
use sha2::{Digest, Sha256};
use std::{fmt::Write, sync::Arc};
use tokio::sync::Semaphore;

/// The settings for signing answers.
#[derive(Clone, Debug)]
pub struct AnswerSigning {
    /// Certificate and key.
    pub signer: Arc<AnswerSigner>,
    /// The longest body, in bytes, that is buffered and signed; an answer with a longer body is not signed. Default 64 KiB.
    pub body_limit: usize,
    /// A place for each answer that is signed at the same time: half as many as the machine has cores, or as many as a key in an HSM has
    /// sessions.
    pub places: Arc<Semaphore>,
}

/// An RSA key and its certificate, which sign answers.
#[derive(Debug)]
pub struct AnswerSigner {
    certificate: HeaderValue,
    key_id: String,
    key: Box<dyn Signer>,
}

/// The key cannot sign answers, or its certificate cannot be named in a keyId.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AnswerKeyFault(&'static str);

impl AnswerSigner {
    /// A signer with the key and the certificate of `identity`.
    ///
    /// # Errors
    /// The key is not RSA as requests need it, or the certificate's issuer cannot be written.
    pub fn new(identity: &CertifiedKey) -> Result<Self, AnswerKeyFault> {
        let key = identity
            .key
            .choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]);
        let key = key.ok_or(AnswerKeyFault(
            "answers are signed with rsa-sha256, and this is no RSA key (SIG-5)",
        ))?;
        let certificate = identity.cert.first().map(|der| der.as_ref());
        let read = certificate.and_then(|der| judgement::read(der).ok());
        if read.is_none_or(|(read, _)| judgement::signing_key(&read).is_err()) {
            return Err(AnswerKeyFault(
                "answers are signed with RSA of 2048 to 4096 bits and an odd exponent from 65537 to 2^32, as requests are (SIG-5)",
            ));
        }
        let (certificate, key_id) = certificate
            .and_then(|der| {
                Some((
                    HeaderValue::try_from(BASE64_STANDARD.encode(der)).ok()?,
                    key_id(der)?,
                ))
            })
            .ok_or(AnswerKeyFault(
                "its certificate's issuer cannot be written in a keyId (SIG-4)",
            ))?;
        Ok(Self {
            certificate,
            key_id,
            key,
        })
    }

    /// Digest, Signature and TPP-Signature-Certificate for an answer with these headers and this body. `None` if the
    /// signature cannot be computed.
    pub fn sign(&self, headers: &HeaderMap, body: &[u8]) -> Option<[(HeaderName, HeaderValue); 3]> {
        let hash = BASE64_STANDARD.encode(Sha256::digest(body));
        let digest = HeaderValue::try_from(format!("SHA-256={hash}")).ok()?;
        let mut names = String::new();
        let mut string = Vec::new();
        for name in [&DATE.name, &DIGEST.name, &X_REQUEST_ID.name] {
            let value = if *name == DIGEST.name {
                Some(&digest)
            } else {
                headers.get(name)
            };
            let Some(value) = value else { continue };
            if !names.is_empty() {
                names.push(' ');
                string.push(b'\n');
            }
            names.push_str(name.as_str());
            string.extend_from_slice(name.as_str().as_bytes());
            string.extend_from_slice(b": ");
            string.extend_from_slice(crate::interface::headers::trim(value.as_bytes()));
        }
        let signed = BASE64_STANDARD.encode(self.key.sign(&string).ok()?);
        let signature = format!(
            "keyId=\"{}\",algorithm=\"rsa-sha256\",headers=\"{names}\",signature=\"{signed}\"",
            self.key_id
        );
        Some([
            (DIGEST.name.clone(), digest),
            (
                SIGNATURE.name.clone(),
                HeaderValue::try_from(signature).ok()?,
            ),
            (
                TPP_SIGNATURE_CERTIFICATE.name.clone(),
                self.certificate.clone(),
            ),
        ])
    }
}

/// `SN=…,CA=…` (SIG-3, SIG-4). `None` if it is not a valid header value.
fn key_id(der: &[u8]) -> Option<String> {
    let (certificate, _) = judgement::read(der).ok()?;
    let issuer = judgement::issuer(&certificate).ok()?;
    let serial = judgement::serial_hex(certificate.raw_serial());
    let key_id = format!("SN={serial},CA={}", in_ascii(&issuer.to_string()));
    HeaderValue::try_from(&key_id).ok().map(|_| key_id)
}

/// Escapes each non-ASCII byte of the UTF-8 text as RFC 2253 does, because some HTTP clients damage non-ASCII header values.
fn in_ascii(name: &str) -> String {
    let mut written = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii() {
            written.push(char::from(byte));
        } else {
            let _ = write!(written, "\\{byte:02X}");
        }
    }
    written
}
