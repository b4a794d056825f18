//! Payments and baskets on the SCA page: who signs them, which are not signed, and an approval that the gateway does not hear of.

use super::super::super::ending;
use super::{
    KARI, PRODUCT, Stage, TPP, assert_redirected, form, form_of, payment_stage, pending, text,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

//= SBX-3 accepted
#[tokio::test]
async fn a_payment_is_signed_by_its_payer() {
    let pending = Arc::new(Mutex::new(pending(false, None)));
    let stage = Stage::asking(Arc::clone(&pending)).await;
    let path = stage.payment();
    pending.lock().unwrap()["resource"] = path.as_str().into();
    // For another person, the SCA fails.
    assert_redirected(&stage.identify("01010112346").await);
    let (call, said) = stage.told().remove(0);
    assert_eq!(
        (call, &said["code"]),
        ("fail", &json!("PSU_CREDENTIALS_INVALID"))
    );
    assert_eq!(stage.status(&path), "RCVD");

    let answer = stage.identify(KARI).await;
    let html = text(&answer);
    assert!(
        html.contains("NOK\u{a0}10.00") && html.contains("&lt;b&gt;Ola"),
        "{html}"
    );
    assert_redirected(&stage.press(&form(&answer), "next").await);
    let psu = stage.psu();
    let said = json!({"request": stage.request(), "psu_id": psu, "context": "PRIVATE"});
    assert_eq!(stage.told(), [("complete", said)]);
    assert_eq!(stage.status(&path), "ACTC");
}

//= SBX-7 accepted
#[tokio::test]
async fn a_basket_is_signed_payment_by_payment() {
    let pending = Arc::new(Mutex::new(pending(false, None)));
    let stage = Stage::asking(Arc::clone(&pending)).await;
    let paths = [stage.payment(), stage.payment()];
    let id = {
        let bank = stage.core.bank();
        let payments = paths
            .iter()
            .map(|path| bank.payment_at(TPP, path).unwrap().unwrap());
        let payments: Vec<_> = payments.collect();
        let kari = bank.customer(KARI).unwrap();
        // A payment cancelled in the bank's own channel does not block the other one.
        bank.cancel(&payments[1]).unwrap();
        bank.new_basket(TPP, &kari, None, &payments).unwrap()
    };
    pending.lock().unwrap()["resource"] = format!("/v1/signing-baskets/{id}").into();
    let answer = stage.identify(KARI).await;
    assert_eq!(text(&answer).matches("NOK\u{a0}10.00").count(), 1);
    assert_redirected(&stage.press(&form(&answer), "next").await);
    assert_eq!(paths.map(|path| stage.status(&path)), ["ACTC", "CANC"]);
    let basket = stage.core.bank().basket(TPP, &id).unwrap().unwrap();
    assert_eq!(basket.status(), "RJCT");
}

//= SBX-3 accepted
//= SBX-3 refused
#[tokio::test]
async fn the_page_shows_and_sums_what_will_be_signed() {
    let (stage, pending) = payment_stage().await;
    let paths: [String; 4] = std::array::from_fn(|_| stage.payment());
    let id = {
        let bank = stage.core.bank();
        let payments = paths
            .iter()
            .map(|path| bank.payment_at(TPP, path).unwrap().unwrap());
        let payments: Vec<_> = payments.collect();
        let kari = bank.customer(KARI).unwrap();
        let id = bank.new_basket(TPP, &kari, None, &payments).unwrap();
        // One was cancelled since, and one was signed alone.
        bank.cancel(&payments[0]).unwrap();
        bank.sign(&payments[1].id).unwrap();
        id
    };
    pending.lock().unwrap()["resource"] = format!("/v1/signing-baskets/{id}").into();
    let answer = stage.identify(KARI).await;
    let html = text(&answer);
    assert_eq!(html.matches("NOK\u{a0}10.00").count(), 2, "{html}");
    assert!(html.contains("Payment 1 of 2") && html.contains("NOK\u{a0}20.00"));
    assert_redirected(&stage.press(&form(&answer), "next").await);
    let now = paths.each_ref().map(|path| stage.status(path));
    assert_eq!(now, ["CANC", "ACTC", "ACTC", "ACTC"]);

    // Another link to it, and one to a payment that is signed: the page says that nothing is left, and so does the redirect.
    let basket = format!("/v1/signing-baskets/{id}");
    for path in [&basket, &paths[1]] {
        stage.told();
        pending.lock().unwrap()["resource"] = path.as_str().into();
        let shown = stage.ask("GET", "/sca?request=again", None).await;
        assert!(text(&shown).contains("nothing is left to approve"));
        assert_redirected(&stage.identify(KARI).await);
        let (call, said) = stage.told().remove(0);
        assert_eq!((call, &said["code"]), ("fail", &json!("CONFLICT")));
    }
}

//= SBX-3 refused
#[tokio::test]
async fn a_payment_that_was_cancelled_is_not_signed() {
    let (stage, pending) = payment_stage().await;
    let cancel = |path: &str| {
        let bank = stage.core.bank();
        let payment = bank.payment_at(TPP, path).unwrap().unwrap();
        assert!(bank.cancel(&payment).unwrap());
    };
    // Before the page, and between the page and its button.
    for is_early in [true, false] {
        let path = stage.payment();
        pending.lock().unwrap()["resource"] = path.as_str().into();
        if is_early {
            cancel(&path);
            assert_redirected(&stage.identify(KARI).await);
        } else {
            let form = form_of(&stage, KARI).await;
            cancel(&path);
            assert_redirected(&stage.press(&form, "next").await);
        }
        let told = stage.told();
        let [(call, said)] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(
            (*call, &said["code"], &said["status"]),
            ("fail", &json!("CONFLICT"), &json!(409))
        );
        assert_eq!(stage.status(&path), "CANC");
        // Nothing is left that would be completed later.
        ending::recover(&stage.core).await.unwrap();
        assert_eq!((stage.status(&path), stage.told().len()), ("CANC", 0));
    }
}

//= SBX-3 refused
#[tokio::test]
async fn a_payment_that_goes_between_page_and_button_is_not_signed() {
    let (stage, pending) = payment_stage().await;
    pending.lock().unwrap()["resource"] = stage.payment().into();
    let form = form_of(&stage, KARI).await;
    pending.lock().unwrap()["resource"] = format!("/v1/payments/{PRODUCT}/x-1").into();
    assert_redirected(&stage.press(&form, "next").await);
    let (call, said) = stage.told().remove(0);
    assert_eq!((call, &said["code"]), ("fail", &json!("RESOURCE_UNKNOWN")));
}

//= SBX-3 refused
#[tokio::test]
async fn a_payment_that_is_gone_is_not_signed() {
    let path = format!("/v1/payments/{PRODUCT}/x-1");
    let stage = Stage::new(pending(false, Some(&path))).await;
    assert_redirected(&stage.identify(KARI).await);
    let (call, said) = stage.told().remove(0);
    assert_eq!((call, &said["code"]), ("fail", &json!("RESOURCE_UNKNOWN")));
}

//= SBX-15 accepted
#[tokio::test]
async fn an_approval_waits_for_a_gateway_that_is_unavailable() {
    let (stage, pending) = payment_stage().await;
    stage.refuse(503, "state-unavailable");
    let (path, answer) = stage.approve_payment(&pending).await;
    assert_eq!(answer.status, 502);
    assert!(text(&answer).contains("approved is approved once"));
    assert_eq!(stage.status(&path), "RCVD");
    ending::recover(&stage.core).await.unwrap();
    assert_eq!(stage.status(&path), "RCVD");
    // When the gateway is back, the bank ends the SCA without the PSU, in both systems.
    *stage.fault.lock().unwrap() = Value::Null;
    ending::recover(&stage.core).await.unwrap();
    assert_eq!(stage.status(&path), "ACTC");
    let calls = stage.told().len();
    ending::recover(&stage.core).await.unwrap();
    assert_eq!((calls, stage.told().len()), (3, 0));
}

//= SBX-15 refused
#[tokio::test]
async fn an_approval_that_the_gateway_refuses_is_dropped() {
    for (status, reason) in [(409, "sca-finished"), (410, "sca-request-expired")] {
        let (stage, pending) = payment_stage().await;
        stage.refuse(status, reason);
        let (path, answer) = stage.approve_payment(&pending).await;
        assert_eq!(answer.status, status, "{}", text(&answer));
        *stage.fault.lock().unwrap() = Value::Null;
        stage.told();
        ending::recover(&stage.core).await.unwrap();
        assert_eq!((stage.status(&path), stage.told().len()), ("RCVD", 0));
    }
}

//= SBX-15 accepted
#[tokio::test]
async fn a_completion_whose_answer_was_lost_for_long_is_recognised() {
    let (stage, pending) = payment_stage().await;
    stage.refuse(410, "sca-request-expired");
    let context = json!({"context": "PRIVATE", "last_sca": "2026-03-02T11:00:00Z"});
    let psu = stage.psu();
    stage.known.lock().unwrap()[psu.as_str()] = json!({"contexts": [context]});
    let (path, answer) = stage.approve_payment(&pending).await;
    assert_eq!(stage.status(&path), "ACTC");
    assert!(
        text(&answer).contains("This is finished"),
        "{}",
        text(&answer)
    );
}
