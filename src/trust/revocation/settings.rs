//! The settings of the revocation check.

use super::{fetch::SourceUrl, ocsp};
use openssl::x509::X509;
use portvakt_base::network::Network;
use std::{path::PathBuf, time::Duration};

/// The settings of the revocation check.
#[derive(Debug)]
pub struct RevocationSettings {
    /// How long an answer is used after its nextUpdate, while the source has no newer one.
    pub stale: Duration,
    /// The maximum age of an OCSP answer; it limits nextUpdate and `stale` (CRT-6).
    pub ocsp_max_age: Duration,
    /// The folder for copies of answers, which a restart reads; `None` to keep no copies.
    pub copies: Option<PathBuf>,
    /// Networks that may be called although they are not public.
    pub private_addresses: Vec<Network>,
    /// The addresses for the certificates of an issuer, which replace those in the certificates.
    pub addresses: Vec<IssuerAddresses>,
    /// Lists from files, PEM or DER.
    pub lists: Vec<Vec<u8>>,
}

impl Default for RevocationSettings {
    fn default() -> Self {
        Self {
            stale: Duration::ZERO,
            ocsp_max_age: ocsp::MAX_AGE,
            copies: None,
            private_addresses: Vec::new(),
            addresses: Vec::new(),
            lists: Vec::new(),
        }
    }
}

/// The addresses of an issuer, instead of those in the certificates that it issued.
#[derive(Debug)]
pub struct IssuerAddresses {
    /// The issuer.
    pub issuer: X509,
    /// The OCSP responders of the issuer; `None` for those in the certificates, empty for no responder.
    pub ocsp: Option<Vec<SourceUrl>>,
    /// The addresses of its CRLs; `None` for those in the certificates, empty for no CRL.
    pub crl: Option<Vec<SourceUrl>>,
}
