//! The file of a module: the vendor's library, whose code runs in the gateway's process with its rights.
//!
//! Invariant: only root and the process's own user can change the file, or lead its path elsewhere.

use crate::fault::{LoadFault, Part};
use portvakt_base::way::{GROUP_AND_OTHERS_WRITE, OpenFolder, OwnUsers, Way};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The file of a module.
#[derive(Debug)]
pub(crate) struct LibraryFile {
    /// A path without links.
    pub(crate) path: PathBuf,
    /// Device and inode: several paths may lead to one file.
    id: (u64, u64),
}

impl LibraryFile {
    /// The file at the end of a path.
    ///
    /// # Errors
    /// It cannot be read, is no regular file, or others than root and the process's user can change it.
    pub(crate) fn find(path: &Path) -> Result<Self, LoadFault> {
        let shown = path.display();
        let unreadable = |reason: String| {
            fault(format!(
                "{shown} cannot be loaded as a PKCS#11 module: {reason}"
            ))
        };
        let way = Way::follow(path)
            .map_err(|part| unreadable(format!("{}: {}", part.path.display(), part.error)))?;
        let found = fs::metadata(&way.end).map_err(|error| unreadable(error.to_string()))?;
        if !found.is_file() {
            let text = "it is no regular file (a folder, a FIFO, a device or a socket); name the vendor's library";
            return Err(unreadable(text.to_owned()));
        }
        let own = OwnUsers::default();
        if let Some(open) = way.open_folder(GROUP_AND_OTHERS_WRITE, &own) {
            return Err(unreadable(of_folder(&open)));
        }
        let end = way.end.display();
        let mode = found.mode() & 0o7777;
        if mode & GROUP_AND_OTHERS_WRITE != 0 {
            return Err(unreadable(format!(
                "other users can change {end} (mode {mode:04o}), and its code runs in the gateway; chmod go-w {end}"
            )));
        }
        if let Some(owner) = way.owners().find(|owner| !own.contains(*owner)) {
            return Err(unreadable(format!(
                "uid {owner} owns {end}, or a folder or a link on the way to it, and can so change code that runs in the gateway: root or the gateway's user must own all of them"
            )));
        }
        Ok(Self {
            id: (found.dev(), found.ino()),
            path: way.end,
        })
    }

    /// Whether the library takes one call at a time. p11-kit's client has one connection for all calls, and where the server ends it while
    /// several wait for their answers, one of them may wait for ever, so that the library can never be initialised again (0.24). Its server
    /// handles one call after the other anyway.
    pub(crate) fn takes_one_call(&self) -> bool {
        let name = self.path.file_name();
        name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"p11-kit"))
    }

    /// Whether both are one library: by its path also a new version of the file, since the one that is loaded stays.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.id == other.id || self.path == other.path
    }
}

fn fault(text: String) -> LoadFault {
    LoadFault::new(Part::Module, text)
}

fn of_folder(open: &OpenFolder) -> String {
    match open {
        OpenFolder::Writable { folder, mode } => {
            let folder = folder.display();
            format!(
                "other users can replace it, because they write in {folder} (mode {mode:04o}), and its code runs in the gateway; chmod go-w {folder}"
            )
        }
        OpenFolder::Foreign { folder, owner } => format!(
            "uid {owner} put it into {}, where other users make entries, and its code runs in the gateway; put it elsewhere",
            folder.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    };

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_its_owner_changes_a_library() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        set_mode(&inner, 0o755);
        let file = inner.join("module.so");
        fs::write(&file, "").unwrap();
        set_mode(&file, 0o644);
        let link = folder.path().join("link.so");
        symlink(&file, &link).unwrap();
        let [found, by_link] = [&file, &link].map(|path| LibraryFile::find(path).unwrap());
        assert!(found.is_same(&by_link));
        let refused = |path: &Path| LibraryFile::find(path).unwrap_err().text;
        for mode in [0o664, 0o646, 0o666] {
            set_mode(&file, mode);
            assert!(
                refused(&link).contains("other users can change"),
                "{mode:o}"
            );
        }
        set_mode(&file, 0o644);
        for mode in [0o775, 0o757] {
            set_mode(&inner, mode);
            assert!(
                refused(&file).contains("other users can replace"),
                "{mode:o}"
            );
        }
        set_mode(&inner, 0o755);
        LibraryFile::find(&file).unwrap();
    }

    /// dlopen would wait for the other end of a FIFO.
    #[test]
    fn a_library_is_a_regular_file() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [folder.path(), &socket, Path::new("/dev/null")] {
            let fault = LibraryFile::find(path).unwrap_err();
            assert_eq!(fault.part, Part::Module);
            assert!(fault.text.contains("no regular file"), "{}", fault.text);
        }
        assert!(LibraryFile::find(&folder.path().join("none")).is_err());
    }
}
