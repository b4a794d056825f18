//! Addresses in the core's answers that point into the bank's network (FWD-7): the core's own host, and non-public addresses.
//!
//! A core builds links from its own Host, which is not the host that TPPs call. If such a link contains a path of the interface,
//! the gateway removes its host, so that the link points to the gateway; otherwise it removes the link. An address that browsers
//! may parse differently from the gateway is treated the same. Any other header that names a host of the core's own or an inner address is
//! removed, wherever it stands in the header. Bodies are only searched, and not changed.

// The inside hosts.
mod hosts;

// Reporting of found addresses.
mod report;

// Inner addresses in a text.
mod text;

#[cfg(test)]
mod tests;

pub(super) use hosts::InnerHosts;
pub(super) use report::AddressReport;

use crate::{
    interface::{
        operations::{Catalogue, Lookup},
        path::Target,
    },
    telemetry::{AddressAction, AddressPlace},
};
use hosts::Reference;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// The longest body that is searched, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The member of a link that holds its address (§Link and links map).
const HREF: &[u8] = b"\"href\"";
/// The searcher for [`HREF`], built once because most bodies are short.
static HREFS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(HREF));

/// Replaces a value that is not text: it is not parsable as an address or a link.
const NO_TEXT: &str = "\\";

impl InnerHosts<'_> {
    /// Removes inner addresses from the headers of an answer; `counted` is called for each.
    pub(super) fn clean(
        &self,
        headers: &mut HeaderMap,
        catalogue: &Catalogue,
        mut counted: impl FnMut(AddressPlace, AddressAction),
    ) {
        let single = [
            (header::LOCATION, AddressPlace::Location),
            (header::CONTENT_LOCATION, AddressPlace::ContentLocation),
        ];
        for (name, place) in single {
            replace(headers, name, |value| {
                self.cleaned(value, catalogue, |done| counted(place, done))
            });
        }
        replace(headers, header::LINK, |value| {
            self.links(value, catalogue, |done| counted(AddressPlace::Link, done))
        });
        while let Some(name) = self.header_that_names(headers) {
            headers.remove(&name);
            counted(AddressPlace::Other, AddressAction::Removed);
        }
    }

    /// Whether a link in a JSON body points to an inside host, except links that start with `but`. Called only for bodies that
    /// arrived in one piece.
    pub(super) fn is_linked_in(&self, body: &[u8], but: Option<&str>) -> bool {
        body.len() <= MAX_BODY
            && HREFS
                .find_iter(body)
                .filter_map(|at| href(body.get(at.saturating_add(HREF.len())..)?))
                .filter(|href| but.is_none_or(|but| !href.starts_with(but)))
                .any(|href| matches!(self.read(&href.replace("\\/", "/")), Reference::Inside(_)))
    }

    /// A header with a host of the core's own or an inner address: not every place of a host is known, and a part of a value may mean
    /// something else.
    fn header_that_names(&self, headers: &HeaderMap) -> Option<HeaderName> {
        let mut headers = headers.iter();
        let found = headers.find(|(_, value)| self.is_named_in(value.as_bytes()));
        found.map(|(name, _)| name.clone())
    }

    /// The replacement of a reference; `None` if it is removed.
    fn cleaned(
        &self,
        text: &str,
        catalogue: &Catalogue,
        counted: impl FnOnce(AddressAction),
    ) -> Option<String> {
        match self.read(text) {
            Reference::Outside if !self.is_named_in(text.as_bytes()) => Some(text.to_owned()),
            Reference::Inside(path)
                if is_of_the_interface(path, catalogue) && !self.is_named_in(path.as_bytes()) =>
            {
                counted(AddressAction::MadeRelative);
                Some(path.to_owned())
            }
            _ => {
                counted(AddressAction::Removed);
                None
            }
        }
    }

    /// RFC 8288, section 3: each link is checked separately. An unreadable one is removed.
    fn links(
        &self,
        text: &str,
        catalogue: &Catalogue,
        mut counted: impl FnMut(AddressAction),
    ) -> Option<String> {
        let mut kept = Vec::new();
        // Parsers differ on escaped quotation marks.
        let text = if text.contains('\\') { NO_TEXT } else { text };
        for link in split(text, b',') {
            let Some((target, parameters)) =
                link.strip_prefix('<').and_then(|rest| rest.split_once('>'))
            else {
                if !link.is_empty() {
                    counted(AddressAction::Removed);
                }
                continue;
            };
            if self.is_from_inside(parameters) {
                counted(AddressAction::Removed);
                continue;
            }
            let target = self.cleaned(target, catalogue, &mut counted);
            kept.extend(target.map(|target| format!("<{target}>{parameters}")));
        }
        (!kept.is_empty()).then(|| kept.join(", "))
    }

    /// Whether the link's parameters name an inside host (`anchor` and `rel` may contain addresses), or contain text that some
    /// parsers take for another link.
    fn is_from_inside(&self, parameters: &str) -> bool {
        parameters.contains(['<', '>'])
            || self.is_named_in(parameters.as_bytes())
            || split(parameters, b';').into_iter().any(|parameter| {
                parameter.split_once('=').is_some_and(|(name, value)| {
                    let value = value.trim().trim_matches('"');
                    let mut words = value.split([' ', ',']);
                    let names_inside = |word| matches!(self.read(word), Reference::Inside(_));
                    name.trim().eq_ignore_ascii_case("anchor")
                        && self.read(value) != Reference::Outside
                        || words.any(names_inside)
                })
            })
    }
}

/// Rewrites the values of a header, if it is present.
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

/// Whether path and query belong to an operation of the interface.
fn is_of_the_interface(path: &str, catalogue: &Catalogue) -> bool {
    let target = path.split('#').next().unwrap_or_default();
    Target::parse(target.as_bytes()).is_ok_and(|target| {
        matches!(
            catalogue.find(&Method::GET, &target),
            Lookup::Found(_) | Lookup::OtherMethods(_)
        )
    })
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

/// The raw value of the member whose name ends where `rest` begins.
fn href(rest: &[u8]) -> Option<&str> {
    let value = rest.trim_ascii_start().strip_prefix(b":")?;
    let value = value.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', value)?;
    std::str::from_utf8(value.get(..end)?).ok()
}
