//! The arena of a document: its nodes in document order, which say where in the source their parts stand.

/// A part of the source, in bytes. A source has at most 16 MiB, so that 32 bits are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// The part of the source; empty if it is not within it.
    pub(crate) fn of(self, source: &str) -> &str {
        let range = usize::try_from(self.start)
            .ok()
            .zip(usize::try_from(self.end).ok());
        range
            .and_then(|(start, end)| source.get(start..end))
            .unwrap_or_default()
    }
}

/// The namespace that is bound to the prefix `xml` without a declaration.
pub(crate) const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// A namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    None,
    /// Of the prefix `xml`, which nothing declares.
    Xml,
    /// As a declaration has it.
    Declared(Span),
}

impl Namespace {
    /// Its name; empty for none.
    pub(crate) fn of(self, source: &str) -> &str {
        match self {
            Self::None => "",
            Self::Xml => XML,
            Self::Declared(span) => span.of(source),
        }
    }
}

/// A name of an element or attribute, resolved. Without a prefix that part is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) prefix: Span,
    pub(crate) local: Span,
    pub(crate) namespace: Namespace,
}

impl Name {
    /// The whole name as it stands.
    pub(crate) const fn source(self) -> Span {
        Span {
            start: self.prefix.start,
            end: self.local.end,
        }
    }
}

/// An attribute that is no declaration of a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: Name,
    pub(crate) value: Value,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// As it stands in the source.
    Source(Span),
    /// It had references or white space: the position in the document's list of resolved values.
    Resolved(u32),
}

/// A node of the tree. Comments are none: no canonical form of a list has them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Element(ElementNode),
    /// Characters, or a CDATA section's content: no reference stands in it.
    Text(Span),
    /// A reference, resolved.
    Character(char),
}

/// An element. Its content is the nodes behind it up to `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementNode {
    pub(crate) name: Name,
    /// The positions of its attributes, first and one behind the last.
    pub(crate) attributes: (u32, u32),
    /// The position behind its last descendant.
    pub(crate) end: u32,
}
