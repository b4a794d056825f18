//! A reload applies a changed configuration completely or not at all, without a restart: CRT-8, CRT-12.

// Bundles of trust anchors.
mod bundle;
// Calls of the control listener.
mod control;
// Ends of certificates.
mod ends;
// Rotation of keys.
mod keys;
// From a trusted list to a refusal.
mod lists;

use crate::harness::{
    Call, Connection, Crl, Gate, Protocol, Source, Tls, Tpp, Wire, World, accepted, ended,
    eventually, let_pass,
    pki::{self, LeafSpec},
    refused, world, write_private,
};
use portvakt::clock::{Clock, Timestamp};
use serde_json::json;
use std::{
    fs,
    io::Write,
    net::TcpStream,
    process::Command,
    sync::{
        LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use time::OffsetDateTime;

/// A PKI that no gate trusts at first.
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

/// Requests a reload that succeeds; returns the keys that need a restart.
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

fn reloads(gate: &Gate, result: &str) -> f64 {
    gate.metric_at_rest("portvakt_reloads_total", &[&format!("\"{result}\"")])
}

//= CRT-8 accepted
//= CRT-12 accepted
//= CRT-12 refused
#[test]
fn anchors_are_replaced_and_verdicts_go_with_them() {
    let gate = Gate::builder().with_a_file().start();
    // One connection, which caches the presented certificate.
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
    // A cached refusal is dropped like a cached acceptance.
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
    let since = gate.metric_at_rest("portvakt_configuration_timestamp_seconds", &[]);
    assert!(since > 1e9);
    let good = gate.yaml().to_owned();
    // Two faults, and a valid new anchor: the gateway applies none of them.
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
    // The fault may be in a file that the configuration names.
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
    // A configuration that was not read from a file cannot be reloaded.
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
    let ends = |of: &str| gate.metric_at_rest("portvakt_certificate_end_timestamp_seconds", &[of]);
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

/// A certificate that is not valid does not replace one that is. One in use that ends does not prevent another change.
//= CRT-8 refused
#[test]
fn an_expired_certificate_is_not_taken_into_use() {
    let gate = Gate::builder().with_a_file().start();
    let day = |day: i64| OffsetDateTime::now_utc() + time::Duration::days(day);
    for [from, to] in [[-2, -1], [1, 2]] {
        let key = pki::Key::RsaPem(world().tpp_key.clone());
        let invalid = world().tls_ca.issue_server(&key, day(from), day(to));
        let invalid = invalid.unwrap();
        fs::write(gate.folder().join("server.pem"), &invalid.pem).unwrap();
        fs::write(gate.folder().join("server.key"), &invalid.key_pem).unwrap();
        let answer = gate.tell("/reload", &json!({}));
        assert_eq!(answer.status, 422);
        let text = answer.json().to_string();
        assert!(
            text.contains("a new certificate of the listener is valid from"),
            "{text}"
        );
        accepted(&gate, &Call::accounts());
    }
    let clock = Clock::standing(Clock::System.now());
    let gate = Gate::builder().with_a_file().clock(&clock).start();
    clock.set(Timestamp::from_unix(4_200_000_000));
    configure(&gate, &format!("{}\nbody_limit: 1KiB\n", gate.yaml()));
    reload(&gate);
}

/// The token in the link of a call that needs SCA.
fn needs_sca(gate: &Gate) -> String {
    let answer = gate.send(&Call::accounts(), Protocol::Http1);
    assert_eq!(answer.status, 401);
    let href = answer.json()["_links"]["scaRedirect"]["href"].clone();
    let (_, token) = href.as_str().unwrap().split_once("request=").unwrap();
    token.to_owned()
}

/// Sends a request with a bearer token to the control listener.
fn ask(gate: &Gate, request: &str, token: &str) -> (u16, serde_json::Value) {
    let mut wire = Wire::new(TcpStream::connect(gate.control_address()).unwrap());
    write!(
        wire.reader.stream,
        "{request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let answer = wire.answer(request.split(' ').next().unwrap()).unwrap();
    let body = serde_json::from_slice(&answer.body).unwrap_or_default();
    (answer.status, body)
}

/// Authentication at the control listener.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn the_control_listener_goes_by_the_configuration_in_use() {
    let gate = Gate::builder().with_a_file().start();
    let file = gate.folder().join("control.token");
    let (first, second) = ("1".repeat(32), "2".repeat(32));
    let keep = |token: &str| write_private(&file, token);
    let with = |line: &str| {
        gate.yaml()
            .replace("control:\n", &format!("control:\n  {line}\n"))
    };
    let may = |token: &str| ask(&gate, "GET /metrics", token).0 == 200;
    assert!(may(""));
    keep(&first);
    configure(&gate, &with("token_file: control.token"));
    assert_eq!(reload(&gate), json!([]));
    assert!(!may("") && may(&first) && !may(&second));
    keep(&second);
    assert_eq!(ask(&gate, "POST /reload", &first).0, 200);
    assert!(!may(&first) && may(&second));
    assert_eq!(ask(&gate, "POST /reload", &first).0, 401);
    // The new address would need no token, but the listener is still at the old one.
    let elsewhere = gate.control_address().to_string();
    let elsewhere = gate.yaml().replace(&elsewhere, "127.0.0.1:1");
    configure(&gate, &elsewhere);
    let (status, body) = ask(&gate, "POST /reload", &second);
    assert_eq!(
        (status, &body["needsRestart"]),
        (200, &json!(["control.address"]))
    );
    assert!(!may("") && may(&second));
    configure(&gate, gate.yaml());
    assert_eq!(ask(&gate, "POST /reload", &second).0, 200);
    assert!(may(""));
    let shake = || Connection::shake(gate.control_address(), world(), Tls::default());
    assert!(shake().is_err());
    configure(&gate, &with("certificate: server.pem\n  key: server.key"));
    assert_eq!(reload(&gate), json!([]));
    assert!(shake().is_ok());
}

//= CRT-8 accepted
#[test]
fn the_description_is_that_of_the_catalogue_in_use() {
    let gate = Gate::builder()
        .with_a_file()
        .line("operations: operations.yaml")
        .file(
            "operations.yaml",
            "operations:\n  - {name: account-list, path: /v1/accounts}\n",
        )
        .start();
    let described = || {
        let description = gate.control("/openapi.json").json();
        let authority = &description["servers"][0]["variables"]["authority"]["default"];
        assert_eq!(authority, &gate.address().to_string());
        description["paths"]["/v1/elsewhere"].is_object()
    };
    assert!(!described());
    fs::write(
        gate.folder().join("operations.yaml"),
        "operations:\n  - {name: account-list, path: /v1/elsewhere}\n",
    )
    .unwrap();
    let other = gate.address().to_string();
    configure(&gate, &gate.yaml().replacen(&other, "127.0.0.1:1", 1));
    assert_eq!(reload(&gate), json!(["listener.address"]));
    assert!(described());
}

/// The expiry metrics: anchors, the gateway's own certificate, those of TPPs, lists.
//= CRT-8 accepted
#[test]
fn what_will_end_is_shown() {
    let now = Clock::System.now();
    let list = |key: &str| Source::serving(Crl::at(now).sign(&world().issuing, key));
    let source = list(&world().issuing_key);
    let gate = Gate::builder()
        .with_a_file()
        .file("anchors/root.pem", world().issuing.pem())
        .listener("client_anchors: anchors")
        .line("revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1]}")
        .start();
    for set in ["listener", "anchor", "client_anchor"] {
        let label = format!("of=\"{set}\"");
        let end = gate.metric_at_rest("portvakt_certificate_end_timestamp_seconds", &[&label]);
        assert!(end > 1e9, "{set}");
    }
    let seen = |labels: &[&str]| {
        gate.metric_at_rest("portvakt_tpp_certificate_end_timestamp_seconds", labels)
    };
    assert!(seen(&[]) < 0.1);
    let spec = LeafSpec {
        serial: Some(vec![0x51, 7]),
        crl_urls: vec![source.url()],
        not_after: time::macros::datetime!(2040-01-01 0:00 UTC),
        ..world().leaf()
    };
    let tpp = Tpp::of(world().issuing.issue(&spec).unwrap());
    accepted(&gate, &Call::accounts().by(&tpp));
    let end = seen(&["tpp=\"PSDNO-FSA-123456\"", "serial=\"5107\""]);
    assert!((end - 2_208_988_800.0).abs() < 0.1, "{end}");
    let label = format!("from=\"{}\"", source.url());
    let next = || gate.metric_at_rest("portvakt_crl_next_update_timestamp_seconds", &[&label]);
    let expected = (now.unix() + 7_200) as f64;
    eventually("the list is shown", || (next() - expected).abs() < 0.1);
    // Cached certificates are judged again with the current anchors, and removed together with the old ones.
    reload(&gate);
    assert!((seen(&[]) - end).abs() < 0.1);
    anchor(&gate, &other().issuing.pem());
    reload(&gate);
    assert!(seen(&[]) < 0.1);
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
    eventually("refused", || reloads(&gate, "refused") > 0.5);
    accepted(&gate, &Call::accounts());
    // The files of this gateway are so new that it may have read them twice.
    let before = reloads(&gate, "taken");
    anchor(&gate, &other().root.pem());
    eventually("taken", || {
        gate.send(&Call::accounts(), Protocol::Http1).status == 403
    });
    refuses(&gate);
    // It is in use a moment before it is counted.
    eventually("counted", || reloads(&gate, "taken") > before + 0.5);
    // Unchanged files are not read again, even if the gateway itself writes in their folder.
    let (taken, refused) = (reloads(&gate, "taken"), reloads(&gate, "refused"));
    // Several looks at the folder, and one that finds a change.
    let_pass(Duration::from_millis(500));
    anchor(&gate, "no certificate");
    eventually("the watcher has looked again", || {
        reloads(&gate, "refused") > refused + 0.5
    });
    assert!((reloads(&gate, "taken") - taken).abs() < 0.1);
}

//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn sighup() {
    let (gate, mut program) = Gate::builder().start_program();
    let hang_up = || {
        let id = program.id().to_string();
        Command::new("kill").args(["-HUP", &id]).status().unwrap();
    };
    accepted(&gate, &Call::accounts());
    anchor(&gate, "no certificate");
    hang_up();
    eventually("refused", || reloads(&gate, "refused") > 0.5);
    accepted(&gate, &Call::accounts());
    anchor(&gate, &other().root.pem());
    hang_up();
    eventually("taken", || reloads(&gate, "taken") > 0.5);
    refuses(&gate);
    program.kill().unwrap();
    ended(&mut program);
}

/// No request fails during reloads, of which every fifth is invalid. `systems::restarts` does more of them.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn reloads_under_load() {
    many_reloads(200);
}

/// The pause of a client between two requests: reloads take the processors, not the clients.
const BETWEEN: Duration = Duration::from_millis(5);

pub(crate) fn many_reloads(count: usize) {
    let gate = Gate::builder()
        .with_a_file()
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
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
                    let_pass(BETWEEN);
                }
            });
        }
        // The client threads end even if the test fails.
        let _end = End(&over);
        for index in 0..count {
            let is_bad = index % 5 == 4;
            configure(&gate, if is_bad { &bad } else { gate.yaml() });
            let status = gate.tell("/reload", &json!({})).status;
            assert_eq!(status, if is_bad { 422 } else { 200 });
        }
        eventually("requests", || answered.load(Ordering::Relaxed) > 100);
    });
    println!(
        "{count} reloads, {} requests",
        answered.load(Ordering::Relaxed)
    );
}

pub(crate) struct End<'a>(pub(crate) &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two configurations alternate, and each TPP is admitted by only one of them. A mixture of both would give an answer that
/// neither of them gives.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn no_request_is_judged_by_a_mixture() {
    alternate_configurations(40);
}

pub(crate) fn alternate_configurations(count: usize) {
    let gate = Gate::builder()
        .with_a_file()
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
        .start();
    // Each configuration has its own anchors, and its own additional header that must be signed.
    let use_side = |world: &World, header: &str| {
        anchor(&gate, &world.root.pem());
        let issuing = gate.folder().join("intermediates/issuing.pem");
        fs::write(issuing, world.issuing.pem()).unwrap();
        configure(
            &gate,
            &format!("{}signing: {{require: [{header}]}}\n", gate.yaml()),
        );
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    };
    let call = |world: &World, header: &str| {
        Call::plain()
            .by(&world.both)
            .with("x-one", "1")
            .with("x-two", "2")
            .signing(&["date", "x-request-id", "tpp-redirect-uri", header])
    };
    let sides = [(world(), "x-one"), (other(), "x-two")];
    let calls = sides.map(|(world, header)| call(world, header));
    use_side(sides[0].0, sides[0].1);
    // The answers of a mixture.
    let mixture = gate.send(&call(world(), "x-two"), Protocol::Http1);
    assert_eq!(
        (mixture.status, mixture.reason()),
        (400, "signature-coverage".into())
    );
    let over = AtomicBool::new(false);
    let seen = [(); 4].map(|()| AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (gate, over, seen, calls) = (&gate, &over, &seen, &calls);
            scope.spawn(move || {
                let side = client % 2;
                let mut connection = Connection::open(gate);
                while !over.load(Ordering::Relaxed) {
                    let answer = connection.exchange(&gate.seal(&calls[side])).unwrap();
                    let is_held = answer.status == 200;
                    if !is_held {
                        let told = (answer.status, answer.reason());
                        assert_eq!(told, (403, "certificate-untrusted".into()));
                    }
                    seen[side * 2 + usize::from(is_held)].fetch_add(1, Ordering::Relaxed);
                    let_pass(BETWEEN);
                }
            });
        }
        let _end = End(&over);
        for index in 0..count {
            let (world, header) = sides[(index + 1) % 2];
            use_side(world, header);
        }
        eventually("both answers on both sides", || {
            seen.iter().all(|count| count.load(Ordering::Relaxed) > 0)
        });
    });
    let seen = seen.map(|count| count.load(Ordering::Relaxed));
    println!(
        "{count} reloads: refused and held by one side {:?}, by the other {:?}",
        &seen[..2],
        &seen[2..]
    );
}
