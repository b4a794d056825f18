//! The operations that each upstream group answers: the key `operations`.
//!
//! Invariant: each operation of the catalogue has one group. A single operation counts more than its group of operations. The operation of
//! a payment product follows the one that it comes from, unless it is listed itself: a product that gets a shape stays at its core.

use super::super::fault::FilePosition;
use super::super::inspection::Inspection;
use crate::interface::operations::Catalogue;
use std::collections::BTreeMap;

/// Names of operations and of groups of operations, as one upstream group lists them; `None` for all that no other group lists.
pub(super) type WrittenRoutes = Option<Vec<(String, FilePosition)>>;

/// The upstream group of each operation, by index.
pub(super) struct Routes<'a> {
    catalogue: &'a Catalogue,
    inspection: &'a Inspection,
    single: BTreeMap<String, usize>,
    by_group: BTreeMap<String, usize>,
    rest: Option<usize>,
}

impl<'a> Routes<'a> {
    /// Begins without any.
    pub(super) const fn new(catalogue: &'a Catalogue, inspection: &'a Inspection) -> Self {
        Self {
            catalogue,
            inspection,
            single: BTreeMap::new(),
            by_group: BTreeMap::new(),
            rest: None,
        }
    }

    /// Adds the routes of the group with this index and name, which stands at `place`.
    pub(super) fn add(
        &mut self,
        index: usize,
        name: &str,
        place: &FilePosition,
        routes: WrittenRoutes,
    ) {
        let Some(routes) = routes else {
            if self.rest.replace(index).is_some() {
                let text = "two groups have no operations; list those of one of them";
                self.report(place, format!("{name}: {text}"));
            }
            return;
        };
        for (route, place) in routes {
            let mut all = self.catalogue.operations().iter();
            let before = if self.catalogue.named(&route).is_some() {
                self.single.insert(route.clone(), index)
            } else if all.any(|operation| operation.group == route) {
                self.by_group.insert(route.clone(), index)
            } else {
                let text = format!("no operation and no group of operations is called \"{route}\"");
                self.report(&place, text);
                continue;
            };
            if before.is_some() {
                self.report(&place, format!("\"{route}\" is listed twice"));
            }
        }
    }

    /// The index of the group by the name of each operation; reports an operation without a group at `place`.
    pub(super) fn finish(self, place: &FilePosition) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        for operation in self.catalogue.operations() {
            let single = |name: &String| self.single.get(name);
            let listed = single(&operation.name);
            let listed = listed.or_else(|| operation.product_of.as_ref().and_then(single));
            let index = listed.or_else(|| self.by_group.get(&operation.group));
            match index.copied().or(self.rest) {
                Some(index) => {
                    found.insert(operation.name.clone(), index);
                }
                None => self.report(
                    place,
                    format!(
                        "no group answers {}; leave out operations in one group",
                        operation.name
                    ),
                ),
            }
        }
        found
    }

    fn report(&self, place: &FilePosition, text: String) {
        self.inspection.report(place.clone(), text);
    }
}
