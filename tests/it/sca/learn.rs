//! PSU-IDs that the core knows and the gateway does not: answers that bind a PSU-ID, calls that remove the binding, and
//! information that no caller gets (SCA-19).

use super::{FIRM, OTHER, PSU, REDIRECT, accounts, complete};
use crate::harness::{
    Answer, Call, Gate, Protocol, Reply, accepted, check_error, needs_sca, refused,
};
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};

/// 2026-09-21.
const THEN: u64 = 1_790_000_000;
const SCA_AT: (&str, &str) = ("Gateway-Sca-At", "2026-08-01T10:00:00Z");
const CONSENT_AT: (&str, &str) = ("Gateway-Consent-At", "2026-07-01T10:00:00+02:00");
const BOUND: (&str, &str) = ("Gateway-Psu-Bound", "yes");

/// A gate that knows no PSU, and learns.
fn learning() -> (Gate, Clock) {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder()
        .strangers()
        .clock(&clock)
        .sca("unknown_psu: learn")
        .sca("learn_since: 2026-09-01")
        .sca("learn_until: 2026-10-01")
        .start();
    (gate, clock)
}

/// The account list of a PSU, who is present.
fn list(psu: &str) -> Call {
    accounts().without("TPP-Session-ID").with("PSU-ID", psu)
}

/// Sets the core's answer.
fn reply(gate: &Gate, status: u16, headers: &[(&str, &str)]) {
    let reply = Reply::json(status, r#"{"code":"CONSENT_INVALID","mine":"core"}"#);
    let with = |reply: Reply, (name, value): &(&str, &str)| reply.with(name, value);
    gate.upstream().reply(headers.iter().fold(reply, with));
}

/// The bank's view of a PSU; `None` if the TPP has no such PSU-ID.
fn known(gate: &Gate, tpp: &str, psu: &str) -> Option<Value> {
    let answer = gate.tell("/psu/read", &json!({ "tpp": tpp, "psu_id": psu }));
    (answer.status == 200).then(|| answer.json())
}

//= SCA-19 accepted
#[test]
fn an_unknown_psu_is_learned_from_the_core() {
    let (gate, clock) = learning();
    let tpp = gate.world().both.id().unwrap();
    let accounts = ("Gateway-Consent-Accounts", "a-1, a%3Ab");
    reply(&gate, 200, &[BOUND, SCA_AT, CONSENT_AT, accounts]);
    let passage = accepted(&gate, &list(PSU)).remove(0);
    assert_eq!(passage.seen.header("gateway-psu-bound"), Some("no"));
    let said = passage.answer.headers.iter();
    let said: Vec<_> = said
        .filter(|(name, _)| name.to_lowercase().starts_with("gateway-"))
        .collect();
    assert!(said.is_empty(), "{said:?}");
    let expected = json!({
        "last_sca": "2026-08-01T10:00:00Z",
        "session": null,
        "contexts": [{
            "context": "PRIVATE",
            "last_sca": "2026-08-01T10:00:00Z",
            "consent": { "given": "2026-07-01T08:00:00Z", "accounts": 2 },
        }],
        "learned": true,
    });
    assert_eq!(known(&gate, &tpp, PSU), Some(expected));
    let seen = accepted(&gate, &list(PSU)).remove(0).seen;
    assert_eq!(seen.header("gateway-psu-bound"), None);
    assert_eq!(seen.header("gateway-sca-at"), Some("2026-08-01T10:00:00Z"));
    accepted(&gate, &list(PSU).at("/v1/accounts/a%3Ab/balances"));
    let elsewhere = list(PSU).at("/v1/accounts/a-2/balances");
    refused(
        &gate,
        &elsewhere,
        404,
        "RESOURCE_UNKNOWN",
        "account-unknown",
    );
    // The PSU-ID never belongs to another TPP.
    needs_sca(&gate, &list(PSU).by(&gate.world().aisp));
    // After the learning period, an unknown PSU-ID is refused.
    clock.set(Timestamp::from_unix(1_791_000_000));
    needs_sca(&gate, &list(OTHER));
}

/// An agreement that came with the request is learned with it, and no other.
#[test]
fn a_corporate_agreement_is_learned() {
    let (gate, _clock) = learning();
    reply(&gate, 200, &[BOUND, SCA_AT, CONSENT_AT]);
    let firm = list(PSU).with("PSU-Corporate-ID", FIRM);
    accepted(&gate, &firm);
    let seen = accepted(&gate, &firm).remove(0).seen;
    assert_eq!(seen.header("psu-corporate-id"), Some(FIRM));
    needs_sca(&gate, &firm.with("PSU-Corporate-ID", OTHER));
}

/// SCA-19: the gateway assumes nothing that the core does not state.
#[test]
fn what_the_core_leaves_out_is_not_known() {
    let (gate, _clock) = learning();
    let tpp = gate.world().both.id().unwrap();
    let doubled = [BOUND, SCA_AT, SCA_AT, CONSENT_AT, CONSENT_AT];
    let later = ("Gateway-Sca-At", "2026-09-21T14:30:00Z");
    let one = ("Gateway-Consent-Accounts", "a-1");
    let outside = ("Gateway-Consent-Accounts", "a-1,a%20b");
    let no_list = ("Gateway-Consent-Accounts", "a,%zz");
    let table = [
        (&[BOUND][..], false, Value::Null),
        (&[BOUND, SCA_AT], true, Value::Null),
        (&[BOUND, CONSENT_AT], false, json!("all")),
        (&doubled, false, Value::Null),
        (&[BOUND, later, CONSENT_AT], false, json!("all")),
        (&[BOUND, SCA_AT, CONSENT_AT, no_list], true, Value::Null),
        (&[BOUND, SCA_AT, CONSENT_AT, one, one], true, Value::Null),
        (&[BOUND, SCA_AT, CONSENT_AT, outside], true, Value::Null),
    ];
    for (number, (headers, sca, consented)) in table.into_iter().enumerate() {
        let psu = format!("3f2504e0-4f89-41d3-9a0c-0305e82c34{number:02}");
        reply(&gate, 200, headers);
        accepted(&gate, &list(&psu));
        let psu_known = known(&gate, &tpp, &psu).unwrap();
        assert_eq!(
            psu_known["last_sca"].is_string(),
            sca,
            "{number}: {psu_known}"
        );
        let context = &psu_known["contexts"][0];
        let accounts = &context["consent"]["accounts"];
        assert_eq!(*accounts, consented, "{number}: {psu_known}");
        // Without both, account information needs an SCA; a payment does not.
        needs_sca(&gate, &list(&psu));
        let seen = accepted(&gate, &Call::payment().with("PSU-ID", &psu))
            .remove(0)
            .seen;
        assert_eq!(seen.header("gateway-sca-at").is_some(), sca, "{number}");
    }
}

//= SCA-19 refused
#[test]
fn nobody_is_bound_without_the_cores_word() {
    let (gate, _clock) = learning();
    let product = "/v1/payments/norwegian-domestic-credit-transfers";
    let needs_nothing = [
        Call::plain(),
        Call::new(
            "GET",
            "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        ),
        Call::new("GET", &format!("{product}/7/status")),
        Call::new("GET", &format!("{product}/7")),
        Call::new("POST", &format!("{product}/7/authorisations")),
        Call::new("GET", "/v1/signing-baskets/7/status"),
    ];
    let needs_somebody = [
        Call::payment(),
        Call::cross_border(),
        Call::basket(),
        Call::new("GET", "/v1/agreements"),
        list(PSU),
    ];
    let facts = [SCA_AT, CONSENT_AT];
    let words = [None, Some("no"), Some("YES!"), Some("yes, yes")];
    let tpp = gate.world().both.id().unwrap();
    let nobody = |call: &Call, what: &str| {
        let call = call.clone().with("PSU-ID", PSU).only(Protocol::Http1);
        let seen = accepted(&gate, &call).remove(0).seen;
        assert_eq!(known(&gate, &tpp, PSU), None, "{what}: {seen:?}");
    };
    for word in words {
        let word = word.map(|word| (BOUND.0, word));
        let headers: Vec<_> = facts.into_iter().chain(word).collect();
        reply(&gate, 200, &headers);
        for call in needs_nothing.iter().chain(&needs_somebody) {
            nobody(call, &format!("{word:?}"));
        }
    }
    // A repeated header does not count, and an operation without a PSU never binds.
    reply(&gate, 200, &[BOUND, BOUND, SCA_AT, CONSENT_AT]);
    nobody(&list(PSU), "twice");
    reply(&gate, 200, &[BOUND, SCA_AT, CONSENT_AT]);
    for call in &needs_nothing {
        nobody(call, "needs nothing");
    }
    // Nor does an answer other than 2xx.
    for status in [302, 400, 404, 500] {
        reply(&gate, status, &[BOUND, SCA_AT, CONSENT_AT]);
        assert_eq!(gate.send(&list(PSU), Protocol::Http1).status, status);
        assert_eq!(known(&gate, &tpp, PSU), None, "{status}");
    }
}

//= SCA-19 accepted
//= SCA-19 refused
#[test]
fn the_banks_word_wins_over_what_was_learned() {
    let (gate, _clock) = learning();
    let [squatter, owner] = [&gate.world().pisp, &gate.world().aisp].map(|tpp| tpp.id().unwrap());
    let payment = Call::payment().with("PSU-ID", PSU).by(&gate.world().pisp);
    let theirs = list(PSU).by(&gate.world().aisp);
    let squat = || {
        reply(&gate, 201, &[BOUND, SCA_AT, CONSENT_AT]);
        accepted(&gate, &payment);
        assert!(known(&gate, &squatter, PSU).is_some());
        needs_sca(&gate, &theirs);
    };
    let is_the_owners = || {
        assert_eq!(known(&gate, &squatter, PSU), None);
        let known = known(&gate, &owner, PSU).unwrap();
        assert_eq!(known.get("learned"), None, "{known}");
        assert_eq!(known["contexts"].as_array().unwrap().len(), 1, "{known}");
        accepted(&gate, &theirs);
        needs_sca(&gate, &payment);
    };
    let unbind = |tpp: &str| gate.tell("/psu/unbind", &json!({ "tpp": tpp, "psu_id": PSU }));
    squat();
    gate.introduce(json!({ "tpp": owner, "psu_id": PSU }));
    is_the_owners();
    // A binding by the bank never moves to another TPP.
    let moments = json!({ "tpp": squatter, "psu_id": PSU, "last_sca": "2026-09-01T00:00:00Z" });
    let answer = gate.tell("/psu/bind", &moments);
    check_error("moved", &answer, 409, "CONFLICT", "psu-bound-elsewhere");
    assert_eq!(
        gate.metric("portvakt_psu_bound_elsewhere_total", &["by=\"bind\""]),
        1.0
    );
    is_the_owners();
    // A withdrawn PSU-ID belongs to no TPP.
    assert_eq!(unbind(&squatter).status, 404);
    let answer = unbind(&owner);
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({ "unbound": true }))
    );
    assert_eq!(known(&gate, &owner, PSU), None);
    assert_eq!(unbind(&owner).status, 404);
    // An SCA is a binding by the bank, too.
    squat();
    let link = needs_sca(&gate, &theirs);
    complete(&gate, &link, PSU);
    is_the_owners();
    // The bank can withdraw a learned binding as well.
    assert_eq!(unbind(&owner).status, 200);
    squat();
    assert_eq!(unbind(&squatter).status, 200);
    assert_eq!(known(&gate, &squatter, PSU), None);
}

/// SCA-18, QUO-15: sessions and consents end with the binding; the calls of the day stay counted.
#[test]
fn what_becomes_of_a_psu_that_is_unbound() {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder().strangers().clock(&clock).start();
    let tpp = gate.world().both.id().unwrap();
    let link = needs_sca(&gate, &accounts());
    complete(&gate, &link, PSU);
    let under_s = accounts().with("PSU-ID", PSU);
    let balances = list(PSU)
        .without("PSU-IP-Address")
        .at("/v1/accounts/1/balances");
    accepted(&gate, &under_s);
    for _ in 0..3 {
        accepted(&gate, &balances);
    }
    let who = json!({ "tpp": tpp, "psu_id": PSU });
    assert_eq!(gate.tell("/psu/unbind", &who).status, 200);
    needs_sca(&gate, &under_s);
    needs_sca(&gate, &balances);
    needs_sca(&gate, &Call::payment().with("PSU-ID", PSU));
    gate.introduce(who);
    needs_sca(&gate, &under_s);
    accepted(&gate, &balances);
    refused(&gate, &balances, 429, "ACCESS_EXCEEDED", "quota-exceeded");
}

/// The visible parts of an answer: status, headers and body, without values that differ for each answer.
fn told(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let mut body = answer.json();
    body["id"] = Value::Null;
    if let Some(href) = body.pointer_mut("/_links/scaRedirect/href") {
        *href = href.as_str().unwrap().len().into();
    }
    let own = ["date", "x-request-id", "content-length"];
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !own.contains(&name.to_lowercase().as_str()));
    headers.sort();
    (answer.status, headers, body)
}

//= SCA-19 refused
#[test]
fn a_psu_id_bound_elsewhere_is_answered_like_one_that_the_core_refuses() {
    let (gate, _clock) = learning();
    gate.introduce(json!({ "tpp": gate.world().aisp.id(), "psu_id": OTHER }));
    let absent = |call: Call| call.without("PSU-IP-Address");
    let calls: [fn(&str) -> Call; 5] = [
        list,
        |psu| list(psu).at("/v1/accounts/7/balances"),
        |psu| {
            list(psu)
                .at("/v1/accounts/7/transactions?dateFrom=2020-01-01")
                .without("PSU-IP-Address")
        },
        |psu| {
            list(psu)
                .without("TPP-Redirect-URI")
                .at("/v1/accounts/7/transactions/1")
        },
        |psu| {
            Call::payment()
                .with("TPP-Redirect-URI", REDIRECT)
                .with("PSU-ID", psu)
        },
    ];
    for call in calls {
        let call = |psu| call(psu).only(Protocol::Http1);
        for protocol in Protocol::ALL {
            gate.upstream().take();
            let taken = told(&gate.send(&call(OTHER), protocol));
            assert!(gate.upstream().take().is_empty());
            for status in [400, 401, 403, 404, 409, 422] {
                reply(
                    &gate,
                    status,
                    &[("X-Core", "7"), ("WWW-Authenticate", "Bearer")],
                );
                let refused = told(&gate.send(&call(PSU), protocol));
                assert_eq!(refused, taken, "{status} over {protocol:?}");
            }
        }
    }
    // None of these calls counts towards the four, and no answer has a remaining number.
    reply(&gate, 401, &[]);
    let balances = |psu| absent(list(psu)).at("/v1/accounts/7/balances");
    for _ in 0..6 {
        let [refused, taken] = [PSU, OTHER].map(|psu| gate.send(&balances(psu), Protocol::Http1));
        assert_eq!(told(&refused), told(&taken));
        assert_eq!(refused.status, 401);
    }
    // If the core confirms that the PSU is the TPP's, its answer is forwarded unchanged.
    reply(&gate, 404, &[BOUND]);
    let answer = gate.send(&balances(PSU), Protocol::Http1);
    assert_eq!(
        (answer.status, &answer.json()["mine"]),
        (404, &json!("core"))
    );
}
