//! The section `state`: the files of the store, and its limits in memory.
//!
//! Deliberately not here: opening the store, which creates files (`state` does that at start).

use std::path::Path;

use super::section::Section;
use crate::state::StateSettings;

/// The default file, relative to the folder of the configuration.
const FILE: &str = "../state/portvakt.db";

/// The default file of the hash key.
const HASH_KEY: &str = "../state/hash.key";

/// The upper bound of every limit in memory.
const MOST: u64 = 100_000_000;

/// Reads the section, which is optional.
pub(super) fn read(root: &mut Section<'_>, base: &Path) -> StateSettings {
    let mut settings = StateSettings::new(base.join(FILE), base.join(HASH_KEY));
    let Some(mut section) = root.optional_section("state") else {
        return settings;
    };
    if let Some(path) = section.optional("file").and_then(|value| value.path(base)) {
        settings.file = path;
    }
    let key = section.optional("hash_key");
    if let Some(path) = key.as_ref().and_then(|value| value.path(base)) {
        settings.hash_key = path;
    }
    if settings.file == settings.hash_key {
        section.fault(
            "hash_key",
            "the key needs a file of its own, apart from the state's",
        );
    }
    for (key, bound) in [
        ("psus_in_memory", &mut settings.psus_in_memory),
        ("refusals_in_memory", &mut settings.refusals_in_memory),
    ] {
        let written = section
            .optional(key)
            .and_then(|value| value.integer(0..=MOST));
        *bound = written.unwrap_or(*bound);
    }
    let most = usize::try_from(MOST).unwrap_or(usize::MAX);
    let ids = section.optional("request_ids_in_memory");
    if let Some(ids) = ids.and_then(|value| value.integer(1_000..=most)) {
        settings.request_ids_in_memory = ids;
    }
    section.finish();
    settings
}
