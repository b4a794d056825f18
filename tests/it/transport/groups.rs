//! The rules of an operation do not depend on its routing group: HTTP-11, HDR-5, HDR-12, SCA-12, ERR-1.

use crate::harness::{Call, Gate, Protocol, accepted, refused};
use serde_json::json;

/// The interface's operations in other groups, and a product that the bank adds.
const OPERATIONS: &str = "
operations:
  - {name: payment-create, group: money}
  - {name: payment-status, group: money}
  - {name: payment-authorise, group: money}
  - {name: basket-authorise, group: money}
  - {name: balance-list, path: '/v1/balances/{account-id}', group: money}
  - {name: card-read, method: GET, path: '/v1/cards/{customer}/{account-id}/{page}', role: PSP_AI, group: cards, sca: consent, quota: four-in-a-day}
  - {name: sepa-create, method: POST, path: /v1/payments/sepa, role: PSP_PI, group: sepa, schema: payment}
  - {name: sepa-status, method: GET, path: '/v1/payments/sepa/{id}/status', role: PSP_PI, group: sepa, about: payment}
  - {name: sepa-authorise, method: POST, path: '/v1/payments/sepa/{id}/authorisations', role: PSP_PI, group: sepa, about: payment}
";

const DOMESTIC: &str = "/v1/payments/norwegian-domestic-credit-transfers";
const SEPA: &str = "/v1/payments/sepa";

fn gates() -> [(Gate, &'static [&'static str]); 2] {
    let changed = Gate::builder()
        .line("operations: operations.yaml")
        .file("operations.yaml", OPERATIONS);
    [
        (Gate::start(), &[DOMESTIC]),
        (changed.start(), &[DOMESTIC, SEPA]),
    ]
}

/// A payment whose PSU the TPP does not know yet.
fn single_sca(path: &str) -> Call {
    Call::payment()
        .at(path)
        .without("PSU-ID")
        .with("X-PSU-IDENTITY", "01010112345")
        .with("PSU-Context", "PRIVATE")
}

//= HDR-5 accepted
//= HDR-12 accepted
#[test]
fn every_product_is_initiated_alike() {
    for (gate, paths) in gates() {
        for path in paths {
            accepted(&gate, &Call::payment().at(path));
            for passage in accepted(&gate, &single_sca(path)) {
                let told = passage.seen.header("x-psu-identity");
                assert_eq!(told, Some("01010112345"), "{path}");
            }
        }
    }
}

//= HDR-5 refused
//= HDR-13 refused
//= HTTP-11 refused
#[test]
fn every_product_requires_the_same() {
    for (gate, paths) in gates() {
        for path in paths {
            let payment = || Call::payment().at(path);
            for call in [
                payment().without("PSU-IP-Address"),
                payment().without("PSU-ID"),
                single_sca(path).without("PSU-Context"),
            ] {
                let answer = refused(&gate, &call, 400, "HTTP_HEADER_REQUIRED", "header-missing");
                assert!(answer.json()["tppMessages"].is_array(), "{path}");
            }
            let status = Call::new("GET", &format!("{path}/7/status"));
            for call in [
                status.clone().with("X-PSU-IDENTITY", "01010112345"),
                status.with("X-Request-ID", "a b"),
            ] {
                let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "header-malformed");
                assert!(answer.json()["tppMessages"].is_array(), "{path}");
            }
        }
    }
}

//= SCA-12 accepted
#[test]
fn the_page_is_told_what_is_signed() {
    for (gate, paths) in gates() {
        let baskets = ["/v1/signing-baskets"];
        for path in paths.iter().chain(&baskets) {
            let call = Call::new("POST", &format!("{path}/7/authorisations"));
            let seen = accepted(&gate, &call).remove(0).seen;
            let link = seen.header("gateway-sca-redirect").unwrap();
            let token = link.split("request=").nth(1).unwrap();
            let read = gate.tell("/sca/read", &json!({ "request": token })).json();
            assert_eq!(read["resource"], format!("{path}/7"));
        }
    }
}

/// The id that is named so is the account's, with any path and group.
//= HTTP-10 accepted
//= HTTP-10 refused
//= QUO-1 refused
#[test]
fn an_account_s_id_is_one_at_every_path() {
    let [_, (gate, _)] = gates();
    for path in ["/v1/balances/ID", "/v1/cards/a-1/ID/a%40b"] {
        let at = |id: &str| Call::accounts().at(&path.replace("ID", id));
        refused(
            &gate,
            &at("a%40b").present(),
            400,
            "BAD_REQUEST",
            "malformed-request",
        );
        accepted(&gate, &at("acc-1").present());
        let absent = || at("acc-2").only(Protocol::Http1);
        for _ in 0..4 {
            accepted(&gate, &absent());
        }
        refused(&gate, &absent(), 429, "ACCESS_EXCEEDED", "quota-exceeded");
        accepted(&gate, &at("acc-3").only(Protocol::Http1));
    }
}
