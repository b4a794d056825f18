//! The operation whose path is nearest to one that is no operation, for the text of a fault (ERR-10).
//!
//! The search is bounded: long paths are not compared, the tree is shared by all operations, and a branch ends where the difference is larger
//! than [`MAX_DIFFERENCE`]. Operations of another environment do not exist here (HTTP-1).

use super::PathTree;
use crate::similar;

/// The most segments of a path that is compared. The interface's paths have at most seven.
const MAX_SEGMENTS: usize = 12;

/// The largest difference: two misspelt segments, or one that is missing or too many.
const MAX_DIFFERENCE: u8 = 2;

/// The difference of a segment that is missing or too many.
const WHOLE: u8 = 2;

/// An operation that was found: the difference that was left, and its place.
type Near = Option<(u8, usize)>;

impl PathTree {
    /// The place of an operation with the path that is nearest; `None` if none is near.
    pub(in super::super) fn nearest(
        &self,
        segments: &[&str],
        products: &[String],
    ) -> Option<usize> {
        if segments.len() > MAX_SEGMENTS {
            return None;
        }
        self.near(segments, MAX_DIFFERENCE, products)
            .map(|(_, operation)| operation)
    }

    fn near(&self, segments: &[&str], left: u8, products: &[String]) -> Near {
        let here = || self.methods.iter().find_map(|(_, operation)| *operation);
        let literals = || {
            self.literals
                .iter()
                .map(|(literal, node)| (literal.as_str(), node))
        };
        let is_nearer =
            |one: &Near, other: &Near| one.map(|(left, _)| left) > other.map(|(left, _)| left);
        let mut best: Near = None;
        let mut take = |found: Near| {
            if is_nearer(&found, &best) {
                best = found;
            }
        };
        match segments {
            [] => take(here().map(|operation| (left, operation))),
            [segment, rest @ ..] => {
                for (literal, node) in literals() {
                    if let Some(left) = after(segment, literal, left) {
                        take(node.near(rest, left, products));
                    }
                }
                if let Some(node) = &self.product {
                    let mut known = products.iter();
                    let after = known.find_map(|product| after(segment, product, left));
                    take(after.and_then(|left| node.near(rest, left, products)));
                }
                if let Some(node) = &self.parameter {
                    take(node.near(rest, left, products));
                }
            }
        }
        // A segment that is missing here, or one too many.
        if let Some(left) = left.checked_sub(WHOLE) {
            for (_, node) in literals() {
                take(node.near(segments, left, products));
            }
            if let [_, rest @ ..] = segments {
                take(self.near(rest, left, products));
            }
        }
        best
    }
}

/// The difference that is left after a segment that stands for a known one; `None` if it does not.
fn after(segment: &str, known: &str, left: u8) -> Option<u8> {
    if segment == known {
        return Some(left);
    }
    let left = left.checked_sub(1)?;
    similar::is_misspelling(segment, known).then_some(left)
}
