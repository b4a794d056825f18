//! Decides whether the host of a URI reference is inside the bank's network.

use super::text::names_inner_address;
use crate::{interface::headers::redirect_uri, trust::revocation};
use memchr::memmem;
use percent_encoding::percent_decode;
use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The most encodings of a text that are undone: a reference in the query of a reference in a query.
const MAX_ENCODINGS: usize = 3;

/// The schemes for which browsers parse an authority, regardless of the slashes before it (WHATWG URL, "special scheme").
const SPECIAL: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "file"];

/// The host of a URI reference, classified.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    /// No host, or one outside.
    Outside,
    /// A host inside, with this path and query.
    Inside(&'a str),
    /// A reference that browsers may parse differently.
    Unreadable,
}

/// The inside hosts: the core's own, and those with a non-public address.
#[derive(Debug)]
pub(in crate::gateway) struct InnerHosts<'g> {
    own: &'g [String],
}

impl<'g> InnerHosts<'g> {
    /// Takes the names and addresses of the core: of its endpoints, and the Host header that it receives.
    pub(in crate::gateway) const fn new(own: &'g [String]) -> Self {
        Self { own }
    }

    /// Parses a reference as browsers do.
    pub(super) fn read<'a>(&self, text: &'a str) -> Reference<'a> {
        let text = text.trim();
        // Browsers treat a backslash as a slash, and remove tabs and line ends.
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        if !text.bytes().all(plain) {
            return Reference::Unreadable;
        }
        let (scheme, rest) = split_scheme(text);
        let special = scheme.is_none_or(|scheme| {
            let mut known = SPECIAL.iter();
            known.any(|known| known.eq_ignore_ascii_case(scheme))
        });
        let Some(rest) = rest.strip_prefix("//") else {
            return match scheme {
                Some(_) if special => Reference::Unreadable,
                _ => Reference::Outside,
            };
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        match self.holds(authority, special) {
            Some(true) => Reference::Inside(path),
            None if special => Reference::Unreadable,
            Some(false) | None => Reference::Outside,
        }
    }

    /// Whether a text contains a host of the core's own or an inner address, also percent-encoded or with escaped characters. A text that is
    /// encoded again and again does: nobody knows what is in it.
    pub(super) fn is_named_in(&self, text: &[u8]) -> bool {
        let mut text = Cow::Borrowed(text);
        for _ in 0..=MAX_ENCODINGS {
            if self.is_plain_in(&text) {
                return true;
            }
            if !text.iter().any(|byte| b"%\\".contains(byte)) {
                return false;
            }
            let decoded = percent_decode(&text).filter(|byte| *byte != b'\\');
            let decoded: Vec<_> = decoded.collect();
            if decoded == *text {
                return false;
            }
            text = Cow::Owned(decoded);
        }
        true
    }

    fn is_plain_in(&self, text: &[u8]) -> bool {
        self.own.iter().any(|own| contains(text, own.as_bytes()))
            || names_inner_address(text)
            || self.is_referenced_in(text)
    }

    /// Whether a URI in the text, with its scheme, has a host inside, or one that browsers may read as such.
    fn is_referenced_in(&self, text: &[u8]) -> bool {
        memmem::find_iter(text, b"://").any(|at| {
            let (before, rest) = text.split_at(at);
            let is_of_scheme = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            let scheme = before.iter().rev().take_while(is_of_scheme).count();
            let delimits = |byte: &u8| byte.is_ascii_whitespace() || b"\"'<>,;()".contains(byte);
            let end = rest.iter().position(delimits).unwrap_or(rest.len());
            let is_bare = end <= b"://".len();
            let from = at.saturating_sub(scheme);
            let reference = text.get(from..at.saturating_add(end)).unwrap_or_default();
            let read = std::str::from_utf8(reference).map(|reference| self.read(reference));
            !is_bare && scheme > 0 && read != Ok(Reference::Outside)
        })
    }

    /// Whether an authority is inside; `None` if it is not an authority. `is_web`: a host of one label is only known inside.
    fn holds(&self, authority: &str, is_web: bool) -> Option<bool> {
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let (host, _) = redirect_uri::split_port(authority);
        if !redirect_uri::is_host(host) {
            return None;
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        let own = |own: &String| bare.eq_ignore_ascii_case(own.trim_matches(['[', ']', '.']));
        let v4 = bare.parse::<Ipv4Addr>().map(IpAddr::V4);
        let address = v4.or_else(|_| bare.parse::<Ipv6Addr>().map(IpAddr::V6));
        let last = bare.rsplit('.').next().unwrap_or_default();
        Some(
            self.own.iter().any(own)
                || last.eq_ignore_ascii_case("localhost")
                || is_web && last == bare && address.is_err()
                || address.is_ok_and(|address| !revocation::is_public(address)),
        )
    }
}

/// Whether a text contains the host `own`. An address stands alone; a name of one label has digits or a hyphen and stands alone, or stands
/// where only a host does, because it may be a word.
fn contains(text: &[u8], own: &[u8]) -> bool {
    let found = |(at, part): (usize, &[u8])| {
        part.eq_ignore_ascii_case(own) && {
            let (before, rest) = text.split_at(at);
            stands_for_host(before, own, rest.get(own.len()..).unwrap_or_default())
        }
    };
    text.windows(own.len().max(1)).enumerate().any(found)
}

/// Whether `own`, as it stands between these texts, is the host.
fn stands_for_host(before: &[u8], own: &[u8], after: &[u8]) -> bool {
    let is_address = own.contains(&b':') || own.iter().all(|byte| b".0123456789".contains(byte));
    if !is_address && own.contains(&b'.') {
        return true;
    }
    let goes_on = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_joined = |byte: Option<&u8>| byte.is_some_and(|byte| b"-_".contains(byte));
    let is_longer = goes_on(before.last())
        || is_joined(before.last())
        || goes_on(after.first())
        || is_joined(after.first())
        || after.first() == Some(&b'.') && goes_on(after.get(1));
    let has_port = after.first() == Some(&b':') && after.get(1).is_some_and(u8::is_ascii_digit);
    let is_authority = before.ends_with(b"//") || before.ends_with(b"@") || has_port;
    let is_word = own.iter().all(u8::is_ascii_alphabetic);
    !is_longer && (is_authority || !is_word)
}

/// RFC 3986, section 3.1.
fn split_scheme(text: &str) -> (Option<&str>, &str) {
    let is_scheme = |scheme: &str| {
        let mut bytes = scheme.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, text),
    }
}
