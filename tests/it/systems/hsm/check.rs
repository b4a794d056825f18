//! What `portvakt check` finds about keys in an HSM. Each text says what to change, and none repeats a PIN.

use super::{
    server,
    token::{Hsm, PIN, SOFTHSM, WRONG, set_certificate, set_listener_key},
};
use crate::harness::{
    Gate,
    pki::{Issued, Key},
};
use std::{fs, process::Command};

/// A key that `check` refuses: the module, the token, the label, the PIN as YAML, and what is said.
type Case<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// The output of `check` with this key of the listener, and other sections.
fn checked(hsm: &Hsm, issued: &Issued, key: &str, line: &str) -> (bool, String) {
    let gate = Gate::builder().line(line).for_program();
    set_certificate(&gate, issued);
    set_listener_key(&gate, key);
    hsm.check(&gate)
}

fn key((module, token, label, pin, _): Case<'_>) -> String {
    format!("{{pkcs11: {{module: {module}, token: {token}, label: {label}, {pin}}}}}")
}

#[test]
#[ignore = "make test-systems"]
fn faults_of_a_key() {
    const GOOD: &str = "pin: '${HSM_PIN}'";
    let hsm = Hsm::without_server();
    let [issued, other] = [server(&Key::EcP256), server(&Key::EcP256)];
    let rsa = server(&Key::Rsa2048);
    hsm.import("server", &issued.key_pem, 1);
    hsm.import("other", &other.key_pem, 2);
    hsm.import("rsa", &rsa.key_pem, 3);
    hsm.import("twice", &issued.key_pem, 4);
    hsm.import("twice", &other.key_pem, 5);
    let (works, said) = checked(
        &hsm,
        &issued,
        &key((SOFTHSM, "bank", "server", GOOD, "")),
        "",
    );
    assert!(works, "{said}");
    let cases: &[Case<'_>] = &[
        (
            "/nowhere/p11.so",
            "bank",
            "server",
            GOOD,
            "/nowhere/p11.so cannot be loaded as a PKCS#11 module: ",
        ),
        (
            "/bin/true",
            "bank",
            "server",
            GOOD,
            "/bin/true cannot be loaded as a PKCS#11 module: ",
        ),
        (
            SOFTHSM,
            "elsewhere",
            "server",
            GOOD,
            "no token with this label; the module has: bank",
        ),
        (
            SOFTHSM,
            "bank",
            "server",
            "pin: '${WRONG_PIN}'",
            "the token refuses the PIN",
        ),
        (
            SOFTHSM,
            "bank",
            "nobody",
            GOOD,
            "the token has no private key with this label",
        ),
        (
            SOFTHSM,
            "bank",
            "twice",
            GOOD,
            "the token has more than one private key with this label",
        ),
        (
            SOFTHSM,
            "bank",
            "other",
            GOOD,
            "the key is not that of the certificate",
        ),
        (
            SOFTHSM,
            "bank",
            "rsa",
            GOOD,
            "the key is not that of the certificate",
        ),
        (
            SOFTHSM,
            "bank",
            "server",
            "pin: '${HSM_PIN}', pin_file: x",
            "pin and pin_file exclude each other; leave one of them out",
        ),
        (SOFTHSM, "bank", "server", "sessions: 8", "missing key"),
    ];
    for case in cases {
        let (works, said) = checked(&hsm, &issued, &key(*case), "");
        assert!(!works && said.contains(case.4), "{case:?}: {said}");
        assert!(said.contains("listener.key.pkcs11"), "{case:?}: {said}");
        assert!(!said.contains(PIN) && !said.contains(WRONG), "{said}");
    }
    hsm.add_token("bank");
    let (works, said) = checked(
        &hsm,
        &issued,
        &key((SOFTHSM, "bank", "server", GOOD, "")),
        "",
    );
    assert!(
        !works && said.contains("more than one token has this label"),
        "{said}"
    );
}

/// Neither the key of assertions nor that of the control listener may be in an HSM, and answers need an RSA key.
#[test]
#[ignore = "make test-systems"]
fn keys_that_stay_files() {
    let hsm = Hsm::without_server();
    let issued = server(&Key::EcP256);
    hsm.import("server", &issued.key_pem, 1);
    let good = key((SOFTHSM, "bank", "server", "pin: '${HSM_PIN}'", ""));
    for (line, expected) in [
        (
            format!("assertion: {{key: {good}}}"),
            "a key in an HSM (pkcs11) cannot sign assertions",
        ),
        (
            format!("response_signing: {{certificate: server.pem, key: {good}}}"),
            "answers are signed with rsa-sha256",
        ),
    ] {
        let (works, said) = checked(&hsm, &issued, "server.key", &line);
        assert!(!works && said.contains(expected), "{said}");
    }
}

/// A key on another curve, and a token that lacks a mechanism.
#[test]
#[ignore = "make test-systems"]
fn kinds_and_mechanisms() {
    let hsm = Hsm::without_server();
    let gate = Gate::builder().for_program();
    let output = Command::new("openssl")
        .args("req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:secp384r1 -subj /CN=localhost -days 9".split(' '))
        .args(["-addext", "subjectAltName=DNS:localhost", "-keyout", "p384.key", "-out", "server.pem"])
        .current_dir(gate.folder())
        .output();
    assert!(output.unwrap().status.success());
    let p384 = fs::read_to_string(gate.folder().join("p384.key")).unwrap();
    hsm.import("p384", &p384, 1);
    set_listener_key(
        &gate,
        &key((SOFTHSM, "bank", "p384", "pin: '${HSM_PIN}'", "")),
    );
    let (works, said) = hsm.check(&gate);
    assert!(
        !works && said.contains("the key is neither RSA nor ECDSA P-256"),
        "{said}"
    );
    let rsa = server(&Key::Rsa2048);
    hsm.import("rsa", &rsa.key_pem, 2);
    hsm.support_only("CKM_RSA_PKCS");
    let key = key((SOFTHSM, "bank", "rsa", "pin: '${HSM_PIN}'", ""));
    let (works, said) = checked(&hsm, &rsa, &key, "");
    assert!(
        !works && said.contains("the token does not support"),
        "{said}"
    );
}
