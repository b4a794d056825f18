//! Reads a value as a mapping or a list.

use super::expected::Expected;
use super::section::Section;
use super::tree::{Content, element_path};
use super::value::Value;

impl<'a> Value<'a> {
    /// The value as a section; any value but a mapping is reported.
    pub fn as_section(&self) -> Section<'a> {
        let place = self.place().clone();
        Section::or_words(self.node(), place, self.inspection(), &self.or_words())
    }

    /// The elements of a list, in order. An absent value (`key:`) is an empty list; a scalar is reported.
    pub fn as_list(&self) -> Option<Vec<Value<'a>>> {
        let record = self.inspection().record();
        record.note(&self.place().path, || Expected::List);
        let items = match &self.node().content {
            Content::List(items) => items.as_slice(),
            Content::Null => &[],
            Content::Typed(_) | Content::Text(_) | Content::Mapping(_) => {
                return self.refuse("a list");
            }
        };
        let element = |(index, item)| {
            Value::new(
                item,
                element_path(&self.place().path, index),
                self.place(),
                self.inspection(),
            )
        };
        Some(items.iter().enumerate().map(element).collect())
    }
}
