//! The section `registers`: which registers authorise TPPs, and their maximum age (CRT-7, CRT-14).
//!
//! Invariants: production checks registers; checking requires a file, since without one no TPP would be authorised; the whole
//! of the bank's own list is read, and each of its faults names its line. Deliberately not here: the meaning of the entries.

// The file of a register, and its age.
mod file;
// Registers other than the EBA's, and their mappings.
mod lists;
// What their rows say of a mapping.
mod rows;

use std::collections::HashSet;
use std::hash::Hash;
use std::path::Path;

use super::document::Document;
use super::inspection::Inspection;
use super::pem::read_text;
use super::section::Section;
use super::value::Value;
use crate::interface::operations::Environment;
use crate::trust::register::{RegisterSettings, WhenStale};
use crate::trust::{Registers, Roles};
use file::{LEAST_AGE, MOST_AGE, take};

/// The roles that an operation can require, and their numbers (ETSI TS 119 495, 4.2).
const ROLES: [(&str, u8); 2] = [("PSP_PI", 2), ("PSP_AI", 3)];

/// Reads the registers and the files that they name; `None` if they are not checked, or after a fault.
pub(super) fn read(
    root: &mut Section<'_>,
    environment: Environment,
    inspection: &Inspection,
    base: &Path,
) -> Option<Registers> {
    let Some(mut section) = root.optional_section("registers") else {
        if environment == Environment::Production {
            let text = "production checks registers; expected {check: on} and a file";
            root.fault("registers", text);
        }
        return None;
    };
    let check = section.optional("check");
    let check = check.and_then(|value| value.one_of(&[("on", true), ("off", false)]));
    if environment == Environment::Production && check != Some(true) {
        section.fault("check", "production checks registers; expected \"on\"");
    }
    let settings = settings(&mut section);
    let (eba, local) = (section.optional("eba"), section.optional("local"));
    let lists = section.optional_section("lists");
    let lists = lists.map_or_else(Vec::new, lists::read);
    let is_on = check == Some(true);
    if is_on && eba.is_none() && local.is_none() && !section.has("lists") {
        let text = "without a register nobody is registered; expected eba, local or lists";
        section.fault("check", text);
    }
    section.finish();
    if !is_on {
        return None;
    }
    let mut registers = Registers::new(settings);
    if let Some(value) = eba {
        take_eba(&value, base, &mut registers);
    }
    for list in lists {
        list.take(base, &mut registers);
    }
    if let Some(value) = local {
        take_local(&value, base, inspection, &mut registers);
    }
    Some(registers)
}

fn settings(section: &mut Section<'_>) -> RegisterSettings {
    let default = RegisterSettings::default();
    let country = section
        .optional("host_country")
        .and_then(|value| country(&value));
    let max_age = section
        .optional("max_age")
        .and_then(|value| value.duration(LEAST_AGE..=MOST_AGE));
    let stale = section.optional("stale").and_then(|value| {
        value.one_of(&[("refuse", WhenStale::Refuse), ("pass", WhenStale::Pass)])
    });
    if stale == Some(WhenStale::Pass) {
        section.weakens("stale", "a register that nobody renews decides for ever");
    }
    RegisterSettings {
        host_country: country.unwrap_or(default.host_country),
        max_age: max_age.unwrap_or(default.max_age),
        stale: stale.unwrap_or(default.stale),
    }
}

fn country(value: &Value<'_>) -> Option<String> {
    let text = value.as_str()?;
    if text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Some(text.to_owned());
    }
    value.refuse("a country in two capitals, such as NO")
}

/// Reads the EBA's export as a stream, because it is too long for memory.
fn take_eba(value: &Value<'_>, base: &Path, registers: &mut Registers) {
    take(value, base, registers, |registers, reader, modified| {
        let taken = registers.take_eba(reader, modified);
        taken.map_err(|fault| fault.to_string())
    });
}

/// Reads the bank's own list: allowed and blocked TPPs.
fn take_local(value: &Value<'_>, base: &Path, inspection: &Inspection, registers: &mut Registers) {
    let Some(path) = value.path(base) else { return };
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(text) => return value.fault(text),
    };
    let document = match Document::read(&path.display().to_string(), &text) {
        Ok(document) => document,
        Err(faults) => return inspection.absorb(faults),
    };
    let mut root = document.root(inspection);
    let mut allowed = HashSet::new();
    for entry in root.optional_list("allow").unwrap_or_default() {
        let mut section = entry.as_section();
        let tpp = section.required("tpp").and_then(|value| {
            let tpp = value.permitted_tpp()?;
            once(&value, tpp, &mut allowed)
        });
        let roles = roles(&mut section);
        finish(section);
        if let (Some(tpp), Some(roles)) = (tpp, roles) {
            registers.allow(tpp, roles);
        }
    }
    let mut blocked = HashSet::new();
    for entry in root.optional_list("block").unwrap_or_default() {
        let mut section = entry.as_section();
        let tpp = section.required("tpp").and_then(|value| {
            let tpp = value.forbidden_tpp()?;
            once(&value, tpp, &mut blocked)
        });
        finish(section);
        if let Some(tpp) = tpp {
            registers.block(tpp);
        }
    }
    root.finish();
}

/// Reads a note, which serves only readers of the file.
fn finish(mut section: Section<'_>) {
    if let Some(note) = section.optional("note") {
        note.as_str();
    }
    section.finish();
}

/// Refuses a TPP that the list contains already, as the list compares TPPs.
fn once<T: Clone + Eq + Hash>(value: &Value<'_>, tpp: T, seen: &mut HashSet<T>) -> Option<T> {
    if !seen.insert(tpp.clone()) {
        value.fault("this list already contains this TPP");
        return None;
    }
    Some(tpp)
}

fn roles(section: &mut Section<'_>) -> Option<Roles> {
    let values = section.list("roles")?;
    if values.is_empty() {
        section.fault("roles", "expected at least one role: PSP_AI, PSP_PI");
    }
    let mut roles = Roles::default();
    for value in &values {
        roles = roles.with(value.one_of(&ROLES)?);
    }
    Some(roles)
}
