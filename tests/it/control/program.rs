//! The commands `portvakt sca` and `portvakt psu`.

use super::bank::{OTHER_PSU, OTHER_TPP, PSU, Site, TPP, exchange, free_address, get};
use crate::harness::{Gate, Program};
use portvakt::clock::Stopwatch;
use serde_json::json;
use std::{
    fs,
    net::{TcpListener, TcpStream},
    process::{Command, Output, Stdio},
    time::Duration,
};

/// Runs the program in a site's folder.
fn portvakt(site: &Site, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .args(args)
        .args(["--config", "gateway.yaml"])
        .current_dir(site.path())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn keys_are_rotated_in_two_steps() {
    let site = Site::new();
    site.write("gateway.yaml", Site::yaml(""));
    let rotate = || portvakt(&site, &["sca", "rotate-key"]);
    let none = rotate();
    assert_eq!(none.status.code(), Some(2));
    assert!(
        text(&none.stderr)
            .contains("sca-token.keys does not exist yet: the first start creates it")
    );
    site.settings("")
        .reloadable
        .sca
        .links(
            portvakt::interface::operations::Environment::Sandbox,
            super::bank::NOW,
        )
        .unwrap();
    let read = || fs::read_to_string(site.path().join("sca-token.keys")).unwrap();
    let old = read();
    let first = rotate();
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("step 1 of 2"));
    let both = read();
    let new = both.strip_prefix(&old).unwrap();
    assert!(text(&rotate().stdout).contains("step 2 of 2"));
    assert_eq!(read(), format!("{new}{old}"));
    // The output contains no key.
    for line in both.lines() {
        assert!(!text(&first.stdout).contains(line.split(' ').nth(1).unwrap()));
    }
}

#[test]
fn the_interface_is_described_alike_in_both_places() {
    let site = Site::new();
    site.write("gateway.yaml", Site::yaml(""));
    let (_, address) = free_address();
    let bank = site.start(&address);
    let written = portvakt(&site, &["openapi"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let written: serde_json::Value = serde_json::from_slice(&written.stdout).unwrap();
    assert_eq!(written["openapi"], "3.1.1");
    let served = bank.send(&get("/openapi.json", ""));
    assert_eq!(served.status, 200);
    assert_eq!(served.json(), written);
}

#[test]
fn a_file_of_psus_is_brought_in_beside_a_gateway() {
    let site = Site::new();
    let state = "state: {file: state/portvakt.db, hash_key: state/hash.key}\n";
    site.write("gateway.yaml", Site::yaml("") + state);
    let (_, address) = free_address();
    let bank = site.start(&address);
    let line = |psu: &str, tpp: &str| {
        format!(
            "{{\"tpp\":\"{tpp}\",\"psu_id\":\"{psu}\",\"last_sca\":\"2026-01-01T00:00:00Z\"}}\n"
        )
    };
    let import = |text: String| {
        site.write("psus.ndjson", text);
        portvakt(&site, &["psu", "import", "psus.ndjson"])
    };
    let good = import(line(PSU, TPP));
    assert_eq!(good.status.code(), Some(0), "{}", text(&good.stderr));
    assert!(text(&good.stderr).contains("1 kept, 0 not"));
    let who = json!({ "tpp": TPP, "psu_id": PSU });
    let known = bank.post("/psu/read", &who).json();
    assert_eq!(known["last_sca"], "2026-01-01T00:00:00Z");
    let mixed = import(line(PSU, OTHER_TPP) + "x\n" + &line(OTHER_PSU, TPP));
    assert_eq!(mixed.status.code(), Some(1));
    let said = text(&mixed.stderr);
    assert!(
        said.contains("1 kept, 2 not")
            && said.contains("line 1: psu_id: it belongs to another TPP")
            && said.contains("line 2: it is not a JSON object"),
        "{said}"
    );
    let who = json!({ "tpp": TPP, "psu_id": OTHER_PSU });
    assert_eq!(bank.post("/psu/read", &who).status, 200);
    // An ambiguous line is refused.
    let third = "0192f0c1-5a5b-7def-8000-1234567890ad";
    let doubled = line(PSU, TPP).replace('{', &format!("{{\"psu_id\":\"{third}\","));
    let doubled = import(doubled);
    assert_eq!(doubled.status.code(), Some(1));
    let said = text(&doubled.stderr);
    assert!(
        said.contains("line 1: psu_id: it stands more than once") && !said.contains(third),
        "{said}"
    );
    let who = json!({ "tpp": TPP, "psu_id": third });
    assert_eq!(bank.post("/psu/read", &who).status, 404);
    assert_eq!(
        portvakt(&site, &["psu", "import", "nowhere"]).status.code(),
        Some(2)
    );
}

/// Load balancers send requests as soon as the gateway is ready. The test occupies the public port during the start.
#[test]
fn it_is_ready_when_its_public_listener_accepts() {
    let mut held_back = 0;
    for _ in 0..20 {
        let gate = Gate::builder().for_program();
        let (address, control) = (gate.address(), gate.control_address());
        let program = gate
            .program()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let _program = Program(program.unwrap());
        let starting = Stopwatch::start();
        while TcpStream::connect(control).is_err() {
            assert!(starting.elapsed() < Duration::from_secs(30));
        }
        // The control listener is bound and the public one is not: the gateway tries again.
        let taken = TcpListener::bind(address);
        let ask = |path: &str| exchange(TcpStream::connect(control).unwrap(), &get(path, ""));
        let Ok(taken) = taken else {
            continue;
        };
        held_back += 1;
        for _ in 0..20 {
            assert_eq!(ask("/livez").status, 200);
            let answer = ask("/readyz");
            assert_eq!(answer.status, 503, "{}", answer.json());
            let why = answer.json()["notWell"].to_string();
            assert!(why.contains("does not accept connections yet"), "{why}");
        }
        drop(taken);
        let waiting = Stopwatch::start();
        while ask("/readyz").status != 200 {
            assert!(waiting.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(1));
        }
        TcpStream::connect(address).unwrap();
        if held_back == 2 {
            return;
        }
    }
    panic!("the port was never free while it started");
}
