//! Certificates of a server behind the gateway, a core or a database, and a client certificate for it.

use super::{pki, write_private};
use tempfile::TempDir;
use time::macros::datetime;

/// A folder of PEM files: `ca` and `other` are CAs; `server` is valid for localhost, `expired` was, `stranger` is of the other CA, `nameless`
/// is for no name; `client` is for clients. Each but the CAs has a key (`.key`), and both in one file (`.both`).
pub(crate) fn server_pki() -> TempDir {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| write_private(&folder.path().join(name), text);
    let ca = |name: &str| {
        let spec = pki::CaSpec {
            common_name: name.into(),
            key: pki::Key::EcP256,
            ..pki::CaSpec::development_root()
        };
        pki::Ca::root(&spec).unwrap()
    };
    let (own, other) = (ca("The servers' CA"), ca("Another CA"));
    write("ca.pem", &own.pem());
    write("other.pem", &other.pem());
    let [from, past, until] = [
        datetime!(2020-01-01 0:00 UTC),
        datetime!(2021-01-01 0:00 UTC),
        datetime!(2040-01-01 0:00 UTC),
    ];
    let server = |ca: &pki::Ca, until| ca.issue_server(&pki::Key::EcP256, from, until);
    let without_name = |usage| {
        own.issue(&pki::LeafSpec {
            key: pki::Key::EcP256,
            roles: None,
            not_before: from,
            not_after: until,
            extended_key_usages: vec![usage],
            ..pki::LeafSpec::default()
        })
    };
    for (name, issued) in [
        ("server", server(&own, until)),
        ("expired", server(&own, past)),
        ("stranger", server(&other, until)),
        (
            "nameless",
            without_name(rcgen::ExtendedKeyUsagePurpose::ServerAuth),
        ),
        (
            "client",
            without_name(rcgen::ExtendedKeyUsagePurpose::ClientAuth),
        ),
    ] {
        let issued = issued.unwrap();
        write(&format!("{name}.pem"), &issued.pem);
        write(&format!("{name}.key"), &issued.key_pem);
        write(
            &format!("{name}.both"),
            &format!("{}{}", issued.pem, issued.key_pem),
        );
    }
    folder
}
