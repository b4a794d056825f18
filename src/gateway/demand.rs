//! SCA that the core demands (SCA-14): a 401 of its whose body is a JSON object gets the gateway's link.
//!
//! The other members stay as they are and where they are. A body that is longer than 64 KiB, is no JSON object or has
//! such a link already goes on byte for byte.

use super::respond;
use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

/// The longest body that is looked at, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// A 401 on its way.
#[derive(Debug)]
pub(super) struct Demand {
    href: String,
    held: BytesMut,
    /// It is too long to be held: it goes on as it comes.
    passing: bool,
}

impl Demand {
    /// With the link that it gets.
    pub(super) fn new(href: String) -> Self {
        Self {
            href,
            held: BytesMut::new(),
            passing: false,
        }
    }

    /// Whether a body of this announced length can be held.
    pub(super) fn takes(length: Option<usize>) -> bool {
        length.is_none_or(|length| length <= MAX_BODY)
    }

    /// Takes a part of the body, and gives what is to be sent now.
    pub(super) fn pass(&mut self, part: Option<Bytes>, end: bool) -> Option<Bytes> {
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
        let mut answer: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let links = answer
            .entry("_links")
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut()?;
        if links.contains_key("scaRedirect") {
            return None;
        }
        let ours = respond::sca_links(&self.href);
        links.extend(ours.as_object()?.clone());
        serde_json::to_vec(&answer).ok().map(Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(parts: &[&[u8]]) -> Vec<u8> {
        let mut demand = Demand::new("https://bank.example/sca?request=t".into());
        let mut sent = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let part = Some(Bytes::copy_from_slice(part));
            sent.extend(
                demand
                    .pass(part, index + 1 == parts.len())
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
            r#"{"_links": []}"#,
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
