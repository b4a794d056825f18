//! A changed configuration is taken into use without a restart, whole or not at all: CRT-8, CRT-12.

use crate::harness::{Call, Connection, Gate, Protocol, Tls, World, accepted, refused, world};
use portvakt::clock::Stopwatch;
use serde_json::json;
use std::{
    fs,
    process::Command,
    sync::{
        LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// A PKI that no gate trusts from the start.
fn other() -> &'static World {
    static OTHER: LazyLock<World> = LazyLock::new(World::mint);
    &OTHER
}

fn anchor(gate: &Gate, pem: &str) {
    fs::write(gate.folder().join("anchors/root.pem"), pem).unwrap();
}

fn configure(gate: &Gate, yaml: &str) {
    fs::write(gate.folder().join("gateway.yaml"), yaml).unwrap();
}

/// Asks for a reload that succeeds; the keys that need a restart.
fn reload(gate: &Gate) -> serde_json::Value {
    let answer = gate.tell("/reload", &json!({}));
    assert_eq!(answer.status, 200, "{:?}", answer.json());
    assert_eq!(answer.json()["reloaded"], true);
    answer.json()["needsRestart"].clone()
}

fn refuses(gate: &Gate) {
    let call = Call::accounts();
    refused(gate, &call, 403, "FORBIDDEN", "certificate-untrusted");
}

/// Waits for as long as a machine under load may take.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Stopwatch::start();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn reloads(gate: &Gate, result: &str) -> f64 {
    gate.metric("portvakt_reloads_total", &[&format!("\"{result}\"")])
}

//= CRT-8 accepted
//= CRT-12 accepted
//= CRT-12 refused
#[test]
fn anchors_are_replaced_and_verdicts_go_with_them() {
    let gate = Gate::builder().with_a_file().start();
    // One connection, which remembers the certificate that it showed.
    let mut connection = Connection::open(&gate);
    let mut status = || {
        let sealed = gate.seal(&Call::accounts());
        connection.exchange(&sealed).unwrap().status
    };
    assert_eq!(status(), 200);
    anchor(&gate, &other().root.pem());
    assert_eq!(status(), 200, "nobody asked yet");
    assert_eq!(reload(&gate), json!([]));
    assert_eq!(status(), 403);
    refuses(&gate);
    // A refusal is dropped like an acceptance.
    anchor(&gate, &world().root.pem());
    reload(&gate);
    assert_eq!(status(), 200);
    accepted(&gate, &Call::accounts());
    assert!((reloads(&gate, "taken") - 2.0).abs() < 0.1);
}

//= CRT-8 refused
#[test]
fn a_bad_configuration_changes_nothing() {
    let gate = Gate::builder().with_a_file().start();
    let since = gate.metric("portvakt_configuration_timestamp_seconds", &[]);
    assert!(since > 1e9);
    let good = gate.yaml().to_owned();
    // Two faults, and beside them an anchor that would be good: nothing of it is taken.
    anchor(&gate, &other().root.pem());
    configure(&gate, &format!("{good}colour: red\nbody_limit: 1GiB\n"));
    let answer = gate.tell("/reload", &json!({}));
    assert_eq!(answer.status, 422);
    let body = answer.json();
    assert_eq!(body["reason"], "configuration-invalid");
    let faults = body["faults"].to_string();
    assert_eq!(body["faults"].as_array().unwrap().len(), 2, "{faults}");
    assert!(faults.contains("colour: unknown key") && faults.contains("body_limit"));
    accepted(&gate, &Call::accounts());
    // A file that is named may be the bad one.
    configure(&gate, &good);
    anchor(&gate, "no certificate");
    assert_eq!(gate.tell("/reload", &json!({})).status, 422);
    fs::remove_file(gate.folder().join("sca.keys")).unwrap();
    anchor(&gate, &world().root.pem());
    assert_eq!(gate.tell("/reload", &json!({})).status, 422);
    configure(
        &gate,
        &good.replace("environment: sandbox", "environment: production"),
    );
    assert_eq!(gate.tell("/reload", &json!({})).status, 422);
    accepted(&gate, &Call::accounts());
    assert!((reloads(&gate, "refused") - 4.0).abs() < 0.1);
    assert!(reloads(&gate, "taken") < 0.1);
    // One that was not read from a file cannot be read anew.
    assert_eq!(Gate::start().tell("/reload", &json!({})).status, 409);
}

//= CRT-8 accepted
#[test]
fn what_needs_a_restart_is_said_and_left() {
    let gate = Gate::builder().with_a_file().start();
    let yaml = gate.yaml().replace("threads: 1", "threads: 2");
    configure(&gate, &format!("{yaml}system: another\n"));
    assert_eq!(reload(&gate), json!(["system", "listener.threads"]));
    accepted(&gate, &Call::accounts());
    configure(&gate, gate.yaml());
    assert_eq!(reload(&gate), json!([]));
}

/// The gateway's own certificate, and the keys of SCA links.
//= CRT-8 accepted
#[test]
fn keys_are_replaced() {
    let gate = Gate::builder().with_a_file().strangers().start();
    let ends = |of: &str| gate.metric("portvakt_certificate_end_timestamp_seconds", &[of]);
    assert!(ends("\"listener\"") > 1e9 && ends("\"anchor\"") > 1e9);
    // A certificate that clients of the old one do not trust.
    let server = &other().server;
    fs::write(gate.folder().join("server.pem"), &server.pem).unwrap();
    assert_eq!(
        gate.tell("/reload", &json!({})).status,
        422,
        "key and certificate differ"
    );
    fs::write(gate.folder().join("server.key"), &server.key_pem).unwrap();
    let link = needs_sca(&gate);
    let keys = Gate::builder().with_a_file().start();
    let keys = fs::read(keys.folder().join("sca.keys")).unwrap();
    fs::write(gate.folder().join("sca.keys"), keys).unwrap();
    let read = |link: &str| gate.tell("/sca/read", &json!({ "request": link }));
    assert_eq!(read(&link).status, 200);
    reload(&gate);
    let shake = |world: &World| Connection::shake(gate.address(), world, Tls::default());
    assert!(shake(world()).is_err());
    assert!(shake(other()).is_ok());
    assert_eq!(read(&link).status, 400);
}

/// The token of the link that a call gets which needs SCA.
fn needs_sca(gate: &Gate) -> String {
    let answer = gate.send(&Call::accounts(), Protocol::Http1);
    assert_eq!(answer.status, 401);
    let href = answer.json()["_links"]["scaRedirect"]["href"].clone();
    let (_, token) = href.as_str().unwrap().split_once("request=").unwrap();
    token.to_owned()
}

//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn files_that_change() {
    let gate = Gate::builder()
        .with_a_file()
        .line("reload: {watch: 100ms}")
        .start();
    accepted(&gate, &Call::accounts());
    anchor(&gate, "no certificate");
    until("refused", || reloads(&gate, "refused") > 0.5);
    accepted(&gate, &Call::accounts());
    anchor(&gate, &other().root.pem());
    until("taken", || reloads(&gate, "taken") > 0.5);
    refuses(&gate);
    // What did not change is not read again, whatever the gateway itself writes.
    let taken = reloads(&gate, "taken");
    std::thread::sleep(Duration::from_millis(500));
    assert!((reloads(&gate, "taken") - taken).abs() < 0.1);
}

//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn sighup() {
    let (gate, mut program) = Gate::builder().line("reload: {watch: off}").start_program();
    let hang_up = || {
        let id = program.id().to_string();
        Command::new("kill").args(["-HUP", &id]).status().unwrap();
    };
    accepted(&gate, &Call::accounts());
    anchor(&gate, "no certificate");
    hang_up();
    until("refused", || reloads(&gate, "refused") > 0.5);
    accepted(&gate, &Call::accounts());
    anchor(&gate, &other().root.pem());
    hang_up();
    until("taken", || reloads(&gate, "taken") > 0.5);
    refuses(&gate);
    program.kill().unwrap();
    program.wait().unwrap();
}

/// No request fails while the configuration changes under it, and every fifth change is a bad one. PORTVAKT_RELOADS says how many.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn reloads_under_load() {
    let count = std::env::var("PORTVAKT_RELOADS").map_or(200, |count| count.parse().unwrap());
    let gate = Gate::builder()
        .with_a_file()
        .line("rates: {per_address: off, per_tpp: off}")
        .start();
    accepted(&gate, &Call::accounts());
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let bad = format!("{}colour: red\n", gate.yaml());
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (gate, over, answered) = (&gate, &over, &answered);
            scope.spawn(move || {
                let mut connection = Connection::open(gate);
                while !over.load(Ordering::Relaxed) {
                    let sealed = gate.seal(&Call::accounts());
                    let status = if client == 3 {
                        gate.send_sealed(&sealed, Protocol::Http2).unwrap().status
                    } else {
                        connection.exchange(&sealed).unwrap().status
                    };
                    assert_eq!(status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // The clients end, whatever becomes of this.
        let _end = End(&over);
        for index in 0..count {
            let is_bad = index % 5 == 4;
            configure(&gate, if is_bad { &bad } else { gate.yaml() });
            let status = gate.tell("/reload", &json!({})).status;
            assert_eq!(status, if is_bad { 422 } else { 200 });
        }
        until("requests", || answered.load(Ordering::Relaxed) > 100);
    });
    println!(
        "{count} reloads, {} requests",
        answered.load(Ordering::Relaxed)
    );
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
