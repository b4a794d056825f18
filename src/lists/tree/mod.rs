//! One document, parsed once: the tree from which the signature is verified and from which the list is read.
//!
//! Invariant: nothing of the source is dropped but comments, the XML declaration, and the choice of prefixes' declarations that nothing
//! uses; whatever else XML allows (a DTD, processing instructions, other encodings) is refused. Nothing is copied but text with
//! references resolved: nodes say where in the source they stand. Deliberately not here: any schema.

// The characters of XML, and references.
pub(crate) mod characters;
// Where lines begin.
mod lines;
// The nodes of the arena.
pub(crate) mod node;
// Start tags.
mod tag;
// Prefixes and their namespaces.
mod scope;

// From bytes to nodes.
mod build;

#[cfg(test)]
mod tests;

use crate::fault::Refusal;
use build::build;
use lines::Lines;
use node::{Attribute, ElementNode, Node, Value};
use std::{borrow::Cow, fmt};

/// The longest file, in bytes. The longest national list of 2026 has 5 MB.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A document, parsed.
#[derive(Debug)]
pub struct Document {
    /// The bytes without a byte order mark.
    source: String,
    root: ElementNode,
    /// The root element and its content, in document order.
    nodes: Vec<Node>,
    attributes: Vec<Attribute>,
    /// The values of attributes that are not as they stand.
    values: Vec<String>,
    lines: Lines,
}

impl Document {
    /// Parses a file.
    ///
    /// # Errors
    /// It is longer than [`MAX_BYTES`], not well-formed, not UTF-8, has a DTD or processing instructions, or is too deep or too large.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Refusal> {
        if bytes.len() > MAX_BYTES {
            return Err(Refusal::new("the file is longer than 16 MiB"));
        }
        let mut source = String::from_utf8(bytes).map_err(|fault| {
            let at = fault.utf8_error().valid_up_to();
            Refusal::new(format_args!("not UTF-8: byte {at} of the file"))
        })?;
        if source.starts_with('\u{feff}') {
            source.drain(..'\u{feff}'.len_utf8());
        }
        let lines = Lines::of(&source);
        let built = build(&source)
            .map_err(|fault| Refusal::at(lines.line(&source, fault.at), fault.what))?;
        let Some(&Node::Element(root)) = built.nodes.first() else {
            return Err(Refusal::new("no root element"));
        };
        Ok(Self {
            source,
            root,
            nodes: built.nodes,
            attributes: built.attributes,
            values: built.values,
            lines,
        })
    }

    /// The text of the file, without a byte order mark.
    pub const fn source(&self) -> &str {
        self.source.as_str()
    }

    /// The root element.
    pub const fn root(&self) -> Element<'_> {
        Element {
            document: self,
            position: 0,
            node: self.root,
        }
    }

    /// The nodes from a position on.
    fn nodes_from(&self, position: u32) -> &[Node] {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.nodes.get(position..).unwrap_or_default()
    }
}

/// An element of a document.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    document: &'a Document,
    position: u32,
    node: ElementNode,
}

/// A piece of an element's content.
#[derive(Clone, Debug)]
pub(crate) enum Content<'a> {
    Element(Element<'a>),
    Text(Cow<'a, str>),
}

impl<'a> Element<'a> {
    /// Whether it has this name in this namespace.
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }

    /// Its namespace; empty for none.
    pub fn namespace(&self) -> &'a str {
        self.node.name.namespace.of(&self.document.source)
    }

    /// Its name without the prefix.
    pub fn local(&self) -> &'a str {
        self.node.name.local.of(&self.document.source)
    }

    /// The line of its start tag, counted from 1.
    pub fn line(&self) -> usize {
        let document = self.document;
        let position = usize::try_from(self.node.name.prefix.start).unwrap_or_default();
        document.lines.line(&document.source, position)
    }

    /// The value of an attribute, normalised; its namespace is `None` for an attribute without a prefix.
    pub fn attribute(&self, namespace: Option<&str>, local: &str) -> Option<&'a str> {
        let namespace = namespace.unwrap_or_default();
        let mut all = self.attributes();
        let found = all.find(|it| it.local() == local && it.namespace() == namespace);
        found.map(|found| found.value())
    }

    /// The elements directly in it, in order.
    pub fn children(&self) -> impl Iterator<Item = Element<'a>> + use<'a> {
        self.content().filter_map(|content| match content {
            Content::Element(element) => Some(element),
            Content::Text(_) => None,
        })
    }

    /// The only element of this name directly in it; `None` if there is none, or more than one. [`Element::optional`] and
    /// [`Element::required`] tell these cases apart.
    pub fn child(&self, namespace: &str, local: &str) -> Option<Element<'a>> {
        self.optional(namespace, local).ok().flatten()
    }

    /// The element of this name directly in it, if there is one.
    ///
    /// # Errors
    /// There is more than one.
    pub fn optional(&self, namespace: &str, local: &str) -> Result<Option<Element<'a>>, Refusal> {
        let mut found = self.children().filter(|child| child.is(namespace, local));
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(second) => Err(second.refuse(format_args!("a second {local}"))),
        }
    }

    /// The element of this name directly in it.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn required(&self, namespace: &str, local: &str) -> Result<Element<'a>, Refusal> {
        let found = self.optional(namespace, local)?;
        found.ok_or_else(|| self.refuse(format_args!("no {local} in {}", self.local())))
    }

    /// The text directly in it, with references resolved and ends of lines normalised. Not trimmed.
    pub fn text(&self) -> Cow<'a, str> {
        let mut pieces = self.content().filter_map(|content| match content {
            Content::Text(text) => Some(text),
            Content::Element(_) => None,
        });
        let first = pieces.next().unwrap_or_default();
        pieces.fold(first, |text, piece| text + piece)
    }

    /// A refusal at its line.
    pub fn refuse(&self, what: impl fmt::Display) -> Refusal {
        Refusal::at(self.line(), what)
    }

    /// Where its start tag begins in the source, in bytes.
    pub(crate) fn start(&self) -> usize {
        let name = usize::try_from(self.node.name.prefix.start).unwrap_or_default();
        // Behind the `<`.
        name.saturating_sub(1)
    }

    /// Its prefix; empty for none.
    pub(crate) fn prefix(&self) -> &'a str {
        self.node.name.prefix.of(&self.document.source)
    }

    /// Its attributes, without declarations of namespaces, in order.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = AttributeOf<'a>> + use<'a> {
        let document = self.document;
        let (first, end) = self.node.attributes;
        let count = usize::try_from(end.saturating_sub(first)).unwrap_or_default();
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let all = document.attributes.iter().skip(first).take(count);
        all.map(move |attribute| AttributeOf {
            document,
            attribute: *attribute,
        })
    }

    /// Its content in order: elements and pieces of text.
    pub(crate) fn content(&self) -> impl Iterator<Item = Content<'a>> + use<'a> {
        let document = self.document;
        let end = self.node.end;
        let mut next = self.position + 1;
        std::iter::from_fn(move || {
            let position = next;
            let node = document.nodes_from(position).first()?;
            if position >= end {
                return None;
            }
            next += 1;
            Some(match *node {
                Node::Element(node) => {
                    next = node.end;
                    Content::Element(Element {
                        document,
                        position,
                        node,
                    })
                }
                Node::Text(span) => {
                    Content::Text(characters::normalise_lines(span.of(&document.source)))
                }
                Node::Character(character) => Content::Text(Cow::Owned(character.to_string())),
            })
        })
    }

    /// It and every element in it, in document order.
    pub(crate) fn descendants(&self) -> impl Iterator<Item = Element<'a>> + use<'a> {
        let document = self.document;
        let nodes = document.nodes_from(self.position).iter();
        let all = nodes.zip(self.position..self.node.end);
        all.filter_map(move |(node, position)| match *node {
            Node::Element(node) => Some(Element {
                document,
                position,
                node,
            }),
            Node::Text(_) | Node::Character(_) => None,
        })
    }
}

/// Two are equal if they are the same element of the same document.
impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.document, other.document) && self.position == other.position
    }
}

impl fmt::Debug for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}", self.local(), self.line())
    }
}

/// An attribute of an element.
#[derive(Clone, Copy)]
pub(crate) struct AttributeOf<'a> {
    document: &'a Document,
    attribute: Attribute,
}

impl<'a> AttributeOf<'a> {
    /// Its prefix; empty for none.
    pub(crate) fn prefix(&self) -> &'a str {
        self.attribute.name.prefix.of(&self.document.source)
    }

    /// Its namespace; empty for none.
    pub(crate) fn namespace(&self) -> &'a str {
        self.attribute.name.namespace.of(&self.document.source)
    }

    /// Its name without the prefix.
    pub(crate) fn local(&self) -> &'a str {
        self.attribute.name.local.of(&self.document.source)
    }

    /// Its value, normalised.
    pub(crate) fn value(&self) -> &'a str {
        match self.attribute.value {
            Value::Source(span) => span.of(&self.document.source),
            Value::Resolved(position) => {
                let position = usize::try_from(position).unwrap_or(usize::MAX);
                self.document
                    .values
                    .get(position)
                    .map_or("", String::as_str)
            }
        }
    }
}
