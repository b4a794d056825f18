//! The prefixes in scope, and the namespaces to which they are bound.

use super::{
    node::{Name, Namespace, Span, XML},
    tag::{RawAttribute, RawName},
};

/// The most declarations in scope. The lists have ten, nearly all at the root.
const MAX_IN_SCOPE: usize = 64;

/// The namespace of declarations themselves.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// The declarations in scope, the innermost last. The default namespace has an empty prefix.
#[derive(Debug, Default)]
pub(crate) struct Scope(Vec<(Span, Namespace)>);

impl Scope {
    /// The number of declarations in scope.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends the scope of an element that began with so many declarations.
    pub(crate) fn leave(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Takes an attribute that is a declaration; whether it is one. `before` is the number of declarations before this element's own.
    ///
    /// # Errors
    /// It is a declaration that is not allowed.
    pub(crate) fn declare(
        &mut self,
        source: &str,
        attribute: RawAttribute,
        before: usize,
    ) -> Result<bool, &'static str> {
        let RawName { prefix, local } = attribute.name;
        let declared = match (prefix.of(source), local.of(source)) {
            ("", "xmlns") => prefix,
            ("xmlns", "xml" | "xmlns") => return Err("a declaration of the prefix xml or xmlns"),
            ("xmlns", _) => local,
            _ => return Ok(false),
        };
        let uri = attribute.value.of(source);
        let is_default = declared.of(source).is_empty();
        if uri.contains(|c: char| c.is_whitespace() || matches!(c, '&' | '<')) {
            return Err("a namespace with white space or references");
        }
        if uri == XML || uri == XMLNS || (uri.is_empty() && !is_default) {
            return Err("a declaration of a namespace that XML reserves");
        }
        // Canonical XML is not defined for these.
        if !uri.is_empty() && !uri.contains(':') {
            return Err("a namespace that is a relative address");
        }
        let mut own = self.0.iter().skip(before);
        if own.any(|(other, _)| other.of(source) == declared.of(source)) {
            return Err("two declarations of one prefix");
        }
        if self.0.len() >= MAX_IN_SCOPE {
            return Err("over 64 declarations of namespaces in scope");
        }
        let namespace = match uri {
            "" => Namespace::None,
            _ => Namespace::Declared(attribute.value),
        };
        self.0.push((declared, namespace));
        Ok(true)
    }

    /// Resolves the name of an element.
    ///
    /// # Errors
    /// Its prefix is not declared.
    pub(crate) fn element(&self, source: &str, name: RawName) -> Result<Name, &'static str> {
        let namespace = match name.prefix.of(source) {
            "" => self.find(source, "").unwrap_or(Namespace::None),
            "xml" | "xmlns" => return Err("an element with the prefix xml or xmlns"),
            prefix => self.find(source, prefix).ok_or(UNDECLARED)?,
        };
        Ok(resolved(name, namespace))
    }

    /// Resolves the name of an attribute, which has no namespace without a prefix.
    ///
    /// # Errors
    /// Its prefix is not declared.
    pub(crate) fn attribute(&self, source: &str, name: RawName) -> Result<Name, &'static str> {
        let namespace = match name.prefix.of(source) {
            "" => Namespace::None,
            "xml" => Namespace::Xml,
            prefix => self.find(source, prefix).ok_or(UNDECLARED)?,
        };
        Ok(resolved(name, namespace))
    }

    /// The namespace of a prefix.
    fn find(&self, source: &str, prefix: &str) -> Option<Namespace> {
        let mut innermost = self.0.iter().rev();
        let (_, namespace) = innermost.find(|(declared, _)| declared.of(source) == prefix)?;
        Some(*namespace)
    }
}

const UNDECLARED: &str = "a prefix that is not declared";

/// A name with its namespace.
const fn resolved(name: RawName, namespace: Namespace) -> Name {
    Name {
        prefix: name.prefix,
        local: name.local,
        namespace,
    }
}
