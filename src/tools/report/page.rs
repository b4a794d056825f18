//! Writes the status page to its folder: `index.html` and `status.json`.
//!
//! Invariants: each file is the old one or the new one, complete; a file that is not of such a page is never replaced. Both new files are
//! on the disk before the first of them takes its place. Of two runs at once, one puts both of its files in place before the other does.
//! Deliberately not here: their content.

use super::{fault::ReportFault, html, status};
use crate::private_file;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// Each file, and the beginning by which an earlier one is known.
const FILES: [(&str, &str); 2] = [("status.json", status::BEGIN), ("index.html", html::BEGIN)];

/// The page is to be published: a web server of another user reads it, unless the umask forbids it.
const MODE: u32 = 0o644;

/// Checks that no file of another origin is in the place of one of the page.
///
/// # Errors
/// There is one, or it cannot be known.
pub(super) fn check(folder: &Path) -> Result<(), ReportFault> {
    for (name, begin) in FILES {
        let path = folder.join(name);
        match begins_with(&path, begin) {
            Ok(true) => {}
            Ok(false) => return Err(ReportFault::Foreign(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ReportFault::Page(path, error)),
        }
    }
    Ok(())
}

/// Whether a path is a file, no link, that begins with this text.
fn begins_with(path: &Path, begin: &str) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(false);
    }
    let length = u64::try_from(begin.len()).unwrap_or(u64::MAX);
    let mut found = Vec::new();
    let file = private_file::open(path)?;
    file.take(length).read_to_end(&mut found)?;
    Ok(found == begin.as_bytes())
}

/// Writes both files; creates the folder if it is missing.
///
/// # Errors
/// A file cannot be written; it is then the one that was there before.
pub(super) fn write(folder: &Path, status: &str, html: &str) -> Result<(), ReportFault> {
    check(folder)?;
    let of_folder = |error| ReportFault::Page(folder.to_owned(), error);
    fs::create_dir_all(folder).map_err(of_folder)?;
    let mut new = Vec::new();
    for ((name, _), content) in FILES.into_iter().zip([status, html]) {
        new.push(Unfinished::write(folder, name, content)?);
    }
    // Until the end of this function. On a file system without locks, the hash in the page shows that the files are of two runs.
    let _turn = take_turn(folder);
    for file in new {
        file.put_in_place()?;
    }
    private_file::sync_folder_of(&folder.join("index.html")).map_err(of_folder)
}

/// Waits until no other run puts its files in place. The lock is on the folder; dropping the returned file releases it.
fn take_turn(folder: &Path) -> io::Result<File> {
    let folder = File::open(folder)?;
    folder.lock()?;
    Ok(folder)
}

/// A complete file beside the one that it will replace. It is removed if it does not.
struct Unfinished {
    beside: PathBuf,
    path: PathBuf,
}

impl Unfinished {
    fn write(folder: &Path, name: &str, content: &str) -> Result<Self, ReportFault> {
        let file = Self {
            beside: folder.join(format!(".{name}.{}", Uuid::new_v4().simple())),
            path: folder.join(name),
        };
        let mut options = OpenOptions::new();
        let opened = options
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&file.beside);
        let written = opened.and_then(|mut opened| {
            opened.write_all(content.as_bytes())?;
            opened.sync_all()
        });
        match written {
            Ok(()) => Ok(file),
            Err(error) => Err(ReportFault::Page(file.path.clone(), error)),
        }
    }

    fn put_in_place(&self) -> Result<(), ReportFault> {
        fs::rename(&self.beside, &self.path)
            .map_err(|error| ReportFault::Page(self.path.clone(), error))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // There is none once it is in its place.
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn contents(text: &str) -> [String; 2] {
        [status::BEGIN, html::BEGIN].map(|begin| format!("{begin}{text}"))
    }

    #[test]
    fn a_page_replaces_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a/b");
        for text in ["old", "new"] {
            let [status, html] = contents(text);
            write(&folder, &status, &html).unwrap();
            assert_eq!(names(&folder), ["index.html", "status.json"]);
            assert_eq!(fs::read_to_string(folder.join("index.html")).unwrap(), html);
            assert_eq!(
                fs::read_to_string(folder.join("status.json")).unwrap(),
                status
            );
        }
    }

    type Plant<'a> = &'a dyn Fn(&Path) -> io::Result<()>;

    /// Neither file is written where one of them is another's: a file, a shorter file, a link or a folder.
    #[test]
    fn a_file_of_another_stays() {
        let [status, html] = contents("new");
        for (name, _) in FILES {
            let plants: [Plant<'_>; 4] = [
                &|path| fs::write(path, "<html>the bank's own page</html>"),
                &|path| fs::write(path, ""),
                &|path| std::os::unix::fs::symlink("elsewhere", path),
                &|path| fs::create_dir(path),
            ];
            for plant in plants {
                let folder = tempfile::tempdir().unwrap();
                plant(&folder.path().join(name)).unwrap();
                let fault = write(folder.path(), &status, &html).unwrap_err();
                assert!(matches!(fault, ReportFault::Foreign(_)), "{fault}");
                assert_eq!(names(folder.path()), [name]);
            }
        }
    }

    /// A run that has begun to put its files in place ends it before another one begins.
    #[test]
    fn two_runs_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let turn = take_turn(folder).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let [status, html] = contents("other");
                write(folder, &status, &html).unwrap();
            });
            let is_ready = || names(folder).len() == 2;
            while !is_ready() && !other.is_finished() {
                std::thread::yield_now();
            }
            assert!(names(folder).iter().all(|name| name.starts_with('.')));
            assert!(!other.is_finished());
            drop(turn);
        });
        assert_eq!(names(folder), ["index.html", "status.json"]);
    }

    #[test]
    fn what_is_not_put_in_place_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = Unfinished::write(folder.path(), "index.html", "x").unwrap();
        assert_eq!(names(folder.path()).len(), 1);
        drop(file);
        assert_eq!(names(folder.path()), [""; 0]);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let [status, html] = contents("new");
        let fault = write(&file, &status, &html).unwrap_err();
        assert!(matches!(fault, ReportFault::Page(..)), "{fault}");
    }
}
