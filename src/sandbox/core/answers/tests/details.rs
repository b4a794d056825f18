//! The transaction list and its details: their members, their links, and the forms of what was given (SBX-8).

use super::*;
use http::Method;
use portvakt_interface::headers::identity::IdentityForm;
use portvakt_interface::openapi::{Setting, describe};
use portvakt_interface::operations::{Catalogue, Environment, Lookup, builtin};
use portvakt_interface::path::Target;
use portvakt_interface::payload::Ibans;
use std::collections::BTreeSet;

/// The beginning of the names of additional proprietary references.
const PROPRIETARY: &str = "additionalInformationProprietary";

fn catalogue() -> Catalogue {
    Catalogue::new(Environment::Sandbox, builtin()).unwrap()
}

/// A schema of the OpenAPI description.
fn schema(name: &str) -> Value {
    let setting = Setting {
        environment: Environment::Sandbox,
        system: "portvakt",
        authority: "localhost:8443",
        identity: IdentityForm::NORWEGIAN,
        body_limit: 65_536,
        ibans: &Ibans::default(),
    };
    let description = describe(&catalogue(), &setting);
    description["components"]["schemas"][name].clone()
}

/// The members of a schema.
fn described(name: &str) -> BTreeSet<String> {
    members(&schema(name)["properties"])
}

fn members(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

/// Every link of an answer, with its verbs.
fn links(value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) => {
            if let Some(href) = members.get("href") {
                let href = href.as_str().unwrap().to_owned();
                found.push((href, members["verbs"].clone()));
            }
            members.values().for_each(|member| links(member, found));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| links(entry, found)),
        _ => {}
    }
}

/// The lengths of the table.
fn judge(details: &Value) {
    for (name, value) in details.as_object().unwrap() {
        let (least, most) = match name.as_str() {
            "bankTransactionCode" => (4, 14),
            "endToEndId" | "creditorId" | "proprietaryBankTransactionCode" => (0, 35),
            "creditorName" | "debtorName" | "ultimateCreditor" | "ultimateDebtor" => (0, 70),
            "remittanceInformationUnstructured" => (0, 140),
            "purposeCode" => (1, 4),
            name if name.starts_with(PROPRIETARY) => (1, 35),
            _ => continue,
        };
        let length = value.as_str().unwrap().chars().count();
        assert!((least..=most).contains(&length), "{name}: {value}");
    }
}

//= SBX-8 accepted
#[test]
fn every_link_of_list_and_details_leads_to_an_operation() {
    let catalogue = catalogue();
    for stage in [Stage::new(), Stage::of(WITH_AGREEMENT, true)] {
        let (payment, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
        stage.sign(&payment);
        let list = format!("/v1/accounts/{}/transactions", stage.account(0).id);
        let mut open = vec![format!("{list}?bookingStatus=both&limit=1")];
        let mut seen = BTreeSet::new();
        while let Some(href) = open.pop() {
            let target = Target::parse(href.as_bytes()).unwrap();
            let found = catalogue.find(&Method::GET, &target);
            assert!(matches!(found, Lookup::Found(_)), "{href}: {found:?}");
            let body = stage.get(&format!("GET {href}"));
            if let Some(details) = body.get("transactionsDetails") {
                judge(details);
            }
            let mut linked = Vec::new();
            links(&body, &mut linked);
            for (href, verbs) in linked {
                assert_eq!(verbs, json!(["GET"]), "{href}");
                if seen.insert(href.clone()) {
                    open.push(href);
                }
            }
        }
        let details = seen
            .iter()
            .filter(|href| href.starts_with(&format!("{list}/")));
        let pages = seen.iter().filter(|href| href.contains("&offset="));
        assert!(details.count() >= 2 && pages.count() >= 2, "{seen:?}");
    }
}

//= SBX-8 accepted
#[test]
fn the_list_is_lighter_than_the_details() {
    let stage = Stage::of(WITH_AGREEMENT, true);
    let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
    let list = stage.get(&format!("GET {path}"));
    let booked = list["transactions"]["booked"].as_array().unwrap();
    let invoice = booked
        .iter()
        .find(|one| one["debtorName"] == "Werkzeugbau Muster GmbH");
    let invoice = invoice.unwrap();
    let href = invoice["_links"]["transactionDetails"]["href"].as_str();
    let details = stage.get(&format!("GET {}", href.unwrap()));
    let [listed, detailed] = [invoice, &details["transactionsDetails"]].map(members);
    assert_eq!(listed, described("ListedTransaction"));
    // The names of these have a pattern.
    let named = detailed
        .iter()
        .filter(|name| !name.starts_with(PROPRIETARY));
    assert_eq!(
        named.cloned().collect::<BTreeSet<_>>(),
        described("Transaction")
    );
    let patterns = members(&schema("Transaction")["patternProperties"]);
    assert_eq!(patterns, BTreeSet::from([format!("^{PROPRIETARY}")]));
    let only: Vec<_> = detailed.difference(&listed).map(String::as_str).collect();
    let expected = [
        "additionalInformationProprietary1",
        "creditorAgent",
        "creditorId",
        "currencyExchange",
        "debtorAgent",
        "endToEndId",
        "proprietaryBankTransactionCode",
        "remittanceInformationStructuredArray",
    ];
    assert_eq!(only, expected);

    // Pending ones are as light, and have no details yet.
    let changes = json!({
        "instructedAmount": {"amount": "100.00", "currency": "EUR"},
        "creditorAccount": {"iban": "DE89370400440532013000"},
        "creditorAgent": "COBADEFFXXX",
        "endToEndIdentification": "E-1",
    });
    let (payment, _) = stage.initiate(CROSS_BORDER, &with(&stage.order("1.00"), changes));
    stage.sign(&payment);
    let list = stage.get(&format!("GET {path}?bookingStatus=pending"));
    let pending = members(&list["transactions"]["pending"][0]);
    assert!(pending.contains("creditorName"));
    assert!(pending.is_subset(&described("ListedTransaction")));
}

/// Books a transaction by hand on the PSU's card account.
fn book(stage: &Stage, details: &Value) -> Answer {
    let line = format!(
        "POST /v1/sandbox/accounts/{}/transactions",
        stage.account(2).id
    );
    stage.send(&line, &with(&json!({"amount": -100}), details.clone()))
}

//= SBX-8 accepted
//= SBX-17 accepted
#[test]
fn a_transaction_by_hand_is_shown_as_it_was_given() {
    let stage = Stage::new();
    let own = stage.account(2).bban;
    let longest = json!({
        "bankTransactionCode": "PMNT-CCRD-POSD",
        "creditorName": "å".repeat(70),
        "creditorAccount": {"bban": "7".repeat(30), "currency": "NOK"},
        "debtorAccount": {"bban": own},
        "ultimateCreditor": "å".repeat(70),
        "remittanceInformationUnstructured": "å".repeat(140),
        "purposeCode": "SALA",
        "originalAmount": {"amount": "-30.00", "currency": "EUR"},
        "additionalInformationProprietary1": "1",
        "additionalInformationProprietary9": "å".repeat(35),
    });
    let (status, created) = book(&stage, &longest);
    assert_eq!(status, 201, "{created}");
    let (account, id) = (stage.account(2).id, created["id"].as_str().unwrap());
    let body = stage.get(&format!("GET /v1/accounts/{account}/transactions/{id}"));
    let details = &body["transactionsDetails"];
    for (name, value) in longest.as_object().unwrap() {
        assert_eq!(details[name], *value, "{name}");
    }
    let list = stage.get(&format!("GET /v1/accounts/{account}/transactions?limit=1"));
    let listed = members(&list["transactions"]["booked"][0]);
    assert!(listed.contains("purposeCode"), "{listed:?}");
    assert!(
        !listed.iter().any(|name| name.starts_with(PROPRIETARY)),
        "{listed:?}"
    );
    // An empty text is an unknown value, as this bank writes it.
    let empty = json!({"iban": "", "bban": ""});
    let unknown = json!({"purposeCode": "", "bankTransactionCode": "", "creditorAccount": empty});
    assert_eq!(book(&stage, &unknown).0, 201);
}

//= SBX-8 refused
//= SBX-17 refused
#[test]
fn a_transaction_by_hand_keeps_the_table() {
    let stage = Stage::new();
    let card = stage.account(2);
    let before = stage.booked(&card);
    for (path, bad) in [
        ("purposeCode", json!("TOOLONGCODE")),
        ("purposeCode", json!(7)),
        ("bankTransactionCode", json!("ABC")),
        ("bankTransactionCode", json!("PMNT-CCRD-POSDX")),
        ("creditorName", json!("å".repeat(71))),
        ("debtorName", json!(["A"])),
        ("ultimateCreditor", json!("a".repeat(71))),
        ("ultimateDebtor", json!("a".repeat(71))),
        ("remittanceInformationUnstructured", json!("a".repeat(141))),
        ("creditorAccount", json!("not an object")),
        ("creditorAccount", json!({})),
        ("debtorAccount", json!({"currency": "NOK"})),
        ("creditorAccount.iban", json!({"iban": "NO9486011117947"})),
        ("creditorAccount.iban", json!({"iban": 7})),
        ("debtorAccount.bban", json!({"bban": "7".repeat(31)})),
        (
            "debtorAccount.currency",
            json!({"bban": "7", "currency": "kr"}),
        ),
        ("additionalInformationProprietary1", json!("a".repeat(36))),
        ("additionalInformationProprietary1", json!(["a"])),
        ("originalAmount", json!("30.00")),
        (
            "originalAmount",
            json!({"amount": "30.0", "currency": "EUR"}),
        ),
        (
            "originalAmount",
            json!({"amount": "30.00", "currency": "EEK"}),
        ),
    ] {
        let name = path.split('.').next().unwrap();
        let (status, body) = book(&stage, &json!({name: bad}));
        assert_eq!((status, &body["code"]), (400, &json!("FORMAT_ERROR")));
        let message = body["message"].as_str().unwrap();
        let expected = format!("{path}: ");
        assert!(message.starts_with(&expected), "{path}: {message}");
    }
    let several = json!({"purposeCode": "TOOLONG", "creditorAccount": 7});
    let (_, body) = book(&stage, &several);
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("purposeCode: ") && message.contains("creditorAccount: "));
    // Nothing of it was booked.
    let line = format!("GET /v1/sandbox/accounts/{}/transactions", card.id);
    assert_eq!(stage.get(&line).as_array().unwrap().len(), 5);
    assert_eq!(stage.booked(&card), before);
}

//= SBX-17 refused
#[test]
fn an_additional_reference_has_a_digit_behind_its_name() {
    let stage = Stage::new();
    for ending in ["", "0", "X", "10", "a", "æ"] {
        let name = format!("{PROPRIETARY}{ending}");
        let (status, body) = book(&stage, &json!({name: "a"}));
        assert_eq!((status, &body["code"]), (400, &json!("FORMAT_ERROR")));
        let expected = format!("{PROPRIETARY}X: X is a digit from 1 to 9.");
        assert_eq!(body["message"], expected, "{ending}");
    }
}

//= SBX-8 refused
#[test]
fn a_new_customer_has_a_name_that_fits_the_table() {
    let stage = Stage::new();
    let status = |member: &str, name: Value| {
        let body = json!({member: name});
        stage.send("POST /v1/sandbox/accounts", &body).0
    };
    for member in ["customerName", "name"] {
        assert_eq!(status(member, json!("å".repeat(70))), 201, "{member}");
        assert_eq!(status(member, json!("å".repeat(71))), 400, "{member}");
        assert_eq!(status(member, json!(7)), 400, "{member}");
    }
}

//= SBX-8 accepted
//= SBX-8 refused
#[test]
fn an_order_keeps_the_table() {
    let stage = Stage::new();
    let good = json!({
        "endToEndIdentification": "e".repeat(35),
        "purposeCode": "SALA",
        "remittanceInformationUnstructured": "å".repeat(140),
        // ISO 9362 has it and the table does not: it is taken and not shown (PAY-7).
        "creditorAgent": "WG11US335AB",
    });
    let (payment, _) = stage.initiate(DOMESTIC, &with(&stage.order("1.00"), good));
    stage.sign(&payment);
    stage.run();
    let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
    let list = stage.get(&format!("GET {path}?limit=1"));
    let id = list["transactions"]["booked"][0]["transactionId"].as_str();
    let details = stage.get(&format!("GET {path}/{}", id.unwrap()))["transactionsDetails"].clone();
    judge(&details);
    assert_eq!(details["endToEndId"], "e".repeat(35));
    assert_eq!(details.get("creditorAgent"), None);

    for (path, bad) in [
        ("endToEndIdentification", json!("e".repeat(36))),
        ("endToEndIdentification", json!(7)),
        ("purposeCode", json!("TOOLONGCODE")),
        ("purposeCode", json!("")),
        ("remittanceInformationUnstructured", json!("a".repeat(141))),
        ("creditorAgent", json!("COBADEFFX")),
        ("creditorName", json!("a".repeat(71))),
        ("creditorAccount", json!("not an object")),
        ("creditorAccount.bban", json!({"bban": "7".repeat(31)})),
        (
            "creditorAccount.iban",
            json!({"iban": "DE88370400440532013000"}),
        ),
        (
            "creditorAccount.currency",
            json!({"bban": ELSEWHERE, "currency": "kr"}),
        ),
    ] {
        let name = path.split('.').next().unwrap();
        let order = with(&stage.order("1.00"), json!({name: bad}));
        let refused = |product: &str, body: &Value, path: &str| {
            let expected = (400, "FORMAT_ERROR".to_owned(), path.to_owned());
            assert_eq!(stage.refused(product, body), expected);
        };
        for product in [DOMESTIC, CROSS_BORDER, INSTANT] {
            refused(product, &order, path);
        }
        // The gateway judges no part of a bulk.
        let bulk = json!({"payments": [order], "debtorAccount": {"bban": stage.account(0).bban}});
        refused(DOMESTIC, &bulk, &format!("payments[0].{path}"));
    }
}

//= SBX-8 accepted
#[test]
fn an_account_is_shown_as_it_was_given() {
    let stage = Stage::of(WITH_AGREEMENT, true);
    let own = stage.account(0);
    let malta = "MT84MALT011000012345MTLCAST001S";
    let germany = "DE89370400440532013000";
    for (given, agent, expected) in [
        (
            json!({"iban": malta, "currency": "EUR"}),
            "VALLMTMTXXX",
            json!({"iban": malta, "currency": "EUR"}),
        ),
        (
            json!({"iban": germany, "currency": "EUR"}),
            "COBADEFFXXX",
            json!({"iban": germany, "currency": "EUR"}),
        ),
        (
            json!({"iban": germany}),
            "COBADEFFXXX",
            json!({"iban": germany}),
        ),
        // The digits of an account in Norway, at a bank in Germany.
        (
            json!({"bban": ELSEWHERE, "currency": "EUR"}),
            "COBADEFFXXX",
            json!({"bban": ELSEWHERE, "currency": "EUR"}),
        ),
        (
            json!({"bban": ELSEWHERE, "currency": "NOK"}),
            "DNBANOKKXXX",
            json!({"iban": "NO9386011117947", "bban": ELSEWHERE, "currency": "NOK"}),
        ),
    ] {
        let single = with(
            &stage.order("1.00"),
            json!({"creditorAccount": given, "creditorAgent": agent}),
        );
        let bulk = with(
            &single,
            json!({"payments": [single], "creditorAgent": null}),
        );
        for order in [single, bulk] {
            let (payment, _) = stage.initiate(CROSS_BORDER, &order);
            stage.sign(&payment);
            let pending = format!(
                "GET /v1/accounts/{}/transactions?bookingStatus=pending",
                own.id
            );
            let pending = stage.get(&pending)["transactions"]["pending"][0].clone();
            stage.run();
            // The fee is the latest booking.
            let line = format!("GET /v1/accounts/{}/transactions?limit=1&offset=1", own.id);
            let booked = stage.get(&line)["transactions"]["booked"][0].clone();
            let href = booked["_links"]["transactionDetails"]["href"].as_str();
            let details =
                stage.get(&format!("GET {}", href.unwrap()))["transactionsDetails"].clone();
            for shown in [pending, booked, details] {
                assert_eq!(shown["creditorAccount"], expected);
                assert_eq!(shown["debtorAccount"]["currency"], own.currency);
            }
        }
        let line = format!("GET /v1/sandbox/accounts/{}/transactions?limit=2", own.id);
        let listed = stage.get(&line)[1]["creditorAccount"].clone();
        let text = |kind: &str| expected.get(kind).cloned().unwrap_or_else(|| "".into());
        assert_eq!(listed, json!({"iban": text("iban"), "bban": text("bban")}));
    }
}

//= SBX-8 accepted
#[test]
fn an_empty_text_is_not_shown() {
    let stage = Stage::new();
    let empty = json!({"endToEndIdentification": "", "remittanceInformationUnstructured": ""});
    let order = with(&stage.order("1.00"), empty);
    let bulk = json!({"payments": [order], "debtorAccount": order["debtorAccount"]});
    for order in [order, bulk] {
        let (payment, _) = stage.initiate(DOMESTIC, &order);
        stage.sign(&payment);
        stage.run();
        let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
        let list = stage.get(&format!("GET {path}?limit=1"));
        let id = list["transactions"]["booked"][0]["transactionId"].as_str();
        let details =
            stage.get(&format!("GET {path}/{}", id.unwrap()))["transactionsDetails"].clone();
        assert_eq!(details["creditorName"], "Bakeriet");
        for name in [
            "endToEndId",
            "remittanceInformationUnstructured",
            "remittanceInformationUnstructuredArray",
        ] {
            assert_eq!(details.get(name), None, "{name}");
        }
    }
    let unnamed = json!({"customerName": "", "name": ""});
    let (status, account) = stage.send("POST /v1/sandbox/accounts", &unnamed);
    assert_eq!((status, &account["name"]), (201, &json!("Konto")));
}

//= SBX-8 accepted
#[test]
fn each_side_shows_its_own_exchange() {
    let stage = Stage::of(WITH_AGREEMENT, true);
    let (nok, eur) = (stage.account(0), stage.account(1));
    let latest = |account: &Account, offset: usize| {
        let path = format!("/v1/accounts/{}/transactions", account.id);
        let list = stage.get(&format!("GET {path}?limit=1&offset={offset}"));
        let href =
            list["transactions"]["booked"][0]["_links"]["transactionDetails"]["href"].clone();
        let details = stage.get(&format!("GET {}", href.as_str().unwrap()));
        details["transactionsDetails"].clone()
    };
    let pay = |currency: &str| {
        let changes = json!({
            "instructedAmount": {"amount": "100.00", "currency": currency},
            "creditorAccount": {"bban": eur.bban, "currency": "EUR"},
        });
        let (payment, _) = stage.initiate(CROSS_BORDER, &with(&stage.order("1.00"), changes));
        stage.sign(&payment);
        let pending = format!(
            "GET /v1/accounts/{}/transactions?bookingStatus=pending",
            eur.id
        );
        let pending = stage.get(&pending)["transactions"]["pending"].to_string();
        assert!(!pending.contains("xchange"), "{pending}");
        stage.run();
        // The fee is the debtor's latest booking.
        [latest(&nok, 1), latest(&eur, 0)]
    };
    let from_to = |details: &Value| {
        let exchange = &details["currencyExchange"];
        ["sourceCurrency", "targetCurrency", "unitCurrency"].map(|name| exchange[name].clone())
    };

    let [debtor, creditor] = pay("NOK");
    assert_eq!(debtor.get("currencyExchange"), None);
    let sum = json!({"amount": "8.60", "currency": "EUR"});
    assert_eq!(creditor["transactionAmount"], sum);
    assert_eq!(from_to(&creditor), ["NOK", "EUR", "EUR"]);
    assert_eq!(creditor["currencyExchange"]["exchangeRate"], "11.624000");
    for details in [&debtor, &creditor] {
        assert_eq!(details["creditorAccount"]["currency"], "EUR");
        assert_eq!(details.get("creditorCurrencyExchange"), None);
    }

    // With a third currency, each side has an exchange.
    let [debtor, creditor] = pay("USD");
    assert_eq!(from_to(&debtor), ["NOK", "USD", "USD"]);
    assert_eq!(from_to(&creditor), ["USD", "EUR", "EUR"]);
    // An amount in the creditor's currency is exchanged once, at the debtor's side.
    for details in pay("EUR") {
        assert_eq!(from_to(&details), ["NOK", "EUR", "EUR"]);
    }
}
