//! `TPP-Redirect-URI` (HDR-8): the target of the PSU's browser after SCA.
//!
//! Invariant: a [`RedirectUri`] holds only characters that RFC 3986 allows, so a browser finds the same host in it as
//! the gateway does: no `\`, no user-info, no percent-encoded host. Nothing is normalised: SCA sends the browser to the
//! URI that was signed. Admission checks that this TPP may name the host.
//!
//! `http::Uri` is not suitable: it parses request targets, drops a fragment without an error, lets `"`, `{` and bytes above
//! ASCII stand in a path, and does not parse an IPv6 host.
//!
//! Reserved parameter names: the redirect adds its own parameters to the URI's query (§Events), so a name that
//! the TPP's server could read as one of those is refused. Servers differ in how they read names, therefore names are
//! percent-decoded once, with `+` for a space; spaces around them do not count, nor what follows a `[` or a NUL (PHP);
//! `;` separates as `&` does (older servers); letter case does not matter (ASP.NET). A TPP with such a
//! parameter can rename it; a server that confuses two PSUs cannot be corrected.

#[cfg(test)]
mod tests;

use super::trim;
use crate::{character::OddCharacter, operations::Environment};
use http::HeaderValue;
use percent_encoding::percent_decode;
use std::{
    net::{Ipv4Addr, Ipv6Addr},
    ops::Range,
};

/// HDR-8: the most characters of a URI.
pub const MAX_LENGTH: usize = 2_000;

/// The parameters that a redirect adds (§Events).
const TAKEN: [&str; 8] = [
    "psu-id",
    "psu-corporate-id",
    "tpp-session-id",
    "context",
    "system",
    "status",
    "code",
    "message",
];

/// The longest host name (RFC 1035, section 2.3.4, without the dots that end it on the wire).
const MAX_HOST: usize = 253;
/// The longest label of one (the same section).
const MAX_LABEL: usize = 63;

/// The URI of a TPP-Redirect-URI. It shares the storage of the header value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectUri {
    value: HeaderValue,
    /// The range of the host in the URI.
    host: Range<usize>,
}

/// The parts of a well-formed URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UriParts<'a> {
    /// A domain name, an IPv4 address, or an IPv6 address in its brackets, as written.
    pub host: &'a str,
    /// The query, without its question mark; `None` if there is none.
    pub query: Option<&'a str>,
}

/// The reason why a TPP-Redirect-URI is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectFault {
    /// More than [`MAX_LENGTH`] characters.
    #[error("it must have at most {MAX_LENGTH} characters")]
    TooLong,
    /// A character that RFC 3986 does not allow at its position, or a percent sign without two hexadecimal digits.
    #[error("character {0} of it may not stand there as it is (RFC 3986): percent-encode it")]
    Character(usize),
    /// Not an https URI with an authority; an http one is for loopback hosts of the sandbox.
    #[error("it must be an absolute URI that starts with https://")]
    Scheme,
    /// No host, or a host that a browser could read differently.
    #[error(
        "it must name a host: a domain name in ASCII, an IPv4 address, or an IPv6 address in brackets"
    )]
    Host,
    /// A port that is not a number up to 65535.
    #[error("its port must be a number up to 65535")]
    Port,
    /// `user@` before the host.
    #[error("it may not name a user before its host")]
    UserInfo,
    /// `#fragment`.
    #[error("it may not have a fragment: what stands behind # does not reach your server")]
    Fragment,
    /// A parameter that the redirect adds itself.
    #[error("its query may not have a parameter {0}, which the redirect adds itself")]
    Parameter(&'static str),
}

impl RedirectFault {
    /// The sentence about a value that has this fault (ERR-10). It repeats nothing of it but a character and a length.
    pub fn of(self, value: &[u8]) -> String {
        let what = match self {
            Self::TooLong => format!("it has {} characters", value.len()),
            Self::Character(at) => {
                return character_fault(OddCharacter::at(value, at.saturating_sub(1)));
            }
            Self::Scheme => scheme_fault(value).to_owned(),
            Self::Host => host_fault(value).to_owned(),
            Self::Port | Self::UserInfo | Self::Fragment | Self::Parameter(_) => {
                return self.to_string();
            }
        };
        format!("{what}; {self}")
    }
}

fn character_fault(odd: OddCharacter) -> String {
    let why = match odd.character() {
        Some('%') => " without two hexadecimal digits behind it",
        Some('[' | ']') => ", which stands around an IPv6 host alone",
        _ => ", which may not stand there as it is (RFC 3986): percent-encode it",
    };
    format!("{odd}{why}")
}

fn scheme_fault(value: &[u8]) -> &'static str {
    let text = std::str::from_utf8(value).unwrap_or_default();
    match text.split_once("://") {
        None => "it has no scheme and no host",
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => {
            "its scheme is http, which the sandbox takes for a loopback host alone"
        }
        Some(_) => "its scheme is another one",
    }
}

fn host_fault(value: &[u8]) -> &'static str {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let (_, rest) = text.split_once("://").unwrap_or_default();
    let (authority, _) = split_authority(rest);
    let (host, _) = split_port(authority);
    let name = host.strip_suffix('.').unwrap_or(host);
    let mut labels = name.split('.');
    if host.is_empty() {
        "its host is empty"
    } else if host.starts_with('[') || host.contains(':') {
        "its host is no IPv6 address in brackets"
    } else if host.contains('%') {
        "its host is percent-encoded"
    } else if labels.any(str::is_empty) {
        "its host has two points in a row, or begins with one"
    } else if name.len() > MAX_HOST || name.split('.').any(|label| label.len() > MAX_LABEL) {
        "its host, or a label of it, is too long"
    } else if last_label(name).is_some_and(is_number) {
        "its host ends in a number, and is no IPv4 address"
    } else {
        "its host has a character that no host has"
    }
}

/// The parts of a URI that a browser may be sent to.
///
/// # Errors
/// The first fault (HDR-8).
pub fn split(value: &[u8], environment: Environment) -> Result<UriParts<'_>, RedirectFault> {
    if value.len() > MAX_LENGTH {
        return Err(RedirectFault::TooLong);
    }
    let text = characters(value)?;
    let (scheme, rest) = text.split_once("://").ok_or(RedirectFault::Scheme)?;
    let (authority, query) = split_authority(rest);
    if authority.contains('@') {
        return Err(RedirectFault::UserInfo);
    }
    let (host, port) = split_port(authority);
    // RFC 3986, section 3.1: a scheme's letter case does not matter.
    let is_accepted = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => environment == Environment::Sandbox && is_loopback(host),
        _ => false,
    };
    if !is_accepted {
        return Err(RedirectFault::Scheme);
    }
    if !is_host(host) {
        return Err(RedirectFault::Host);
    }
    if port.is_some_and(|port| !is_port(port)) {
        return Err(RedirectFault::Port);
    }
    match query.and_then(taken_parameter) {
        Some(taken) => Err(RedirectFault::Parameter(taken)),
        None => Ok(UriParts { host, query }),
    }
}

impl RedirectUri {
    /// The URI in a header's value; white space around it does not count.
    ///
    /// # Errors
    /// The first fault (HDR-8).
    pub fn parse(value: &HeaderValue, environment: Environment) -> Result<Self, RedirectFault> {
        let text = trim(value.as_bytes());
        let parts = split(text, environment)?;
        // Between the scheme and the host stands `://` and nothing else.
        let begin = memchr::memchr(b':', text).map_or(0, |at| at.saturating_add(3));
        let end = begin.saturating_add(parts.host.len());
        Ok(Self {
            value: value.clone(),
            host: begin..end,
        })
    }

    /// A URI from a token.
    ///
    /// # Errors
    /// The first fault (HDR-8).
    pub fn from_text(text: &str, environment: Environment) -> Result<Self, RedirectFault> {
        let value = HeaderValue::from_str(text).map_err(|_| RedirectFault::Character(1))?;
        Self::parse(&value, environment)
    }

    /// The whole URI, as it was signed.
    pub fn as_str(&self) -> &str {
        // Each of its characters is ASCII.
        std::str::from_utf8(trim(self.value.as_bytes())).unwrap_or_default()
    }

    /// The host, as written: a domain name, an IPv4 address, or an IPv6 address in its brackets.
    pub fn host(&self) -> &str {
        self.as_str().get(self.host.clone()).unwrap_or_default()
    }

    /// Whether the host is one of those that a TPP may name (redirect_hosts). Letter case does not matter; an IPv6
    /// address is compared as written.
    pub fn is_at_one_of(&self, hosts: &[String]) -> bool {
        let own = self.host();
        hosts.iter().any(|host| host.eq_ignore_ascii_case(own))
    }
}

/// Whether a text is a host as a URI names it: a domain name, an IPv4 address, or an IPv6 address in brackets.
///
/// RFC 3986 also allows percent-encoding and punctuation in a name. No DNS name has either, browsers decode the first and differ about the
/// second, so both are refused. Browsers treat a name that ends in a number as an IPv4 address (`127.1`, `1.0x7f`), so it must be a valid
/// IPv4 address here too.
pub fn is_host(host: &str) -> bool {
    if let Some(address) = bracketed(host) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let Some(last) = last_label(name) else {
        return false;
    };
    if is_number(last) {
        return host.parse::<Ipv4Addr>().is_ok();
    }
    name.len() <= MAX_HOST
}

/// The last label of a name, if all labels are well-formed. One pass, because each request has a host.
fn last_label(name: &str) -> Option<&str> {
    let (mut start, mut length) = (0_usize, 0_usize);
    for byte in name.bytes() {
        if byte == b'.' {
            if length == 0 {
                return None;
            }
            start = start.saturating_add(length).saturating_add(1);
            length = 0;
        } else if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            length = length.saturating_add(1);
            if length > MAX_LABEL {
                return None;
            }
        } else {
            return None;
        }
    }
    name.get(start..).filter(|last| !last.is_empty())
}

/// Whether a browser treats a label as a number at the end of a host (WHATWG URL, "ends in a number checker").
fn is_number(label: &str) -> bool {
    if !label.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let hexadecimal = label
        .strip_prefix("0x")
        .or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn bracketed(host: &str) -> Option<&str> {
    host.strip_prefix('[')?.strip_suffix(']')
}

/// `localhost`, 127.0.0.0/8 or ::1: loopback hosts.
fn is_loopback(host: &str) -> bool {
    let is_ipv6 = |address: &str| {
        address
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| address.is_loopback())
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
        || bracketed(host).is_some_and(is_ipv6)
}

/// The value as text, if every byte is allowed in a URI (RFC 3986, section 2). Brackets are allowed only around a host: this function
/// refuses them after the host, and [`is_host`] in the rest of it.
fn characters(value: &[u8]) -> Result<&str, RedirectFault> {
    let mut slashes = 0_usize;
    let mut before_path = true;
    for (at, byte) in value.iter().enumerate() {
        let next = at.saturating_add(1);
        let fits = match byte {
            b'#' => return Err(RedirectFault::Fragment),
            b'%' => value
                .get(next..next.saturating_add(2))
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
            b'[' | b']' => before_path,
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=".contains(byte),
        };
        if !fits {
            return Err(RedirectFault::Character(next));
        }
        slashes = slashes.saturating_add(usize::from(*byte == b'/'));
        before_path = before_path && slashes <= 2 && *byte != b'?';
    }
    std::str::from_utf8(value).map_err(|_| RedirectFault::Character(1))
}

/// The authority and the query of the text after `://`.
fn split_authority(rest: &str) -> (&str, Option<&str>) {
    let (before_query, query) = match rest.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (rest, None),
    };
    let authority = before_query
        .split_once('/')
        .map_or(before_query, |(authority, _)| authority);
    (authority, query)
}

/// The host and the text after its colon; the colons of an IPv6 address are inside brackets.
pub fn split_port(authority: &str) -> (&str, Option<&str>) {
    let at = memchr::memrchr(b':', authority.as_bytes());
    match at.and_then(|at| authority.split_at_checked(at)) {
        Some((host, port)) if !port.contains(']') => (host, port.strip_prefix(':')),
        _ => (authority, None),
    }
}

/// RFC 3986, section 3.2.3: digits, or none.
fn is_port(port: &str) -> bool {
    port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
}

/// The first parameter of a query that a redirect adds itself.
fn taken_parameter(query: &str) -> Option<&'static str> {
    query.split(['&', ';']).find_map(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        let spaced = name.replace('+', " ");
        let decoded = percent_decode(spaced.as_bytes()).decode_utf8_lossy();
        let read = decoded.split(['[', '\0']).next().unwrap_or_default().trim();
        TAKEN
            .into_iter()
            .find(|taken| taken.eq_ignore_ascii_case(read))
    })
}
