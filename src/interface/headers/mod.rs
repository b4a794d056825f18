//! The interface's header table as data, and one file per header with rules of its own.
//!
//! The table decides what may stand once (HDR-15) and what is forwarded (FWD-2): a header that is not in it does not
//! reach the core.

// `Accept` (HTTP-5).
pub mod accept;
// `x-accept-fix` (HDR-16).
pub mod accept_fix;
// `Host` (FWD-2).
pub mod authority;
// `PSU-Context`, `TPP-Redirect-Preferred` and `PSU-HTTP-Method` (HDR-10).
pub mod choices;
// `Connection` (FWD-2).
pub mod connection;
// `Content-Type` and `Content-Encoding` (HTTP-4).
pub mod content;
// `Date` (DAT-1).
pub mod date;
// `Digest` (DIG-1).
pub mod digest;
// RFC 2047 encoded words around a Signature (SIG-10).
pub mod encoded_word;
// The headers of one request.
mod fields;
// `X-Request-ID` and `TPP-Session-ID` (HDR-7).
pub mod identifier;
// `X-PSU-IDENTITY` (HDR-12).
pub mod identity;
// `PSU-IP-Address`, `PSU-IP-Port` and `PSU-Geo-Location` (HDR-11).
pub mod network;
// `TPP-Redirect-URI` (HDR-8).
pub mod redirect_uri;
// `Signature` (SIG-2, SIG-3, SIG-6).
pub mod signature;
// `PSU-ID`, `PSU-Corporate-ID` and `PSU-Device-ID` (HDR-9).
pub mod uuid_form;

pub use choices::PsuContext;
pub use fields::Fields;
pub use identifier::{RequestId, SessionId};
pub use redirect_uri::RedirectUri;
pub use uuid_form::{CorporateId, PsuId};

use http::{HeaderName, HeaderValue};

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
    position: usize,
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

        /// Where a header stands in the [`TABLE`], by its name in lower case.
        fn position(name: &str) -> Option<usize> {
            match name {
                $($lower => Some(const { place_of($lower) }),)+
                _ => None,
            }
        }

        /// Every header that may reach the core (FWD-2), except those that the gateway adds.
        pub static TABLE: &[&Header] = &[$(&$name),+];
    };
}

/// How many headers the table has.
const COUNT: usize = NAMES.len();

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

impl Header {
    /// Its first value in a request.
    pub fn get<'a>(&self, fields: &Fields<'a>) -> Option<&'a HeaderValue> {
        fields.first(self)
    }

    /// The first value that is not blank: an empty value counts as missing (HDR-5).
    pub fn get_filled<'a>(&self, fields: &Fields<'a>) -> Option<&'a HeaderValue> {
        self.get(fields)
            .filter(|value| !trim(value.as_bytes()).is_empty())
    }

    /// The values whose form is judged, without the white space around them: all of them, or only the first of a header that
    /// may stand once (HDR-15 refuses a second one).
    pub fn values<'a>(&self, fields: &Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
        let most = if self.once { 1 } else { usize::MAX };
        let values = fields.all(self).take(most);
        values.map(|value| trim(value.as_bytes()))
    }

    /// How often the header stands in a request.
    pub fn count(&self, fields: &Fields<'_>) -> usize {
        fields.all(self).count()
    }
}

/// The header of the table with this name, in any letter case.
pub fn find(name: &str) -> Option<&'static Header> {
    let exact = position(name).and_then(|position| TABLE.get(position));
    let other = || {
        let mut table = TABLE.iter();
        table.find(|header| header.name.as_str().eq_ignore_ascii_case(name))
    };
    exact.or_else(other).copied()
}

/// A value without the white space around it (RFC 9110, section 5.5: SP and HTAB).
pub fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut rest = value;
    while let [first, tail @ ..] = rest
        && blank(first)
    {
        rest = tail;
    }
    while let [head @ .., last] = rest
        && blank(last)
    {
        rest = head;
    }
    rest
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

    #[test]
    fn white_space_around_a_value_does_not_count() {
        assert_eq!(trim(b" \t a b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
    }
}
