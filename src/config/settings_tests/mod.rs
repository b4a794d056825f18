//! Tests of whole configurations: a folder with a generated PKI, and a file that names its files.

// The whole file: defaults, the example, all faults at once.
mod document;
// Addresses.
mod listener;
// Certificate and key files.
mod files;
// Trust, and the requirements of production.
mod trust;
// The gateway's own keys, and the state's.
mod keys;
// Registers by a mapping.
mod registers;
// SCA.
mod sca;
// A bundle of trust anchors.
mod bundle;
// Settings that a reload does not change.
mod restart;
// Groups of endpoints.
mod upstreams;
// What is weaker than the default.
mod weaker;

use super::settings::Settings;
use openssl::{
    asn1::Asn1Time,
    bn::BigNum,
    ec::{EcGroup, EcKey},
    hash::MessageDigest,
    nid::Nid,
    pkey::{PKey, Private},
    rsa::Rsa,
    x509::{X509, X509Name, extension::BasicConstraints},
};
use std::path::Path;
use tempfile::TempDir;

const GATEWAY: &str = include_str!("../../../config/gateway.yaml");
const OPERATIONS: &str = include_str!("../../../config/operations.yaml");

/// The required keys only.
const LEAST: &str = "\
environment: sandbox
listener: {address: '0.0.0.0:8443', certificate: ../certs/server.pem, key: ../certs/server.key}
upstream: {address: '10.0.0.7:8080'}
trust: {anchors: ../certs/anchors}
sca: {page: 'https://bank.example/sca'}
";

/// A self-signed certificate and its key on P-256, both PEM.
fn certificate(name: &str) -> (Vec<u8>, Vec<u8>) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    certificate_of(
        &PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap(),
        name,
    )
}

/// A self-signed certificate of a CA, PEM.
fn authority(name: &str) -> Vec<u8> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    self_signed(&key, name, true)
}

/// A self-signed certificate of this key, and the key, both PEM.
fn certificate_of(key: &PKey<Private>, name: &str) -> (Vec<u8>, Vec<u8>) {
    let pem = self_signed(key, name, false);
    (pem, key.private_key_to_pem_pkcs8().unwrap())
}

fn self_signed(key: &PKey<Private>, name: &str, is_ca: bool) -> Vec<u8> {
    let mut subject = X509Name::builder().unwrap();
    subject.append_entry_by_nid(Nid::COMMONNAME, name).unwrap();
    let subject = subject.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let serial = BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&serial).unwrap();
    builder.set_subject_name(&subject).unwrap();
    builder.set_issuer_name(&subject).unwrap();
    builder
        .set_not_before(&Asn1Time::from_unix(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::from_unix(4_000_000_000).unwrap())
        .unwrap();
    builder.set_pubkey(key).unwrap();
    if is_ca {
        let of_ca = BasicConstraints::new().critical().ca().build().unwrap();
        builder.append_extension(of_ca).unwrap();
    }
    builder.sign(key, MessageDigest::sha256()).unwrap();
    builder.build().to_pem().unwrap()
}

/// A deployment's folders `config` and `certs`.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        // With `state`, the default folder does not depend on the machine's /var/lib/portvakt.
        for folder in [
            "config",
            "state",
            "certs",
            "certs/anchors",
            "certs/intermediates",
        ] {
            std::fs::create_dir(site.path().join(folder)).unwrap();
        }
        let (server, key) = certificate("gateway");
        site.write("certs/server.pem", &server);
        site.write("certs/server.key", &key);
        site.write("certs/anchors/root.pem", &certificate("root").0);
        site.write("certs/intermediates/issuing.pem", &certificate("issuing").0);
        site.write("config/operations.yaml", OPERATIONS);
        site
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file that only its owner may read.
    fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(file), content).unwrap();
        self.set_mode(file, 0o600);
    }

    /// Writes a certificate and a key for signing answers.
    fn write_rsa(&self) {
        let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let (certificate, key) = certificate_of(&key, "signer");
        self.write("config/rsa.pem", certificate);
        self.write("config/rsa.key", key);
    }

    fn set_mode(&self, file: &str, mode: u32) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.path().join(file), mode).unwrap();
    }

    fn read(&self, text: &str) -> Result<Settings, Vec<String>> {
        let here = format!("{}/config/", self.path().display());
        let file = format!("{here}gateway.yaml");
        Settings::parse(&file, text, Path::new(&here)).map_err(|faults| {
            let faults = faults.to_string().replace(&here, "");
            faults.lines().map(str::to_owned).collect()
        })
    }
}
