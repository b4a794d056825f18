//! The revocation status of the certificate and of those above it (CRT-6, CRT-11).
//!
//! This check follows the signature, so that only a caller who has proven to hold the key makes the gateway fetch and wait. Every member of
//! the chain is judged at the time of the request, from the last answers of its sources (CRT-12).

use super::{Policy, Tpp, WhenUnknown};
use crate::{
    clock::Timestamp,
    interface::{Fault, Reason, Refusal, headers, operations::Operation},
    trust::{
        Qwac, Revocation,
        revocation::{ChainSources, RevocationStatus},
    },
};

/// The proof that no member of the chain is known to be revoked.
#[must_use]
#[derive(Debug)]
pub struct Unrevoked {
    known: bool,
}

impl Unrevoked {
    /// Whether the status of every member is known; false if the policy tolerated an unknown one.
    pub const fn is_known(&self) -> bool {
        self.known
    }
}

pub(super) async fn judge(
    tpp: &Tpp,
    qwac: Option<&Qwac>,
    operation: &Operation,
    policy: &Policy,
    revocation: &Revocation,
    now: Timestamp,
) -> Result<Unrevoked, Refusal> {
    let qwac = async {
        match qwac {
            Some(qwac) => standing(revocation, qwac.sources(), now).await,
            None => RevocationStatus::Good,
        }
    };
    // Both chains are judged concurrently: a request waits for one fetch only (CRT-11).
    let own = standing(revocation, tpp.certificate().sources(), now);
    let (own, qwac) = tokio::join!(own, qwac);
    match own.worse(qwac) {
        RevocationStatus::Good => Ok(Unrevoked { known: true }),
        RevocationStatus::Revoked { depth, since } => Err(revoked(depth, since)),
        // "Revoked" from one source outweighs "good" from another. `open` applies only after a fetch has failed; before, nobody passes.
        RevocationStatus::Awaited { depth } => {
            let text = format!(
                "a source that says whether the certificate at depth {depth} is revoked has not answered yet"
            );
            Err(Refusal::new(Reason::RevocationUnavailable).for_operator(text))
        }
        RevocationStatus::Unknown { depth } => match policy.when_unknown(operation) {
            WhenUnknown::Open => {
                revocation.let_pass();
                Ok(Unrevoked { known: false })
            }
            WhenUnknown::Closed => {
                revocation.refuse(now);
                let text =
                    format!("no source says whether the certificate at depth {depth} is revoked");
                Err(Refusal::new(Reason::RevocationUnavailable).for_operator(text))
            }
        },
    }
}

/// The status of a chain. A certificate that was judged with a revocation check has sources; the status of one without sources is unknown.
async fn standing(
    revocation: &Revocation,
    sources: Option<&ChainSources>,
    now: Timestamp,
) -> RevocationStatus {
    match sources {
        Some(sources) => revocation.judge(sources, now).await,
        None => RevocationStatus::Unknown { depth: 0 },
    }
}

fn revoked(depth: usize, since: Timestamp) -> Refusal {
    let whose = if depth == 0 {
        "its issuer revoked it"
    } else {
        "the certificate of a CA above it was revoked"
    };
    let text = format!("{whose} at {}", headers::date::format(since));
    let header = headers::TPP_SIGNATURE_CERTIFICATE.written;
    Fault::header(Reason::CertificateRevoked, header, text).into()
}
