//! Inner addresses anywhere in a text (FWD-7): IPv4 and IPv6 addresses that only the bank's network has, alone, with a port, in a list, in a
//! URL or quoted, and names of the machine itself.
//!
//! Deliberately not here: the core's own hosts, and the hosts of references ([`super::hosts`]).

use crate::trust::revocation;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a text contains an inner address, or a name of the machine itself.
pub(super) fn names_inner_address(text: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
    let mut names = text.split(|byte| !is_of_name(byte));
    names.any(|name| is_this_machine(name) || names_inner_v4(name)) || names_inner_v6(text)
}

/// RFC 6761, section 6.3, and the names that systems give to the loopback address.
fn is_this_machine(name: &[u8]) -> bool {
    let mut labels = name.rsplit(|byte| *byte == b'.');
    let last = labels.find(|label| !label.is_empty());
    last.is_some_and(|label| {
        [&b"localhost"[..], b"localdomain", b"ip6-localhost"]
            .iter()
            .any(|machine| label.eq_ignore_ascii_case(machine))
    })
}

/// An IPv4 address in a name, also behind other labels or in a range, and in names such as `ip-10-0-0-5` that clouds give to machines.
/// Names that only begin with an address are other names, and so are versions of more than four numbers.
fn names_inner_v4(name: &[u8]) -> bool {
    let mut parts = name.split(|byte| b"-_".contains(byte));
    let dotted = |part: &[u8]| {
        let digits = part.iter().position(u8::is_ascii_digit);
        let from = digits.and_then(|first| part.get(first..));
        from.is_some_and(|text| v4(text, b'.').is_some_and(is_inner_v4))
    };
    let of_cloud = || {
        let host = name.split(|byte| *byte == b'.').next();
        let rest = host.and_then(|host| host.split_at_checked(3));
        rest.is_some_and(|(prefix, rest)| {
            prefix.eq_ignore_ascii_case(b"ip-") && v4(rest, b'-').is_some_and(is_inner_v4)
        })
    };
    parts.any(dotted) || of_cloud()
}

/// Four numbers; letters may follow the last one, and a dot. A leading zero changes nothing: the text may have been padded.
fn v4(text: &[u8], separator: u8) -> Option<Ipv4Addr> {
    let text = text.strip_suffix(b".").unwrap_or(text);
    let mut numbers = text.split(|byte| *byte == separator);
    let mut next = || numbers.next();
    let (first, second, third) = (number(next()?)?, number(next()?)?, number(next()?)?);
    let last = next()?;
    let end = last.iter().position(|byte| !byte.is_ascii_digit());
    let last = number(last.get(..end.unwrap_or(last.len()))?)?;
    next()
        .is_none()
        .then_some(Ipv4Addr::new(first, second, third, last))
}

/// A number of an IPv4 address, of up to three digits.
fn number(digits: &[u8]) -> Option<u8> {
    let is_number = (1..=3).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let digits = is_number.then(|| std::str::from_utf8(digits).ok())?;
    digits?.parse().ok()
}

/// Addresses of 0.0.0.0/8 but the first are versions rather than addresses, because no host has one.
fn is_inner_v4(address: Ipv4Addr) -> bool {
    let is_version = address.octets().first() == Some(&0) && !address.is_unspecified();
    !is_version && !revocation::is_public(IpAddr::V4(address))
}

/// An IPv6 address: a run of hexadecimal digits and colons. A port or a word may stand beside it after a colon.
fn names_inner_v6(text: &[u8]) -> bool {
    let is_of_address = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b':';
    let mut rest = text;
    let mut before = None;
    while let Some(start) = rest.iter().position(is_of_address) {
        let (skipped, run) = rest.split_at(start);
        before = skipped.last().or(before);
        let length = run.iter().position(|byte| !is_of_address(byte));
        let length = length.unwrap_or(run.len());
        let tail = run.get(length..).map_or(0, dotted_tail);
        let (run, after) = run.split_at(length.saturating_add(tail));
        if run.iter().filter(|byte| **byte == b':').count() > 1
            && is_inner_run(before, run, after.first())
        {
            return true;
        }
        before = run.last();
        rest = after;
    }
    false
}

/// The length of the rest of an IPv4 address at the end of an IPv6 address, whose first number is in the run before.
fn dotted_tail(text: &[u8]) -> usize {
    let goes_on = text.first() == Some(&b'.') && text.get(1).is_some_and(u8::is_ascii_digit);
    let is_of_tail = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    match goes_on {
        true => text.iter().take_while(is_of_tail).count(),
        false => 0,
    }
}

/// Whether a run, between these bytes, contains an inner address. Where a word stands before the run, its last letters are in the run.
fn is_inner_run(before: Option<&u8>, run: &[u8], after: Option<&u8>) -> bool {
    let Ok(run) = std::str::from_utf8(run) else {
        return false;
    };
    let follows_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let run = match run.split_once(':') {
        Some((_, rest)) if follows_word => rest,
        _ => run,
    };
    if run == "::" {
        return before == Some(&b'[') && after == Some(&b']');
    }
    let behind = |run| str::split_once(run, ':').map_or("", |(_, rest)| rest);
    let ahead_of = |run| str::rsplit_once(run, ':').map_or("", |(rest, _)| rest);
    if let Ok(address) = run.parse() {
        return is_inner_v6(address);
    }
    let parts = [behind(run), ahead_of(run), ahead_of(behind(run))];
    parts.iter().any(|part| part.parse().is_ok_and(is_inner_v6))
}

/// Loopback, unspecified, unique local (RFC 4193), link-local and site-local addresses, and those that embed an inner IPv4 address: mapped,
/// compatible, NAT64 (RFC 6052) and 6to4 (RFC 3056).
fn is_inner_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        is_inner_v4(Ipv4Addr::from_bits(
            (u32::from(high) << 16) | u32::from(low),
        ))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => true,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        [first, ..] => first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn addresses_of_the_banks_network() {
        for inner in [
            "10.0.0.5",
            "10.0.0.5:8080",
            "x, 10.0.0.5:8080;q=1",
            "\"10.0.0.5\"",
            "'192.168.1.7'",
            "(172.16.0.1)",
            "http://127.0.0.1/x",
            "https://user@169.254.169.254:80/",
            "http://bank.example/?next=10.1.2.3",
            "10.0.0.0/8",
            "10.0.0.5-10.0.0.9",
            "193.0.0.1-10.0.0.9",
            "10.0.0.5.",
            "at 10.0.0.5, since",
            "node10.0.0.5",
            "core-10.0.0.5",
            "core.10.0.0.5",
            "core_10.0.0.5_a",
            "10.0.0.5eth0",
            "010.000.000.005",
            "100.64.3.1",
            "0.0.0.0:80",
            "ip-10-0-0-5",
            "http://IP-10-0-0-5.eu.compute.internal/",
            "::1",
            "[::1]:8080",
            "[::]",
            "fe80::1",
            "FE80::1%eth0",
            "[fe80::1%25eth0]",
            "for=\"[fd00::7]:4711\"",
            "fd12:3456:789a:1::1",
            "fd00:1:2:3:4:5:6:7:8080",
            "node:fe80::1",
            "host=fe80::1:8080",
            "::ffff:10.0.0.5",
            "::ffff:a00:5",
            "::10.0.0.5",
            "64:ff9b::a00:5",
            "2002:a00:5::1",
            "fec0::1",
            "0:0:0:0:0:0:0:1",
            "2a00:1450::1, fe80::1",
            "localhost",
            "LOCALHOST:8080",
            "api.localhost.",
            "http://localhost/",
            "localhost.localdomain",
        ] {
            assert!(names_inner_address(inner.as_bytes()), "{inner}");
        }
        for other in [
            "",
            "application/json; charset=utf-8",
            "93.184.216.34",
            "http://93.184.216.34:8080/",
            "https://10.0.0.5.bank.example/",
            "10.0.0.5.1",
            "110.0.0.5",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.0005",
            "10..0.0.5",
            "0.9.1.2",
            "1.2.3.4",
            "ip-93-184-216-34",
            "2026-11-26T12:30:45Z",
            "Thu, 26 Nov 2026 12:30:45 GMT",
            "2a00:1450::1",
            "[2a00:1450:4001::fe80]:8443",
            "::ffff:93.184.216.34",
            "aa:bb:cc:dd:ee:ff:00:11",
            "de:ad:be:ef:00:01",
            "std::fe80",
            "a :: b",
            "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
            "mylocalhost",
            "localhost.bank.example",
            "\"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
        ] {
            assert!(!names_inner_address(other.as_bytes()), "{other}");
        }
    }
}
