//! The files and folders that the gateway makes and writes.
//!
//! Invariant: none of them is another file of the configuration, or lies in a folder of such files: lines of a log in the state or among
//! the anchors would stop the next start. Deliberately not here: whether they can be written, which the start tries.

use super::control::ControlAddress;
use super::fault::FilePosition;
use super::inspection::Inspection;
use super::log::LogOutput;
use super::settings::Settings;
use crate::seen;
use std::fs;
use std::path::{Path, PathBuf};

/// A path with the key that names it, or that it is the default of.
type Named = (String, PathBuf);

/// The paths that change while the gateway runs, or that only its start reads; a reload need not watch them.
pub(super) fn changing(settings: &Settings) -> Vec<Named> {
    let Settings { fixed, reloadable } = settings;
    let mut found = Vec::new();
    let mut add = |key: &str, path: &Path| found.push((key.to_owned(), path.to_owned()));
    let log = &fixed.log;
    for (key, output) in [
        ("log.events_file", &log.events_output),
        ("log.access_file", &log.access_output),
    ] {
        if let LogOutput::File(path) = output {
            add(key, path);
        }
    }
    add("sca.token_seals", &reloadable.sca.token_seals);
    if let Some(audit) = &fixed.audit {
        add("audit.folder", &audit.folder);
    }
    let revocation = reloadable.snapshot.trust.revocation();
    if let Some(copies) = revocation.and_then(|revocation| revocation.copies()) {
        add("revocation.copies", copies);
    }
    if let ControlAddress::Unix(socket) = &fixed.control {
        add("control.socket", socket);
    }
    add("state.hash_key", &fixed.state.hash_key);
    let state = &fixed.state.file;
    for suffix in ["", "-wal", "-shm"] {
        let mut path = state.as_os_str().to_owned();
        path.push(suffix);
        add("state.file", Path::new(&path));
    }
    add("state.file", &seen::file_beside(state));
    found
}

/// Reports each path that the gateway writes and that has another use too. `source` is the configuration file.
pub(super) fn check(settings: &Settings, source: &FilePosition, inspection: &Inspection) {
    let read = inspection.named();
    let place_of = |key: &str| {
        let mut places = read.iter().map(|file| &file.place);
        places.find(|place| place.path == key).cloned()
    };
    let written = changing(settings);
    let mut others = written.clone();
    let keys = settings.reloadable.sca.token_keys.clone();
    others.push(("sca.token_keys".to_owned(), keys));
    let is_known =
        |key: &str, others: &[Named]| others.iter().any(|(known, _)| known.as_str() == key);
    for file in &read {
        if !is_known(&file.place.path, &others) {
            others.push((file.place.path.clone(), file.path.clone()));
        }
    }
    let file = PathBuf::from(&*source.file);
    others.push(("the configuration itself".to_owned(), file));
    for (_, path) in &mut others {
        *path = real(path);
    }
    for (index, (key, path)) in written.iter().enumerate() {
        let own = real(path);
        for (other, at) in others.iter().skip(index) {
            if other == key || !(own.starts_with(at) || at.starts_with(&own)) {
                continue;
            }
            let text = if own == *at {
                format!(
                    "{} is also {other}; each needs a file of its own",
                    path.display()
                )
            } else {
                format!(
                    "{} and {other} lie one in the other; name a place apart from it",
                    path.display()
                )
            };
            let place = place_of(key).or_else(|| place_of(other));
            inspection.report(place.unwrap_or_else(|| source.clone()), text);
        }
    }
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for known in path.ancestors() {
        let folder = if known.as_os_str().is_empty() {
            Path::new(".")
        } else {
            known
        };
        if let (Ok(found), Ok(rest)) = (fs::canonicalize(folder), path.strip_prefix(known)) {
            return found.join(rest);
        }
    }
    path.to_owned()
}
