//! The page of accesses of the simulated bank, with a gateway behind it: a withdrawal at either side ends the access on both (SBX-16).

use super::{Bank, FORM, parameter, request, unknown, value};
use crate::harness::{Gate, Protocol};
use serde_json::json;

const IDENTITY: &str = "01010112345";

/// A PSU opens all accounts to the TPP; gives the PSU-ID.
fn give(gate: &Gate, bank: &Bank) -> String {
    let token = request(gate, &unknown("GET", "/v1/accounts"));
    let page = bank.last_page(&token, IDENTITY);
    parameter(&bank.submit(&page), "psu-id")
}

/// What `POST /accesses` shows.
fn submit(bank: &Bank, body: &str) -> String {
    let answer = bank.ask("POST", "/accesses", FORM, body);
    let html = String::from_utf8(answer.body).unwrap();
    assert_eq!(answer.status, 200, "{html}");
    html
}

/// The PSU's list.
fn list(bank: &Bank) -> String {
    let first = bank.ask("GET", "/accesses", "", "");
    let first = String::from_utf8(first.body).unwrap();
    let form = value(&first, "form");
    submit(bank, &format!("form={form}&step=next&identity={IDENTITY}"))
}

/// Whether the SCA page says that the TPP has access.
fn has_access(gate: &Gate, bank: &Bank) -> bool {
    let token = request(gate, &unknown("GET", "/v1/accounts"));
    let first = bank.ask("GET", &format!("/sca?request={token}"), "", "");
    let first = String::from_utf8(first.body).unwrap();
    let form = value(&first, "form");
    let body = format!("request={token}&form={form}&step=next&identity={IDENTITY}");
    let answer = bank.ask("POST", "/sca", FORM, &body);
    let html = String::from_utf8(answer.body).unwrap();
    assert!(html.contains("name=\"account\""), "{html}");
    let (says, ticks) = (html.contains("has access today"), html.contains(" checked"));
    assert_eq!(says, ticks, "{html}");
    says
}

//= SBX-16 accepted
#[test]
fn a_withdrawal_at_either_side_ends_the_access_on_both() {
    let (gate, bank) = Bank::behind_a_gate();
    let psu = give(&gate, &bank);
    let read = unknown("GET", "/v1/accounts").with("PSU-ID", &psu);
    let status = || gate.send(&read, Protocol::Http1).status;
    assert_eq!(status(), 200);
    assert!(has_access(&gate, &bank));

    // At the bank: the gateway's next answer demands SCA.
    let shown = list(&bank);
    let tpp = gate.world().both.id().unwrap();
    assert!(shown.contains(&tpp), "{shown}");
    assert!(!shown.contains(&psu), "{shown}");
    let form = value(&shown, "form");
    let withdrawn = submit(&bank, &format!("form={form}&withdraw=0"));
    assert!(withdrawn.contains("Access is withdrawn"), "{withdrawn}");
    assert_eq!(status(), 401);
    assert!(!has_access(&gate, &bank));

    // At the gateway: the bank's pages show it.
    assert_eq!(give(&gate, &bank), psu);
    assert_eq!(status(), 200);
    let who = json!({ "tpp": tpp, "psu_id": psu, "what": "consent" });
    assert_eq!(gate.tell("/psu/withdraw", &who).json()["withdrawn"], 1);
    assert!(list(&bank).contains("No provider may read your accounts"));
    assert!(!has_access(&gate, &bank));
}
