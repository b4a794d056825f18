//! Whether the certificate is qualified: what it claims, and which service of a trusted list vouches for its issuer.
//!
//! Anybody can write QcCompliance into a certificate. Only a trusted list says that the issuer may, and only a bundle
//! (`portvakt-lists import`) keeps what the list says.

use super::judges::Judges;
use crate::{
    clock::Timestamp,
    config::{GrantedService, TrustBundle},
    hex,
    interface::headers::date,
    trust::{CertificateFault, path::CertificationPath, qc::QcStatements},
};
use sha2::{Digest, Sha256};

/// A row: its name, and its text.
type Row = (&'static str, String);

/// The rows about qualification. `signing` and `client` are the paths by the anchors of seals and of QWACs.
pub(super) fn rows(
    statements: &QcStatements,
    judges: &Judges,
    signing: &CertificationPath,
    client: &CertificationPath,
) -> Vec<Row> {
    let only = |text: &str| vec![("qualified", text.to_owned())];
    if !statements.qualified {
        return only("not claimed: QcCompliance is missing");
    }
    let Some(configured) = &judges.configured else {
        return only(
            "claimed; nothing at hand vouches for it: name a configuration with --config, whose trust.bundle has the trusted lists",
        );
    };
    let Some(bundle) = &configured.bundle else {
        return only(
            "claimed; no trusted list at hand says so: the configuration has no trust.bundle",
        );
    };
    let path = bundle.path.display();
    let imported = date::format(bundle.imported);
    let claimed = format!("claimed; by the trusted lists in {path}, imported at {imported}:");
    let mut rows = vec![("qualified", claimed)];
    if statements.eseal {
        rows.push(("  for seals", vouching(signing, bundle, false)));
    }
    if statements.web {
        rows.push(("  for web sites", vouching(client, bundle, true)));
    }
    if !statements.eseal && !statements.web {
        let text = "no service vouches for it: its QcType is neither eseal nor web";
        rows.push(("", text.to_owned()));
    }
    rows
}

/// The services at the end of a path that issue certificates for seals, or for web sites.
fn vouching(path: &CertificationPath, bundle: &TrustBundle, web: bool) -> String {
    match &path.fault {
        None => {}
        Some(CertificateFault::Unqualified(why)) => {
            return format!("no service vouches for it: {why}");
        }
        Some(_) => return "no service vouches for it: its chain ends at no anchor".to_owned(),
    }
    let anchor = path.members.last().and_then(|anchor| anchor.to_der().ok());
    let sha256 = anchor.map(|der| hex::encode(&Sha256::digest(&der)));
    let Some(services) = sha256.and_then(|sha256| bundle.services.get(&sha256)) else {
        return "no service vouches for it: the anchor of its chain is not in the bundle"
            .to_owned();
    };
    let issued = path
        .validity()
        .ok()
        .and_then(|validity| validity.first().map(|own| own.not_before));
    let granted = services
        .iter()
        .filter(|service| if web { service.websites } else { service.seals });
    let granted: Vec<_> = granted.map(|service| describe(service, issued)).collect();
    match granted.is_empty() {
        true => {
            "no service vouches for it: none at the anchor of its chain is granted for this use"
                .to_owned()
        }
        false => granted.join("; or "),
    }
}

fn describe(service: &GrantedService, issued: Option<Timestamp>) -> String {
    let GrantedService {
        territory,
        provider,
        service: name,
        granted_since,
        ..
    } = service;
    let since = date::format(*granted_since);
    let later = match issued {
        Some(issued) if issued < *granted_since => ", which is after the certificate was issued",
        _ => "",
    };
    format!("list of {territory}: {provider}, {name}, granted since {since}{later}")
}
