//! Certificates and keys from files in PEM.
//!
//! Invariants: reading is bounded; a file without a certificate in a folder of certificates is a fault, because the operator
//! relies on that file; no message repeats a byte of a key. Deliberately not here: whether a certificate is currently valid, or
//! fit for its use.

use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openssl::error::ErrorStack;
use openssl::pkey::{HasPublic, Id, PKey, PKeyRef};
use openssl::x509::{X509, X509VerifyResult};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{Error, InconsistentKeys};

use super::secret::Secret;
use crate::private_file;

/// The longest file that is read, in bytes: a bundle of all roots of a browser has some 250 KiB.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The bits of an RSA key in TLS: those of the cryptographic library.
const RSA_BITS: RangeInclusive<u32> = 2048..=8192;

/// Reads a file; the error text names the reason.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    read_up_to(path, MAX_FILE_BYTES)
}

/// Reads a file in UTF-8.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    String::from_utf8(read(path)?).map_err(|_| format!("{} is not UTF-8", path.display()))
}

fn read_up_to(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let unreadable = |error| format!("{} cannot be read: {error}", path.display());
    let mut bytes = Vec::new();
    private_file::open(path)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        _ => Err(format!("{} is longer than {most} bytes", path.display())),
    }
}

/// The visible files of a folder, and the faults of the others.
pub(super) fn files(path: &Path, most: u64) -> (Vec<(PathBuf, Vec<u8>)>, Vec<String>) {
    let entries = match visible_entries(path) {
        Ok(entries) => entries,
        Err(error) => {
            let path = path.display();
            return (
                Vec::new(),
                vec![format!("{path} is not a readable folder: {error}")],
            );
        }
    };
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for entry in entries {
        match read_up_to(&entry, most) {
            Ok(bytes) => found.push((entry, bytes)),
            Err(fault) => faults.push(fault),
        }
    }
    (found, faults)
}

/// Reads the certificates of a file, in the order of the file; at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<X509>, String> {
    let found = X509::stack_from_pem(&read(path)?).map_err(|error| {
        let reason = reason(&error);
        format!(
            "{} contains an unreadable certificate ({reason})",
            path.display()
        )
    })?;
    if found.is_empty() {
        return Err(format!(
            "{} contains no certificate; expected PEM, -----BEGIN CERTIFICATE-----",
            path.display()
        ));
    }
    Ok(found)
}

/// Reads the certificates of all files in a folder; reports every fault. Hidden entries are ignored: editors and mounted
/// secrets (`..data`) create them.
pub(crate) fn folder(path: &Path) -> (Vec<X509>, Vec<String>) {
    let mut found = Vec::new();
    let mut faults = Vec::new();
    match visible_entries(path) {
        Ok(entries) => {
            for entry in entries {
                match certificates(&entry) {
                    Ok(certificates) => found.extend(certificates),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        Err(error) => faults.push(format!(
            "{} is not a readable folder: {error}",
            path.display()
        )),
    }
    (found, faults)
}

/// A certificate chain with its key as rustls needs it. The key fits the certificate.
pub(super) fn identity(
    certificates: &[X509],
    key: Arc<dyn SigningKey>,
) -> Result<CertifiedKey, String> {
    let chain = certificates
        .iter()
        .map(|certificate| certificate.to_der().map(CertificateDer::from))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| reason(&error))?;
    let identity = CertifiedKey::new(chain, key);
    match identity.keys_match() {
        // rustls cannot compare every kind of key; the first handshake reveals a mismatch.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(identity),
        Err(Error::InconsistentKeys(_)) => Err(match position_of(&identity.key, certificates) {
            Some(position) => format!(
                "the key is that of certificate {position} of the file: write that certificate first, then its CA, and so on"
            ),
            None => "the key is not that of the certificate".to_owned(),
        }),
        Err(error) => Err(format!("TLS does not accept the certificate: {error}")),
    }
}

/// The position, from 1, of the certificate that has this key.
fn position_of(key: &Arc<dyn SigningKey>, certificates: &[X509]) -> Option<usize> {
    let key = key.public_key()?;
    let fits = |certificate: &X509| {
        let own = certificate
            .public_key()
            .and_then(|key| key.public_key_to_der());
        own.is_ok_and(|own| own == key.as_ref())
    };
    Some(certificates.iter().position(fits)?.saturating_add(1))
}

/// The position, from 1, of the first certificate that did not issue the one before it.
pub(super) fn misplaced(chain: &[X509]) -> Option<usize> {
    let mut pairs = chain.iter().zip(chain.iter().skip(1));
    let found = pairs.position(|(one, next)| next.issued(one) != X509VerifyResult::OK);
    Some(found?.saturating_add(2))
}

/// Reads the private key of a file: PKCS#8, PKCS#1 or SEC1, without a passphrase.
pub(super) fn private_key(path: &Path) -> Result<Arc<dyn SigningKey>, String> {
    let shown = path.display();
    let secret = Secret::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(secret.bytes()).map_err(|_| {
        if is_encrypted(&secret) {
            return format!(
                "{shown} is encrypted, and the gateway has no passphrase: decrypt it (openssl pkey -in FILE -out FILE) and set its mode to 0600"
            );
        }
        format!("{shown} contains no private key in PEM without a passphrase")
    })?;
    let loaded = provider().key_provider.load_private_key(key);
    loaded.map_err(|error| {
        let read = PKey::private_key_from_pem(secret.bytes());
        let text = read.ok().and_then(|key| fault_of_size(&key));
        match text {
            Some(text) => format!("{shown} contains {text}"),
            None => format!("{shown} contains a key that TLS does not accept: {error}"),
        }
    })
}

/// What is wrong with the size of a key for TLS, in a file or in an HSM, beginning with the key.
pub(super) fn fault_of_size<T: HasPublic>(key: &PKeyRef<T>) -> Option<String> {
    let bits = key.bits();
    let is_refused = key.id() == Id::RSA && !RSA_BITS.contains(&bits);
    let [least, most] = [RSA_BITS.start(), RSA_BITS.end()];
    is_refused.then(|| {
        format!("an RSA key of {bits} bits; TLS needs at least {least}, and at most {most}")
    })
}

/// Whether the text is a private key with a passphrase (RFC 7468, 11; RFC 1421, 4.6.1.1).
fn is_encrypted(secret: &Secret) -> bool {
    secret.text().is_some_and(|text| {
        text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
    })
}

/// The provider of the whole process, named explicitly so that loading does not depend on the order of start.
pub(super) fn provider() -> CryptoProvider {
    rustls::crypto::aws_lc_rs::default_provider()
}

pub(super) fn visible_entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            entries.push(entry.path());
        }
    }
    // The file system's order is arbitrary; sorting makes it the same everywhere.
    entries.sort();
    Ok(entries)
}

/// OpenSSL's innermost error, without function names and source lines.
pub(super) fn reason(error: &ErrorStack) -> String {
    let last = error
        .errors()
        .last()
        .and_then(openssl::error::Error::reason);
    last.unwrap_or("OpenSSL gives no reason").to_owned()
}
