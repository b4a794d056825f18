//! From the file to the settings.

use std::path::{Path, PathBuf};

use super::document::Document;
use super::fault::{ConfigFault, ConfigFaults, FilePosition};
use super::inspection::Inspection;
use super::settings::Settings;
use super::{pem, root, writable, written_paths};
use crate::clock::Clock;

impl Settings {
    /// Loads a configuration file and every file that it names, by paths that are relative to its folder.
    ///
    /// # Errors
    /// Every fault of all those files, in their order.
    pub fn load(path: &Path) -> Result<Self, ConfigFaults> {
        let since = Clock::System.log_time();
        let file = path.display().to_string();
        let text = pem::read_text(path).map_err(|text| ConfigFault {
            place: FilePosition::start_of(file.as_str()),
            text,
        })?;
        let mut settings = Self::parse(&file, &text, path.parent().unwrap_or(Path::new("")))?;
        settings.reloadable.files.source = Some(path.to_owned());
        settings.reloadable.files.since = since;
        Ok(settings)
    }

    /// Reads a configuration: `file_name` is its name in faults, `text` its content, `base` the folder of its relative paths.
    ///
    /// # Errors
    /// Every fault of it and of the files that it names.
    pub fn parse(file_name: &str, text: &str, base: &Path) -> Result<Self, ConfigFaults> {
        let document = Document::read(file_name, text)?;
        let inspection = Inspection::new();
        let mut settings = root::read(document.root(&inspection), &inspection, base);
        if let Some(settings) = &mut settings {
            let start = FilePosition::start_of(file_name);
            written_paths::check(settings, &start, &inspection);
            let source = base.join(Path::new(file_name).file_name().unwrap_or_default());
            writable::check(Some(&source), &inspection.named(), &start, &inspection);
            settings.reloadable.files.named = settings.watched(inspection.named());
            settings.reloadable.warnings = inspection.warnings();
        }
        inspection.conclude(file_name, settings)
    }

    /// The named paths that the gateway reads and does not write.
    fn watched(&self, named: Vec<(FilePosition, PathBuf)>) -> Vec<PathBuf> {
        let written = written_paths::changing(self);
        let mut named: Vec<_> = named.into_iter().map(|(_, path)| path).collect();
        named.push(self.reloadable.sca.token_keys.clone());
        named.retain(|path| written.iter().all(|(_, written)| written != path));
        named
    }
}
