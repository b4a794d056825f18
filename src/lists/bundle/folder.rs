//! Bundles on disk: dated folders beside each other, and the symbolic link `current` to the one in use.
//!
//! Invariant: a bundle is written whole beside the others, made durable, and only then does `current` lead to it, in one step. A failed
//! write leaves the old one in use. Only the owner of the folder can write in it; everyone can read, since a certificate is no secret.

use super::document::file_name;
use crate::{anchors::Anchors, fault::Refusal, own_way::judge_way_of_bundles};
use portvakt_base::{clock::Timestamp, private_file, terminal::tame};
use portvakt_trust::bundle::{
    BundleDocument, CURRENT, DOCUMENT, Use, dated_bundles, read_document_of,
};
use rustix::fs::{FlockOperation, flock, syncfs};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

/// What the name of a folder begins with while it is written.
const UNFINISHED: &str = ".unfinished";

/// The most bundles that are made in one second. An import takes longer than a hundredth of one.
const MOST_IN_A_SECOND: u8 = 99;

/// The folder of bundles, held by one import.
#[derive(Debug)]
pub struct BundleFolder {
    path: PathBuf,
    /// Locked while this lives.
    _lock: File,
}

impl BundleFolder {
    /// Opens the folder for an import; creates it where it is missing.
    ///
    /// # Errors
    /// It cannot be made, it is a bundle itself, others may write in it or in a folder on the way to it, or another import holds it.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        let refuse = |error| refuse(path, error);
        if path.join(DOCUMENT).exists() {
            return Err(Refusal::new(format_args!(
                "{}: it is a bundle, and an import there would know no list before it; name the folder of all bundles",
                path.display()
            )));
        }
        make_missing(path).map_err(refuse)?;
        judge_way_of_bundles(path, "write anchors")?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o644)
            .open(path.join(".lock"))
            .map_err(refuse)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Refusal::new(format_args!(
                "{}: another import runs; wait for its end",
                path.display()
            ))
        })?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The bundle in use, if there is one.
    ///
    /// # Errors
    /// Its document cannot be read, or the link leads to nothing or to no bundle. The reason says what to do.
    pub fn current(&self) -> Result<Option<BundleDocument>, Refusal> {
        let current = self.path.join(CURRENT);
        if private_file::is_dangling(&current) {
            return Err(self.dangling(&current));
        }
        match fs::symlink_metadata(&current) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            _ => read(&current)
                .map(Some)
                .map_err(|fault| self.unreadable(&current, &fault)),
        }
    }

    /// The bundles from the newest on, as [`newest`] finds them.
    ///
    /// # Errors
    /// The folder, or one of these bundles, cannot be read. The reason says what to do.
    pub fn newest(&self, now: Timestamp) -> Result<Vec<BundleDocument>, Vec<Refusal>> {
        let Newest { documents, damaged } =
            newest(&self.path, now).map_err(|refusal| vec![refusal])?;
        match damaged.is_empty() {
            true => Ok(documents),
            false => Err(damaged),
        }
    }

    /// Why nothing is imported where the link to the bundle in use leads to nothing, and what to do.
    fn dangling(&self, current: &Path) -> Refusal {
        let target = fs::read_link(current).unwrap_or_default();
        Refusal::new(format_args!(
            "{}: it leads to {}, which is not there, so that no bundle is in use and none can be compared with; {}",
            current.display(),
            target.display(),
            self.advice()
        ))
    }

    /// Why nothing is imported where the bundle in use is damaged or is none, and what to do: another import would be refused as well.
    fn unreadable(&self, current: &Path, fault: &Refusal) -> Refusal {
        Refusal::new(format_args!(
            "{fault}; so {} leads to no bundle that can be compared with; {}",
            current.display(),
            self.advice()
        ))
    }

    /// What to do with a link to the bundle in use that leads to none.
    fn advice(&self) -> String {
        let mut all = dated(&self.path).unwrap_or_default().into_iter();
        let newest = all.rfind(|folder| read(folder).is_ok());
        match newest.as_deref().and_then(Path::file_name) {
            Some(name) => format!(
                "let it lead to a bundle that is there, such as {}, or remove it: then the next import is compared with no anchors, and by the issues of lists alone",
                name.to_string_lossy()
            ),
            None => "remove it: no bundle is left in the folder to compare with, and the import is a first one".to_owned(),
        }
    }

    /// Writes a bundle and puts it in use. Its folder is returned.
    ///
    /// # Errors
    /// It cannot be written; the one before stays in use.
    pub fn write(&self, bundle: &BundleDocument, anchors: &Anchors) -> Result<PathBuf, Refusal> {
        let folder = self.hold(bundle, anchors)?;
        let put = || -> io::Result<()> {
            let link = self.path.join(format!("{UNFINISHED}-{CURRENT}"));
            symlink(folder.file_name().unwrap_or_default(), &link)?;
            fs::rename(&link, self.path.join(CURRENT))?;
            File::open(&self.path)?.sync_all()
        };
        put().map_err(|error| refuse(&folder, error))?;
        Ok(folder)
    }

    /// Writes a bundle beside the one in use, which stays in use. Its folder is returned.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn hold(&self, bundle: &BundleDocument, anchors: &Anchors) -> Result<PathBuf, Refusal> {
        self.remove_unfinished()
            .map_err(|error| refuse(&self.path, error))?;
        let name = self.free_name(bundle)?;
        let folder = self.path.join(&name);
        let unfinished = self.path.join(format!("{UNFINISHED}-{name}"));
        write_folder(&unfinished, bundle, anchors).inspect_err(|_| {
            let _ = fs::remove_dir_all(&unfinished);
        })?;
        let put = fs::rename(&unfinished, &folder);
        let put = put.and_then(|()| File::open(&self.path)?.sync_all());
        put.map_err(|error| refuse(&folder, error))?;
        Ok(folder)
    }

    /// The name of a new bundle: the time at which it was made, with a number from `-02` on where others were made in the same second. Names
    /// sort by time.
    fn free_name(&self, bundle: &BundleDocument) -> Result<String, Refusal> {
        let time = dated_name(bundle.made);
        let numbered = (2..=MOST_IN_A_SECOND).map(|number| format!("{time}-{number:02}"));
        let mut names = std::iter::once(time.clone()).chain(numbered);
        let free = names.find(|name| fs::symlink_metadata(self.path.join(name)).is_err());
        free.ok_or_else(|| {
            let text = format!("{MOST_IN_A_SECOND} bundles of this second exist; import again");
            let error = io::Error::new(ErrorKind::AlreadyExists, text);
            refuse(&self.path.join(&time), error)
        })
    }

    /// Removes what an import left that was killed.
    fn remove_unfinished(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with(UNFINISHED) {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

/// The name of a bundle that was made at this time.
fn dated_name(made: Timestamp) -> String {
    made.to_string().replace(':', "")
}

/// The dated bundles of a folder, the oldest first, also those that are damaged.
///
/// # Errors
/// The folder cannot be read.
pub fn dated(folder: &Path) -> Result<Vec<PathBuf>, Refusal> {
    dated_bundles(folder).map_err(|error| refuse(folder, error))
}

/// Reads the document of a bundle.
///
/// # Errors
/// It cannot be read, or is of another format.
pub fn read(folder: &Path) -> Result<BundleDocument, Refusal> {
    read_document_of(folder).map_err(Refusal::new)
}

/// The newest bundles of a folder.
#[derive(Debug, Default)]
pub struct Newest {
    /// Those that can be read, the newest first.
    pub documents: Vec<BundleDocument>,
    /// Why others cannot be read, and what to do: each may have the last issue of a list.
    pub damaged: Vec<Refusal>,
}

/// The bundles, in use or not, from the newest on to the first that can be read and is not named ahead of the clock. That one knows the issue of
/// each list that any bundle before it had.
///
/// # Errors
/// The folder cannot be read.
pub fn newest(folder: &Path, now: Timestamp) -> Result<Newest, Refusal> {
    let latest = format!("{}-{MOST_IN_A_SECOND}", dated_name(now));
    let mut newest = Newest::default();
    for bundle in dated(folder)?.into_iter().rev() {
        let name = bundle.file_name().unwrap_or_default().to_string_lossy();
        match read(&bundle) {
            Ok(document) => newest.documents.push(document),
            Err(fault) => {
                newest.damaged.push(Refusal::new(format_args!(
                    "{fault}; no import knows which issues of the lists this bundle had, so that an older list could come back: put {name} back from a copy, or, without one, move it out of {} and compare the sequence numbers of the next import with those of the lists' operators",
                    folder.display()
                )));
                continue;
            }
        }
        if *name <= *latest {
            break;
        }
    }
    Ok(newest)
}

fn refuse(path: &Path, error: io::Error) -> Refusal {
    Refusal::new(format_args!("{}: {error}", path.display()))
}

fn write_folder(path: &Path, bundle: &BundleDocument, anchors: &Anchors) -> Result<(), Refusal> {
    let refuse = |error| refuse(path, error);
    make_folder(path).map_err(refuse)?;
    for of in Use::ALL {
        make_folder(&path.join(of.folder())).map_err(refuse)?;
    }
    for (_, anchor) in anchors.all() {
        let mut text = String::new();
        for service in &anchor.services {
            // Text before a certificate is a comment in PEM; a name cannot end its line.
            let line = format!(
                "{}: {}: {}, granted since {}\n",
                service.territory,
                tame(&service.provider),
                tame(&service.service),
                service.since
            );
            text.push_str(&line.replace("-----", "- - -"));
        }
        text.push_str(&anchor.certificate.pem());
        let uses = [
            (anchor.uses.seals, Use::Seals),
            (anchor.uses.websites, Use::Websites),
        ];
        for (_, of) in uses.iter().filter(|(serves, _)| *serves) {
            let file = path.join(of.folder()).join(file_name(anchor));
            write_file(&file, text.as_bytes()).map_err(refuse)?;
        }
    }
    let yaml = serde_yaml::to_string(bundle).map_err(|error| {
        let path = path.display();
        Refusal::new(format_args!(
            "{path}: {DOCUMENT} cannot be written as YAML: {error}"
        ))
    })?;
    let text = format!("{HEADER}{yaml}");
    write_file(&path.join(DOCUMENT), text.as_bytes()).map_err(refuse)?;
    // One for all: hundreds of files, each synchronised alone, take seconds.
    let folder = File::open(path).map_err(refuse)?;
    syncfs(&folder).map_err(|error| refuse(error.into()))
}

/// The beginning of `bundle.yaml`.
const HEADER: &str = "# Trust anchors from the EU's trusted lists, and where each comes from. Written by `portvakt-lists import`; do not edit it.\n";

/// Makes a folder, and those above it that are missing. One that exists keeps its mode.
fn make_missing(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    make_missing(private_file::folder_of(path))?;
    match make_folder(path) {
        // Another import has made it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(path)?;
    // Whatever the umask is: the gateway runs as another user.
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    file.write_all(bytes)
}
