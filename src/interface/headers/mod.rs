//! The interface's header table as data, and one file per header with rules of its own.
//!
//! The table defines which headers may occur only once (HDR-15) and which are forwarded (FWD-2): a header that is not in the table is not
//! sent to the core.

// `Accept` (HTTP-5).
pub mod accept;
// Accept-Encoding, as the core gets it.
pub mod accept_encoding;
// `x-accept-fix` (HDR-16).
pub mod accept_fix;
// The headers of the core's answers (FWD-7).
pub mod answer;
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
// `Forwarded` and `X-Forwarded-For`, from trusted proxies.
pub mod forwarded;
// The table, and the headers of one request.
mod fields;
mod table;
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
// `traceparent`, from trusted proxies.
pub mod trace;
// `PSU-ID`, `PSU-Corporate-ID` and `PSU-Device-ID` (HDR-9).
pub mod uuid_form;
// White space around a value (RFC 9110).
mod white_space;

pub use choices::PsuContext;
pub use fields::Fields;
pub use identifier::{RequestId, SessionId};
pub use redirect_uri::RedirectUri;
pub use table::{
    ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_TYPE, DATE, DIGEST, HOST, Header, PSU_ACCEPT, PSU_ACCEPT_CHARSET, PSU_ACCEPT_ENCODING,
    PSU_ACCEPT_LANGUAGE, PSU_CONTEXT, PSU_CORPORATE_ID, PSU_DEVICE_ID, PSU_GEO_LOCATION,
    PSU_HTTP_METHOD, PSU_ID, PSU_IP_ADDRESS, PSU_IP_PORT, PSU_USER_AGENT, SIGNATURE, SIGNED, TABLE,
    TPP_BRAND_LOGGING_INFORMATION, TPP_REDIRECT_PREFERRED, TPP_REDIRECT_URI, TPP_SESSION_ID,
    TPP_SIGNATURE_CERTIFICATE, TRACEPARENT, X_ACCEPT_FIX, X_PSU_IDENTITY, X_REQUEST_ID, find,
};
pub use uuid_form::{CorporateId, PsuId};
pub use white_space::trim;

#[cfg(test)]
mod exhaustive;
