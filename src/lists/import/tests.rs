//! Imports: real lists beside a plain scan of their text, altered lists, pivots; the lists that tests mint are in `minted`.

// Lists that are left out.
mod leave_out;
// Lists that tests mint.
mod minted;
// CAs that are not granted.
mod named;
// Real lists, pivots and resets.
mod real;
// A second verifier that objects.
mod second;
// Signers whose certificates are unusual.
mod signer;

use super::{Fault, Imported, Request, import, lists_in};
use crate::Certificate;
use portvakt_base::clock::Timestamp;
use std::{collections::BTreeSet, fs, path::Path};

/// A time in RFC 3339.
fn at(text: &str) -> Timestamp {
    let parsed: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_unix(parsed.as_second().try_into().unwrap())
}

/// Imports the lists of a folder as of a time.
fn import_folder(
    list_of_lists: &Path,
    pins: &[Certificate],
    folder: &Path,
    time: &str,
) -> Result<Imported, Vec<Fault>> {
    let request = Request {
        list_of_lists: list_of_lists.to_owned(),
        pins: pins.to_vec(),
        lists: lists_in(folder).unwrap(),
        leave_out: BTreeSet::new(),
        at: at(time),
        verifiers: crate::second::Verifiers::default(),
    };
    import(&request, &mut |line| println!("{line}"))
}

/// A folder with copies of these files.
fn folder_of(files: &[&Path]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let copy = folder.path().join(file.file_name().unwrap());
        // The original may be readable only.
        fs::write(copy, fs::read(file).unwrap()).unwrap();
    }
    folder
}

/// The only fault of an import, as text.
fn fault(result: Result<Imported, Vec<Fault>>) -> String {
    let faults = result.unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].to_string()
}
