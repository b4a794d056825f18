//! The bundles beside each other in the folder that an import writes to, and those of them that cannot be read (CRT-13).
//!
//! Invariant: the import, `portvakt-lists show` and the gateway's `check` find damaged bundles by this code. A bundle whose document is damaged or
//! missing is found by its name, so that none is passed over.

use super::{
    document::BundleDocument,
    fault::{DOCUMENT, MAX_DOCUMENT_BYTES},
};
use portvakt_base::private_file;
use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// The form of the name of a bundle: the second in which it was made. Each `0` stands for a digit.
const FORM: &[u8] = b"0000-00-00T000000Z";

/// The form of what follows the name of a further bundle of that second.
const FURTHER: &[u8] = b"-00";

/// The bundles in a folder, the oldest first: each folder with a document, and each entry with the name of a bundle, whatever it is.
///
/// # Errors
/// The folder cannot be read.
pub fn dated_bundles(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let has_document = || !path.is_symlink() && path.join(DOCUMENT).is_file();
        if is_bundle_name(&name) || (!name.starts_with('.') && has_document()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the document of a bundle, without a look at who may write it.
///
/// # Errors
/// It cannot be read, is too long, or is no document of this version.
pub fn read_document_of(folder: &Path) -> Result<BundleDocument, String> {
    let path = folder.join(DOCUMENT);
    let shown = path.display();
    if folder.is_symlink() && folder.file_name().is_some_and(is_bundle) {
        return Err(format!(
            "{}: it is a link, and no folder that an import wrote",
            folder.display()
        ));
    }
    let mut bytes = Vec::new();
    let most = MAX_DOCUMENT_BYTES.saturating_add(1);
    private_file::open(&path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|error| format!("{shown}: {error}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length >= most) {
        return Err(format!("{shown} is longer than {MAX_DOCUMENT_BYTES} bytes"));
    }
    BundleDocument::from_bytes(&bytes)
        .map_err(|why| format!("{shown}: {why}; only an import writes it"))
}

/// The bundles that are newer than one, by their names, and cannot be read, and why: the next import is refused for them. None where that one has
/// not the name of a bundle, or its folder cannot be looked into.
pub(super) fn damaged_after(bundle: &Path) -> Vec<String> {
    let all = match (bundle.file_name(), bundle.parent()) {
        (Some(name), Some(folder)) if is_bundle(name) => dated_bundles(folder),
        _ => return Vec::new(),
    };
    let all = all.unwrap_or_default().into_iter();
    let newer = all.filter(|it| it.as_path() > bundle && it.file_name().is_some_and(is_bundle));
    newer.filter_map(|it| read_document_of(&it).err()).collect()
}

fn is_bundle(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(is_bundle_name)
}

/// Whether an import gives a bundle such a name.
fn is_bundle_name(name: &str) -> bool {
    let is_of = |text: &[u8], form: &[u8]| {
        let mut both = text.iter().zip(form);
        let fits = |(byte, form): (&u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        };
        text.len() == form.len() && both.all(fits)
    };
    match name.as_bytes().split_at_checked(FORM.len()) {
        Some((time, further)) => {
            is_of(time, FORM) && (further.is_empty() || is_of(further, FURTHER))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::os::unix::fs::symlink;

    //= CRT-13 refused
    #[test]
    fn no_bundle_is_passed_over() {
        for (name, expected) in [
            ("2026-07-16T080000Z", true),
            ("2026-07-16T080000Z-02", true),
            ("2026-07-16T080000Z-2", false),
            ("2026-07-16T080000Z-ab", false),
            ("2026-07-16T080000z", false),
            ("2026-07-16", false),
            ("current", false),
            (".unfinished-2026-07-16T080000Z", false),
            ("", false),
        ] {
            assert_eq!(is_bundle_name(name), expected, "{name}");
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["2026-07-16T080000Z", "other", "empty", ".hidden"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["other", ".hidden"] {
            fs::write(at(name).join(DOCUMENT), "format: 1\n").unwrap();
        }
        fs::write(at("2026-07-16T080001Z"), "").unwrap();
        symlink("other", at("2026-07-16T080002Z")).unwrap();
        symlink("other", at("current")).unwrap();
        let found = dated_bundles(folder.path()).unwrap();
        let names = found.iter().map(|it| it.file_name().unwrap());
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                "2026-07-16T080000Z",
                "2026-07-16T080001Z",
                "2026-07-16T080002Z",
                "other"
            ]
        );
        let damaged = damaged_after(&at("2026-07-16T080000Z"));
        assert_eq!(damaged.len(), 2, "{damaged:?}");
        assert!(damaged.concat().contains("it is a link"), "{damaged:?}");
        assert!(damaged_after(&at("current")).is_empty());
        let fault = read_document_of(&at("other")).unwrap_err();
        assert!(
            fault.contains("bundle.yaml: line 1: it has the format 1"),
            "{fault}"
        );
    }
}
