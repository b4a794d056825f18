//! A migration that is tried on a copy, while another process uses the file.

use super::{
    super::{OpenFault, StateSettings, settings::EarlierSchema},
    file,
};
use portvakt_base::private_file;
use std::path::{Path, PathBuf};

/// The copy beside the file, which its end removes.
struct Copy(PathBuf);

impl Copy {
    fn of(path: &Path) -> Self {
        let copy = Self(with_suffix(path, ".rehearsal"));
        // A process that was killed has left it.
        copy.remove();
        copy
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // One that stays is in the way of the copy, which says so.
            let _ = std::fs::remove_file(with_suffix(&self.0, suffix));
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.remove();
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Copies the file and opens the copy, with its migration: the key, each row and the space of the disk are tried. The process that uses the
/// file goes on.
///
/// # Errors
/// The file cannot be copied, or the copy cannot be migrated.
pub(super) fn rehearse(settings: &StateSettings) -> Result<(), OpenFault> {
    file::try_open(settings)?;
    let copy = Copy::of(&settings.file);
    let rehearsed = copy_into(&settings.file, &copy.0).and_then(|()| {
        let settings = StateSettings {
            file: copy.0.clone(),
            ..settings.clone()
        };
        file::open(&settings, EarlierSchema::Migrated).map(drop)
    });
    rehearsed.map_err(|fault| OpenFault::Rehearsal(Box::new(fault)))
}

fn copy_into(path: &Path, copy: &Path) -> Result<(), OpenFault> {
    // SQLite fills an empty file, which has the right mode from the start.
    let made = private_file::create(copy);
    made.map_err(|error| OpenFault::File(copy.to_owned(), error))?;
    let connection = file::connect(path).map_err(|error| file::damaged(path, &error))?;
    let name = copy.to_string_lossy();
    let copied = connection.execute("VACUUM INTO ?1", [name]);
    copied
        .map(drop)
        .map_err(|error| file::damaged(copy, &error))
}
