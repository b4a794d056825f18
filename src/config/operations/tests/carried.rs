//! Keys that an operation cannot carry (QUO-16).

use super::load;
use crate::interface::operations::{AnsweredBy, Environment, PathId, Quota, Sca, Transactions};

/// Each entry is refused at the line with a text that contains this fault, and accepted with the path or the keys that the text names.
//= QUO-16 accepted
//= QUO-16 refused
#[test]
#[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
fn what_an_operation_cannot_carry() {
    let load = |entry: &str| {
        let text = format!("operations:\n- {{{entry}}}\n");
        let loaded = load(Environment::Production, &text);
        loaded.err().unwrap_or_default()
    };
    let consent = "name: x, method: GET, role: PSP_AI, sca: consent";
    let list = "transactions: list, query: [{name: dateFrom, kind: date-from}]";
    let payment = "name: x, method: POST, role: PSP_PI, about: payment";
    for (entry, fault, corrected) in [
        // Moved operations of the interface.
        (
            "name: balance-list, path: /v1/balances".to_owned(),
            "path: balance-list is about one account, and /v1/balances does not name it: write /v1/balances/{account-id}",
            "name: balance-list, path: '/v1/balances/{account-id}'".to_owned(),
        ),
        (
            "name: balance-list, path: '/customers/{customer}/accounts/{id}'".to_owned(),
            "write /customers/{customer}/accounts/{account-id}",
            "name: balance-list, path: '/customers/{customer}/accounts/{account-id}'".to_owned(),
        ),
        (
            "name: transaction-details, path: '/v2/{account-id}/details'".to_owned(),
            "write a path with as many",
            "name: transaction-details, path: '/v2/{account-id}/details/{transactionId}'".to_owned(),
        ),
        (
            "name: payment-authorise, path: '/v2/{customer}/{payment-product}/{id}/start'".to_owned(),
            "write /v2/{customer}/{payment-product}/{payment-id}/start",
            "name: payment-authorise, path: '/v2/{customer}/{payment-product}/{payment-id}/start'".to_owned(),
        ),
        (
            "name: payment-create, path: /v2/pay".to_owned(),
            "payment-create is about one payment product",
            "name: payment-create, path: '/v2/pay/{payment-product}'".to_owned(),
        ),
        (
            "name: basket-read, path: '/v2/{id}'".to_owned(),
            "write /v2/{basket-id}",
            "name: basket-read, path: '/v2/{basket-id}'".to_owned(),
        ),
        (
            "name: agreement-list, answered_by: gateway".to_owned(),
            "answered_by: the gateway answers agreement-list with a link",
            "name: agreement-list, answered_by: upstream".to_owned(),
        ),
        (
            "name: user-register, answer: {status: 200, schema: '{}'}".to_owned(),
            "answer: the gateway answers user-register",
            "name: user-register, answered_by: upstream, answer: {status: 200, schema: '{}'}".to_owned(),
        ),
        // Added operations.
        (
            format!("{consent}, path: '/customers/{{customer}}/accounts/{{id}}'"),
            "write /customers/{customer}/accounts/{account-id}",
            format!("{consent}, path: '/customers/{{customer}}/accounts/{{account-id}}'"),
        ),
        (
            format!("{consent}, quota: four-in-a-day, path: /v2/balances"),
            "calls of x are counted by account",
            format!("{consent}, quota: four-in-a-day, path: '/v2/balances/{{account-id}}'"),
        ),
        (
            "name: x, method: GET, role: PSP_AI, quota: four-in-a-day, path: '/v2/{id}'".to_owned(),
            "write /v2/{account-id}",
            "name: x, method: GET, role: PSP_AI, sca: identified, quota: four-in-a-day, path: '/v2/{account-id}'".to_owned(),
        ),
        (
            format!("name: x, method: GET, role: PSP_AI, sca: identified, {list}, path: '/v2/{{account-id}}'"),
            "transactions: how far back x may reach depends on the PSU's consent: write sca: consent",
            format!("{consent}, {list}, path: '/v2/{{account-id}}'"),
        ),
        (
            format!("{consent}, transactions: list, path: '/v2/{{account-id}}'"),
            "query: [{name: dateFrom, kind: date-from}]",
            format!("{consent}, {list}, path: '/v2/{{account-id}}'"),
        ),
        (
            format!("{consent}, transactions: details, path: /v2/details"),
            "write /v2/details/{account-id}",
            format!("{consent}, transactions: details, path: '/v2/details/{{account-id}}'"),
        ),
        (
            format!("{consent}, answered_by: gateway, path: /v2/x"),
            "answered_by: the gateway answers x",
            format!("{consent}, path: /v2/x"),
        ),
        (
            format!("{payment}, path: '/v2/{{customer}}/payments/{{id}}'"),
            "write /v2/{customer}/payments/{payment-id}",
            format!("{payment}, path: '/v2/{{customer}}/payments/{{payment-id}}'"),
        ),
        (
            format!("{payment}, path: /v2/start"),
            "an SCA of x signs the payment",
            format!("{payment}, path: '/v2/start/{{payment-id}}'"),
        ),
        (
            "name: x, method: POST, role: PSP_PI, about: payment-initiation, quota: four-in-a-day, path: '/v2/{account-id}'".to_owned(),
            "quota: it counts calls without the PSU",
            "name: x, method: POST, role: PSP_PI, about: payment-initiation, path: '/v2/{account-id}'".to_owned(),
        ),
        (
            format!("{consent}, path: '/v2/{{accountId}}'"),
            "{accountId} says nothing about what it is: write /v2/{account-id}",
            format!("{consent}, path: '/v2/{{account-id}}'"),
        ),
    ] {
        let faults = load(&entry);
        assert!(
            faults.starts_with("o.yaml:2:") && faults.contains(fault),
            "{entry}: {faults}"
        );
        assert_eq!(load(&corrected), "", "{corrected}");
    }
}

/// Every combination of the keys that depend on each other: an operation that is accepted has what it declares.
//= QUO-16 accepted
//= QUO-16 refused
#[test]
fn no_key_is_without_effect() {
    let paths = [
        "/v2/x",
        "/v2/x/{id}",
        "/v2/x/{account-id}",
        "/v2/{customer}/{account-id}",
    ];
    let (mut accepted, mut refused) = (0, 0);
    for path in paths {
        for (sca, _) in Sca::NAMES {
            for (quota, _) in Quota::NAMES {
                for (transactions, _) in Transactions::NAMES {
                    for (answered_by, _) in AnsweredBy::NAMES {
                        for query in ["[]", "[{name: from, kind: date-from}]"] {
                            let text = format!(
                                "operations: [{{name: x, method: GET, path: '{path}', role: PSP_AI, sca: {sca}, quota: {quota}, transactions: {transactions}, answered_by: {answered_by}, query: {query}}}]"
                            );
                            let Ok(catalogue) = load(Environment::Production, &text) else {
                                refused += 1;
                                continue;
                            };
                            accepted += 1;
                            let operation = catalogue.named("x").unwrap();
                            let has_account = operation.path_ids.contains(&PathId::Account);
                            let has_first = query != "[]";
                            if operation.answered_by == AnsweredBy::Gateway {
                                assert_eq!((*sca, *quota, *transactions), ("none", "none", "none"));
                                continue;
                            }
                            assert!(*quota == "none" || has_account, "{text}");
                            let shows = *transactions != "none";
                            assert!(!shows || has_account && *sca == "consent", "{text}");
                            assert!(*transactions != "list" || has_first, "{text}");
                            let judged = has_account || path == "/v2/x";
                            assert!(*sca != "consent" || judged, "{text}");
                        }
                    }
                }
            }
        }
    }
    assert!(accepted > 50 && refused > 100, "{accepted}, {refused}");
}
