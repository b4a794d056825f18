//! The headers of the core's answers that reach a TPP (FWD-7).
//!
//! Invariant: a header that is not known here, and that no configuration names, does not reach a TPP: it may describe the bank's
//! network. Deliberately not here: the headers that the gateway adds.

use http::HeaderName;

/// Whether a TPP gets this header of the core's answer by default: it describes the body, or tells the TPP what to do next. In lower
/// case.
pub fn passes(name: &str) -> bool {
    matches!(
        name,
        "content-type"
            | "content-length"
            | "content-language"
            | "content-encoding"
            | "content-location"
            | "content-disposition"
            | "content-range"
            | "content-md5"
            | "content-digest"
            | "repr-digest"
            | "accept-ranges"
            | "allow"
            | "deprecation"
            | "etag"
            | "last-modified"
            | "link"
            | "location"
            | "retry-after"
            | "sunset"
            | "vary"
            | "x-content-type-options"
    ) || name.starts_with("aspsp-")
}

/// Whether a configuration may let this header pass too. These may not: headers of the connection to the core or of its software,
/// headers that only the gateway sends, such as a Signature, which a TPP would take for the gateway's, and Warning and WWW-Authenticate,
/// which describe the core's caches and its own authentication.
pub fn may_pass(name: &HeaderName) -> bool {
    let name = name.as_str();
    !matches!(
        name,
        "alt-svc"
            | "cache-control"
            | "connection"
            | "date"
            | "digest"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-connection"
            | "ratelimit"
            | "ratelimit-policy"
            | "refresh"
            | "server"
            | "set-cookie"
            | "set-cookie2"
            | "signature"
            | "strict-transport-security"
            | "te"
            | "tpp-signature-certificate"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "via"
            | "warning"
            | "www-authenticate"
            | "x-powered-by"
            | "x-request-id"
    ) && !name.starts_with("gateway-")
        && !name.starts_with("gateway_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_default_is_forbidden() {
        for name in ["content-type", "location", "aspsp-sca-approach"] {
            assert!(passes(name) && may_pass(&HeaderName::from_static(name)));
        }
        for name in ["forwarded", "x-forwarded-for", "x-backend-server"] {
            assert!(!passes(name) && may_pass(&HeaderName::from_static(name)));
        }
        for name in [
            "set-cookie",
            "gateway-sca",
            "gateway_sca",
            "signature",
            "warning",
            "www-authenticate",
        ] {
            assert!(!passes(name) && !may_pass(&HeaderName::from_static(name)));
        }
    }
}
