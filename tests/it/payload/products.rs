//! Payment products that a bank configures: HTTP-3, HDR-5, HDR-12, SCA-8, PAY-* hold for them as for those of the interface.

use super::refused_for;
use crate::harness::{Call, Gate, accepted, refused};
use serde_json::{Value, json};

const OPERATIONS: &str = "
operations:
  - {name: bulk-create, method: POST, path: '/v1/bulk-payments/{payment-product}', role: PSP_PI, schema: any, body: json, about: payment-initiation}
payment_products:
  - name: plain-transfers
  - name: sepa-credit-transfers
    headers: [psu-user-agent, digest]
    members:
      - {name: instructedAmount, required: true}
      - {name: requestedExecutionDate}
      - {name: endToEndIdentification, kind: text, max_length: 35, required: true}
      - {name: chargeBearer, kind: text, one_of: [SLEV, SHAR]}
      - {name: startDate, kind: date}
      - {name: batchBooking, kind: boolean}
      - {name: ceiling, kind: amount}
      - {name: feeAccount, kind: account}
      - {name: payments, kind: payments}
  - {name: swift-transfers, schema: cross-border-payment, members: [{name: uetr, kind: text, max_length: 36}]}
  - {name: norwegian-domestic-credit-transfers, members: [{name: debtorAccount, required: true}]}
";

const PLAIN: &str = "/v1/payments/plain-transfers";
const SEPA: &str = "/v1/payments/sepa-credit-transfers";
const SWIFT: &str = "/v1/payments/swift-transfers";
const DOMESTIC: &str = "/v1/payments/norwegian-domestic-credit-transfers";

fn gate() -> Gate {
    Gate::builder()
        .line("operations: operations.yaml")
        .file("operations.yaml", OPERATIONS)
        .start()
}

/// The least SEPA payment, with one more member or another value; null removes the member.
fn sepa(name: &str, value: Value) -> Call {
    let mut body = json!({
        "instructedAmount": {"amount": "1.00", "currency": "EUR"},
        "endToEndIdentification": "E-1",
    });
    if value.is_null() {
        body.as_object_mut().unwrap().shift_remove(name);
    } else {
        body[name] = value;
    }
    let call = Call::payment().at(SEPA).with("PSU-User-Agent", "tests");
    call.json(&body.to_string())
}

/// A payment whose PSU the TPP does not know yet.
fn single_sca(call: Call) -> Call {
    call.without("PSU-ID")
        .with("X-PSU-IDENTITY", "01010112345")
        .with("PSU-Context", "PRIVATE")
}

//= HTTP-3 accepted
//= HTTP-11 accepted
//= HDR-5 accepted
//= HDR-12 accepted
#[test]
fn added_products_in_each_operation() {
    let gate = gate();
    let swift = Call::payment()
        .at(SWIFT)
        .json(&super::payment().to_string());
    let domestic = json!({"debtorAccount": {"bban": "86011117947", "currency": "NOK"}});
    let domestic = Call::payment().json(&domestic.to_string());
    for (path, create, operation) in [
        (PLAIN, Call::payment().at(PLAIN), "payment-create"),
        (
            SEPA,
            sepa("x", json!({"y": 1})),
            "payment-create-sepa-credit-transfers",
        ),
        (SWIFT, swift, "payment-create-swift-transfers"),
        (
            DOMESTIC,
            domestic,
            "payment-create-norwegian-domestic-credit-transfers",
        ),
    ] {
        for passage in accepted(&gate, &create) {
            assert_eq!(passage.seen.header("gateway-operation"), Some(operation));
        }
        for passage in accepted(&gate, &single_sca(create)) {
            let told = passage.seen.header("x-psu-identity");
            assert_eq!(told, Some("01010112345"), "{path}");
        }
        accepted(&gate, &Call::new("GET", &format!("{path}/7")));
        accepted(&gate, &Call::new("GET", &format!("{path}/7/status")));
        accepted(
            &gate,
            &Call::new("POST", &format!("{path}/7/authorisations")),
        );
        let bulk = path.replace("/payments/", "/bulk-payments/");
        let bulk = Call::payment().at(&bulk).with("PSU-User-Agent", "tests");
        accepted(&gate, &bulk.json(r#"{"payments": 7}"#));
    }
}

//= HTTP-3 refused
//= HDR-5 refused
//= HDR-12 refused
//= HDR-13 refused
#[test]
fn what_an_added_product_requires() {
    let gate = gate();
    for path in [
        "/v1/payments/sepa",
        "/v1/payments/Plain-transfers",
        "/v1/bulk-payments/x",
    ] {
        let call = Call::payment().at(path);
        refused(&gate, &call, 404, "PRODUCT_UNKNOWN", "product-unknown");
    }
    let sepa = || sepa("x", json!(1));
    let plain = || Call::payment().at(PLAIN);
    let bulk = || Call::payment().at("/v1/bulk-payments/sepa-credit-transfers");
    for (call, header) in [
        (plain().without("PSU-IP-Address"), "PSU-IP-Address"),
        (plain().without("PSU-ID"), "PSU-ID"),
        (single_sca(plain()).without("PSU-Context"), "PSU-Context"),
        (sepa().without("PSU-IP-Address"), "PSU-IP-Address"),
        (sepa().without("PSU-ID"), "PSU-ID"),
        (sepa().without("PSU-User-Agent"), "PSU-User-Agent"),
        (sepa().with("PSU-User-Agent", ""), "PSU-User-Agent"),
        (single_sca(sepa()).without("PSU-Context"), "PSU-Context"),
        (bulk(), "PSU-User-Agent"),
    ] {
        let answer = refused(&gate, &call, 400, "HTTP_HEADER_REQUIRED", "header-missing");
        assert_eq!(answer.json()["faults"][0]["header"], header);
    }
    let status = Call::new("GET", &format!("{SEPA}/7/status"));
    let status = status.with("X-PSU-IDENTITY", "01010112345");
    refused(&gate, &status, 400, "FORMAT_ERROR", "header-malformed");
}

/// The PSU must be known, as for the interface's own products.
//= SCA-8 refused
#[test]
fn an_added_product_needs_a_known_psu() {
    let gate = Gate::builder()
        .strangers()
        .line("operations: operations.yaml")
        .file("operations.yaml", OPERATIONS)
        .start();
    for call in [sepa("x", json!(1)), Call::payment().at(PLAIN)] {
        let answer = gate.send(&call, crate::harness::Protocol::Http1);
        let known = gate.send(
            &Call::payment().at("/v1/payments/instant-norwegian-credit-transfers-straks"),
            crate::harness::Protocol::Http1,
        );
        assert_eq!(answer.status, known.status);
        assert_eq!(answer.json()["reason"], known.json()["reason"]);
        assert!((400..500).contains(&answer.status));
        assert!(gate.upstream().take().is_empty());
    }
}

//= PAY-14 accepted
//= PAY-15 accepted
#[test]
fn members_of_added_products() {
    let gate = gate();
    for (name, value) in [
        ("unknown", json!({"deep": [null]})),
        ("purposeCode", json!("FREE")),
        ("requestedExecutionDate", json!("2999-12-31")),
        ("endToEndIdentification", json!("æ".repeat(35))),
        ("chargeBearer", json!("SLEV")),
        ("startDate", json!("2020-01-31")),
        ("batchBooking", json!(true)),
        ("ceiling", json!({"amount": "100", "currency": "JPY"})),
        (
            "feeAccount",
            json!({"iban": "NO9386011117947", "currency": "NOK"}),
        ),
        ("payments", json!([{"creditorName": "Muster"}, {"more": 1}])),
    ] {
        accepted(&gate, &sepa(name, value));
    }
}

//= PAY-2 refused
//= PAY-3 refused
//= PAY-4 refused
//= PAY-5 refused
//= PAY-6 refused
//= PAY-8 refused
//= PAY-14 refused
//= PAY-17 refused
#[test]
fn wrong_members_of_added_products() {
    let gate = gate();
    for (name, value, path) in [
        ("instructedAmount", json!(null), "instructedAmount"),
        (
            "endToEndIdentification",
            json!(null),
            "endToEndIdentification",
        ),
        (
            "instructedAmount",
            json!({"amount": "1", "currency": "EUR"}),
            "instructedAmount.amount",
        ),
        ("creditorName", json!("x".repeat(71)), "creditorName"),
        (
            "endToEndIdentification",
            json!("x".repeat(36)),
            "endToEndIdentification",
        ),
        (
            "endToEndIdentification",
            json!("a\nb"),
            "endToEndIdentification",
        ),
        ("chargeBearer", json!("DEBT"), "chargeBearer"),
        ("ChargeBearer", json!("SHAR"), "ChargeBearer"),
        ("startDate", json!("2027-02-29"), "startDate"),
        ("batchBooking", json!("true"), "batchBooking"),
        (
            "ceiling",
            json!({"amount": "1.00", "currency": "EEK"}),
            "ceiling.currency",
        ),
        (
            "feeAccount",
            json!({"iban": "NO9386011117948", "currency": "NOK"}),
            "feeAccount.iban",
        ),
        ("payments", json!([]), "payments"),
        (
            "payments",
            json!([{}, {"instructedAmount": {"amount": "0.00", "currency": "NOK"}}]),
            "payments[1].instructedAmount.amount",
        ),
    ] {
        refused_for(&gate, &sepa(name, value), "FORMAT_ERROR", &[path]);
    }
    let twice = r#"{"instructedAmount":{"amount":"1.00","currency":"EUR"},"endToEndIdentification":"a","endToEndIdentification":"b"}"#;
    let twice = sepa("x", json!(1)).json(twice);
    refused(&gate, &twice, 400, "FORMAT_ERROR", "payload-malformed");
}

//= PAY-12 refused
//= PAY-3 refused
#[test]
fn members_of_the_interface_in_added_products() {
    let gate = gate();
    let past = sepa("requestedExecutionDate", json!("2020-01-01"));
    refused_for(
        &gate,
        &past,
        "EXECUTION_DATE_INVALID",
        &["requestedExecutionDate"],
    );
    // A product of the interface with a shape: its other members are judged as before.
    refused_for(&gate, &Call::payment(), "FORMAT_ERROR", &["debtorAccount"]);
    // The shape of a cross-border payment, and a member of the product's own.
    let mut payment = super::payment();
    payment["uetr"] = json!("x".repeat(37));
    payment["creditorName"] = json!("");
    let call = Call::payment().at(SWIFT).json(&payment.to_string());
    refused_for(&gate, &call, "FORMAT_ERROR", &["creditorName", "uetr"]);
}

/// The description that the gateway serves has each product where it is used, with the shape by which bodies are judged.
#[test]
fn added_products_are_described() {
    let described = gate().control("/openapi.json").json();
    let products = |path: &str| {
        let parameters = described["paths"][path]["post"]["parameters"].as_array();
        let parameters = parameters.or(described["paths"][path]["get"]["parameters"].as_array());
        let product = parameters
            .unwrap()
            .iter()
            .find(|parameter| parameter["name"] == "payment-product");
        product.unwrap()["schema"]["enum"].clone()
    };
    let general = [
        "instant-norwegian-credit-transfers-straks",
        "plain-transfers",
    ];
    assert_eq!(products("/v1/payments/{payment-product}"), json!(general));
    let all = json!([
        "norwegian-domestic-credit-transfers",
        "norwegian-cross-border-credit-transfers",
        "instant-norwegian-credit-transfers-straks",
        "plain-transfers",
        "sepa-credit-transfers",
        "swift-transfers",
    ]);
    assert_eq!(
        products("/v1/payments/{payment-product}/{payment-id}/status"),
        all
    );
    let sepa = &described["paths"][SEPA]["post"];
    let body = &sepa["requestBody"]["content"]["application/json"]["schema"]["allOf"];
    assert_eq!(body[0]["$ref"], "#/components/schemas/Payment");
    assert_eq!(
        body[1]["required"],
        json!(["instructedAmount", "endToEndIdentification"])
    );
    assert_eq!(
        body[1]["properties"]["chargeBearer"]["enum"],
        json!(["SLEV", "SHAR"])
    );
    assert!(sepa["description"].as_str().unwrap().contains("PSU-ID"));
}
