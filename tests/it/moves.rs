//! CTL-4: a TPP that changed its organizationIdentifier, by the bank's call.

use crate::{
    audit::{ON, records},
    harness::{Call, Gate, Protocol, accepted, eventually, needs_sca, refused},
};
use portvakt::{
    interface::TppId,
    state::{Move, Moved, StateSettings, StateStore},
};
use serde_json::{Value, json};
use std::{fs, sync::Arc};

/// The former identity, with all roles.
const FORMER: &str = "PSDNO-FSA-123456";

/// The identity of the TPP with the role for account information alone.
const NEW: &str = "PSDNO-FSA-111111";

const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const OTHER: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3302";

fn of(call: Call, psu: &str) -> Call {
    call.with("PSU-ID", psu).only(Protocol::Http1)
}

fn by_new(gate: &Gate, call: Call) -> Call {
    call.by(&Arc::clone(&gate.world().aisp))
}

fn moved(gate: &Gate, from: &str, to: &str) -> Value {
    let answer = gate.tell("/tpp/move", &json!({ "from": from, "to": to }));
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn undone(gate: &Gate, from: &str, to: &str) -> Value {
    let what = json!({ "from": from, "to": to, "undo": true });
    let answer = gate.tell("/tpp/move", &what);
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn not_moved(gate: &Gate, from: &str, to: &str, reason: &str) {
    let answer = gate.tell("/tpp/move", &json!({ "from": from, "to": to }));
    let found = (answer.status, answer.reason());
    assert_eq!(found, (409, reason.to_owned()), "{from} to {to}");
}

fn is_turned_away(gate: &Gate, call: &Call) {
    refused(gate, call, 403, "FORBIDDEN", "tpp-blocked");
}

//= CTL-4 accepted
//= CTL-4 refused
//= SCA-19 accepted
#[test]
fn bindings_consents_and_quota_go_along_and_come_back() {
    let gate = Gate::builder().strangers().start();
    gate.introduce(json!({ "tpp": FORMER, "psu_id": PSU }));
    gate.introduce(json!({ "tpp": NEW, "psu_id": OTHER }));
    let balances = |psu| of(Call::balances(), psu);
    for _ in 0..3 {
        accepted(&gate, &balances(PSU));
    }
    needs_sca(&gate, &by_new(&gate, balances(PSU)));
    let done = moved(&gate, FORMER, NEW);
    assert_eq!(done, json!({ "move": "moved", "changed": true }));
    let again = moved(&gate, FORMER, NEW);
    assert_eq!(again, json!({ "move": "moved", "changed": false }));
    // The fourth call in 24 hours, whoever made the three before.
    accepted(&gate, &by_new(&gate, balances(PSU)));
    let fifth = by_new(&gate, balances(PSU));
    refused(&gate, &fifth, 429, "ACCESS_EXCEEDED", "quota-exceeded");
    accepted(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    is_turned_away(&gate, &of(Call::accounts(), PSU));
    // What the new identity had is still its own.
    accepted(&gate, &by_new(&gate, of(Call::accounts(), OTHER)));
    // The bank names the TPP as it is called now.
    let read = |tpp: &str| {
        gate.tell("/psu/read", &json!({ "tpp": tpp, "psu_id": PSU }))
            .status
    };
    assert_eq!((read(NEW), read(FORMER)), (200, 404));
    let listed = gate.control("/tpp/moves").json();
    assert_eq!(listed["moves"][0]["from"], FORMER);
    assert_eq!(listed["moves"][0]["to"], NEW);
    // The call the other way undoes it, and nothing else.
    not_moved(&gate, NEW, FORMER, "move-reverse");
    let ended = undone(&gate, NEW, FORMER);
    assert_eq!(ended, json!({ "move": "undone", "changed": true }));
    // A repeated call is no move the other way.
    let again = undone(&gate, NEW, FORMER);
    assert_eq!(again, json!({ "move": "undone", "changed": false }));
    accepted(&gate, &of(Call::accounts(), PSU));
    needs_sca(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    accepted(&gate, &by_new(&gate, of(Call::accounts(), OTHER)));
    refused(
        &gate,
        &balances(PSU),
        429,
        "ACCESS_EXCEEDED",
        "quota-exceeded",
    );
    assert_eq!(gate.control("/tpp/moves").json(), json!({ "moves": [] }));
}

/// The bank takes back from the TPP under its new identity what was given to the former one.
//= CTL-4 accepted
//= SCA-13 refused
#[test]
fn what_is_taken_back_after_a_move() {
    let gate = Gate::builder().strangers().start();
    gate.introduce(json!({ "tpp": FORMER, "psu_id": PSU }));
    moved(&gate, FORMER, NEW);
    let call = by_new(&gate, of(Call::accounts(), PSU));
    accepted(&gate, &call);
    let consents = |tpp: &str| json!({ "tpp": tpp, "psu_id": PSU, "what": "consents" });
    assert_eq!(
        gate.tell("/psu/withdraw", &consents("PSDNO-FSA-3")).status,
        404
    );
    accepted(&gate, &call);
    // A table of the bank may have the former name still: what takes something away means both.
    assert_eq!(gate.tell("/psu/withdraw", &consents(FORMER)).status, 200);
    needs_sca(&gate, &call);
    // A statement of the bank about the former identity binds nothing.
    let bind = json!({ "tpp": FORMER, "psu_id": OTHER, "last_sca": gate.now().to_string() });
    let answer = gate.tell("/psu/bind", &bind);
    let found = (answer.status, answer.reason());
    assert_eq!(found, (409, "tpp-moved".to_owned()));
}

fn link(gate: &Gate, call: &Call) -> String {
    let json = needs_sca(gate, call).json();
    let href = json["_links"]["scaRedirect"]["href"].as_str().unwrap();
    href.split_once("?request=").unwrap().1.to_owned()
}

//= CTL-4 accepted
//= CTL-4 refused
//= SCA-23 refused
//= CTL-2 refused
#[test]
fn links_are_void_and_blocks_hold_under_the_new_identity() {
    let gate = Gate::builder().line(ON).strangers().start();
    let asked = Call::accounts()
        .without("PSU-ID")
        .with("TPP-Redirect-URI", "https://tpp.example/back")
        .only(Protocol::Http1);
    let former = link(&gate, &asked);
    let new = link(&gate, &by_new(&gate, asked.clone()));
    gate.introduce(json!({ "tpp": FORMER, "psu_id": PSU }));
    let block = json!({ "tpp": "psdno-fsa-12 34-56", "psu_id": PSU, "reason": "fraud" });
    assert_eq!(gate.tell("/tpp/block", &block).status, 200);
    moved(&gate, FORMER, NEW);
    is_turned_away(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    let complete = |request: &str| {
        let completion = json!({ "request": request, "psu_id": OTHER, "context": "PRIVATE" });
        gate.tell("/sca/complete", &completion)
    };
    let answer = complete(&former);
    let found = (answer.status, answer.reason());
    assert_eq!(found, (409, "tpp-blocked".to_owned()));
    assert_eq!(complete(&new).status, 200);
    // The block is taken back from the TPP as it is called now.
    let lifted = json!({ "tpp": NEW, "psu_id": PSU });
    assert_eq!(gate.tell("/tpp/unblock", &lifted).status, 200);
    accepted(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    eventually("the move is recorded", || {
        let records = records(&gate.folder().join("state/audit"));
        let mut moves = records
            .iter()
            .filter(|record| record["kind"] == "tpp-moved");
        moves.any(|record| record["tpp"] == FORMER && record["to"] == NEW)
    });
}

/// The bank's own list in a file is weakened by no call.
//= CTL-4 accepted
//= CTL-4 refused
//= CTL-2 refused
#[test]
fn a_tpp_on_the_banks_own_list_is_not_moved_off_it() {
    let list = |blocked: &str| {
        format!(
            "allow: [{{tpp: {FORMER}, roles: [PSP_AI]}}, {{tpp: {NEW}, roles: [PSP_AI]}}]\nblock: [{blocked}]\n"
        )
    };
    let gate = Gate::builder()
        .with_a_file()
        .file("tpps.yaml", list(&format!("{{tpp: {FORMER}}}")))
        .line("registers: {check: on, local: tpps.yaml}")
        .start();
    not_moved(&gate, FORMER, NEW, "blocked-by-list");
    let both = list(&format!("{{tpp: {FORMER}}}, {{tpp: {NEW}}}"));
    fs::write(gate.folder().join("tpps.yaml"), both).unwrap();
    assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    moved(&gate, FORMER, NEW);
    is_turned_away(&gate, &by_new(&gate, Call::accounts()));
}

//= CTL-4 accepted
#[test]
fn a_move_survives_restarts_and_holds_in_every_process_of_the_state() {
    let mut gate = Gate::builder().strangers().start();
    gate.introduce(json!({ "tpp": FORMER, "psu_id": PSU }));
    let folder = gate.folder().join("state");
    let settings = StateSettings::new(folder.join("portvakt.db"), folder.join("hash.key"));
    let other = StateStore::open(&settings).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tpp = |name| TppId::parse(name).unwrap();
    let row = Move {
        from: tpp(FORMER),
        to: tpp(NEW),
        since: gate.now(),
    };
    assert_eq!(runtime.block_on(other.move_tpp(row)).unwrap(), Moved::Done);
    let call = by_new(&gate, of(Call::accounts(), PSU));
    let status = |gate: &Gate| gate.send(&call, Protocol::Http1).status;
    eventually("the gateway hears of it", || status(&gate) == 200);
    gate.restart();
    assert_eq!(status(&gate), 200);
    undone(&gate, NEW, FORMER);
    let is_former = || {
        other
            .blocks()
            .refuses(&tpp(FORMER), false, Vec::new, gate.now())
    };
    eventually("the other process hears of the end", || !is_former());
}

//= CTL-4 refused
#[test]
fn what_cannot_be_moved() {
    let gate = Gate::builder().strangers().start();
    gate.introduce(json!({ "tpp": FORMER, "psu_id": PSU }));
    for wrong in [
        json!({ "from": FORMER }),
        json!({ "from": FORMER, "to": FORMER }),
        json!({ "from": FORMER, "to": "psdno-fsa-123456 " }),
        json!({ "from": "FSA-1", "to": NEW }),
        json!({ "from": FORMER, "to": NEW, "tpp": NEW }),
    ] {
        let answer = gate.tell("/tpp/move", &wrong);
        let found = (answer.status, answer.reason());
        assert_eq!(found, (400, "member-invalid".to_owned()), "{wrong}");
    }
    accepted(&gate, &of(Call::accounts(), PSU));
    moved(&gate, FORMER, NEW);
    not_moved(&gate, FORMER, "PSDNO-FSA-3", "tpp-moved-elsewhere");
    not_moved(&gate, "PSDNO-FSA-4", FORMER, "target-moved");
    // A TPP that changes its identity again keeps everything, and each step is undone by itself.
    moved(&gate, NEW, "PSDNO-FSA-3");
    is_turned_away(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    not_moved(&gate, "PSDNO-FSA-3", FORMER, "target-moved");
    assert_eq!(undone(&gate, "PSDNO-FSA-3", NEW)["changed"], true);
    accepted(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
}

/// Unbinding and binding again under the new identity gives no fifth call.
//= CTL-4 refused
//= QUO-1 refused
//= QUO-15 refused
#[test]
fn a_psu_that_is_bound_again_under_the_new_identity() {
    let gate = Gate::builder().strangers().start();
    gate.introduce(json!({ "tpp": FORMER, "psu_id": PSU }));
    let balances = by_new(&gate, of(Call::balances(), PSU));
    accepted(&gate, &of(Call::balances(), PSU));
    moved(&gate, FORMER, NEW);
    for _ in 0..3 {
        accepted(&gate, &balances);
    }
    let unbind = json!({ "tpp": NEW, "psu_id": PSU });
    assert_eq!(gate.tell("/psu/unbind", &unbind).status, 200);
    gate.introduce(json!({ "tpp": NEW, "psu_id": PSU }));
    accepted(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    refused(&gate, &balances, 429, "ACCESS_EXCEEDED", "quota-exceeded");
}

/// A block that was made under the new identity holds for both after the end of the move.
//= CTL-4 refused
//= CTL-2 refused
#[test]
fn what_was_blocked_meanwhile_is_blocked_after_the_end() {
    let gate = Gate::builder().strangers().start();
    for psu in [PSU, OTHER] {
        gate.introduce(json!({ "tpp": FORMER, "psu_id": psu }));
    }
    moved(&gate, FORMER, NEW);
    let block = json!({ "tpp": NEW, "psu_id": PSU, "reason": "fraud" });
    assert_eq!(gate.tell("/tpp/block", &block).status, 200);
    is_turned_away(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    undone(&gate, NEW, FORMER);
    is_turned_away(&gate, &of(Call::accounts(), PSU));
    accepted(&gate, &of(Call::accounts(), OTHER));
    for tpp in [FORMER, NEW] {
        let lifted = json!({ "tpp": tpp, "psu_id": PSU });
        assert_eq!(gate.tell("/tpp/unblock", &lifted).status, 200, "{tpp}");
    }
    accepted(&gate, &of(Call::accounts(), PSU));
}

//= CTL-4 refused
#[test]
fn a_tpp_has_a_few_former_identities() {
    let gate = Gate::builder().strangers().start();
    for number in 1..=3 {
        moved(&gate, &format!("PSDNO-FSA-{number}"), NEW);
    }
    not_moved(&gate, FORMER, NEW, "moves-too-many");
    undone(&gate, NEW, "PSDNO-FSA-2");
    moved(&gate, FORMER, NEW);
    assert_eq!(moved(&gate, FORMER, NEW)["changed"], false);
}

/// FWD-6: two spellings may be two TPPs. Only the one that was named is moved.
//= CTL-4 accepted
#[test]
fn a_tpp_whose_id_is_spelt_otherwise_now() {
    let gate = Gate::builder().strangers().start();
    let former = "PSDNO-FSA-11-11-11";
    gate.introduce(json!({ "tpp": former, "psu_id": PSU }));
    needs_sca(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
    moved(&gate, former, NEW);
    accepted(&gate, &by_new(&gate, of(Call::accounts(), PSU)));
}
