//! `portvakt-sandbox tail`: a TPP sees its own verified requests with their reasons, and nothing of another TPP.

use super::{Bank, unknown};
use crate::harness::{Call, Gate, Program, Protocol, eventually, free_address, write_private};
use serde_json::Value;
use std::{path::Path, process::Command};
use uuid::Uuid;

/// The program with a command and its options; its output as text, if it succeeded.
fn sandbox(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_portvakt-sandbox"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// A gateway that writes its access log, and its bank, which reads the log.
struct Followed {
    bank: Bank,
    _program: Program,
    key: String,
    gate: Gate,
}

impl Followed {
    fn start() -> Self {
        let address = free_address();
        let gate = Gate::builder()
            .strangers()
            .core(address)
            .line("assertion: {key: state/assertion.key}")
            .for_program();
        let program = gate.run_with_logs(&mut gate.program());
        let path = |name: &str| gate.folder().join(name).display().to_string();
        let (log, key) = (path("gateway.log"), path("bank-tail.key"));
        let options = ["--tail", log.as_str(), "--tail-key", key.as_str()];
        let bank = Bank::start_with(address, gate.control_address(), gate.folder(), &options);
        Self {
            bank,
            _program: program,
            key,
            gate,
        }
    }

    /// Sends a call with a new X-Request-ID, which it gives with the answer's status.
    fn send(&self, call: Call) -> (String, u16) {
        let id = Uuid::new_v4().to_string();
        let call = call.with("X-Request-ID", &id);
        let answer = self.gate.send(&call, Protocol::Http1);
        (id, answer.status)
    }

    /// The access log, when it has a line of each of these requests.
    fn log_with(&self, ids: &[&String]) -> String {
        let path = self.gate.folder().join("gateway.log");
        eventually("the log has every request", || {
            let log = std::fs::read_to_string(&path).unwrap();
            let is_whole = log.ends_with('\n') && ids.iter().all(|id| log.contains(id.as_str()));
            is_whole.then_some(log.clone()).ok_or(log)
        })
    }

    fn token(&self, tpp: &str) -> String {
        let printed = sandbox(&["token", "--tpp", tpp, "--key", &self.key]);
        printed.unwrap().trim().to_owned()
    }

    /// The status of `GET /tail`, and the answer.
    fn tail(&self, token: &str) -> (u16, Value) {
        let header = format!("Authorization: Bearer {token}\r\n");
        let answer = self.bank.ask("GET", "/tail", &header, "");
        (answer.status, answer.json())
    }
}

/// The X-Request-IDs that an answer shows.
fn ids(shown: &Value) -> Vec<&str> {
    let requests = shown["requests"].as_array().unwrap().iter();
    requests
        .map(|request| request["requestId"].as_str().unwrap())
        .collect()
}

/// The requests of each TPP are shown by its token alone, and one whose signature does not verify is shown to nobody.
#[test]
fn a_tpp_sees_its_own_verified_requests_alone() {
    let followed = Followed::start();
    let world = followed.gate.world();
    let (contact, _) = followed.send(Call::plain().by(&world.aisp));
    let forged = Uuid::new_v4().to_string();
    let id = forged.clone();
    let forging = unknown("GET", "/v1/accounts")
        .by(&world.aisp)
        .altered(move |request| request.set_header("X-Request-ID", &id));
    assert_eq!(followed.send(forging).1, 400);
    let (foreign, _) = followed.send(Call::plain().by(&world.pisp));
    let (refused, status) = followed.send(unknown("GET", "/v1/accounts").by(&world.aisp));
    assert_eq!(status, 401);

    // The log has the forged request too.
    let log = followed.log_with(&[&contact, &forged, &foreign, &refused]);
    let line = log.lines().find(|line| line.contains(&forged)).unwrap();
    assert!(line.contains("signature-mismatch"), "{line}");

    let [own, other] = [&world.aisp, &world.pisp].map(|tpp| followed.token(&tpp.id().unwrap()));
    let (status, shown) = followed.tail(&own);
    assert_eq!(status, 200);
    let mut expected = [contact.as_str(), refused.as_str()];
    expected.sort_unstable();
    let mut found = ids(&shown);
    found.sort_unstable();
    assert_eq!(found, expected, "{shown}");
    let mut requests = shown["requests"].as_array().unwrap().iter();
    let last = requests.find(|request| request["requestId"] == refused);
    let last = last.unwrap();
    assert_eq!(last["operation"], "account-list");
    assert_eq!(last["reason"], "sca-required");
    assert_eq!(last["status"], 401);
    assert!(last["remedy"].as_str().is_some_and(|text| !text.is_empty()));
    let (_, shown) = followed.tail(&other);
    assert_eq!(ids(&shown), [foreign.as_str()], "{shown}");
}

/// Every token but those that the key makes is 401, and so is none.
#[test]
fn an_altered_token_is_refused() {
    let followed = Followed::start();
    let world = followed.gate.world();
    let (own, other) = (world.aisp.id().unwrap(), world.pisp.id().unwrap());
    let [own, other] = [own, other].map(|tpp| followed.token(&tpp));
    assert_eq!(followed.tail(&own).0, 200);
    // The other TPP's name with the own HMAC.
    let (name, _) = other.split_once('.').unwrap();
    let (_, tag) = own.split_once('.').unwrap();
    for wrong in [format!("{name}.{tag}"), format!("{own}A"), String::new()] {
        let (status, answer) = followed.tail(&wrong);
        assert_eq!(status, 401, "{wrong}");
        assert_eq!(answer["requests"], Value::Null);
    }
    let none = followed.bank.ask("GET", "/tail", "", "");
    assert_eq!(none.status, 401);
    assert_eq!(none.header("www-authenticate"), Some("Bearer"));
    // The gateway forwards no such path.
    let through = Call::plain().at("/tail").by(&world.aisp);
    assert_eq!(followed.send(through).1, 404);
}

/// The command prints each request with its reason, and names what is wrong with a token.
#[test]
fn the_command_prints_requests_and_their_reasons() {
    let followed = Followed::start();
    let world = followed.gate.world();
    let (id, _) = followed.send(unknown("GET", "/v1/accounts").by(&world.aisp));
    let token = followed.token(&world.aisp.id().unwrap());
    followed.log_with(&[&id]);
    let file = followed.gate.folder().join("token");
    let url = format!("http://{}", followed.bank.address);
    let print = |file: &Path| {
        let file = file.display().to_string();
        sandbox(&["tail", "--once", "--url", &url, "--token-file", &file])
    };
    write_private(&file, &token);
    let printed = print(&file).unwrap();
    let lines: Vec<_> = printed.lines().collect();
    let [line, remedy] = lines.as_slice() else {
        panic!("{printed}");
    };
    let end = format!(" GET account-list 401 sca-required {id}");
    assert!(line.ends_with(&end), "{printed}");
    assert!(remedy.starts_with("    "), "{printed}");
    assert!(!printed.contains(&token));

    write_private(&file, format!("{token}A"));
    let fault = print(&file).unwrap_err();
    assert!(fault.contains("does not accept the token"), "{fault}");
    let fault = sandbox(&["token", "--tpp", "nobody", "--key", &followed.key]).unwrap_err();
    assert!(fault.contains("--tpp names no TPP"), "{fault}");
}

/// Without the options the bank has no such page, whatever the token.
#[test]
fn a_bank_without_the_option_shows_nothing() {
    let (_gate, bank) = Bank::behind_a_gate();
    for headers in ["", "Authorization: Bearer YQ.YQ\r\n"] {
        let answer = bank.ask("GET", "/tail", headers, "");
        assert_eq!(answer.status, 403, "{headers}");
    }
    let half = sandbox(&["core", "--tail", "access.log"]).unwrap_err();
    assert!(half.contains("--tail-key"), "{half}");
}
