//! Operations that a bank moves or adds keep their meaning by name, wherever the ids stand in their paths: QUO-16.

use crate::harness::{Call, Gate, GateBuilder, Protocol, accepted, refused, world};
use serde_json::json;

/// The balances, moved and added below a customer, and a moved start of an authorisation.
const OPERATIONS: &str = "
operations:
  - {name: balance-list, path: '/customers/{customer}/accounts/{account-id}'}
  - {name: limits, method: GET, path: '/v2/{account-id}/of/{customer}', role: PSP_AI, sca: consent, quota: four-in-a-day}
  - {name: holds, method: GET, path: '/v2/{customer}/holds/{account-id}', role: PSP_AI, sca: consent, quota: four-in-a-day}
  - {name: payment-authorise, path: '/customers/{customer}/payments/{payment-product}/{payment-id}/start'}
  - {name: basket-authorise, path: '/customers/{customer}/{basket-id}/start'}
";

/// The paths of the operations that are judged by account.
const PATHS: [&str; 3] = [
    "/customers/CUSTOMER/accounts/ACCOUNT",
    "/v2/ACCOUNT/of/CUSTOMER",
    "/v2/CUSTOMER/holds/ACCOUNT",
];

fn moved() -> GateBuilder {
    let builder = Gate::builder().file("operations.yaml", OPERATIONS);
    builder.line("operations: operations.yaml")
}

fn call(path: &str, customer: &str, account: &str) -> Call {
    let path = path.replace("CUSTOMER", customer);
    Call::balances().at(&path.replace("ACCOUNT", account))
}

/// The consent for one account opens this account, whichever customer the path names, and no other.
//= QUO-16 accepted
//= QUO-16 refused
//= SCA-18 refused
#[test]
fn a_consent_opens_the_account_that_the_path_names() {
    let gate = moved().strangers().start();
    let tpp = &world().both;
    gate.introduce(json!({ "tpp": tpp.id(), "psu_id": tpp.psu(), "accounts": ["a-1"] }));
    for path in PATHS {
        for customer in ["a-2", "a-1"] {
            accepted(&gate, &call(path, customer, "a-1").present());
            let other = call(path, customer, "a-2").present();
            refused(&gate, &other, 404, "RESOURCE_UNKNOWN", "account-unknown");
        }
    }
}

/// Eight calls for one account by eight customers are four calls and four refusals.
//= QUO-16 accepted
//= QUO-16 refused
//= QUO-1 refused
#[test]
fn calls_are_counted_by_the_account_that_the_path_names() {
    let gate = moved().start();
    for path in PATHS {
        let absent = |customer: usize, account: &str| {
            call(path, &format!("c-{customer}"), account).only(Protocol::Http1)
        };
        for customer in 0..4 {
            accepted(&gate, &absent(customer, "a-1"));
        }
        for customer in 4..8 {
            let fifth = absent(customer, "a-1");
            refused(&gate, &fifth, 429, "ACCESS_EXCEEDED", "quota-exceeded");
        }
        // Another account of the first customer has its own calls.
        accepted(&gate, &absent(0, "a-2"));
    }
}

/// The page of the SCA is told the payment or the basket, not the customer before it.
//= QUO-16 accepted
//= SCA-12 accepted
#[test]
fn an_sca_signs_the_payment_that_the_path_names() {
    let gate = moved().start();
    let payment = "/customers/c-1/payments/norwegian-domestic-credit-transfers/7";
    for signed in [payment, "/customers/c-1/b-7"] {
        let call = Call::new("POST", &format!("{signed}/start"));
        let seen = accepted(&gate, &call).remove(0).seen;
        let link = seen.header("gateway-sca-redirect").unwrap();
        let token = link.split("request=").nth(1).unwrap();
        let read = gate.tell("/sca/read", &json!({ "request": token })).json();
        assert_eq!(read["resource"], signed);
    }
}
