//! The section `state`: the files of the store or its database, and its limits in memory.
//!
//! Deliberately not here: opening the store, which creates files (`state` does that at start).

use std::path::Path;

use super::{postgres, section::Section, state_folder};
use crate::interface::operations::Environment;
use crate::state::{self, EngineSettings, EventSettings, StateSettings};

/// The upper bound of every limit in memory.
const MOST: u64 = 100_000_000;

/// The longest time for which events are kept, in days.
const MOST_DAYS: u32 = 3_650;

/// Reads the section, which is optional.
pub(super) fn read(root: &mut Section<'_>, base: &Path, environment: Environment) -> StateSettings {
    let folder = base.join(state_folder::default(base, environment));
    let mut settings = StateSettings::new(
        folder.join(state_folder::FILE),
        folder.join(state_folder::HASH_KEY),
    );
    settings.environment = Some(environment);
    let Some(mut section) = root.optional_section("state") else {
        if let Err(fault) = state::check_hash_key(&settings.hash_key) {
            root.fault("state.hash_key", fault.to_string());
        }
        return settings;
    };
    if let Some(path) = section.optional("file").and_then(|value| value.path(base)) {
        settings.file = path;
    }
    let key = section.optional("hash_key");
    if let Some(path) = key.as_ref().and_then(|value| value.secret_path(base)) {
        settings.hash_key = path;
    }
    if let Err(fault) = state::check_hash_key(&settings.hash_key) {
        section.fault("hash_key", fault.to_string());
    }
    if let Some(postgres) = postgres::read(&mut section, base) {
        settings.engine = postgres.into();
    }
    if let Some(text) = new_file(&settings) {
        section.weakens("file", text);
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
    settings.events = events(&mut section, base);
    section.finish();
    settings
}

/// Reads the section `state.events` (CTL-3), which is optional.
fn events(state: &mut Section<'_>, base: &Path) -> EventSettings {
    let mut settings = EventSettings::default();
    let Some(mut section) = state.optional_section("events") else {
        return settings;
    };
    let days = section.optional("keep_days");
    if let Some(days) = days.and_then(|value| value.integer(1..=MOST_DAYS)) {
        settings.keep_days = days;
    }
    let key = section.optional("customer_key");
    settings.customer_key = key.and_then(|value| value.secret_path(base));
    if let Err(fault) = settings.check() {
        section.fault("customer_key", fault.to_string());
    }
    section.finish();
    settings
}

/// The warning of a state file that the start makes although its hash key exists.
fn new_file(settings: &StateSettings) -> Option<String> {
    let is_new = match &settings.engine {
        EngineSettings::Sqlite => settings.hash_key.exists() && !settings.file.exists(),
        EngineSettings::Postgres(_) => false,
    };
    is_new.then(|| {
        format!(
            "{} does not exist and is made at the start, without any binding, consent, block or quota; its hash key exists already: is the path right?",
            settings.file.display()
        )
    })
}
