//! `Accept` (HTTP-5): a header that excludes JSON is refused, because every answer is JSON.

use http::HeaderMap;

/// Whether the Accept headers of a request allow JSON: `application/json` or `application/*+json`, by itself or by a
/// range that covers it, with a weight above zero (RFC 9110, section 12.5.1). No header allows everything.
pub fn allows_json(headers: &HeaderMap) -> bool {
    let mut verdict: Option<(Precision, bool)> = None;
    let mut ranges = 0_usize;
    for value in headers.get_all(http::header::ACCEPT) {
        for range in String::from_utf8_lossy(value.as_bytes())
            .split(',')
            .filter(|range| !range.trim().is_empty())
        {
            ranges += 1;
            if let Some((precision, allowed)) = judge(range)
                && verdict.is_none_or(|(best, was)| {
                    precision > best || precision == best && allowed && !was
                })
            {
                verdict = Some((precision, allowed));
            }
        }
    }
    ranges == 0 || verdict.is_some_and(|(_, allowed)| allowed)
}

/// The more precise range decides (RFC 9110, section 12.5.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Anything,
    AnyApplication,
    Json,
}

fn judge(range: &str) -> Option<(Precision, bool)> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    let precision = match media.as_str() {
        "*/*" => Precision::Anything,
        "application/*" => Precision::AnyApplication,
        "application/json" => Precision::Json,
        _ if media.starts_with("application/") && media.ends_with("+json") => Precision::Json,
        _ => return None,
    };
    let weight = parts
        .filter_map(|part| part.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let excluded = weight.is_some_and(|(_, value)| value.trim().parse() == Ok(0.0_f32));
    Some((precision, !excluded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, header::ACCEPT};

    #[test]
    fn accept() {
        let table = [
            ("application/json", true),
            ("*/*", true),
            ("application/*", true),
            ("text/html, application/json;q=0.1", true),
            ("application/hal+json", true),
            ("APPLICATION/JSON; charset=utf-8", true),
            ("", true),
            ("text/html", false),
            ("application/xml", false),
            ("application/json;q=0", false),
            ("application/json;q=0, */*", false),
            ("*/*;q=0, application/json", true),
            ("text/*;q=1, application/*;q=0.0", false),
        ];
        for (value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(value));
            assert_eq!(allows_json(&headers), expected, "{value}");
        }
        assert!(allows_json(&HeaderMap::new()));
    }
}
