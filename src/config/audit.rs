//! The section `audit`: what the bank must be able to show, in files whose lines are chained by hashes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::section::Section;
use crate::interface::operations::Environment;

/// The default folder, beside the state's file.
const FOLDER: &str = "audit";

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Five years and a month: AML rules ask for five years.
const LONG: u32 = 1_860;

/// Thirteen months: as far back as TPPs ask why they were refused.
const SHORT: u32 = 400;

/// The most days that records are kept: a century.
const MOST: u32 = 36_500;

/// The settings of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The folder of its files.
    pub folder: PathBuf,
    /// Whether requests are refused while the audit cannot be written. Default true.
    pub required: bool,
    /// The size from which a file is followed by another one. Default 16 MiB.
    pub file_size: u64,
    /// How long the records about payments are kept. Default 1860 days, like those about PSUs and the control listener.
    pub keep_payments: Duration,
    /// How long the records about PSUs are kept: consents, completions, withdrawals, bindings.
    pub keep_psus: Duration,
    /// How long refusals are kept. Default 400 days.
    pub keep_refusals: Duration,
    /// How long calls of the control listener, reloads and starts are kept.
    pub keep_control: Duration,
}

impl AuditSettings {
    /// The defaults, with this folder.
    pub const fn new(folder: PathBuf) -> Self {
        let long = DAY.saturating_mul(LONG);
        Self {
            folder,
            required: true,
            file_size: 16 << 20,
            keep_payments: long,
            keep_psus: long,
            keep_refusals: DAY.saturating_mul(SHORT),
            keep_control: long,
        }
    }
}

/// Reads the section, which is optional; `None` if the audit is off. By default it is on in production and off in the sandbox.
pub(super) fn read(
    root: &mut Section<'_>,
    environment: Environment,
    base: &Path,
    state: &Path,
) -> Option<AuditSettings> {
    let is_default = environment == Environment::Production;
    let mut settings = AuditSettings::new(state.with_file_name(FOLDER));
    let Some(mut section) = root.optional_section("audit") else {
        return is_default.then_some(settings);
    };
    let write = section.optional("write");
    let write = write.and_then(|value| value.one_of(&[("off", false), ("on", true)]));
    if write == Some(false) {
        section.weakens(
            "write",
            "nothing shows later what was accepted, refused or changed",
        );
    }
    if let Some(path) = section
        .optional("folder")
        .and_then(|value| value.path(base))
    {
        settings.folder = path;
    }
    let required = section.optional("required");
    let required = required.and_then(|value| value.boolean());
    settings.required = required.unwrap_or(settings.required);
    if write != Some(false) && !settings.required {
        section.weakens(
            "required",
            "while the audit cannot be written, requests pass without a record",
        );
    }
    let size = section.optional("file_size");
    let size = size.and_then(|value| value.size(64 * 1024..=1 << 30));
    settings.file_size = size.unwrap_or(settings.file_size);
    for (key, kept) in [
        ("keep_payments_days", &mut settings.keep_payments),
        ("keep_psus_days", &mut settings.keep_psus),
        ("keep_refusals_days", &mut settings.keep_refusals),
        ("keep_control_days", &mut settings.keep_control),
    ] {
        let days = section.optional(key);
        let days = days.and_then(|value| value.integer(1..=MOST));
        *kept = days.map_or(*kept, |days| DAY.saturating_mul(days));
    }
    let longest = settings.keep_payments.max(settings.keep_psus);
    if settings.keep_control < longest.max(settings.keep_refusals) {
        let text = "it is shorter than another keep_…_days, but these records prove which other files were deleted by their age: \
                    give the longest of them";
        section.fault("keep_control_days", text);
    }
    section.finish();
    write.unwrap_or(is_default).then_some(settings)
}
