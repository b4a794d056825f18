//! The certificate of a caller's TLS connection, a QWAC, where the listener asks for one (TLS-3).
//!
//! That its key is the caller's the handshake has shown. Whose it is, and whether it holds now, is judged here at every request, by
//! the rules that sealing certificates are judged by: chain, validity, statements and PSD2 identity. Only its key may be of any kind
//! that TLS takes and OpenSSL does not call weak, since nobody verifies a signature of a request by it.

use super::{
    Anchors, CertificateFault, Trust, Validity, chain, judgement,
    revocation::ChainSources,
    tolerance::{Tolerance, Tolerated},
};
use crate::clock::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};

/// A certificate, and what came with it, as a connection showed them.
#[derive(Debug)]
pub struct ClientChain {
    leaf: Vec<u8>,
    pool: Vec<Vec<u8>>,
    judged: Mutex<Option<QwacVerdict>>,
}

/// What was found last.
#[derive(Debug)]
struct QwacVerdict {
    /// Of the trust that it was found by (CRT-12).
    generation: u64,
    at: Timestamp,
    found: Result<Arc<Qwac>, CertificateFault>,
}

/// A QWAC that chains to an anchor.
#[derive(Debug)]
pub struct Qwac {
    tpp_id: String,
    validity: Vec<Validity>,
    sources: Option<ChainSources>,
}

impl ClientChain {
    /// The chain that a handshake brought, DER, the caller's own certificate first; `None` where it brought none.
    pub fn new<'a>(chain: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut chain = chain.into_iter().map(<[u8]>::to_vec);
        Some(Self {
            leaf: chain.next()?,
            pool: chain.take(super::decode::MAX_CERTIFICATES - 1).collect(),
            judged: Mutex::new(None),
        })
    }

    /// Judged once for as long as it is valid. A refusal is good for the second that it was made in: a stranger costs no chain for
    /// each request.
    pub(super) fn judge(
        &self,
        trust: &Trust,
        now: Timestamp,
    ) -> Result<Arc<Qwac>, CertificateFault> {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = judged.as_ref().filter(|last| last.holds(trust, now)) {
            return last.found.clone();
        }
        let found = Qwac::judge(self, trust, now).map(Arc::new);
        *judged = Some(QwacVerdict {
            generation: trust.generation,
            at: now,
            found: found.clone(),
        });
        found
    }
}

impl QwacVerdict {
    fn holds(&self, trust: &Trust, now: Timestamp) -> bool {
        self.generation == trust.generation
            && match &self.found {
                Ok(qwac) => judgement::validity(&qwac.validity, now).is_ok(),
                Err(_) => self.at == now,
            }
    }
}

impl Qwac {
    /// Whose it is: the organizationIdentifier, upper-cased and trimmed (CRT-4).
    pub fn tpp_id(&self) -> &str {
        &self.tpp_id
    }

    /// Where its revocation is known from.
    pub(crate) const fn sources(&self) -> Option<&ChainSources> {
        self.sources.as_ref()
    }

    fn judge(shown: &ClientChain, trust: &Trust, now: Timestamp) -> Result<Self, CertificateFault> {
        let (certificate, rest) = judgement::read(&shown.leaf)?;
        judgement::ends(rest)?;
        judgement::algorithms_agree(&certificate)?;
        judgement::is_no_ca(&certificate)?;
        let anchors: &Anchors = trust.client_anchors.as_ref().unwrap_or(&trust.anchors);
        let members = anchors.members(&shown.leaf, &shown.pool, now)?;
        let validity = chain::validity(&members)?;
        judgement::validity(&validity, now)?;
        let mut tolerance = Tolerance::of(trust.policy);
        let statements = judgement::statements_by(&certificate, &mut tolerance)?;
        if !tolerance.used().contains(Tolerated::StatementUnwrapped) {
            judgement::qualified(&statements)?;
            judgement::web(&statements)?;
        }
        judgement::psd2_by(&statements, &mut tolerance)?;
        Ok(Self {
            tpp_id: judgement::tpp_id(&certificate)?,
            sources: trust.sources(anchors, &members, now)?,
            validity,
        })
    }
}
