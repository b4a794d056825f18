//! Who vouches for the signer of a message: a certificate, CAs, or a configuration.

use super::TppFault;
use crate::{
    admission::Policy,
    config::{self, Settings},
    tools::{input, presented},
    trust::{Anchors, Trust, decode},
};
use base64::prelude::{BASE64_STANDARD, Engine};
use openssl::x509::X509;
use std::path::Path;

/// The trust of the user.
pub(super) struct Vouchers {
    /// The anchors and the criteria; they are the gateway's.
    pub(super) trust: Trust,
    /// What is trusted, for people.
    pub(super) named: String,
    /// The policy of a configuration.
    pub(super) policy: Option<Policy>,
    /// The only certificate that verifies, as a header has it.
    pub(super) presented: Option<Vec<u8>>,
}

impl Vouchers {
    /// The first of these that is named.
    ///
    /// # Errors
    /// A file cannot be read, or none is named.
    pub(super) fn of(
        certificate: Option<&Path>,
        cas: Option<&Path>,
        configuration: Option<&Path>,
    ) -> Result<Self, TppFault> {
        match (certificate, cas, configuration) {
            (Some(path), ..) => Self::of_certificate(path),
            (None, Some(path), _) => Self::of_cas(path),
            (None, None, Some(path)) => {
                let settings = Settings::load(path).map_err(TppFault::Config)?;
                let snapshot = settings.reloadable.snapshot;
                Ok(Self {
                    trust: snapshot.trust.with_revocation(None),
                    named: format!("the anchors of {}", path.display()),
                    policy: Some(snapshot.policy),
                    presented: None,
                })
            }
            (None, None, None) => Err(TppFault::NoCertificate(
                "name the signer's certificate with --cert, or the CAs that you trust with --ca"
                    .into(),
            )),
        }
    }

    /// A certificate is its own anchor: it needs no CA, and every other check stays.
    fn of_certificate(path: &Path) -> Result<Self, TppFault> {
        let unreadable =
            |why: String| TppFault::NoCertificate(format!("{}: {why}", input::name(path)));
        let (certificates, _) =
            presented::read(&input::read(path)?).map_err(|fault| unreadable(fault.to_string()))?;
        let anchor =
            X509::from_der(&certificates.leaf).map_err(|fault| unreadable(fault.to_string()))?;
        Ok(Self {
            trust: trust_in(vec![anchor])?,
            named: format!("the certificate in {}", input::name(path)),
            policy: None,
            presented: Some(BASE64_STANDARD.encode(certificates.leaf).into_bytes()),
        })
    }

    fn of_cas(path: &Path) -> Result<Self, TppFault> {
        let (anchors, faults) = match path.is_dir() {
            true => config::certificates_in(path),
            false => match config::certificates_of(path) {
                Ok(anchors) => (anchors, Vec::new()),
                Err(fault) => (Vec::new(), vec![fault]),
            },
        };
        if !faults.is_empty() || anchors.is_empty() {
            let faults = match faults.is_empty() {
                true => format!("{} holds no certificate", path.display()),
                false => faults.join("\n"),
            };
            return Err(TppFault::NoCertificate(faults));
        }
        Ok(Self {
            trust: trust_in(anchors)?,
            named: format!("the CAs in {}", path.display()),
            policy: None,
            presented: None,
        })
    }

    /// Whether a certificate that the message names is the one that is trusted, or the trust is not in one alone.
    pub(super) fn permits(&self, shown: &[u8]) -> bool {
        let only = self.presented.as_ref();
        only.is_none_or(|only| {
            let leaf = |value: &[u8]| decode::decode(value).ok().map(|found| found.leaf);
            leaf(only).is_some_and(|only| leaf(shown) == Some(only))
        })
    }
}

fn trust_in(anchors: Vec<X509>) -> Result<Trust, TppFault> {
    let anchors = Anchors::of_operator(anchors, Vec::new());
    anchors
        .map(Trust::new)
        .map_err(|fault| TppFault::NoCertificate(format!("OpenSSL does not take it: {fault}")))
}
