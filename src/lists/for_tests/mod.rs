//! What tests of several modules use: signers and lists that they mint, and the real lists beside the project.

// Lists that tests write and sign.
pub(crate) mod mint;

use crate::Certificate;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The script of a second verifier that accepts minted lists, but no list that was altered by a character before its signature.
pub(crate) const AGREES: &str = "for file; do :; done\n! grep -q 'x<ds:Signature' \"$file\"";

/// A program of this script. A shell writes it: a file that this process holds open for writing, or a child of another test that was just
/// started, cannot be run.
pub(crate) fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", write, "sh", text]).arg(&path);
    assert!(shell.status().unwrap().success(), "{name}");
    path
}

/// The real lists, in a folder beside the project; `None` where there are none.
pub(crate) fn real_lists() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("../../../shared/data/trusted-lists");
    if !folder.join("EU.xml").is_file() {
        println!("skipped: no ../shared/data/trusted-lists beside the project");
        return None;
    }
    Some(folder)
}

/// The certificate that a list's own signature names first: the pin of a list that is known to be good.
pub(crate) fn own_signer(path: &Path) -> Certificate {
    let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    let key_info = text.split("KeyInfo>").nth(1).unwrap();
    let certificate = key_info.split("X509Certificate>").nth(1).unwrap();
    let base64 = certificate.split("</").next().unwrap();
    Certificate::from_base64(base64).unwrap()
}
