//! Writes the link that starts an SCA into the body of an answer: the gateway's own, or the core's 401 with a JSON object
//! (SCA-14).
//!
//! The other members of the core's object keep their bytes and their order, except `code` on account information, which must not
//! occur beside a link (ERR-2). A body that is longer than 64 KiB, is not a JSON object or needs no change passes unchanged.

use crate::{admission::Admitted, interface::operations::Sca, sca::SealFault};
use bytes::{Bytes, BytesMut};
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

/// Writes the link into the body of the core's 401.
#[derive(Debug)]
pub(super) struct ScaLinkWriter {
    /// The link for a body without one; `None` if the gateway cannot create one.
    href: Option<String>,
    /// Whether the operation is account information, whose 401 has no code beside a link.
    without_code: bool,
    held: BytesMut,
    /// Whether the body is too long to buffer and passes unchanged.
    passing: bool,
}

impl ScaLinkWriter {
    /// Creates a writer for the 401 to a request; `None` if the body stays unchanged.
    ///
    /// # Errors
    /// A link cannot be sealed.
    pub(super) fn for_answer_to(admitted: &Admitted) -> Result<Option<Self>, SealFault> {
        let without_code = admitted.operation().sca == Sca::Consent;
        let href = admitted.sca_redirect()?;
        Ok((without_code || href.is_some()).then(|| Self::new(href, without_code)))
    }

    fn new(href: Option<String>, without_code: bool) -> Self {
        Self {
            href,
            without_code,
            held: BytesMut::new(),
            passing: false,
        }
    }

    /// Whether a body of this announced length can be buffered.
    pub(super) fn fits(length: Option<usize>) -> bool {
        length.is_none_or(|length| length <= MAX_BODY)
    }

    /// Takes a part of the body, and returns the bytes to send now.
    pub(super) fn push(&mut self, part: Option<Bytes>, end: bool) -> Option<Bytes> {
        if self.passing {
            return part;
        }
        self.held.extend_from_slice(&part.unwrap_or_default());
        if self.held.len() > MAX_BODY {
            self.passing = true;
            return Some(self.held.split().freeze());
        }
        if !end {
            return None;
        }
        let body = self.held.split().freeze();
        Some(self.linked(&body).unwrap_or(body))
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

    fn pass(parts: &[&[u8]]) -> Vec<u8> {
        pass_with(true, parts)
    }

    fn pass_with(without_code: bool, parts: &[&[u8]]) -> Vec<u8> {
        let href = "https://bank.example/sca?request=t".to_owned();
        let mut writer = ScaLinkWriter::new(Some(href), without_code);
        let mut sent = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let part = Some(Bytes::copy_from_slice(part));
            sent.extend(
                writer
                    .push(part, index + 1 == parts.len())
                    .unwrap_or_default(),
            );
        }
        sent
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
            let (one, other) = body.as_bytes().split_at(1);
            assert_eq!(String::from_utf8(pass(&[one, other])).unwrap(), expected);
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
            let passed = pass_with(without_code, &[body.as_bytes()]);
            assert_eq!(String::from_utf8(passed).unwrap(), expected);
        }
        let linked = String::from_utf8(pass_with(false, &[br#"{"code":"X"}"#])).unwrap();
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
            assert_eq!(
                pass(&[b"", body.as_bytes(), b""]),
                body.as_bytes(),
                "{:.40}",
                body
            );
        }
    }
}
