//! A module that returns wrong signatures and errors, and one that does not return: the caller gets nothing that does not verify, no other
//! caller's answer, and never waits without end.

use super::{
    RATES, is_signed, public, server, shown,
    token::{Hsm, PIN, SOFTHSM, WRONG, set_certificate, set_listener_key},
};
use crate::harness::{
    Answer, Call, Connection, Gate, Program, Sealed, eventually, pki::Key, render, world,
};
use openssl::{
    pkey::{PKey, Public},
    ssl::SslVersion,
};
use serde_json::json;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

/// A key in this module, with a PIN as YAML.
fn key_in(module: &str, label: &str, pin: &str) -> String {
    format!("{{pkcs11: {{module: {module}, token: bank, label: {label}, {pin}, timeout: 1s}}}}")
}

const GOOD: &str = "pin: '${HSM_PIN}'";

/// A gate that runs with both keys in the faulty module.
struct Stage {
    hsm: Hsm,
    gate: Gate,
    seal: PKey<Public>,
    _program: Program,
}

fn gate(hsm: &Hsm, module: &str, pins: [&str; 2]) -> Gate {
    let (issued, bank) = (server(&Key::EcP256), &world().both.issued);
    hsm.import("server", &issued.key_pem, 1);
    hsm.import("seal", &bank.key_pem, 2);
    let seal = key_in(module, "seal", pins[1]);
    let gate = Gate::builder()
        .threads(2)
        .line(RATES)
        .line(&format!(
            "response_signing: {{certificate: bank.pem, key: {seal}}}"
        ))
        .file("bank.pem", bank.pem.clone())
        .for_program();
    set_certificate(&gate, &issued);
    set_listener_key(&gate, &key_in(module, "server", pins[0]));
    gate
}

impl Stage {
    fn start() -> Self {
        let hsm = Hsm::without_server();
        let gate = gate(&hsm, &hsm.faulty(), [GOOD; 2]);
        let program = hsm.run(&gate);
        Self {
            seal: public(&world().both.issued),
            hsm,
            gate,
            _program: program,
        }
    }

    fn not_well(&self) -> String {
        self.gate.control("/readyz").json()["notWell"].to_string()
    }

    fn shake(&self) -> Result<Vec<u8>, String> {
        shown(self.gate.address(), SslVersion::TLS1_3, "ECDSA+SHA256")
    }

    /// Ends the faults, and waits until both keys can be used.
    fn heal(&self) {
        self.hsm.set_faults("");
        eventually("it is ready", || {
            (self.gate.control("/readyz").status == 200)
                .then_some(())
                .ok_or_else(|| self.not_well())
        });
    }

    /// The lines of the event log with this message, about this key.
    fn events(&self, message: &str, label: &str) -> usize {
        let events = fs::read_to_string(self.gate.folder().join("gateway.events")).unwrap();
        let lines = events.lines();
        let about = format!("\"key\":\"{label}\"");
        lines
            .filter(|line| line.contains(message) && line.contains(&about))
            .count()
    }
}

/// A signature that does not verify by the certificate is sent to nobody, and the key is unavailable until the probe has verified one.
//= SIG-12 refused
//= TLS-1 refused
#[test]
#[ignore = "make test-systems"]
fn a_wrong_signature_is_not_sent() {
    let stage = Stage::start();
    let mut kept = Connection::open(&stage.gate);
    let answer = kept.exchange(&stage.gate.seal(&Call::plain())).unwrap();
    assert!(is_signed(&answer, &stage.seal));
    stage.hsm.set_faults("C_Sign flip\n");
    // OpenSSL names a signature that does not verify; a handshake that ends has none.
    let fault = stage.shake().unwrap_err();
    assert!(!fault.to_lowercase().contains("signature"), "{fault}");
    eventually("the key of the listener is unavailable", || {
        let causes = stage.not_well();
        causes
            .contains("does not verify by the certificate")
            .then_some(())
            .ok_or(causes)
    });
    let answer = kept.exchange(&stage.gate.seal(&Call::plain())).unwrap();
    assert_eq!(answer.status, 503, "{}", answer.reason());
    assert!(answer.header("signature").is_none());
    for purpose in ["listener", "answers"] {
        let labels = [
            format!("purpose=\"{purpose}\""),
            "cause=\"refused\"".to_owned(),
        ];
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        let refused = stage.gate.metric_now("portvakt_hsm_errors_total", &labels);
        assert!(refused >= 1.0, "{purpose}");
    }
    stage.heal();
    let answer = kept.exchange(&stage.gate.seal(&Call::plain())).unwrap();
    assert!(is_signed(&answer, &stage.seal), "{}", answer.reason());
    stage.shake().unwrap();
}

/// Each of two requests on a connection gets its own answer where it cannot be signed, and a payment that the core has gets none.
//= SIG-12 refused
#[test]
#[ignore = "make test-systems"]
fn an_answer_that_cannot_be_signed_leaves_no_gap() {
    let stage = Stage::start();
    let open = || Connection::open(&stage.gate);
    let (mut kept, mut pipelined, mut paying) = (open(), open(), open());
    let unsigned = |answer: &Answer, sealed: &Sealed| {
        assert_eq!(answer.status, 503, "{}", answer.reason());
        assert!(answer.header("signature").is_none());
        let mut headers = sealed.request.headers.iter();
        let id = headers.find(|(name, _)| name.eq_ignore_ascii_case("x-request-id"));
        assert_eq!(answer.header("x-request-id"), id.map(|(_, id)| id.as_str()));
    };
    for fault in ["C_Sign flip\n", "C_Sign error\n"] {
        stage.hsm.set_faults(fault);
        for call in [Call::plain(), Call::accounts(), Call::payment().json("{")] {
            let sealed = stage.gate.seal(&call);
            unsigned(&kept.exchange(&sealed).unwrap(), &sealed);
        }
        if fault == "C_Sign flip\n" {
            stage.heal();
            let answer = kept.exchange(&stage.gate.seal(&Call::plain())).unwrap();
            assert!(is_signed(&answer, &stage.seal), "{}", answer.reason());
        }
    }
    let sealed = [Call::plain(), Call::accounts()].map(|call| stage.gate.seal(&call));
    let bytes = sealed.each_ref().map(render).concat();
    pipelined.send(&bytes).unwrap();
    unsigned(&pipelined.answer("GET").unwrap(), &sealed[0]);
    paying
        .send(&render(&stage.gate.seal(&Call::payment())))
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&paying.rest()), "", "the end");
    stage.heal();
    let answer = kept.exchange(&stage.gate.seal(&Call::plain())).unwrap();
    assert!(is_signed(&answer, &stage.seal), "{}", answer.reason());
}

/// A key is lost by time-outs: one line, and one when it is back.
#[test]
#[ignore = "make test-systems"]
fn a_key_that_does_not_answer_is_logged_once() {
    let stage = Stage::start();
    stage.hsm.set_faults("C_Sign hang\n");
    assert!(stage.shake().is_err());
    let (lost, back) = (
        "a key in an HSM is unavailable",
        "a key in an HSM is available again",
    );
    eventually("the key is unavailable", || {
        stage.events(lost, "server") == 1
    });
    assert!(
        stage
            .not_well()
            .contains("does not answer within the timeout")
    );
    assert!(stage.shake().is_err());
    stage.heal();
    eventually("the key is available", || stage.events(back, "server") == 1);
    stage.shake().unwrap();
    assert_eq!(stage.events(lost, "server"), 1);
}

/// Loading a module that does not return ends: `check` says so, a reload is refused, and the next one works.
//= CRT-8 refused
#[test]
#[ignore = "make test-systems"]
fn a_module_that_is_never_initialised() {
    let hsm = Hsm::without_server();
    let module = hsm.faulty();
    hsm.set_faults("C_Initialize hang\n");
    let (works, said) = hsm.check(&gate(&hsm, &module, [GOOD; 2]));
    assert!(
        !works && said.contains("faulty.so does not answer"),
        "{said}"
    );
    let gate = Gate::builder().for_program();
    let _program = hsm.run(&gate);
    let path = gate.folder().join("gateway.yaml");
    let yaml = fs::read_to_string(&path).unwrap();
    set_listener_key(&gate, &key_in(&module, "server", GOOD));
    for _ in 0..2 {
        let refused = gate.tell("/reload", &json!({}));
        assert_ne!(refused.status, 200);
        let said = refused.json().to_string();
        assert!(said.contains("does not answer"), "{said}");
    }
    fs::write(&path, yaml).unwrap();
    let reloaded = gate.tell("/reload", &json!({}));
    assert_eq!(reloaded.status, 200, "{:?}", reloaded.json());
}

/// A login that fails without a word about the PIN is not tried again, by either key, nor by another path to the module.
#[test]
#[ignore = "make test-systems"]
fn a_login_that_may_have_counted_is_made_once() {
    let hsm = Hsm::without_server();
    let module = hsm.faulty();
    let gate = gate(&hsm, &module, [GOOD; 2]);
    let link = hsm.path("link.so");
    symlink(&module, &link).unwrap();
    let path = gate.folder().join("gateway.yaml");
    let yaml = fs::read_to_string(&path).unwrap();
    let yaml = yaml.replacen(&module, &link.display().to_string(), 1);
    fs::write(&path, &yaml).unwrap();
    hsm.set_faults("C_Login error\n");
    let (works, said) = hsm.check(&gate);
    assert!(
        !works && said.contains("whether it counted the PIN"),
        "{said}"
    );
    assert_eq!(hsm.logins(), 1, "{said}");
    fs::write(path, yaml.replace("${HSM_PIN}", "${WRONG_PIN}")).unwrap();
    hsm.set_faults("");
    let (works, said) = hsm.check(&gate);
    assert!(
        !works && said.contains("the token refuses the PIN"),
        "{said}"
    );
    assert_eq!(hsm.logins(), 2, "{said}");
}

/// A token has one login: two PINs for it are a fault, before any is tried.
#[test]
#[ignore = "make test-systems"]
fn two_pins_for_one_token() {
    let hsm = Hsm::without_server();
    let (works, said) = hsm.check(&gate(&hsm, &hsm.faulty(), [GOOD, "pin: '${WRONG_PIN}'"]));
    assert!(
        !works && said.contains("another key of this token has another PIN"),
        "{said}"
    );
    assert!(!said.contains(PIN) && !said.contains(WRONG), "{said}");
    assert_eq!(hsm.logins(), 1, "{said}");
}

/// A reload does not try a refused PIN again, whatever else it changes; a new PIN is tried.
#[test]
#[ignore = "make test-systems"]
fn a_reload_tries_a_refused_pin_once() {
    let hsm = Hsm::without_server();
    let module = hsm.faulty();
    let issued = server(&Key::EcP256);
    hsm.import("server", &issued.key_pem, 1);
    let gate = Gate::builder().for_program();
    let _program = hsm.run(&gate);
    set_certificate(&gate, &issued);
    for times in 1..=5 {
        let pin = "pin: '${WRONG_PIN}'";
        set_listener_key(
            &gate,
            &format!("{}\n  # {times}", key_in(&module, "server", pin)),
        );
        assert_ne!(gate.tell("/reload", &json!({})).status, 200);
        assert_eq!(hsm.logins(), 1);
    }
    set_listener_key(&gate, &key_in(&module, "server", GOOD));
    let reloaded = gate.tell("/reload", &json!({}));
    assert_eq!(reloaded.status, 200, "{:?}", reloaded.json());
    assert_eq!(hsm.logins(), 2);
}

/// `check` ends with its own status: the threads of the module are done before the process is.
#[test]
#[ignore = "make test-systems"]
fn check_ends_in_order() {
    let hsm = Hsm::without_server();
    let gate = gate(&hsm, SOFTHSM, [GOOD; 2]);
    for time in 0..40 {
        let (works, said) = hsm.check(&gate);
        assert!(works, "{time}: {said}");
    }
}

/// A module that other users can change is not loaded.
#[test]
#[ignore = "make test-systems"]
fn a_module_that_others_can_change() {
    let hsm = Hsm::without_server();
    let module = hsm.faulty();
    let gate = gate(&hsm, &module, [GOOD; 2]);
    assert!(hsm.check(&gate).0);
    let logins = hsm.logins();
    fs::set_permissions(&module, Permissions::from_mode(0o757)).unwrap();
    let (works, said) = hsm.check(&gate);
    assert!(!works && said.contains("other users can change"), "{said}");
    assert_eq!(hsm.logins(), logins, "its code did not run");
}
