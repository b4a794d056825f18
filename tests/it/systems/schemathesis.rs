//! schemathesis through a gateway against the simulated bank: signed requests of a TPP whose PSU, accounts, payments and baskets
//! exist. No answer is a server error, and every answer is as GET /openapi.json describes it.

use crate::{
    bank::{Bank, parameter, request, unknown},
    harness::{Call, Gate, Protocol},
    openapi::schemathesis,
};
use portvakt::interface::operations::{AnsweredBy, builtin};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Generated requests of each operation, beside its examples and the faults of every single parameter.
const EXTENT: [&str; 6] = [
    "--phases",
    "examples,coverage,fuzzing",
    "--max-examples",
    "15",
    "--seed",
    "1",
];

/// A private customer.
const KARI: &str = "01010112345";

const DOMESTIC: &str = "/v1/payments/norwegian-domestic-credit-transfers";

/// A PSU at its bank, and the gateway.
struct Stage {
    gate: Gate,
    bank: Bank,
}

impl Stage {
    fn send(&self, call: &Call, status: u16) -> Value {
        let answer = self.gate.send(call, Protocol::Http1);
        assert_eq!(answer.status, status, "{}", answer.json());
        answer.json()
    }

    /// The PSU follows the link of an answer and approves; gives the redirect.
    fn approve(&self, call: &Call) -> String {
        let token = request(&self.gate, call);
        let last = self.bank.last_page(&token, KARI);
        self.bank.submit(&format!("{last}&step=next"))
    }

    /// What exists, for signing.py.
    fn known(&self) -> Value {
        let list = unknown("GET", "/v1/accounts");
        let redirect = self.approve(&list);
        let psu = parameter(&redirect, "psu-id");
        let session = parameter(&redirect, "tpp-session-id");
        let of_psu = |method: &str, target: &str| {
            unknown(method, target)
                .with("PSU-ID", &psu)
                .with("TPP-Session-ID", &session)
        };
        let accounts = self.send(&of_psu("GET", "/v1/accounts"), 200);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let [own, other] =
            [0, 1].map(|at| json!({"bban": accounts["accounts"][at]["bban"], "currency": "NOK"}));
        let account = text(&accounts["accounts"][0]["resourceId"]);
        let transactions = format!("/v1/accounts/{account}/transactions");
        let listed = self.send(&of_psu("GET", &transactions), 200);
        let transaction = text(&listed["transactions"]["booked"][0]["transactionId"]);

        let body = json!({"instructedAmount": {"amount": "1.00", "currency": "NOK"}, "creditorName": "A",
            "creditorAccount": other, "debtorAccount": own});
        let order = || self.send(&of_psu("POST", DOMESTIC).json(&body.to_string()), 201);
        let [signed, unsigned, in_basket] = [(); 3].map(|()| text(&order()["paymentId"]));
        self.approve(&of_psu(
            "POST",
            &format!("{DOMESTIC}/{signed}/authorisations"),
        ));
        let create = of_psu("POST", "/v1/signing-baskets")
            .with("x-accept-fix", "amount-as-string")
            .json(&json!({"paymentIds": [in_basket]}).to_string());
        let basket = text(&self.send(&create, 201)["basketId"]);

        let customers = self.send(&unknown("GET", "/v1/sandbox/customers"), 200);
        let mocks = customers
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|customer| customer["accounts"].as_array().unwrap());
        let mock = |kind: &str| {
            let found = mocks.clone().find(|account| account["accountType"] == kind);
            text(&found.unwrap_or_else(|| panic!("{customers:#}"))["id"])
        };
        let (current, card) = (mock("CURRENT"), mock("CARD"));
        json!({
            "psu": psu,
            "session": session,
            "paths": [
                ["/v1/accounts/[^/]+/balances", format!("/v1/accounts/{account}/balances")],
                ["/v1/accounts/[^/]+/transactions", transactions],
                ["/v1/accounts/[^/]+/transactions/[^/]+", format!("{transactions}/{transaction}")],
                ["/v1/payments/[^/]+/(?!fee-information)[^/]+", format!("{DOMESTIC}/{signed}")],
                ["/v1/payments/[^/]+/[^/]+/status", format!("{DOMESTIC}/{signed}/status")],
                ["/v1/payments/[^/]+/[^/]+/authorisations", format!("{DOMESTIC}/{unsigned}/authorisations")],
                ["/v1/signing-baskets/[^/]+", format!("/v1/signing-baskets/{basket}")],
                ["/v1/signing-baskets/[^/]+/status", format!("/v1/signing-baskets/{basket}/status")],
                ["/v1/signing-baskets/[^/]+/authorisations", format!("/v1/signing-baskets/{basket}/authorisations")],
                ["/v1/sandbox/accounts/[^/]+/transactions", format!("/v1/sandbox/accounts/{card}/transactions")],
                ["/v1/sandbox/accounts/[^/]+/balances", format!("/v1/sandbox/accounts/{current}/balances")],
                ["/v1/sandbox/card-accounts/[^/]+/balances", format!("/v1/sandbox/card-accounts/{card}/balances")],
            ],
            "members": {
                "debtorAccount": own, "creditorAccount": other, "paymentIds": [unsigned],
                "email": "psd2@tpp.example", "balance": "100.00",
            },
        })
    }

    /// The classes of status of each operation, with their numbers.
    fn answers(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let metrics = String::from_utf8(self.gate.control("/metrics").body).unwrap();
        let mut answers: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for line in metrics
            .lines()
            .filter(|line| line.starts_with("portvakt_requests_total{"))
        {
            let label = |name: &str| {
                let (_, rest) = line.split_once(&format!("{name}=\"")).unwrap();
                rest.split('"').next().unwrap().to_owned()
            };
            let count: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            *answers
                .entry(label("operation"))
                .or_default()
                .entry(label("status"))
                .or_default() += count;
        }
        answers
    }
}

#[test]
#[ignore = "make test-systems"]
fn it_finds_nothing_in_the_simulated_bank() {
    let rates = "rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}";
    let (gate, bank) = Bank::behind(Gate::builder().line(rates));
    let stage = Stage { gate, bank };
    let known = stage.known();
    let folder = tempfile::tempdir().unwrap();
    // The initialisation last: the customer and the payments are gone then.
    for which in ["--exclude-path", "--include-path"] {
        let extent = [&EXTENT[..], &[which, "/v1/sandbox/initialisation"]].concat();
        schemathesis(&stage.gate, folder.path(), &extent, &known);
    }
    let answers = stage.answers();
    println!("{answers:#?}");
    let with = |status: &str| -> BTreeSet<_> {
        let found = answers
            .iter()
            .filter(|(_, counts)| counts.get(status).is_some_and(|count| *count > 0));
        found.map(|(operation, _)| operation.clone()).collect()
    };
    assert_eq!(with("5xx"), BTreeSet::new());
    // The gateway answers the other operations with an SCA.
    let core = builtin()
        .into_iter()
        .filter(|operation| operation.answered_by == AnsweredBy::Upstream);
    let core: BTreeSet<_> = core.map(|operation| operation.name).collect();
    let succeeded = with("2xx");
    let never: Vec<_> = core.difference(&succeeded).collect();
    assert_eq!(never, [""; 0], "operations without a success");
}
