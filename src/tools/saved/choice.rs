//! Selects one of several saved requests.

use super::fault::SavedFault;

/// Selects one of several requests: `entry`, or else the last signed one, or else the last.
pub(super) fn choose<T>(
    mut all: Vec<T>,
    entry: Option<usize>,
    is_signed: impl Fn(&T) -> bool,
) -> Result<(T, Option<String>), SavedFault> {
    let found = all.len();
    let index = match entry {
        Some(wanted) => wanted
            .checked_sub(1)
            .filter(|index| *index < found)
            .ok_or(SavedFault::Entry { wanted, found })?,
        None => all
            .iter()
            .rposition(is_signed)
            .unwrap_or(found.saturating_sub(1)),
    };
    if index >= found {
        return Err(SavedFault::NoRequest);
    }
    let note = (found > 1).then(|| {
        let which = index.saturating_add(1);
        format!("this is request {which} of {found}; --entry N chooses another")
    });
    Ok((all.swap_remove(index), note))
}
