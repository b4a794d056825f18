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
    trust::{CertificateFault, CertificateTypes, path::CertificationPath, qc::QcStatements},
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
    let mut is_vouched = false;
    for (is_claimed, name, path, web) in [
        (statements.eseal, "  for seals", signing, false),
        (statements.web, "  for web sites", client, true),
    ] {
        if is_claimed {
            let (found, text) = match vouching(path, bundle, web) {
                Vouching::Service(text) => (true, text),
                Vouching::Nobody(text) => (false, text),
            };
            is_vouched |= found;
            rows.push((name, text));
        }
    }
    if !statements.eseal && !statements.web {
        let text = "no service vouches for it: its QcType is neither eseal nor web";
        rows.push(("", text.to_owned()));
    } else if !is_vouched && signing.fault.is_none() {
        let text = "an anchor of your own vouches for it (trust.anchors)";
        rows.push(("", text.to_owned()));
    }
    rows
}

/// Who vouches for a certificate as one of a type.
enum Vouching {
    Service(String),
    Nobody(String),
}

/// The services of the nearest CA of a path that the lists name, where they issue certificates for seals, or for web sites.
fn vouching(path: &CertificationPath, bundle: &TrustBundle, web: bool) -> Vouching {
    let none = |why: &str| Vouching::Nobody(format!("no service vouches for it: {why}"));
    match &path.fault {
        // That fault is of the types that may sign; this row is of one type.
        None | Some(CertificateFault::Unqualified(_)) => {}
        Some(_) => return none("its chain ends at no anchor for this use"),
    }
    let Ok(Some(issuer)) = bundle.grants.nearest(&path.members) else {
        return none("the lists name no CA of its chain");
    };
    let types = CertificateTypes { eseal: !web, web };
    if let Err(why) = bundle.grants.judge(&path.members, types) {
        return none(&why.to_string());
    }
    let sha256 = issuer
        .to_der()
        .map(|der| hex::encode(&Sha256::digest(&der)));
    let services = sha256.ok().and_then(|sha256| bundle.services.get(&sha256));
    let Some(services) = services else {
        let text =
            "a CA with the key of an anchor of the bundle, whose bundle.yaml has its services";
        return Vouching::Service(text.to_owned());
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
        true => none("none at the anchor of its chain is granted for this use"),
        false => Vouching::Service(granted.join("; or ")),
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
