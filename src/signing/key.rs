//! The key that signs assertions: an EC key on P-256, PKCS#8 in PEM, in a file that only its owner can read.
//!
//! Invariants: a file that others than its owner can read is refused, and a file that exists is never overwritten.
//! `Debug` shows no key.

use crate::private_file;
use aws_lc_rs::{
    digest,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use serde_json::{Value, json};
use std::{fmt, path::Path};

/// The maximum size of a key file in bytes: a P-256 key has about 250.
const MAX_FILE: usize = 4_096;

/// The length of one coordinate of a point on P-256, in bytes.
const COORDINATE: usize = 32;

/// A key that signs with ES256 (RFC 7518, section 3.4).
pub struct AssertionKey {
    pair: EcdsaKeyPair,
    x: String,
    y: String,
    id: String,
}

/// The reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AssertionKeyFault {
    /// The file cannot be read or created.
    #[error(transparent)]
    File(#[from] private_file::FileFault),
    /// The file does not hold such a key. The message does not repeat its content.
    #[error(
        "it holds no EC key on P-256 in PEM, without a passphrase (PKCS#8, -----BEGIN PRIVATE KEY-----); \"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256\" makes one"
    )]
    NotAKey,
    /// No random numbers are available.
    #[error("no random numbers can be had")]
    Random,
}

impl AssertionKey {
    /// Reads a key file.
    ///
    /// # Errors
    /// The reason why the file cannot be used.
    pub fn read(path: &Path) -> Result<Self, AssertionKeyFault> {
        Self::from_pem(&private_file::read(path, MAX_FILE)?)
    }

    /// Reads a key file, or creates the file and its folder if there is none: mode 0600, durable when this function returns.
    /// If two processes do this at once, one creates the file and both read it.
    ///
    /// # Errors
    /// The reason why the file cannot be used or created.
    pub fn read_or_make(path: &Path) -> Result<Self, AssertionKeyFault> {
        Self::from_pem(&private_file::read_or_make(path, MAX_FILE, new_pem)?)
    }

    /// A new key that no file holds: another gateway's, to a core that is tested.
    ///
    /// # Errors
    /// No random numbers are available.
    pub fn random() -> Result<Self, AssertionKeyFault> {
        Self::from_pem(new_pem()?.as_bytes())
    }

    /// The `kid`: the thumbprint of RFC 7638.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The public key, as an entry of a JWK set (RFC 7517).
    pub fn jwk(&self) -> Value {
        json!({
            "kty": "EC", "crv": "P-256", "x": self.x, "y": self.y,
            "kid": self.id, "use": "sig", "alg": "ES256",
        })
    }

    /// R and S, 32 bytes each (RFC 7518, section 3.4). `None` if no random numbers are available.
    pub(super) fn sign(&self, message: &[u8]) -> Option<impl AsRef<[u8]> + use<>> {
        self.pair.sign(&SystemRandom::new(), message).ok()
    }

    fn from_pem(pem: &[u8]) -> Result<Self, AssertionKeyFault> {
        let key =
            PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| AssertionKeyFault::NotAKey)?;
        Self::from_pkcs8(key.secret_pkcs8_der()).ok_or(AssertionKeyFault::NotAKey)
    }

    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok()?;
        // SEC 1, section 2.3.3: 4, then both coordinates.
        let (_, point) = pair.public_key().as_ref().split_first()?;
        let (x, y) = point.split_at_checked(COORDINATE)?;
        let [x, y] = [x, y].map(|bytes| BASE64_URL_SAFE_NO_PAD.encode(bytes));
        let members = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let hash = digest::digest(&digest::SHA256, members.as_bytes());
        let id = BASE64_URL_SAFE_NO_PAD.encode(hash);
        Some(Self { pair, x, y, id })
    }
}

impl fmt::Debug for AssertionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AssertionKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A new key in PEM (RFC 7468).
fn new_pem() -> Result<String, AssertionKeyFault> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let der = pair.and_then(|pair| pair.to_pkcs8v1());
    let base64 = BASE64_STANDARD.encode(der.map_err(|_| AssertionKeyFault::Random)?);
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[test]
    fn the_thumbprint_is_that_of_the_public_half() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/assertion.key");
        let made = AssertionKey::read_or_make(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let again = AssertionKey::read_or_make(&path).unwrap();
        assert_eq!(made.jwk(), again.jwk());
        // OpenSSL reads the file, and gets the same point.
        let key = openssl::pkey::PKey::private_key_from_pem(&fs::read(&path).unwrap()).unwrap();
        let (ec, mut context) = (
            key.ec_key().unwrap(),
            openssl::bn::BigNumContext::new().unwrap(),
        );
        let point = ec.public_key();
        let form = openssl::ec::PointConversionForm::UNCOMPRESSED;
        let bytes = point.to_bytes(ec.group(), form, &mut context).unwrap();
        let jwk = made.jwk();
        assert_eq!(jwk["x"], BASE64_URL_SAFE_NO_PAD.encode(&bytes[1..33]));
        assert_eq!(jwk["y"], BASE64_URL_SAFE_NO_PAD.encode(&bytes[33..]));
        let folder = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(folder.count(), 1, "nothing is left beside it");
        assert!(format!("{made:?}").starts_with("AssertionKey { id: "));
    }

    #[test]
    fn what_is_no_key_of_its_owner_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("assertion.key");
        assert!(matches!(
            AssertionKey::read(&path),
            Err(AssertionKeyFault::File(_))
        ));
        let p384 = openssl::ec::EcGroup::from_curve_name(openssl::nid::Nid::SECP384R1).unwrap();
        let p384 = openssl::ec::EcKey::generate(&p384).unwrap();
        let p384 = openssl::pkey::PKey::from_ec_key(p384).unwrap();
        let p384 = p384.private_key_to_pem_pkcs8().unwrap();
        for content in [b"".as_slice(), b"x", &[0xff; 9_000], &p384] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(
                AssertionKey::read(&path),
                Err(AssertionKeyFault::NotAKey)
            ));
        }
        fs::write(&path, new_pem().unwrap()).unwrap();
        for (mode, fits) in [(0o600, true), (0o640, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(AssertionKey::read(&path).is_ok(), fits, "{mode:o}");
        }
    }
}
