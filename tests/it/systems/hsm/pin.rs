//! A token may lock itself after a few wrong PINs: pkcs11-spy counts the logins.

use super::{
    server,
    token::{Hsm, PIN, WRONG, module, set_certificate, set_listener_key},
};
use crate::harness::{Gate, eventually, pki::Key, world, write_private};
use serde_json::json;
use std::fs;

/// A key with its PIN in a file.
fn key(module: &str, label: &str) -> String {
    format!("{{pkcs11: {{module: {module}, token: bank, label: {label}, pin_file: hsm.pin}}}}")
}

/// A gate with two keys of the token, and the PIN in the file `hsm.pin`.
fn gate(hsm: &Hsm, module: &str, pin: &str) -> Gate {
    let (issued, bank) = (server(&Key::EcP256), &world().both.issued);
    hsm.import("server", &issued.key_pem, 1);
    hsm.import("seal", &bank.key_pem, 2);
    let gate = Gate::builder()
        .line(&format!(
            "response_signing: {{certificate: bank.pem, key: {}}}",
            key(module, "seal")
        ))
        .file("bank.pem", bank.pem.clone())
        .private_file("hsm.pin", pin)
        .for_program();
    set_certificate(&gate, &issued);
    set_listener_key(&gate, &key(module, "server"));
    gate
}

/// How often a function was called.
fn count(hsm: &Hsm, function: &str) -> usize {
    hsm.calls().matches(&format!(": {function}\n")).count()
}

/// Two keys with the same wrong PIN cost one login.
#[test]
#[ignore = "make test-systems"]
fn a_wrong_pin_is_tried_once() {
    let hsm = Hsm::without_server();
    let gate = gate(&hsm, &module("pkcs11-spy.so"), WRONG);
    let output = hsm.check(&gate);
    assert!(!output.0, "{}", output.1);
    assert!(
        output.1.contains("the token refuses the PIN"),
        "{}",
        output.1
    );
    assert!(!output.1.contains(WRONG), "{}", output.1);
    assert_eq!(count(&hsm, "C_Login"), 1, "{}", output.1);
}

/// The PIN changes while the server is away: the gateway tries the old one once, however often it probes, until a reload.
#[test]
#[ignore = "make test-systems"]
fn a_pin_that_has_changed_is_tried_once_until_a_reload() {
    let mut hsm = Hsm::without_server();
    hsm.serve_by(&module("pkcs11-spy.so"));
    let gate = gate(&hsm, &module("p11-kit-client.so"), PIN);
    let _program = hsm.run(&gate);
    hsm.kill();
    let not_well = || gate.control("/readyz").json()["notWell"].to_string();
    eventually("the HSM is unavailable", || {
        not_well().contains("the HSM is unavailable: ")
    });
    let before = count(&hsm, "C_Login");
    hsm.change_pin(WRONG);
    hsm.serve_by(&module("pkcs11-spy.so"));
    eventually("the PIN is refused", || {
        let causes = not_well();
        let is_refused = causes.contains("the token refuses the PIN");
        is_refused.then_some(()).ok_or(causes)
    });
    let probes = count(&hsm, "C_OpenSession");
    eventually("five more probes", || {
        count(&hsm, "C_OpenSession") >= probes + 5
    });
    assert_eq!(count(&hsm, "C_Login"), before + 1);
    write_private(&gate.folder().join("hsm.pin"), WRONG);
    let reloaded = gate.tell("/reload", &json!({}));
    assert_eq!(reloaded.status, 200, "{:?}", reloaded.json());
    eventually("it is ready", || gate.control("/readyz").status == 200);
    assert_eq!(hsm.calls().matches("CKR_PIN_INCORRECT").count(), 1);
    for log in ["gateway.log", "gateway.events"] {
        let text = fs::read_to_string(gate.folder().join(log)).unwrap();
        assert!(!text.contains(PIN) && !text.contains(WRONG), "{log}");
    }
}
