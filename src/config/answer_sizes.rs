//! The size limits of the core's answers (FWD-7): `upstream.max_answer_size` and `upstream.max_answer_size_by_group`.

use std::collections::BTreeMap;

use super::fault::FilePosition;
use super::inspection::Inspection;
use super::section::Section;
use super::value::Value;
use crate::interface::operations::Catalogue;

/// FWD-7: the default limit, in bytes.
const DEFAULT: usize = 16 * 1024 * 1024;

/// The most bytes of the body of an answer of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerSizes {
    default: usize,
    by_group: BTreeMap<String, usize>,
}

impl Default for AnswerSizes {
    fn default() -> Self {
        Self {
            default: DEFAULT,
            by_group: BTreeMap::new(),
        }
    }
}

impl AnswerSizes {
    /// The limit for operations of this group, in bytes.
    pub fn of(&self, group: &str) -> usize {
        self.by_group.get(group).copied().unwrap_or(self.default)
    }
}

/// The keys as written: the groups are checked when the catalogue is known.
pub(super) struct WrittenSizes {
    sizes: AnswerSizes,
    places: Vec<(String, FilePosition)>,
}

impl WrittenSizes {
    /// Reads both keys.
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        let mut sizes = AnswerSizes::default();
        let mut places = Vec::new();
        let default = section.optional("max_answer_size");
        sizes.default = default.and_then(|value| size(&value)).unwrap_or(DEFAULT);
        if let Some(mut groups) = section.optional_section("max_answer_size_by_group") {
            for (key, value) in groups.entries() {
                if let (Some(group), Some(size)) = (key.as_str(), size(&value)) {
                    sizes.by_group.insert(group.to_owned(), size);
                    places.push((group.to_owned(), key.place().clone()));
                }
            }
            groups.finish();
        }
        Self { sizes, places }
    }

    /// The limits; reports a group that has no operation.
    pub(super) fn checked(self, catalogue: &Catalogue, inspection: &Inspection) -> AnswerSizes {
        for (group, place) in self.places {
            let mut all = catalogue.operations().iter();
            if !all.any(|operation| operation.group == group) {
                inspection.report(place, format!("no operation has the group \"{group}\""));
            }
        }
        self.sizes
    }
}

fn size(value: &Value<'_>) -> Option<usize> {
    let size = value.size(1024..=1024 * 1024 * 1024)?;
    usize::try_from(size).ok()
}
