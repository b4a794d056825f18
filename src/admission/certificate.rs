//! The identity of the caller (CRT-1 to CRT-4, CRT-9, CRT-10).

use super::{Head, Rates};
use crate::{
    clock::Timestamp,
    interface::{Fault, Reason, Refusal, TppId, headers},
    trust::{
        Certificate, CertificateFault, CertificateLookup, ClientChain, IdentifiedCertificate,
        MAX_PRESENTED, Member, Trust, claimed,
    },
};
use std::sync::Arc;

/// The proof that the caller sent a TPP's certificate. Only the signature proves that the caller is this TPP.
#[must_use]
#[derive(Debug)]
pub struct Tpp {
    identified: IdentifiedCertificate,
}

impl Tpp {
    /// The sender of a message beside a running gateway.
    pub(super) const fn of(identified: IdentifiedCertificate) -> Self {
        Self { identified }
    }

    /// The certificate.
    pub const fn certificate(&self) -> &Arc<Certificate> {
        self.identified.certificate()
    }

    /// The certificate, with the cache key under which it was found.
    pub(super) const fn identified(&self) -> &IdentifiedCertificate {
        &self.identified
    }
}

/// A cached certificate costs a lookup. Any other certificate costs the construction of a chain, which has a rate limit.
pub(super) fn identify(
    head: &Head<'_>,
    trust: &Trust,
    rates: &Rates,
    now: Timestamp,
) -> Result<Tpp, Refusal> {
    let header = &headers::TPP_SIGNATURE_CERTIFICATE;
    // The envelope reports this too, but its fault may be observed.
    let value = header.get_filled(&head.fields).ok_or_else(|| {
        let text = "missing or empty: nothing identifies the sender";
        Refusal::from(Fault::header(Reason::HeaderMissing, header.written, text))
    })?;
    let presented = headers::trim(value.as_bytes());
    if presented.len() > MAX_PRESENTED {
        let text = "it is longer than 16 KiB";
        return Err(Fault::header(Reason::HeadersTooLarge, header.written, text).into());
    }
    let found = trust.find(presented, head.slot, now);
    let identified = match found.map_err(|fault| refuse(&fault))? {
        CertificateLookup::Cached(identified) => identified,
        CertificateLookup::Unproven(candidate) => {
            rates.chain(head.peer)?;
            let chained = trust.chain(candidate, now);
            chained.map_err(|fault| refuse(&fault))?
        }
    };
    Ok(Tpp { identified })
}

/// The longest identity of a certificate that was not accepted. Its maker chooses it, and it stands in logs.
const MAX_CLAIMED: usize = 64;

/// The TPP that the request's certificate names, whether or not the certificate is valid; `None` unless it names exactly one, of a length
/// that TPPs have. This proves nothing: anybody can make a certificate with any name.
pub(super) fn claimed_tpp(head: &Head<'_>) -> Option<TppId> {
    let mut named = signing_claims(head).into_iter();
    let claimed = named.next().filter(|_| named.next().is_none());
    claimed.filter(|tpp| tpp.as_str().len() <= MAX_CLAIMED)
}

/// Every TPP that a certificate of the request names, whether or not the certificate is valid: TPP-Signature-Certificate, and that of the
/// TLS connection.
pub(super) fn claims(head: &Head<'_>) -> Vec<TppId> {
    let mut named = signing_claims(head);
    named.extend(head.client.into_iter().flat_map(ClientChain::claimed));
    named
}

fn signing_claims(head: &Head<'_>) -> Vec<TppId> {
    let value = headers::TPP_SIGNATURE_CERTIFICATE.get_filled(&head.fields);
    let presented = value.map(|value| headers::trim(value.as_bytes()));
    let presented = presented.filter(|presented| presented.len() <= MAX_PRESENTED);
    presented.map_or_else(Vec::new, claimed::in_header)
}

fn refuse(found: &CertificateFault) -> Refusal {
    // OpenSSL's text about a chain is for the operator only, because it can name our anchors.
    if let CertificateFault::Untrusted(why) = found {
        return Refusal::new(found.reason()).for_operator(why.clone());
    }
    let header = headers::TPP_SIGNATURE_CERTIFICATE.written;
    let refusal = Refusal::from(Fault::header(found.reason(), header, said(found)));
    match found {
        CertificateFault::Path(fault) => refusal.for_operator(fault.to_string()),
        _ => refusal,
    }
}

/// The text for the caller.
pub fn said(found: &CertificateFault) -> String {
    match found {
        CertificateFault::Malformed(why) => {
            format!("{why}; send the base64 of the DER certificate, and nothing else")
        }
        CertificateFault::NotDer(why) => format!("{why}; send the certificate as its CA issued it"),
        CertificateFault::Weak(why) => {
            format!("{why}; RSA of 2048 to 4096 bits with an odd exponent of 65537 to 2^32 passes")
        }
        CertificateFault::Untrusted(why) => why.clone(),
        CertificateFault::Path(fault) => fault.for_caller().to_owned(),
        CertificateFault::OfCa => "it is the certificate of a CA: send the TPP's own".to_owned(),
        CertificateFault::Expired(at, member) => {
            format!("{} ended at {}", of(*member), headers::date::format(*at))
        }
        CertificateFault::NotYetValid(at, member) => {
            format!("{} begins at {}", of(*member), headers::date::format(*at))
        }
        CertificateFault::WrongType(why) | CertificateFault::Unqualified(why) => (*why).to_owned(),
        CertificateFault::Ungranted => found.to_string(),
        CertificateFault::NotPsd2(why) => why.clone().into_owned(),
    }
}

const fn of(member: Member) -> &'static str {
    match member {
        Member::Leaf => "it",
        Member::Above => "a certificate above it in its chain",
    }
}
