//! A TPP that the bank blocks, or whose role a register took: its links, and its requests whose body is under way (SCA-23, REP-1).

use super::{PSU, REDIRECT, accounts, complete, token};
use crate::harness::{
    Answer, Call, Connection, Gate, Protocol, Sealed, accepted, needs_sca, refused, render, world,
};
use serde_json::{Value, json};
use std::fs;

const BOTH: &str = "- {tpp: PSDNO-FSA-123456, roles: [PSP_AI, PSP_PI]}\n";
const OTHER_TPP: &str = "- {tpp: PSDNO-FSA-111111, roles: [PSP_AI]}\n";

/// The bank's own list, in which the TPP of the calls has these lines.
fn list(allow: &str, block: &str) -> String {
    format!("allow:\n{OTHER_TPP}{allow}block:\n- {{tpp: PSDNO-FSA-999999}}\n{block}")
}

/// A gate that knows no PSU, with the bank's own list and a line of the configuration. A body may stay under way while the list changes.
fn gate(line: &str) -> Gate {
    Gate::builder()
        .listener("min_body_rate: off\n  body_timeout: 60s")
        .strangers()
        .with_a_file()
        .file("tpps.yaml", list(BOTH, ""))
        .line("registers: {check: on, local: tpps.yaml}")
        .line(line)
        .start()
}

/// Replaces the bank's own list, and reloads.
fn now(gate: &Gate, list: &str) {
    fs::write(gate.folder().join("tpps.yaml"), list).unwrap();
    let answer = gate.tell("/reload", &json!({}));
    assert_eq!(answer.status, 200, "{:?}", answer.json());
}

/// The lists by which the TPP may not do what `accounts()` and a payment need, with the reason.
fn turned_away() -> [(String, &'static str); 3] {
    let block = |spelling: &str| list(BOTH, &format!("- {{tpp: PSDNO-FSA-{spelling}}}\n"));
    [
        (block("123456"), "tpp-blocked"),
        (block("12-34 56"), "tpp-blocked"),
        (list("", ""), "tpp-not-registered"),
    ]
}

fn completion(answer: &Answer) -> Value {
    json!({ "request": token(answer), "psu_id": PSU, "context": "PRIVATE" })
}

/// Both calls by which an SCA proceeds say that the link is void; returns where the browser goes.
fn is_void(gate: &Gate, link: &Answer, reason: &str) -> String {
    let calls = [
        gate.tell("/sca/read", &json!({ "request": token(link) })),
        gate.tell("/sca/complete", &completion(link)),
    ];
    let redirects = calls.map(|answer| {
        let body = answer.json();
        assert_eq!(answer.status, 409, "{body}");
        assert_eq!(body["code"], "FORBIDDEN");
        assert_eq!(body["reason"], reason);
        assert!(body.get("operation").is_none(), "{body}");
        body["redirect_uri"].as_str().unwrap().to_owned()
    });
    assert_eq!(redirects[0], redirects[1]);
    redirects[0].clone()
}

fn is_known(gate: &Gate) -> bool {
    let who = json!({ "tpp": gate.world().both.id(), "psu_id": PSU });
    gate.tell("/psu/read", &who).status == 200
}

//= SCA-23 accepted
//= SCA-23 refused
#[test]
fn a_link_is_void_once_its_tpp_is_turned_away() {
    let gate = gate("");
    let failed = "system=portvakt&status=403&code=FORBIDDEN&message=The%20bank";
    for (list_now, reason) in turned_away() {
        let links = [accounts(), Call::payment()].map(|call| needs_sca(&gate, &call));
        let others = needs_sca(&gate, &accounts().by(&gate.world().aisp));
        for link in &links {
            let read = gate.tell("/sca/read", &json!({ "request": token(link) }));
            assert_eq!(read.status, 200, "{}", read.json());
        }
        now(&gate, &list_now);
        refused(&gate, &accounts(), 403, "FORBIDDEN", reason);
        for (link, is_accounts) in links.iter().zip([true, false]) {
            let redirect = is_void(&gate, link, reason);
            assert!(redirect.contains(failed), "{redirect}");
            assert!(!is_accounts || redirect.starts_with(REDIRECT), "{redirect}");
        }
        assert!(!is_known(&gate));
        // The link of another TPP goes on.
        let other = json!({ "request": token(&others) });
        assert_eq!(gate.tell("/sca/read", &other).status, 200);
        now(&gate, &list(BOTH, ""));
        // The browser was sent back: the SCA has ended, also for a TPP that is served again.
        for link in &links {
            let late = gate.tell("/sca/complete", &completion(link));
            assert_eq!(late.json()["reason"], "sca-finished");
        }
        assert!(!is_known(&gate));
    }
    assert!(gate.upstream().saw_nothing());
    let link = needs_sca(&gate, &accounts());
    // A reload that leaves the TPP alone.
    now(&gate, &list(BOTH, "- {tpp: PSDNO-FSA-888888}\n"));
    complete(&gate, &link, PSU);
    assert!(is_known(&gate));
}

/// A register that took one role voids the links of that role only.
//= SCA-23 accepted
//= SCA-23 refused
#[test]
fn a_lost_role_voids_the_links_that_need_it() {
    let gate = gate("");
    let [of_accounts, of_payment] =
        [accounts(), Call::payment()].map(|call| needs_sca(&gate, &call));
    now(
        &gate,
        &list("- {tpp: PSDNO-FSA-123456, roles: [PSP_PI]}\n", ""),
    );
    is_void(&gate, &of_accounts, "tpp-not-registered");
    complete(&gate, &of_payment, PSU);
    assert!(is_known(&gate));
}

/// What ended before the block stays as it ended, but the bank's page hears no more of it.
//= SCA-23 refused
#[test]
fn a_completion_is_not_repeated_after_the_block() {
    let gate = gate("");
    let link = needs_sca(&gate, &accounts());
    complete(&gate, &link, PSU);
    let (list_now, reason) = turned_away()[0].clone();
    now(&gate, &list_now);
    is_void(&gate, &link, reason);
    assert!(is_known(&gate));
    // The bank may say of its own accord that an SCA failed.
    let failure = json!({
        "request": token(&link), "system": "sca", "status": 400, "code": "PAYMENT_FAILED", "message": "m",
    });
    let failed = gate.tell("/sca/fail", &failure);
    assert_eq!(failed.json()["reason"], "sca-finished");
}

/// A register that is only observed takes nothing; a block is always enforced.
//= SCA-23 accepted
//= SCA-23 refused
#[test]
fn what_is_observed_voids_no_link() {
    let observes = gate("observe: {checks: [register]}");
    let of_tpp = gate("observe: {tpps: {PSDNO-FSA-123456: [register]}}");
    for gate in [observes, of_tpp] {
        let link = needs_sca(&gate, &accounts());
        now(&gate, &list("", ""));
        complete(&gate, &link, PSU);
        let link = needs_sca(&gate, &accounts());
        now(&gate, &turned_away()[0].0);
        is_void(&gate, &link, "tpp-blocked");
    }
}

/// Sends a request but for its last byte, until its head has been judged; then `meanwhile`, and the last byte.
fn with_a_body_under_way(gate: &Gate, sealed: &Sealed, meanwhile: impl FnOnce()) -> Answer {
    let bytes = render(sealed);
    let (last, rest) = bytes.split_last().unwrap();
    let mut connection = Connection::open(gate);
    connection.send(rest).unwrap();
    // One thread serves both connections: once it has answered the other one, it has judged this head.
    for _ in 0..2 {
        let other = Call::bare("GET", "/v1/nothing").only(Protocol::Http1);
        assert_eq!(gate.send(&other, Protocol::Http1).status, 404);
    }
    meanwhile();
    connection.send(&[*last]).unwrap();
    connection.answer(&sealed.request.method).unwrap()
}

//= REP-1 accepted
//= REP-1 refused
#[test]
fn a_block_holds_for_a_request_whose_body_is_under_way() {
    let gate = gate("");
    let psu = world().both.psu();
    gate.introduce(json!({ "tpp": world().both.id(), "psu_id": psu }));
    let calls = [
        Call::payment().with("PSU-ID", &psu),
        Call::accounts().with("PSU-ID", &psu).json("{}"),
        // The gateway answers this one, and would give a link.
        Call::new("POST", "/v1/consents").json("{}"),
        // One that would get a link in place of an answer.
        Call::payment(),
    ];
    for (list_now, reason) in turned_away() {
        for call in &calls {
            let sealed = gate.seal(call);
            let answer = with_a_body_under_way(&gate, &sealed, || now(&gate, &list_now));
            let body = answer.json();
            assert_eq!(answer.status, 403, "{body}");
            assert_eq!(body["reason"], reason, "{body}");
            assert!(body.get("_links").is_none(), "{body}");
            assert!(gate.upstream().take().is_empty());
            now(&gate, &list(BOTH, ""));
            // Its id is not spent.
            let again = gate.send_sealed(&sealed, Protocol::Http1).unwrap();
            assert_ne!(again.reason(), "request-replayed");
            assert_ne!(again.status, 403);
            gate.upstream().take();
        }
    }
    // A reload that leaves the TPP alone.
    let sealed = gate.seal(&calls[0]);
    let other = list(BOTH, "- {tpp: PSDNO-FSA-888888}\n");
    let answer = with_a_body_under_way(&gate, &sealed, || now(&gate, &other));
    assert_eq!(answer.status, 200, "{}", answer.reason());
    assert_eq!(gate.upstream().take().len(), 1);
    accepted(&gate, &calls[0]);
}

/// A sender who is unknown, because its signature is only observed, is judged by the TPPs that its certificates name.
//= REP-1 refused
#[test]
fn a_block_holds_for_an_unknown_sender_whose_body_is_under_way() {
    let gate = gate("observe: {checks: [signature]}");
    let call = Call::payment().signature(|value| value.replace("signature=\"", "signature=\"AAAA"));
    let sealed = gate.seal(&call);
    let (list_now, reason) = turned_away()[0].clone();
    let answer = with_a_body_under_way(&gate, &sealed, || now(&gate, &list_now));
    assert_eq!((answer.status, answer.reason().as_str()), (403, reason));
    assert!(gate.upstream().saw_nothing());
    now(&gate, &list(BOTH, ""));
    let answer = with_a_body_under_way(&gate, &sealed, || now(&gate, &list(BOTH, "")));
    assert_eq!(answer.status, 200, "{}", answer.reason());
}
