//! The inside of a start tag: its name, and its attributes as they stand.

use super::{
    characters::{is_name, is_space},
    node::Span,
};

/// A name as it stands: a prefix, which may be empty, and a local name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawName {
    pub(crate) prefix: Span,
    pub(crate) local: Span,
}

/// An attribute as it stands; the value without its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAttribute {
    pub(crate) name: RawName,
    pub(crate) value: Span,
}

/// A place in the source.
pub(crate) struct Scanner<'a> {
    source: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Scanner<'a> {
    /// Reads a part of the source.
    pub(crate) const fn new(source: &'a str, start: usize, end: usize) -> Self {
        Self {
            source,
            at: start,
            end,
        }
    }

    /// Reads a name of at most one prefix.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn name(&mut self) -> Result<RawName, &'static str> {
        let start = self.at;
        let rest = self.rest();
        let length = rest
            .bytes()
            .position(|byte| is_space(byte) || byte == b'=')
            .unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        self.at += length;
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let has_prefix = !prefix.is_empty();
        if !is_name(local) || (has_prefix && !is_name(prefix)) || text.starts_with(':') {
            return Err("a name that is none of a list's schema");
        }
        Ok(RawName {
            prefix: span(start, start + prefix.len())?,
            local: span(self.at - local.len(), self.at)?,
        })
    }

    /// Reads the next attribute; `None` at the end.
    ///
    /// # Errors
    /// The text is no attribute.
    pub(crate) fn attribute(&mut self) -> Result<Option<RawAttribute>, &'static str> {
        let has_space = self.skip_space();
        if self.rest().is_empty() {
            return Ok(None);
        }
        if !has_space {
            return Err("no white space between attributes");
        }
        let name = self.name()?;
        self.skip_space();
        if !self.rest().starts_with('=') {
            return Err("an attribute without a value");
        }
        self.at += 1;
        self.skip_space();
        let quote = self.rest().chars().next();
        let quote = quote.filter(|quote| matches!(quote, '"' | '\''));
        let quote = quote.ok_or("a value of an attribute without quotes")?;
        self.at += 1;
        let length = self.rest().find(quote);
        let length = length.ok_or("a value of an attribute that does not end")?;
        let value = span(self.at, self.at + length)?;
        self.at += length + 1;
        Ok(Some(RawAttribute { name, value }))
    }

    /// The text that is not read yet.
    fn rest(&self) -> &'a str {
        self.source.get(self.at..self.end).unwrap_or_default()
    }

    /// Skips white space; whether there was any.
    fn skip_space(&mut self) -> bool {
        let rest = self.rest();
        let length = rest
            .bytes()
            .position(|byte| !is_space(byte))
            .unwrap_or(rest.len());
        self.at += length;
        length > 0
    }
}

/// A part of the source.
///
/// # Errors
/// The source is longer than 4 GiB.
pub(crate) fn span(start: usize, end: usize) -> Result<Span, &'static str> {
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) => Ok(Span { start, end }),
        _ => Err("a file of over 4 GiB"),
    }
}
