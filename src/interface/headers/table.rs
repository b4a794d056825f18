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
            once: has(&[$(Flag::$flag),*], Flag::Once),
            on_sandbox: has(&[$(Flag::$flag),*], Flag::Sandbox),
            personal: has(&[$(Flag::$flag),*], Flag::Personal),
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

/// What the table says of a header. A flag that is misspelt does not compile.
#[derive(Clone, Copy)]
enum Flag {
    Once,
    Sandbox,
    Personal,
}

const fn has(flags: &[Flag], wanted: Flag) -> bool {
    let mut rest = flags;
    while let [flag, tail @ ..] = rest {
        // PartialEq is not const.
        if matches!(
            (*flag, wanted),
            (Flag::Once, Flag::Once)
                | (Flag::Sandbox, Flag::Sandbox)
                | (Flag::Personal, Flag::Personal)
        ) {
            return true;
        }
        rest = tail;
    }
    false
}

headers! {
    X_ACCEPT_FIX = "x-accept-fix" "x-accept-fix";
    ACCEPT = "accept" "Accept" Sandbox;
    ACCEPT_CHARSET = "accept-charset" "Accept-Charset" Sandbox;
    ACCEPT_ENCODING = "accept-encoding" "Accept-Encoding" Sandbox;
    ACCEPT_LANGUAGE = "accept-language" "Accept-Language" Sandbox;
    HOST = "host" "Host" Once Sandbox;
    X_REQUEST_ID = "x-request-id" "X-Request-ID" Once Sandbox;
    TPP_SESSION_ID = "tpp-session-id" "TPP-Session-ID" Once;
    TPP_REDIRECT_URI = "tpp-redirect-uri" "TPP-Redirect-URI" Once;
    TPP_REDIRECT_PREFERRED = "tpp-redirect-preferred" "TPP-Redirect-Preferred" Once;
    TPP_BRAND_LOGGING_INFORMATION = "tpp-brand-logging-information" "TPP-Brand-Logging-Information";
    DATE = "date" "Date" Once Sandbox;
    DIGEST = "digest" "Digest" Once Sandbox;
    TPP_SIGNATURE_CERTIFICATE = "tpp-signature-certificate" "TPP-Signature-Certificate" Once Sandbox;
    SIGNATURE = "signature" "Signature" Once Sandbox;
    PSU_ID = "psu-id" "PSU-ID" Once Personal;
    X_PSU_IDENTITY = "x-psu-identity" "X-PSU-IDENTITY" Once Personal;
    PSU_CORPORATE_ID = "psu-corporate-id" "PSU-Corporate-ID" Once Personal;
    PSU_CONTEXT = "psu-context" "PSU-Context" Once;
    PSU_IP_ADDRESS = "psu-ip-address" "PSU-IP-Address" Once Personal;
    PSU_IP_PORT = "psu-ip-port" "PSU-IP-Port" Personal;
    PSU_USER_AGENT = "psu-user-agent" "PSU-User-Agent" Personal;
    PSU_ACCEPT = "psu-accept" "PSU-Accept";
    PSU_ACCEPT_CHARSET = "psu-accept-charset" "PSU-Accept-Charset";
    PSU_ACCEPT_ENCODING = "psu-accept-encoding" "PSU-Accept-Encoding";
    PSU_ACCEPT_LANGUAGE = "psu-accept-language" "PSU-Accept-Language";
    PSU_HTTP_METHOD = "psu-http-method" "PSU-HTTP-Method";
    PSU_DEVICE_ID = "psu-device-id" "PSU-Device-ID" Personal;
    PSU_GEO_LOCATION = "psu-geo-location" "PSU-Geo-Location" Personal;
    CONTENT_TYPE = "content-type" "Content-Type" Once Sandbox;
    CONTENT_ENCODING = "content-encoding" "Content-Encoding" Once Sandbox;
    CONTENT_LANGUAGE = "content-language" "Content-Language" Sandbox;
    TRACEPARENT = "traceparent" "traceparent" Sandbox;
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
