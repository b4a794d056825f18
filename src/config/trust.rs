//! The section `trust`, and `listener.client_anchors`: the trust anchors and intermediates of TPP certificates.
//!
//! Invariant: a folder of trust anchors holds at least one certificate. Deliberately not here: checking for revocation
//! (`revocation`) and registers (`registers`).

use std::path::{Path, PathBuf};

use openssl::{nid::Nid, x509::X509};

use super::identity::warn_of_all;
use super::inspection::Inspection;
use super::pem;
use super::section::Section;
use super::value::Value;
use crate::expiring::Expiring;
use crate::trust::{Anchors, CertificateTypes, Trust};

/// The folders of certificates. Every file in them contains certificates in PEM (CRT-9).
#[derive(Clone, Debug)]
pub struct TrustFiles {
    /// The folder of trust anchors.
    pub anchors: PathBuf,
    /// The folder of intermediates, which serve only to build paths to an anchor. None by default.
    pub intermediates: Option<PathBuf>,
    /// The folder of the anchors of QWACs (TLS-3). None by default: the anchors of sealing certificates apply.
    pub clients: Option<PathBuf>,
}

/// A folder, and its certificates.
pub(super) type Folder = (PathBuf, Vec<X509>);

/// Reads the section. `clients` are the anchors of QWACs if they have their own.
pub(super) fn read(
    mut section: Section<'_>,
    clients: Option<Folder>,
    inspection: &Inspection,
    base: &Path,
) -> Option<(TrustFiles, Trust)> {
    let anchors = section.required("anchors");
    let anchors = anchors.and_then(|value| folder(&value, base, Expiring::Anchor));
    let intermediates = section.optional("intermediates");
    let intermediates =
        intermediates.and_then(|value| folder(&value, base, Expiring::Intermediate));
    let types = section.optional("certificate_types");
    let types = types.and_then(|value| certificate_types(&value));
    let place = section.place_of("anchors");
    section.finish();
    let (path, found) = anchors?;
    let (other_path, others) = intermediates.unzip();
    let (client_path, client_found) = clients.unzip();
    let files = TrustFiles {
        anchors: path,
        intermediates: other_path,
        clients: client_path,
    };
    let others = others.unwrap_or_default();
    let clients = client_found.map(|found| Anchors::new(found, others.clone()));
    let fault = |error| inspection.report(place, pem::reason(&error));
    let (anchors, clients) = Anchors::new(found, others)
        .and_then(|anchors| Ok((anchors, clients.transpose()?)))
        .map_err(fault)
        .ok()?;
    let trust = Trust::new(anchors).with_client_anchors(clients);
    Some((files, trust.with_types(types.unwrap_or_default())))
}

/// The certificate types that may sign (CRT-3).
fn certificate_types(value: &Value<'_>) -> Option<CertificateTypes> {
    let mut types = CertificateTypes {
        eseal: false,
        web: false,
    };
    let listed = value.as_list()?;
    for value in &listed {
        match value.one_of(&[("eseal", true), ("web", false)])? {
            true => types.eseal = true,
            false => types.web = true,
        }
    }
    if listed.is_empty() {
        value.fault("expected at least one type: eseal, web or both");
    }
    Some(types)
}

/// Reads the folder of the anchors of QWACs (TLS-3).
pub(super) fn client_anchors(listener: &mut Section<'_>, base: &Path) -> Option<Folder> {
    let value = listener.optional("client_anchors")?;
    folder(&value, base, Expiring::ClientAnchor)
}

/// The names of CAs whose keys lie beside their certificates: that of docs/operations.md, and those of the development PKI (the demo).
const TRIAL: [&str; 3] = [
    "Trial CA",
    "Portvakt Development Root",
    "Portvakt Prøve-CA G1",
];

fn is_trial(certificate: &X509) -> bool {
    common_name(certificate).is_some_and(|name| TRIAL.contains(&name.as_str()))
}

fn common_name(certificate: &X509) -> Option<String> {
    let mut names = certificate.subject_name().entries_by_nid(Nid::COMMONNAME);
    names.next()?.data().to_string().ok()
}

/// Reads the certificates of the folder that a key names. One of anchors must hold a certificate.
fn folder(value: &Value<'_>, base: &Path, of: Expiring) -> Option<Folder> {
    let path = value.path(base)?;
    let (found, faults) = pem::folder(&path);
    if found.is_empty() && faults.is_empty() && of.stops_requests() {
        let path = path.display();
        value.fault(format!(
            "{path} contains no certificate; expected at least one trust anchor"
        ));
    }
    for fault in faults {
        value.fault(fault);
    }
    for certificate in found.iter().filter(|one| is_trial(one)) {
        let name = common_name(certificate).unwrap_or_default();
        value.weakens(format!(
            "{} holds \"{name}\", a CA for trials: whoever has its key can act as any TPP; remove it",
            path.display()
        ));
    }
    let consequence = match of.stops_requests() {
        true => ": every certificate that needs them is refused",
        false => "",
    };
    warn_of_all(value, of, path.display().to_string(), &found, consequence);
    Some((path, found))
}
