//! OCSP (RFC 6960): what is asked of a responder, and whether its answer counts.
//!
//! An answer counts where it is signed by the CA that issued the certificate, or by a responder to whom that very CA issued a
//! certificate for id-kp-OCSPSigning, valid now; where it is about this certificate; and where it is not older or younger than it may
//! be. No nonce is sent: answers are made in advance and cached (RFC 5019). OpenSSL verifies. Whether that responder's own certificate
//! is revoked, where its CA does not say that it need not be asked (RFC 6960, 4.2.2.2.1), is judged where the answer is used.

use super::{SourceFault, algorithm, crl::certificate as read_certificate};
use crate::{
    clock::Timestamp,
    trust::der::{Element, tag},
};
use openssl::{
    error::ErrorStack,
    hash::MessageDigest,
    ocsp::{
        OcspBasicResponseRef, OcspCertId, OcspCertStatus, OcspFlag, OcspRequest, OcspResponse,
        OcspResponseStatus,
    },
    stack::Stack,
    x509::{
        X509Ref,
        store::{X509Store, X509StoreBuilder},
        verify::{X509VerifyFlags, X509VerifyParam},
    },
};
use std::time::Duration;
use x509_parser::{
    certificate::X509Certificate,
    der_parser::{Oid, oid},
    prelude::FromDer,
    x509::AlgorithmIdentifier,
};

/// id-pkix-ocsp-nocheck: the certificate of a responder is not to be asked for.
const NO_CHECK: Oid<'static> = oid!(1.3.6.1.5.5.7.48.1.5);

/// As many certificates of an answer are looked at for the one that signed it; answers carry one or two.
const MOST_CERTIFICATES: usize = 4;

/// How far a responder's clock may be ahead, in seconds.
pub(super) const AHEAD: u64 = 300;

/// How long an answer is used, in whatever years its nextUpdate lies (CRT-6); the operator may say otherwise.
pub(super) const MAX_AGE: Duration = Duration::from_secs(7 * 86_400);

/// How long an answer without nextUpdate is used, in seconds: it says that newer ones can be had at any time.
const WITHOUT_NEXT: u64 = 3_600;

/// An answer that counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) this_update: Timestamp,
    /// At the latest [`Response::last_use`].
    pub(super) next_update: Timestamp,
    /// When it is too old for any use but that it revokes.
    pub(super) last_use: Timestamp,
    pub(super) status: Status,
    /// The certificate (DER) of the responder that signed it, where that one may be revoked.
    pub(super) responder: Option<Box<[u8]>>,
}

/// What an answer says of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It is not revoked.
    Good,
    /// It is revoked, since then.
    Revoked(Timestamp),
    /// The responder does not know it: that is not good (CRT-6), whoever else says so.
    Unknown,
}

/// The request about a certificate, DER.
pub(super) fn request(certificate: &X509Ref, issuer: &X509Ref) -> Result<Vec<u8>, ErrorStack> {
    let mut request = OcspRequest::new()?;
    request.add_id(id(certificate, issuer)?)?;
    request.to_der()
}

/// SHA-1 only finds the issuer here: it is the one hash that every responder knows (RFC 5019, 2.1.1), and the signature covers it.
fn id(certificate: &X509Ref, issuer: &X509Ref) -> Result<OcspCertId, ErrorStack> {
    OcspCertId::from_cert(MessageDigest::sha1(), certificate, issuer)
}

/// Reads what a responder said about a certificate; the answer is used for `max_age` at most.
pub(super) fn read(
    bytes: &[u8],
    certificate: &X509Ref,
    issuer: &X509Ref,
    max_age: Duration,
    now: Timestamp,
) -> Result<Response, SourceFault> {
    let openssl = |_: ErrorStack| SourceFault::Invalid("it is no OCSP response");
    let response = OcspResponse::from_der(bytes).map_err(openssl)?;
    if response.status() != OcspResponseStatus::SUCCESSFUL {
        return Err(SourceFault::Invalid(
            "the responder says that it cannot answer",
        ));
    }
    let basic = response.basic().map_err(openssl)?;
    let parts = ResponseParts::of(bytes).ok_or(SourceFault::Invalid("it is no OCSP response"))?;
    if !parts.is_sound() {
        return Err(SourceFault::Invalid(
            "the answer is signed by MD5, SHA-1 or an unknown algorithm",
        ));
    }
    let responder = signer(&basic, &parts, issuer, now)?;
    let id = id(certificate, issuer).map_err(openssl)?;
    let single = basic.find_status(&id).ok_or(SourceFault::Invalid(
        "the answer is about another certificate",
    ))?;
    let time = |shown: String| {
        timestamp(&shown).ok_or(SourceFault::Invalid("a time in the answer cannot be read"))
    };
    let this_update = time(single.this_update.to_string())?;
    let next_update = match single.next_update() {
        Some(next) => time(next.to_string())?,
        None => Timestamp::from_unix(this_update.unix().saturating_add(WITHOUT_NEXT)),
    };
    if this_update.unix() > now.unix().saturating_add(AHEAD) {
        return Err(SourceFault::Invalid("the answer is of the future"));
    }
    let status = match single.status {
        OcspCertStatus::GOOD => Status::Good,
        OcspCertStatus::REVOKED => Status::Revoked(match single.revocation_time {
            Some(since) => time(since.to_string())?,
            None => this_update,
        }),
        _ => Status::Unknown,
    };
    let last_use = Timestamp::from_unix(this_update.unix().saturating_add(max_age.as_secs()));
    Ok(Response {
        this_update,
        next_update: next_update.min(last_use),
        last_use,
        status,
        responder,
    })
}

/// Who signed: `None` for the issuing CA, and for a responder of its whose certificate says that it is not to be asked for.
fn signer(
    basic: &OcspBasicResponseRef,
    parts: &ResponseParts<'_>,
    issuer: &X509Ref,
    now: Timestamp,
) -> Result<Option<Box<[u8]>>, SourceFault> {
    let openssl = |_: ErrorStack| SourceFault::Invalid("OpenSSL cannot verify the answer");
    let store = only(issuer, now).map_err(openssl)?;
    let signed_by = |signer: &X509Ref| {
        let mut known = Stack::new()?;
        known.push(signer.to_owned())?;
        // NO_INTERN: nobody else. NO_EXPLICIT: being trusted for OCSP in general counts for nothing; only this CA and whom it delegated
        // to may answer.
        basic.verify(&known, &store, OcspFlag::NO_INTERN | OcspFlag::NO_EXPLICIT)
    };
    if signed_by(issuer).is_ok() {
        return Ok(None);
    }
    let is_signer =
        |der: &&&[u8]| read_certificate(der).is_ok_and(|responder| signed_by(&responder).is_ok());
    let found = parts.certificates.iter().find(is_signer);
    let der = found.ok_or(SourceFault::Invalid(
        "the answer is not signed by the issuing CA or a responder of its",
    ))?;
    let (_, responder) = X509Certificate::from_der(der)
        .map_err(|_| SourceFault::Invalid("the responder's certificate cannot be read"))?;
    let mut extensions = responder.extensions().iter();
    let unasked = extensions.any(|extension| extension.oid == NO_CHECK);
    Ok((!unasked).then(|| (*der).into()))
}

/// A store in which only the issuing CA is trusted, as of a moment.
fn only(issuer: &X509Ref, now: Timestamp) -> Result<X509Store, ErrorStack> {
    let mut parameters = X509VerifyParam::new()?;
    parameters.set_flags(X509VerifyFlags::PARTIAL_CHAIN)?;
    parameters.set_auth_level(crate::trust::chain::SECURITY_LEVEL);
    parameters.set_time(i64::try_from(now.unix()).unwrap_or(i64::MAX));
    let mut store = X509StoreBuilder::new()?;
    store.set_param(&parameters)?;
    store.add_cert(issuer.to_owned())?;
    Ok(store.build())
}

/// What the openssl crate does not show: OCSPResponse { status, [0] { OID, OCTET STRING } }, and in the octets BasicOCSPResponse {
/// tbsResponseData, signatureAlgorithm, signature, [0] SEQUENCE OF Certificate OPTIONAL }.
struct ResponseParts<'a> {
    algorithm: &'a [u8],
    certificates: Vec<&'a [u8]>,
}

impl<'a> ResponseParts<'a> {
    fn of(response: &'a [u8]) -> Option<Self> {
        let mut whole = Element::only(response)?.content_of(tag::SEQUENCE)?;
        Element::take(&mut whole)?;
        let wrapped = Element::take(&mut whole)?.content_of(0xa0)?;
        let mut typed = Element::only(wrapped)?.content_of(tag::SEQUENCE)?;
        Element::take(&mut typed)?;
        let basic = Element::take(&mut typed)?.content_of(0x04)?;
        let mut basic = Element::only(basic)?.content_of(tag::SEQUENCE)?;
        Element::take(&mut basic)?;
        let algorithm = Element::take(&mut basic)?.whole;
        Element::take(&mut basic)?;
        let mut certificates = Vec::new();
        if let Some(wrapped) = Element::take(&mut basic).and_then(|all| all.content_of(0xa0)) {
            let mut all = Element::only(wrapped)?.content_of(tag::SEQUENCE)?;
            while certificates.len() < MOST_CERTIFICATES
                && let Some(one) = Element::take(&mut all)
            {
                certificates.push(one.whole);
            }
        }
        Some(Self {
            algorithm,
            certificates,
        })
    }

    fn is_sound(&self) -> bool {
        AlgorithmIdentifier::from_der(self.algorithm)
            .is_ok_and(|(_, found)| algorithm::is_sound(&found))
    }
}

/// A time as OpenSSL prints it: `Nov  1 12:00:00 2026 GMT`. The openssl crate has no other way to a GeneralizedTime.
fn timestamp(shown: &str) -> Option<Timestamp> {
    let parsed = jiff::fmt::strtime::parse("%b %d %H:%M:%S %Y GMT", shown).ok()?;
    let seconds = parsed
        .to_datetime()
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()?
        .timestamp()
        .as_second();
    Some(Timestamp::from_unix(u64::try_from(seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_openssl_prints_them() {
        assert_eq!(
            timestamp("Jan  1 00:00:00 2026 GMT"),
            Some(Timestamp::from_unix(1_767_225_600))
        );
        assert_eq!(
            timestamp("Jan 31 00:00:00 2026 GMT"),
            Some(Timestamp::from_unix(1_769_817_600))
        );
        for bad in [
            "",
            "Bad time value",
            "Jan  1 00:00:00 2026",
            "Jan 32 00:00:00 2026 GMT",
        ] {
            assert_eq!(timestamp(bad), None, "{bad}");
        }
    }
}
