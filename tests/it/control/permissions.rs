//! CTL-1: the permissions of one customer of the bank over all TPPs, and the next requests of the TPPs.

use super::bank::{AGREEMENT, OTHER_PSU, PSU, TPP};
use crate::harness::{Answer, Call, Gate, Protocol, accepted, eventually, needs_sca, refused};
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};

/// The TPP with the role PSP_AI alone.
const AISP: &str = "PSDNO-FSA-111111";

const THIRD_PSU: &str = "0192f0c1-5a5b-7def-8000-1234567890ad";

const CUSTOMER: &str = "customer 0042";
const OTHER_CUSTOMER: &str = "customer 0043";

/// A gateway that knows one customer at two TPPs, and another customer at the first of them.
fn gate() -> Gate {
    let gate = Gate::builder().strangers().start();
    let all = json!({ "tpp": TPP, "psu_id": PSU, "customer": CUSTOMER });
    let named = json!({ "tpp": AISP, "psu_id": OTHER_PSU, "customer": CUSTOMER, "accounts": ["a-1", "a-2"] });
    let other = json!({ "tpp": TPP, "psu_id": THIRD_PSU, "customer": OTHER_CUSTOMER });
    for who in [all, named, other] {
        bind(&gate, who);
    }
    gate
}

/// Binds a PSU with a consent.
fn bind(gate: &Gate, mut who: Value) {
    let now = gate.now().to_string();
    who["last_sca"] = json!(now);
    who["consent_at"] = json!(now);
    let answer = gate.tell("/psu/bind", &who);
    assert_eq!(answer.status, 200, "{}", answer.json());
}

fn accounts(psu: &str) -> Call {
    Call::accounts().with("PSU-ID", psu).only(Protocol::Http1)
}

fn balances(psu: &str, account: &str) -> Call {
    accounts(psu)
        .at(&format!("/v1/accounts/{account}/balances"))
        .present()
}

/// A call that succeeds. No PSU-ID and no key is in its answer.
fn tell(gate: &Gate, path: &str, body: &Value) -> Value {
    let answer = gate.tell(path, body);
    assert_eq!(answer.status, 200, "{}", answer.json());
    let text = answer.json().to_string();
    assert!(
        !text.contains(&PSU[..8]) && !text.contains("customer"),
        "{text}"
    );
    answer.json()
}

/// The sums of a withdrawal, and the counts of each TPP, in the order of their identities.
fn withdraw(gate: &Gate, body: &Value) -> (u64, u64, Vec<(String, u64, u64)>) {
    let answer = tell(gate, "/psu/withdraw", body);
    let counts = |of: &Value| {
        let count = |name: &str| of[name].as_u64().unwrap();
        (count("withdrawn"), count("narrowed"))
    };
    let accesses = answer["accesses"].as_array().unwrap().iter();
    let mut accesses: Vec<_> = accesses
        .map(|access| {
            let (withdrawn, narrowed) = counts(access);
            (
                access["tpp"].as_str().unwrap().to_owned(),
                withdrawn,
                narrowed,
            )
        })
        .collect();
    accesses.sort();
    let (withdrawn, narrowed) = counts(&answer);
    (withdrawn, narrowed, accesses)
}

fn at(tpp: &str, withdrawn: u64, narrowed: u64) -> (String, u64, u64) {
    (tpp.to_owned(), withdrawn, narrowed)
}

fn is_unknown(answer: &Answer) {
    let found = (answer.status, answer.reason());
    assert_eq!(found, (404, "customer-unknown".to_owned()));
}

//= CTL-1 accepted
//= CTL-1 refused
#[test]
fn a_customer_withdraws_from_every_tpp_at_once() {
    let gate = gate();
    let by_aisp = |call: Call| call.by(&gate.world().aisp);
    accepted(&gate, &accounts(PSU));
    accepted(&gate, &by_aisp(accounts(OTHER_PSU)));
    let all = json!({ "customer": CUSTOMER });
    let counts = vec![at(AISP, 1, 0), at(TPP, 1, 0)];
    assert_eq!(withdraw(&gate, &all), (2, 0, counts));
    needs_sca(&gate, &accounts(PSU));
    needs_sca(&gate, &by_aisp(accounts(OTHER_PSU)));
    // The other customer of the same TPP is not concerned.
    accepted(&gate, &accounts(THIRD_PSU));
    // Repeated after a lost answer.
    let counts = vec![at(AISP, 0, 0), at(TPP, 0, 0)];
    assert_eq!(withdraw(&gate, &all), (0, 0, counts));
    // The bindings are there still, without a consent.
    let listed = tell(&gate, "/psu/list", &all);
    let accesses = listed["accesses"].as_array().unwrap();
    assert_eq!(accesses.len(), 2);
    for access in accesses {
        assert_eq!(access["contexts"][0]["consent"], Value::Null, "{access}");
    }
    is_unknown(&gate.tell("/psu/withdraw", &json!({ "customer": "0042" })));
}

//= CTL-1 accepted
//= CTL-1 refused
#[test]
fn a_customer_withdraws_from_one_tpp_in_any_spelling() {
    let gate = gate();
    let by_aisp = accounts(OTHER_PSU).by(&gate.world().aisp);
    let of_tpp = json!({ "customer": CUSTOMER, "tpp": "psdno-fsa-111-111" });
    assert_eq!(withdraw(&gate, &of_tpp), (1, 0, vec![at(AISP, 1, 0)]));
    needs_sca(&gate, &by_aisp);
    accepted(&gate, &accounts(PSU));
    // The customer has nothing at this TPP.
    let elsewhere = json!({ "customer": OTHER_CUSTOMER, "tpp": AISP });
    is_unknown(&gate.tell("/psu/withdraw", &elsewhere));
    accepted(&gate, &accounts(THIRD_PSU));
}

//= CTL-1 accepted
//= CTL-1 refused
#[test]
fn the_accounts_that_remain_are_still_read() {
    let gate = gate();
    let is_unknown = |call: &Call| {
        refused(&gate, call, 404, "RESOURCE_UNKNOWN", "account-unknown");
    };
    let by_aisp = |account: &str| balances(OTHER_PSU, account).by(&gate.world().aisp);
    accepted(&gate, &by_aisp("a-1"));
    let left =
        |accounts: &[&str]| json!({ "customer": CUSTOMER, "tpp": AISP, "accounts_left": accounts });
    let narrowed = withdraw(&gate, &left(&["a-2", "a-9"]));
    assert_eq!(narrowed, (0, 1, vec![at(AISP, 0, 1)]));
    is_unknown(&by_aisp("a-1"));
    // An account that the consent did not include is not added.
    is_unknown(&by_aisp("a-9"));
    accepted(&gate, &by_aisp("a-2"));
    accepted(&gate, &balances(PSU, "a-1"));
    let again = withdraw(&gate, &left(&["a-2", "a-9"]));
    assert_eq!(again, (0, 0, vec![at(AISP, 0, 0)]));
    // At every TPP: a consent to all accounts is narrowed, and one of which nothing remains ends.
    let everywhere = json!({ "customer": CUSTOMER, "accounts_left": ["a-1"] });
    let counts = vec![at(AISP, 1, 0), at(TPP, 0, 1)];
    assert_eq!(withdraw(&gate, &everywhere), (1, 1, counts));
    needs_sca(&gate, &by_aisp("a-2"));
    accepted(&gate, &balances(PSU, "a-1"));
    is_unknown(&balances(PSU, "a-2"));
    accepted(&gate, &balances(THIRD_PSU, "a-2"));
}

//= CTL-1 accepted
//= CTL-1 refused
#[test]
fn a_customer_withdraws_from_one_agreement() {
    let gate = gate();
    // Without a key: the earlier one stays.
    bind(
        &gate,
        json!({ "tpp": TPP, "psu_id": PSU, "psu_corporate_id": AGREEMENT }),
    );
    let corporate = accounts(PSU).with("PSU-Corporate-ID", AGREEMENT);
    accepted(&gate, &corporate);
    let of = |agreement: &str| json!({ "customer": CUSTOMER, "psu_corporate_id": agreement });
    let unknown = gate.tell("/psu/withdraw", &of(THIRD_PSU));
    let found = (unknown.status, unknown.reason());
    assert_eq!(found, (404, "agreement-unknown".to_owned()));
    accepted(&gate, &corporate);
    let counts = vec![at(AISP, 0, 0), at(TPP, 1, 0)];
    assert_eq!(withdraw(&gate, &of(AGREEMENT)), (1, 0, counts));
    needs_sca(&gate, &corporate);
    accepted(&gate, &accounts(PSU));
    let counts = vec![at(AISP, 0, 0), at(TPP, 0, 0)];
    assert_eq!(withdraw(&gate, &of(AGREEMENT)), (0, 0, counts));
}

/// The EBA's register with both TPPs, of which one has a name.
fn register(now: Timestamp) -> String {
    let digits = now.to_string();
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let entity = |id: &str, more: Value| {
        json!({
            "CA_OwnerID": "NO_FSA",
            "EntityCode": format!("NO_FSA!7{id}"),
            "EntityType": "PSD_PI",
            "Properties": [{ "ENT_NAT_REF_COD": id }, more, { "ENT_AUT": ["2019-01-01"] }],
            "Services": [{ "NO": ["PS_070", "PS_080"] }],
            "__EBA_EntityVersion": format!("{digits}000"),
        })
    };
    let entities = [
        entity("123456", json!({ "ENT_NAM": "Eksempel & Co" })),
        entity("111111", json!({})),
    ];
    json!([[{ "__EBA_Disclaimer": ["x"] }], entities]).to_string()
}

/// The name is that of the register, and the day of the last use appears with the first use.
//= CTL-1 accepted
#[test]
fn the_list_has_names_and_the_day_of_the_last_use() {
    let now = Clock::System.now();
    let gate = Gate::builder()
        .strangers()
        .file("eba.json", register(now))
        .line("registers: {check: on, eba: eba.json}")
        .start();
    for (tpp, psu) in [(TPP, PSU), (AISP, OTHER_PSU)] {
        let who = json!({ "tpp": tpp, "psu_id": psu, "customer": CUSTOMER });
        bind(&gate, who);
    }
    let listed = || {
        let listed = tell(&gate, "/psu/list", &json!({ "customer": CUSTOMER }));
        let found = listed["accesses"].as_array().unwrap().iter().map(|access| {
            let used = &access["contexts"][0]["last_used"];
            (
                access["tpp"].clone(),
                access["tpp_name"].clone(),
                used.clone(),
            )
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(tpp, ..)| tpp.to_string());
        found
    };
    let of = |used: Value| {
        let name = json!("Eksempel & Co");
        vec![
            (json!(AISP), Value::Null, Value::Null),
            (json!(TPP), name, used),
        ]
    };
    assert_eq!(listed(), of(Value::Null));
    accepted(&gate, &accounts(PSU));
    eventually("the day of the use is written", || {
        let listed = listed();
        // The test may run over midnight.
        let days = [now, gate.now()].map(|at| json!(&at.to_string()[..10]));
        days.into_iter().any(|day| listed == of(day))
    });
}
