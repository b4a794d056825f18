//! Content-Encoding (RFC 9110, 8.4): a long answer in gzip for whoever takes it, so that a TPP meets one before production.
//!
//! Deliberately not here: any other coding, since the gateway asks for gzip and identity alone (ERR-6).

use axum::http::HeaderMap;
use flate2::{Compression, write::GzEncoder};
use portvakt_interface::headers::accept_encoding;
use std::io::Write as _;

/// The least length of a body, in bytes, that is worth a coding.
const LEAST: usize = 1024;

/// A body in gzip, if it is long and the caller takes that.
pub(super) fn in_gzip(body: &[u8], asked: &HeaderMap) -> Option<Vec<u8>> {
    if body.len() < LEAST || accept_encoding::for_core(asked) != "gzip" {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, header::ACCEPT_ENCODING};
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    //= ERR-6 accepted
    #[test]
    fn a_long_body_is_encoded_for_whoever_takes_gzip() {
        let long = vec![b'a'; LEAST];
        let asked =
            |coding| HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(coding))]);
        let encoded = in_gzip(&long, &asked("gzip")).unwrap();
        let mut plain = Vec::new();
        GzDecoder::new(&*encoded).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, long);
        assert_eq!(in_gzip(&long[1..], &asked("gzip")), None);
        assert_eq!(in_gzip(&long, &asked("identity")), None);
        assert_eq!(in_gzip(&long, &HeaderMap::new()), None);
    }
}
