//! The lines of `bundle.yaml` by which faults are found: read a second time, and only where there is a fault.

use super::{fault::DocumentFault, parse::parse};
use serde::{Deserialize, de::IgnoredAny};
use serde_saphyr::Spanned;

/// A part of the document. Numbers are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The time as of which lists were judged.
    AsOf,
    /// The list of lists.
    ListOfLists,
    /// A list.
    List(usize),
    /// A country under `missing`.
    Missing(usize),
    /// A list under `earlier`.
    Earlier(usize),
    /// An anchor.
    Anchor(usize),
    /// A service of an anchor.
    Service(usize, usize),
    /// A CA under `named`.
    Named(usize),
    /// A service under `left_out`.
    LeftOut(usize),
}

type Part = Spanned<IgnoredAny>;

/// The lines of the parts, as far as they can be read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Lines {
    as_of: Option<Part>,
    list_of_lists: Option<Part>,
    lists: Vec<Part>,
    missing: Vec<Part>,
    earlier: Vec<Part>,
    anchors: Vec<Spanned<Anchor>>,
    named: Vec<Part>,
    left_out: Vec<Part>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Anchor {
    services: Vec<Part>,
}

impl Lines {
    /// Those of a document; none of one that cannot be read so far.
    pub(super) fn read(text: &str) -> Self {
        parse(text).unwrap_or_default()
    }

    /// The line of a part, counted from 1.
    pub(super) fn of(&self, place: Place) -> Option<u64> {
        let part = match place {
            Place::AsOf => self.as_of.as_ref(),
            Place::ListOfLists => self.list_of_lists.as_ref(),
            Place::List(at) => self.lists.get(at),
            Place::Missing(at) => self.missing.get(at),
            Place::Earlier(at) => self.earlier.get(at),
            Place::Anchor(at) => return Some(self.anchors.get(at)?.referenced.line()),
            Place::Service(at, number) => self.anchors.get(at)?.value.services.get(number),
            Place::Named(at) => self.named.get(at),
            Place::LeftOut(at) => self.left_out.get(at),
        };
        Some(part?.referenced.line())
    }

    /// A fault with the line of a part.
    pub(super) fn add(&self, place: Place, fault: DocumentFault) -> DocumentFault {
        match self.of(place) {
            Some(line) => DocumentFault::At {
                line,
                fault: Box::new(fault),
            },
            None => fault,
        }
    }
}
