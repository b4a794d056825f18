//! `PSU-IP-Address`, `PSU-IP-Port` and `PSU-Geo-Location` (HDR-11): the source of the PSU's request to the TPP.
//!
//! The TPP states the values, and the gateway cannot verify them. The parsers only check the form, so that the core gets an
//! address, a port and a place.

use crate::character::OddCharacter;
use std::net::{IpAddr, Ipv4Addr};

/// The accepted form of PSU-Geo-Location, for a fault.
const EXPECTED_LOCATION: &str = "it must be GEO:<latitude>,<longitude> in decimal degrees, -90 to 90 and -180 to 180, as in GEO:59.91,10.75";

/// The reason why a value is no address (ERR-10). It shows no digit.
pub fn fault_of_address(value: &[u8]) -> String {
    let is_of_address = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
    if let Some(odd) = OddCharacter::first(value, is_of_address) {
        let why = match odd.character() {
            Some(',' | ' ') => ": one address stands in it",
            Some('[' | ']') => ": an IPv6 address stands without brackets",
            Some('%') => ": an address stands without its zone",
            Some('/') => ": an address stands without a length of its prefix",
            _ => "; an IPv4 or IPv6 address consists of digits, points and colons",
        };
        return format!("{odd}{why}");
    }
    let text = std::str::from_utf8(value).unwrap_or_default();
    let is_v4 = |text: &str| text.parse::<Ipv4Addr>().is_ok();
    let parts = || text.split('.');
    if text.rsplit_once(':').is_some_and(|(host, _)| is_v4(host)) {
        "it has a port: move that to PSU-IP-Port".to_owned()
    } else if text.contains(':') {
        "it is no IPv6 address".to_owned()
    } else if parts().any(|part| part.len() > 1 && part.starts_with('0')) {
        "a part of it has a leading zero, which some read as octal".to_owned()
    } else if parts().count() != 4 {
        format!(
            "an IPv4 address has four parts; this one has {}",
            parts().count()
        )
    } else {
        "a part of it is no number from 0 to 255".to_owned()
    }
}

/// The reason why a value is no port (ERR-10).
pub fn fault_of_port(value: &[u8]) -> String {
    match OddCharacter::first(value, |byte| byte.is_ascii_digit()) {
        Some(odd) => format!("{odd}; a port is a number from 1 to 65535"),
        None if value == b"0" => "a port is a number from 1 to 65535, not 0".to_owned(),
        None if value.starts_with(b"0") => {
            "it has a leading zero, which some read as octal".to_owned()
        }
        None => "it is larger than 65535".to_owned(),
    }
}

/// The reason why a value is no place (ERR-10). It shows no digit.
pub fn fault_of_location(value: &[u8]) -> String {
    let Some(place) = value.strip_prefix(b"GEO:") else {
        return format!("it does not begin with GEO:, in capitals; {EXPECTED_LOCATION}");
    };
    let is_of_place = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b',' | b';');
    if let Some(odd) = OddCharacter::first(place, is_of_place) {
        return format!("{}; {EXPECTED_LOCATION}", odd.behind(4));
    }
    let parts: Vec<_> = place.split(|byte| matches!(byte, b',' | b';')).collect();
    let what = match parts.as_slice() {
        [latitude, _] if !is_within(latitude, 90) => "its latitude is no decimal from -90 to 90",
        [_, longitude] if !is_within(longitude, 180) => {
            "its longitude is no decimal from -180 to 180"
        }
        _ => "it does not have one comma, between latitude and longitude",
    };
    format!("{what}; {EXPECTED_LOCATION}")
}

/// Reads PSU-IP-Address. An IPv4 address has four decimal parts without leading zeros, which some read as octal.
pub fn address(value: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Reads PSU-IP-Port.
///
/// Leading zeros are refused, because some readers would parse an octal number. That also excludes port 0.
pub fn port(value: &[u8]) -> Option<u16> {
    if value.starts_with(b"0") || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Whether a value is a place: `GEO:`, in capitals as in the interface, then latitude and longitude with `,` or `;` between them. A degree
/// has one to three digits, with `-` before a negative one, and optionally a point and a fraction; `+`, exponents and white space are not
/// allowed.
pub fn is_location(value: &[u8]) -> bool {
    let Some(place) = value.strip_prefix(b"GEO:") else {
        return false;
    };
    let mut parts = place.split(|byte| matches!(byte, b',' | b';'));
    let (latitude, longitude) = (parts.next(), parts.next());
    latitude.is_some_and(|degrees| is_within(degrees, 90))
        && longitude.is_some_and(|degrees| is_within(degrees, 180))
        && parts.next().is_none()
}

/// Whether a decimal lies between `-limit` and `limit`. The comparison uses the digits, because a float would
/// round 90.00000000000000000001 to 90.
fn is_within(degrees: &[u8], limit: u16) -> bool {
    let magnitude = degrees.strip_prefix(b"-").unwrap_or(degrees);
    let mut halves = magnitude.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (halves.next().unwrap_or_default(), halves.next());
    let are_digits =
        |digits: &[u8]| !digits.is_empty() && digits.iter().all(|digit| digit.is_ascii_digit());
    if whole.len() > 3 || !are_digits(whole) || fraction.is_some_and(|digits| !are_digits(digits)) {
        return false;
    }
    let whole = whole.iter().fold(0_u16, |sum, digit| {
        let digit = u16::from(digit.saturating_sub(b'0'));
        sum.saturating_mul(10).saturating_add(digit)
    });
    let is_whole = || fraction.is_none_or(|digits| digits.iter().all(|digit| *digit == b'0'));
    whole < limit || whole == limit && is_whole()
}

#[cfg(test)]
mod tests {
    use super::*;

    //= HDR-11 accepted
    #[test]
    fn what_passes() {
        let addresses = [
            "192.0.2.7",
            "0.0.0.0",
            "255.255.255.255",
            "2001:db8::7",
            "2001:DB8:0:0:0:0:0:7",
            "::",
            "::ffff:192.0.2.7",
        ];
        for value in addresses {
            assert!(address(value.as_bytes()).is_some(), "{value}");
        }
        for (value, number) in [("1", 1), ("80", 80), ("65535", u16::MAX)] {
            assert_eq!(port(value.as_bytes()), Some(number));
        }
        let places = [
            "GEO:59.91,10.75",
            "GEO:59.91;10.75",
            "GEO:-33.865143;151.209900",
            "GEO:0,0",
            "GEO:-0.0,-0.0",
            "GEO:90,180",
            "GEO:-90.000,-180.0",
            "GEO:089.9,009.5",
            "GEO:89.99999999999999999999,179.99999999999999999999",
        ];
        for value in places {
            assert!(is_location(value.as_bytes()), "{value}");
        }
    }

    //= HDR-11 refused
    #[test]
    fn other_addresses_and_ports() {
        let addresses = [
            "",
            "192.0.2",
            "192.0.2.256",
            "192.0.2.07",
            "192.0.2.7:443",
            "192.0.2.7/32",
            "192.0.2.7, 192.0.2.8",
            "0xc0.0.2.7",
            "3221225991",
            "[2001:db8::7]",
            "fe80::1%eth0",
            "2001:db8::7::1",
            "tpp.example",
            "localhost",
            "192.0.2.7 ",
        ];
        for value in addresses {
            assert_eq!(address(value.as_bytes()), None, "{value}");
        }
        assert_eq!(address(b"\xff"), None);
        let ports = [
            "",
            "0",
            "00",
            "080",
            "65536",
            "99999999999",
            "-1",
            "+80",
            "80.0",
            "0x50",
            " 80",
            "8 0",
        ];
        for value in ports {
            assert_eq!(port(value.as_bytes()), None, "{value}");
        }
    }

    //= HDR-11 refused
    #[test]
    fn other_places() {
        let places = [
            "",
            "GEO:",
            "59.91,10.75",
            "geo:59.91,10.75",
            "GEO:59.91",
            "GEO:59.91,",
            "GEO:,10.75",
            "GEO:59.91,10.75,3",
            "GEO:59.91, 10.75",
            "GEO: 59.91,10.75",
            "GEO:+59.91,10.75",
            "GEO:--59.91,10.75",
            "GEO:-,10.75",
            "GEO:59.,10.75",
            "GEO:.91,10.75",
            "GEO:59.9.1,10.75",
            "GEO:5e1,10.75",
            "GEO:NaN,inf",
            "GEO:90.00000000000000000001,0",
            "GEO:-91,0",
            "GEO:0,180.1",
            "GEO:0,-181",
            "GEO:0,999",
            "GEO:0059,10",
        ];
        for value in places {
            assert!(!is_location(value.as_bytes()), "{value}");
        }
        assert!(!is_location(&[b'9'; 100_000]) && port(&[b'9'; 100_000]).is_none());
    }
}
