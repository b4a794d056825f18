//! Answers of sources.

use super::{
    crl::Crl,
    ocsp::{Response, Status},
    sources::ChainSources,
};
use portvakt_base::clock::Timestamp;
use std::time::Duration;

/// The answer of a source.
#[derive(Debug)]
pub(super) enum SourceAnswer {
    /// An OCSP response, with the sources of the responder's certificate if its status must be checked.
    Ocsp(Response, Option<ChainSources>),
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

    /// Whether only the last quarter of its period is left, which no answer sees that is refreshed: that happens at half of the period.
    pub(super) fn is_late(&self, now: Timestamp) -> bool {
        let (from, to) = (self.this_update().unix(), self.next_update().unix());
        now.unix() > to.saturating_sub(to.saturating_sub(from) / 4)
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
