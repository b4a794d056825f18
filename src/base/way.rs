//! The way to a file or folder through the file system, and who may lead it elsewhere.
//!
//! Invariant: the way is followed by its parts, each link once, so that every folder on it is seen, also those that links lead through.
//! Deliberately not here: the content of what it leads to, and whether an open folder is a fault or a warning.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf, absolute},
};

/// The bits of a mode that let others than the owner write (inode(7)).
pub const GROUP_AND_OTHERS_WRITE: u32 = 0o022;

/// The bit of a mode that lets every user of the machine write.
pub const OTHERS_WRITE: u32 = 0o002;

/// The sticky bit: others create entries in the folder, and replace none.
const STICKY: u32 = 0o1000;

/// The most links on the way, as the kernel follows them (path_resolution(7)).
const MAX_LINKS: u32 = 40;

/// The users who decide anyway what this process reads: root and its own, and those that are added.
#[derive(Clone, Debug)]
pub struct OwnUsers(BTreeSet<u32>);

impl Default for OwnUsers {
    fn default() -> Self {
        Self(BTreeSet::from([0, rustix::process::geteuid().as_raw()]))
    }
}

impl OwnUsers {
    /// Adds a user.
    pub fn add(&mut self, user: u32) {
        self.0.insert(user);
    }

    /// Whether the user is one of them.
    pub fn contains(&self, user: u32) -> bool {
        self.0.contains(&user)
    }
}

/// The way to a file or folder.
#[derive(Debug)]
pub struct Way {
    /// Where it ends: a path without links.
    pub end: PathBuf,
    passed: Vec<Passed>,
}

/// A folder on the way, and the entry in it that the way goes on through.
#[derive(Debug)]
struct Passed {
    folder: PathBuf,
    around: Metadata,
    path: PathBuf,
    entry: Metadata,
}

/// The part of a way that cannot be followed.
#[derive(Debug)]
pub struct Unreadable {
    /// The part.
    pub path: PathBuf,
    /// The reason.
    pub error: io::Error,
}

/// A folder on the way in which others may put another entry in place of that of the way.
#[derive(Debug, PartialEq, Eq)]
pub enum OpenFolder {
    /// Others write in it.
    Writable {
        /// The folder.
        folder: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Others make entries in it and replace none (the sticky bit), and the entry of the way belongs to one of them.
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// The user whose entry it is.
        owner: u32,
    },
}

impl Way {
    /// Follows a path to its end.
    ///
    /// # Errors
    /// A part of it does not exist or cannot be looked at, or it has more links than the kernel follows.
    pub fn follow(path: &Path) -> Result<Self, Unreadable> {
        let unreadable = |path: &Path, error: io::Error| Unreadable {
            path: path.to_owned(),
            error,
        };
        let whole = absolute(path).map_err(|error| unreadable(path, error))?;
        let (mut left, mut passed) = (Vec::new(), Vec::new());
        push(&whole, &mut left);
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
            let entry = fs::symlink_metadata(&next).map_err(|error| unreadable(&next, error))?;
            let is_link = entry.is_symlink();
            passed.push(Passed {
                folder: at.clone(),
                around,
                path: next.clone(),
                entry,
            });
            if !is_link {
                at = next;
                continue;
            }
            links = links.saturating_add(1);
            if links > MAX_LINKS {
                return Err(unreadable(&next, rustix::io::Errno::LOOP.into()));
            }
            let target = fs::read_link(&next).map_err(|error| unreadable(&next, error))?;
            push(&target, &mut left);
        }
        Ok(Self { end: at, passed })
    }

    /// The first folder on the way that is open to others than `own`, which the bits `others` of its mode say.
    pub fn open_folder(&self, others: u32, own: &OwnUsers) -> Option<OpenFolder> {
        self.passed.iter().find_map(|passed| {
            let Passed {
                folder,
                around,
                entry,
                ..
            } = passed;
            let mode = around.mode() & 0o7777;
            if mode & others == 0 {
                return None;
            }
            let folder = folder.clone();
            if mode & STICKY == 0 {
                return Some(OpenFolder::Writable { folder, mode });
            }
            let owner = entry.uid();
            let is_own = own.contains(owner) || owner == around.uid();
            (!is_own).then_some(OpenFolder::Foreign { folder, owner })
        })
    }

    /// The first folder, link or end of the way that belongs to another user than `own`, and that user.
    pub fn foreign(&self, own: &OwnUsers) -> Option<(&Path, u32)> {
        let all = self.passed.iter().flat_map(|passed| {
            [
                (&*passed.folder, passed.around.uid()),
                (&*passed.path, passed.entry.uid()),
            ]
        });
        all.into_iter().find(|(_, owner)| !own.contains(*owner))
    }

    /// The owners of the folders on the way, of the links, and of its end.
    pub fn owners(&self) -> impl Iterator<Item = u32> + '_ {
        let passed = self.passed.iter();
        passed.flat_map(|passed| [passed.around.uid(), passed.entry.uid()])
    }
}

/// Puts the parts of a path on the stack, the first on top.
fn push(path: &Path, left: &mut Vec<OsString>) {
    let parts = path.components().rev();
    let parts = parts.filter(|part| *part != Component::CurDir);
    left.extend(parts.map(|part| part.as_os_str().to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn every_folder_on_the_way_is_seen() {
        let kept = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(kept.path()).unwrap();
        for folder in ["a/b", "through"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for folder in ["a", "a/b", "through"] {
            set_mode(&root.join(folder), 0o755);
        }
        fs::write(root.join("a/b/file"), "x").unwrap();
        symlink("../a/./b", root.join("through/middle")).unwrap();
        symlink("through/middle", root.join("link")).unwrap();
        let path = root.join("link/../b/file");
        let own = OwnUsers::default();
        let open = |others| Way::follow(&path).unwrap().open_folder(others, &own);
        assert_eq!(Way::follow(&path).unwrap().end, root.join("a/b/file"));
        assert_eq!(open(GROUP_AND_OTHERS_WRITE), None);
        for folder in ["a", "a/b", "through"] {
            let folder = root.join(folder);
            for (mode, to_group, to_all) in [
                (0o775, true, false),
                (0o757, true, true),
                (0o1777, false, false),
            ] {
                set_mode(&folder, mode);
                let found = OpenFolder::Writable {
                    folder: folder.clone(),
                    mode,
                };
                assert_eq!(open(GROUP_AND_OTHERS_WRITE) == Some(found), to_group);
                assert_eq!(open(OTHERS_WRITE).is_some(), to_all, "{mode:o}");
            }
            set_mode(&folder, 0o755);
        }
        let way = Way::follow(&path).unwrap();
        assert!(way.owners().all(|user| own.contains(user)));
        assert_eq!(way.foreign(&own), None);
        let user = fs::metadata(&path).unwrap().uid();
        let nobody = OwnUsers(BTreeSet::new());
        let root_user = fs::metadata("/").unwrap().uid();
        assert_eq!(way.foreign(&nobody), Some((Path::new("/"), root_user)));
        // A link counts by its own owner, wherever it leads.
        if user == 0 {
            std::os::unix::fs::lchown(root.join("link"), Some(4711), None).unwrap();
            let link = root.join("link");
            let way = Way::follow(&path).unwrap();
            assert_eq!(way.foreign(&own), Some((&*link, 4711)));
        }
    }

    #[test]
    fn a_way_that_leads_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let circle = root.path().join("circle");
        symlink("circle", &circle).unwrap();
        let fault = Way::follow(&circle).unwrap_err();
        assert_eq!(
            fault.error.raw_os_error(),
            Some(rustix::io::Errno::LOOP.raw_os_error())
        );
        let fault = Way::follow(&root.path().join("none/more")).unwrap_err();
        assert_eq!(fault.error.kind(), io::ErrorKind::NotFound);
        assert!(fault.path.ends_with("none"));
    }
}
