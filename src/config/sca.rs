//! The section `sca`: the bank's page, the keys of its links, and the SCA approach.
//!
//! Invariant: an existing file of token keys was read without a fault. A missing file is created at start, not here: `check`
//! changes no file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::Date;

use super::section::Section;
use super::state_folder;
use super::value::Value;
use crate::clock::Timestamp;
use crate::interface::headers::redirect_uri;
use crate::interface::operations::Environment;
use crate::sca::{self, KeyFault, PsuPresent, ScaSettings, TokenKeys, UnknownPsu};

/// The query parameter of the page that contains the token.
const PARAMETER: &str = "request";

/// The default lifetime of a link (SCA-12).
const LIFETIME: Duration = Duration::from_secs(15 * 60);

pub(super) fn read(
    mut section: Section<'_>,
    base: &Path,
    environment: Environment,
) -> Option<ScaSettings> {
    let page = section.required("page").and_then(|value| page(&value));
    let token_keys = match section.optional("token_keys") {
        Some(value) => token_keys(&value, base),
        None => default_keys(&section, base, environment),
    };
    let token_seals = match section.optional("token_seals") {
        Some(value) => value.path(base).and_then(|path| {
            let read = seals_readable(path);
            read.map_err(|text| value.fault(text)).ok()
        }),
        None => token_keys.as_deref().and_then(|keys| {
            let read = seals_readable(beside(keys));
            read.map_err(|text| section.fault("token_seals", text)).ok()
        }),
    };
    let lifetime = section
        .optional("token_lifetime")
        .and_then(|value| value.duration(Duration::from_secs(60)..=Duration::from_secs(3_600)));
    let psu_present = section.optional("psu_present").and_then(|value| {
        value.one_of(&[
            ("session-when-sent", PsuPresent::SessionWhenSent),
            ("session", PsuPresent::Session),
            ("consent", PsuPresent::Consent),
        ])
    });
    let unknown_psu = unknown_psu(&mut section);
    section.finish();
    Some(ScaSettings {
        page: page?,
        token_keys: token_keys?,
        token_seals: token_seals?,
        token_lifetime: lifetime.unwrap_or(LIFETIME),
        psu_present: psu_present.unwrap_or_default(),
        unknown_psu: unknown_psu?,
    })
}

/// Reads a URL that browsers and the gateway parse alike: a redirect URI (HDR-8), in the sandbox's version.
fn page(value: &Value<'_>) -> Option<String> {
    let text = value.as_str()?;
    let page = match redirect_uri::split(text.as_bytes(), Environment::Sandbox) {
        Ok(page) => page,
        Err(fault) => {
            value.fault(format!(
                "found {}; {fault}, such as https://bank.example/sca (http for a loopback host only)",
                value.found()
            ));
            return None;
        }
    };
    let mut names = page.query.unwrap_or_default().split('&');
    if names.any(|pair| pair.split('=').next() == Some(PARAMETER)) {
        value.fault(format!(
            "its query may not have a parameter {PARAMETER}, which the gateway adds itself"
        ));
        return None;
    }
    Some(text.to_owned())
}

fn token_keys(value: &Value<'_>, base: &Path) -> Option<PathBuf> {
    let read = readable(value.secret_path(base)?);
    read.map_err(|text| value.fault(text)).ok()
}

fn default_keys(section: &Section<'_>, base: &Path, environment: Environment) -> Option<PathBuf> {
    let read = readable(
        base.join(state_folder::default(base, environment))
            .join(state_folder::TOKEN_KEYS),
    );
    read.map_err(|text| section.fault("token_keys", text)).ok()
}

/// Reads the path of a file of keys that is valid or missing.
fn readable(path: PathBuf) -> Result<PathBuf, String> {
    match TokenKeys::read(&path) {
        Ok(_) => Ok(path),
        Err(KeyFault::File(fault)) if fault.is_missing() => Ok(path),
        Err(fault) => Err(format!("{}: {fault}", path.display())),
    }
}

/// Reads the path of a file of counts that is valid or missing.
fn seals_readable(path: PathBuf) -> Result<PathBuf, String> {
    match sca::check_seals(&path) {
        Ok(()) => Ok(path),
        Err(fault) => Err(format!("{}: {fault}", path.display())),
    }
}

/// The default file of the counts of sealed tokens.
fn beside(keys: &Path) -> PathBuf {
    let mut path = keys.as_os_str().to_owned();
    path.push(".seals");
    path.into()
}

/// Reads the learning of PSUs (SCA-19). Both dates are days in UTC, the last one included.
fn unknown_psu(section: &mut Section<'_>) -> Option<UnknownPsu> {
    let learns = section
        .optional("unknown_psu")
        .map(|value| value.one_of(&[("refuse", false), ("learn", true)]));
    let days = ["learn_since", "learn_until"].map(|key| (key, section.optional(key)));
    if learns != Some(Some(true)) {
        for (_, day) in days
            .iter()
            .filter(|_| learns.is_none_or(|learns| learns.is_some()))
        {
            if let Some(day) = day {
                day.fault("it has no effect without unknown_psu: learn");
            }
        }
        return Some(UnknownPsu::Refuse);
    }
    let [since, until] = days.map(|(key, day)| {
        if day.is_none() {
            section.fault(key, "missing key: learning has a first and a last day");
        }
        day?.parse::<Date>("a day such as 2027-01-31")
    });
    let (since, until) = (since?, until?);
    let day_after = until.tomorrow().ok().and_then(Timestamp::midnight);
    let ends = Timestamp::midnight(since)
        .zip(day_after)
        .filter(|_| since <= until);
    let Some((since, until)) = ends else {
        section.fault(
            "learn_until",
            "the last day of learning is before its first",
        );
        return None;
    };
    let text = "until the last day of learning the core alone decides to whom a PSU-ID belongs";
    section.weakens("unknown_psu", text);
    Some(UnknownPsu::Learn { since, until })
}
