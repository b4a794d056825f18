//! Who is it (CRT-1 to CRT-4, CRT-9, CRT-10)?

use super::Head;
use crate::{
    clock::Timestamp,
    interface::{Fault, Refusal, headers},
    trust::{Certificate, CertificateFault, Trust},
};
use std::sync::Arc;

/// The caller shows a TPP's certificate. That the caller *is* this TPP only the signature shows.
#[must_use]
#[derive(Debug)]
pub struct Tpp {
    certificate: Arc<Certificate>,
}

impl Tpp {
    /// The certificate.
    pub const fn certificate(&self) -> &Arc<Certificate> {
        &self.certificate
    }
}

pub(super) fn identify(head: &Head<'_>, trust: &Trust, now: Timestamp) -> Result<Tpp, Refusal> {
    let presented = headers::TPP_SIGNATURE_CERTIFICATE
        .get(head.headers)
        .map(|value| headers::trim(value.as_bytes()))
        .unwrap_or_default();
    let certificate = trust
        .identify(presented, head.slot, now)
        .map_err(|fault| refuse(&fault))?;
    Ok(Tpp { certificate })
}

fn refuse(found: &CertificateFault) -> Refusal {
    let text = match found {
        CertificateFault::Malformed(why) => {
            format!("{why}; send the base64 of the DER certificate, and nothing else")
        }
        CertificateFault::Weak(why) => {
            format!("{why}; RSA of 2048 to 4096 bits with an odd exponent of 65537 to 2^32 passes")
        }
        // What OpenSSL says of a chain is the operator's: it can tell of our anchors.
        CertificateFault::Untrusted(why) => {
            return Refusal::new(found.reason()).for_operator(why.clone());
        }
        CertificateFault::Expired(at) => format!("it ended at {}", headers::date::format(*at)),
        CertificateFault::NotYetValid(at) => {
            format!("it begins at {}", headers::date::format(*at))
        }
        CertificateFault::WrongType(why) | CertificateFault::NotPsd2(why) => (*why).to_owned(),
    };
    let header = headers::TPP_SIGNATURE_CERTIFICATE.written;
    Fault::header(found.reason(), header, text).into()
}
