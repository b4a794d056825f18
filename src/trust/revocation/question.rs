//! Questions to revocation sources, and their answers.

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

/// A question to a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// The OCSP status of one certificate (DER) of a CA.
    Ocsp {
        certificate: Arc<[u8]>,
        signers: Signers,
    },
    /// The CRL of a CA.
    Crl { signers: Signers, scope: Scope },
}

/// A question and the address of its source; `None` for a file of the configuration.
pub(super) type Key = (Option<SourceUrl>, Question);

/// The answer of a source.
#[derive(Debug)]
pub(super) enum SourceAnswer {
    /// An OCSP response, with the sources of the responder's certificate if its status must be checked.
    Ocsp(ocsp::Response, Option<ChainSources>),
    /// A CRL, with the sources of its signer if another key of the CA signed it.
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

    /// The last second at which the answer can count as "good"; `stale` is how long an answer counts after its nextUpdate.
    pub(super) fn counts_until(&self, stale: Duration) -> Timestamp {
        let until = self.next_update().unix().saturating_add(stale.as_secs());
        match self {
            Self::Ocsp(answer, _) => Timestamp::from_unix(until).min(answer.last_use),
            Self::Crl(..) => Timestamp::from_unix(until),
        }
    }

    /// The status of a certificate in the answer.
    pub(super) fn status(&self, serial: &[u8]) -> Status {
        match self {
            Self::Ocsp(answer, _) => answer.status,
            Self::Crl(list, _) => match list.revoked(serial) {
                Some(since) => Status::Revoked(since),
                None => Status::Good,
            },
        }
    }

    /// Whether the answer is an OCSP response with such a status.
    pub(super) fn answers(&self, is_status: impl Fn(Status) -> bool) -> bool {
        matches!(self, Self::Ocsp(answer, _) if is_status(answer.status))
    }

    /// The name of the issuer of a CRL; `None` for an OCSP response.
    pub(super) fn list_of(&self) -> Option<&str> {
        match self {
            Self::Ocsp(..) => None,
            Self::Crl(list, _) => Some(&list.issuer_name),
        }
    }

    /// The sources of the signer; `None` if the key of the issuing certificate signed the answer.
    pub(super) const fn signer(&self) -> Option<&ChainSources> {
        match self {
            Self::Ocsp(_, signer) | Self::Crl(_, signer) => signer.as_ref(),
        }
    }
}

impl Question {
    /// The file name of the copy on disk: a hash of the address and the question.
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

    /// Parses and verifies an answer that was fetched or read from disk.
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
