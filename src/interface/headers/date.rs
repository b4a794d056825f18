//! `Date` (DAT-1): an RFC 7231 IMF-fixdate; the obsolete RFC 850 and asctime forms are refused.

use crate::character::OddCharacter;
use portvakt_base::clock::Timestamp;

/// Reads an IMF-fixdate such as `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// `httpdate` accepts all three forms of the RFC and some malformed dates, so the parsed date is formatted again and must
/// equal the value byte for byte. Only an IMF-fixdate with the correct weekday does.
pub fn parse(value: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(value).ok()?;
    let time = httpdate::parse_http_date(text).ok()?;
    (httpdate::fmt_http_date(time) == text).then(|| Timestamp::from(time))
}

/// The reason why a value is no IMF-fixdate (ERR-10).
pub fn fault(value: &[u8]) -> String {
    const FORM: &str = "it must be an RFC 7231 IMF-fixdate, as in: Sun, 06 Nov 1994 08:49:37 GMT";
    let is_of_date = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if let Some(odd) = OddCharacter::first(value, is_of_date) {
        return format!("{odd}; {FORM}");
    }
    let text = std::str::from_utf8(value).unwrap_or_default();
    let parsed = httpdate::parse_http_date(text).ok();
    let fixed = parsed.map(httpdate::fmt_http_date);
    let rest = text.get(3..).unwrap_or_default();
    let with = |day: &&str| parse(format!("{day}{rest}").as_bytes()).is_some();
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let what = if days.iter().any(with) {
        "its weekday is not that of the date"
    } else if fixed.is_some() && text.contains('-') {
        "it has the obsolete form of RFC 850"
    } else if fixed.is_some() && !text.contains(',') {
        "it has the obsolete form of asctime"
    } else if text.starts_with(|first: char| first.is_ascii_digit()) {
        "it does not begin with a weekday"
    } else if !text.ends_with(" GMT") {
        "it does not end with GMT"
    } else {
        "it has no such date or time, or another spelling"
    };
    format!("{what}; {FORM}")
}

/// A moment as an IMF-fixdate.
pub fn format(at: Timestamp) -> String {
    httpdate::fmt_http_date(at.system_time())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(
            parse(b"Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Timestamp::from_unix(784_111_777))
        );
        let bad = [
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "sun, 06 nov 1994 08:49:37 gmt",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "1994-11-06T08:49:37Z",
            "",
            "784111777",
        ];
        for bad in bad {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(
            format(Timestamp::from_unix(784_111_777)),
            "Sun, 06 Nov 1994 08:49:37 GMT"
        );
    }
}

#[cfg(test)]
mod exhaustive;
