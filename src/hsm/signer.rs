//! A key in an HSM, as rustls asks for it.

use crate::{
    algorithm::Verified,
    counts::count,
    fault::{LoadFault, Part, Purpose},
    key::Key,
    settings::Pkcs11Settings,
};
use openssl::x509::X509;
use portvakt_base::clock::Stopwatch;
use rustls::{
    Error, SignatureAlgorithm, SignatureScheme,
    pki_types::SubjectPublicKeyInfoDer,
    sign::{Signer, SigningKey},
};
use std::sync::Arc;

/// The private key of this certificate, and the number of its use, from 1: equal settings of a key in use have equal numbers. The token has
/// signed, and the signature verifies by the certificate.
///
/// # Errors
/// What is to be changed: module, token, PIN or label.
pub fn open(
    settings: &Pkcs11Settings,
    certificate: &X509,
    purpose: Purpose,
) -> Result<(Arc<dyn SigningKey>, u64), LoadFault> {
    let unreadable = |_| {
        let text = "the certificate has no public key that can be read";
        LoadFault::new(Part::Label, text)
    };
    let public = certificate.public_key().map_err(unreadable)?;
    let der = public.public_key_to_der().map_err(unreadable)?;
    let key = Key::open(settings, &public, purpose)?;
    let id = key.id();
    Ok((Arc::new(HsmKey { key, der, purpose }), id))
}

#[derive(Debug)]
struct HsmKey {
    key: Arc<Key>,
    /// The public key (SubjectPublicKeyInfo).
    der: Vec<u8>,
    purpose: Purpose,
}

impl SigningKey for HsmKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let mut schemes = self.key.schemes().iter().copied();
        let scheme = schemes.find(|scheme| offered.contains(scheme))?;
        Some(Box::new(HsmSigner {
            key: Arc::clone(&self.key),
            scheme,
            purpose: self.purpose,
        }))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(SubjectPublicKeyInfoDer::from(self.der.as_slice()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.kind().algorithm()
    }
}

#[derive(Debug)]
struct HsmSigner {
    key: Arc<Key>,
    scheme: SignatureScheme,
    purpose: Purpose,
}

impl Signer for HsmSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let since = Stopwatch::start();
        let signed = self.key.sign(self.scheme, message);
        count(
            self.purpose,
            signed.as_ref().err().copied(),
            since.elapsed(),
        );
        let signed = signed.map(Verified::into_bytes);
        signed.map_err(|cause| Error::General(format!("the HSM did not sign: {}", cause.name())))
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}
