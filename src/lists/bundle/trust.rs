//! The anchors of a bundle, by which the gateway would judge certificates of TPPs that sign: by the same code (`ListedAnchors`), and for the
//! types of certificate that may sign by its configuration.
//!
//! Deliberately not here: the anchors of the operator's own (`trust.anchors`), revocation and registers.

use super::document::{AnchorEntry, BundleDocument, ServiceEntry, Use};
use crate::{certificate::Certificate, fault::Refusal};
use openssl::{error::ErrorStack, x509::X509};
use portvakt_base::{clock::Timestamp, hex, private_file};
use portvakt_trust::{
    Anchors, CertificateFault, CertificateTypes, GrantedType, ListedAnchors, ListedService,
    judgement,
};
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

/// The longest file of an anchor, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// What the configuration of the gateway says beside the bundle.
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewayConfig<'c> {
    /// `trust.intermediates`: they are not trusted, and only help to build chains.
    pub intermediates: &'c [Certificate],
    /// `trust.certificate_types`: the types of certificate that may sign.
    pub types: CertificateTypes,
}

/// The anchors of a bundle.
#[derive(Debug)]
pub struct BundleTrust {
    anchors: Anchors,
    types: CertificateTypes,
}

/// What a bundle says of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is trusted, by the anchor with this SHA-256 (hexadecimal digits).
    Trusted(String),
    /// It chains to an anchor, but a member of the chain is not valid at the time.
    NotValid,
    /// It chains to an anchor whose services do not vouch for it, for this reason.
    Unqualified(&'static str),
    /// It is of no type that may sign, for this reason, whatever the bundle has.
    WrongType(&'static str),
    /// It chains to no anchor.
    Untrusted,
}

impl BundleTrust {
    /// Reads the anchors of a bundle.
    ///
    /// # Errors
    /// A file cannot be read, or is not the one of `bundle.yaml`.
    pub fn read(
        folder: &Path,
        bundle: &BundleDocument,
        config: GatewayConfig<'_>,
    ) -> Result<Self, Refusal> {
        let intermediates = config.intermediates.iter().map(|one| {
            let subject = one.subject();
            of_openssl(one).map_err(|error| unreadable(&subject, &error))
        });
        let intermediates = intermediates.collect::<Result<Vec<_>, _>>()?;
        let mut listed = ListedAnchors::default();
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
                let services = entry.services.iter().map(listed_service);
                of_openssl(&found)
                    .and_then(|anchor| listed.add(anchor, granted, services))
                    .map_err(|error| unreadable(&entry.file, &error))?;
            }
        }
        let types = config.types;
        let anchors = Anchors::of_lists(&listed, types, Vec::new(), intermediates);
        let anchors = anchors.map_err(|error| unreadable("an anchor", &error))?;
        Ok(Self { anchors, types })
    }

    /// What the anchors say of a certificate at a time. The pool is what its TPP sent with it.
    pub fn standing(
        &self,
        certificate: &Certificate,
        pool: &[Vec<u8>],
        now: Timestamp,
    ) -> Standing {
        if let Some(why) = self.wrong_type(certificate) {
            return Standing::WrongType(why);
        }
        let path = self.anchors.path(certificate.der(), pool, self.types, now);
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

    /// Why a certificate may not sign by the types that it names. One that names none was seen by a gateway that tolerates that.
    fn wrong_type(&self, certificate: &Certificate) -> Option<&'static str> {
        let parsed = certificate.parse().ok()?;
        let statements = judgement::statements(&parsed).ok()?;
        if !statements.eseal && !statements.web {
            return None;
        }
        match judgement::qc_type(&statements, self.types) {
            Err(CertificateFault::WrongType(why)) => Some(why),
            _ => None,
        }
    }
}

fn listed_service(service: &ServiceEntry) -> ListedService<'_> {
    ListedService {
        seals: service.uses.contains(&Use::Seals),
        websites: service.uses.contains(&Use::Websites),
        qualifications: &service.qualifications,
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

fn of_openssl(certificate: &Certificate) -> Result<X509, ErrorStack> {
    X509::from_der(certificate.der())
}

/// Names what OpenSSL does not read, with its innermost reason: the rest of the error has functions and lines of its source.
fn unreadable(what: &str, error: &ErrorStack) -> Refusal {
    let last = error.errors().last();
    let reason = last.and_then(openssl::error::Error::reason);
    Refusal::new(format_args!(
        "{what}: OpenSSL does not read the certificate or its key ({}); the gateway does not either",
        reason.unwrap_or("OpenSSL gives no reason")
    ))
}
