//! Addresses in the core's answers that lead into the bank's network (FWD-7): the core's own host, and addresses that are not
//! public.
//!
//! A core builds links from the host that it is called by, which is not the one that TPPs call. Where such a link names a path of
//! the interface, its host is taken away, so that it leads to the gateway; otherwise the link goes. An address that browsers may
//! read otherwise than the gateway does is treated the same. Bodies go on unchanged: they are only looked at.

// Which hosts are inside.
mod hosts;

// What was found.
mod report;

#[cfg(test)]
mod tests;

pub(super) use hosts::InnerHosts;
pub(super) use report::{AddressAction, AddressPlace, AddressReport};

use crate::interface::{
    operations::{Catalogue, Lookup},
    path::Target,
};
use hosts::Reference;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// The longest body that is looked at, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The member of a link that holds its address (§Link and links map).
const HREF: &[u8] = b"\"href\"";
/// Finds it. Made once: most bodies are short.
static HREFS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(HREF));

/// What stands for a value that is no text: it can't be read as an address, nor as a link.
const NO_TEXT: &str = "\\";

impl InnerHosts {
    /// Cleans the headers of an answer; `counted` is told of each address that it finds.
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
    }

    /// Whether a link in a JSON body names a host inside, `but` for links that start so. It is asked for bodies that came in one piece.
    pub(super) fn is_linked_in(&self, body: &[u8], but: Option<&str>) -> bool {
        body.len() <= MAX_BODY
            && HREFS
                .find_iter(body)
                .filter_map(|at| href(body.get(at.saturating_add(HREF.len())..)?))
                .filter(|href| but.is_none_or(|but| !href.starts_with(but)))
                .any(|href| matches!(self.read(&href.replace("\\/", "/")), Reference::Inside(_)))
    }

    /// What becomes of a reference; `None` where it goes.
    fn cleaned(
        &self,
        text: &str,
        catalogue: &Catalogue,
        counted: impl FnOnce(AddressAction),
    ) -> Option<String> {
        match self.read(text) {
            Reference::Outside => Some(text.to_owned()),
            Reference::Inside(path) if is_of_the_interface(path, catalogue) => {
                counted(AddressAction::MadeRelative);
                Some(path.to_owned())
            }
            Reference::Inside(_) | Reference::Unreadable => {
                counted(AddressAction::Removed);
                None
            }
        }
    }

    /// RFC 8288, section 3: each link is cleaned by itself. One that cannot be read goes.
    fn links(
        &self,
        text: &str,
        catalogue: &Catalogue,
        mut counted: impl FnMut(AddressAction),
    ) -> Option<String> {
        let mut kept = Vec::new();
        // Readers differ over an escaped quotation mark.
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

    /// Whether a link is said to be one from a host inside, or a parameter names one (`rel` may hold addresses), or holds what some
    /// readers take for another link.
    fn is_from_inside(&self, parameters: &str) -> bool {
        parameters.contains(['<', '>'])
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
