//! The end of a record's time: files whose records are all older than they must be kept are deleted.
//!
//! Invariant: before a file is deleted, the chain of control beside it says so. Deliberately not here: how long records are kept.

use super::{
    chain::Chain,
    event::{AuditKind, Class, Members},
    files,
};
use crate::{clock::LogTime, config::AuditSettings};

/// Deletes old files of a class; returns the number of records about it.
///
/// # Errors
/// The folder cannot be read, or the record about it is not durable: then no file is deleted.
pub(super) fn retire(chains: &mut [Chain], class: Class, now: LogTime) -> Result<u64, String> {
    let text = |error: std::io::Error| format!("{}: {error}", class.name());
    let chain = chains.iter().find(|chain| chain.class() == class);
    let found = chain.map(|chain| chain.find_retired(now)).transpose();
    let Some(retired) = found.map_err(text)?.flatten() else {
        return Ok(0);
    };
    let mut record = Members::default();
    record.add("time", now.to_string());
    record.add("kind", AuditKind::Retired.name());
    record.add("class", class.name());
    record.add("last", retired.last);
    record.add("hash", retired.hash.as_str());
    let control = chains
        .iter_mut()
        .find(|chain| chain.class() == Class::Control);
    let control = control.ok_or("there is no chain of control")?;
    control.append(now, &[record]).map_err(text)?;
    retired.delete().map_err(text)?;
    Ok(1)
}

/// The same in the folders of processes that have ended, such as the ones before an upgrade. The newest file of each chain stays.
/// Calls `progress` before each folder.
///
/// # Errors
/// The first fault; the other folders were looked at.
pub(super) fn retire_left_folders(
    settings: &AuditSettings,
    now: LogTime,
    progress: impl Fn(),
) -> Result<u64, String> {
    let mut result = Ok(0_u64);
    for folder in files::folders(&settings.folder).map_err(|error| error.to_string())? {
        progress();
        // A folder that is locked has a process, which deletes its own files.
        let Ok(_lock) = files::lock(&folder) else {
            continue;
        };
        let retired = Chain::open_all(&folder, settings)
            .map_err(|error| format!("{}: {error}", folder.display()))
            .and_then(|mut chains| {
                let counts = Class::ALL
                    .iter()
                    .map(|class| retire(&mut chains, *class, now));
                counts.sum()
            });
        result = match (result, retired) {
            (Ok(count), Ok(more)) => Ok(count.saturating_add(more)),
            (Err(fault), _) | (_, Err(fault)) => Err(fault),
        };
    }
    result
}
