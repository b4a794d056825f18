//! Who may write what an import goes by, or lead the way to it elsewhere: root, and the user who runs it.
//!
//! Invariant: modes and owners are judged together, of the end, of each folder above it, and of each link and where it leads: an owner writes
//! whatever the mode says, since the owner sets it.

use crate::fault::Refusal;
use portvakt_base::way::{GROUP_AND_OTHERS_WRITE, OpenFolder, OwnUsers, Way};
use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Judges who may write a file or folder, or in a folder on the way to it, links followed. `what` is what others could do then.
///
/// # Errors
/// Others than root and the own user may, or it cannot be looked at.
pub(crate) fn judge_way(path: &Path, what: &str) -> Result<(), Refusal> {
    judge_way_of(path, what, &OwnUsers::default())
}

/// The same of a folder of bundles: where root imports, it may belong to the user whose service imports every day.
///
/// # Errors
/// Those of [`judge_way`].
pub(crate) fn judge_way_of_bundles(path: &Path, what: &str) -> Result<(), Refusal> {
    let mut own = OwnUsers::default();
    if rustix::process::geteuid().is_root() {
        let found = fs::metadata(path).map_err(|error| refuse(path, &error))?;
        own.add(found.uid());
    }
    judge_way_of(path, what, &own)
}

fn judge_way_of(path: &Path, what: &str, own_users: &OwnUsers) -> Result<(), Refusal> {
    let way = Way::follow(path).map_err(|fault| refuse(&fault.path, &fault.error))?;
    if let Some((part, owner)) = way.foreign(own_users) {
        return Err(Refusal::new(format_args!(
            "{}: it belongs to another user (uid {owner}) than root and the one who runs this, who could {what}; chown it, or use a copy of your own",
            part.display()
        )));
    }
    let found = fs::metadata(&way.end).map_err(|error| refuse(path, &error))?;
    let mode = found.permissions().mode() & 0o7777;
    let own = (mode & GROUP_AND_OTHERS_WRITE != 0).then(|| OpenFolder::Writable {
        folder: way.end.clone(),
        mode,
    });
    let open = way.open_folder(GROUP_AND_OTHERS_WRITE, own_users);
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
