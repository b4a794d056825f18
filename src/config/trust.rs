//! The section `trust`, and `listener.client_anchors`: the trust anchors and intermediates of TPP certificates.
//!
//! Invariant: a folder of trust anchors holds at least one certificate, and so does a bundle for each use that it alone serves. Deliberately
//! not here: the files of a bundle (`bundle`), checking for revocation (`revocation`) and registers (`registers`).

use std::path::{Path, PathBuf};

use openssl::{error::ErrorStack, nid::Nid, x509::X509};

use super::bundle::{self, TrustBundle};
use super::endpoints::{ClientAuth, Listener};
use super::identity::warn_of_all;
use super::inspection::Inspection;
use super::pem;
use super::section::Section;
use super::value::Value;
use super::warning::{self, Condition};
use crate::expiring::Expiring;
use crate::trust::{Anchors, CertificateTypes, GrantedType, Trust, validity_of};

/// The folders of certificates. Every file in them contains certificates in PEM (CRT-9).
#[derive(Clone, Debug)]
pub struct TrustFiles {
    /// The folder of trust anchors; `None` if all of them are in the bundle.
    pub anchors: Option<PathBuf>,
    /// The bundle of trust anchors from the EU's trusted lists (CRT-8). None by default.
    pub bundle: Option<TrustBundle>,
    /// The folder of intermediates, which serve only to build paths to an anchor. None by default.
    pub intermediates: Option<PathBuf>,
    /// The folder of the anchors of QWACs (TLS-3). None by default: those in `anchors` apply.
    pub clients: Option<PathBuf>,
}

impl TrustFiles {
    /// The folders of trust anchors, for people.
    pub fn shown_anchors(&self) -> String {
        let bundle = self.bundle.as_ref().map(|bundle| &bundle.path);
        let folders = self.anchors.iter().chain(bundle);
        let folders: Vec<_> = folders.map(|path| path.display().to_string()).collect();
        folders.join(" and ")
    }
}

/// A folder, and its certificates.
pub(super) type Folder = (PathBuf, Vec<X509>);

/// Reads the section. `clients` are the anchors of QWACs if they have their own; the listener may ask for such certificates.
pub(super) fn read(
    mut section: Section<'_>,
    clients: Option<Folder>,
    listener: &Option<Listener>,
    inspection: &Inspection,
    base: &Path,
) -> Option<(TrustFiles, Trust)> {
    let types = section.optional("certificate_types");
    let types = types.and_then(|value| certificate_types(&value));
    let types = types.unwrap_or_default();
    let bundle = section.optional("bundle");
    let anchors = match bundle {
        Some(_) => section.optional("anchors"),
        None => section.required("anchors"),
    };
    let (has_anchors, has_bundle) = (anchors.is_some(), bundle.is_some());
    let anchors = anchors.and_then(|value| folder(&value, base, Expiring::Anchor));
    let bundle = bundle.and_then(|value| {
        let read = bundle::read(&value, base)?;
        let asks = |listener: &Listener| listener.client_auth != ClientAuth::Off;
        let serves_clients = listener.as_ref().is_some_and(asks) && clients.is_none();
        let signing = (!has_anchors).then_some(types);
        judge_bundle(&value, &read, signing, !has_anchors && serves_clients);
        Some(read)
    });
    let intermediates = section.optional("intermediates");
    let intermediates =
        intermediates.and_then(|value| folder(&value, base, Expiring::Intermediate));
    let place = section.place_of(if has_anchors { "anchors" } else { "bundle" });
    section.finish();
    if anchors.is_some() != has_anchors || bundle.is_some() != has_bundle {
        return None;
    }
    let (path, found) = anchors.unzip();
    let (other_path, others) = intermediates.unzip();
    let (client_path, client_found) = clients.unzip();
    let others = others.unwrap_or_default();
    let own = found.unwrap_or_default();
    let trust = trust_in(own, client_found, bundle.as_ref(), &others, types);
    let trust = trust.map_err(|error| inspection.report(place, pem::reason(&error)));
    let files = TrustFiles {
        anchors: path,
        bundle,
        intermediates: other_path,
        clients: client_path,
    };
    Some((files, trust.ok()?))
}

/// The trust in the anchors of folders and of a bundle. Clients that have no folder of their own have the anchors of `own` (TLS-3), but never
/// the bundle's anchors of seals.
fn trust_in(
    own: Vec<X509>,
    clients: Option<Vec<X509>>,
    bundle: Option<&TrustBundle>,
    intermediates: &[X509],
    types: CertificateTypes,
) -> Result<Trust, ErrorStack> {
    let anchors = |own, types| match bundle {
        Some(bundle) => Anchors::of_lists(&bundle.listed, types, own, intermediates.to_vec()),
        None => Anchors::of_operator(own, intermediates.to_vec()),
    };
    let clients = match bundle {
        Some(_) => Some(clients.unwrap_or_else(|| own.clone())),
        None => clients,
    };
    let clients = clients.map(|own| anchors(own, CertificateTypes::WEB));
    let trust = Trust::new(anchors(own, types)?).with_client_anchors(clients.transpose()?);
    Ok(trust.with_types(types))
}

/// Reports faults and warnings of a bundle's anchors. `signing` are the types of certificate that may sign, if the bundle alone has their
/// anchors; `serves_clients` is whether it alone has those of clients.
fn judge_bundle(
    value: &Value<'_>,
    bundle: &TrustBundle,
    signing: Option<CertificateTypes>,
    serves_clients: bool,
) {
    let path = bundle.path.display();
    if let Some(types) = signing
        && bundle.listed.of_types(types).next().is_none()
    {
        let wanted = match (types.eseal, types.web) {
            (true, true) => "seals or web sites",
            (true, false) => "seals",
            _ => "web sites",
        };
        value.fault(format!(
            "{path} has no anchor of the certificates that may sign (trust.certificate_types), and trust.anchors names none: every request would be refused; import a list with services for {wanted}"
        ));
    }
    let websites = bundle.listed.of(GrantedType::Web);
    if serves_clients && websites.is_empty() {
        value.fault(format!(
            "{path} has no anchor of web sites: every client certificate would be refused; name anchors by listener.client_anchors"
        ));
    }
    for (folder, found, of) in [
        (
            "seals",
            bundle.listed.of(GrantedType::Eseal),
            Expiring::Anchor,
        ),
        ("websites", websites, Expiring::ClientAnchor),
    ] {
        warn_of_trial(value, &bundle.path, found);
        let periods = found.iter().filter_map(|one| validity_of(one).ok());
        let periods: Vec<_> = periods.collect();
        if !periods.is_empty() {
            value.warn_while(Condition::Folder(warning::Folder {
                of,
                shown: format!("{path}/{folder}"),
                periods,
                // Their services vouch for their keys all the same, which other anchors may have.
                consequence: ": a certificate passes only where its chain ends at another anchor, which is valid",
                counts_each: false,
            }));
        }
    }
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

fn warn_of_trial(value: &Value<'_>, path: &Path, found: &[X509]) {
    for certificate in found.iter().filter(|one| is_trial(one)) {
        let name = common_name(certificate).unwrap_or_default();
        value.weakens(format!(
            "{} holds \"{name}\", a CA for trials: whoever has its key can act as any TPP; remove it",
            path.display()
        ));
    }
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
    warn_of_trial(value, &path, &found);
    let consequence = match of.stops_requests() {
        true => ": every certificate that needs them is refused",
        false => "",
    };
    warn_of_all(value, of, path.display().to_string(), &found, consequence);
    Some((path, found))
}
