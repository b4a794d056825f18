//! From the source to the nodes. quick-xml finds the tokens; everything that it leaves to its user is checked here: characters, names,
//! attributes, namespaces, references, one root.

use super::{
    characters::{is_allowed, is_space, normalise_value, resolve},
    node::{Attribute, ElementNode, Name, Node, Span, Value},
    scope::Scope,
    tag::{RawName, Scanner, span},
};
use quick_xml::{Reader, events::Event};

/// The deepest nesting. The lists have 20.
const MAX_DEPTH: usize = 64;

/// The most attributes of one element. The root of a list has ten, with declarations.
const MAX_ATTRIBUTES: usize = 32;

/// The most nodes, attributes and values of a document together: 20 MiB. A list of 3 MB has 65 000.
const MAX_NODES: usize = 400_000;

/// The parts of a document.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) nodes: Vec<Node>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) values: Vec<String>,
}

/// Why a source is refused, and where.
#[derive(Debug)]
pub(crate) struct BuildFault {
    /// The position in the source, in bytes.
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// Parses a source.
///
/// # Errors
/// The first fault.
pub(crate) fn build(source: &str) -> Result<Built, BuildFault> {
    if let Some((at, _)) = source.char_indices().find(|(_, c)| !is_allowed(*c)) {
        return Err(fault(at, "a character that XML does not allow"));
    }
    let mut builder = Builder {
        source,
        built: Built::default(),
        scope: Scope::default(),
        open: Vec::new(),
    };
    let mut reader = Reader::from_str(source);
    reader.config_mut().check_comments = true;
    loop {
        let at = position(&reader);
        let event = reader.read_event().map_err(|error| BuildFault {
            at: usize::try_from(reader.error_position()).unwrap_or(at),
            what: format!("not well-formed: {error}"),
        })?;
        let token = at..position(&reader);
        if matches!(event, Event::Eof) {
            return builder.finish();
        }
        builder
            .take(&event, token.start, token.end)
            .map_err(|what| fault(token.start, what))?;
    }
}

/// Where the reader stands in the source.
fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

fn fault(at: usize, what: &str) -> BuildFault {
    BuildFault {
        at,
        what: what.to_owned(),
    }
}

/// An element whose end has not come.
struct Open {
    position: usize,
    /// The number of declarations in scope outside of it.
    scope: usize,
    has_comment: bool,
    has_text: bool,
}

struct Builder<'a> {
    source: &'a str,
    built: Built,
    scope: Scope,
    open: Vec<Open>,
}

impl Builder<'_> {
    /// Takes a token, which stands at `start..end` of the source.
    fn take(&mut self, event: &Event<'_>, start: usize, end: usize) -> Result<(), &'static str> {
        match event {
            Event::Start(tag) => self.start(start + 1, end.saturating_sub(1), tag),
            Event::Empty(tag) => {
                self.start(start + 1, end.saturating_sub(2), tag)?;
                self.end()
            }
            Event::End(_) => {
                let name = self.source.get(start + 2..end.saturating_sub(1));
                let name = name.ok_or(TOKENS)?.trim_end_matches(is_space_character);
                if self.open_name() != Some(name) {
                    return Err("an end tag of another element");
                }
                self.end()
            }
            Event::Text(text) => self.text(start, end, text),
            Event::CData(text) => {
                self.inside()?.has_text = true;
                self.text(start + 9, end.saturating_sub(3), text)
            }
            Event::GeneralRef(reference) => {
                let inside = self.inside()?;
                inside.has_text = true;
                no_comment_in_text(inside)?;
                let character = resolve(reference).ok_or("an unknown entity")?;
                self.push(Node::Character(character))
            }
            Event::Comment(text) => {
                if text.contains("--") || text.ends_with('-') {
                    return Err("a comment with `--` in it");
                }
                match self.open.last_mut() {
                    Some(inside) => {
                        inside.has_comment = true;
                        no_comment_in_text(inside)
                    }
                    None => Ok(()),
                }
            }
            Event::Decl(_) if start == 0 => self.declaration(start + 2, end.saturating_sub(2)),
            Event::Decl(_) => Err("an XML declaration that is not at the beginning"),
            Event::PI(_) => Err("a processing instruction"),
            Event::DocType(_) => Err("a document type declaration (DTD)"),
            Event::Eof => Ok(()),
        }
    }

    /// Takes a start tag, whose inside stands at `start..end`.
    fn start(&mut self, start: usize, end: usize, tag: &str) -> Result<(), &'static str> {
        self.same(start, end, tag)?;
        if self.open.is_empty() && !self.built.nodes.is_empty() {
            return Err("a second root element");
        }
        if self.open.len() >= MAX_DEPTH {
            return Err("elements nested deeper than 64");
        }
        let scope = self.scope.len();
        let mut scanner = Scanner::new(self.source, start, end);
        let name = scanner.name()?;
        let mut raw = Vec::new();
        let mut count = 0;
        while let Some(attribute) = scanner.attribute()? {
            count += 1;
            if count > MAX_ATTRIBUTES {
                return Err("over 32 attributes of an element");
            }
            if !self.scope.declare(self.source, attribute, scope)? {
                raw.push(attribute);
            }
        }
        let first = self.built.attributes.len();
        for attribute in raw {
            let name = self.scope.attribute(self.source, attribute.name)?;
            self.attribute(first, name, attribute.value)?;
        }
        let node = ElementNode {
            name: self.scope.element(self.source, name)?,
            attributes: (index(first)?, index(self.built.attributes.len())?),
            end: 0,
        };
        let position = self.built.nodes.len();
        self.push(Node::Element(node))?;
        self.open.push(Open {
            position,
            scope,
            has_comment: false,
            has_text: false,
        });
        Ok(())
    }

    /// Adds an attribute to those of its element, which begin at `first`.
    fn attribute(&mut self, first: usize, name: Name, value: Span) -> Result<(), &'static str> {
        let key = |name: &Name| (name.namespace.of(self.source), name.local.of(self.source));
        let mut others = self.built.attributes.iter().skip(first);
        if others.any(|other| key(&other.name) == key(&name)) {
            return Err("two attributes of one name");
        }
        let value = match normalise_value(value.of(self.source))? {
            None => Value::Source(value),
            Some(resolved) => {
                self.built.values.push(resolved);
                Value::Resolved(index(self.built.values.len() - 1)?)
            }
        };
        self.built.attributes.push(Attribute { name, value });
        self.bound()
    }

    /// Ends the innermost element.
    fn end(&mut self) -> Result<(), &'static str> {
        let open = self.open.pop().ok_or(TOKENS)?;
        self.scope.leave(open.scope);
        let end = index(self.built.nodes.len())?;
        match self.built.nodes.get_mut(open.position) {
            Some(Node::Element(element)) => {
                element.end = end;
                Ok(())
            }
            _ => Err(TOKENS),
        }
    }

    /// Takes characters, which stand at `start..end`.
    fn text(&mut self, start: usize, end: usize, text: &str) -> Result<(), &'static str> {
        self.same(start, end, text)?;
        let is_space = text.chars().all(is_space_character);
        let Some(inside) = self.open.last_mut() else {
            return match is_space {
                true => Ok(()),
                false => Err("text outside of the root element"),
            };
        };
        inside.has_text |= !is_space;
        no_comment_in_text(inside)?;
        if text.contains("]]>") {
            return Err("`]]>` in text");
        }
        self.push(Node::Text(span(start, end)?))
    }

    /// Checks the XML declaration, whose inside stands at `start..end`: version 1.0, and UTF-8.
    fn declaration(&self, start: usize, end: usize) -> Result<(), &'static str> {
        let mut scanner = Scanner::new(self.source, start, end);
        let text = |name: RawName| (name.prefix.of(self.source), name.local.of(self.source));
        if text(scanner.name()?) != ("", "xml") {
            return Err(DECLARATION);
        }
        let mut expected = ["version", "encoding", "standalone"].as_slice();
        while let Some(attribute) = scanner.attribute()? {
            let (prefix, name) = text(attribute.name);
            let found = expected.iter().position(|expected| *expected == name);
            let found = found.filter(|_| prefix.is_empty()).ok_or(DECLARATION)?;
            expected = expected.get(found + 1..).unwrap_or_default();
            let value = attribute.value.of(self.source);
            match name {
                "version" if value != "1.0" => return Err("another version of XML than 1.0"),
                "encoding" if !value.eq_ignore_ascii_case("utf-8") => {
                    return Err("another encoding than UTF-8");
                }
                "standalone" if !matches!(value, "yes" | "no") => return Err(DECLARATION),
                _ => {}
            }
        }
        match expected.first() {
            Some(&"version") => Err(DECLARATION),
            _ => Ok(()),
        }
    }

    /// The document, if its root has ended.
    fn finish(self) -> Result<Built, BuildFault> {
        let at = self.source.len();
        match (self.built.nodes.is_empty(), self.open.is_empty()) {
            (true, _) => Err(fault(at, "no element: this is no XML document")),
            (_, false) => Err(fault(at, "the file ends within an element")),
            _ => Ok(self.built),
        }
    }

    /// The innermost open element.
    fn inside(&mut self) -> Result<&mut Open, &'static str> {
        self.open
            .last_mut()
            .ok_or("text outside of the root element")
    }

    /// The name of the innermost open element, as its start tag has it.
    fn open_name(&self) -> Option<&str> {
        match self.built.nodes.get(self.open.last()?.position)? {
            Node::Element(ElementNode { name, .. }) => Some(name.source().of(self.source)),
            _ => None,
        }
    }

    fn push(&mut self, node: Node) -> Result<(), &'static str> {
        self.built.nodes.push(node);
        self.bound()
    }

    fn bound(&self) -> Result<(), &'static str> {
        let built = &self.built;
        match built.nodes.len() + built.attributes.len() + built.values.len() {
            0..=MAX_NODES => Ok(()),
            _ => Err("over 400 000 nodes"),
        }
    }

    /// Checks that a token's text is the source at its place, so that what is verified is what stands there.
    fn same(&self, start: usize, end: usize, text: &str) -> Result<(), &'static str> {
        match self.source.get(start..end) {
            Some(found) if found == text => Ok(()),
            _ => Err(TOKENS),
        }
    }
}

/// A comment divides the text around it: one reader takes the first part for the whole, another joins them (CVE-2018-0489 and others).
const fn no_comment_in_text(inside: &Open) -> Result<(), &'static str> {
    match inside.has_comment && inside.has_text {
        true => Err("a comment inside text"),
        false => Ok(()),
    }
}

fn is_space_character(character: char) -> bool {
    u8::try_from(character).is_ok_and(is_space)
}

/// A position in the arena.
fn index(position: usize) -> Result<u32, &'static str> {
    u32::try_from(position).map_err(|_| TOKENS)
}

const DECLARATION: &str = "an XML declaration that is malformed";
const TOKENS: &str = "tokens that do not fit the source; this is a fault of the program";
