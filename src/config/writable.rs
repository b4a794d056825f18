//! Warns of files and folders that decide whom the gateway trusts and that every user of the machine can change.
//!
//! Files with a secret are refused when others can read them; this is about the others: anchors, registers, CRLs, the catalogue, the
//! configuration itself, and the folders that hold them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::fault::FilePosition;
use super::inspection::Inspection;
use super::named_file::NamedFile;

/// The permission of others to write (inode(7)).
const OTHERS_WRITE: u32 = 0o002;

/// The sticky bit: others create files in the folder, and replace none.
const STICKY: u32 = 0o1000;

/// Warns of every named path, and of the configuration file.
pub(super) fn check(
    source: Option<&Path>,
    named: &[NamedFile],
    start: &FilePosition,
    inspection: &Inspection,
) {
    let source = source.map(|path| (start, path));
    let named = named.iter().map(|file| (&file.place, file.path.as_path()));
    for (place, path) in source.into_iter().chain(named) {
        if let Some(open) = open_to_all(path) {
            let shown = open.display();
            let text = format!(
                "every user of this machine can change {shown}, and so what the gateway trusts; chmod o-w {shown}"
            );
            inspection.warn(place.clone(), text);
        }
    }
}

/// The path itself, a file directly in it, or its folder, if every user can change it.
fn open_to_all(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    if is_open(&path) {
        return Some(path);
    }
    if let Ok(entries) = fs::read_dir(&path) {
        let mut entries = entries.map_while(Result::ok).map(|entry| entry.path());
        if let Some(open) = entries.find(|entry| entry.is_file() && is_open(entry)) {
            return Some(open);
        }
    }
    let folder = path.parent()?;
    is_open(folder).then(|| folder.to_owned())
}

fn is_open(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return false;
    };
    let mode = metadata.mode();
    match metadata.is_dir() {
        true => mode & OTHERS_WRITE != 0 && mode & STICKY == 0,
        false => metadata.is_file() && mode & OTHERS_WRITE != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_every_user_can_change() {
        let folder = tempfile::tempdir().unwrap();
        let anchors = folder.path().join("anchors");
        fs::create_dir(&anchors).unwrap();
        let file = anchors.join("ca.pem");
        fs::write(&file, "x").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&anchors, 0o755);
        mode(&file, 0o644);
        assert_eq!(open_to_all(&anchors), None);
        assert_eq!(open_to_all(&file), None);
        let real = |path: &Path| Some(fs::canonicalize(path).unwrap());
        mode(&file, 0o646);
        assert_eq!(open_to_all(&anchors), real(&file));
        assert_eq!(open_to_all(&file), real(&file));
        mode(&file, 0o664);
        assert_eq!(open_to_all(&file), None, "a group is the operator's");
        mode(&anchors, 0o777);
        assert_eq!(open_to_all(&anchors), real(&anchors));
        assert_eq!(open_to_all(&file), real(&anchors), "it could be replaced");
        mode(&anchors, 0o1777);
        assert_eq!(open_to_all(&file), None);
        assert_eq!(open_to_all(Path::new("/dev/null")), None);
        assert_eq!(open_to_all(&folder.path().join("missing")), None);
    }
}
