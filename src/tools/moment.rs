//! Parses the time of `--at`, in three formats.
//!
//! Deliberately not here: local times; a time without a zone would depend on the machine.

use crate::{clock::Timestamp, interface::headers::date};

/// Parses an IMF-fixdate (as in a Date header), seconds since 1970, or RFC 3339.
///
/// # Errors
/// The expected formats, as a message for the user.
pub(super) fn parse(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Some(at) = date::parse(text.as_bytes()) {
        return Ok(at);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = text
            .parse()
            .ok()
            .filter(|seconds| *seconds <= LAST_SECOND)
            .ok_or("seconds since 1970 end with the year 9999")?;
        return Ok(Timestamp::from_unix(seconds));
    }
    let moment: jiff::Timestamp = text
        .parse()
        .map_err(|_| "expected a moment such as 'Sun, 06 Nov 1994 08:49:37 GMT', 784111777 or 1994-11-06T08:49:37Z")?;
    u64::try_from(moment.as_second())
        .map(Timestamp::from_unix)
        .map_err(|_| "a moment before 1970 is none that a request or a certificate has".to_owned())
}

/// The last second of the year 9999, the last that a Date header can name.
const LAST_SECOND: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_in_many_ways() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "784111777",
            " 784111777 ",
            "1994-11-06T08:49:37Z",
            "1994-11-06T08:49:37.9Z",
            "1994-11-06T09:49:37+01:00",
            "1994-11-06 08:49:37Z",
        ] {
            assert_eq!(parse(text), Ok(Timestamp::from_unix(784_111_777)), "{text}");
        }
        for text in [
            "",
            "now",
            "1994-11-06T08:49:37",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "1969-12-31T23:59:58Z",
            "-5",
            "253402300800",
            "99999999999999999999999",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
