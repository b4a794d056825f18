//! CTL-2: TPPs that the bank blocks by a call of the control listener.

use crate::{
    audit::{ON, records},
    harness::{
        Answer, Call, Connection, Gate, Protocol, Reply, Upstream, accepted, eventually, let_pass,
        needs_sca, refused, render,
    },
};
use portvakt::{
    clock::{Clock, Timestamp},
    interface::{ForbiddenTpp, TppId},
    state::{Block, BlockScope, Blocked, StateSettings, StateStore},
};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

const TPP: &str = "PSDNO-FSA-123456";
const REDIRECT: &str = "https://tpp.example/back?mine=1";
const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const OTHER: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3302";

/// The account list of a PSU whom nobody knows yet.
fn accounts() -> Call {
    Call::accounts()
        .without("PSU-ID")
        .with("TPP-Redirect-URI", REDIRECT)
        .only(Protocol::Http1)
}

fn block(gate: &Gate, mut what: Value) -> Value {
    what["reason"] = "reported fraud".into();
    let answer = gate.tell("/tpp/block", &what);
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn unblock(gate: &Gate, what: &Value) -> Answer {
    gate.tell("/tpp/unblock", what)
}

fn blocks(gate: &Gate) -> Vec<Value> {
    let answer = gate.control("/tpp/blocks");
    assert_eq!(answer.status, 200);
    answer.json()["blocks"].as_array().unwrap().clone()
}

fn is_blocked(gate: &Gate, call: &Call) {
    refused(gate, call, 403, "FORBIDDEN", "tpp-blocked");
}

//= CTL-2 accepted
//= CTL-2 refused
#[test]
fn a_block_holds_at_once_in_every_spelling() {
    let gate = Gate::start();
    let others = Call::accounts().by(&gate.world().aisp);
    for spelling in [TPP, "psdno-fsa-12 34-56", "PSDNO-FSA-1-23456"] {
        accepted(&gate, &Call::accounts());
        let made = block(&gate, json!({ "tpp": spelling }));
        assert_eq!(made, json!({ "blocked": true, "changed": true }));
        for call in [Call::accounts(), Call::payment(), Call::balances()] {
            is_blocked(&gate, &call);
        }
        is_blocked(&gate, &Call::new("GET", "/v1/users"));
        accepted(&gate, &others);
        // The same again changes nothing, and another reason does.
        let again = block(&gate, json!({ "tpp": TPP }));
        assert_eq!(again["changed"], false);
        let other = json!({ "tpp": TPP, "reason": "another" });
        assert_eq!(gate.tell("/tpp/block", &other).json()["changed"], true);
        let listed = blocks(&gate);
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (&listed[0]["what"], &listed[0]["reason"]),
            (&json!("all"), &json!("another"))
        );
        assert!(listed[0]["until"].is_null() && listed[0]["since"].is_string());
        let lifted = unblock(&gate, &json!({ "tpp": spelling }));
        let left = json!({ "unblocked": true, "other_blocks": false, "blocked_by_list": false });
        assert_eq!(lifted.json(), left);
        // Nothing is left to take back.
        let nothing = unblock(&gate, &json!({ "tpp": spelling }));
        assert_eq!(
            (nothing.status, nothing.reason().as_str()),
            (404, "block-unknown")
        );
        assert_eq!(blocks(&gate), [json!(null); 0]);
    }
    accepted(&gate, &Call::payment());
}

//= CTL-2 accepted
//= CTL-2 refused
#[test]
fn a_block_of_payments_or_of_one_psu_refuses_no_more() {
    let gate = Gate::builder().strangers().start();
    for psu in [PSU, OTHER] {
        gate.introduce(json!({ "tpp": TPP, "psu_id": psu }));
    }
    let of = |call: Call, psu: &str| call.with("PSU-ID", psu);
    block(&gate, json!({ "tpp": TPP, "what": "payments" }));
    is_blocked(&gate, &of(Call::payment(), PSU));
    is_blocked(&gate, &of(Call::basket(), PSU));
    accepted(&gate, &of(Call::accounts(), PSU));
    assert_eq!(
        unblock(&gate, &json!({ "tpp": TPP })).status,
        404,
        "another block"
    );
    block(&gate, json!({ "tpp": TPP, "psu_id": PSU }));
    is_blocked(&gate, &of(Call::accounts(), PSU));
    accepted(&gate, &of(Call::accounts(), OTHER));
    let lifted = unblock(&gate, &json!({ "tpp": TPP, "what": "payments" }));
    assert_eq!(lifted.json()["other_blocks"], true);
    is_blocked(&gate, &of(Call::payment(), PSU));
    accepted(&gate, &of(Call::payment(), OTHER));
    // No call tells the PSU-ID.
    assert!(!json!(blocks(&gate)).to_string().contains(&PSU[..8]));
    // An SCA that the blocked PSU ends is void, and another PSU's is not.
    for (psu, status) in [(PSU, 409), (OTHER, 200)] {
        let link = token(&needs_sca(&gate, &accounts()));
        assert_eq!(
            gate.tell("/sca/read", &json!({ "request": link })).status,
            200
        );
        let done = json!({ "request": link, "psu_id": psu, "context": "PRIVATE" });
        let answer = gate.tell("/sca/complete", &done);
        assert_eq!(answer.status, status, "{}", answer.json());
    }
    assert_eq!(
        unblock(&gate, &json!({ "tpp": TPP, "psu_id": PSU })).status,
        200
    );
    accepted(&gate, &of(Call::accounts(), PSU));
}

#[test]
fn what_a_block_must_say() {
    let gate = Gate::start();
    for wrong in [
        json!({ "reason": "r" }),
        json!({ "tpp": TPP }),
        json!({ "tpp": "FSA-123456", "reason": "r" }),
        json!({ "tpp": TPP, "reason": "" }),
        json!({ "tpp": TPP, "reason": "r", "what": "everything" }),
        json!({ "tpp": TPP, "reason": "r", "what": "psu" }),
        json!({ "tpp": TPP, "reason": "r", "what": "all", "psu_id": PSU }),
        json!({ "tpp": TPP, "reason": "r", "psu_id": "01010112345" }),
        json!({ "tpp": TPP, "reason": "r", "until": "2020-01-01T00:00:00Z" }),
        json!({ "tpp": TPP, "reason": "r", "scope": "all" }),
    ] {
        let answer = gate.tell("/tpp/block", &wrong);
        let found = (answer.status, answer.reason());
        assert_eq!(found, (400, "member-invalid".to_owned()), "{wrong}");
    }
    assert_eq!(blocks(&gate), [json!(null); 0]);
    assert_eq!(gate.control("/tpp/blocks?tpp=1").status, 400);
    accepted(&gate, &Call::accounts());
}

//= CTL-2 accepted
#[test]
fn a_block_ends_by_itself() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().clock(&clock).start();
    let end = Timestamp::from_unix(1_790_000_060);
    block(&gate, json!({ "tpp": TPP, "until": end.to_string() }));
    let at = |before: u64| clock.set(Timestamp::from_unix(end.unix() - before));
    at(1);
    is_blocked(&gate, &Call::accounts());
    assert_eq!(blocks(&gate)[0]["until"], end.to_string());
    at(0);
    accepted(&gate, &Call::accounts());
    assert_eq!(blocks(&gate), [json!(null); 0]);
}

/// SCA-23, CTL-2: the bank records its PSUs also for a TPP that it blocks. The block refuses their requests, and its end opens them.
//= CTL-2 accepted
//= CTL-2 refused
#[test]
fn the_bank_binds_psus_of_a_blocked_tpp() {
    let gate = Gate::builder().strangers().start();
    block(&gate, json!({ "tpp": TPP }));
    gate.introduce(json!({ "tpp": TPP, "psu_id": PSU }));
    let call = Call::accounts().with("PSU-ID", PSU);
    is_blocked(&gate, &call);
    assert_eq!(unblock(&gate, &json!({ "tpp": TPP })).status, 200);
    accepted(&gate, &call);
}

fn token(answer: &Answer) -> String {
    let json = answer.json();
    let href = json["_links"]["scaRedirect"]["href"].as_str().unwrap();
    href.split_once("?request=").unwrap().1.to_owned()
}

//= SCA-23 refused
//= REP-1 refused
//= CTL-2 refused
#[test]
fn links_and_bodies_under_way_end_with_a_block() {
    let gate = Gate::builder()
        .listener("min_body_rate: off\n  body_timeout: 60s")
        .strangers()
        .start();
    let link = token(&needs_sca(&gate, &accounts()));
    gate.introduce(json!({ "tpp": TPP, "psu_id": OTHER }));
    let sealed = gate.seal(&Call::payment().with("PSU-ID", OTHER));
    let bytes = render(&sealed);
    let (last, rest) = bytes.split_last().unwrap();
    let mut connection = Connection::open(&gate);
    connection.send(rest).unwrap();
    // One thread serves both connections: once it has answered the other one, it has judged this head.
    for _ in 0..2 {
        let other = Call::bare("GET", "/v1/nothing").only(Protocol::Http1);
        assert_eq!(gate.send(&other, Protocol::Http1).status, 404);
    }
    block(&gate, json!({ "tpp": TPP }));
    connection.send(&[*last]).unwrap();
    let answer = connection.answer("POST").unwrap();
    assert_eq!(
        (answer.status, answer.reason().as_str()),
        (403, "tpp-blocked")
    );
    let completion = json!({ "request": link, "psu_id": PSU, "context": "PRIVATE" });
    for answer in [
        gate.tell("/sca/read", &json!({ "request": link })),
        gate.tell("/sca/complete", &completion),
    ] {
        let body = answer.json();
        assert_eq!(
            (answer.status, &body["reason"]),
            (409, &json!("tpp-blocked"))
        );
        let redirect = body["redirect_uri"].as_str().unwrap();
        assert!(
            redirect.contains("&status=403&code=FORBIDDEN&"),
            "{redirect}"
        );
    }
    assert!(gate.upstream().saw_nothing());
    assert_eq!(unblock(&gate, &json!({ "tpp": TPP })).status, 200);
    // The request id is not spent; the link is.
    assert_eq!(
        gate.send_sealed(&sealed, Protocol::Http1).unwrap().status,
        200
    );
    assert_eq!(
        gate.tell("/sca/complete", &completion).reason(),
        "sca-finished"
    );
}

/// A request that waits behind its claim, for a connection or for another endpoint, is judged again before the core gets anything of it.
//= CTL-2 refused
//= SCA-13 refused
#[test]
fn a_request_that_another_endpoint_would_get_ends_with_the_banks_word() {
    let cores = [Upstream::start(), Upstream::start()];
    let (come, is_said) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    for core in &cores {
        let (come, is_said) = (Arc::clone(&come), Arc::clone(&is_said));
        core.reply(Reply::play(move |_, _| {
            come.fetch_add(1, Ordering::SeqCst);
            eventually("the bank's word", || is_said.load(Ordering::SeqCst));
            // No byte of an answer: a safe request may go to the other one.
            false
        }));
    }
    let [first, second] = [0, 1].map(|index: usize| cores[index].address());
    let gate = Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: '{first}'}}, {{address: '{second}'}}], ejection: off, retry_percent: 100}}}}"
        ))
        .strangers()
        .start();
    let gate = &gate;
    type Word = fn(&Gate);
    let words: [(Word, u16, &str); 4] = [
        (
            |gate| drop(block(gate, json!({ "tpp": TPP }))),
            403,
            "tpp-blocked",
        ),
        (
            |gate| drop(block(gate, json!({ "tpp": TPP, "psu_id": PSU }))),
            403,
            "tpp-blocked",
        ),
        (
            |gate| {
                let what = json!({ "tpp": TPP, "psu_id": PSU, "what": "consents" });
                assert_eq!(gate.tell("/psu/withdraw", &what).status, 200);
            },
            401,
            "sca-required",
        ),
        (
            |gate| {
                let who = json!({ "tpp": TPP, "psu_id": PSU });
                assert_eq!(gate.tell("/psu/unbind", &who).status, 200);
            },
            401,
            "sca-required",
        ),
    ];
    for (word, status, reason) in words {
        gate.introduce(json!({ "tpp": TPP, "psu_id": PSU }));
        come.store(0, Ordering::SeqCst);
        is_said.store(false, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let call = Call::accounts().with("PSU-ID", PSU);
            let calling = scope.spawn(move || gate.send(&call, Protocol::Http1));
            eventually("a core has it", || come.load(Ordering::SeqCst) == 1);
            word(gate);
            // Longer than a request may go on by its earlier judgement.
            let_pass(Duration::from_millis(60));
            is_said.store(true, Ordering::SeqCst);
            let answer = calling.join().unwrap();
            assert_eq!((answer.status, answer.reason().as_str()), (status, reason));
        });
        assert_eq!(
            come.load(Ordering::SeqCst),
            1,
            "{reason}: the other core gets nothing"
        );
        for what in [json!({ "tpp": TPP }), json!({ "tpp": TPP, "psu_id": PSU })] {
            unblock(gate, &what);
        }
    }
}

/// Neither an observed check nor a spoiled signature leads past a block.
//= CTL-2 refused
#[test]
fn nothing_that_is_observed_leads_past_a_block() {
    let gate = Gate::builder().line("observe: {checks: all}").start();
    let forged =
        Call::payment().signature(|value| value.replace("signature=\"", "signature=\"AAAA"));
    assert_eq!(gate.send(&forged, Protocol::Http1).status, 200);
    gate.upstream().take();
    block(&gate, json!({ "tpp": "PSDNO-FSA-12-3456" }));
    for call in [Call::payment(), forged] {
        is_blocked(&gate, &call);
    }
}

/// The bank's own list stands beside the blocks: neither weakens the other.
//= CTL-2 accepted
//= CTL-2 refused
#[test]
fn a_block_stands_beside_the_banks_own_list() {
    let allow = "allow: [{tpp: PSDNO-FSA-123456, roles: [PSP_AI, PSP_PI]}]\n";
    let gate = Gate::builder()
        .with_a_file()
        .file("tpps.yaml", allow)
        .line("registers: {check: on, local: tpps.yaml}")
        .start();
    let list = |text: &str| {
        fs::write(gate.folder().join("tpps.yaml"), text).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    };
    block(&gate, json!({ "tpp": TPP }));
    // A reload keeps it, and so does a list that allows the TPP.
    list(allow);
    is_blocked(&gate, &Call::accounts());
    list(&format!("{allow}block: [{{tpp: PSDNO-FSA-123456}}]\n"));
    let lifted = unblock(&gate, &json!({ "tpp": TPP }));
    assert_eq!(lifted.json()["blocked_by_list"], true);
    is_blocked(&gate, &Call::accounts());
    list(allow);
    accepted(&gate, &Call::accounts());
}

//= CTL-2 accepted
#[test]
fn a_block_survives_restarts_and_holds_in_every_process_of_the_state() {
    let mut gate = Gate::start();
    let folder = gate.folder().join("state");
    let settings = StateSettings::new(folder.join("portvakt.db"), folder.join("hash.key"));
    let other = StateStore::open(&settings).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tpp = TppId::parse(TPP).unwrap();
    // Another process blocks.
    let row = Block {
        tpp: ForbiddenTpp::of(&tpp),
        scope: BlockScope::All,
        reason: "fraud".into(),
        since: gate.now(),
        until: None,
    };
    assert_eq!(runtime.block_on(other.block(row)).unwrap(), Blocked::New);
    let status = |gate: &Gate| gate.send(&Call::accounts(), Protocol::Http1).status;
    eventually("the gateway refuses", || status(&gate) == 403);
    is_blocked(&gate, &Call::accounts());
    gate.restart();
    is_blocked(&gate, &Call::accounts());
    // The gateway unblocks, and blocks again.
    assert_eq!(unblock(&gate, &json!({ "tpp": TPP })).status, 200);
    let refuses = || other.blocks().refuses(&tpp, false, Vec::new, gate.now());
    eventually("the other process hears of the end", || !refuses());
    block(&gate, json!({ "tpp": TPP }));
    eventually("the other process hears of the block", refuses);
}

#[test]
fn blocks_are_audited() {
    let gate = Gate::builder().line(ON).start();
    let what = json!({ "tpp": TPP, "psu_id": PSU });
    block(&gate, what.clone());
    blocks(&gate);
    assert_eq!(unblock(&gate, &what).status, 200);
    let found = || {
        let records = records(&gate.folder().join("state/audit"));
        let of_tpp = |kind: &str| {
            let mut found = records.iter().filter(|record| record["kind"] == kind);
            found.any(|record| record["tpp"] == TPP && record["what"] == "psu")
        };
        let calls = |call: &str| records.iter().any(|record| record["call"] == call);
        of_tpp("tpp-blocked")
            && of_tpp("tpp-unblocked")
            && ["/tpp/block", "/tpp/unblock", "/tpp/blocks"]
                .iter()
                .all(|call| calls(call))
    };
    eventually("every call has its records", found);
}
