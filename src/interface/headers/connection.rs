//! `Connection` (FWD-2): a proxy removes the headers that Connection nominates (RFC 9110, section 7.6.1). The nomination of a
//! header of the table, of the content or of the gateway is therefore refused.

use http::{HeaderMap, header::CONNECTION};

/// The first nomination that is refused, if there is one.
pub fn refused_nomination(headers: &HeaderMap) -> Option<String> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|token| String::from_utf8_lossy(super::trim(token)).to_ascii_lowercase())
        .find(|name| {
            super::find(name).is_some()
                || name.starts_with("content-")
                || name.starts_with("gateway-")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn nominations() {
        let table = [
            ("keep-alive", false),
            ("close, te", false),
            ("x-something", false),
            ("psu-id", true),
            ("close ,  Digest", true),
            ("Content-Length", true),
            ("gateway-tpp-id", true),
        ];
        for (value, refused) in table {
            let headers = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static(value))]);
            assert_eq!(refused_nomination(&headers).is_some(), refused, "{value}");
        }
    }
}
