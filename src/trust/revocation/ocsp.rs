//! OCSP (RFC 6960): what is asked of a responder, and whether its answer counts.
//!
//! An answer counts where it is signed by the CA that issued the certificate, or by a responder to whom that very CA issued a
//! certificate for id-kp-OCSPSigning, valid now; where it is about this certificate; and where it is not older or younger than it may
//! be. No nonce is sent: answers are made in advance and cached (RFC 5019). OpenSSL verifies.

use super::{Fault, algorithm};
use crate::{
    clock::Timestamp,
    trust::der::{Element, tag},
};
use openssl::{
    error::ErrorStack,
    hash::MessageDigest,
    ocsp::{OcspCertId, OcspCertStatus, OcspFlag, OcspRequest, OcspResponse, OcspResponseStatus},
    stack::Stack,
    x509::{
        X509, X509Ref,
        store::{X509Store, X509StoreBuilder},
        verify::{X509VerifyFlags, X509VerifyParam},
    },
};
use x509_parser::{prelude::FromDer, x509::AlgorithmIdentifier};

/// How far a responder's clock may be ahead, in seconds.
pub(super) const AHEAD: u64 = 300;

/// How long an answer without nextUpdate is used, in seconds: it says that newer ones can be had at any time.
const WITHOUT_NEXT: u64 = 3_600;

/// An answer that counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) this_update: Timestamp,
    pub(super) next_update: Timestamp,
    /// Since when it is revoked; `None` where it is good.
    pub(super) revoked: Option<Timestamp>,
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

/// Reads what a responder said about a certificate.
pub(super) fn read(
    bytes: &[u8],
    certificate: &X509Ref,
    issuer: &X509Ref,
    now: Timestamp,
) -> Result<Answer, Fault> {
    let openssl = |_: ErrorStack| Fault::Invalid("it is no OCSP response");
    let response = OcspResponse::from_der(bytes).map_err(openssl)?;
    if response.status() != OcspResponseStatus::SUCCESSFUL {
        return Err(Fault::Invalid("the responder says that it cannot answer"));
    }
    let basic = response.basic().map_err(openssl)?;
    if !is_sound(bytes) {
        return Err(Fault::Invalid(
            "the answer is signed by MD5, SHA-1 or an unknown algorithm",
        ));
    }
    let store = only(issuer, now).map_err(openssl)?;
    let mut known = Stack::new().map_err(openssl)?;
    known.push(issuer.to_owned()).map_err(openssl)?;
    // NO_EXPLICIT: being trusted for OCSP in general counts for nothing; only this CA and whom it delegated to may answer.
    basic
        .verify(&known, &store, OcspFlag::NO_EXPLICIT)
        .map_err(|_| {
            Fault::Invalid("the answer is not signed by the issuing CA or a responder of its")
        })?;
    let id = id(certificate, issuer).map_err(openssl)?;
    let said = basic
        .find_status(&id)
        .ok_or(Fault::Invalid("the answer is about another certificate"))?;
    let time = |shown: String| {
        timestamp(&shown).ok_or(Fault::Invalid("a time in the answer cannot be read"))
    };
    let this_update = time(said.this_update.to_string())?;
    let next_update = match said.next_update() {
        Some(next) => time(next.to_string())?,
        None => Timestamp::from_unix(this_update.unix().saturating_add(WITHOUT_NEXT)),
    };
    if this_update.unix() > now.unix().saturating_add(AHEAD) {
        return Err(Fault::Invalid("the answer is of the future"));
    }
    let revoked = match said.status {
        OcspCertStatus::GOOD => None,
        OcspCertStatus::REVOKED => Some(match said.revocation_time {
            Some(since) => time(since.to_string())?,
            None => this_update,
        }),
        _ => {
            return Err(Fault::Invalid(
                "the responder does not know the certificate",
            ));
        }
    };
    Ok(Answer {
        this_update,
        next_update,
        revoked,
    })
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

/// The signature's algorithm, which the openssl crate does not show: OCSPResponse { status, [0] { OID, OCTET STRING } }, and in the
/// octets BasicOCSPResponse { tbsResponseData, signatureAlgorithm, … }.
fn is_sound(response: &[u8]) -> bool {
    let algorithm = || {
        let mut whole = Element::only(response)?.content_of(tag::SEQUENCE)?;
        Element::take(&mut whole)?;
        let wrapped = Element::take(&mut whole)?.content_of(0xa0)?;
        let mut typed = Element::only(wrapped)?.content_of(tag::SEQUENCE)?;
        Element::take(&mut typed)?;
        let basic = Element::take(&mut typed)?.content_of(0x04)?;
        let mut basic = Element::only(basic)?.content_of(tag::SEQUENCE)?;
        Element::take(&mut basic)?;
        Element::take(&mut basic).map(|algorithm| algorithm.whole)
    };
    algorithm().is_some_and(|der| {
        AlgorithmIdentifier::from_der(der).is_ok_and(|(_, found)| algorithm::is_sound(&found))
    })
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

/// The certificate in DER, read by OpenSSL.
pub(super) fn certificate(der: &[u8]) -> Result<X509, Fault> {
    X509::from_der(der).map_err(|_| Fault::Invalid("OpenSSL cannot read the certificate"))
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
