//! The anchors of a bundle, by which the gateway would judge certificates of TPPs that sign: by the same code (`ListedAnchors`), and for the
//! types of certificate that may sign by its configuration.
//!
//! Deliberately not here: the anchors of the operator's own (`trust.anchors`), revocation and registers.

use super::document::{AnchorEntry, BundleDocument, ServiceEntry, Use};
use crate::{certificate::Certificate, fault::Refusal};
use openssl::{error::ErrorStack, x509::X509};
use portvakt_base::{clock::Timestamp, hex, private_file};
use portvakt_trust::{
    Anchors, CertificatePolicy, CertificateTypes, GrantedType, Grants, KeyHash, ListedAnchors,
    ListedService, ListingFault,
    bundle::{DOCUMENT, MAX_ANCHOR_BYTES},
    judge_content,
};
use sha2::{Digest as _, Sha256};
use std::{
    collections::HashMap,
    io::Read as _,
    path::{Path, PathBuf},
};

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
    /// What the lists say of the anchors, by which the deciding one of a chain is found.
    grants: Grants,
    /// The SHA-256 of the bundle's certificates (hexadecimal digits), by their public keys.
    certificates: HashMap<KeyHash, Vec<String>>,
}

/// What a bundle says of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is trusted by the services of the certificate with this SHA-256 (hexadecimal digits): of its chain the nearest that a list names.
    Trusted(String),
    /// It chains to an anchor, but a member of the chain is not valid at the time.
    NotValid,
    /// It chains to an anchor, but the services of the nearest certificate that a list names do not vouch for it.
    Unqualified {
        /// The reason.
        why: String,
        /// That certificate.
        by: Option<Deciding>,
    },
    /// The gateway refuses it for this reason, whatever the bundle has.
    Refused(String),
    /// It cannot be judged, for this reason.
    NotJudged(String),
    /// It chains to no anchor.
    Untrusted,
}

/// The nearest certificate of a chain that a list names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deciding {
    /// An anchor of the bundle, by its SHA-256 (hexadecimal digits).
    Anchor(String),
    /// A CA that the bundle names without an anchor, by the SHA-256 of its key.
    Named(KeyHash),
}

impl BundleTrust {
    /// Reads the anchors of a bundle.
    ///
    /// # Errors
    /// A file cannot be read, or is not the one of `bundle.yaml`; or an anchor has no service of the type that it is listed for.
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
        let mut certificates = HashMap::<_, Vec<_>>::new();
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
                let key = of_openssl(&found).and_then(|anchor| KeyHash::of(&anchor));
                let key = key.map_err(|error| unreadable(&entry.file, &error))?;
                certificates
                    .entry(key)
                    .or_default()
                    .push(entry.sha256.clone());
                let services = entry.services.iter().map(listed_service);
                of_openssl(&found)
                    .map_err(ListingFault::from)
                    .and_then(|anchor| listed.add(anchor, granted, services))
                    .map_err(|fault| not_listed(&entry.file, &fault))?;
            }
        }
        for entry in &bundle.named {
            listed.name(key_named(&entry.key_sha256)?);
        }
        let types = config.types;
        let anchors = Anchors::of_lists(&listed, types, Vec::new(), intermediates);
        let anchors = anchors.map_err(|error| unreadable("an anchor", &error))?;
        Ok(Self {
            anchors,
            types,
            grants: listed.grants().clone(),
            certificates,
        })
    }

    /// What the anchors say of a certificate at a time, by the rules of the gateway. The pool is what its TPP sent with it, as far as
    /// OpenSSL reads it.
    pub fn standing(
        &self,
        certificate: &Certificate,
        pool: &[Vec<u8>],
        now: Timestamp,
    ) -> Standing {
        // The gateway has seen it: so faults that a sandbox may tolerate were tolerated.
        let policy = CertificatePolicy::Tolerant;
        if let Err(fault) = judge_content(certificate.der(), policy, self.types) {
            return Standing::Refused(fault.to_string());
        }
        let path = self.anchors.path(certificate.der(), pool, self.types, now);
        let path = match path {
            Ok(path) => path,
            Err(fault) => return Standing::NotJudged(fault.to_string()),
        };
        match path.fault {
            None => {}
            Some(fault) if fault.is_by_lists() => {
                let by = self.deciding(&path.members);
                let why = fault.to_string();
                return Standing::Unqualified { why, by };
            }
            Some(_) => return Standing::Untrusted,
        }
        let validity = path.validity();
        if !validity.is_ok_and(|all| all.into_iter().all(|member| member.contains(now))) {
            return Standing::NotValid;
        }
        match self.deciding(&path.members) {
            Some(Deciding::Anchor(sha256)) => Standing::Trusted(sha256),
            Some(Deciding::Named(_)) | None => Standing::Trusted(String::new()),
        }
    }

    /// The certificate that decides on a chain: the nearest member that a list names by its key. Where the bundle has several certificates of
    /// this key, it is the member itself, or else one of them.
    fn deciding(&self, members: &[X509]) -> Option<Deciding> {
        let nearest = self.grants.nearest(members).ok()??;
        let key = KeyHash::of(nearest).ok()?;
        let Some(all) = self.certificates.get(&key) else {
            return Some(Deciding::Named(key));
        };
        let own = hex::encode(&Sha256::digest(nearest.to_der().ok()?));
        let own = all.iter().find(|name| **name == own);
        own.or_else(|| all.first()).cloned().map(Deciding::Anchor)
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
        .and_then(|file| file.take(MAX_ANCHOR_BYTES).read_to_end(&mut bytes))
        .map_err(|error| refuse(&error))?;
    let found = Certificate::from_pem(&bytes).map_err(|fault| refuse(&fault))?;
    match found.as_slice() {
        [one] if hex::encode(&one.sha256()) == anchor.sha256 => Ok(one.clone()),
        _ => Err(refuse(
            &"it is not the certificate that bundle.yaml lists; import again",
        )),
    }
}

/// The key of a CA that the bundle names.
fn key_named(text: &str) -> Result<KeyHash, Refusal> {
    KeyHash::parse(text).ok_or_else(|| {
        Refusal::new(format_args!(
            "{DOCUMENT}: named: key_sha256 {text:?} is not the SHA-256 of a key, 64 hexadecimal digits; import again"
        ))
    })
}

fn of_openssl(certificate: &Certificate) -> Result<X509, ErrorStack> {
    X509::from_der(certificate.der())
}

/// Names an anchor that is not taken: the gateway does not take it either.
fn not_listed(file: &str, fault: &ListingFault) -> Refusal {
    match fault {
        ListingFault::NoService(_) => Refusal::new(format_args!(
            "{file}: {fault}; the gateway refuses the bundle: import again"
        )),
        ListingFault::Key(error) => unreadable(file, error),
    }
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
