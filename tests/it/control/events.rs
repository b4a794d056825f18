//! CTL-3: the stream of events, as a consumer reads it.

use super::bank::{Bank, NOW, PSU, Site, TPP, bank, fails, free_address, get};
use crate::{
    audit::records,
    harness::{Answer, Wire, connect_plainly, eventually, missing},
};
use portvakt::state::{StateSettings, sqlite::file};
use serde_json::{Value, json};
use std::{fs, io::Write, net::TcpStream, path::Path, process::Command, thread, time::Duration};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const EVENTS: &str = "fedcba9876543210fedcba9876543210";
const CUSTOMER: &str = "customer 0042";

/// Blocks the TPP, with this reason.
fn block(bank: &Bank, reason: &str) {
    let body = json!({ "tpp": TPP, "reason": reason });
    assert_eq!(bank.post("/tpp/block", &body).status, 200);
}

fn unblock(bank: &Bank) {
    assert_eq!(
        bank.post("/tpp/unblock", &json!({ "tpp": TPP })).status,
        200
    );
}

/// Binds the PSU, with a consent for these accounts.
fn bind(bank: &Bank, accounts: Option<&[&str]>) {
    let now = NOW.to_string();
    let mut who = json!({ "tpp": TPP, "psu_id": PSU, "last_sca": now, "consent_at": now, "customer": CUSTOMER });
    if let Some(accounts) = accounts {
        who["accounts"] = json!(accounts);
    }
    let answer = bank.post("/psu/bind", &who);
    assert_eq!(answer.status, 200, "{}", answer.json());
}

fn poll(bank: &Bank, query: &str) -> Answer {
    bank.send(&get(&format!("/events{query}"), ""))
}

fn metrics(bank: &Bank) -> String {
    String::from_utf8(bank.send(&get("/metrics", "")).body).unwrap()
}

/// The events of an answer, and its cursor.
fn taken(answer: &Answer) -> (Vec<Value>, String) {
    let body = answer.json();
    assert_eq!(answer.status, 200, "{body}");
    let next = body["next"].as_str().unwrap().to_owned();
    (body["events"].as_array().unwrap().clone(), next)
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["kind"].as_str());
    kinds.map(Option::unwrap).collect()
}

//= CTL-3 accepted
#[test]
fn a_consumer_resumes_after_a_restart_in_order() {
    let site = Site::new();
    let bank = site.start(&free_address().1);
    bind(&bank, Some(&["a-1", "a-2"]));
    block(&bank, "fraud");
    let (first, next) = taken(&poll(&bank, "?limit=1"));
    assert_eq!(kinds(&first), ["consent-given"]);
    bank.stop();
    let bank = site.start(&free_address().1);
    unblock(&bank);
    let (rest, last) = taken(&poll(&bank, &format!("?after={next}")));
    assert_eq!(kinds(&rest), ["tpp-blocked", "tpp-unblocked"]);
    for event in first.iter().chain(&rest) {
        assert_eq!(event["tpp"], TPP, "{event}");
    }
    // At least once: the same cursor answers the same.
    assert_eq!(taken(&poll(&bank, &format!("?after={next}"))).0, rest);
    assert!(taken(&poll(&bank, &format!("?after={last}"))).0.is_empty());
    let all = taken(&poll(&bank, "")).0;
    let sequences: Vec<_> = all.iter().map(|event| event["sequence"].as_u64()).collect();
    assert!(sequences.is_sorted() && all.len() == 3, "{sequences:?}");
}

//= CTL-3 accepted
#[test]
fn a_consent_that_is_narrowed_and_withdrawn() {
    let (_site, bank) = bank();
    bind(&bank, Some(&["a-1", "a-2"]));
    let left = json!({ "customer": CUSTOMER, "accounts_left": ["a-1"] });
    assert_eq!(bank.post("/psu/withdraw", &left).status, 200);
    let all = json!({ "customer": CUSTOMER });
    assert_eq!(bank.post("/psu/withdraw", &all).status, 200);
    // Repeated: nothing changes, and there is no event.
    assert_eq!(bank.post("/psu/withdraw", &all).status, 200);
    let (events, _) = taken(&poll(&bank, ""));
    let expected = ["consent-given", "consent-narrowed", "consent-withdrawn"];
    assert_eq!(kinds(&events), expected);
    // The time is that of the calls, also where no request came before them.
    assert!(events.iter().all(|event| event["at"] == NOW.to_string()));
}

//= CTL-3 accepted
//= CTL-4 accepted
#[test]
fn a_consent_is_that_of_the_identity_that_the_tpp_has_now() {
    let (_site, bank) = bank();
    bind(&bank, None);
    block(&bank, "fraud");
    let moved = json!({ "from": TPP, "to": "PSDNO-FSA-999" });
    assert_eq!(bank.post("/tpp/move", &moved).status, 200);
    let all = json!({ "customer": CUSTOMER });
    assert_eq!(bank.post("/psu/withdraw", &all).status, 200);
    let (events, _) = taken(&poll(&bank, ""));
    let expected = ["consent-given", "tpp-blocked", "consent-withdrawn"];
    assert_eq!(kinds(&events), expected);
    for event in &events {
        assert_eq!(event["tpp"], "PSDNO-FSA-999", "{event}");
        if event["kind"] != "tpp-blocked" {
            assert_eq!(event["corporate"], false, "{event}");
        }
    }
}

//= CTL-3 accepted
#[test]
fn a_consent_that_expires_while_only_consumers_call() {
    let (_site, bank) = bank();
    bind(&bank, Some(&["a-1", "a-2"]));
    let given = taken(&poll(&bank, "")).1;
    bank.after(Duration::from_secs(181 * 86_400));
    let (events, expired) = taken(&poll(&bank, &format!("?after={given}&wait=60")));
    assert_eq!(kinds(&events), ["consent-expired"]);
    // The bank takes back what has expired.
    let left = json!({ "customer": CUSTOMER, "accounts_left": ["a-1"] });
    assert_eq!(bank.post("/psu/withdraw", &left).status, 200);
    let all = json!({ "customer": CUSTOMER });
    assert_eq!(bank.post("/psu/withdraw", &all).status, 200);
    let (events, _) = taken(&poll(&bank, &format!("?after={expired}")));
    assert_eq!(kinds(&events), ["consent-narrowed", "consent-withdrawn"]);
}

//= CTL-3 accepted
#[test]
fn a_call_that_waits_is_answered_at_once() {
    let (_site, bank) = bank();
    block(&bank, "fraud");
    let (_, next) = taken(&poll(&bank, ""));
    let address = bank.address.tcp().unwrap();
    let request = get(&format!("/events?after={next}&wait=60"), "");
    let waiting =
        thread::spawn(move || super::bank::exchange(connect_plainly(address).unwrap(), &request));
    unblock(&bank);
    let (events, _) = taken(&waiting.join().unwrap());
    assert_eq!(kinds(&events), ["tpp-unblocked"]);
    // A stop ends a wait. The connection may also close without an answer if the call comes late.
    let next = taken(&poll(&bank, "")).1;
    let request = get(&format!("/events?after={next}&wait=60"), "");
    let stream = connect_plainly(address).unwrap();
    let waiting = thread::spawn(move || super::bank::exchange(stream, &request));
    eventually("the call waits", || {
        metrics(&bank).contains("consumer=\"token\"")
    });
    bank.stop();
    assert!(taken(&waiting.join().unwrap()).0.is_empty());
}

//= CTL-3 refused
#[test]
fn a_wrong_query_and_a_foreign_cursor_are_refused() {
    let (_site, bank) = bank();
    for query in [
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?limit=+5",
        "?limit=%205",
        "?limit=5.0",
        "?limit=05",
        "?limit=",
        "?wait=+5",
        "?wait=00",
        "?wait=61",
        "?wait=-1",
        "?wait=1&wait=1",
        "?before=1",
    ] {
        let answer = poll(&bank, query);
        fails(&answer, 400, "BAD_REQUEST", "events-query-invalid");
    }
    let (other_site, other) = super::bank::bank();
    block(&other, "fraud");
    let foreign = taken(&poll(&other, "")).1;
    drop(other_site);
    for cursor in ["", "x", "0", foreign.as_str()] {
        let answer = poll(&bank, &format!("?after={cursor}"));
        fails(&answer, 400, "BAD_REQUEST", "cursor-unknown");
    }
    // A call that is refused is the place of no consumer.
    assert!(!metrics(&bank).contains("consumer=\"token\""));
    let posted = bank.post("/events", &json!({}));
    fails(&posted, 405, "BAD_REQUEST", "method-not-allowed");
}

//= CTL-3 accepted
#[test]
fn a_call_by_head_is_answered_and_is_no_poll() {
    let (_site, bank) = bank();
    let address = bank.address.tcp().unwrap();
    for path in ["/events", "/tpp/blocks"] {
        let head = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut stream = connect_plainly(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let answer = Wire::new(stream).answer("HEAD").unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{path}");
    }
    let polls = |text: &str| {
        let polls = text
            .lines()
            .filter(|line| line.starts_with("portvakt_event_polls_total{"));
        polls.filter(|line| !line.ends_with(" 0")).count()
    };
    let text = metrics(&bank);
    assert_eq!(polls(&text), 0);
    assert!(!text.contains("consumer=\"token\""));
    poll(&bank, "");
    assert_eq!(polls(&metrics(&bank)), 1);
}

//= CTL-3 accepted
//= CTL-3 refused
#[test]
fn a_role_of_its_own_reads_events() {
    let site = Site::new();
    site.write("token", TOKEN);
    site.write("events", EVENTS);
    let ask = |bank: &Bank, token: Option<&str>| {
        let header = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let header = header.unwrap_or_default();
        let paths = ["/events", "/tpp/blocks", "/metrics"];
        paths.map(|path| bank.send(&get(path, &header)).status)
    };
    let bank = site.start(&format!("{}, token_file: token", free_address().1));
    for token in [None, Some(TOKEN), Some(EVENTS)] {
        assert_eq!(ask(&bank, token)[0], 403);
    }
    fails(&poll(&bank, ""), 403, "FORBIDDEN", "role-other");
    bank.stop();
    let tokens = "token_file: token, events_token_file: events";
    let bank = site.start(&format!("{}, {tokens}", free_address().1));
    assert_eq!(ask(&bank, None), [401, 403, 401]);
    assert_eq!(ask(&bank, Some(TOKEN)), [401, 403, 200]);
    assert_eq!(ask(&bank, Some(EVENTS)), [200, 403, 401]);
    bank.stop();
    let bank = site.start(&format!("socket: control.sock, {tokens}"));
    assert_eq!(ask(&bank, None)[0], 401);
    assert_eq!(
        [TOKEN, EVENTS].map(|token| ask(&bank, Some(token))[0]),
        [200; 2]
    );
}

//= CTL-3 refused
#[test]
fn a_bounded_number_of_calls_waits() {
    let (_site, bank) = bank();
    let address = bank.address.tcp().unwrap();
    let ask = || {
        let mut stream = connect_plainly(address).unwrap();
        let request = get("/events?wait=60", "");
        stream.write_all(&request).unwrap();
        stream
    };
    let mut waiting: Vec<TcpStream> = (0..16).map(|_| ask()).collect();
    eventually("sixteen calls wait", || {
        // This call may have the place of one of them while it waits.
        let answer = poll(&bank, "?wait=1");
        waiting.push(ask());
        answer.status == 503
    });
    let answer = poll(&bank, "?wait=1");
    fails(&answer, 503, "SYSTEM_ERROR", "consumers-waiting");
    assert_eq!(answer.header("retry-after"), Some("5"));
    // Without a wait it is answered.
    assert!(taken(&poll(&bank, "")).0.is_empty());
    drop(waiting);
    eventually("there is room again", || {
        poll(&bank, "?wait=1").status == 200
    });
}

//= CTL-3 accepted
#[test]
fn nothing_personal_is_in_an_event() {
    let site = Site::new();
    site.write("events.key", [7_u8; 32]);
    let bank = site.start_with_events(&free_address().1);
    bind(&bank, Some(&["a-1", "a-2"]));
    let answer = poll(&bank, "");
    let (events, _) = taken(&answer);
    // The cursor has random digits.
    let text = answer.json()["events"].to_string();
    for personal in [&PSU[..8], CUSTOMER, "0042", "a-1"] {
        assert!(!text.contains(personal), "{text}");
    }
    let key = openssl::pkey::PKey::hmac(&[7; 32]).unwrap();
    let digest = openssl::hash::MessageDigest::sha256();
    let mut signer = openssl::sign::Signer::new(digest, &key).unwrap();
    signer.update(CUSTOMER.as_bytes()).unwrap();
    let own: String = signer
        .sign_to_vec()
        .unwrap()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(events[0]["customer"], own);
}

//= CTL-3 refused
#[test]
fn a_gateway_with_a_former_key_says_so() {
    let site = Site::new();
    site.write("events.key", [7_u8; 32]);
    site.write("newer.key", [8_u8; 32]);
    let bank = site.start_with_events(&free_address().1);
    let degraded = || bank.send(&get("/readyz", "")).json()["degraded"].clone();
    assert_eq!(degraded(), Value::Null);
    let state = site.path().join("state");
    let mut newer = StateSettings::new(state.join("portvakt.db"), state.join("hash.key"));
    newer.events.customer_key = Some(site.path().join("newer.key"));
    let file = file::connect(&newer.file).unwrap();
    assert!(file::accept_customer_key(&file, &newer).unwrap());
    eventually("the former key is named", || degraded().is_array());
    let said = degraded().to_string();
    assert!(said.contains("customer key"), "{said}");
    let metrics = bank.send(&get("/metrics", ""));
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains("portvakt_degraded{cause=\"customer_key\"} 1"));
    bind(&bank, None);
    let (events, _) = taken(&poll(&bank, ""));
    assert_eq!(events[0]["customer"], Value::Null);
}

//= CTL-3 accepted
#[test]
fn a_poll_has_no_record_in_the_audit() {
    let site = Site::new();
    let bank = site.start_audited(&free_address().1);
    block(&bank, "fraud");
    taken(&poll(&bank, ""));
    bank.stop();
    let records = records(&site.audit());
    let calls = records.iter().filter(|record| record["kind"] == "call");
    let calls: Vec<_> = calls
        .map(|record| record["call"].as_str().unwrap())
        .collect();
    assert_eq!(calls, ["/tpp/block"]);
}

/// examples/events: a consumer that begins anew after a stop.
#[test]
fn the_example_resumes_from_its_file() {
    let site = Site::new();
    let bank = site.start("socket: control.sock");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/events/consumer.py");
    let cursor = site.path().join("events.cursor");
    let run = || {
        let mut python = Command::new("python3");
        python.arg(&program).arg(site.path().join("control.sock"));
        python.arg(&cursor).arg("one").output()
    };
    block(&bank, "fraud");
    let Ok(first) = run() else {
        return missing("python3 is not there");
    };
    let lines = |output: std::process::Output| {
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    assert_eq!(kinds(&lines(first)), ["tpp-blocked"]);
    unblock(&bank);
    assert_eq!(kinds(&lines(run().unwrap())), ["tpp-unblocked"]);
    // A cursor that is none ends the program with a sentence.
    fs::write(&cursor, "x").unwrap();
    let refused = run().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && said.contains("400: "),
        "{said}"
    );
}
