//! Warns of files and folders that decide whom the gateway trusts and that every user of the machine can change.
//!
//! Invariant: each open file or folder is one warning, whatever number of keys lead to it or through it. Files with a secret are refused
//! when others can read them; this is about the others: anchors, registers, CRLs, the catalogue, the configuration itself, and every
//! folder on the way to them. Deliberately not here: what a group can change, which is the operator's.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::fault::FilePosition;
use super::inspection::Inspection;
use super::named_file::NamedFile;
use crate::way::{OTHERS_WRITE, OpenFolder, OwnUsers, Way};

/// Warns of every named path, and of the configuration file.
pub(super) fn check(
    source: Option<&Path>,
    named: &[NamedFile],
    start: &FilePosition,
    inspection: &Inspection,
) {
    let source = source.map(|path| (start, path));
    let named = named.iter().map(|file| (&file.place, file.path.as_path()));
    let own = inspection.own_users();
    let mut told = BTreeSet::new();
    for (place, path) in source.into_iter().chain(named) {
        let Some(open) = Open::find(path, &own) else {
            continue;
        };
        let text = open.to_string();
        if told.insert(text.clone()) {
            inspection.warn(place.clone(), text);
        }
    }
}

/// What every user of the machine can change.
#[derive(Debug, PartialEq, Eq)]
enum Open {
    /// This file or folder, by its mode.
    Mode(PathBuf),
    /// The entry of another user in a folder where everybody makes some.
    Entry(PathBuf, u32),
}

impl std::fmt::Display for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mode(path) => {
                let path = path.display();
                write!(
                    f,
                    "every user of this machine can change {path}, and so what the gateway trusts; chmod o-w {path}"
                )
            }
            Self::Entry(folder, owner) => write!(
                f,
                "every user of this machine can make entries in {}, and the one that is read belongs to another user (uid {owner}), who so decides what the gateway trusts; put it elsewhere",
                folder.display()
            ),
        }
    }
}

impl Open {
    /// A folder on the way to a path, the path itself, or a file directly in it, if others than `own` can change it.
    fn find(path: &Path, own: &OwnUsers) -> Option<Self> {
        let way = Way::follow(path).ok()?;
        if let Some(open) = Self::on(&way, own) {
            return Some(open);
        }
        let entries = fs::read_dir(&way.end).ok()?;
        let mut entries = entries.map_while(Result::ok).map(|entry| entry.path());
        entries.find_map(|entry| match entry.is_symlink() {
            true if entry.is_file() => Self::on(&Way::follow(&entry).ok()?, own),
            true => None,
            false => (entry.is_file() && is_open(&entry)).then_some(Self::Mode(entry)),
        })
    }

    /// A folder on the way, or its end.
    fn on(way: &Way, own: &OwnUsers) -> Option<Self> {
        let open = way.open_folder(OTHERS_WRITE, own).map(|open| match open {
            OpenFolder::Writable { folder, .. } => Self::Mode(folder),
            OpenFolder::Foreign { folder, owner } => Self::Entry(folder, owner),
        });
        open.or_else(|| is_open(&way.end).then(|| Self::Mode(way.end.clone())))
    }
}

/// Whether a file or folder is open to every user. In a folder with the sticky bit they replace nothing, and add what is read with the rest.
fn is_open(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|found| (found.is_file() || found.is_dir()) && found.mode() & OTHERS_WRITE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn open(path: &Path) -> Option<Open> {
        Open::find(path, &OwnUsers::default())
    }

    fn real(path: &Path) -> Option<Open> {
        Some(Open::Mode(fs::canonicalize(path).unwrap()))
    }

    #[test]
    fn what_every_user_can_change() {
        let folder = tempfile::tempdir().unwrap();
        let anchors = folder.path().join("anchors");
        fs::create_dir(&anchors).unwrap();
        let file = anchors.join("ca.pem");
        fs::write(&file, "x").unwrap();
        mode(&anchors, 0o755);
        mode(&file, 0o644);
        assert_eq!(open(&anchors), None);
        assert_eq!(open(&file), None);
        mode(&file, 0o646);
        assert_eq!(open(&anchors), real(&file));
        assert_eq!(open(&file), real(&file));
        mode(&file, 0o664);
        assert_eq!(open(&file), None, "a group is the operator's");
        mode(&anchors, 0o777);
        assert_eq!(open(&anchors), real(&anchors));
        assert_eq!(open(&file), real(&anchors), "it could be replaced");
        mode(&anchors, 0o1777);
        assert_eq!(open(&file), None);
        assert_eq!(open(&anchors), real(&anchors), "others add an anchor");
        assert_eq!(open(Path::new("/dev/null")), None);
        assert_eq!(open(&folder.path().join("missing")), None);
    }

    /// Who replaces a folder further up replaces all in it; so does one where a link leads through.
    #[test]
    fn what_every_user_can_change_on_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["up", "up/deep", "up/deep/anchors", "elsewhere", "linked"] {
            fs::create_dir(path(name)).unwrap();
            mode(&path(name), 0o755);
        }
        let anchors = path("up/deep/anchors");
        fs::write(path("elsewhere/ca.pem"), "x").unwrap();
        mode(&path("elsewhere/ca.pem"), 0o644);
        symlink("../../../elsewhere/ca.pem", anchors.join("ca.pem")).unwrap();
        symlink("../up/deep/anchors", path("linked/current")).unwrap();
        let current = path("linked/current");
        assert_eq!(open(&current), None);
        for (name, leads) in [
            ("up", [true, true]),
            ("up/deep", [true, true]),
            ("elsewhere", [true, true]),
            ("linked", [false, true]),
        ] {
            mode(&path(name), 0o757);
            let expected = leads.map(|leads| real(&path(name)).filter(|_| leads));
            assert_eq!([open(&anchors), open(&current)], expected, "{name}");
            mode(&path(name), 0o1777);
            assert_eq!([open(&anchors), open(&current)], [None, None], "{name}");
            mode(&path(name), 0o755);
        }
    }

    #[test]
    fn one_warning_for_each_folder() {
        let folder = tempfile::tempdir().unwrap();
        let up = folder.path().join("up");
        let named = ["a", "b", "c"].map(|name| {
            fs::create_dir_all(up.join(name)).unwrap();
            mode(&up.join(name), 0o755);
            NamedFile {
                place: FilePosition::start_of(name),
                path: up.join(name),
                secret: false,
            }
        });
        let start = FilePosition::start_of("gateway.yaml");
        let count = || {
            let inspection = Inspection::new();
            check(Some(&up.join("a")), &named, &start, &inspection);
            inspection.warnings().len()
        };
        mode(&up, 0o777);
        assert_eq!(count(), 1);
        mode(&up, 0o755);
        mode(&up.join("a"), 0o777);
        mode(&up.join("b"), 0o777);
        assert_eq!(count(), 2);
    }
}
