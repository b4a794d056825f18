//! docs/audit.md: records of calls, whatever happens to the disk, the caller or the listener.

use super::bank::{Bank, NOW, PSU, Site, TPP, fails, free_address, post};
use crate::{
    audit::records,
    harness::{eventually, let_pass},
};
use portvakt::{audit::verify, clock::Stopwatch};
use serde_json::{Value, json};
use std::{fs, io::Write, net::TcpStream, thread, time::Duration};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Enough for the listener to notice something.
const MOMENT: Duration = Duration::from_millis(200);

/// Binds the PSU, with a consent.
fn bind(bank: &Bank) {
    let now = NOW.to_string();
    let who = json!({ "tpp": TPP, "psu_id": PSU, "last_sca": now, "consent_at": now });
    assert_eq!(bank.post("/psu/bind", &who).status, 200);
}

fn of_kind(site: &Site, kind: &str) -> Vec<Value> {
    let mut records = records(&site.audit());
    records.retain(|record| record["kind"] == kind);
    records
}

/// The status of each recorded call of this path.
fn statuses(site: &Site, call: &str) -> Vec<u64> {
    let mut calls = of_kind(site, "call");
    calls.retain(|record| record["call"] == call);
    let statuses = calls.iter().map(|record| record["status"].as_u64());
    statuses.map(Option::unwrap).collect()
}

/// A change that was made is recorded as soon as the disk takes its record, though its caller got 503.
#[test]
fn a_change_whose_record_the_disk_refuses_is_recorded_later() {
    let site = Site::new();
    bind(&site.start(&free_address().1));
    let bank = site.start_audited(&free_address().1);
    // No file of PSUs is open yet, and none can be made.
    let (own, away) = (site.audit().join("1"), site.path().join("away"));
    fs::rename(&own, &away).unwrap();
    let who = json!({ "tpp": TPP, "psu_id": PSU });
    let answer = bank.post("/psu/unbind", &who);
    fails(&answer, 503, "SYSTEM_ERROR", "state-unavailable");
    // The listener refuses further calls, so that nothing more goes without a record.
    let answer = bank.post("/psu/unbind", &who);
    fails(&answer, 503, "SYSTEM_ERROR", "state-unavailable");
    fs::rename(&away, &own).unwrap();
    eventually("the records are written", || {
        !of_kind(&site, "unbound").is_empty() && statuses(&site, "/psu/unbind") == [503, 503]
    });
    // The first call has unbound the PSU.
    eventually("calls are answered again", || {
        bank.post("/psu/unbind", &who).status == 404
    });
    bank.stop();
    let unbound = of_kind(&site, "unbound");
    assert_eq!((unbound.len(), &unbound[0]["tpp"]), (1, &TPP.into()));
    assert_eq!(verify(&site.audit(), &[]).unwrap().findings, []);
}

/// The caller closes its socket while the store waits for another process. The change is made, and has its records; a listener that stops
/// waits for them.
#[test]
fn a_call_is_recorded_though_its_caller_disconnects() {
    for is_stopping in [false, true] {
        let site = Site::new();
        let (address, key) = free_address();
        let bank = site.start_audited(&key);
        bind(&bank);
        let store = rusqlite::Connection::open(site.path().join("state/portvakt.db")).unwrap();
        store.execute_batch("BEGIN IMMEDIATE").unwrap();
        let withdrawal = json!({ "tpp": TPP, "psu_id": PSU, "what": "consents" }).to_string();
        let request = post("/psu/withdraw", withdrawal.as_bytes(), "");
        let mut caller = TcpStream::connect(address).unwrap();
        caller.write_all(&request).unwrap();
        // The store has the change, and waits up to two seconds for the other process.
        let_pass(MOMENT);
        drop(caller);
        let_pass(MOMENT);
        let other = thread::spawn(move || {
            let_pass(MOMENT);
            store.execute_batch("ROLLBACK").unwrap();
        });
        let serving = if is_stopping {
            bank.stop();
            None
        } else {
            Some(bank)
        };
        other.join().unwrap();
        eventually("the withdrawal is recorded", || {
            of_kind(&site, "withdrawn").len() == 1 && statuses(&site, "/psu/withdraw") == [200]
        });
        drop(serving);
    }
}

/// Anybody who reaches the port can be refused, and must not fill the disk.
//= FWD-8 accepted
#[test]
fn a_second_has_records_of_a_bounded_number_of_refused_calls() {
    let site = Site::new();
    site.write("token", TOKEN);
    let bank = site.start_audited(&format!("{}, token_file: token", free_address().1));
    let refuse = || assert_eq!(bank.send(&post("/psu/read", b"{}", "")).status, 401);
    let watch = Stopwatch::start();
    (0..100).for_each(|_| refuse());
    let seconds = usize::try_from(watch.elapsed().as_secs()).unwrap() + 2;
    // The next record, which says how many were left out, is of another second.
    let_pass(Duration::from_millis(1_010));
    refuse();
    // Calls that are permitted all have their records.
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for _ in 0..30 {
        let answer = bank.send(&post("/psu/read", b"{}", &token));
        assert_eq!(answer.status, 400);
    }
    bank.stop();
    let permitted = || {
        let statuses = statuses(&site, "/psu/read");
        statuses.iter().filter(|status| **status == 400).count()
    };
    eventually("every permitted call is recorded", || permitted() == 30);
    eventually("what was left out is said", || {
        !of_kind(&site, "left-out").is_empty()
    });
    let mut refused = of_kind(&site, "call");
    refused.retain(|record| record["status"] == 401);
    // FWD-8: the last record says what was left out.
    let left_out = of_kind(&site, "left-out");
    assert!(
        left_out
            .iter()
            .all(|record| record["of"] == "calls" && record["network"].is_u64())
    );
    let omitted = left_out
        .iter()
        .filter_map(|record| record["omitted"].as_u64());
    let omitted = usize::try_from(omitted.sum::<u64>()).unwrap();
    assert_eq!(refused.len() + omitted, 101);
    assert!(refused.len() <= 10 * seconds + 1, "{}", refused.len());
}
