//! Bundles of trust anchors as `portvakt-lists import` writes them.

use portvakt::clock::Timestamp;
use sha2::{Digest, Sha256};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A bundle that is to be written.
pub(crate) struct Bundle {
    /// When it was imported.
    pub(crate) made: Timestamp,
    /// When the list of Norway is to be replaced.
    pub(crate) next_update: Timestamp,
    /// The anchors of QSealCs, PEM.
    pub(crate) seals: Vec<String>,
    /// The anchors of QWACs, PEM.
    pub(crate) websites: Vec<String>,
}

impl Bundle {
    /// A bundle that was imported now, with a list that is good for half a year.
    pub(crate) fn of(seals: &[String], websites: &[String]) -> Self {
        let now = portvakt::clock::Clock::System.now();
        Self {
            made: now,
            next_update: Timestamp::from_unix(now.unix() + 180 * 86_400),
            seals: seals.to_vec(),
            websites: websites.to_vec(),
        }
    }

    /// Writes the bundle as `NAME` in a folder of bundles, and leads `current` to it in one step.
    pub(crate) fn put(&self, bundles: &Path, name: &str) -> PathBuf {
        let folder = bundles.join(name);
        for path in [
            bundles,
            &folder,
            &folder.join("seals"),
            &folder.join("websites"),
        ] {
            fs::create_dir_all(path).unwrap();
            set_mode(path, 0o755);
        }
        let (made, next) = (self.made, self.next_update);
        let zeros = "0".repeat(64);
        let list = |territory: &str| {
            format!(
                "  territory: '{territory}'\n  operator: of a test\n  version: 6\n  sequence: 1\n  issued: {made}\n  next_update: {next}\n  \
                 sha256: '{zeros}'\n  signer: CN=test\n  signer_sha256: '{zeros}'\n"
            )
        };
        let norway = list("NO").replacen("  territory", "- territory", 1);
        let mut yaml = format!(
            "format: 2\nend: true\nnamed: []\nmade: {made}\nas_of: {made}\nlist_of_lists:\n{}lists:\n{norway}anchors:\n",
            list("EU")
        );
        for (of, anchors) in [("seals", &self.seals), ("websites", &self.websites)] {
            for pem in anchors {
                let der = openssl::x509::X509::from_pem(pem.as_bytes()).unwrap();
                let der = der.to_der().unwrap();
                let (_, parsed) = X509Certificate::from_der(&der).unwrap();
                let end = parsed.validity().not_after.timestamp();
                let end = Timestamp::from_unix(end.try_into().unwrap());
                let subject = parsed.subject();
                let digest = Sha256::digest(&der);
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                let file = format!("NO-{of}-{digest:.16}.pem");
                write(
                    &folder.join(of).join(&file),
                    &format!("NO: a provider\n{pem}"),
                );
                yaml.push_str(&format!(
                    "- sha256: {digest}\n  subject: '{subject}'\n  not_after: {end}\n  file: {file}\n  for:\n  - {of}\n  services:\n  \
                     - territory: 'NO'\n    provider: a provider\n    service: a service\n    granted_since: {made}\n    for:\n    - {of}\n"
                ));
            }
        }
        write(&folder.join("bundle.yaml"), &yaml);
        lead(bundles, name);
        folder
    }
}

/// Leads `current` to a bundle in one step, as docs/trust.md does.
pub(crate) fn lead(bundles: &Path, name: &str) {
    let next = bundles.join("next");
    symlink(name, &next).unwrap();
    fs::rename(next, bundles.join("current")).unwrap();
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    set_mode(path, 0o644);
}

/// Sets a mode, whatever the umask is.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
