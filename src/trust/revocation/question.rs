//! What a source is asked, and what it says.

use super::{
    SourceFault,
    crl::{Crl, Scope, Signers, certificate as read_certificate},
    fetch::SourceUrl,
    ocsp::{self, Status},
    sources::{ChainSources, SourceCache},
};
use crate::clock::Timestamp;
use aws_lc_rs::digest;
use std::{fmt::Write, sync::Arc, time::Duration};

/// What is asked of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// The state of one certificate (DER) of a CA.
    Ocsp {
        certificate: Arc<[u8]>,
        signers: Signers,
    },
    /// The list of a CA.
    Crl { signers: Signers, scope: Scope },
}

/// A question, and where it is answered; `None` for a file of the configuration.
pub(super) type Key = (Option<SourceUrl>, Question);

/// What a source said.
#[derive(Debug)]
pub(super) enum SourceAnswer {
    /// An answer, and where the revocation of the responder's own certificate is known from, where that is to be known.
    Ocsp(ocsp::Response, Option<ChainSources>),
    /// A list, and the same for the key that signed it.
    Crl(Crl, Option<ChainSources>),
}

impl SourceAnswer {
    pub(super) const fn this_update(&self) -> Timestamp {
        match self {
            Self::Ocsp(answer, _) => answer.this_update,
            Self::Crl(list, _) => list.this_update,
        }
    }

    pub(super) const fn next_update(&self) -> Timestamp {
        match self {
            Self::Ocsp(answer, _) => answer.next_update,
            Self::Crl(list, _) => list.next_update,
        }
    }

    /// The last moment at which it can say that a certificate is good, where `stale` is how long it counts beyond its nextUpdate.
    pub(super) fn counts_until(&self, stale: Duration) -> Timestamp {
        let until = self.next_update().unix().saturating_add(stale.as_secs());
        match self {
            Self::Ocsp(answer, _) => Timestamp::from_unix(until).min(answer.last_use),
            Self::Crl(..) => Timestamp::from_unix(until),
        }
    }

    /// What it says of a certificate.
    pub(super) fn status(&self, serial: &[u8]) -> Status {
        match self {
            Self::Ocsp(answer, _) => answer.status,
            Self::Crl(list, _) => match list.revoked(serial) {
                Some(since) => Status::Revoked(since),
                None => Status::Good,
            },
        }
    }

    /// Whether it is an answer of this status.
    pub(super) fn answers(&self, is_status: impl Fn(Status) -> bool) -> bool {
        matches!(self, Self::Ocsp(answer, _) if is_status(answer.status))
    }

    /// The name of the issuer, where it is a list.
    pub(super) fn list_of(&self) -> Option<&str> {
        match self {
            Self::Ocsp(..) => None,
            Self::Crl(list, _) => Some(&list.issuer_name),
        }
    }

    /// Where the revocation of the one who signed it is known from; `None` for the issuing CA's very key.
    pub(super) const fn signer(&self) -> Option<&ChainSources> {
        match self {
            Self::Ocsp(_, signer) | Self::Crl(_, signer) => signer.as_ref(),
        }
    }
}

impl Question {
    /// The name of its copy on disk: of the address, of the question, and of whom it is about.
    pub(super) fn copy_name(&self, address: Option<&SourceUrl>) -> String {
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut add = |part: &[u8]| {
            hash.update(&part.len().to_be_bytes());
            hash.update(part);
        };
        add(address
            .map(ToString::to_string)
            .unwrap_or_default()
            .as_bytes());
        let suffix = match self {
            Self::Ocsp {
                certificate,
                signers,
            } => {
                add(signers.issuer_der());
                add(certificate);
                "ocsp"
            }
            Self::Crl { signers, scope } => {
                add(signers.issuer_der());
                add(&[u8::from(scope.of_ca)]);
                scope.points.iter().for_each(|point| add(point));
                "crl"
            }
        };
        let digest = hash.finish();
        let mut name = String::new();
        for byte in digest.as_ref() {
            let _ = write!(name, "{byte:02x}");
        }
        format!("{name}.{suffix}")
    }

    /// Reads what was fetched or kept, and judges whether it counts.
    pub(super) fn read(
        &self,
        bytes: &[u8],
        cache: &SourceCache,
        now: Timestamp,
    ) -> Result<SourceAnswer, SourceFault> {
        match self {
            Self::Ocsp {
                certificate,
                signers,
            } => {
                let (certificate, issuer) = (read_certificate(certificate)?, signers.issuer()?);
                let max_age = cache.settings().ocsp_max_age;
                let answer = ocsp::read(bytes, &certificate, &issuer, max_age, now)?;
                let own = answer.responder.as_deref();
                let own = own
                    .map(|own| cache.of_responder(own, &issuer))
                    .transpose()?;
                Ok(SourceAnswer::Ocsp(answer, own))
            }
            Self::Crl { signers, scope } => {
                let list = Crl::read(bytes, signers, scope)?;
                if list.this_update.unix() > now.unix().saturating_add(ocsp::AHEAD) {
                    return Err(SourceFault::Invalid("the CRL is of the future"));
                }
                cache.vouched(list)
            }
        }
    }
}
