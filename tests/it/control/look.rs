//! What operators look at: the configuration, the connections, who sends most, and more events for a time.

use crate::harness::{Call, Connection, Gate, Protocol, Reply, accepted, eventually, refused};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{fs, io::Write, net::TcpStream, os::unix::fs::PermissionsExt, process::Command};

fn look(gate: &Gate, path: &str) -> Value {
    let answer = gate.control(path);
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn find<'a>(list: &'a Value, name: &str, value: &str) -> &'a Value {
    let list = list.as_array().unwrap();
    let found = list.iter().find(|entry| entry[name] == value);
    found.unwrap_or_else(|| panic!("no {name} {value} in {list:?}"))
}

#[test]
fn the_configuration_in_use() {
    let gate = Gate::builder().for_program();
    let path = gate.folder().join("gateway.yaml");
    let yaml = format!(
        "{}rates: {{per_tpp: off}}\n",
        gate.yaml().replace("rates:", "#")
    );
    fs::write(&path, &yaml).unwrap();
    let _program = gate.run_silently(&mut gate.program());
    let first = look(&gate, "/config");
    let printed = Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .args(["config", "show", "--config"])
        .arg(&path)
        .output()
        .unwrap();
    let text = first["text"].as_str().unwrap();
    assert_eq!(text, String::from_utf8(printed.stdout).unwrap());
    assert_eq!(first["hash"], portvakt::hex::encode(&Sha256::digest(text)));
    assert_eq!(first["needsRestart"], json!([]));
    let labels = |shown: &Value| {
        ["hash", "files"].map(|label| {
            let member = if label == "hash" { "hash" } else { "filesHash" };
            let hash = &shown[member].as_str().unwrap()[..16];
            format!("{label}=\"{hash}\"")
        })
    };
    let is = |shown: &Value, value: f64| {
        let labels = labels(shown);
        let labels = labels.each_ref().map(String::as_str);
        gate.eventually_metric("portvakt_configuration_info", &labels, value);
    };
    is(&first, 1.0);
    // A key that a reload takes, one that it does not, and a file.
    let changed = yaml
        .replace("per_tpp: off", "per_tpp: 7")
        .replace("watch: 1h", "watch: off");
    fs::write(&path, changed).unwrap();
    let anchors = gate.folder().join("anchors");
    let anchor = fs::read_dir(&anchors).unwrap().next().unwrap().unwrap();
    fs::copy(anchor.path(), anchors.join("again.pem")).unwrap();
    let reloaded = gate.tell("/reload", &json!({}));
    assert_eq!(reloaded.status, 200, "{}", reloaded.json());
    let second = look(&gate, "/config");
    assert!(second["text"].as_str().unwrap().contains("per_tpp: 7"));
    assert_eq!(second["needsRestart"], json!(["reload"]));
    assert_ne!(first["hash"], second["hash"]);
    assert_ne!(first["filesHash"], second["filesHash"]);
    is(&first, 0.0);
    is(&second, 1.0);
}

/// The secrets of a configuration stand in files, and neither their content nor a hash over it is shown: who knows a hash can try tokens.
#[test]
fn no_secret_is_in_the_configuration_or_its_hashes() {
    let gate = Gate::builder().for_program();
    let path = gate.folder().join("gateway.yaml");
    let control = format!("address: {}", gate.control_address());
    let keys = "metrics_token_file: metrics.token";
    let yaml = gate
        .yaml()
        .replace(&control, &format!("{control}\n  {keys}"));
    fs::write(&path, yaml).unwrap();
    let token = gate.folder().join("metrics.token");
    let hashes = [
        "0123456789abcdef0123456789abcdef",
        "fedcba9876543210fedcba9876543210",
    ]
    .map(|secret| {
        fs::write(&token, secret).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let program = gate.run_silently(&mut gate.program());
        let shown = look(&gate, "/config");
        program.stop();
        let text = shown["text"].as_str().unwrap();
        assert!(
            text.contains("metrics.token") && !text.contains(secret),
            "{text}"
        );
        assert!(!text.contains("PRIVATE KEY"), "{text}");
        (shown["hash"].clone(), shown["filesHash"].clone())
    });
    assert_eq!(hashes[0], hashes[1]);
}

//= FWD-8 accepted
#[test]
fn who_sends_most() {
    let gate = Gate::builder()
        .line("  access_file: access.log")
        .for_program();
    let _program = gate.run_silently(&mut gate.program());
    for _ in 0..3 {
        accepted(&gate, &Call::plain().only(Protocol::Http1));
    }
    let unsigned = Call::accounts().altered(|request| request.remove_header("Signature"));
    let unsigned = unsigned.only(Protocol::Http1);
    refused(
        &gate,
        &unsigned,
        400,
        "HTTP_HEADER_REQUIRED",
        "signature-missing",
    );
    let top = eventually("all four are counted", || {
        let top = look(&gate, "/top");
        let networks = &top["networks"];
        let counted = networks[0]["requests"] == 4;
        counted.then_some(top.clone()).ok_or(top)
    });
    let network = find(&top["networks"], "network", "127.0.0.0/24");
    assert_eq!(
        (&network["refused"], &network["atMostTooHighBy"]),
        (&json!(1), &json!(0))
    );
    assert!(network["connections"].as_u64().unwrap() >= 4, "{network}");
    let tpp = find(&top["tpps"], "tpp", &gate.world().both.id().unwrap());
    assert_eq!((&tpp["requests"], &tpp["refused"]), (&json!(3), &json!(0)));
    assert_eq!(
        find(&top["reasons"], "reason", "signature-missing")["requests"],
        1
    );
    let all = top["operations"].as_array().unwrap().iter();
    let all: u64 = all.map(|one| one["requests"].as_u64().unwrap()).sum();
    assert_eq!(all, 4, "{top}");
    // The refused line has the network's key, and an accepted one has no network.
    let log = gate.folder().join("access.log");
    let lines = eventually("four lines", || {
        let text = fs::read_to_string(&log).unwrap();
        (text.lines().count() == 4)
            .then_some(text.clone())
            .ok_or(text)
    });
    for line in lines.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        // The core's address is the operator's own.
        line.as_object_mut().unwrap().remove("endpoint");
        match line["outcome"].as_str().unwrap() {
            "refused" => assert_eq!(line["network"], network["key"]),
            _ => assert_eq!(line["network"], Value::Null),
        }
        assert!(!line.to_string().contains("127.0.0."), "{line}");
    }
}

#[test]
fn the_connections_by_their_state() {
    let gate = Gate::builder()
        .listener("handshake_timeout: 60s\n  head_timeout: 60s")
        .upstream("read_timeout: 300s")
        .start();
    let seen = |of: [u64; 4]| {
        eventually(
            &format!("{of:?}: handshakes, idle, head, under way"),
            || {
                let shown = look(&gate, "/connections");
                let found = ["handshakes", "idle", "headArrives", "underWay"];
                let found = found.map(|state| shown[state].as_u64().unwrap());
                (found == of).then_some(shown.clone()).ok_or(shown)
            },
        )
    };
    seen([0, 0, 0, 0]);
    let silent = TcpStream::connect(gate.address()).unwrap();
    let mut idle = Connection::open(&gate);
    let answer = idle.exchange(&gate.seal(&Call::plain())).unwrap();
    assert_eq!(answer.status, 200);
    let mut head = Connection::open(&gate);
    head.send(b"GET /v1/tpp/contact HTTP/1.1\r\nHo").unwrap();
    seen([1, 1, 1, 0]);
    let (reply, latch) = Reply::json(200, "{}").held();
    gate.upstream().reply(reply);
    let sealed = gate.seal(&Call::plain());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let answer = Connection::open(&gate).exchange(&sealed).unwrap();
            assert_eq!(answer.status, 200);
        });
        latch.arrived(1);
        let shown = seen([1, 1, 1, 1]);
        assert_eq!(shown["open"], 4);
        let oldest = &shown["oldest"][0];
        assert_eq!(
            (&oldest["state"], &oldest["requests"]),
            (&json!("idle"), &json!(1))
        );
        assert_eq!(oldest["tpp"], gate.world().both.id().unwrap());
        assert_eq!(oldest["network"], "127.0.0.0/24");
        assert_eq!(shown["oldest"].as_array().unwrap().len(), 3);
        latch.release();
    });
    drop((silent, idle, head));
    seen([0, 0, 0, 0]);
}

#[test]
fn more_events_for_a_time() {
    let gate = Gate::builder()
        .line("  events_file: events.log")
        .for_program();
    let _program = gate.run_silently(&mut gate.program());
    let events = || fs::read_to_string(gate.folder().join("events.log")).unwrap();
    let count = |text: &str| events().matches(text).count();
    let disturb = || {
        let mut caller = TcpStream::connect(gate.control_address()).unwrap();
        caller.write_all(b"no request at all\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        std::io::Read::read_to_end(&mut caller, &mut answer).unwrap();
    };
    let broken = "a connection to the control listener broke off";
    let restored = "the level of events is that of the configuration again";
    disturb();
    // Another module, which does not write more of this one.
    let elsewhere = json!({ "level": "debug", "module": "portvakt::gateway", "for": "1h" });
    assert_eq!(gate.tell("/log", &elsewhere).status, 200);
    disturb();
    let here = json!({ "level": "debug", "module": "portvakt::control", "for": "1h" });
    let answer = gate.tell("/log", &here).json();
    assert_eq!(
        (&answer["level"], &answer["changed"]),
        (&json!("debug"), &json!(true))
    );
    disturb();
    eventually("the event is written", || count(broken) == 1);
    let answer = gate.tell("/log", &json!({ "level": "configured" })).json();
    assert_eq!(answer, json!({ "level": "configured", "changed": true }));
    let answer = gate.tell("/log", &json!({ "level": "configured" })).json();
    assert_eq!(answer, json!({ "level": "configured", "changed": false }));
    disturb();
    let all = json!({ "level": "debug", "for": "1s" });
    let answer = gate.tell("/log", &all).json();
    assert_eq!(answer["module"], "portvakt");
    eventually("it ends by itself", || count(restored) == 2);
    disturb();
    // The level is the configuration's already.
    let same = gate
        .tell("/log", &json!({ "level": "info", "for": "1h" }))
        .json();
    assert_eq!(same, json!({ "level": "configured", "changed": false }));
    assert_eq!(count(broken), 1);
}

#[test]
fn a_level_has_an_end_and_stays_within_portvakt() {
    let gate = Gate::start();
    for (body, member) in [
        (json!({ "for": "10m" }), "level"),
        (json!({ "level": "debug" }), "for"),
        (json!({ "level": "debug", "for": "61m" }), "for"),
        (json!({ "level": "debug", "for": "0s" }), "for"),
        (json!({ "level": "debug", "for": 600 }), "for"),
        (json!({ "level": "trace", "for": "1m" }), "level"),
        (
            json!({ "level": "debug", "for": "1m", "module": "pingora_core" }),
            "module",
        ),
        (
            json!({ "level": "debug", "for": "1m", "module": "portvaktig" }),
            "module",
        ),
        (
            json!({ "level": "debug", "for": "1m", "module": "" }),
            "module",
        ),
        (json!({ "level": "configured", "for": "1m" }), "for"),
        (
            json!({ "level": "configured", "module": "portvakt" }),
            "module",
        ),
        (
            json!({ "level": "debug", "for": "1m", "modul": "portvakt" }),
            "modul",
        ),
    ] {
        let answer = gate.tell("/log", &body);
        assert_eq!(answer.status, 400, "{body}");
        let faults = answer.json()["faults"].clone();
        assert_eq!(faults.as_array().unwrap().len(), 1, "{body}: {faults}");
        assert_eq!(faults[0]["path"], member, "{body}");
    }
}
