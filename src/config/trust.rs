//! The section `trust`, and `listener.client_anchors`: the certificates by which TPPs are judged.
//!
//! Invariant: a folder of trust anchors holds at least one certificate. Deliberately not here: checking for revocation
//! (`revocation`) and registers (`registers`).

use std::path::{Path, PathBuf};

use openssl::x509::X509;

use super::fault::Inspection;
use super::pem;
use super::section::Section;
use super::value::Value;
use crate::trust::{Anchors, CertificateTypes, Trust};

/// The folders that trust was read from. Every file in them holds certificates in PEM (CRT-9).
#[derive(Clone, Debug)]
pub struct TrustFiles {
    /// The folder of trust anchors.
    pub anchors: PathBuf,
    /// The folder of intermediates, which only help to find the way to an anchor. None by default.
    pub intermediates: Option<PathBuf>,
    /// The folder of the anchors of QWACs (TLS-3). None by default: they are those of sealing certificates.
    pub clients: Option<PathBuf>,
}

/// A folder, and the certificates in it.
pub(super) type Folder = (PathBuf, Vec<X509>);

/// Reads the section. `clients` are the anchors of website certificates, where they have their own.
pub(super) fn read(
    mut section: Section<'_>,
    clients: Option<Folder>,
    inspection: &Inspection,
    base: &Path,
) -> Option<(TrustFiles, Trust)> {
    let anchors = section.required("anchors");
    let anchors = anchors.and_then(|value| folder(&value, base, Contents::Required));
    let intermediates = section.optional("intermediates");
    let intermediates = intermediates.and_then(|value| folder(&value, base, Contents::Optional));
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

/// Which certificates may sign (CRT-3).
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
        value.fault("without a type nobody may sign; expected eseal, web or both");
    }
    Some(types)
}

/// The folder of the anchors of website certificates (TLS-3).
pub(super) fn client_anchors(listener: &mut Section<'_>, base: &Path) -> Option<Folder> {
    let value = listener.optional("client_anchors")?;
    folder(&value, base, Contents::Required)
}

/// Whether a folder may be without a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Required,
    Optional,
}

/// The certificates of the folder that a key names.
fn folder(value: &Value<'_>, base: &Path, contents: Contents) -> Option<Folder> {
    let path = value.path(base)?;
    let (found, faults) = pem::folder(&path);
    if found.is_empty() && faults.is_empty() && contents == Contents::Required {
        let path = path.display();
        value.fault(format!(
            "{path} holds no certificate: without a trust anchor no TPP is known"
        ));
    }
    for fault in faults {
        value.fault(fault);
    }
    Some((path, found))
}
