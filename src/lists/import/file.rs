//! Files of lists and of certificates, read within bounds.

use super::fault::Fault;
use crate::{
    certificate::Certificate,
    fault::Refusal,
    own_way::judge_way,
    tree::{Document, MAX_BYTES},
};
use portvakt_base::private_file;
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// The most files of one folder: the lists of the member states, pivots, and what lies beside them.
const MAX_FILES: usize = 1000;

/// A file, parsed but not verified.
#[derive(Debug)]
pub struct ListFile {
    /// Where it is.
    pub path: PathBuf,
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// Its tree.
    pub document: Document,
}

impl ListFile {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// It cannot be read, is too long, or is refused by the parser.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        let bytes = read(path)?;
        let sha256 = Sha256::digest(&bytes).into();
        let document = Document::parse(bytes).map_err(|refusal| Fault::of(path, refusal))?;
        Ok(Self {
            path: path.to_owned(),
            sha256,
            document,
        })
    }

    /// The name of the file, without its folder.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }
}

/// The name of a file, without its folder.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The bytes of a regular file, at most [`MAX_BYTES`].
fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    private_file::open(path)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| {
            Fault::of(
                path,
                Refusal::new(format_args!("it cannot be read: {error}")),
            )
        })?;
    match bytes.len() > MAX_BYTES {
        true => Err(Fault::of(path, Refusal::new("it is longer than 16 MiB"))),
        false => Ok(bytes),
    }
}

/// The files of lists in a folder, by name: those whose name ends with .xml or .xtsl, and others that begin as XML does.
///
/// # Errors
/// The folder or a file in it cannot be read, or there are too many files.
pub fn lists_in(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut lists = Vec::new();
    for path in files_in(folder)? {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        if extension == "xml" || extension == "xtsl" || begins_as_xml(&path)? {
            lists.push(path);
        }
    }
    Ok(lists)
}

/// The certificates of those who may sign the list of lists: whoever writes one of these files decides whom every gateway trusts.
///
/// # Errors
/// Those of [`certificates`], or others than root and the own user may write a file, its folder or one on the way to it.
pub fn pins(paths: &[PathBuf]) -> Result<Vec<Certificate>, Fault> {
    for path in paths {
        let mut all = vec![path.clone()];
        if path.is_dir() {
            all.extend(files_in(path)?);
        }
        for one in all.iter().filter(|one| one.exists()) {
            let judged = judge_way(one, "say who signs the list of lists");
            judged.map_err(Fault::Whole)?;
        }
    }
    certificates(paths)
}

/// Certificates, each once: files in PEM or DER, and folders of them.
///
/// # Errors
/// One cannot be read, or a file has no certificate.
pub fn certificates(paths: &[PathBuf]) -> Result<Vec<Certificate>, Fault> {
    let mut all: Vec<Certificate> = Vec::new();
    for path in paths {
        let files = match path.is_dir() {
            true => files_in(path)?,
            false => vec![path.clone()],
        };
        if files.is_empty() {
            let refusal = Refusal::new("the folder holds no certificate");
            return Err(Fault::of(path, refusal));
        }
        for file in files {
            let bytes = read(&file)?;
            let found = match bytes.first() {
                // DER of a certificate is a SEQUENCE.
                Some(0x30) => Certificate::from_der(bytes).map(|one| vec![one]),
                _ => Certificate::from_pem(&bytes),
            };
            let found = found.map_err(|refusal| Fault::of(&file, refusal))?;
            for certificate in found {
                // One that is there twice is one.
                if !all.contains(&certificate) {
                    all.push(certificate);
                }
            }
        }
    }
    Ok(all)
}

/// The visible regular files of a folder, by name.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let unreadable = |error| {
        Fault::of(
            folder,
            Refusal::new(format_args!("no folder that can be read: {error}")),
        )
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if name_of(&path).starts_with('.') || !path.is_file() {
            continue;
        }
        if files.len() >= MAX_FILES {
            return Err(Fault::of(
                folder,
                Refusal::new("it holds over 1000 files; expected a folder of lists"),
            ));
        }
        files.push(path);
    }
    files.sort();
    Ok(files)
}

/// Whether the first character is a `<`, after white space and a byte order mark.
fn begins_as_xml(path: &Path) -> Result<bool, Fault> {
    const BEGINNING: u64 = 64;
    let mut bytes = Vec::new();
    private_file::open(path)
        .and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes))
        .map_err(|error| {
            Fault::of(
                path,
                Refusal::new(format_args!("it cannot be read: {error}")),
            )
        })?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    Ok(bytes.trim_ascii_start().starts_with(b"<"))
}
