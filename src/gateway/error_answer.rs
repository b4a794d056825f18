//! Judges the body of an error answer of the core: JSON passes unchanged, anything else is replaced (ERR-6).
//!
//! The body is read before the head is sent, so that a page of the core's software never reaches a caller, whatever its Content-Type says.
//! A body in gzip is decoded to be judged, within the same limit, and keeps its coding unless it is changed.

use super::{caller_watch::work_for, core_head, upstream::CoreBody};
use bytes::Bytes;
use flate2::bufread::GzDecoder;
use http::{HeaderMap, header, response::Parts};
use pingora::{Result, protocols::http::ServerSession as Session};
use serde::de::IgnoredAny;
use std::{io::Read, time::Duration};

/// The longest body that is read, in bytes, as it comes and decoded; a longer one is replaced.
const MAX_BODY: usize = 256 * 1024;

/// A content coding that is read (RFC 9110, section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
}

/// Reads the body of an error, which `body` holds then. Returns its text if the body is JSON by its head and by its bytes. `watched`: the
/// wait for the core ends when the caller disconnects.
///
/// # Errors
/// The core breaks off or times out, or the caller disconnected.
pub(super) async fn read_json(
    head: &Parts,
    body: &mut CoreBody,
    caller: &mut Session,
    watched: bool,
    read_timeout: Duration,
) -> Result<Option<Bytes>> {
    let is_long = core_head::content_length(head).is_some_and(|length| length > MAX_BODY);
    let Some(coding) = coding(&head.headers).filter(|_| !is_long && core_head::is_json(head))
    else {
        return Ok(None);
    };
    let mut whole = Vec::new();
    loop {
        let part = work_for(caller, watched, read_timeout, body.next()).await?;
        whole.extend_from_slice(&part.bytes.unwrap_or_default());
        if whole.len() > MAX_BODY {
            return Ok(None);
        }
        if part.is_last {
            break;
        }
    }
    let whole = Bytes::from(whole);
    body.hold(whole.clone());
    let text = match coding {
        Coding::Identity => Some(whole),
        Coding::Gzip => decode(&whole),
    };
    Ok(text.filter(|text| {
        let text = std::str::from_utf8(text).ok();
        text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
    }))
}

/// The coding of a body; `None` if it cannot be read. An empty Content-Encoding says nothing.
fn coding(headers: &HeaderMap) -> Option<Coding> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let tokens = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut coding = Coding::Identity;
    for token in tokens.map(<[u8]>::trim_ascii) {
        if token.is_empty() || token.eq_ignore_ascii_case(b"identity") {
            continue;
        }
        if !token.eq_ignore_ascii_case(b"gzip") || coding == Coding::Gzip {
            return None;
        }
        coding = Coding::Gzip;
    }
    Some(coding)
}

/// Decodes gzip (RFC 1952) within the limit. Exactly one member: readers disagree about a second one.
fn decode(coded: &[u8]) -> Option<Bytes> {
    let mut decoder = GzDecoder::new(coded);
    let limit = u64::try_from(MAX_BODY).ok()?;
    let mut text = Vec::new();
    let read = decoder.by_ref().take(limit.saturating_add(1));
    { read }.read_to_end(&mut text).ok()?;
    (text.len() <= MAX_BODY && decoder.into_inner().is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use http::HeaderValue;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn codings() {
        let table: [(&[&str], Option<Coding>); 10] = [
            (&[], Some(Coding::Identity)),
            (&[""], Some(Coding::Identity)),
            (&["Identity, "], Some(Coding::Identity)),
            (&["GZIP"], Some(Coding::Gzip)),
            (&["identity", "gzip"], Some(Coding::Gzip)),
            (&["x-gzip"], None),
            (&["gzip, gzip"], None),
            (&["gzip", "gzip"], None),
            (&["br"], None),
            (&["gzip;x"], None),
        ];
        for (values, expected) in table {
            let mut headers = HeaderMap::new();
            for value in values {
                let value = HeaderValue::from_static(value);
                headers.append(header::CONTENT_ENCODING, value);
            }
            assert_eq!(coding(&headers), expected, "{values:?}");
        }
    }

    #[test]
    fn gzip_within_its_limit() {
        let fits = vec![b'x'; MAX_BODY];
        for text in [&b""[..], b"{}", &fits] {
            assert_eq!(decode(&gzip(text)).as_deref(), Some(text));
        }
        let whole = gzip(b"{}");
        let mut flipped = whole.clone();
        flipped[12] ^= 1;
        for bad in [
            gzip(&vec![b'x'; MAX_BODY + 1]),
            gzip(&vec![b' '; 100 * MAX_BODY]),
            whole[..whole.len() - 1].to_vec(),
            [&whole[..], b"{"].concat(),
            [&whole[..], &whole].concat(),
            flipped,
            b"{}".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(decode(&bad), None, "{:02x?}", &bad[..bad.len().min(40)]);
        }
    }
}
