//! What a bundle holds: what was imported, and nothing else (CRT-8).

use super::{Site, certificate, only};
use std::os::unix::fs::symlink;

//= CRT-8 refused
#[test]
fn only_what_was_imported_is_loaded() {
    let again = "import again, or lead the link to an older bundle";
    let (other, _) = certificate("other");
    let site = Site::with_bundle();
    site.write("lists/one/seals/mine.pem", &other);
    assert_eq!(
        site.faults(),
        [
            "lists/one/seals/mine.pem is not listed in bundle.yaml: only what was imported is loaded; remove it, or name anchors of your own by trust.anchors"
        ]
    );
    // One that is listed for another use.
    let site = Site::with_bundle();
    let from = site.path().join("lists/one/seals/a.pem");
    site.write("lists/one/websites/a.pem", std::fs::read(from).unwrap());
    assert!(site.faults()[0].contains("websites/a.pem is not listed"));
    let site = Site::with_bundle();
    site.write("lists/one/seals/b.pem", &other);
    assert_eq!(
        site.faults(),
        [format!(
            "lists/one/seals/b.pem is not the certificate that bundle.yaml lists by its SHA-256: {again} (line 10 of bundle.yaml)"
        )]
    );
    let own = std::fs::read(site.path().join("lists/one/seals/a.pem")).unwrap();
    for content in ["", "x"] {
        site.write("lists/one/seals/b.pem", content);
        assert_eq!(
            site.faults(),
            [
                "lists/one/seals/b.pem is not one certificate in PEM; import again (line 10 of bundle.yaml)"
            ]
        );
    }
    let site = Site::with_bundle();
    std::fs::remove_file(site.path().join("lists/one/websites/c.pem")).unwrap();
    assert_eq!(
        site.faults(),
        [format!(
            "lists/one/websites has no file \"c.pem\", which bundle.yaml lists: {again} (line 11 of bundle.yaml)"
        )]
    );
    // A link's target may be anybody's.
    let site = Site::with_bundle();
    std::fs::remove_file(site.path().join("lists/one/seals/a.pem")).unwrap();
    site.write("a.pem", own);
    symlink("../../../a.pem", site.path().join("lists/one/seals/a.pem")).unwrap();
    assert!(site.faults()[0].starts_with("lists/one/seals/a.pem is a link"));
    // Another bundle under the same document: each file is a fault, and not all are told.
    let site = Site::with_bundle();
    let names: Vec<_> = (0..20).map(|number| format!("n{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    site.write_bundle("two", &names, &[]);
    std::fs::copy(
        site.path().join("lists/one/bundle.yaml"),
        site.path().join("lists/two/bundle.yaml"),
    )
    .unwrap();
    std::fs::remove_file(site.path().join("lists/current")).unwrap();
    symlink("two", site.path().join("lists/current")).unwrap();
    let faults = site.faults();
    assert_eq!(faults.len(), 11);
    assert!(
        faults.contains(&"lists/two: 13 more faults".to_owned()),
        "{faults:?}"
    );
}

/// A bundle that was written by hand: nothing would say under which conditions its anchor vouches.
//= CRT-3 refused
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn an_anchor_has_a_service_of_its_type() {
    let site = Site::with_bundle();
    let path = site.path().join("lists/one/bundle.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(site.read(&only()).is_ok());
    let fault = |folder: &str, name: &str, line: u8| {
        format!(
            "lists/one/{folder}/{name}.pem: it is listed for {folder}, and none of its services is for {folder}, so that no list says what it vouches for: import again; in a bundle of your own, write its service for {folder} into bundle.yaml, or name the anchor by trust.anchors instead (line {line} of bundle.yaml)"
        )
    };
    let seals = vec![fault("seals", "a", 9), fault("seals", "b", 10)];
    let websites = vec![fault("websites", "c", 11)];
    for (from, to, expected) in [
        // A service of the other type, and of none.
        ("for: [seals]}]", "for: [websites]}]", &seals),
        ("for: [seals]}]", "for: []}]", &seals),
        ("for: [websites]}]", "for: [seals]}]", &websites),
    ] {
        site.write("lists/one/bundle.yaml", text.replace(from, to));
        assert_eq!(&site.faults(), expected, "{to}");
    }
    let services = text.split("services: [").skip(1);
    let services = services.filter_map(|rest| rest.split_once(']').map(|(first, _)| first));
    let mut without = text.clone();
    for service in services {
        without = without.replace(&format!("services: [{service}]}}]"), "services: []");
    }
    assert_ne!(without, text);
    site.write("lists/one/bundle.yaml", without);
    assert_eq!(site.faults().len(), 3);
    // One service of the type is enough.
    let both = text.replace("for: [websites]}]", "for: [seals, websites]}]");
    site.write("lists/one/bundle.yaml", both);
    assert!(site.read(&only()).is_ok());
}

/// Beside its certificate a file holds no other, no key, and nothing that OpenSSL passes over. A fault repeats nothing of a key.
//= CRT-8 refused
#[test]
fn a_file_of_a_bundle_holds_one_certificate() {
    let site = Site::with_bundle();
    let file = "lists/one/seals/b.pem";
    let read = |name: &str| std::fs::read_to_string(site.path().join(name)).unwrap();
    let (good, other) = (read(file), read("lists/one/seals/a.pem"));
    let key = String::from_utf8(certificate("key").1).unwrap();
    let secret = key.lines().nth(1).unwrap().to_owned();
    let strange = "-----BEGIN Abc+/-----\nAAAA\n-----END Abc+/-----\n";
    let crl = strange.replace("Abc+/", "X509 CRL");
    let expected_one = "expected one CERTIFICATE: import again";
    for (content, expected) in [
        (
            format!("{good}{other}"),
            "holds 2 certificates; expected one: import again".to_owned(),
        ),
        (
            format!("{key}{good}"),
            "holds a private key beside a certificate, which everybody can read: find out whose it is, replace that key, and import again".to_owned(),
        ),
        (
            format!("{good}{crl}"),
            format!("holds PEM of another kind, X509 CRL; {expected_one}"),
        ),
        (
            good.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
            format!("holds PEM of another kind, TRUSTED CERTIFICATE; {expected_one}"),
        ),
        (
            format!("{good}{strange}"),
            format!("holds PEM of an unknown kind; {expected_one}"),
        ),
    ] {
        site.write(file, content);
        let faults = site.faults();
        assert_eq!(faults, [format!("{file} {expected} (line 10 of bundle.yaml)")]);
        assert!(!faults.concat().contains(&secret));
    }
    site.write(file, good);
    assert!(site.read(&only()).is_ok());
}

//= CRT-8 refused
#[test]
fn what_is_no_bundle() {
    let site = Site::with_bundle();
    site.write("lists/one/bundle.yaml", "format: 7\n");
    assert_eq!(
        site.faults(),
        [
            "lists/one/bundle.yaml: line 1: it has the format 7, and this version reads 2; import anew with the portvakt-lists of this version; only portvakt-lists import writes it: import again, or lead the link to an older bundle"
        ]
    );
    let document = site.path().join("lists/one/bundle.yaml");
    std::fs::remove_file(&document).unwrap();
    assert_eq!(
        site.faults(),
        [
            "lists/current has no bundle.yaml, and so is no bundle; name current in the folder that portvakt-lists import writes to, or import again"
        ]
    );
    let whole = only().replace("lists/current", "lists");
    let faults = site.read(&whole).unwrap_err();
    assert!(
        faults.len() == 1
            && faults[0].ends_with("lists/current, which leads to the one in use")
            && faults[0].contains("lists is the folder of all bundles; name "),
        "{faults:?}"
    );
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &document,
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    assert_eq!(
        site.faults(),
        [
            "lists/one/bundle.yaml is no regular file (a folder, a FIFO, a device or a socket); remove it, and import again"
        ]
    );
    std::fs::remove_file(&document).unwrap();
    site.write("lists/one/bundle.yaml", vec![b'#'; 16 * 1024 * 1024 + 1]);
    assert_eq!(
        site.faults(),
        ["lists/one/bundle.yaml is longer than 16777216 bytes"]
    );
    std::fs::remove_dir_all(site.path().join("lists/one/websites")).unwrap();
    assert!(site.faults()[0].starts_with("lists/one/websites is not a readable folder: "));
    std::fs::remove_dir_all(site.path().join("lists/one")).unwrap();
    let fault = &site.faults()[0];
    assert!(
        fault.contains("lists/current is not a readable folder: No such file"),
        "{fault}"
    );
    assert!(
        fault.ends_with("expected the folder that portvakt-lists import writes"),
        "{fault}"
    );
}

//= CRT-8 refused
#[test]
fn a_bundle_that_serves_for_nothing() {
    let site = Site::with_bundle();
    site.write_bundle("none", &[], &[]);
    let none = only().replace("current", "none");
    let faults = site.read(&none).unwrap_err();
    assert!(
        faults.len() == 1 && faults[0].contains("has no anchor of the certificates that may sign"),
        "{faults:?}"
    );
    site.write_bundle("no-sites", &["a"], &[]);
    let seals = only().replace("current", "no-sites");
    assert!(site.read(&seals).is_ok());
    let asked = seals.replace("server.key", "server.key, client_auth: optional");
    let faults = site.read(&asked).unwrap_err();
    assert!(
        faults.len() == 1 && faults[0].contains("has no anchor of web sites"),
        "{faults:?}"
    );
    let own = asked.replace(
        "client_auth",
        "client_anchors: ../certs/anchors, client_auth",
    );
    assert!(site.read(&own).is_ok());
}
