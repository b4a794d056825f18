//! Whether the certificate is qualified: what it claims, and which service of a trusted list vouches for its issuer.
//!
//! Anybody can write QcCompliance into a certificate. Only a trusted list says that the issuer may, and only a bundle
//! (`portvakt-lists import`) keeps what the list says.

use super::judges::{Judges, ListedPaths};
use crate::{
    clock::Timestamp,
    config::{GrantedService, TrustBundle},
    hex,
    interface::headers::date,
    trust::{CertificateTypes, GrantedType, path::CertificationPath, qc::QcStatements},
};
use openssl::x509::X509Ref;
use sha2::{Digest, Sha256};

/// A row: its name, and its text.
type Row = (&'static str, String);

/// The rows about qualification. `signing` is the path by the gateway's anchors; `listed` are those by the lists alone.
pub(super) fn rows(
    statements: &QcStatements,
    judges: &Judges,
    signing: &CertificationPath,
    listed: Option<&ListedPaths<'_>>,
) -> Vec<Row> {
    let only = |text: &str| vec![("qualified", text.to_owned())];
    if !statements.qualified {
        return only("not claimed: QcCompliance is missing");
    }
    if judges.configured.is_none() {
        return only(
            "claimed; nothing at hand vouches for it: name a configuration with --config, whose trust.bundle has the trusted lists",
        );
    }
    let Some(listed) = listed else {
        return only(
            "claimed; no trusted list at hand says so: the configuration has no trust.bundle",
        );
    };
    let path = listed.bundle.path.display();
    let imported = date::format(listed.bundle.imported);
    let claimed = format!("claimed; by the trusted lists in {path}, imported at {imported}:");
    let mut rows = vec![("qualified", claimed)];
    for (is_claimed, name, of) in [
        (statements.eseal, "  for seals", GrantedType::Eseal),
        (statements.web, "  for web sites", GrantedType::Web),
    ] {
        if is_claimed {
            let (Vouching::Service(text) | Vouching::Nobody(text)) = vouching(listed, of);
            rows.push((name, text));
        }
    }
    if !statements.eseal && !statements.web {
        let text = "no service vouches for it: its QcType is neither eseal nor web";
        rows.push(("", text.to_owned()));
    } else if signing.fault.is_none() && listed.signing.fault.is_some() {
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

/// The services that vouch for a certificate as one of a type. A QWAC may sign below another anchor than that of a connection.
fn vouching(listed: &ListedPaths<'_>, of: GrantedType) -> Vouching {
    let by = |path| services_of(path, listed.bundle, of);
    let signing = by(&listed.signing);
    match (of, signing) {
        (GrantedType::Eseal, signing) => signing,
        (GrantedType::Web, signing) => match (by(&listed.client), signing) {
            (Vouching::Nobody(_), service @ Vouching::Service(_)) => service,
            (client, _) => client,
        },
    }
}

/// The services of the nearest CA of a path that the lists name, of those that issue certificates of a type.
fn services_of(path: &CertificationPath, bundle: &TrustBundle, of: GrantedType) -> Vouching {
    let none = |why: &str| Vouching::Nobody(format!("no service vouches for it: {why}"));
    match &path.fault {
        // That fault is of the types that may sign; this row is of one type.
        Some(fault) if !fault.is_by_lists() => {
            return none("its chain ends at no anchor for this use");
        }
        _ => {}
    }
    let grants = bundle.listed.grants();
    let issuer = match grants.nearest(&path.members) {
        Ok(Some(issuer)) => issuer,
        Ok(None) => return none("the lists name no CA of its chain"),
        Err(_) => return none("the key of a CA of its chain is in no form that is compared"),
    };
    let types = CertificateTypes {
        eseal: of == GrantedType::Eseal,
        web: of == GrantedType::Web,
    };
    if let Err(why) = grants.judge(&path.members, types) {
        return none(&why.to_string());
    }
    let issued = path
        .validity()
        .ok()
        .and_then(|validity| validity.first().map(|own| own.not_before));
    let mut granted = Vec::new();
    // A service vouches for the key of its anchors: it may be that of another certificate of the same CA.
    for anchor in bundle.listed.with_key_of(issuer) {
        for service in services_at(anchor, bundle).filter(|service| service.is_of(of)) {
            let text = describe(service, issued);
            if !granted.contains(&text) {
                granted.push(text);
            }
        }
    }
    Vouching::Service(granted.join("; or "))
}

/// The services that an anchor of a bundle identifies.
fn services_at<'b>(
    anchor: &X509Ref,
    bundle: &'b TrustBundle,
) -> impl Iterator<Item = &'b GrantedService> + use<'b> {
    let der = anchor.to_der().ok();
    let sha256 = der.map(|der| hex::encode(&Sha256::digest(&der)));
    let found = sha256.and_then(|sha256| bundle.services.get(&sha256));
    found.into_iter().flatten()
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
