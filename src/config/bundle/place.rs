//! Where a bundle lies: the way to it, and who may change that.
//!
//! Invariant: each link is followed once, and whoever may write in a folder on the way, or owns a part of it, is root, the gateway's own
//! user, or the one who imports. Deliberately not here: what the bundle holds.

use crate::private_file;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf, absolute};

/// The bits of a mode that let others than the owner write (inode(7)).
const OTHERS_WRITE: u32 = 0o022;

/// The sticky bit: others create files in the folder, and replace none.
const STICKY: u32 = 0o1000;

/// The most links on the way, as the kernel follows them (path_resolution(7)).
const MAX_LINKS: u32 = 40;

/// The owners of a bundle and of the way to it, but for root and the gateway's own user. There may be one: who imports.
#[derive(Debug, Default)]
pub(super) struct Owners(BTreeSet<u32>);

impl Owners {
    /// Notes an owner.
    pub(super) fn note(&mut self, found: &Metadata) {
        let own = rustix::process::geteuid().as_raw();
        if ![0, own].contains(&found.uid()) {
            self.0.insert(found.uid());
        }
    }

    /// Whether all belongs to one.
    pub(super) fn judge(&self, folder: &Path) -> Result<(), String> {
        let folder = folder.display();
        match self.0.len() {
            0 | 1 => Ok(()),
            _ => Err(format!(
                "{folder}, its files and the way to it belong to several users (uids {:?}), each of whom decides whom the gateway trusts; let one user import, and chown what is another's",
                self.0
            )),
        }
    }
}

/// The folder that a path leads to. The path is followed by its parts, so that each folder on the way is judged, also those that links lead
/// through.
pub(super) fn follow(path: &Path, owners: &mut Owners) -> Result<PathBuf, String> {
    let unreadable = |at: &Path, error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let folder = private_file::folder_of(at).display();
                format!("the gateway's user may not enter {folder}; chmod a+x {folder}")
            }
            _ => "expected the folder that portvakt-lists import writes".to_owned(),
        };
        let path = path.display();
        format!("{path} is not a readable folder: {error}; {hint}")
    };
    let mut left = Vec::new();
    push(
        &absolute(path).map_err(|error| unreadable(path, error))?,
        &mut left,
    );
    let (mut at, mut links) = (PathBuf::from("/"), 0_u32);
    while let Some(name) = left.pop() {
        if name == OsStr::new("/") {
            at = PathBuf::from("/");
            continue;
        }
        if name == OsStr::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let around = fs::metadata(&at).map_err(|error| unreadable(&at, error))?;
        let found = fs::symlink_metadata(&next).map_err(|error| unreadable(&next, error))?;
        judge_passed(&at, &around, &found)?;
        owners.note(&around);
        owners.note(&found);
        if !found.is_symlink() {
            at = next;
            continue;
        }
        links = links.saturating_add(1);
        if links > MAX_LINKS {
            return Err(unreadable(&next, rustix::io::Errno::LOOP.into()));
        }
        push(
            &fs::read_link(&next).map_err(|error| unreadable(&next, error))?,
            &mut left,
        );
    }
    Ok(at)
}

/// Puts the parts of a path on the stack, the first on top.
fn push(path: &Path, left: &mut Vec<OsString>) {
    let parts = path.components().rev();
    let parts = parts.filter(|part| *part != Component::CurDir);
    left.extend(parts.map(|part| part.as_os_str().to_owned()));
}

/// Judges a folder on the way by the entry in it that the way goes on through. In a sticky folder others replace no entry, but may have made it.
fn judge_passed(folder: &Path, around: &Metadata, entry: &Metadata) -> Result<(), String> {
    let mode = around.permissions().mode();
    if mode & STICKY == 0 {
        return judge_mode(folder, mode);
    }
    let own = rustix::process::geteuid().as_raw();
    match mode & OTHERS_WRITE == 0 || [0, own, around.uid()].contains(&entry.uid()) {
        true => Ok(()),
        false => Err(format!(
            "{}: everybody makes entries in this folder, and that of the bundle belongs to another user (uid {}) than root, the gateway's and the folder's; put the bundle elsewhere",
            folder.display(),
            entry.uid()
        )),
    }
}

/// Whether only the owner of a file or folder writes there.
pub(super) fn judge_mode(path: &Path, mode: u32) -> Result<(), String> {
    let mode = mode & 0o7777;
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(format!(
        "{path}: its mode {mode:04o} lets others than its owner change whom the gateway trusts; chmod go-w {path}"
    ))
}
