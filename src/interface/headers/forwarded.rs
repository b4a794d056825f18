//! The client's address in the headers of trusted proxies: `Forwarded` (RFC 7239) or `X-Forwarded-For`.
//!
//! Each proxy appends the address that its own client has, so the list is read from its end: an address counts only if the proxy
//! that wrote it is trusted. A client may have sent any bytes before that. Deliberately not here: which proxies are trusted.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::{IpAddr, SocketAddr};

/// X-Forwarded-For, which no standard defines.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The header by which proxies name the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedBy {
    /// `Forwarded`, with `for=` in each element.
    Forwarded,
    /// `X-Forwarded-For`, a list of addresses.
    XForwardedFor,
}

/// The last address that no trusted proxy has. If there is none, or an element before it names no address, the address of the
/// outermost trusted proxy that is known; `None` if that is the connection itself.
pub fn client(
    headers: &HeaderMap,
    by: ForwardedBy,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> Option<IpAddr> {
    let name = match by {
        ForwardedBy::Forwarded => header::FORWARDED,
        ForwardedBy::XForwardedFor => X_FORWARDED_FOR,
    };
    let mut nearest = None;
    for value in headers.get_all(name).iter().rev() {
        for element in elements_from_end(value) {
            let node = match by {
                ForwardedBy::Forwarded => forwarded_for(element),
                ForwardedBy::XForwardedFor => std::str::from_utf8(element).ok(),
            };
            let Some(address) = node.and_then(parse_node) else {
                return nearest;
            };
            nearest = Some(address);
            if !is_trusted(address) {
                return nearest;
            }
        }
    }
    nearest
}

/// The elements of a list, the last one first. A comma in a quoted string is no separator. Quotes are matched from the end, since an
/// unmatched one may only stand in the part that a client has sent.
fn elements_from_end(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value.as_bytes());
    std::iter::from_fn(move || {
        let bytes = rest?;
        let mut is_quoted = false;
        let comma = bytes.iter().enumerate().rposition(|(at, byte)| {
            is_quoted ^= *byte == b'"' && !is_escaped(bytes, at);
            *byte == b',' && !is_quoted
        });
        let (before, element) = match comma.and_then(|at| bytes.split_at_checked(at)) {
            Some((before, element)) => (Some(before), element.get(1..).unwrap_or_default()),
            None => (None, bytes),
        };
        rest = before;
        Some(element.trim_ascii())
    })
}

/// Whether an odd number of backslashes precedes this position.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

/// The value of `for` in an element of Forwarded, if there is exactly one.
fn forwarded_for(element: &[u8]) -> Option<&str> {
    let element = std::str::from_utf8(element).ok()?;
    let mut nodes = element.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value)
    });
    let (node, another) = (nodes.next()?.trim(), nodes.next());
    let unquoted = node
        .strip_prefix('"')
        .map_or(Some(node), |rest| rest.strip_suffix('"'));
    unquoted.filter(|_| another.is_none())
}

/// The address of a node: with or without a port; an IPv6 address with a port has brackets. A name that hides the address is none.
fn parse_node(node: &str) -> Option<IpAddr> {
    let address = node.parse::<SocketAddr>().map(|socket| socket.ip());
    let bare = || {
        let inner = node
            .strip_prefix('[')
            .map_or(Some(node), |rest| rest.strip_suffix(']'));
        inner?.parse::<IpAddr>().ok()
    };
    address.ok().or_else(bare).map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(by: ForwardedBy, values: &[&str]) -> Option<String> {
        let name = match by {
            ForwardedBy::Forwarded => header::FORWARDED,
            ForwardedBy::XForwardedFor => X_FORWARDED_FOR,
        };
        let values = values
            .iter()
            .map(|value| (name.clone(), HeaderValue::from_str(value).unwrap()));
        let headers = HeaderMap::from_iter([]);
        let headers = values.fold(headers, |mut headers: HeaderMap, (name, value)| {
            headers.append(name, value);
            headers
        });
        let proxy = |address: IpAddr| address.to_string().starts_with("10.");
        client(&headers, by, proxy).map(|address| address.to_string())
    }

    #[test]
    fn the_last_address_that_is_no_proxys() {
        let table: [(&[&str], Option<&str>); 17] = [
            (&[], None),
            (&["192.0.2.7"], Some("192.0.2.7")),
            (&["192.0.2.7:4711"], Some("192.0.2.7")),
            (&["2001:db8::7"], Some("2001:db8::7")),
            (&["[2001:db8::7]"], Some("2001:db8::7")),
            (&["[2001:db8::7]:4711"], Some("2001:db8::7")),
            (&["::ffff:192.0.2.7"], Some("192.0.2.7")),
            (&["198.51.100.1, 192.0.2.7"], Some("192.0.2.7")),
            (&["198.51.100.1", "192.0.2.7"], Some("192.0.2.7")),
            (&["198.51.100.1,192.0.2.7 ,\t10.0.0.2"], Some("192.0.2.7")),
            (&["192.0.2.7", "10.0.0.3, 10.0.0.2"], Some("192.0.2.7")),
            (&["10.0.0.3, 10.0.0.2"], Some("10.0.0.3")),
            (&["192.0.2.7, unknown"], None),
            (&["192.0.2.7, unknown, 10.0.0.2"], Some("10.0.0.2")),
            (&["192.0.2.7,"], None),
            (&["192.0.2.07"], None),
            (&["\", 192.0.2.7"], Some("192.0.2.7")),
        ];
        for (values, expected) in table {
            let found = found(ForwardedBy::XForwardedFor, values);
            assert_eq!(found.as_deref(), expected, "{values:?}");
        }
    }

    #[test]
    fn elements_of_forwarded() {
        let table: [(&[&str], Option<&str>); 18] = [
            (&["for=192.0.2.7"], Some("192.0.2.7")),
            (&["For=\"192.0.2.7:4711\""], Some("192.0.2.7")),
            (&["for=\"[2001:db8::7]:4711\""], Some("2001:db8::7")),
            (
                &["proto=https; for = 192.0.2.7 ;by=10.0.0.9"],
                Some("192.0.2.7"),
            ),
            (&["for=198.51.100.1, for=192.0.2.7"], Some("192.0.2.7")),
            (&["for=192.0.2.7, for=10.0.0.2"], Some("192.0.2.7")),
            (
                &["for=192.0.2.7;host=\"a,b\", for=10.0.0.2;host=\"c,d\""],
                Some("192.0.2.7"),
            ),
            // A quote that a client left open does not hide the proxy's element.
            (&["for=\"198.51.100.1, for=192.0.2.7"], Some("192.0.2.7")),
            (
                &["for=\"198.51.100.1, for=\"192.0.2.7\""],
                Some("192.0.2.7"),
            ),
            (
                &["for=192.0.2.7;x=\\\", for=\"10.0.0.2\""],
                Some("192.0.2.7"),
            ),
            // Text of the client, which the proxy quotes.
            (
                &["for=192.0.2.7;host=\"a\\\", for=6.6.6.6;x=\\\"\""],
                Some("192.0.2.7"),
            ),
            (&["for=unknown"], None),
            (&["for=_hidden, for=10.0.0.2"], Some("10.0.0.2")),
            (&["proto=https"], None),
            (&["for=192.0.2.7;for=192.0.2.8"], None),
            (&["for=\"192.0.2.7"], None),
            (&["192.0.2.7"], None),
            (&["for=[192.0.2.7]:x"], None),
        ];
        for (values, expected) in table {
            let found = found(ForwardedBy::Forwarded, values);
            assert_eq!(found.as_deref(), expected, "{values:?}");
        }
    }
}
