//! The live consents of each TPP, as `portvakt report --config` counts them while a gateway may run (CTL-4, SCA-7).

use super::{OTHER, PostgresSchema, TPP, at, who};
use crate::{
    harness::{Gate, postgres},
    state::Data,
};
use portvakt::{
    clock::Clock,
    interface::{TppId, headers::CorporateId},
    state::{
        Bind, ConsentAccounts, Known, Move, MoveEnded, Moved, PsuRef, StateSettings, StateStore,
        Withdraw,
    },
};
use serde_json::{Value, json};
use std::{fs, process::Command};

const DAY: u64 = 86_400;

/// A PSU of a TPP, with a consent or without one, whose last SCA was so many days ago.
async fn bind(store: &StateStore, tpp: &TppId, psu: u128, days: u64, consent: bool) {
    let last_sca = at(Clock::System.now().unix() - days * DAY);
    let who = PsuRef { tpp, ..who(psu) };
    for corporate in [None, Some(CorporateId::from_bits(psu))] {
        let bind = Bind {
            who,
            corporate: corporate.map(Known::by_bank),
            imported: false,
            last_sca,
            consent: consent.then_some((last_sca, &ConsentAccounts::All)),
            customer: None,
        };
        store.bind(bind).await.unwrap();
    }
}

/// The report of the gateway's configuration.
fn report(gate: &Gate) -> Value {
    let line = json!({
        "time": "2026-10-01T10:00:00Z", "kind": "access", "service": "ais", "tpp": "PSDNO-FSA-1",
        "outcome": "forwarded", "status": 200, "whole_us": 12_000,
    });
    fs::write(gate.folder().join("access.log"), line.to_string()).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    let program = program.args(["report", "--format", "json", "--config", "gateway.yaml"]);
    let program = program.arg("access.log").current_dir(gate.folder());
    let output = program.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The live consents by TPP.
fn live(report: &Value) -> Value {
    let tpps = report["tpps"].as_array().unwrap().iter();
    let pairs = tpps.map(|row| json!([row["tpp"], row["live_consents"]]));
    pairs.collect()
}

async fn are_counted(gate: &Gate, store: &StateStore) {
    let new = TppId::parse("PSDNO-FSA-111111").unwrap();
    // Each live one has two contexts; the last second of 180 days has not passed for those of 179.
    bind(store, &TPP, 1, 0, true).await;
    bind(store, &TPP, 2, 179, true).await;
    bind(store, &TPP, 3, 181, true).await;
    bind(store, &TPP, 4, 0, false).await;
    bind(store, &OTHER, 5, 0, true).await;
    bind(store, &new, 6, 0, true).await;
    let all = json!([
        ["PSDNO-FSA-111111", 2],
        [TPP.as_str(), 4],
        [OTHER.as_str(), 2]
    ]);
    let found = report(gate);
    assert_eq!(live(&found), all);
    assert_eq!(found["total"]["live_consents"], 8);
    assert!(found["live_consents_at"].is_string());
    assert_eq!(found["days"][0]["requests"], 1);
    // What the former identity was given is the new one's, until the move is undone.
    let moved = Move {
        from: TPP.clone(),
        to: new.clone(),
        since: Clock::System.now(),
    };
    assert_eq!(store.move_tpp(moved).await.unwrap(), Moved::Done);
    let owned = json!([["PSDNO-FSA-111111", 6], [OTHER.as_str(), 2]]);
    assert_eq!(live(&report(gate)), owned);
    let ended = store.end_move(&TPP, &new).await.unwrap();
    assert_eq!(ended, MoveEnded::Done);
    assert_eq!(live(&report(gate)), all);
    // A consent that is taken back is none.
    let taken = PsuRef {
        tpp: &OTHER,
        ..who(5)
    };
    store.withdraw(taken, Withdraw::Consents).await.unwrap();
    let rest = json!([["PSDNO-FSA-111111", 2], [TPP.as_str(), 4]]);
    assert_eq!(live(&report(gate)), rest);
}

//= CTL-4 accepted
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_of_a_file_are_counted() {
    let gate = Gate::builder().for_program();
    let file = |name: &str| gate.folder().join("state").join(name);
    let settings = StateSettings::new(file("portvakt.db"), file("hash.key"));
    // No state is made to count in it.
    let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    let program = program.args(["report", "--config", "gateway.yaml", "gateway.yaml"]);
    let output = program.current_dir(gate.folder()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!settings.file.exists());
    let store = StateStore::open(&settings).unwrap();
    are_counted(&gate, &store).await;
}

//= CTL-4 accepted
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_of_a_database_are_counted() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let user = data.user();
    let store = data.open();
    let gate = Gate::builder()
        .private_file("state/hash.key", fs::read(&data.0.hash_key).unwrap())
        .state(&format!(
            "postgres: {{url: 'postgres://{user}@/postgres?host={}'}}",
            server.folder().display()
        ))
        .for_program();
    are_counted(&gate, &store).await;
    // Tables of an earlier version are left as they are.
    let schema = |value: &str| {
        server.sql(&format!(
            "SET search_path = {user}; UPDATE meta SET value = '{value}' WHERE name = 'schema'"
        ))
    };
    schema("3");
    let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    let program = program.args(["report", "--config", "gateway.yaml", "access.log"]);
    let output = program.current_dir(gate.folder()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("has an earlier schema"), "{said}");
}
