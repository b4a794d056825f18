//! Where a bundle lies: the way to it, and who may change that.
//!
//! Invariant: whoever may write in a folder on the way, or owns a part of it, is root, the gateway's own user, or the one who imports.
//! Deliberately not here: what the bundle holds.

use portvakt_base::{
    private_file,
    way::{GROUP_AND_OTHERS_WRITE, OpenFolder, OwnUsers, Unreadable, Way},
};
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The owners of a bundle and of the way to it.
#[derive(Debug)]
pub(super) struct Owners {
    own: OwnUsers,
    /// All others. There may be one: who imports.
    others: BTreeSet<u32>,
}

impl Owners {
    /// No owner so far.
    pub(super) const fn new(own: OwnUsers) -> Self {
        let others = BTreeSet::new();
        Self { own, others }
    }

    /// Notes the owner of a file or folder.
    pub(super) fn note(&mut self, found: &Metadata) {
        self.note_user(found.uid());
    }

    fn note_user(&mut self, user: u32) {
        if !self.own.contains(user) {
            self.others.insert(user);
        }
    }

    /// Whether all belongs to one.
    pub(super) fn judge(&self, folder: &Path) -> Result<(), String> {
        let folder = folder.display();
        match self.others.len() {
            0 | 1 => Ok(()),
            _ => Err(format!(
                "{folder}, its files and the way to it belong to several users (uids {:?}), each of whom decides whom the gateway trusts; let one user import, and chown what is another's",
                self.others
            )),
        }
    }
}

/// The folder that a path leads to. Each folder on the way is judged, also those that links lead through.
pub(super) fn follow(path: &Path, owners: &mut Owners) -> Result<PathBuf, String> {
    let way = Way::follow(path).map_err(|fault| unreadable(path, &fault))?;
    match way.open_folder(GROUP_AND_OTHERS_WRITE, &owners.own) {
        Some(OpenFolder::Writable { folder, mode }) => judge_mode(&folder, mode)?,
        Some(OpenFolder::Foreign { folder, owner }) => {
            return Err(format!(
                "{}: everybody makes entries in this folder, and that of the bundle belongs to another user (uid {owner}) than root, the gateway's and the folder's; put the bundle elsewhere",
                folder.display()
            ));
        }
        None => {}
    }
    for user in way.owners() {
        owners.note_user(user);
    }
    Ok(way.end)
}

/// Names the path as the configuration has it; the part of it that a user may not enter is in the hint.
fn unreadable(path: &Path, fault: &Unreadable) -> String {
    let Unreadable { path: part, error } = fault;
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let folder = private_file::folder_of(part).display();
            format!("the gateway's user may not enter {folder}; chmod a+x {folder}")
        }
        _ => "expected the folder that portvakt-lists import writes".to_owned(),
    };
    let path = path.display();
    format!("{path} is not a readable folder: {error}; {hint}")
}

/// Whether only the owner of a file or folder writes there.
pub(super) fn judge_mode(path: &Path, mode: u32) -> Result<(), String> {
    let mode = mode & 0o7777;
    if mode & GROUP_AND_OTHERS_WRITE == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(format!(
        "{path}: its mode {mode:04o} lets others than its owner change whom the gateway trusts; chmod go-w {path}"
    ))
}
