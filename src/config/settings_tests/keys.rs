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

/// What is found without a token. tests/it/systems has the others.
#[test]
fn a_key_in_an_hsm_is_written_whole() {
    let site = Site::new();
    site.write("config/pin", "1234\n");
    site.set_mode("config/pin", 0o644);
    let table = [
        ("{}", "listener.key.pkcs11: missing key"),
        (
            "{pkcs11: {module: m.so, token: t, label: l}}",
            "listener.key.pkcs11.pin: missing key; set pin to ${NAME}",
        ),
        (
            "{pkcs11: {module: m.so, token: t, label: l, pin: '${HOME}', pin_file: pin}}",
            "pin and pin_file exclude each other",
        ),
        (
            "{pkcs11: {module: m.so, token: t, label: l, pin: '1234'}}",
            "no secret stands in the configuration",
        ),
        (
            "{pkcs11: {module: m.so, token: t, label: l, pin_file: pin}}",
            "set it to 0600",
        ),
        (
            "{pkcs11: {module: m.so, token: t, label: l, pin: '${HOME}', sessions: 65}}",
            "a whole number from 1 to 64",
        ),
        (
            "{pkcs11: {module: m.so, token: t, label: l, pin: '${HOME}', timeout: 11s}}",
            "from 100ms to 10s",
        ),
        (
            "{pkcs11: {module: m.so, token: t, label: l, pin: '${HOME}'}}",
            "m.so cannot be loaded as a PKCS#11 module",
        ),
        (
            "{pkcs11: {module: ../certs/server.pem, token: t, label: l, pin: '${HOME}', slot: 1}}",
            "listener.key.pkcs11.slot: unknown key",
        ),
    ];
    for (key, expected) in table {
        let text = LEAST.replace("key: ../certs/server.key", &format!("key: {key}"));
        let faults = site.read(&text).unwrap_err();
        let found = faults.iter().any(|fault| fault.contains(expected));
        assert!(found, "{key}: {faults:?}");
        let shown = faults.concat();
        assert!(!shown.contains("1234"), "{faults:?}");
    }
}

/// A try of a PIN that nobody meant would cost one of the few that a token allows.
#[test]
fn what_nobody_means_as_a_pin_is_not_tried() {
    let site = Site::new();
    let key = "{pkcs11: {module: m.so, token: t, label: l, pin_file: pin}}";
    let text = LEAST.replace("key: ../certs/server.key", &format!("key: {key}"));
    let refused =
        "listener.key.pkcs11.pin_file: the PIN is empty, not UTF-8, or has a control character";
    for (pin, expected) in [
        ("", "the file is empty"),
        ("\n", refused),
        ("1234\n\n", refused),
        ("1234\0", refused),
        ("\u{feff}1234\n", refused),
        ("12\t34", refused),
        ("12 34\r\n", "m.so cannot be loaded"),
    ] {
        site.write("config/pin", pin);
        site.set_mode("config/pin", 0o600);
        let faults = site.read(&text).unwrap_err();
        let found = faults.iter().any(|fault| fault.contains(expected));
        assert!(found, "{pin:?}: {faults:?}");
    }
}

#[test]
fn some_keys_are_never_in_an_hsm() {
    let site = Site::new();
    let hsm = "{pkcs11: {module: m.so, token: t, label: l, pin: '${HOME}'}}";
    for (section, expected) in [
        (
            format!("assertion: {{key: {hsm}}}"),
            "assertion.key: a key in an HSM (pkcs11) cannot sign assertions",
        ),
        (
            format!("control: {{certificate: ../certs/server.pem, key: {hsm}}}"),
            "control.key: a key in an HSM (pkcs11) is not used here; name a file",
        ),
    ] {
        let faults = site.read(&format!("{LEAST}{section}\n")).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(expected), "{faults:?}");
    }
}

/// The size of an RSA key is judged alike in a file and in an HSM, whose token is not asked.
#[test]
fn small_rsa_keys_are_refused_in_files_and_in_an_hsm() {
    let site = Site::new();
    let small = PKey::from_rsa(openssl::rsa::Rsa::generate(1024).unwrap()).unwrap();
    let (pem, key) = certificate_of(&small, "small");
    site.write("certs/small.pem", std::str::from_utf8(&pem).unwrap());
    site.write("certs/small.key", std::str::from_utf8(&key).unwrap());
    site.set_mode("certs/small.key", 0o600);
    let hsm = "{pkcs11: {module: m.so, token: t, label: l, pin: '${HOME}'}}";
    for key in ["../certs/small.key", hsm] {
        let text = LEAST
            .replace("key: ../certs/server.key", &format!("key: {key}"))
            .replace(
                "certificate: ../certs/server.pem",
                "certificate: ../certs/small.pem",
            );
        let faults = site.read(&text).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        let expected = "an RSA key of 1024 bits; TLS needs at least 2048";
        assert!(faults[0].contains(expected), "{faults:?}");
    }
}
