//! What tests of several modules use: signers and lists that they mint, and the real lists beside the project.

// Lists that tests write and sign.
pub(crate) mod mint;

use crate::Certificate;
use std::path::{Path, PathBuf};

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
