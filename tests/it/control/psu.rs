//! PSUs, one by one and from a file.

use super::bank::{AGREEMENT, NOW, OTHER_PSU, OTHER_TPP, PSU, Site, TPP, bank, fails, get};
use portvakt::{
    clock::Clock,
    control::import::{ImportJob, import},
    interface::{TppId, path::AccountIds},
    state::PsuRef,
};
use serde_json::{Value, json};
use std::{fmt::Write, io::Cursor, sync::Arc};

const DECEMBER: &str = "2026-12-01T00:00:00Z";
const NOVEMBER: &str = "2026-11-01T00:00:00Z";
const OCTOBER: &str = "2026-10-01T00:00:00Z";

//= SCA-19 accepted
#[test]
fn a_psu_is_brought_in_and_up_to_date() {
    let (_site, bank) = bank();
    let who = json!({ "tpp": TPP.to_lowercase(), "psu_id": PSU.to_uppercase() });
    fails(
        &bank.post("/psu/read", &who),
        404,
        "NOT_FOUND",
        "psu-unknown",
    );
    let mut bind = who.clone();
    bind["last_sca"] = json!(NOVEMBER);
    let bound = |word: &str, changed: &[&str]| json!({ "bound": word, "changed": changed });
    assert_eq!(
        bank.post("/psu/bind", &bind).json(),
        bound("new", &["binding", "context", "last_sca"])
    );
    assert_eq!(
        bank.post("/psu/bind", &bind).json(),
        bound("unchanged", &[])
    );
    let expected = json!({
        "last_sca": NOVEMBER,
        "session": null,
        "contexts": [{ "context": "PRIVATE", "last_sca": NOVEMBER, "consent": null }],
    });
    assert_eq!(bank.post("/psu/read", &who).json(), expected);
    bind["last_sca"] = json!(DECEMBER);
    bind["consent_at"] = json!(NOVEMBER);
    bind["accounts"] = json!(["1", "2", "1"]);
    assert_eq!(
        bank.post("/psu/bind", &bind).json(),
        bound("changed", &["last_sca", "consent"])
    );
    let context = &bank.post("/psu/read", &who).json()["contexts"][0];
    assert_eq!(context["last_sca"], DECEMBER);
    assert_eq!(
        context["consent"],
        json!({ "given": NOVEMBER, "accounts": 2 })
    );
    // Fewer accounts with an older consent: refused, and the answer names the way.
    let mut narrower = bind.clone();
    narrower["consent_at"] = json!(OCTOBER);
    narrower["accounts"] = json!(["1"]);
    let before = bank.post("/psu/read", &who).json();
    let refused = bank.post("/psu/bind", &narrower);
    fails(&refused, 409, "CONFLICT", "consent-outdated");
    assert_eq!(bank.post("/psu/read", &who).json(), before);
    let given = &before["contexts"][0]["consent"]["given"];
    narrower["consent_at"] = given.clone();
    assert_eq!(
        bank.post("/psu/bind", &narrower).json(),
        bound("changed", &["consent"])
    );
    let context = &bank.post("/psu/read", &who).json()["contexts"][0];
    assert_eq!(context["consent"]["accounts"], 1);
    // The binding creates no session: a session needs an SCA.
    assert!(bank.post("/psu/read", &who).json()["session"].is_null());
}

//= SCA-19 refused
#[test]
fn what_cannot_be_bound() {
    let (_site, bank) = bank();
    let good = json!({ "tpp": TPP, "psu_id": PSU, "last_sca": DECEMBER });
    let bad = [
        ("tpp", json!("FSA-1")),
        ("psu_id", json!(PSU.replace('-', ""))),
        ("last_sca", json!("2027-01-15T08:00:01Z")),
        ("last_sca", json!("2026-12-01")),
        ("last_sca", Value::Null),
        ("consent_at", json!("tomorrow")),
        ("accounts", json!(["1"])),
        ("psu_corporate_id", json!("x")),
        ("psu-corporate-id", json!(AGREEMENT)),
    ];
    for (member, value) in bad {
        let mut body = good.clone();
        body[member] = value;
        let answer = bank.post("/psu/bind", &body);
        fails(&answer, 400, "FORMAT_ERROR", "member-invalid");
        assert_eq!(
            answer.json()["faults"][0]["path"],
            member,
            "{}",
            answer.json()
        );
        assert!(!String::from_utf8(answer.body).unwrap().contains(&PSU[..8]));
    }
    assert_eq!(bank.post("/psu/bind", &good).status, 200);
    let mut other = good;
    other["tpp"] = json!(OTHER_TPP);
    fails(
        &bank.post("/psu/bind", &other),
        409,
        "CONFLICT",
        "psu-bound-elsewhere",
    );
    let metrics = String::from_utf8(bank.send(&get("/metrics", "")).body).unwrap();
    assert!(metrics.contains("portvakt_psu_bound_elsewhere_total{by=\"bind\"} 1"));
    other.as_object_mut().unwrap().remove("last_sca");
    fails(
        &bank.post("/psu/read", &other),
        404,
        "NOT_FOUND",
        "psu-unknown",
    );
}

//= SCA-13 accepted
//= SCA-13 refused
#[test]
fn what_was_given_is_taken_back() {
    let (_site, bank) = bank();
    let who = json!({ "tpp": TPP, "psu_id": PSU });
    let with = |members: &[(&str, &str)]| {
        let mut body = who.clone();
        for (name, value) in members {
            body[*name] = json!(value);
        }
        body
    };
    let consents = || {
        let known = bank.post("/psu/read", &who).json();
        let contexts = known["contexts"].as_array().unwrap().clone();
        let mut given: Vec<_> = contexts
            .iter()
            .filter(|context| !context["consent"].is_null())
            .map(|context| context["context"].as_str().unwrap().to_owned())
            .collect();
        given.sort();
        given
    };
    let agreement = ("psu_corporate_id", AGREEMENT);
    let bind_all = || {
        for more in [&[][..], &[agreement]] {
            let times = [("last_sca", DECEMBER), ("consent_at", DECEMBER)];
            let body = with(&[&times[..], more].concat());
            assert_eq!(bank.post("/psu/bind", &body).status, 200);
        }
        assert_eq!(consents(), ["CORPORATE", "PRIVATE"]);
    };
    fails(
        &bank.post("/psu/withdraw", &with(&[("what", "consent")])),
        404,
        "NOT_FOUND",
        "psu-unknown",
    );
    bind_all();
    let withdraw = |members: &[(&str, &str)], withdrawn: u64, left: u64| {
        let answer = bank.post("/psu/withdraw", &with(members));
        assert_eq!(answer.status, 200, "{}", answer.json());
        let expected = json!({ "withdrawn": withdrawn, "consents_left": left });
        assert_eq!(answer.json(), expected);
    };
    // An agreement that the PSU does not have: nothing is withdrawn, and the answer says so.
    let unknown = [("what", "consent"), ("psu_corporate_id", OTHER_PSU)];
    let answer = bank.post("/psu/withdraw", &with(&unknown));
    fails(&answer, 404, "NOT_FOUND", "agreement-unknown");
    assert_eq!(consents(), ["CORPORATE", "PRIVATE"]);
    withdraw(&[("what", "consent"), agreement], 1, 1);
    withdraw(&[("what", "consent"), agreement], 0, 1);
    assert_eq!(consents(), ["PRIVATE"]);
    withdraw(&[("what", "consent")], 1, 0);
    assert_eq!(consents(), [""; 0]);
    withdraw(&[("what", "consents")], 0, 0);
    withdraw(&[("what", "session")], 0, 0);
    // A consent that is corporate, and the agreement left out.
    let unbound = bank.post("/psu/unbind", &who).json();
    let expected = json!({ "unbound": true, "sessions": 0, "consents": 0 });
    assert_eq!(unbound, expected);
    let times = [("last_sca", DECEMBER), ("consent_at", DECEMBER), agreement];
    assert_eq!(bank.post("/psu/bind", &with(&times)).status, 200);
    let answer = bank.post("/psu/withdraw", &with(&[("what", "consent")]));
    fails(&answer, 409, "CONFLICT", "agreement-missing");
    assert_eq!(consents(), ["CORPORATE"]);
    withdraw(&[("what", "consents")], 1, 0);
    for bad in [
        &[("what", "everything")][..],
        &[],
        &[("what", "session"), agreement],
        &[("what", "consents"), agreement],
    ] {
        fails(
            &bank.post("/psu/withdraw", &with(bad)),
            400,
            "FORMAT_ERROR",
            "member-invalid",
        );
    }
    // What takes something away finds the TPP in every spelling of its identity; what gives something does not (FWD-6).
    bind_all();
    let mut alike = with(&[("what", "consent")]);
    alike["tpp"] = json!("PSDNO-FSA-123-456");
    let answer = bank.post("/psu/withdraw", &alike);
    assert_eq!(answer.json(), json!({ "withdrawn": 1, "consents_left": 1 }));
    assert_eq!(consents(), ["CORPORATE"]);
    alike.as_object_mut().unwrap().remove("what");
    let read = bank.post("/psu/read", &alike);
    fails(&read, 404, "NOT_FOUND", "psu-unknown");
    let mut bind = alike.clone();
    bind["last_sca"] = json!(DECEMBER);
    let bound = bank.post("/psu/bind", &bind);
    fails(&bound, 409, "CONFLICT", "psu-bound-elsewhere");
    let answer = bank.post("/psu/unbind", &alike);
    assert_eq!(
        answer.json(),
        json!({ "unbound": true, "sessions": 0, "consents": 1 })
    );
    let read = bank.post("/psu/read", &who);
    fails(&read, 404, "NOT_FOUND", "psu-unknown");
    let mut other = with(&[("what", "consent")]);
    other["tpp"] = json!(OTHER_TPP);
    fails(
        &bank.post("/psu/withdraw", &other),
        404,
        "NOT_FOUND",
        "psu-unknown",
    );
}

/// SCA-19: valid lines are kept, even between invalid ones.
#[test]
fn a_file_of_psus() {
    let site = Site::new();
    let kept = Arc::new(site.open());
    let mut file = String::new();
    for number in 0..5_000 {
        if number % 1_000 == 500 {
            file.push_str("{\"tpp\": \"PSDNO-FSA-123456\"}\n");
        }
        writeln!(
            file,
            "{{\"tpp\":\"{TPP}\",\"psu_id\":\"0192f0c1-5a5b-7def-8000-{number:012}\",\"last_sca\":\"{DECEMBER}\",\"consent_at\":\"{NOVEMBER}\"}}"
        )
        .unwrap();
    }
    let elsewhere = format!(
        "{{\"tpp\":\"{OTHER_TPP}\",\"psu_id\":\"0192f0c1-5a5b-7def-8000-000000000000\",\"last_sca\":\"{DECEMBER}\"}}"
    );
    file.push_str("\nnonsense 01010112345");
    let clock = Clock::standing(NOW);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let run = |text: String| {
        let mut progress = Vec::new();
        let ids = AccountIds::default();
        let job = ImportJob {
            store: &kept,
            clock: &clock,
            account_ids: &ids,
            mapping: None,
            dry_run: false,
        };
        let imported = import(Cursor::new(text), job, &mut progress);
        (
            runtime.block_on(imported).unwrap(),
            String::from_utf8(progress).unwrap(),
        )
    };
    for _ in 0..2 {
        let (imported, said) = run(file.clone());
        assert_eq!((imported.kept, imported.bad), (5_000, 6));
        assert!(said.contains("line 501: psu_id: it is missing; it must be a UUID with its hyphens; last_sca: it is missing"), "{said}");
        assert!(
            said.contains("line 5007: it is not a JSON object"),
            "{said}"
        );
        assert!(said.contains("5000 kept, 6 not"), "{said}");
        assert!(!said.contains("0192f0c1") && !said.contains("01010112345"));
    }
    let (imported, said) = run(elsewhere);
    assert_eq!((imported.kept, imported.bad), (0, 1));
    assert!(
        said.starts_with("line 1: psu_id: it belongs to another TPP"),
        "{said}"
    );
    let (imported, said) = run("x\n".repeat(1_000));
    assert_eq!((imported.kept, imported.bad), (0, 1_000));
    assert!(said.lines().count() < 110);
    let tpp = TppId::parse(TPP).unwrap();
    for number in [0, 4_999] {
        let psu = super::bank::psu_id(&format!("0192f0c1-5a5b-7def-8000-{number:012}"));
        let found = runtime
            .block_on(kept.psu_now(PsuRef { tpp: &tpp, psu }))
            .unwrap();
        assert_eq!(found.unwrap().last_sca.unwrap().unix(), 1_796_083_200);
    }
}
