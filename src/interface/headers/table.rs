//! The interface's header table (§Common request headers).

use http::HeaderName;

/// A header of the interface's table (§Common request headers), of the content, or of the signature.
#[derive(Debug)]
pub struct Header {
    /// The name in lower case.
    pub name: HeaderName,
    /// The name as the interface writes it.
    pub written: &'static str,
    /// Whether the header may stand only once (HDR-15).
    pub once: bool,
    /// Whether the sandbox operation D takes the header (HDR-3).
    pub on_sandbox: bool,
    /// Whether the value is personal data, which no answer, log or metric repeats.
    pub personal: bool,
    /// The index in the [`TABLE`].
    pub(super) position: usize,
}

macro_rules! headers {
    ($($(#[$doc:meta])* $name:ident = $lower:literal $written:literal $($flag:ident)*;)+) => {
        $($(#[$doc])* #[doc = concat!("`", $written, "`")]
        pub static $name: Header = Header {
            name: HeaderName::from_static($lower),
            written: $written,
            once: has(&[$(stringify!($flag)),*], b'o'),
            on_sandbox: has(&[$(stringify!($flag)),*], b's'),
            personal: has(&[$(stringify!($flag)),*], b'p'),
            position: place_of($lower),
        };)+

        /// In the order of the [`TABLE`].
        const NAMES: &[&str] = &[$($lower),+];

        /// The index of a header in the [`TABLE`], by its name in lower case.
        pub(super) fn position(name: &str) -> Option<usize> {
            match name {
                $($lower => Some(const { place_of($lower) }),)+
                _ => None,
            }
        }

        /// Every header that may reach the core (FWD-2), except those that the gateway adds.
        pub static TABLE: &[&Header] = &[$(&$name),+];
    };
}

/// The number of headers in the table.
pub(super) const COUNT: usize = NAMES.len();

/// The index in the table of each name.
const fn place_of(name: &str) -> usize {
    let mut place = 0;
    let mut rest = NAMES;
    while let [first, tail @ ..] = rest
        && !is_same(first.as_bytes(), name.as_bytes())
    {
        place += 1;
        rest = tail;
    }
    place
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([a, one_tail @ ..], [b, other_tail @ ..]) = (one, other)
        && *a == *b
    {
        (one, other) = (one_tail, other_tail);
    }
    one.is_empty() && other.is_empty()
}

/// Whether one of `flags` starts with `initial`: the macro's flags are `once`, `sandbox` and `personal`.
const fn has(flags: &[&str], initial: u8) -> bool {
    let mut rest = flags;
    while let [flag, tail @ ..] = rest {
        if let [first, ..] = flag.as_bytes()
            && *first == initial
        {
            return true;
        }
        rest = tail;
    }
    false
}

headers! {
    X_ACCEPT_FIX = "x-accept-fix" "x-accept-fix";
    ACCEPT = "accept" "Accept" sandbox;
    ACCEPT_CHARSET = "accept-charset" "Accept-Charset" sandbox;
    ACCEPT_ENCODING = "accept-encoding" "Accept-Encoding" sandbox;
    ACCEPT_LANGUAGE = "accept-language" "Accept-Language" sandbox;
    HOST = "host" "Host" once sandbox;
    X_REQUEST_ID = "x-request-id" "X-Request-ID" once sandbox;
    TPP_SESSION_ID = "tpp-session-id" "TPP-Session-ID" once;
    TPP_REDIRECT_URI = "tpp-redirect-uri" "TPP-Redirect-URI" once;
    TPP_REDIRECT_PREFERRED = "tpp-redirect-preferred" "TPP-Redirect-Preferred" once;
    TPP_BRAND_LOGGING_INFORMATION = "tpp-brand-logging-information" "TPP-Brand-Logging-Information";
    DATE = "date" "Date" once sandbox;
    DIGEST = "digest" "Digest" once sandbox;
    TPP_SIGNATURE_CERTIFICATE = "tpp-signature-certificate" "TPP-Signature-Certificate" once sandbox;
    SIGNATURE = "signature" "Signature" once sandbox;
    PSU_ID = "psu-id" "PSU-ID" once personal;
    X_PSU_IDENTITY = "x-psu-identity" "X-PSU-IDENTITY" once personal;
    PSU_CORPORATE_ID = "psu-corporate-id" "PSU-Corporate-ID" once personal;
    PSU_CONTEXT = "psu-context" "PSU-Context" once;
    PSU_IP_ADDRESS = "psu-ip-address" "PSU-IP-Address" once personal;
    PSU_IP_PORT = "psu-ip-port" "PSU-IP-Port" personal;
    PSU_USER_AGENT = "psu-user-agent" "PSU-User-Agent" personal;
    PSU_ACCEPT = "psu-accept" "PSU-Accept";
    PSU_ACCEPT_CHARSET = "psu-accept-charset" "PSU-Accept-Charset";
    PSU_ACCEPT_ENCODING = "psu-accept-encoding" "PSU-Accept-Encoding";
    PSU_ACCEPT_LANGUAGE = "psu-accept-language" "PSU-Accept-Language";
    PSU_HTTP_METHOD = "psu-http-method" "PSU-HTTP-Method";
    PSU_DEVICE_ID = "psu-device-id" "PSU-Device-ID" personal;
    PSU_GEO_LOCATION = "psu-geo-location" "PSU-Geo-Location" personal;
    CONTENT_TYPE = "content-type" "Content-Type" once sandbox;
    CONTENT_ENCODING = "content-encoding" "Content-Encoding" once sandbox;
    CONTENT_LANGUAGE = "content-language" "Content-Language" sandbox;
    TRACEPARENT = "traceparent" "traceparent" sandbox;
}

/// The headers that must be signed if the request has them (SIG-7).
pub static SIGNED: [&Header; 6] = [
    &DATE,
    &DIGEST,
    &X_REQUEST_ID,
    &PSU_ID,
    &PSU_CORPORATE_ID,
    &TPP_REDIRECT_URI,
];

/// The header of the table with this name, in any letter case.
pub fn find(name: &str) -> Option<&'static Header> {
    let exact = position(name).and_then(|position| TABLE.get(position));
    let other = || {
        let mut table = TABLE.iter();
        table.find(|header| header.name.as_str().eq_ignore_ascii_case(name))
    };
    exact.or_else(other).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_rules() {
        // HDR-15 names sixteen headers that may stand once.
        assert_eq!(TABLE.iter().filter(|header| header.once).count(), 16);
        assert!(
            TABLE
                .iter()
                .all(|header| header.name.as_str().eq_ignore_ascii_case(header.written))
        );
        assert!(
            X_PSU_IDENTITY.personal
                && !X_PSU_IDENTITY.on_sandbox
                && SIGNATURE.on_sandbox
                && SIGNATURE.once
        );
        assert_eq!(find("PSU-Id").map(|header| header.written), Some("PSU-ID"));
    }
}
