//! The gateway's own keys: signing keys, and the hash key of the state.

use super::*;
use crate::hex;

#[test]
fn signing_keys_exist_and_fit_their_certificates() {
    let site = Site::new();
    site.write("config/open.key", "x");
    site.set_mode("config/open.key", 0o644);
    let table = [
        (
            "assertion: {previous: a}",
            "assertion.previous: it has no effect without key",
        ),
        ("assertion: {key: a, previous: b}", "b: No such file"),
        ("assertion: {key: open.key}", "set it to 0600"),
        (
            "assertion: {key: a, audience: 'a b'}",
            "visible ASCII characters",
        ),
        (
            "response_signing: {key: ../certs/server.key}",
            "response_signing.certificate: missing key",
        ),
        (
            "response_signing: {certificate: ../certs/server.pem, key: ../certs/server.key}",
            "this is no RSA key (SIG-5)",
        ),
        ("response_signing: {body_limit: 65KiB}", "body_limit"),
    ];
    for (section, expected) in table {
        let faults = site.read(&format!("{LEAST}{section}\n")).unwrap_err();
        assert_eq!(faults.len(), 1, "{section}: {faults:?}");
        assert!(faults[0].contains(expected), "{section}: {faults:?}");
    }
}

#[test]
fn the_state_and_its_key_are_two_files() {
    let text = format!("{LEAST}state: {{file: a, hash_key: a, request_ids_in_memory: 999}}\n");
    assert_eq!(
        Site::new().read(&text).unwrap_err(),
        [
            "gateway.yaml:6:28: state.hash_key: a is also state.file; each needs a file of its own",
            "gateway.yaml:6:54: state.request_ids_in_memory: found 999; expected a whole number from 1000 to 100000000"
        ]
    );
}

/// A log that is watched would be reloaded for each line, and the record of a reload would cause the next one.
#[test]
fn what_the_gateway_writes_is_not_watched() {
    let text = format!(
        "{LEAST}log: {{access_file: a.log, events_file: e.log}}\naudit: {{write: on, folder: audited}}\n\
         state: {{file: s.db, hash_key: k}}\n"
    );
    let settings = Site::new().read(&text).unwrap();
    let named = settings.reloadable.files.named;
    for name in ["a.log", "e.log", "audited", "s.db", "k"] {
        assert!(named.iter().all(|path| !path.ends_with(name)), "{named:?}");
    }
    assert!(named.iter().any(|path| path.ends_with("server.pem")));
}

#[test]
fn no_key_is_shown() {
    let site = Site::new();
    let settings = site.read(LEAST).unwrap();
    let shown = format!("{settings:?}");
    let pem = std::fs::read_to_string(site.path().join("certs/server.key")).unwrap();
    let der = PKey::private_key_from_pem(pem.as_bytes()).unwrap();
    let secret = der.ec_key().unwrap().private_key().to_vec();
    let as_list = format!("{secret:?}");
    assert!(!shown.contains(as_list.trim_matches(['[', ']'])));
    assert!(!shown.to_lowercase().contains(&hex::encode(&secret)));
    assert!(pem.lines().all(|line| !shown.contains(line)));
}
