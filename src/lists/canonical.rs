//! Exclusive XML Canonicalization 1.0 without comments, of an element of a tree (W3C, 18 July 2002).
//!
//! No list of inclusive prefixes is known here: the verifier refuses signatures that have one.

use crate::tree::{AttributeOf, Content, Element};

/// The algorithm's identifier.
pub(crate) const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

/// Writes the canonical form of an element without `omitted`, which is an element in it (the transform "enveloped-signature").
pub(crate) fn write_canonical<'a>(
    element: Element<'a>,
    omitted: Option<Element<'a>>,
    output: &mut dyn FnMut(&str),
) {
    let mut writer = Writer {
        omitted,
        rendered: Vec::new(),
        output,
    };
    writer.element(element);
}

struct Writer<'a, 'o> {
    omitted: Option<Element<'a>>,
    /// The declarations written for the open elements: prefix and namespace, the innermost last.
    rendered: Vec<(&'a str, &'a str)>,
    output: &'o mut dyn FnMut(&str),
}

impl<'a> Writer<'a, '_> {
    /// Writes an element. It calls itself as deep as the tree is, which is bounded.
    fn element(&mut self, element: Element<'a>) {
        if self.omitted == Some(element) {
            return;
        }
        let before = self.rendered.len();
        self.write("<");
        self.name(element.prefix(), element.local());
        self.declarations(element);
        let mut attributes: Vec<AttributeOf<'a>> = element.attributes().collect();
        attributes.sort_by_key(|it| (it.namespace(), it.local()));
        for attribute in attributes {
            self.write(" ");
            self.name(attribute.prefix(), attribute.local());
            self.value(attribute.value());
        }
        self.write(">");
        for content in element.content() {
            match content {
                Content::Element(child) => self.element(child),
                Content::Text(text) => self.escape(&text, |character| match character {
                    '&' => Some("&amp;"),
                    '<' => Some("&lt;"),
                    '>' => Some("&gt;"),
                    '\r' => Some("&#xD;"),
                    _ => None,
                }),
            }
        }
        self.write("</");
        self.name(element.prefix(), element.local());
        self.write(">");
        self.rendered.truncate(before);
    }

    /// Writes the declarations of the prefixes that the element's start tag uses, if they are not in scope by what is written.
    fn declarations(&mut self, element: Element<'a>) {
        let mut used = vec![(element.prefix(), element.namespace())];
        let attributes = element.attributes();
        let prefixed = attributes.filter(|it| !matches!(it.prefix(), "" | "xml"));
        used.extend(prefixed.map(|it| (it.prefix(), it.namespace())));
        used.sort_unstable();
        used.dedup();
        for (prefix, namespace) in used {
            let mut innermost = self.rendered.iter().rev();
            let found = innermost.find(|(other, _)| *other == prefix);
            // No default namespace is in scope where none is written.
            if found.map_or("", |(_, namespace)| *namespace) == namespace {
                continue;
            }
            self.rendered.push((prefix, namespace));
            self.write(" ");
            match prefix {
                "" => self.write("xmlns"),
                _ => self.name("xmlns", prefix),
            }
            self.value(namespace);
        }
    }

    /// Writes a name.
    fn name(&mut self, prefix: &str, local: &str) {
        if !prefix.is_empty() {
            self.write(prefix);
            self.write(":");
        }
        self.write(local);
    }

    /// Writes the value of an attribute, with what stands before it.
    fn value(&mut self, value: &str) {
        self.write("=\"");
        self.escape(value, |character| match character {
            '&' => Some("&amp;"),
            '<' => Some("&lt;"),
            '"' => Some("&quot;"),
            '\t' => Some("&#x9;"),
            '\n' => Some("&#xA;"),
            '\r' => Some("&#xD;"),
            _ => None,
        });
        self.write("\"");
    }

    /// Writes text with some characters replaced.
    fn escape(&mut self, text: &str, replace: impl Fn(char) -> Option<&'static str>) {
        let mut rest = text;
        while let Some((at, found)) = rest
            .char_indices()
            .find_map(|(at, character)| Some((at, replace(character)?)))
        {
            let (plain, special) = rest.split_at(at);
            self.write(plain);
            self.write(found);
            let mut after = special.chars();
            after.next();
            rest = after.as_str();
        }
        self.write(rest);
    }

    fn write(&mut self, text: &str) {
        (self.output)(text);
    }
}

#[cfg(test)]
mod tests;
