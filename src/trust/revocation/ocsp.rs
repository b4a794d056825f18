//! OCSP (RFC 6960): the request, and the verification of the response.
//!
//! A response is valid if the issuing CA signed it, or a responder with a valid certificate for id-kp-OCSPSigning from the same CA; if it
//! is about this certificate; and if its times are in range. The request has no nonce, because responders sign in advance and cache
//! (RFC 5019). OpenSSL verifies the signature. The revocation status of the responder's certificate, unless it has id-pkix-ocsp-nocheck
//! (RFC 6960, 4.2.2.2.1), is judged each time the response is used.

use super::{SourceFault, algorithm, crl::certificate as read_certificate};
use crate::{
    Validity,
    der::{Element, tag},
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
use portvakt_base::clock::Timestamp;
use std::time::Duration;
use x509_parser::{
    certificate::X509Certificate,
    der_parser::{Oid, oid},
    prelude::FromDer,
    x509::AlgorithmIdentifier,
};

/// id-pkix-ocsp-nocheck: the revocation of the responder's certificate is not checked.
const NO_CHECK: Oid<'static> = oid!(1.3.6.1.5.5.7.48.1.5);

/// The maximum number of certificates in a response that are tried as its signer; responses have one or two.
const MOST_CERTIFICATES: usize = 4;

/// The tolerance for a responder's clock that is ahead, in seconds.
pub(super) const AHEAD: u64 = 300;

/// The default maximum age of a response; it limits nextUpdate (CRT-6).
pub(super) const MAX_AGE: Duration = Duration::from_secs(7 * 86_400);

/// How long a response without nextUpdate is used, in seconds. It means that newer information is always available (RFC 6960,
/// 4.2.2.1).
const WITHOUT_NEXT: u64 = 3_600;

/// A verified OCSP response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) this_update: Timestamp,
    /// At the latest [`Response::last_use`].
    pub(super) next_update: Timestamp,
    /// The last time of use for a status other than revoked.
    pub(super) last_use: Timestamp,
    pub(super) status: Status,
    /// The signer's certificate (DER), if its revocation status must be checked.
    pub(super) responder: Option<Box<[u8]>>,
    /// The end of the signer's certificate.
    signer_end: Timestamp,
}

/// The status of a certificate in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The certificate is not revoked.
    Good,
    /// The certificate is revoked, with the revocation date.
    Revoked(Timestamp),
    /// The responder does not know the certificate. The status is then not good, even if a CRL says so (CRT-6).
    Unknown,
}

/// The OCSP request for a certificate, DER.
pub(super) fn request(certificate: &X509Ref, issuer: &X509Ref) -> Result<Vec<u8>, ErrorStack> {
    let mut request = OcspRequest::new()?;
    request.add_id(id(certificate, issuer)?)?;
    request.to_der()
}

/// SHA-1 only identifies the issuer: all responders support it (RFC 5019, 2.1.1), and the signature covers the identifier.
fn id(certificate: &X509Ref, issuer: &X509Ref) -> Result<OcspCertId, ErrorStack> {
    OcspCertId::from_cert(MessageDigest::sha1(), certificate, issuer)
}

/// The identifier by SHA-256, which some responders use (RFC 9654).
fn id_by_sha256(certificate: &X509Ref, issuer: &X509Ref) -> Result<OcspCertId, ErrorStack> {
    OcspCertId::from_cert(MessageDigest::sha256(), certificate, issuer)
}

/// Parses and verifies the response about a certificate, for use during at most `max_age`.
pub(super) fn read(
    bytes: &[u8],
    certificate: &X509Ref,
    issuer: &X509Ref,
    max_age: Duration,
    now: Timestamp,
) -> Result<Response, SourceFault> {
    read_at(bytes, certificate, issuer, max_age, |_| now)
}

/// Parses and verifies a good response about a certificate of the gateway itself. Returns the period in which clients accept the
/// response. The signature is verified at thisUpdate, so that the result does not depend on the current time.
pub(super) fn read_own(
    bytes: &[u8],
    certificate: &X509Ref,
    issuer: &X509Ref,
) -> Result<Validity, SourceFault> {
    let at = |this_update| this_update;
    let response = read_at(bytes, certificate, issuer, Duration::MAX, at)?;
    match response.status {
        Status::Good => Ok(Validity {
            not_before: response.this_update,
            not_after: response.next_update.min(response.signer_end),
        }),
        Status::Revoked(_) => Err(SourceFault::Invalid(
            "it says that the certificate is revoked",
        )),
        Status::Unknown => Err(SourceFault::Invalid(
            "it says that the responder does not know the certificate",
        )),
    }
}

/// The same as [`read`] at a time that depends on thisUpdate.
fn read_at(
    bytes: &[u8],
    certificate: &X509Ref,
    issuer: &X509Ref,
    max_age: Duration,
    at: impl FnOnce(Timestamp) -> Timestamp,
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
    let ids = [
        id(certificate, issuer).map_err(openssl)?,
        id_by_sha256(certificate, issuer).map_err(openssl)?,
    ];
    let single = ids.iter().find_map(|id| basic.find_status(id));
    let single = single.ok_or(SourceFault::Invalid(
        "the answer is about another certificate",
    ))?;
    let time = |shown: String| {
        timestamp(&shown).ok_or(SourceFault::Invalid("a time in the answer cannot be read"))
    };
    let this_update = time(single.this_update.to_string())?;
    let now = at(this_update);
    let Signer { responder, end } = signer(&basic, &parts, issuer, now)?;
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
        signer_end: end,
    })
}

/// The signer of a response.
struct Signer {
    /// Its certificate (DER); `None` for the issuing CA and for a responder with id-pkix-ocsp-nocheck.
    responder: Option<Box<[u8]>>,
    /// The end of its certificate.
    end: Timestamp,
}

/// Finds the signer: the issuing CA, or a responder of it.
fn signer(
    basic: &OcspBasicResponseRef,
    parts: &ResponseParts<'_>,
    issuer: &X509Ref,
    now: Timestamp,
) -> Result<Signer, SourceFault> {
    let openssl = |_: ErrorStack| SourceFault::Invalid("OpenSSL cannot verify the answer");
    let store = only(issuer, now).map_err(openssl)?;
    let signed_by = |signer: &X509Ref| {
        let mut known = Stack::new()?;
        known.push(signer.to_owned())?;
        // NO_INTERN: no other certificate may be the signer. NO_EXPLICIT: general trust for OCSP does not count; only this CA and its
        // delegated responders may sign.
        basic.verify(&known, &store, OcspFlag::NO_INTERN | OcspFlag::NO_EXPLICIT)
    };
    let end = |certificate: &X509Ref| {
        let shown = certificate.not_after().to_string();
        timestamp(&shown).ok_or(SourceFault::Invalid("the end of its signer cannot be read"))
    };
    if signed_by(issuer).is_ok() {
        return Ok(Signer {
            responder: None,
            end: end(issuer)?,
        });
    }
    let mut found = parts.certificates.iter().filter_map(|der| {
        let responder = read_certificate(der).ok()?;
        signed_by(&responder).ok()?;
        Some((*der, responder))
    });
    let (der, certificate) = found.next().ok_or(SourceFault::Invalid(
        "the answer is not signed by the issuing CA or a responder of its",
    ))?;
    let (_, responder) = X509Certificate::from_der(der)
        .map_err(|_| SourceFault::Invalid("the responder's certificate cannot be read"))?;
    let mut extensions = responder.extensions().iter();
    let unasked = extensions.any(|extension| extension.oid == NO_CHECK);
    Ok(Signer {
        responder: (!unasked).then(|| der.into()),
        end: end(&certificate)?,
    })
}

/// A store in which only the issuing CA is trusted, with the verification time `now`.
fn only(issuer: &X509Ref, now: Timestamp) -> Result<X509Store, ErrorStack> {
    let mut parameters = X509VerifyParam::new()?;
    parameters.set_flags(X509VerifyFlags::PARTIAL_CHAIN)?;
    parameters.set_auth_level(crate::path::SECURITY_LEVEL);
    parameters.set_time(i64::try_from(now.unix()).unwrap_or(i64::MAX));
    let mut store = X509StoreBuilder::new()?;
    store.set_param(&parameters)?;
    store.add_cert(issuer.to_owned())?;
    Ok(store.build())
}

/// The parts of a response that the openssl crate does not expose: OCSPResponse { status, [0] { OID, OCTET STRING } }, and in the octets BasicOCSPResponse {
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
        .to_zoned_datetime(jiff::tz::TimeZone::UTC)
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
