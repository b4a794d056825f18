//! Addresses in the core's answers that lead into the bank's network (FWD-7): the core's own host, and addresses that are not
//! public.
//!
//! A core builds links from the host that it is called by, which is not the one that TPPs call. Where such a link names a path of
//! the interface, its host is taken away, so that it leads to the gateway; otherwise the link goes. An address that browsers may
//! read otherwise than the gateway does is treated the same. Bodies go on unchanged: they are only looked at.

use crate::{
    interface::{
        headers::{authority, redirect_uri},
        operations::{Catalogue, Lookup},
        path::Target,
    },
    trust::revocation,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use memchr::memmem::Finder;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

/// The schemes of whose URIs browsers read an authority, whatever stands before it (WHATWG URL, "special scheme").
const SPECIAL: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "file"];

/// The longest body that is looked at, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The member of a link that holds its address (§Link and links map).
const HREF: &[u8] = b"\"href\"";
/// Finds it. Made once: most bodies are short.
static HREFS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(HREF));

/// What stands for a value that is no text: it can't be read as an address, nor as a link.
const NO_TEXT: &str = "\\";

/// Where an inner address stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Location,
    ContentLocation,
    Link,
    Body,
}

/// What was done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// The host was taken away.
    MadeRelative,
    /// The address was removed.
    Removed,
    /// It went on as it was.
    Passed,
}

impl Place {
    /// The label of a metric.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::ContentLocation => "content-location",
            Self::Link => "link",
            Self::Body => "body",
        }
    }
}

impl Done {
    /// The label of a metric.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MadeRelative => "made-relative",
            Self::Removed => "removed",
            Self::Passed => "passed",
        }
    }
}

/// What a reference to a URI names.
#[derive(Debug, PartialEq, Eq)]
enum Names<'a> {
    /// No host, or one outside.
    Outside,
    /// A host inside, with this path and query.
    Inside(&'a str),
    /// What a browser may read otherwise.
    Unreadable,
}

/// Which hosts are inside: the core's own, and those whose address is not public.
#[derive(Debug)]
pub(super) struct Inside {
    own: [String; 2],
}

impl Inside {
    /// The core's address, and the Host that it gets.
    pub(super) fn new(address: IpAddr, host: &HeaderValue) -> Self {
        let host = authority::parse(host.as_bytes()).map(|host| host.host().to_owned());
        Self {
            own: [address.to_string(), host.unwrap_or_default()],
        }
    }

    /// Cleans the headers of an answer; `counted` is told of each address that it finds.
    pub(super) fn clean(
        &self,
        headers: &mut HeaderMap,
        catalogue: &Catalogue,
        mut counted: impl FnMut(Place, Done),
    ) {
        let single = [
            (header::LOCATION, Place::Location),
            (header::CONTENT_LOCATION, Place::ContentLocation),
        ];
        for (name, place) in single {
            replace(headers, name, |value| {
                self.cleaned(value, catalogue, |done| counted(place, done))
            });
        }
        replace(headers, header::LINK, |value| {
            self.links(value, catalogue, |done| counted(Place::Link, done))
        });
    }

    /// Whether a link in a JSON body names a host inside, `but` for links that start so. It is asked for bodies that came in one piece.
    pub(super) fn is_linked_in(&self, body: &[u8], but: Option<&str>) -> bool {
        body.len() <= MAX_BODY
            && HREFS
                .find_iter(body)
                .filter_map(|at| href(body.get(at.saturating_add(HREF.len())..)?))
                .filter(|href| but.is_none_or(|but| !href.starts_with(but)))
                .any(|href| matches!(self.read(&href.replace("\\/", "/")), Names::Inside(_)))
    }

    /// What becomes of a reference; `None` where it goes.
    fn cleaned(
        &self,
        text: &str,
        catalogue: &Catalogue,
        counted: impl FnOnce(Done),
    ) -> Option<String> {
        match self.read(text) {
            Names::Outside => Some(text.to_owned()),
            Names::Inside(path) if is_of_the_interface(path, catalogue) => {
                counted(Done::MadeRelative);
                Some(path.to_owned())
            }
            Names::Inside(_) | Names::Unreadable => {
                counted(Done::Removed);
                None
            }
        }
    }

    /// RFC 8288, section 3: each link is cleaned by itself. One that cannot be read goes.
    fn links(
        &self,
        text: &str,
        catalogue: &Catalogue,
        mut counted: impl FnMut(Done),
    ) -> Option<String> {
        let mut kept = Vec::new();
        // Readers differ over an escaped quotation mark.
        let text = if text.contains('\\') { NO_TEXT } else { text };
        for link in split(text, b',') {
            let Some((target, parameters)) =
                link.strip_prefix('<').and_then(|rest| rest.split_once('>'))
            else {
                if !link.is_empty() {
                    counted(Done::Removed);
                }
                continue;
            };
            if self.is_from_inside(parameters) {
                counted(Done::Removed);
                continue;
            }
            let target = self.cleaned(target, catalogue, &mut counted);
            kept.extend(target.map(|target| format!("<{target}>{parameters}")));
        }
        (!kept.is_empty()).then(|| kept.join(", "))
    }

    /// Whether a link is said to be one from a host inside, or a parameter names one (`rel` may hold addresses), or holds what some
    /// readers take for another link.
    fn is_from_inside(&self, parameters: &str) -> bool {
        parameters.contains(['<', '>'])
            || split(parameters, b';').into_iter().any(|parameter| {
                parameter.split_once('=').is_some_and(|(name, value)| {
                    let value = value.trim().trim_matches('"');
                    let mut words = value.split([' ', ',']);
                    let names_inside = |word| matches!(self.read(word), Names::Inside(_));
                    name.trim().eq_ignore_ascii_case("anchor") && self.read(value) != Names::Outside
                        || words.any(names_inside)
                })
            })
    }

    fn read<'a>(&self, text: &'a str) -> Names<'a> {
        let text = text.trim();
        // Browsers take a backslash for a slash, and leave out tabs and line ends.
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        if !text.bytes().all(plain) {
            return Names::Unreadable;
        }
        let (scheme, rest) = split_scheme(text);
        let special = scheme.is_none_or(|scheme| {
            let mut known = SPECIAL.iter();
            known.any(|known| known.eq_ignore_ascii_case(scheme))
        });
        let Some(rest) = rest.strip_prefix("//") else {
            return match scheme {
                Some(_) if special => Names::Unreadable,
                _ => Names::Outside,
            };
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        match self.holds(authority) {
            Some(true) => Names::Inside(path),
            None if special => Names::Unreadable,
            Some(false) | None => Names::Outside,
        }
    }

    /// Whether an authority is inside; `None` where it is none.
    fn holds(&self, authority: &str) -> Option<bool> {
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
        let labels = bare.rsplit('.').next().unwrap_or_default();
        Some(
            self.own.iter().any(own)
                || labels.eq_ignore_ascii_case("localhost")
                || address.is_ok_and(|address| !revocation::is_public(address)),
        )
    }
}

/// Writes the values of a header anew, where it is there.
fn replace(
    headers: &mut HeaderMap,
    name: HeaderName,
    mut cleaned: impl FnMut(&str) -> Option<String>,
) {
    if !headers.contains_key(&name) {
        return;
    }
    let before = headers.get_all(&name).iter();
    let after = before.filter_map(|value| cleaned(value.to_str().unwrap_or(NO_TEXT)));
    let after: Vec<_> = after
        .filter_map(|value| HeaderValue::try_from(value).ok())
        .collect();
    headers.remove(&name);
    for value in after {
        headers.append(name.clone(), value);
    }
}

/// Whether path and query are those of a request that the interface has.
fn is_of_the_interface(path: &str, catalogue: &Catalogue) -> bool {
    let target = path.split('#').next().unwrap_or_default();
    Target::parse(target.as_bytes()).is_ok_and(|target| {
        matches!(
            catalogue.find(&Method::GET, &target),
            Lookup::Found(_) | Lookup::OtherMethods(_)
        )
    })
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

/// Splits at a separator, but not between `<` and `>` or in a quoted string.
fn split(text: &str, separator: u8) -> Vec<&str> {
    let (mut bracketed, mut quoted, mut escaped) = (false, false, false);
    let parts = text.split(|character: char| {
        if quoted {
            quoted = escaped || character != '"';
            escaped = !escaped && character == '\\';
            return false;
        }
        match character {
            '<' => bracketed = true,
            '>' => bracketed = false,
            '"' => quoted = !bracketed,
            _ => return !bracketed && character == char::from(separator),
        }
        false
    });
    parts.map(str::trim).collect()
}

/// The value of the member whose name ends where this begins, as it is written.
fn href(rest: &[u8]) -> Option<&str> {
    let value = rest.trim_ascii_start().strip_prefix(b":")?;
    let value = value.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', value)?;
    std::str::from_utf8(value.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::operations::{Environment, builtin};

    fn inside() -> Inside {
        let host = HeaderValue::from_static("core.bank.internal:8080");
        Inside::new("10.0.0.5".parse().unwrap(), &host)
    }

    /// What becomes of the values of a header.
    fn cleaned(name: HeaderName, value: &str) -> (Vec<String>, Vec<Done>) {
        let catalogue = Catalogue::new(Environment::Sandbox, builtin()).unwrap();
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        headers.insert(name.clone(), value);
        let mut done = Vec::new();
        inside().clean(&mut headers, &catalogue, |_, what| done.push(what));
        let left = headers.get_all(name).iter();
        let left = left.map(|value| value.to_str().unwrap().to_owned());
        (left.collect(), done)
    }

    #[test]
    fn locations() {
        const RELATIVE: &[Done] = &[Done::MadeRelative];
        const REMOVED: &[Done] = &[Done::Removed];
        let kept = [
            "/v1/accounts",
            "/nowhere",
            "accounts?x=//10.0.0.5",
            "",
            "https://bank.example/sca?request=x",
            "https://10.0.0.5.bank.example/",
            "https://93.184.216.34/x",
            "https://[2a00:1450::1]:8443/x",
            "HTTPS://Bank.Example:8443",
            "mybank://sca?next=http://10.0.0.5/",
            "bankid:///?autostarttoken=1",
            "mailto:a@10.0.0.5",
        ];
        for text in kept {
            let (left, done) = cleaned(header::LOCATION, text);
            assert_eq!((left, done.as_slice()), (vec![text.to_owned()], &[][..]));
        }
        let path = "/v1/accounts/42/balances?x=1#y";
        for host in [
            "http://10.0.0.5",
            "http://10.0.0.5:8080",
            "HTTPS://CORE.bank.internal",
            "https://core.bank.internal.:1",
            "//core.bank.internal",
            "http://localhost:8080",
            "http://api.localhost",
            "http://127.0.0.1",
            "http://user:word@192.168.1.7",
            "https://bank.example@172.16.0.1",
            "http://169.254.169.254",
            "http://0.0.0.0",
            "http://[::1]:8080",
            "http://[::ffff:10.0.0.5]",
            "http://[fe80::1]",
            "http://[fd00::7]",
            "gopher://10.0.0.5",
        ] {
            let (left, done) = cleaned(header::CONTENT_LOCATION, &format!("{host}{path}"));
            assert_eq!(
                (left, done.as_slice()),
                (vec![path.to_owned()], RELATIVE),
                "{host}"
            );
            for other in ["", "/", "/admin", "//evil.example/", "/v1/../x", "?x=1"] {
                let (left, done) = cleaned(header::LOCATION, &format!("{host}{other}"));
                assert_eq!((left, done.as_slice()), (vec![], REMOVED), "{host}{other}");
            }
        }
        for unreadable in [
            "http:\\\\10.0.0.5/v1/accounts",
            "/\\10.0.0.5/v1/accounts",
            "http:10.0.0.5/v1/accounts",
            "https:/10.0.0.5/v1/accounts",
            "///10.0.0.5/v1/accounts",
            "http:///10.0.0.5/v1/accounts",
            "http://167772165/v1/accounts",
            "http://0x0a.0.0.5/v1/accounts",
            "http://127.1/v1/accounts",
            "http://%31%30.0.0.5/v1/accounts",
            "http://10.0.0.5\t/v1/accounts",
            "http://\u{ff11}0.0.0.5/v1/accounts",
            "http://[fe80::1%25eth0]/v1/accounts",
        ] {
            let (left, done) = cleaned(header::LOCATION, unreadable);
            assert_eq!((left, done.as_slice()), (vec![], REMOVED), "{unreadable}");
        }
    }

    #[test]
    fn links() {
        let table: [(&str, &[&str], usize); 12] = [
            // What one reader takes for the text of a parameter another takes for the next link.
            (
                "<https://a>; rel=\"x, <http://core.bank.internal/>; rel=b\"",
                &[],
                1,
            ),
            (
                "<https://a>; rel=\"x, <http://core.bank.internal/>; rel=b",
                &[],
                1,
            ),
            ("</x>; rel=\"a\\\", <http://10.0.0.5/>; rel=\"b\"", &[], 1),
            ("</x>; rel=next; <http://10.0.0.5/>", &[], 1),
            ("</x>; rel=\"next http://10.0.0.5/rel\", </y>", &["</y>"], 1),
            (
                "</v1/accounts>; rel=\"next\"",
                &["</v1/accounts>; rel=\"next\""],
                0,
            ),
            (
                "<http://10.0.0.5/v1/accounts>; rel=next; title=\"a, b; c\", </x>;rel=x",
                &["</v1/accounts>; rel=next; title=\"a, b; c\", </x>;rel=x"],
                1,
            ),
            ("<http://10.0.0.5/a,b>; rel=x, </x>", &["</x>"], 1),
            ("<http://10.0.0.5/>, <http://localhost/>", &[], 2),
            ("</x>; anchor=\"http://10.0.0.5/\", </y>", &["</y>"], 1),
            ("http://10.0.0.5/; rel=x", &[], 1),
            (
                "<https://bank.example/>; anchor=\"#a\"",
                &["<https://bank.example/>; anchor=\"#a\""],
                0,
            ),
        ];
        for (value, expected, count) in table {
            let (left, done) = cleaned(header::LINK, value);
            assert_eq!(
                (left.as_slice(), done.len()),
                (
                    expected
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .as_slice(),
                    count
                ),
                "{value}"
            );
        }
    }

    #[test]
    fn links_in_a_body() {
        let long = format!(
            r#"{{"href":"http://10.0.0.5/","x":"{}"}}"#,
            "x".repeat(MAX_BODY)
        );
        for (body, found) in [
            (
                r#"{"_links":{"self":{"href":"http://10.0.0.5:8080/v1/x"}}}"#,
                true,
            ),
            (
                r#"{"_links":{"self":{"href" : "http:\/\/core.bank.internal\/v1\/x"}}}"#,
                true,
            ),
            (
                r#"{"a":{"href":"/v1/x"},"b":{"href":"//localhost/"}}"#,
                true,
            ),
            (
                r#"{"_links":{"self":{"href":"/v1/x"}},"text":"http://10.0.0.5/"}"#,
                false,
            ),
            (
                r#"{"_links":{"scaRedirect":{"href":"http://localhost/sca?request=t"}}}"#,
                false,
            ),
            (r#"{"href":"#, false),
            (r#"{"href":1,"href":"https://bank.example/"}"#, false),
            (&long, false),
        ] {
            let linked = inside().is_linked_in(body.as_bytes(), Some("http://localhost/sca"));
            assert_eq!(linked, found, "{body:.60}");
        }
    }
}
