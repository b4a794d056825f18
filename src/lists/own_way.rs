//! Who may write what an import goes by, or lead the way to it elsewhere: the owner alone.

use crate::fault::Refusal;
use portvakt_base::way::{GROUP_AND_OTHERS_WRITE, OpenFolder, OwnUsers, Way};
use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

/// Judges who may write a file or folder, or in a folder on the way to it, links followed. `what` is what others could do then.
///
/// # Errors
/// Others than the owner may, or it cannot be looked at.
pub(crate) fn judge_way(path: &Path, what: &str) -> Result<(), Refusal> {
    let way = Way::follow(path).map_err(|fault| refuse(&fault.path, &fault.error))?;
    let found = fs::metadata(&way.end).map_err(|error| refuse(path, &error))?;
    let mode = found.permissions().mode() & 0o7777;
    let own = (mode & GROUP_AND_OTHERS_WRITE != 0).then(|| OpenFolder::Writable {
        folder: way.end.clone(),
        mode,
    });
    let open = way.open_folder(GROUP_AND_OTHERS_WRITE, &OwnUsers::default());
    match open.or(own) {
        None => Ok(()),
        Some(OpenFolder::Writable { folder, mode }) => {
            let folder = folder.display();
            Err(Refusal::new(format_args!(
                "{folder}: its mode {mode:04o} lets others than its owner {what}; chmod go-w {folder}"
            )))
        }
        Some(OpenFolder::Foreign { folder, owner }) => Err(Refusal::new(format_args!(
            "{}: everybody makes entries in this folder, and {} belongs to another user (uid {owner}), who could {what}; use another folder",
            folder.display(),
            path.display()
        ))),
    }
}

fn refuse(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(format_args!("{}: {error}", path.display()))
}
