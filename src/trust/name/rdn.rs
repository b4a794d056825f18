//! The parts of a name: RDNs, and the attributes of each RDN.

use super::{fault::NameFault, kind, value::AttributeValue};
use crate::der::{self, Element, tag};
use std::{borrow::Cow, fmt};

/// A relative distinguished name: a sorted set of attributes, so that their order in the text does not matter.
#[derive(Debug, Clone)]
pub(super) struct Rdn {
    attributes: Vec<Attribute>,
    /// The second spellings of the attributes, sorted: type, spelling, and the folded value that the spelling means.
    seconds: Vec<(Cow<'static, str>, AttributeValue, AttributeValue)>,
}

impl Rdn {
    pub(super) fn new(mut attributes: Vec<Attribute>) -> Rdn {
        attributes.sort_by(|one, other| one.key().cmp(&other.key()));
        let mut seconds: Vec<_> = attributes
            .iter()
            .filter_map(Attribute::second_spelling)
            .collect();
        seconds.sort();
        Rdn {
            attributes,
            seconds,
        }
    }

    /// Takes the first SET of `sets`, the next RDN of a certificate's name.
    pub(super) fn from_der(sets: &mut &[u8], rdn: usize) -> Result<Self, NameFault> {
        let mut pairs = Element::take(sets)
            .and_then(|set| set.content_of(tag::SET))
            .filter(|pairs| !pairs.is_empty())
            .ok_or(NameFault::Rdn { rdn })?;
        let mut attributes = Vec::new();
        while !pairs.is_empty() {
            let mut pair = Element::take(&mut pairs)
                .and_then(|pair| pair.content_of(tag::SEQUENCE))
                .ok_or(NameFault::Rdn { rdn })?;
            let oid = Element::take(&mut pair)
                .and_then(|oid| oid.content_of(tag::OBJECT_IDENTIFIER))
                .and_then(der::dotted)
                .ok_or(NameFault::AttributeType { rdn })?;
            let value = Element::only(pair).ok_or(NameFault::Rdn { rdn })?;
            let second = AttributeValue::as_java_reads_it(&value);
            attributes.push(Attribute::new(
                Cow::Owned(oid),
                AttributeValue::from_element(&value),
                second.as_ref(),
            ));
        }
        Ok(Rdn::new(attributes))
    }

    /// Whether the RDN of a text equals this RDN of the certificate.
    pub(super) fn is(&self, found: &Rdn) -> bool {
        if self.attributes.len() != found.attributes.len() {
            return false;
        }
        let mut keys: Vec<_> = found
            .attributes
            .iter()
            .map(|attribute| self.meant(attribute))
            .collect();
        keys.sort_unstable();
        self.attributes.iter().map(Attribute::key).eq(keys)
    }

    /// The meaning of a text's attribute in this RDN: the first spelling if this RDN has that value, otherwise the second.
    fn meant<'a>(&'a self, found: &'a Attribute) -> (&'a str, &'a AttributeValue) {
        let oid = &*found.oid;
        let held = |value| self.held(oid, value).map(|held| (oid, held));
        held(&found.folded)
            .or_else(|| found.second.as_ref().and_then(held))
            .unwrap_or(found.key())
    }

    /// The folded value of this RDN that `value` spells; `None` if there is none.
    fn held<'a>(&'a self, oid: &str, value: &'a AttributeValue) -> Option<&'a AttributeValue> {
        let key = (oid, value);
        if self
            .attributes
            .binary_search_by(|attribute| attribute.key().cmp(&key))
            .is_ok()
        {
            return Some(value);
        }
        let found = self
            .seconds
            .binary_search_by(|(oid, spelling, _)| (&**oid, spelling).cmp(&key))
            .ok()?;
        self.seconds.get(found).map(|(_, _, meant)| meant)
    }
}

impl fmt::Display for Rdn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(&self.attributes, "+", out)
    }
}

/// An attribute: its type as a dotted OID, its value as written, and its value for the comparison.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    oid: Cow<'static, str>,
    value: AttributeValue,
    folded: AttributeValue,
    /// A second spelling that Java gives the value, folded. In a certificate: the RFC 2253 text of string types other than UTF8String. In a
    /// text: a quoted value with its quotation marks, because `toString` prints a value that begins and ends with quotation marks
    /// unchanged. So `O="ACME"` may mean a name with quotation marks or without them.
    second: Option<AttributeValue>,
}

impl Attribute {
    pub(super) fn new(
        oid: Cow<'static, str>,
        value: AttributeValue,
        second: Option<&AttributeValue>,
    ) -> Attribute {
        Attribute {
            oid,
            folded: value.folded(),
            value,
            second: second.map(AttributeValue::folded),
        }
    }

    fn key(&self) -> (&str, &AttributeValue) {
        (&self.oid, &self.folded)
    }

    fn second_spelling(&self) -> Option<(Cow<'static, str>, AttributeValue, AttributeValue)> {
        let second = self.second.clone()?;
        Some((self.oid.clone(), second, self.folded.clone()))
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", kind::keyword_of(&self.oid), self.value)
    }
}

/// Writes the parts with a separator between them.
pub(super) fn separated<T: fmt::Display>(
    parts: &[T],
    separator: &str,
    out: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.write_str(separator)?;
        }
        write!(out, "{part}")?;
    }
    Ok(())
}
