//! TLS to the endpoints of an upstream group: the key `tls`.
//!
//! Invariant: a certificate of an endpoint is always verified, against the listed CAs only and a name. Deliberately not here: the
//! handshake.

use super::super::identity::{Identity, identity, warn_of_all};
use super::super::pem;
use super::super::section::Section;
use crate::expiring::Expiring;
use crate::hsm::Purpose;
use openssl::x509::X509;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The consequence of CAs that have ended.
const REFUSED: &str = ": every endpoint of the group is refused";

/// TLS to the endpoints of a group.
#[derive(Clone)]
pub struct UpstreamTls {
    /// The settings of the client: TLS 1.2 and 1.3, the CAs, the client certificate.
    pub client: Arc<ClientConfig>,
    /// The name that a certificate must have, and that is sent as SNI; `None` for the name or address of each endpoint.
    pub name: Option<ServerName<'static>>,
    /// The hash of all the above: equal settings have equal hashes.
    fingerprint: [u8; 32],
}

/// Equal if connections under the one may be used under the other.
impl PartialEq for UpstreamTls {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for UpstreamTls {}

impl fmt::Debug for UpstreamTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamTls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl UpstreamTls {
    /// Reads the section; `None` if there is none, or after a fault.
    pub(super) fn read(group: &mut Section<'_>, base: &Path) -> Option<Self> {
        let mut section = group.optional_section("tls")?;
        let ca = section.required("ca").and_then(|value| {
            let path = value.path(base)?;
            let found = pem::certificates(&path);
            let found = found.map_err(|text| value.fault(text)).ok()?;
            warn_of_all(
                &value,
                Expiring::UpstreamCa,
                path.display().to_string(),
                &found,
                REFUSED,
            );
            Some(found)
        });
        let name = section.optional("name").and_then(|value| {
            let text = value.as_str()?;
            let name = ServerName::try_from(text.to_owned());
            name.or_else(|_| {
                value
                    .refuse("a host name such as core.bank.internal")
                    .ok_or(())
            })
            .ok()
        });
        let has_identity = section.has("certificate") || section.has("key");
        let own = has_identity.then(|| {
            let purpose = Some(Purpose::Upstream);
            identity(&mut section, base, Expiring::Upstream, purpose)
        });
        let built = match (&ca, &own) {
            (Some(ca), None) => Some(client(ca, None)),
            (Some(ca), Some(Some(own))) => Some(client(ca, Some(&own.certified))),
            _ => None,
        };
        let client = built.and_then(|built| {
            built
                .map_err(|text| section.fault("ca", text))
                .ok()
                .map(Arc::new)
        });
        section.finish();
        let (ca, own) = (ca?, own.flatten());
        let fingerprint = fingerprint(&ca, name.as_ref(), own.as_ref());
        Some(Self {
            client: client?,
            name,
            fingerprint,
        })
    }
}

/// The settings of a client that trusts these CAs only.
fn client(ca: &[X509], own: Option<&Arc<CertifiedKey>>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in ca {
        let der = certificate.to_der().map_err(|error| pem::reason(&error))?;
        roots
            .add(CertificateDer::from(der))
            .map_err(|error| format!("TLS does not accept the certificate: {error}"))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(pem::provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut client = match own {
        Some(own) => builder
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(CertifiedKey::clone(own)))),
        None => builder.with_no_client_auth(),
    };
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(client)
}

/// The hash of everything that a connection depends on. A key in a file is that of the certificate.
fn fingerprint(ca: &[X509], name: Option<&ServerName<'_>>, own: Option<&Identity>) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update(bytes.len().to_be_bytes());
        hash.update(bytes);
    };
    for certificate in ca {
        add(&certificate.to_der().unwrap_or_default());
    }
    add(b"");
    add(name.map(ServerName::to_str).unwrap_or_default().as_bytes());
    if let Some(own) = own {
        add(&own.hsm.map_or(0, |key| key.id).to_be_bytes());
        for certificate in &own.certified.cert {
            add(certificate);
        }
    }
    hash.finalize().into()
}
