//! The anchors of a bundle, by which the gateway would judge certificates of TPPs: by the same code.

use super::document::{AnchorEntry, BundleDocument, Use};
use crate::{certificate::Certificate, fault::Refusal};
use openssl::x509::X509;
use portvakt_base::{clock::Timestamp, hex, private_file};
use portvakt_trust::Anchors;
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

/// The longest file of an anchor, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The anchors of a bundle, for each use.
#[derive(Debug)]
pub struct BundleTrust {
    seals: Anchors,
    websites: Anchors,
}

/// What a bundle says of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is trusted, by the anchor with this SHA-256 (hexadecimal digits).
    Trusted(String),
    /// It chains to an anchor, but a member of the chain is not valid at the time.
    NotValid,
    /// It chains to no anchor.
    Untrusted,
}

impl BundleTrust {
    /// Reads the anchors of a bundle. The intermediates are not trusted, and only help to build chains.
    ///
    /// # Errors
    /// A file cannot be read, or is not the one of `bundle.yaml`.
    pub fn read(
        folder: &Path,
        bundle: &BundleDocument,
        intermediates: &[Certificate],
    ) -> Result<Self, Refusal> {
        let intermediates: Result<Vec<_>, _> = intermediates.iter().map(of_openssl).collect();
        let intermediates = intermediates?;
        let of = |wanted: Use| {
            let all = bundle.anchors.iter();
            let all = all.filter(|anchor| anchor.uses.contains(&wanted));
            let folder = folder.join(wanted.folder());
            let anchors: Result<Vec<_>, _> =
                all.map(|anchor| read_anchor(&folder, anchor)).collect();
            Anchors::new(anchors?, intermediates.clone()).map_err(Refusal::new)
        };
        Ok(Self {
            seals: of(Use::Seals)?,
            websites: of(Use::Websites)?,
        })
    }

    /// What the anchors of a use say of a certificate at a time. The pool is what its TPP sent with it.
    pub fn standing(
        &self,
        of: Use,
        certificate: &Certificate,
        pool: &[Vec<u8>],
        now: Timestamp,
    ) -> Standing {
        let anchors = match of {
            Use::Seals => &self.seals,
            Use::Websites => &self.websites,
        };
        let path = anchors.path(certificate.der(), pool, now);
        let Some(path) = path.ok().filter(|path| path.fault.is_none()) else {
            return Standing::Untrusted;
        };
        let validity = path.validity();
        if !validity.is_ok_and(|all| all.into_iter().all(|member| member.contains(now))) {
            return Standing::NotValid;
        }
        let anchor = path.members.last().and_then(|anchor| anchor.to_der().ok());
        let anchor = anchor.and_then(|der| Certificate::from_der(der).ok());
        anchor.map_or(Standing::Untrusted, |anchor| {
            Standing::Trusted(hex::encode(&anchor.sha256()))
        })
    }
}

fn read_anchor(folder: &Path, anchor: &AnchorEntry) -> Result<X509, Refusal> {
    let path: PathBuf = folder.join(&anchor.file);
    let refuse =
        |why: &dyn std::fmt::Display| Refusal::new(format_args!("{}: {why}", path.display()));
    let mut bytes = Vec::new();
    private_file::open(&path)
        .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes))
        .map_err(|error| refuse(&error))?;
    let found = Certificate::from_pem(&bytes).map_err(|fault| refuse(&fault))?;
    match found.as_slice() {
        [one] if hex::encode(&one.sha256()) == anchor.sha256 => of_openssl(one),
        _ => Err(refuse(
            &"it is not the certificate that bundle.yaml lists; import again",
        )),
    }
}

fn of_openssl(certificate: &Certificate) -> Result<X509, Refusal> {
    X509::from_der(certificate.der()).map_err(Refusal::new)
}
