//! The certificate of the TLS connection, compared with the TPP that signed (TLS-3).

use super::{Head, Signed, Snapshot, Tpp, certificate::said};
use crate::{
    clock::Timestamp,
    interface::{Fault, Reason, Refusal},
    trust::{CertificateFault, Qwac},
};
use std::sync::Arc;

/// TLS-3: a caller with a QWAC must sign as the TPP in the QWAC; `None` if the client sent no certificate. A chain that is not known
/// counts in the rates of chains, and is built only for a caller whose signature verified.
pub(super) fn judge(
    head: &Head<'_>,
    tpp: &Tpp,
    _signed: &Signed,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<Option<Arc<Qwac>>, Refusal> {
    let Some(shown) = head.client else {
        return Ok(None);
    };
    let certificate = tpp.certificate();
    let judged = match snapshot.trust.known_qwac(shown, now) {
        Some(known) => Ok(known),
        None => {
            snapshot.rates.chain(head.peer)?;
            snapshot.trust.qwac(shown, now)
        }
    };
    let qwac = judged.map_err(|fault| {
        let text = match &fault {
            CertificateFault::Untrusted(_) => "it leads to no trust anchor".to_owned(),
            _ => said(&fault),
        };
        let text = format!("of the certificate of the TLS connection: {text}");
        Refusal::from(Fault::request(fault.reason(), text)).for_operator(fault.to_string())
    })?;
    if qwac.tpp_id() == certificate.tpp_id() {
        return Ok(Some(qwac));
    }
    let text = format!(
        "the TLS connection is that of {}, and the signing certificate that of {}",
        qwac.tpp_id(),
        certificate.tpp_id()
    );
    Err(Fault::request(Reason::CertificateIdentityMismatch, text).into())
}
