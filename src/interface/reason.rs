//! The reasons for a refusal: one closed table.
//!
//! The slug of a [`Reason`] is the member `reason` of the answer, the label of the metric, the field of the log line
//! and the heading in the docs. Slugs never change.

use super::Code;
use portvakt_base::values;

values! {
    /// The side that has to act on a request that was not answered as asked.
    pub enum Side {
        /// The TPP, or its PSU.
        Caller = "caller",
        /// The gateway, with its state and its sources of registers and revocation.
        Gateway = "gateway",
        /// The core.
        Core = "core",
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = ($status:literal, $code:ident, $slug:literal, $title:literal),)+) => {
        /// The reason why a request is not answered by the upstream. The order is that of the rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $variant),+ }

        impl Reason {
            /// Every reason, in the order of the rules.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The HTTP status of the answer.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// The interface's code for it (ERR-3); none where SCA is needed (ERR-2).
            pub const fn code(self) -> Option<Code> {
                match self { $(Self::$variant => reasons!(@code $code)),+ }
            }

            /// The stable name.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug),+ }
            }

            /// One sentence for the caller.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }

            /// The side that has to act.
            pub const fn at_fault(self) -> Side {
                match self {
                    Self::UpstreamError
                    | Self::UpstreamUnreachable
                    | Self::UpstreamTimeout
                    | Self::OutcomeUnknown => Side::Core,
                    Self::TooManyAtOnce => Side::Caller,
                    other if other.status() >= 500 => Side::Gateway,
                    _ => Side::Caller,
                }
            }

            /// The index of the reason in [`Reason::ALL`].
            pub fn index(self) -> usize {
                Self::ALL.iter().position(|reason| *reason == self).unwrap_or_default()
            }
        }
    };
    (@code none) => { None };
    (@code $code:ident) => { Some(Code::$code) };
}

reasons! {
    /// HTTP-1
    OperationUnknown = (404, NotFound, "operation-unknown", "There is no such operation in this environment."),
    /// HTTP-2
    MethodNotAllowed = (405, BadRequest, "method-not-allowed", "The operation does not have this method; Allow lists those that it has."),
    /// HTTP-3
    ProductUnknown = (404, ProductUnknown, "product-unknown", "There is no such payment product."),
    /// HTTP-4
    MediaTypeUnsupported = (415, FormatError, "media-type-unsupported", "The body must be JSON in UTF-8, without a content coding."),
    /// HTTP-5
    NotAcceptable = (406, FormatError, "not-acceptable", "The answers of this interface are JSON, which the Accept header excludes."),
    /// HTTP-6
    BodyTooLarge = (413, BadRequest, "body-too-large", "The body is larger than this operation accepts."),
    /// HTTP-7, HTTP-10, FWD-2
    MalformedRequest = (400, BadRequest, "malformed-request", "The request is not well-formed HTTP, or it is ambiguous."),
    /// HTTP-7; RFC 9110, section 10.1.1: an Expect other than 100-continue.
    ExpectationFailed = (417, BadRequest, "expectation-failed", "The only expectation that this gateway meets is 100-continue."),
    /// HTTP-8
    BodyUnexpected = (400, FormatError, "body-unexpected", "This operation takes no body."),
    /// HTTP-9: a head or a body that does not arrive in time.
    RequestTimeout = (408, BadRequest, "request-timeout", "The request did not arrive in time."),
    /// HTTP-9: TPP-Signature-Certificate over 16 KiB, a head over 32 KiB or 100 fields.
    HeadersTooLarge = (431, BadRequest, "headers-too-large", "A header, or the whole head, is larger than this gateway accepts."),
    /// HDR-1, HDR-2, HDR-3, HDR-5, HDR-13, DIG-2
    HeaderMissing = (400, HttpHeaderRequired, "header-missing", "A header that this operation requires is missing."),
    /// HDR-5, HDR-7 to HDR-12, HDR-14, HDR-16, DAT-1
    HeaderMalformed = (400, FormatError, "header-malformed", "A header does not have the form that the interface gives it."),
    /// HDR-13, HDR-14
    CorporateIdMissing = (400, HttpHeaderRequired, "corporate-id-missing", "A request in a corporate context must name the corporate agreement."),
    /// HDR-15
    HeaderDuplicated = (400, FormatError, "header-duplicated", "A header that may stand once stands more than once."),
    /// SIG-1
    SignatureMissing = (400, HttpHeaderRequired, "signature-missing", "Every request must be signed; the Signature header is missing."),
    /// SIG-2, SIG-6, SIG-10
    SignatureMalformed = (400, FormatError, "signature-malformed", "The Signature header does not have the form that the interface gives it."),
    /// SIG-3, SIG-4
    SignatureKeyMismatch = (400, FormatError, "signature-key-mismatch", "keyId does not name the certificate in TPP-Signature-Certificate."),
    /// SIG-5
    SignatureAlgorithmUnsupported = (400, FormatError, "signature-algorithm-unsupported", "The algorithm of a signature is rsa-sha256."),
    /// SIG-7, SIG-14
    SignatureCoverage = (400, FormatError, "signature-coverage", "A header that must be signed is not in the list of signed headers."),
    /// SIG-9
    SignatureMismatch = (400, FormatError, "signature-mismatch", "The signature is not one that the certificate's key made over this request."),
    /// DAT-2
    DateSkewed = (400, FormatError, "date-skewed", "The Date header deviates too far from the gateway's clock."),
    /// DIG-1
    DigestMismatch = (400, FormatError, "digest-mismatch", "The Digest header is not the digest of the body as it was received."),
    /// DIG-1
    DigestUnsupported = (400, FormatError, "digest-unsupported", "The Digest header names neither SHA-256 nor SHA-512."),
    /// REP-1
    RequestReplayed = (409, Conflict, "request-replayed", "A request with this X-Request-ID was forwarded already; each call needs a new one."),
    /// CRT-1, CRT-10
    CertificateMalformed = (400, FormatError, "certificate-malformed", "TPP-Signature-Certificate cannot be read as a certificate."),
    /// CRT-2, CRT-9, CRT-10
    CertificateUntrusted = (403, Forbidden, "certificate-untrusted", "The certificate is not that of a TPP below a trust anchor of this environment."),
    /// CRT-2
    CertificateExpired = (403, Forbidden, "certificate-expired", "The certificate, or one above it, has expired."),
    /// CRT-2
    CertificateNotYetValid = (403, Forbidden, "certificate-not-yet-valid", "The certificate, or one above it, is not valid yet."),
    /// SIG-5
    CertificateWeak = (403, Forbidden, "certificate-weak", "The certificate's key is not RSA of 2048 to 4096 bits with an accepted exponent."),
    /// CRT-3
    CertificateWrongType = (403, Forbidden, "certificate-wrong-type", "The certificate is not a qualified certificate of a type that is accepted here: for electronic seals or for website authentication."),
    /// CRT-4
    CertificateNotPsd2 = (403, Forbidden, "certificate-not-psd2", "The certificate does not carry a PSD2 identity (ETSI TS 119 495)."),
    /// TLS-3
    CertificateIdentityMismatch = (403, Forbidden, "certificate-identity-mismatch", "The certificate of the TLS connection and TPP-Signature-Certificate are of different TPPs."),
    /// CRT-5
    RoleMissing = (403, Forbidden, "role-missing", "The certificate lacks the PSD2 role that this operation needs."),
    /// CRT-7
    TppNotRegistered = (403, Forbidden, "tpp-not-registered", "The TPP is not registered in the role that this operation needs."),
    /// CRT-7
    TppBlocked = (403, Forbidden, "tpp-blocked", "The bank does not serve this TPP."),
    /// CRT-7
    RegisterStale = (503, SystemError, "register-stale", "The register of TPPs is too old to be relied on; try again."),
    /// CRT-6
    CertificateRevoked = (403, Forbidden, "certificate-revoked", "The certificate, or one above it, is revoked."),
    /// CRT-6, CRT-11
    RevocationUnavailable = (503, SystemError, "revocation-unavailable", "It cannot be found out whether the certificate is revoked; try again."),
    /// SCA-1 to SCA-9, SCA-16 to SCA-18, QUO-9, QUO-10
    ScaRequired = (401, none, "sca-required", "Strong customer authentication is needed: send the PSU to the scaRedirect link."),
    /// SCA-18
    AccountUnknown = (404, ResourceUnknown, "account-unknown", "This TPP has no account of this id."),
    /// QUO-1 to QUO-3
    QuotaExceeded = (429, AccessExceeded, "quota-exceeded", "The calls that are allowed without the PSU are used up; Retry-After says when the next one is."),
    /// QUO-8
    HistoryTooOld = (400, PeriodInvalid, "history-too-old", "Without the PSU present transactions reach back at most 90 days."),
    /// QUO-12
    RateLimited = (429, SystemError, "rate-limited", "Too many requests at once; Retry-After says when the next one may come."),
    /// QRY-1, QRY-3
    QueryMalformed = (400, FormatError, "query-malformed", "A query parameter does not have the form that the interface gives it."),
    /// QRY-2
    PeriodInverted = (400, PeriodInvalid, "period-inverted", "The period ends before it begins."),
    /// QRY-4
    QueryMissing = (400, QueryParameterRequired, "query-missing", "A query parameter that this operation requires is missing."),
    /// PAY-1
    PayloadMalformed = (400, FormatError, "payload-malformed", "The body is not one JSON value in UTF-8, or it can be read in two ways."),
    /// PAY-2 to PAY-14, PAY-17; PAY-12 has a code of its own.
    PayloadInvalid = (400, FormatError, "payload-invalid", "The body does not have the members and values that this operation takes."),
    /// ERR-6: the upstream's error answer was not JSON.
    UpstreamError = (502, SystemError, "upstream-error", "The service answered with an error."),
    /// ERR-4
    UpstreamUnreachable = (502, SystemError, "upstream-unreachable", "The service behind the gateway cannot be reached."),
    /// ERR-4
    UpstreamTimeout = (504, SystemError, "upstream-timeout", "The service behind the gateway did not answer in time."),
    /// FWD-4: the answer to a request that is not safe was lost.
    OutcomeUnknown = (504, SystemError, "outcome-unknown", "The request may have been executed: its answer was lost. Read the status before anything else; do not send the request again."),
    /// ERR-4: too many connections or certificates of strangers (QUO-12), or the gateway is draining.
    Overloaded = (503, SystemError, "overloaded", "The gateway is busy; try again."),
    /// ERR-4, QUO-12: a limit of one TPP or one address, which others do not notice.
    TooManyAtOnce = (503, SystemError, "too-many-at-once", "This caller has reached a limit of its own; try again."),
    /// ERR-4, REP-1
    StateUnavailable = (503, SystemError, "state-unavailable", "The gateway cannot reach its records; try again."),
    /// ERR-4
    Internal = (500, SystemError, "internal", "The gateway failed."),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn slugs_are_unique_and_stable_in_form() {
        let slugs: HashSet<_> = Reason::ALL.iter().map(|reason| reason.slug()).collect();
        assert_eq!(slugs.len(), Reason::ALL.len());
        assert!(slugs.iter().all(|slug| {
            slug.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        }));
    }
}
