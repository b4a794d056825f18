//! The anchors of a bundle, by which the gateway would judge certificates of TPPs that sign: by the same code, where QSealCs and QWACs may
//! sign (`trust.certificate_types`).
//!
//! Invariant: what is no CA's certificate is no anchor here, as in the gateway: it would admit its own holder (CRT-2).

use super::document::{AnchorEntry, BundleDocument, Use};
use crate::{certificate::Certificate, fault::Refusal};
use openssl::x509::X509;
use portvakt_base::{clock::Timestamp, hex, private_file};
use portvakt_trust::{
    Anchors, CertificateFault, CertificateTypes, GrantedType, Grants, judgement::is_no_ca,
};
use std::{
    collections::BTreeSet,
    io::Read as _,
    path::{Path, PathBuf},
};

/// The longest file of an anchor, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The anchors of a bundle.
#[derive(Debug)]
pub struct BundleTrust(Anchors);

/// What a bundle says of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is trusted, by the anchor with this SHA-256 (hexadecimal digits).
    Trusted(String),
    /// It chains to an anchor, but a member of the chain is not valid at the time.
    NotValid,
    /// It chains to an anchor whose services do not vouch for it, for this reason.
    Unqualified(&'static str),
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
        let (mut anchors, mut grants) = (Vec::new(), Grants::default());
        let mut known = BTreeSet::new();
        for (of, granted) in [
            (Use::Seals, GrantedType::Eseal),
            (Use::Websites, GrantedType::Web),
        ] {
            let folder = folder.join(of.folder());
            for entry in bundle
                .anchors
                .iter()
                .filter(|entry| entry.uses.contains(&of))
            {
                let found = read_anchor(&folder, entry)?;
                if is_leaf(&found) {
                    continue;
                }
                let anchor = of_openssl(&found)?;
                let services = entry.services.iter();
                let services = services.filter(|service| service.uses.contains(&of));
                let qualifications = services.flat_map(|service| service.qualifications.clone());
                grants
                    .add(&anchor, granted, qualifications)
                    .map_err(Refusal::new)?;
                if known.insert(found.sha256()) {
                    anchors.push(anchor);
                }
            }
        }
        let anchors = Anchors::new(anchors, intermediates).map_err(Refusal::new)?;
        Ok(Self(anchors.with_grants(grants)))
    }

    /// What the anchors say of a certificate at a time. The pool is what its TPP sent with it.
    pub fn standing(
        &self,
        certificate: &Certificate,
        pool: &[Vec<u8>],
        now: Timestamp,
    ) -> Standing {
        let types = CertificateTypes::default();
        let path = self.0.path(certificate.der(), pool, types, now);
        let path = match path {
            Ok(path) => path,
            Err(_) => return Standing::Untrusted,
        };
        match path.fault {
            None => {}
            Some(CertificateFault::Unqualified(why)) => return Standing::Unqualified(why),
            Some(_) => return Standing::Untrusted,
        }
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

fn read_anchor(folder: &Path, anchor: &AnchorEntry) -> Result<Certificate, Refusal> {
    let path: PathBuf = folder.join(&anchor.file);
    let refuse =
        |why: &dyn std::fmt::Display| Refusal::new(format_args!("{}: {why}", path.display()));
    let mut bytes = Vec::new();
    private_file::open(&path)
        .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes))
        .map_err(|error| refuse(&error))?;
    let found = Certificate::from_pem(&bytes).map_err(|fault| refuse(&fault))?;
    match found.as_slice() {
        [one] if hex::encode(&one.sha256()) == anchor.sha256 => Ok(one.clone()),
        _ => Err(refuse(
            &"it is not the certificate that bundle.yaml lists; import again",
        )),
    }
}

/// Whether it is no CA's, by the measure of the gateway, which leaves such certificates out of a bundle.
fn is_leaf(certificate: &Certificate) -> bool {
    let parsed = certificate.parse();
    parsed.is_ok_and(|parsed| is_no_ca(&parsed).is_ok())
}

fn of_openssl(certificate: &Certificate) -> Result<X509, Refusal> {
    X509::from_der(certificate.der()).map_err(Refusal::new)
}
