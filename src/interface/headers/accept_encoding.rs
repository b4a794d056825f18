//! `Accept-Encoding` (ERR-6): the core is asked only for codings that the gateway can read, gzip and identity.

use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};

/// The header for the core: gzip if the caller takes that and does not prefer the answer as it is, otherwise identity.
pub fn for_core(headers: &HeaderMap) -> HeaderValue {
    let (mut gzip, mut identity, mut others) = (None, None, None);
    for value in headers.get_all(ACCEPT_ENCODING) {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        for element in text.split(',') {
            let (coding, weight) = judge(element);
            let place = match coding {
                "gzip" | "x-gzip" => &mut gzip,
                "identity" => &mut identity,
                "*" => &mut others,
                _ => continue,
            };
            // Of two weights the lower one counts.
            *place = Some(place.map_or(weight, |known: f32| known.min(weight)));
        }
    }
    let gzip = gzip.or(others).unwrap_or_default();
    let takes_gzip = gzip > 0.0 && gzip >= identity.unwrap_or_default();
    HeaderValue::from_static(if takes_gzip { "gzip" } else { "identity" })
}

/// A coding and its weight (RFC 9110, section 12.4.2); a weight that is none excludes the coding.
fn judge(element: &str) -> (&str, f32) {
    let (coding, parameters) = element.split_once(';').unwrap_or((element, "q=1"));
    let weight = parameters.trim().strip_prefix("q=");
    let weight = weight.and_then(|weight| weight.trim().parse().ok());
    let weight = weight.filter(|weight| (0.0..=1.0).contains(weight));
    (coding.trim(), weight.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    //= ERR-6 accepted
    #[test]
    fn gzip_where_the_caller_takes_it() {
        let table: [(&[&str], &str); 16] = [
            (&[], "identity"),
            (&[""], "identity"),
            (&["gzip"], "gzip"),
            (&["X-GZIP"], "gzip"),
            (&["br, gzip;q=0.5, deflate"], "gzip"),
            (&["br", "gzip"], "gzip"),
            (&["*"], "gzip"),
            (&["*;q=0.1"], "gzip"),
            (&["br, deflate, zstd"], "identity"),
            (&["gzip;q=0, *"], "identity"),
            (&["gzip;q=0.000"], "identity"),
            (&["gzip, gzip;q=0"], "identity"),
            (&["gzip;q=0.5, identity"], "identity"),
            (&["identity;q=0, br"], "identity"),
            (&["gzip;q=x"], "identity"),
            (&["gzip;q=NaN"], "identity"),
        ];
        for (values, expected) in table {
            let pairs = values.iter().map(|value| {
                let value = HeaderValue::from_str(value).unwrap();
                (ACCEPT_ENCODING, value)
            });
            let mut headers = HeaderMap::new();
            headers.extend(pairs.map(|(name, value)| (Some(name), value)));
            assert_eq!(for_core(&headers), expected, "{values:?}");
        }
    }
}
