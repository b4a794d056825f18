//! Sessions and consents over time: SCA-4 to SCA-7, SCA-13, SCA-16, SCA-18, QUO-9, QUO-10.

use super::{FIRM, OTHER, PSU, accounts, complete, complete_with, gate};
use crate::harness::{Call, Gate, Protocol, accepted, needs_sca, refused};
use portvakt::{
    clock::{Clock, Timestamp},
    state::{StateSettings, StateStore},
};
use serde_json::json;

const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;
const THEN: u64 = 1_790_000_000;

/// A gate with an adjustable clock, and a PSU who completed an SCA at the start, with session S.
fn known() -> (Gate, Clock) {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder().strangers().clock(&clock).start();
    let answer = needs_sca(&gate, &accounts());
    complete(&gate, &answer, PSU);
    (gate, clock)
}

fn call() -> Call {
    accounts().with("PSU-ID", PSU)
}

fn under(session: &str) -> Call {
    call().with("TPP-Session-ID", session)
}

fn after(clock: &Clock, seconds: u64) {
    clock.set(Timestamp::from_unix(THEN + seconds));
}

//= SCA-4 accepted
//= SCA-5 accepted
//= SCA-5 refused
#[test]
fn a_session_lasts_one_hour_and_never_slides() {
    let (gate, clock) = known();
    for seconds in [0, HOUR / 2, HOUR - 1] {
        after(&clock, seconds);
        accepted(&gate, &under("S"));
    }
    after(&clock, HOUR);
    let answer = needs_sca(&gate, &under("S"));
    // For every role of the TPP: a payment is never refused because of a session.
    accepted(
        &gate,
        &Call::payment()
            .with("PSU-ID", PSU)
            .with("TPP-Session-ID", "S"),
    );
    complete(&gate, &answer, PSU);
    after(&clock, 2 * HOUR - 1);
    accepted(&gate, &under("S"));
    after(&clock, 2 * HOUR);
    needs_sca(&gate, &under("S"));
}

//= SCA-6 accepted
//= SCA-6 refused
#[test]
fn a_new_session_takes_the_place_of_the_old_one_once_it_is_completed() {
    let (gate, clock) = known();
    after(&clock, 60);
    let unfinished = needs_sca(&gate, &under("T"));
    accepted(&gate, &under("S"));
    // Aborted: the old session stays valid until its own end.
    let said = json!({
        "request": super::token(&unfinished),
        "system": "bank", "status": 400, "code": "PSU_CREDENTIALS_INVALID", "message": "Nei, æøå"
    });
    let failed = gate.tell("/sca/fail", &said);
    let back = failed.json()["redirect_uri"].as_str().unwrap().to_owned();
    assert!(back.contains("code=PSU_CREDENTIALS_INVALID"), "{back}");
    accepted(&gate, &under("S"));
    needs_sca(&gate, &under("T"));
    after(&clock, HOUR - 1);
    accepted(&gate, &under("S"));
    let answer = needs_sca(&gate, &under("T"));
    complete(&gate, &answer, PSU);
    accepted(&gate, &under("T"));
    needs_sca(&gate, &under("S"));
}

//= ERR-10 refused
#[test]
fn an_invalid_session_has_the_sentence_of_its_own_cause() {
    let (gate, clock) = known();
    let says = |session: &str, part: &str| {
        let answer = needs_sca(&gate, &under(session));
        let fault = &answer.json()["faults"][0];
        assert_eq!(fault["header"], "TPP-Session-ID");
        let text = fault["text"].as_str().unwrap();
        assert!(text.contains(part), "{part:?} is not in {text:?}");
        answer
    };
    let unfinished = says(
        "T",
        "completed under another TPP-Session-ID, and only that session is valid",
    );
    after(&clock, 60);
    complete(&gate, &unfinished, PSU);
    // Replaced.
    says(
        "S",
        "completed under another TPP-Session-ID, and only that session is valid",
    );
    after(&clock, 60 + HOUR);
    says("T", "a session lasts one hour");
    says("S", "under another TPP-Session-ID, more than an hour ago");
    let ended = json!({ "tpp": gate.world().both.id(), "psu_id": PSU, "what": "session" });
    assert_eq!(gate.tell("/psu/withdraw", &ended).status, 200);
    says("T", "this PSU has no session now");
}

//= SCA-16 accepted
//= SCA-16 refused
#[test]
fn where_a_session_is_asked_for() {
    let (gate, clock) = known();
    after(&clock, HOUR);
    needs_sca(&gate, &under("S"));
    accepted(&gate, &call().without("TPP-Session-ID"));
    accepted(&gate, &under("S").without("PSU-IP-Address"));
    for (rule, without, with) in [("session", false, false), ("consent", true, true)] {
        let gate = Gate::builder()
            .clock(&clock)
            .sca(&format!("psu_present: {rule}"))
            .start();
        for (call, passes) in [
            (call().without("TPP-Session-ID"), without),
            (under("S"), with),
        ] {
            if passes {
                accepted(&gate, &call);
            } else {
                needs_sca(&gate, &call);
            }
        }
    }
}

//= SCA-7 accepted
//= SCA-7 refused
//= QUO-9 accepted
//= QUO-9 refused
#[test]
fn sca_is_renewed_after_180_days() {
    let (gate, clock) = known();
    let present = call().without("TPP-Session-ID");
    let list = call()
        .without("PSU-IP-Address")
        .at("/v1/accounts/1/transactions");
    after(&clock, 180 * DAY);
    accepted(&gate, &present);
    accepted(&gate, &list);
    after(&clock, 180 * DAY + 1);
    needs_sca(&gate, &present);
    needs_sca(&gate, &list);
    // An SCA for something else renews it, but is no online access in this context.
    let firm = json!({
        "tpp": gate.world().both.id(), "psu_id": PSU, "psu_corporate_id": FIRM,
    });
    gate.introduce(firm);
    accepted(&gate, &present.with("PSU-Context", "PRIVATE"));
    needs_sca(&gate, &list.clone().with("PSU-Context", "PRIVATE"));
    accepted(&gate, &list.with("PSU-Corporate-ID", FIRM));
}

//= QUO-10 accepted
//= QUO-10 refused
#[test]
fn without_the_psu_details_need_a_consent_of_90_days() {
    let (gate, clock) = known();
    let details = call()
        .without("PSU-IP-Address")
        .at("/v1/accounts/1/transactions/7");
    after(&clock, 90 * DAY);
    accepted(&gate, &details);
    after(&clock, 90 * DAY + 1);
    let answer = needs_sca(&gate, &details);
    accepted(&gate, &details.clone().present().without("TPP-Session-ID"));
    complete(&gate, &answer, PSU);
    accepted(&gate, &details);
}

//= SCA-13 accepted
//= SCA-13 refused
#[test]
fn the_bank_withdraws() {
    let (gate, _clock) = known();
    let withdraw = |what| {
        let said = json!({ "tpp": gate.world().both.id(), "psu_id": PSU, "what": what });
        assert_eq!(gate.tell("/psu/withdraw", &said).status, 200);
    };
    accepted(&gate, &under("S"));
    withdraw("session");
    needs_sca(&gate, &under("S"));
    accepted(&gate, &call().without("TPP-Session-ID"));
    withdraw("consent");
    needs_sca(&gate, &call().without("TPP-Session-ID"));
    // The PSU still belongs to the TPP.
    accepted(&gate, &Call::payment().with("PSU-ID", PSU));
}

//= SCA-18 accepted
//= SCA-18 refused
#[test]
fn consent_is_apart_from_sca() {
    let gate = gate();
    // The SCA of a payment creates a session and no consent.
    let answer = needs_sca(
        &gate,
        &Call::payment()
            .with("PSU-ID", OTHER)
            .with("TPP-Session-ID", "S"),
    );
    complete(&gate, &answer, PSU);
    accepted(&gate, &Call::payment().with("PSU-ID", PSU));
    let answer = needs_sca(&gate, &under("S"));
    // For some accounts.
    let said = json!({
        "psu_id": PSU, "context": "PRIVATE", "consent": true, "accounts": ["a:b", "2"],
    });
    complete_with(&gate, &answer, said);
    accepted(&gate, &under("S"));
    accepted(&gate, &under("S").at("/v1/accounts/a%3Ab/balances"));
    unknown(&gate, &under("S").at("/v1/accounts/3/balances"));
    // The PSU authenticated and refused the consent.
    let answer = needs_sca(&gate, &under("T"));
    let said = json!({ "psu_id": PSU, "context": "PRIVATE", "consent": false });
    complete_with(&gate, &answer, said);
    unknown(&gate, &under("T").at("/v1/accounts/3/balances"));
}

/// SCA-18: an account outside the consent looks like one that does not exist.
fn unknown(gate: &Gate, call: &Call) {
    let answer = refused(gate, call, 404, "RESOURCE_UNKNOWN", "account-unknown");
    assert_eq!(
        answer.json().get("_links"),
        None,
        "SCA again would not help"
    );
    assert_eq!(answer.header("ratelimit"), None, "no call is counted");
}

//= SCA-18 refused
#[test]
fn an_account_that_the_consent_does_not_name_is_unknown() {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder().strangers().clock(&clock).start();
    let named = json!({
        "psu_id": PSU, "context": "PRIVATE", "consent": true, "accounts": ["1", "2"],
    });
    let complete = |call: &Call| complete_with(&gate, &needs_sca(&gate, call), named.clone());
    complete(&accounts());
    let balances = |id: &str| {
        let call = call().without("PSU-IP-Address");
        call.at(&format!("/v1/accounts/{id}/balances"))
    };
    // Such calls are never counted.
    for _ in 0..6 {
        unknown(&gate, &balances("3"));
    }
    for _ in 0..4 {
        accepted(&gate, &balances("1"));
    }
    refused(
        &gate,
        &balances("1"),
        429,
        "ACCESS_EXCEEDED",
        "quota-exceeded",
    );
    for call in [
        under("S").at("/v1/accounts/3/balances"),
        under("S").at("/v1/accounts/3/transactions"),
        call()
            .without("PSU-IP-Address")
            .at("/v1/accounts/3/transactions"),
        call()
            .without("PSU-IP-Address")
            .at("/v1/accounts/3/transactions/7"),
        under("S").at("/v1/accounts/3%3A/transactions/7"),
    ] {
        unknown(&gate, &call);
    }
    // The consent itself, its age and the session are judged first: each gives a 401.
    needs_sca(&gate, &under("other").at("/v1/accounts/3/balances"));
    let details = call()
        .without("PSU-IP-Address")
        .at("/v1/accounts/3/transactions/7");
    after(&clock, 90 * DAY + 1);
    needs_sca(&gate, &details);
    complete(&details);
    unknown(&gate, &details);
    after(&clock, 271 * DAY);
    let balances = call()
        .without("TPP-Session-ID")
        .at("/v1/accounts/3/balances");
    needs_sca(&gate, &balances);
    complete(&balances);
    unknown(&gate, &balances);
    let said = json!({ "tpp": gate.world().both.id(), "psu_id": PSU, "what": "consent" });
    assert_eq!(gate.tell("/psu/withdraw", &said).status, 200);
    needs_sca(&gate, &balances);
}

#[test]
fn what_was_completed_survives_a_restart() {
    let (mut gate, _clock) = known();
    gate.restart();
    accepted(&gate, &under("S").only(Protocol::Http2));
}

//= SCA-12 refused
#[test]
fn a_clock_that_was_fast_opens_no_spent_link() {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder()
        .strangers()
        .with_a_file()
        .clock(&clock)
        .start();
    let answer = needs_sca(&gate, &accounts());
    complete(&gate, &answer, PSU);
    let withdrawn = json!({ "tpp": gate.world().both.id(), "psu_id": PSU, "what": "consent" });
    assert_eq!(gate.tell("/psu/withdraw", &withdrawn).status, 200);
    // Housekeeping with a clock that is 20 minutes fast.
    after(&clock, 20 * 60);
    let state = gate.folder().join("state");
    let settings = StateSettings::new(state.join("portvakt.db"), state.join("hash.key"));
    let tidied = async { StateStore::open(&settings).unwrap().tidy(clock.now()).await };
    tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(tidied)
        .unwrap();
    after(&clock, 0);
    let mut said =
        json!({ "psu_id": OTHER, "context": "PRIVATE", "request": super::token(&answer) });
    assert_eq!(gate.tell("/sca/complete", &said).status, 409);
    // Repeating the call is no error, and changes nothing.
    said["psu_id"] = PSU.into();
    assert_eq!(gate.tell("/sca/complete", &said).status, 200);
    needs_sca(&gate, &under("S"));
}

//= SCA-5 refused
//= SCA-12 refused
#[test]
fn what_a_fast_clock_gave_lasts_no_longer() {
    for ahead in [60, 61, 20 * HOUR] {
        let (gate, clock) = known();
        let is_near = ahead == 60;
        after(&clock, ahead);
        let link = needs_sca(&gate, &under("T"));
        let unused = needs_sca(&gate, &under("U"));
        complete(&gate, &link, PSU);
        after(&clock, 0);
        if is_near {
            let seen = accepted(&gate, &under("T")).remove(0).seen;
            assert_eq!(seen.header("gateway-sca-at"), Some("2026-09-21T14:13:20Z"));
        } else {
            needs_sca(&gate, &under("T"));
        }
        // The consent and the last SCA get the current time.
        let seen = accepted(&gate, &call().without("TPP-Session-ID"))
            .remove(0)
            .seen;
        assert_eq!(seen.header("gateway-sca-at"), Some("2026-09-21T14:13:20Z"));
        let read = json!({ "request": super::token(&unused) });
        let status = gate.tell("/sca/read", &read).status;
        assert_eq!(status, if is_near { 200 } else { 410 }, "{ahead} s");
    }
}
