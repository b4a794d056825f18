//! What a creation response says: an exemption from SCA, a day that moves, and the text for the PSU.

use super::*;
use crate::core::language::Language;

/// The creditor that docs/sandbox.md names.
const TRUSTED: &str = "86011130005";

fn to_trusted(stage: &Stage, amount: &str) -> Value {
    let account = json!({"creditorAccount": {"bban": TRUSTED, "currency": "NOK"}});
    with(&stage.order(amount), account)
}

fn on(body: &Value, day: &str) -> Value {
    with(body, json!({"requestedExecutionDate": day}))
}

//= SBX-17 accepted
#[test]
fn a_small_payment_to_the_trusted_creditor_goes_on_without_sca() {
    let stage = Stage::new();
    let account = stage.account(0);
    let before = stage.booked(&account);
    let (path, created) = stage.initiate(DOMESTIC, &to_trusted(&stage, "500.00"));
    assert_eq!(created["transactionStatus"], "ACTC");
    let links = created["_links"].as_object().unwrap();
    assert_eq!(links.keys().collect::<Vec<_>>(), ["self", "status"]);
    assert_eq!(
        created["psuMessage"],
        "The payment is carried out without your signature, because you trust its recipient."
    );
    assert_eq!(stage.ask(&format!("POST {path}/authorisations")).0, 409);
    stage.run();
    assert_eq!(stage.status(&path), "ACSP");
    assert_eq!(stage.booked(&account), before - 50_000);

    // By its IBAN too; and an instant payment is booked before its creation is answered.
    let by_iban = json!({"creditorAccount": {"iban": "NO5986011130005", "currency": "NOK"}});
    let (path, created) = stage.initiate(INSTANT, &with(&stage.order("10.00"), by_iban));
    assert_eq!(created["transactionStatus"], "ACWP");
    assert_eq!(created["fundsAvailable"], true);
    assert_eq!(stage.status(&path), "ACWP");
    assert_eq!(stage.booked(&account), before - 50_000 - 1_200);
}

//= SBX-17 refused
#[test]
fn every_other_payment_needs_sca() {
    let stage = Stage::new();
    let small = to_trusted(&stage, "1.00");
    let own = json!({"creditorAccount": {"bban": stage.account(1).bban}});
    let monthly = json!({"frequency": "Monthly", "startDate": "2026-03-02"});
    let bulk = json!({"debtorAccount": small["debtorAccount"], "payments": [small.clone(), small.clone()]});
    let needs_sca = |created: &Value| {
        assert_eq!(created["transactionStatus"], "RCVD", "{created}");
        assert!(created["_links"]["startAuthorisation"].is_object());
    };
    for body in [
        to_trusted(&stage, "500.01"),
        stage.order("1.00"),
        with(&small, own),
        with(&small, monthly),
        bulk,
    ] {
        needs_sca(&stage.initiate(DOMESTIC, &body).1);
    }
    // At a bank abroad, the same digits are another account.
    let abroad = json!({
        "creditorAccount": {"bban": TRUSTED, "currency": "EUR"},
        "creditorAgent": "DEUTDEFF",
        "creditorAddress": {"country": "DE"},
        "instructedAmount": {"amount": "1.00", "currency": "EUR"},
    });
    needs_sca(&stage.initiate(CROSS_BORDER, &with(&small, abroad)).1);
    // A single SCA gives the PSU-ID, so it is not left out.
    let named = Caller {
        identity: Some(KARI.into()),
        ..tpp()
    };
    let line = format!("POST {DOMESTIC}");
    let (status, created) = ask(&stage.bank, &line, named, &small);
    assert_eq!(status, 201);
    needs_sca(&created);
    // Without funds.
    let balance = format!("PUT /v1/sandbox/accounts/{}/balances", stage.account(0).id);
    assert_eq!(stage.send(&balance, &json!({"balance": "0.50"})).0, 200);
    needs_sca(&stage.initiate(DOMESTIC, &small).1);
}

//= SBX-17 accepted
#[test]
fn a_day_that_moves_is_a_warning_and_is_told_to_the_psu() {
    let stage = Stage::new();
    let saturday = on(&stage.order("1.00"), "2026-03-07");
    let (path, created) = stage.initiate(DOMESTIC, &saturday);
    let warning = |text: &str| {
        let code = "EXECUTION_DATE_INVALID";
        json!([{"category": "WARNING", "code": code, "path": "requestedExecutionDate", "text": text}])
    };
    assert_eq!(
        created["tppMessages"],
        warning("Carried out on 2026-03-09: 2026-03-07 is no bank day.")
    );
    assert_eq!(
        created["psuMessage"],
        "The payment is carried out on 9 March 2026, and not on 7 March 2026, once you have signed it."
    );
    // As announced.
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACWC");

    let (_, exempted) = stage.initiate(DOMESTIC, &on(&to_trusted(&stage, "1.00"), "2026-03-07"));
    assert_eq!(exempted["transactionStatus"], "ACWC");
    assert_eq!(exempted["tppMessages"], created["tppMessages"]);
    assert_eq!(
        exempted["psuMessage"],
        "The payment is carried out on 9 March 2026, and not on 7 March 2026, without your signature, because you trust its recipient."
    );

    stage.pass_hours(4);
    let (_, created) = stage.initiate(DOMESTIC, &on(&stage.order("1.00"), "2026-03-02"));
    assert_eq!(
        created["tppMessages"],
        warning("Carried out on 2026-03-03: the last batch of 2026-03-02 has run.")
    );
}

//= SBX-17 refused
#[test]
fn a_day_that_stays_is_no_warning() {
    let stage = Stage::new();
    let order = stage.order("1.00");
    let assert_silent = |product: &str, body: &Value| {
        let (_, created) = stage.initiate(product, body);
        assert_eq!(created.get("tppMessages"), None, "{created}");
        assert_eq!(
            created["psuMessage"],
            "The payment is carried out once you have signed it."
        );
    };
    assert_silent(DOMESTIC, &order);
    assert_silent(DOMESTIC, &on(&order, "2026-03-02"));
    assert_silent(CROSS_BORDER, &on(&order, "2026-03-04"));
    // On Saturday: a payment without a day moves from none, and an instant one is carried out at once.
    stage.pass_hours(24 * 5);
    assert_silent(DOMESTIC, &order);
    assert_silent(INSTANT, &on(&order, "2026-03-07"));
}

//= SBX-17 accepted
#[test]
fn the_texts_are_in_the_language_of_the_request() {
    let stage = Stage::new();
    let created = |body: &Value| {
        let caller = Caller {
            language: Language::Norwegian,
            ..stage.caller.clone()
        };
        let (status, created) = ask(&stage.bank, &format!("POST {DOMESTIC}"), caller, body);
        assert_eq!(status, 201);
        let message = created["psuMessage"].as_str().unwrap().to_owned();
        assert!(message.chars().count() <= 512);
        (message, created)
    };
    let order = stage.order("1.00");
    assert_eq!(
        created(&order).0,
        "Betalingen utføres når du har signert den."
    );
    assert_eq!(
        created(&to_trusted(&stage, "1.00")).0,
        "Betalingen utføres uten signering, fordi du stoler på mottakeren."
    );
    let (message, moved) = created(&on(&order, "2026-03-07"));
    assert_eq!(
        message,
        "Betalingen utføres 9. mars 2026, og ikke 7. mars 2026, når du har signert den."
    );
    assert_eq!(
        moved["tppMessages"][0]["text"],
        "Utføres 2026-03-09: 2026-03-07 er ingen bankdag."
    );
}
