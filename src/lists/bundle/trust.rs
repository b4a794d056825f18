//! The anchors of a bundle, by which the gateway would judge certificates of TPPs that sign: by the same code, beside the operator's own
//! anchors, and for the types of certificate that may sign by its configuration.
//!
//! Deliberately not here: revocation and registers.

use crate::{certificate::Certificate, fault::Refusal};
use openssl::{error::ErrorStack, x509::X509};
use portvakt_base::{clock::Timestamp, hex, way::OwnUsers};
use portvakt_trust::{
    Anchors, CertificateFault, CertificatePolicy, CertificateTypes, KeyHash, bundle::load,
    judge_content,
};
use sha2::{Digest as _, Sha256};
use std::{collections::HashMap, path::Path};

/// What the configuration of the gateway says beside the bundle.
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewayConfig<'c> {
    /// `trust.anchors`: the operator's own anchors.
    pub own: &'c [Certificate],
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
    /// The SHA-256 of the bundle's certificates (hexadecimal digits), by their public keys.
    certificates: HashMap<KeyHash, Vec<String>>,
    has_anchors: bool,
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
    /// Reads the anchors of a bundle, as the gateway does.
    ///
    /// # Errors
    /// The gateway refuses the bundle, or OpenSSL does not read a certificate of the configuration.
    pub fn read(folder: &Path, config: GatewayConfig<'_>) -> Result<Self, Refusal> {
        let loaded = load(folder, OwnUsers::default()).map_err(|faults| {
            let faults = faults.join("; ");
            Refusal::new(format_args!("the gateway refuses this bundle: {faults}"))
        })?;
        let listed = loaded.listed;
        let mut certificates = HashMap::<_, Vec<_>>::new();
        for anchor in listed.of_types(CertificateTypes::default()) {
            let found = KeyHash::of(anchor).and_then(|key| Ok((key, anchor.to_der()?)));
            let (key, der) = found.map_err(|error| unreadable("an anchor", &error))?;
            let sha256 = hex::encode(&Sha256::digest(der));
            certificates.entry(key).or_default().push(sha256);
        }
        let [own, intermediates] = [config.own, config.intermediates].map(all_of_openssl);
        let types = config.types;
        let anchors = Anchors::of_lists(&listed, types, own?, intermediates?);
        let anchors = anchors.map_err(|error| unreadable("an anchor", &error))?;
        let has_anchors = listed.of_types(types).next().is_some();
        Ok(Self {
            anchors,
            types,
            certificates,
            has_anchors,
        })
    }

    /// Whether the bundle has an anchor for the types that may sign: one without is refused where there are no `trust.anchors`.
    pub const fn has_anchors(&self) -> bool {
        self.has_anchors
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
            // Also below an anchor of the operator's own that is not at hand, a CA that the lists name decides.
            Some(_) => {
                return match self.deciding(&path.members) {
                    Some(by @ Deciding::Named(_)) => Standing::Unqualified {
                        why: CertificateFault::Ungranted.to_string(),
                        by: Some(by),
                    },
                    _ => Standing::Untrusted,
                };
            }
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
        let nearest = self.anchors.grants().nearest(members).ok()??;
        let key = KeyHash::of(nearest).ok()?;
        let Some(all) = self.certificates.get(&key) else {
            return Some(Deciding::Named(key));
        };
        let own = hex::encode(&Sha256::digest(nearest.to_der().ok()?));
        let own = all.iter().find(|name| **name == own);
        own.or_else(|| all.first()).cloned().map(Deciding::Anchor)
    }
}

fn all_of_openssl(certificates: &[Certificate]) -> Result<Vec<X509>, Refusal> {
    let all = certificates.iter().map(|one| {
        let read = of_openssl(one);
        read.map_err(|error| unreadable(&one.subject(), &error))
    });
    all.collect()
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
