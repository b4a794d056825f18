//! From the file to the settings.

use std::path::Path;

use super::document::Document;
use super::fault::{ConfigFault, ConfigFaults, FilePosition};
use super::inspection::Inspection;
use super::named_file::NamedFile;
use super::settings::Settings;
use super::show::shown;
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
        let base = path.parent().unwrap_or(Path::new(""));
        let document = Document::read(&file, &text)?;
        let (mut settings, files) = Self::of(&document, &file, base)?;
        let shown = shown(&document, &settings, &files, base)?;
        let read = &mut settings.reloadable.files;
        read.source = Some(path.to_owned());
        read.since = since;
        read.shown = Some(shown);
        Ok(settings)
    }

    /// Reads a configuration: `file_name` is its name in faults, `text` its content, `base` the folder of its relative paths.
    ///
    /// # Errors
    /// Every fault of it and of the files that it names.
    pub fn parse(file_name: &str, text: &str, base: &Path) -> Result<Self, ConfigFaults> {
        let document = Document::read(file_name, text)?;
        Self::of(&document, file_name, base).map(|(settings, _)| settings)
    }

    /// Reads the settings of a document; returns the files that it names and the gateway does not write, too.
    fn of(
        document: &Document,
        file_name: &str,
        base: &Path,
    ) -> Result<(Self, Vec<NamedFile>), ConfigFaults> {
        let inspection = Inspection::new();
        let mut files = Vec::new();
        let mut settings = root::read(document.root(&inspection), &inspection, base);
        if let Some(settings) = &mut settings {
            let start = FilePosition::start_of(file_name);
            written_paths::check(settings, &start, &inspection);
            let source = base.join(Path::new(file_name).file_name().unwrap_or_default());
            writable::check(Some(&source), &inspection.named(), &start, &inspection);
            files = settings.watched(inspection.named());
            let mut named: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
            named.push(settings.reloadable.sca.token_keys.clone());
            settings.reloadable.files.named = named;
            settings.reloadable.warnings = inspection.warnings();
        }
        let settings = inspection.conclude(file_name, settings)?;
        Ok((settings, files))
    }

    /// The named files that the gateway reads and does not write.
    fn watched(&self, mut named: Vec<NamedFile>) -> Vec<NamedFile> {
        let written = written_paths::changing(self);
        named.retain(|file| written.iter().all(|(_, written)| *written != file.path));
        named
    }
}
