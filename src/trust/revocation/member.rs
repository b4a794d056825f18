//! The addresses of OCSP responders (RFC 5280, 4.2.2.1) and CRLs (RFC 5280, 4.2.1.13) in a certificate.
//!
//! caIssuers is ignored (CRT-11). So are distribution points with reasons or a cRLIssuer, because their CRLs would be refused.

use super::{SourceFault, crl::Scope, crl::names_of, fetch::SourceUrl};
use crate::der::{Element, tag};
use x509_parser::{
    certificate::X509Certificate,
    der_parser::{Oid, oid},
    extensions::{GeneralName, ParsedExtension},
    prelude::FromDer,
};

const OCSP: Oid<'static> = oid!(1.3.6.1.5.5.7.48.1);
const POINTS: &str = "2.5.29.31";

/// The maximum number of addresses of each kind; the others are ignored.
const MOST: usize = 3;

/// The revocation addresses of a certificate.
#[derive(Debug)]
pub(super) struct PublishedAddresses {
    /// The content of the serial number's INTEGER.
    pub(super) serial: Box<[u8]>,
    /// The OCSP responders.
    pub(super) ocsp: Vec<SourceUrl>,
    /// The CRLs.
    pub(super) crls: Vec<SourceUrl>,
    /// The scope that a CRL must cover.
    pub(super) scope: Scope,
}

impl PublishedAddresses {
    /// Reads a certificate, DER.
    pub(super) fn of(der: &[u8]) -> Result<Self, SourceFault> {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|_| SourceFault::Invalid("the certificate cannot be read"))?;
        let (crls, points) = points(&certificate);
        Ok(Self {
            serial: certificate.raw_serial().into(),
            ocsp: responders(&certificate),
            crls,
            scope: Scope {
                of_ca: certificate.is_ca(),
                points,
            },
        })
    }
}

fn responders(certificate: &X509Certificate<'_>) -> Vec<SourceUrl> {
    let mut found = Vec::new();
    for extension in certificate.extensions() {
        let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
            continue;
        };
        let uris = access
            .iter()
            .filter_map(|access| match &access.access_location {
                GeneralName::URI(uri) if access.access_method == OCSP => SourceUrl::public(uri),
                _ => None,
            });
        found.extend(uris);
    }
    found.truncate(MOST);
    found
}

/// The addresses of the CRLs, and all names of their distribution points.
fn points(certificate: &X509Certificate<'_>) -> (Vec<SourceUrl>, Vec<Box<[u8]>>) {
    let extension = certificate
        .extensions()
        .iter()
        .find(|extension| extension.oid.to_id_string() == POINTS);
    let mut rest = extension
        .and_then(|extension| Element::only(extension.value)?.content_of(tag::SEQUENCE))
        .unwrap_or_default();
    let (mut addresses, mut names) = (Vec::new(), Vec::new());
    while let Some(point) = Element::take(&mut rest) {
        names.extend(names_of_whole(point.content));
    }
    for name in &names {
        if let Some(Element {
            tag: 0x86, content, ..
        }) = Element::only(name)
            && let Some(address) = std::str::from_utf8(content)
                .ok()
                .and_then(SourceUrl::public)
        {
            addresses.push(address);
        }
    }
    addresses.truncate(MOST);
    (addresses, names)
}

/// The names of a DistributionPoint { [0] name, [1] reasons, [2] cRLIssuer } that has a name and nothing else.
fn names_of_whole(point: &[u8]) -> Vec<Box<[u8]>> {
    match Element::only(point) {
        Some(name) if name.tag == 0xa0 => names_of(name.content),
        _ => Vec::new(),
    }
}
