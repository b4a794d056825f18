//! The authority that a request is for: `Host`, or `:authority` over HTTP/2 (FWD-2).
//!
//! The core gets the authority in Forwarded and may build links from it, so only a host and a port with one possible reading
//! are accepted. Deliberately not here: the check that there is exactly one authority (`Head` in admission, HTTP-7).

use super::redirect_uri;
use crate::character::OddCharacter;
use std::num::NonZeroU16;

/// The default port of https.
const HTTPS: u16 = 443;

/// An authority that is well-formed, borrowed from the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    host: &'a str,
    port: Option<NonZeroU16>,
}

/// Reads an authority: a host as a URI names it, with or without a port. `None` for anything else, including an authority with userinfo.
pub fn parse(text: &[u8]) -> Option<Authority<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    let (host, port) = redirect_uri::split_port(text);
    let port = match port {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    redirect_uri::is_host(host).then_some(Authority { host, port })
}

/// The reason why a text is no authority (ERR-10).
pub fn fault(text: &[u8]) -> String {
    const FORM: &str = "it must be a host, with or without a port, as in api.bank.example:443";
    let is_of_host = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'[' | b']')
    };
    if let Some(odd) = OddCharacter::first(text, is_of_host) {
        let why = match odd.character() {
            Some('@') => ": no user stands before the host",
            Some('/') => ": no path and no scheme stand in it",
            Some(',') => ": one host stands in it",
            _ => "",
        };
        return format!("{odd}{why}; {FORM}");
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    let (host, port) = redirect_uri::split_port(text);
    let what = match port {
        _ if host.is_empty() => "its host is empty",
        _ if !redirect_uri::is_host(host) => "its host is no domain name and no IP address",
        Some("") => "its port is empty",
        _ => "its port is no number from 1 to 65535",
    };
    format!("{what}; {FORM}")
}

impl<'a> Authority<'a> {
    /// The host, as written; an IPv6 address has its brackets.
    pub const fn host(&self) -> &'a str {
        self.host
    }

    /// The port; `None` if the authority has none.
    pub fn named_port(&self) -> Option<u16> {
        self.port.map(NonZeroU16::get)
    }

    /// Whether the authority is one of these. The comparison ignores letter case; the default port is that of https.
    pub fn is_one_of(&self, others: &[String]) -> bool {
        let mut others = others.iter().filter_map(|other| parse(other.as_bytes()));
        others
            .any(|other| other.host.eq_ignore_ascii_case(self.host) && other.port() == self.port())
    }

    fn port(&self) -> u16 {
        self.port.map_or(HTTPS, NonZeroU16::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        for good in [
            "localhost",
            "api.bank.example",
            "api.bank.example.",
            "API.bank.example:8443",
            "192.0.2.7:1",
            "[2001:db8::7]",
            "[2001:db8::7]:65535",
        ] {
            assert!(parse(good.as_bytes()).is_some(), "{good}");
        }
        for bad in [
            "",
            " ",
            "a b",
            "a/b",
            "a,b",
            "a\tb",
            "a;b",
            "a\"b",
            "a\\b",
            "a@b",
            "a%2eb",
            "a:",
            "a:0",
            "a:65536",
            "a:+1",
            "a:b",
            "a:1:2",
            "a..b",
            ".a",
            ":1",
            "[::1",
            "::1",
            "[::1]x",
            "[fe80::1%25eth0]",
            "127.1",
            "0x7f.1",
            "https://a",
            "a?b",
            "a#b",
            "b\u{f8}k.example",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse(b"a\xffb"), None);
    }

    #[test]
    fn comparison() {
        let hosts = ["api.bank.example", "[2001:db8::7]:8443"].map(str::to_owned);
        let table = [
            ("api.bank.example", true),
            ("API.Bank.Example:443", true),
            ("api.bank.example:8443", false),
            ("api.bank.example.", false),
            ("xapi.bank.example", false),
            ("[2001:db8::7]:8443", true),
            ("[2001:db8::7]", false),
        ];
        for (text, is_one) in table {
            let authority = parse(text.as_bytes()).unwrap();
            assert_eq!(authority.is_one_of(&hosts), is_one, "{text}");
        }
    }
}
