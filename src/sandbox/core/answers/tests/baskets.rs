use super::*;

fn basket(stage: &Stage, paths: &[&String]) -> Answer {
    let ids: Vec<_> = paths.iter().map(|path| id(path)).collect();
    stage.send("POST /v1/signing-baskets", &json!({"paymentIds": ids}))
}

//= SBX-7 accepted
#[test]
fn a_basket_is_the_worst_of_its_payments() {
    let stage = Stage::new();
    let payments = ["1.00", "2.00", "9000000.00"];
    let payments = payments.map(|amount| stage.initiate(DOMESTIC, &stage.order(amount)).0);
    let (status, created) = basket(&stage, &payments.iter().collect::<Vec<_>>());
    assert_eq!(
        (status, &created["transactionStatus"]),
        (201, &json!("RCVD"))
    );
    let path = created["_links"]["self"]["href"].as_str().unwrap();
    assert_eq!(id(path), created["basketId"]);
    let status = || {
        let state = stage.get(&format!("GET {path}/status"));
        assert_eq!(
            stage.get(&format!("GET {path}"))["transactionStatus"],
            state["transactionStatus"]
        );
        state["transactionStatus"].clone()
    };
    let link = stage.get(&format!("POST {path}/authorisations"));
    assert!(link["_links"]["scaRedirect"]["href"].is_string());
    // Not atomic: each payment has its own status.
    stage.sign(&payments[0]);
    assert_eq!(status(), "RCVD");
    stage.sign(&payments[1]);
    stage.sign(&payments[2]);
    assert_eq!(stage.status(&payments[2]), "ACCP");
    assert_eq!(status(), "PATC");
    assert_eq!(stage.ask(&format!("POST {path}/authorisations")).0, 409);
    for _ in 0..5 {
        stage.run();
    }
    assert_eq!(
        (status(), stage.status(&payments[0])),
        (json!("RJCT"), "ACSC".into())
    );
    // Alone, a funded payment succeeds.
    let one = stage.initiate(DOMESTIC, &stage.order("1.00")).0;
    let (_, created) = basket(&stage, &[&one]);
    stage.sign(&one);
    let path = created["_links"]["status"]["href"].as_str().unwrap();
    assert_eq!(
        stage.get(&format!("GET {path}"))["transactionStatus"],
        "ACTC"
    );
}

//= SBX-7 refused
#[test]
fn bulk_and_periodic_payments_are_in_no_basket() {
    let stage = Stage::new();
    let single = stage.initiate(DOMESTIC, &stage.order("1.00")).0;
    let order = stage.order("1.00");
    let bulk = json!({"debtorAccount": order["debtorAccount"], "payments": [with(&order, json!({"debtorAccount": null}))]});
    let periodic = with(
        &order,
        json!({"frequency": "Weekly", "startDate": "2026-04-01"}),
    );
    for body in [bulk, periodic] {
        let other = stage.initiate(DOMESTIC, &body).0;
        let (status, body) = basket(&stage, &[&single, &other]);
        assert_eq!(
            (status, &body["code"]),
            (400, &json!("REFERENCE_MIX_INVALID"))
        );
        assert_eq!(body["tppMessages"][0]["path"], "paymentIds[1]");
    }
    // Nothing of the refused basket is stored: the payment can still join another basket, and then no further one.
    assert_eq!(basket(&stage, &[&single]).0, 201);
    assert_eq!(basket(&stage, &[&single]).0, 409);
}

#[test]
fn a_basket_is_of_one_tpp_and_one_psu() {
    let stage = Stage::of(WITH_AGREEMENT, false);
    let own = stage.initiate(DOMESTIC, &stage.order("1.00")).0;
    let other = Stage {
        caller: {
            let mut caller = stage.caller.clone();
            caller.tpp = "PSDNO-FSA-2".into();
            caller
        },
        ..stage
    };
    // Another TPP does not know the PSU, the payment or the basket.
    assert_eq!(basket(&other, &[&own]).0, 401);
    let kari = other.bank.customer(KARI).unwrap();
    let psu = other.bank.psu_id(TPP, &kari).unwrap();
    let as_kari = Caller {
        psu: Some(psu),
        ..tpp()
    };
    let body = json!({"paymentIds": [id(&own)]});
    let line = "POST /v1/signing-baskets";
    assert_eq!(ask(&other.bank, line, as_kari, &body).0, 404);
    let mut right = other.caller.clone();
    right.tpp = TPP.into();
    let mut corporate = right.clone();
    corporate.agreement = Some(
        other
            .bank
            .agreements_of(&other.psu.id)
            .unwrap()
            .remove(0)
            .id,
    );
    assert_eq!(ask(&other.bank, line, corporate, &body).0, 404);
    let (status, created) = ask(&other.bank, line, right.clone(), &body);
    assert_eq!(status, 201);
    let path = created["_links"]["self"]["href"].as_str().unwrap();
    for rest in ["", "/status"] {
        assert_eq!(other.ask(&format!("GET {path}{rest}")).0, 404);
        assert_eq!(
            ask(
                &other.bank,
                &format!("GET {path}{rest}"),
                right.clone(),
                &Value::Null
            )
            .0,
            200
        );
    }
    assert_eq!(
        ask(&other.bank, line, right.clone(), &json!({"paymentIds": []})).0,
        400
    );
    assert_eq!(
        ask(&other.bank, line, right, &json!({"paymentIds": [uuid()]})).0,
        404
    );
}
