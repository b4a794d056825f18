//! The end of an SCA.

use super::bank::{
    AGREEMENT, Bank, OTHER_PSU, OTHER_TPP, PSU, Site, TPP, bank, corporate_id, fails,
    foreign_token, free_address, payment, pending, psu_id,
};
use crate::audit::records;
use portvakt::{
    interface::{TppId, headers::PsuContext, operations::Environment},
    sca::Pending,
};
use serde_json::{Value, json};
use std::time::Duration;

const COMPLETED: &str = "https://tpp.example/back?a=b\
     &psu-id=0192f0c1-5a5b-7def-8000-1234567890ab&tpp-session-id=session-1&context=PRIVATE";

fn private(request: &str) -> Value {
    json!({ "request": request, "psu_id": PSU, "context": "PRIVATE" })
}

/// The state of a PSU.
fn known(bank: &Bank, psu: &str) -> Value {
    let answer = bank.post("/psu/read", &json!({ "tpp": TPP, "psu_id": psu }));
    if answer.status == 404 {
        fails(&answer, 404, "NOT_FOUND", "psu-unknown");
        return Value::Null;
    }
    assert_eq!(answer.status, 200);
    answer.json()
}

#[test]
fn what_is_asked_can_be_read() {
    let (_site, bank) = bank();
    let token = bank.token(&Pending {
        preferred: false,
        context: Some(PsuContext::Corporate),
        corporate: Some(corporate_id(AGREEMENT)),
        psu: Some(psu_id(PSU)),
        ..payment()
    });
    let answer = bank.post("/sca/read", &json!({ "request": token }));
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({
            "tpp": TPP,
            "tpp_name": "Tredjepart AS",
            "operation": "payment-create",
            "resource": "/v1/payments/p/1",
            "asks_consent": false,
            "context": "CORPORATE",
            "psu_corporate_id": AGREEMENT,
            "psu_known": true,
            "redirect_preferred": false,
            "expires": "2027-01-15T08:15:00Z",
        })
    );
    let answer = bank.post("/sca/read", &json!({ "request": bank.token(&pending()) }));
    let body = answer.json();
    assert_eq!(body["asks_consent"], true);
    assert_eq!(body["psu_known"], false);
    assert!(body["context"].is_null() && body["psu_corporate_id"].is_null());
    // An agreement without a context is chosen all the same.
    let agreement = bank.token(&Pending {
        corporate: Some(corporate_id(AGREEMENT)),
        ..pending()
    });
    let answer = bank.post("/sca/read", &json!({ "request": agreement }));
    assert_eq!(answer.json()["context"], "CORPORATE");
    let nameless = bank.token(&Pending {
        tpp_name: String::new(),
        ..pending()
    });
    let answer = bank.post("/sca/read", &json!({ "request": nameless }));
    assert!(answer.json()["tpp_name"].is_null());
}

//= SCA-10 accepted
//= SCA-12 accepted
#[test]
fn a_completion_is_kept_once_and_said_as_often_as_asked() {
    let (_site, bank) = bank();
    let token = bank.token(&pending());
    for minutes in [0, 5, 14] {
        bank.after(Duration::from_secs(60 * minutes));
        let answer = bank.post("/sca/complete", &private(&token));
        assert_eq!(answer.status, 200, "{}", answer.json());
        assert_eq!(answer.json(), json!({ "redirect_uri": COMPLETED }));
        assert_eq!(
            known(&bank, PSU),
            json!({
                "last_sca": "2027-01-15T08:00:00Z",
                "session": { "completed": "2027-01-15T08:00:00Z" },
                "contexts": [{
                    "context": "PRIVATE",
                    "last_sca": "2027-01-15T08:00:00Z",
                    "consent": { "given": "2027-01-15T08:00:00Z", "accounts": "all" },
                }],
            })
        );
    }
    // A completion with explicit default values is the same completion.
    let mut same = private(&token);
    same["consent"] = json!(true);
    assert_eq!(
        bank.post("/sca/complete", &same).json()["redirect_uri"],
        COMPLETED
    );
}

/// A consent is refused for an account id that no path can contain.
//= HTTP-10 refused
#[test]
fn account_ids_that_no_path_can_have() {
    let (_site, bank) = bank();
    let token = bank.token(&pending());
    let mut completion = private(&token);
    for id in [
        "acc-9 ",
        "acc%2D9",
        "acc-9;x",
        "acc-9\u{feff}",
        "",
        &"x".repeat(129),
    ] {
        completion["accounts"] = json!([id]);
        let answer = bank.post("/sca/complete", &completion);
        assert_eq!(answer.status, 400, "{id}");
        let said = String::from_utf8(answer.body).unwrap();
        assert!(said.contains("bank.account_ids"), "{said}");
    }
    assert_eq!(known(&bank, PSU), Value::Null);
    completion["accounts"] = json!(["acc-9"]);
    assert_eq!(bank.post("/sca/complete", &completion).status, 200);
}

//= SCA-12 refused
#[test]
fn another_end_of_the_same_sca_is_refused() {
    let (_site, bank) = bank();
    let token = bank.token(&pending());
    assert_eq!(bank.post("/sca/complete", &private(&token)).status, 200);
    let before = known(&bank, PSU);
    bank.after(Duration::from_secs(60));
    let others = [
        ("psu_id", json!(OTHER_PSU)),
        ("consent", json!(false)),
        ("accounts", json!(["1"])),
    ];
    for (member, value) in others {
        let mut other = private(&token);
        other[member] = value;
        let answer = bank.post("/sca/complete", &other);
        fails(&answer, 409, "CONFLICT", "sca-finished");
        assert!(answer.json().get("redirect_uri").is_none());
    }
    let failure = json!({ "request": token, "system": "sca", "status": 400, "code": "SCA_INVALID", "message": "no" });
    fails(
        &bank.post("/sca/fail", &failure),
        409,
        "CONFLICT",
        "sca-finished",
    );
    assert_eq!(known(&bank, PSU), before);
    assert_eq!(known(&bank, OTHER_PSU), Value::Null);
}

//= SCA-12 refused
#[test]
fn tokens_that_do_not_open() {
    let (_site, bank) = bank();
    let token = bank.token(&pending());
    let production = bank.token(&Pending {
        environment: Environment::Production,
        ..pending()
    });
    let foreign = foreign_token(&pending());
    for call in ["/sca/read", "/sca/complete", "/sca/fail"] {
        let ask = |token: &str| {
            let mut body = json!({ "request": token });
            if call == "/sca/complete" {
                body = private(token);
            } else if call == "/sca/fail" {
                body = json!({ "request": token, "system": "s", "status": 400, "code": "SCA_INVALID", "message": "m" });
            }
            bank.post(call, &body)
        };
        bank.after(Duration::from_secs(899));
        for altered in [&token[1..], "", &foreign] {
            fails(&ask(altered), 400, "SCA_INVALID", "sca-request-invalid");
        }
        fails(&ask(&production), 400, "SCA_INVALID", "sca-request-foreign");
        bank.after(Duration::from_secs(900));
        fails(&ask(&token), 410, "SCA_EXPIRED", "sca-request-expired");
    }
    assert_eq!(known(&bank, PSU), Value::Null);
}

//= SCA-12 refused
#[test]
fn another_psu_than_the_one_named_ends_it_as_failed() {
    let (_site, bank) = bank();
    let token = bank.token(&Pending {
        psu: Some(psu_id(OTHER_PSU)),
        ..pending()
    });
    let mut redirects = Vec::new();
    for minutes in [0, 5] {
        bank.after(Duration::from_secs(60 * minutes));
        let answer = bank.post("/sca/complete", &private(&token));
        fails(&answer, 409, "PSU_CREDENTIALS_INVALID", "psu-other");
        let redirect = answer.json()["redirect_uri"].as_str().unwrap().to_owned();
        assert!(
            redirect.starts_with("https://tpp.example/back?a=b&system=portvakt&status=401&code=PSU_CREDENTIALS_INVALID&message=The%20SCA"),
            "{redirect}"
        );
        redirects.push(redirect);
    }
    assert_eq!(redirects[0], redirects[1]);
    assert_eq!(known(&bank, PSU), Value::Null);
    // The token is used: a completion with the right PSU is too late.
    let mut right = private(&token);
    right["psu_id"] = json!(OTHER_PSU);
    fails(
        &bank.post("/sca/complete", &right),
        409,
        "CONFLICT",
        "sca-finished",
    );
    assert_eq!(known(&bank, OTHER_PSU), Value::Null);
    // A completed SCA is not undone.
    let token = bank.token(&Pending {
        psu: Some(psu_id(PSU)),
        ..pending()
    });
    assert_eq!(bank.post("/sca/complete", &private(&token)).status, 200);
    let mut wrong = private(&token);
    wrong["psu_id"] = json!(OTHER_PSU);
    fails(
        &bank.post("/sca/complete", &wrong),
        409,
        "CONFLICT",
        "sca-finished",
    );
    assert_eq!(bank.post("/sca/complete", &private(&token)).status, 200);
}

//= SCA-11 accepted
#[test]
fn a_failure_is_told_to_the_tpp() {
    let (_site, bank) = bank();
    let token = bank.token(&pending());
    let failure = json!({
        "request": token, "system": "sca", "status": 400, "code": "PAYMENT_FAILED", "message": "Avbrutt & forlatt",
    });
    for _ in 0..2 {
        let answer = bank.post("/sca/fail", &failure);
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.json()["redirect_uri"],
            "https://tpp.example/back?a=b&system=sca&status=400&code=PAYMENT_FAILED&message=Avbrutt%20%26%20forlatt"
        );
    }
    fails(
        &bank.post("/sca/complete", &private(&token)),
        409,
        "CONFLICT",
        "sca-finished",
    );
    let mut other = failure;
    other["message"] = json!("something else");
    fails(
        &bank.post("/sca/fail", &other),
        409,
        "CONFLICT",
        "sca-finished",
    );
    assert_eq!(known(&bank, PSU), Value::Null);
}

/// The audit says of an SCA that it failed only if it did, not because somebody reported that later.
#[test]
fn a_completed_sca_has_no_record_of_a_failure() {
    let site = Site::new();
    let bank = site.start_audited(&free_address().1);
    let kinds = || -> Vec<String> {
        let mut records = records(&site.audit());
        records.retain(|record| record["kind"] != "call");
        let kinds = records.iter().map(|record| record["kind"].as_str());
        kinds.map(|kind| kind.unwrap().to_owned()).collect()
    };
    let failure = |token: &str| {
        let failure = json!({
            "request": token, "system": "sca", "status": 400, "code": "PAYMENT_FAILED", "message": "m",
        });
        bank.post("/sca/fail", &failure)
    };
    let token = bank.token(&Pending {
        psu: Some(psu_id(PSU)),
        ..pending()
    });
    assert_eq!(bank.post("/sca/complete", &private(&token)).status, 200);
    fails(&failure(&token), 409, "CONFLICT", "sca-finished");
    // A completion for another PSU fails an SCA that has not ended.
    let mut other = private(&token);
    other["psu_id"] = json!(OTHER_PSU);
    let answer = bank.post("/sca/complete", &other);
    fails(&answer, 409, "CONFLICT", "sca-finished");
    assert_eq!(kinds(), ["sca-completed"]);
    assert_eq!(failure(&bank.token(&payment())).status, 200);
    assert_eq!(kinds(), ["sca-completed", "sca-failed"]);
}

//= SCA-11 refused
#[test]
fn a_failure_says_what_the_interface_can_say() {
    let (_site, bank) = bank();
    let good = json!({ "request": bank.token(&pending()), "system": "s", "status": 599, "code": "SYSTEM_ERROR", "message": "m" });
    let bad = [
        ("status", json!(399)),
        ("status", json!(600)),
        ("status", json!("400")),
        ("code", json!("WHATEVER")),
        ("code", json!("payment_failed")),
        ("system", json!("")),
        ("system", json!("x".repeat(65))),
        ("message", json!("x".repeat(513))),
        ("message", Value::Null),
        ("detail", json!("x")),
    ];
    for (member, value) in bad {
        let mut body = good.clone();
        body[member] = value;
        let answer = bank.post("/sca/fail", &body);
        fails(&answer, 400, "FORMAT_ERROR", "member-invalid");
        assert_eq!(answer.json()["faults"][0]["path"], member);
    }
    assert_eq!(bank.post("/sca/fail", &good).status, 200);
}

/// SCA-18: the forms of consent in a completion, and their effects.
#[test]
fn consent_is_apart_from_sca() {
    let (_site, bank) = bank();
    let table = [
        (pending(), json!({}), Some(json!("all"))),
        (pending(), json!({ "consent": true }), Some(json!("all"))),
        (pending(), json!({ "consent": false }), None),
        (pending(), json!({ "accounts": ["a", "b"] }), Some(json!(2))),
        (payment(), json!({}), None),
        (payment(), json!({ "consent": true }), Some(json!("all"))),
        (
            payment(),
            json!({ "consent": true, "accounts": ["a"] }),
            Some(json!(1)),
        ),
    ];
    for (number, (pending, said, accounts)) in table.into_iter().enumerate() {
        let psu = format!("0192f0c1-5a5b-7def-8000-{number:012}");
        let mut body =
            json!({ "request": bank.token(&pending), "psu_id": psu, "context": "PRIVATE" });
        for (name, value) in said.as_object().unwrap() {
            body[name] = value.clone();
        }
        assert_eq!(bank.post("/sca/complete", &body).status, 200, "{number}");
        let consent = &known(&bank, &psu)["contexts"][0]["consent"];
        assert_eq!(consent.get("accounts"), accounts.as_ref(), "{number}");
    }
    // A consent that names no accounts.
    for (pending, said) in [(payment(), Value::Null), (pending(), json!(false))] {
        let mut body = private(&bank.token(&pending));
        body["accounts"] = json!(["a"]);
        body["consent"] = said;
        fails(
            &bank.post("/sca/complete", &body),
            400,
            "FORMAT_ERROR",
            "member-invalid",
        );
    }
    assert_eq!(known(&bank, PSU), Value::Null);
}

//= SCA-10 accepted
#[test]
fn a_corporate_context_is_that_of_one_agreement() {
    let (_site, bank) = bank();
    let corporate = |request: &str| json!({ "request": request, "psu_id": PSU, "context": "CORPORATE", "psu_corporate_id": AGREEMENT });
    let free = bank.token(&pending());
    let answer = bank.post("/sca/complete", &corporate(&free));
    assert_eq!(
        answer.json()["redirect_uri"],
        format!(
            "https://tpp.example/back?a=b&psu-id={PSU}&psu-corporate-id={AGREEMENT}&tpp-session-id=session-1&context=CORPORATE"
        )
    );
    assert_eq!(known(&bank, PSU)["contexts"][0]["context"], "CORPORATE");

    // Members that exclude each other.
    let mut without = corporate(&free);
    without.as_object_mut().unwrap().remove("psu_corporate_id");
    let mut with = private(&free);
    with["psu_corporate_id"] = json!(AGREEMENT);
    for body in [without, with] {
        let answer = bank.post("/sca/complete", &body);
        fails(&answer, 400, "FORMAT_ERROR", "member-invalid");
        assert_eq!(answer.json()["faults"][0]["path"], "psu_corporate_id");
    }

    // The choice of the TPP stays, and the SCA can still be completed.
    let chosen = [
        (None, Some(corporate_id(AGREEMENT))),
        (Some(PsuContext::Corporate), None),
        (Some(PsuContext::Corporate), Some(corporate_id(AGREEMENT))),
    ];
    for (context, agreement) in chosen {
        let token = bank.token(&Pending {
            context,
            corporate: agreement,
            ..pending()
        });
        fails(
            &bank.post("/sca/complete", &private(&token)),
            409,
            "CONFLICT",
            "context-other",
        );
        if agreement.is_some() {
            let mut other = corporate(&token);
            other["psu_corporate_id"] = json!(PSU);
            fails(
                &bank.post("/sca/complete", &other),
                409,
                "CONFLICT",
                "context-other",
            );
        }
        assert_eq!(bank.post("/sca/complete", &corporate(&token)).status, 200);
    }
    let token = bank.token(&Pending {
        context: Some(PsuContext::Private),
        ..pending()
    });
    fails(
        &bank.post("/sca/complete", &corporate(&token)),
        409,
        "CONFLICT",
        "context-other",
    );
    assert_eq!(bank.post("/sca/complete", &private(&token)).status, 200);
}

//= SCA-19 refused
#[test]
fn a_psu_of_one_tpp_is_never_bound_to_another() {
    let (_site, bank) = bank();
    assert_eq!(
        bank.post("/sca/complete", &private(&bank.token(&pending())))
            .status,
        200
    );
    let before = known(&bank, PSU);
    let token = bank.token(&Pending {
        tpp: TppId::parse(OTHER_TPP).unwrap(),
        ..pending()
    });
    fails(
        &bank.post("/sca/complete", &private(&token)),
        409,
        "CONFLICT",
        "psu-bound-elsewhere",
    );
    let metrics = String::from_utf8(bank.send(&super::bank::get("/metrics", "")).body).unwrap();
    assert!(
        metrics.contains("portvakt_psu_bound_elsewhere_total{by=\"completion\"} 1"),
        "{metrics}"
    );
    assert_eq!(known(&bank, PSU), before);
    // The token is not used: a completion with the right PSU-ID succeeds.
    let mut right = private(&token);
    right["psu_id"] = json!(OTHER_PSU);
    assert_eq!(bank.post("/sca/complete", &right).status, 200);
}

#[test]
fn any_replica_finishes_what_another_began() {
    let (site, first) = bank();
    let second = site.start(&free_address().1);
    let token = first.token(&pending());
    assert_eq!(
        second.post("/sca/complete", &private(&token)).json()["redirect_uri"],
        COMPLETED
    );
    assert_eq!(
        first.post("/sca/complete", &private(&token)).json()["redirect_uri"],
        COMPLETED
    );
    let mut other = private(&token);
    other["psu_id"] = json!(OTHER_PSU);
    fails(
        &first.post("/sca/complete", &other),
        409,
        "CONFLICT",
        "sca-finished",
    );
    // Of many concurrent completions, one uses the token.
    let token = first.token(&pending());
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let bank = if number % 2 == 0 { &first } else { &second };
                let mut body = private(&token);
                body["psu_id"] = json!(format!("0192f0c1-5a5b-7def-8000-{number:012}"));
                scope.spawn(move || bank.post("/sca/complete", &body).status)
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(
        ends.iter().filter(|status| **status == 200).count(),
        1,
        "{ends:?}"
    );
    assert_eq!(
        ends.iter().filter(|status| **status == 409).count(),
        7,
        "{ends:?}"
    );
}
