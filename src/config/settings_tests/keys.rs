//! The gateway's own keys: signing keys, and the hash key of the state.

use super::*;

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
            "gateway.yaml:6:18: state.hash_key: the key needs a file of its own, apart from the state's",
            "gateway.yaml:6:54: state.request_ids_in_memory: found 999; expected a whole number from 1000 to 100000000"
        ]
    );
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
    let as_hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(!shown.to_lowercase().contains(&as_hex));
    assert!(pem.lines().all(|line| !shown.contains(line)));
}
