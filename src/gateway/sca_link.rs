//! Writes the link that starts an SCA into the body of an answer: the gateway's own, or the core's 401 with a JSON object
//! (SCA-14).
//!
//! The other members of the core's object keep their bytes and their order, except `code` on account information, which must not
//! occur beside a link (ERR-2). A body that is longer than 64 KiB once decoded, is not a JSON object or needs no change passes unchanged.

use super::{core_head, upstream::CoreBody};
use crate::{admission::Admitted, interface::operations::Sca, sca::SealFault};
use bytes::Bytes;
use http::response::Parts;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use std::fmt;

/// The longest body that is rewritten, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// A links map with one link (§Link and links map).
pub(super) fn links_object(href: &str) -> Value {
    json!({ "scaRedirect": { "href": href, "verbs": ["GET"] } })
}

/// Writes the link for a request into the core's 401, whose body is `text` once decoded. Returns the length of the new body; 0 if the body
/// stays unchanged.
///
/// # Errors
/// A link cannot be sealed.
pub(super) fn write(
    admitted: &Admitted,
    head: &mut Parts,
    body: &mut CoreBody,
    text: &[u8],
) -> Result<usize, SealFault> {
    let link = ScaLink::for_answer_to(admitted)?;
    let Some(linked) = link.written_into(text) else {
        return Ok(0);
    };
    let length = linked.len();
    core_head::frame_changed_body(&mut head.headers, length);
    body.hold(linked);
    Ok(length)
}

/// The link for the core's 401.
#[derive(Debug)]
struct ScaLink {
    /// The link for a body without one; `None` if the gateway cannot create one.
    href: Option<String>,
    /// Whether the operation is account information, whose 401 has no code beside a link.
    without_code: bool,
}

impl ScaLink {
    fn for_answer_to(admitted: &Admitted) -> Result<Self, SealFault> {
        Ok(Self {
            without_code: admitted.operation().sca == Sca::Consent,
            href: admitted.sca_redirect()?,
        })
    }

    /// The body with the link; `None` if it stays unchanged.
    fn written_into(&self, body: &[u8]) -> Option<Bytes> {
        let is_small = body.len() <= MAX_BODY;
        is_small.then(|| self.linked(body)).flatten()
    }

    fn linked(&self, body: &[u8]) -> Option<Bytes> {
        let Object(mut answer) = serde_json::from_slice(body).ok()?;
        let theirs = answer.iter().position(|(name, _)| name == "_links");
        let found = theirs.and_then(|at| answer.get(at));
        let found = found.and_then(|(_, links)| serde_json::from_str(links.get()).ok());
        let Object(mut links) = found.unwrap_or(Object(Vec::new()));
        let has_code = answer.iter().any(|(name, _)| name == "code");
        let is_link = |(name, link): &(String, Box<RawValue>)| name == "scaRedirect" && leads(link);
        if !links.iter().any(is_link) {
            links.retain(|(name, _)| name != "scaRedirect");
            let ours = links_object(self.href.as_ref()?);
            let ours = serde_json::from_str(&ours.to_string());
            let Object(ours) = ours.ok()?;
            links.extend(ours);
            let links = to_raw_value(&Object(links)).ok()?;
            match theirs.and_then(|at| answer.get_mut(at)) {
                Some((_, theirs)) => *theirs = links,
                None => answer.push(("_links".to_owned(), links)),
            }
        } else if !(self.without_code && has_code) {
            return None;
        }
        if self.without_code {
            answer.retain(|(name, _)| name != "code");
        }
        serde_json::to_vec(&Object(answer)).ok().map(Bytes::from)
    }
}

/// Whether a link has an address; a link without one counts as absent.
fn leads(link: &RawValue) -> bool {
    let link: Option<Value> = serde_json::from_str(link.get()).ok();
    let href = link.as_ref().and_then(|link| link.get("href")?.as_str());
    href.is_some_and(|href| !href.is_empty())
}

/// A JSON object that preserves the order of its members and the bytes of their values.
struct Object(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Object;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(body: &str) -> String {
        pass_with(true, body)
    }

    fn pass_with(without_code: bool, body: &str) -> String {
        let link = ScaLink {
            href: Some("https://bank.example/sca?request=t".to_owned()),
            without_code,
        };
        let written = link.written_into(body.as_bytes());
        written.map_or(body.to_owned(), |written| {
            String::from_utf8(written.to_vec()).unwrap()
        })
    }

    //= SCA-14 accepted
    #[test]
    fn an_object_gets_the_link_and_keeps_the_rest() {
        let link = r#""scaRedirect":{"href":"https://bank.example/sca?request=t","verbs":["GET"]}"#;
        let table = [
            ("{}".to_owned(), format!(r#"{{"_links":{{{link}}}}}"#)),
            (
                r#"{"b":1,"_links":{"self":{"href":"/x"}},"a":[1.50]}"#.into(),
                format!(r#"{{"b":1,"_links":{{"self":{{"href":"/x"}},{link}}},"a":[1.50]}}"#),
            ),
        ];
        for (body, expected) in table {
            assert_eq!(pass(&body), expected);
        }
    }

    //= ERR-2 accepted
    #[test]
    fn a_code_stays_but_on_account_information() {
        let theirs = r#"{"code":"X","_links":{"scaRedirect":{"href":"/theirs"}}}"#;
        let table = [
            (
                true,
                theirs,
                r#"{"_links":{"scaRedirect":{"href":"/theirs"}}}"#,
            ),
            (false, theirs, theirs),
        ];
        for (without_code, body, expected) in table {
            assert_eq!(pass_with(without_code, body), expected);
        }
        let linked = pass_with(false, r#"{"code":"X"}"#);
        assert!(linked.starts_with(r#"{"code":"X","_links""#), "{linked}");
    }

    //= SCA-14 accepted
    #[test]
    fn anything_else_goes_on_byte_for_byte() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_BODY));
        let table = [
            "",
            "[]",
            "null",
            " {",
            "{\"a\":1}x",
            r#"{ "_links": {"scaRedirect": {"href": "/theirs"} } }"#,
            &long,
        ];
        for body in table {
            assert_eq!(pass(body), body, "{body:.40}");
        }
    }
}
