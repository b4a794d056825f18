//! CTL-1: the key of a customer at the control listener: how it comes in, what a list shows of it, how it goes.

use super::bank::{
    AGREEMENT, Bank, NOW, OTHER_PSU, OTHER_TPP, PSU, Site, TPP, bank, fails, free_address, pending,
    psu_id,
};
use crate::{audit::records, harness::eventually};
use jiff::tz::TimeZone;
use portvakt::{
    clock::Clock,
    control::import::{ImportJob, Mapping, import},
    interface::path::AccountIds,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, io::Cursor, path::Path, sync::Arc};

const DECEMBER: &str = "2026-12-01T00:00:00Z";
const NOVEMBER: &str = "2026-11-01T00:00:00Z";

const CUSTOMER: &str = "K 0042/æ";

/// A call that succeeds. No PSU-ID and no key is in its answer.
fn tell(bank: &Bank, path: &str, body: &Value) -> Value {
    let answer = bank.post(path, body);
    assert_eq!(answer.status, 200, "{}", answer.json());
    let text = answer.json().to_string();
    assert!(!text.contains(&PSU[..8]), "{text}");
    assert!(!text.contains("0042"), "{text}");
    answer.json()
}

/// The accesses of the customer; `None` if no PSU-ID has the key.
fn accesses(bank: &Bank, customer: &str) -> Option<Vec<Value>> {
    let body = json!({ "customer": customer });
    let answer = bank.post("/psu/list", &body);
    if answer.status == 404 {
        fails(&answer, 404, "NOT_FOUND", "customer-unknown");
        return None;
    }
    let listed = tell(bank, "/psu/list", &body);
    assert_eq!(listed["more"], false);
    Some(listed["accesses"].as_array().unwrap().clone())
}

fn bind(bank: &Bank, mut who: Value) -> Value {
    who["last_sca"] = json!(DECEMBER);
    who["consent_at"] = json!(NOVEMBER);
    tell(bank, "/psu/bind", &who)
}

//= CTL-1 accepted
#[test]
fn a_list_shows_times_and_ends_and_what_the_call_names() {
    let (_site, bank) = bank();
    assert_eq!(accesses(&bank, CUSTOMER), None);
    let mut who =
        json!({ "tpp": TPP, "psu_id": PSU, "psu_corporate_id": AGREEMENT, "accounts": ["1", "2"] });
    // The key comes later, and another one replaces it.
    bind(&bank, who.clone());
    for customer in ["another", CUSTOMER] {
        who["customer"] = json!(customer);
        let bound = bind(&bank, who.clone());
        assert_eq!(
            bound,
            json!({ "bound": "changed", "changed": ["customer"] })
        );
    }
    assert_eq!(bind(&bank, who)["bound"], "unchanged");
    assert_eq!(accesses(&bank, "another"), None);
    let named = json!({
        "customer": CUSTOMER,
        "accounts": ["9", "1"],
        "psu_corporate_ids": [OTHER_PSU, AGREEMENT.to_uppercase()],
    });
    let expected = json!({
        "tpp": TPP,
        "tpp_name": null,
        "last_sca": DECEMBER,
        "sca_ends": "2027-05-30T00:00:00Z",
        "session": null,
        "contexts": [{
            "context": "CORPORATE",
            "psu_corporate_id": AGREEMENT,
            "last_sca": DECEMBER,
            "consent": {
                "given": NOVEMBER,
                "ends": "2027-05-30T00:00:00Z",
                "accounts": 2,
                "named": [
                    { "account": "1", "included": true },
                    { "account": "9", "included": false },
                ],
                "details_without_psu_end": "2027-01-30T00:00:00Z",
            },
            "last_used": null,
        }],
    });
    let listed = bank.post("/psu/list", &named).json();
    assert_eq!(listed, json!({ "accesses": [expected], "more": false }));
    // What the call does not name is not in the answer.
    let unnamed = accesses(&bank, CUSTOMER).unwrap().remove(0);
    let mut context = expected["contexts"][0].clone();
    context.as_object_mut().unwrap().remove("psu_corporate_id");
    let consent = context["consent"].as_object_mut().unwrap();
    consent.remove("named");
    assert_eq!(unnamed["contexts"], json!([context]));
    // A new binding has the key too, and a second PSU-ID joins the first.
    let second = json!({ "tpp": OTHER_TPP, "psu_id": OTHER_PSU, "customer": CUSTOMER });
    let changed = json!(["binding", "context", "last_sca", "consent", "customer"]);
    assert_eq!(bind(&bank, second)["changed"], changed);
    let listed = accesses(&bank, CUSTOMER).unwrap();
    let tpps: BTreeSet<_> = listed.iter().map(|it| it["tpp"].as_str()).collect();
    assert_eq!(tpps, BTreeSet::from([Some(TPP), Some(OTHER_TPP)]));
}

//= CTL-1 accepted
//= CTL-1 refused
#[test]
fn a_completion_gives_the_key_and_is_repeated_with_it() {
    let (_site, bank) = bank();
    let token = bank.token(&pending());
    let mut done =
        json!({ "request": token, "psu_id": PSU, "context": "PRIVATE", "customer": CUSTOMER });
    let first = bank.post("/sca/complete", &done);
    assert_eq!(first.status, 200, "{}", first.json());
    assert!(!first.json().to_string().contains("0042"));
    assert_eq!(bank.post("/sca/complete", &done).json(), first.json());
    for other in [json!("another"), Value::Null] {
        done["customer"] = other;
        let answer = bank.post("/sca/complete", &done);
        fails(&answer, 409, "CONFLICT", "sca-finished");
    }
    assert_eq!(accesses(&bank, "another"), None);
    let access = accesses(&bank, CUSTOMER).unwrap().remove(0);
    let session = json!({ "completed": NOW.to_string(), "ends": "2027-01-15T09:00:00Z" });
    assert_eq!(access["session"], session);
    assert_eq!(access["contexts"][0]["consent"]["accounts"], "all");
    // Session and consent end together; a consent that is narrowed leaves the session.
    let narrowed = json!({ "customer": CUSTOMER, "accounts_left": ["1"] });
    let narrowed = tell(&bank, "/psu/withdraw", &narrowed);
    let counts = json!([{ "tpp": TPP, "withdrawn": 0, "narrowed": 1 }]);
    let expected = json!({ "withdrawn": 0, "narrowed": 1, "accesses": counts });
    assert_eq!(narrowed, expected);
    let access = accesses(&bank, CUSTOMER).unwrap().remove(0);
    assert_eq!(access["session"], session);
    assert_eq!(access["contexts"][0]["consent"]["accounts"], 1);
    let withdrawn = tell(&bank, "/psu/withdraw", &json!({ "customer": CUSTOMER }));
    assert_eq!(withdrawn["withdrawn"], 2);
    let access = accesses(&bank, CUSTOMER).unwrap().remove(0);
    assert_eq!(access["session"], Value::Null);
    assert_eq!(access["contexts"][0]["consent"], Value::Null);
}

//= CTL-1 refused
#[test]
fn faulty_members_are_named_without_their_values() {
    let (_site, bank) = bank();
    bind(
        &bank,
        json!({ "tpp": TPP, "psu_id": PSU, "customer": CUSTOMER }),
    );
    let with = |more: Value| {
        let mut body = json!({ "customer": CUSTOMER });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let long = "0042".repeat(33);
    let old = json!({ "tpp": TPP, "psu_id": PSU, "what": "consents", "accounts_left": ["1"] });
    let bound =
        json!({ "tpp": TPP, "psu_id": OTHER_PSU, "last_sca": DECEMBER, "customer": " 0042" });
    let table = [
        ("/psu/list", json!({}), "customer"),
        ("/psu/list", json!({ "customer": "" }), "customer"),
        ("/psu/list", json!({ "customer": 42 }), "customer"),
        ("/psu/list", json!({ "customer": "0042\n" }), "customer"),
        ("/psu/list", json!({ "customer": long }), "customer"),
        ("/psu/list", with(json!({ "accounts": [] })), "accounts"),
        (
            "/psu/list",
            with(json!({ "psu_corporate_ids": ["0042"] })),
            "psu_corporate_ids",
        ),
        (
            "/psu/list",
            with(json!({ "psu_corporate_ids": vec![AGREEMENT; 101] })),
            "psu_corporate_ids",
        ),
        ("/psu/list", with(json!({ "psu_id": PSU })), "psu_id"),
        ("/psu/withdraw", with(json!({ "psu_id": PSU })), "psu_id"),
        ("/psu/withdraw", with(json!({ "what": "consent" })), "what"),
        ("/psu/withdraw", with(json!({ "tpp": "FSA-1" })), "tpp"),
        (
            "/psu/withdraw",
            with(json!({ "psu_corporate_id": "0042" })),
            "psu_corporate_id",
        ),
        (
            "/psu/withdraw",
            with(json!({ "accounts_left": [] })),
            "accounts_left",
        ),
        ("/psu/withdraw", old, "accounts_left"),
        ("/psu/bind", bound, "customer"),
        ("/psu/forget", with(json!({ "tpp": TPP })), "tpp"),
    ];
    for (path, body, member) in table {
        let answer = bank.post(path, &body);
        fails(&answer, 400, "FORMAT_ERROR", "member-invalid");
        let faults = answer.json()["faults"].clone();
        assert_eq!(faults[0]["path"], member, "{faults}");
        assert!(!faults.to_string().contains("0042"), "{faults}");
    }
    // Nothing was withdrawn, and null is an absent member in both forms.
    let left = || accesses(&bank, CUSTOMER).unwrap().remove(0)["contexts"][0]["consent"].clone();
    assert_eq!(left()["accounts"], "all");
    let null = with(json!({ "psu_id": null, "what": null, "tpp": OTHER_TPP }));
    let answer = bank.post("/psu/withdraw", &null);
    fails(&answer, 404, "NOT_FOUND", "customer-unknown");
    let null = json!({ "tpp": TPP, "psu_id": PSU, "what": "consent", "customer": null, "accounts_left": null });
    let answer = tell(&bank, "/psu/withdraw", &null);
    assert_eq!(answer, json!({ "withdrawn": 1, "consents_left": 0 }));
    assert_eq!(left(), Value::Null);
}

//= CTL-1 accepted
#[test]
fn a_key_is_forgotten_and_everything_is_in_the_audit() {
    let site = Site::new();
    let bank = site.start_audited(&free_address().1);
    for (tpp, psu) in [(TPP, PSU), (OTHER_TPP, OTHER_PSU)] {
        let who = json!({ "tpp": tpp, "psu_id": psu, "customer": CUSTOMER });
        bind(&bank, who);
    }
    let customer = json!({ "customer": CUSTOMER });
    assert_eq!(tell(&bank, "/psu/withdraw", &customer)["withdrawn"], 2);
    let forgotten = |count: u64| json!({ "forgotten": count });
    assert_eq!(tell(&bank, "/psu/forget", &customer), forgotten(2));
    assert_eq!(tell(&bank, "/psu/forget", &customer), forgotten(0));
    assert_eq!(accesses(&bank, CUSTOMER), None);
    // The bindings stay.
    let who = json!({ "tpp": TPP, "psu_id": PSU });
    assert_eq!(tell(&bank, "/psu/read", &who)["last_sca"], DECEMBER);
    let of_kind = |kind: &str| {
        let mut records = records(&site.audit());
        records.retain(|record| record["kind"] == kind);
        records
    };
    eventually("all records are written", || {
        let calls = of_kind("call");
        calls.iter().any(|call| call["call"] == "/psu/read")
            && of_kind("customer-forgotten").len() == 2
    });
    let withdrawn = of_kind("withdrawn");
    let forgotten = of_kind("customer-forgotten");
    for records in [&withdrawn, &forgotten] {
        let psus: BTreeSet<_> = records.iter().map(|it| it["psu"].as_str()).collect();
        let tpps: BTreeSet<_> = records.iter().map(|it| it["tpp"].as_str()).collect();
        assert_eq!(psus.len(), 2, "{records:?}");
        assert_eq!(tpps, BTreeSet::from([Some(TPP), Some(OTHER_TPP)]));
    }
    for record in &withdrawn {
        let found = ["what", "withdrawn", "narrowed"].map(|name| record[name].clone());
        assert_eq!(found, [json!("access"), json!(1), json!(0)]);
    }
    // Each list is a recorded call, as each /psu/read is.
    let calls = of_kind("call");
    assert!(calls.iter().any(|call| call["call"] == "/psu/list"));
    let all = json!(records(&site.audit())).to_string();
    assert!(!all.contains("0042") && !all.contains(&PSU[..8]));
}

/// `portvakt psu erase` removes the row with the key.
//= CTL-1 accepted
#[test]
fn an_erased_psu_is_in_no_list() {
    let (site, bank) = bank();
    bind(
        &bank,
        json!({ "tpp": TPP, "psu_id": PSU, "customer": CUSTOMER }),
    );
    assert!(accesses(&bank, CUSTOMER).is_some());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let erased = site.open();
    let erased = runtime.block_on(erased.erase(psu_id(PSU))).unwrap();
    assert!(erased.is_some());
    assert_eq!(accesses(&bank, CUSTOMER), None);
}

//= CTL-1 accepted
//= CTL-1 refused
#[test]
fn a_file_brings_the_keys_in() {
    let site = Site::new();
    let mapping = "columns: {psu_id: PSU, last_sca: LOGIN, customer: CUSTOMER}\nvalues: {tpp: PSDNO-FSA-123456}\n";
    let mapping = Mapping::read(Path::new("m.yaml"), mapping, &TimeZone::UTC).unwrap();
    let clock = Clock::standing(NOW);
    let store = Arc::new(site.open());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let run = |text: String, mapping: Option<&Mapping>| {
        let (mut progress, ids) = (Vec::new(), AccountIds::default());
        let job = ImportJob {
            store: &store,
            clock: &clock,
            account_ids: &ids,
            mapping,
            dry_run: false,
        };
        let imported = runtime.block_on(import(Cursor::new(text), job, &mut progress));
        let progress = String::from_utf8(progress).unwrap();
        assert!(!progress.contains("0042"), "{progress}");
        (imported.unwrap(), progress)
    };
    let line = |psu: &str, customer: &str| {
        let line = json!({ "tpp": TPP, "psu_id": psu, "last_sca": DECEMBER, "customer": customer });
        format!("{line}\n")
    };
    let faulty = "0042".repeat(33);
    let (imported, said) = run(line(PSU, CUSTOMER) + &line(OTHER_PSU, &faulty), None);
    assert_eq!((imported.kept, imported.bad), (1, 1));
    let expected = "line 2: customer: it must be the bank's own key for its customer";
    assert!(said.contains(expected), "{said}");
    // An empty field names nobody.
    let rows =
        format!("PSU,LOGIN,CUSTOMER\n{OTHER_PSU},{DECEMBER},{CUSTOMER}\n{PSU},{DECEMBER},\n");
    let (imported, said) = run(rows, Some(&mapping));
    assert_eq!((imported.kept, imported.bad), (2, 0), "{said}");
    let bank = site.start(&free_address().1);
    let listed = accesses(&bank, CUSTOMER).unwrap();
    assert_eq!(listed.len(), 2);
}
