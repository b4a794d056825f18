//! The stand-in core's operations as a table: method, path, status, and an example of the answer.
//!
//! Invariant: a path matches one row at most, because `{}` stands for one whole segment and literal segments are told first.
//! Deliberately without memory: each answer is an example, and nothing that is posted can be read back.

use serde_json::{Value, json};
use uuid::Uuid;

/// The segments that stood where the pattern has `{}`, in order.
type Ids<'a> = Vec<&'a str>;

/// Method, pattern, status of the answer, and the answer itself.
type Operation = (&'static str, &'static str, u16, fn(&Ids<'_>) -> Value);

/// Every operation of the interface, §Endpoints; where the interface shows no path, those of HTTP-11.
const OPERATIONS: &[Operation] = &[
    ("GET", "/v1/accounts", 200, accounts),
    ("GET", "/v1/accounts/{}", 200, account),
    ("GET", "/v1/accounts/{}/balances", 200, balances),
    ("GET", "/v1/accounts/{}/transactions", 200, transactions),
    ("GET", "/v1/accounts/{}/transactions/{}", 200, transaction),
    (
        "GET",
        "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        200,
        fee,
    ),
    ("POST", "/v1/payments/{}", 201, payment),
    ("GET", "/v1/payments/{}/{}", 200, payment_read),
    ("GET", "/v1/payments/{}/{}/status", 200, status),
    ("POST", "/v1/payments/{}/{}/authorisations", 201, sca),
    ("POST", "/v1/signing-baskets", 201, basket),
    ("GET", "/v1/signing-baskets/{}", 200, basket_read),
    ("GET", "/v1/signing-baskets/{}/status", 200, status),
    ("POST", "/v1/signing-baskets/{}/authorisations", 201, sca),
    ("GET", "/v1/users", 200, sca),
    ("POST", "/v1/consents", 200, sca),
    ("POST", "/v1/bank-offered-consents", 200, sca),
    ("GET", "/v1/agreements", 200, agreements),
    ("GET", "/v1/sandbox/customers", 200, sandbox_customers),
    ("POST", "/v1/sandbox/accounts", 201, sandbox_account),
    (
        "GET",
        "/v1/sandbox/accounts/{}/transactions",
        200,
        sandbox_transactions,
    ),
    (
        "POST",
        "/v1/sandbox/accounts/{}/transactions",
        201,
        sandbox_transaction,
    ),
];

/// Status and body for a method and a path, without its query.
pub(super) fn answer(method: &str, path: &str) -> (u16, Value) {
    for (known, pattern, status, example) in OPERATIONS {
        if *known == method
            && let Some(ids) = matched(pattern, path)
        {
            return (*status, example(&ids));
        }
    }
    (404, error(404, "RESOURCE_UNKNOWN"))
}

/// The interface's error body, §Errors.
pub(super) fn error(status: u16, code: &str) -> Value {
    json!({
        "id": new_id(),
        "system": "sandbox-core",
        "status": status,
        "code": code,
        "message": "The stand-in core knows no such resource, or not with this method.",
    })
}

/// The variable segments, where the path fits the pattern.
fn matched<'a>(pattern: &str, path: &'a str) -> Option<Ids<'a>> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut ids = Ids::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(ids),
            (Some("{}"), Some(segment)) if !segment.is_empty() => ids.push(segment),
            (Some(literal), Some(segment)) if literal == segment => {}
            _ => return None,
        }
    }
}

fn new_id() -> String {
    Uuid::new_v4().to_string()
}

fn id<'a>(ids: &Ids<'a>, position: usize) -> &'a str {
    ids.get(position).copied().unwrap_or_default()
}

fn link(href: &str, verb: &str) -> Value {
    json!({"href": href, "verbs": [verb]})
}

fn nok(amount: &str) -> Value {
    json!({"amount": amount, "currency": "NOK"})
}

fn one_account(id: &str) -> Value {
    json!({
        "resourceId": id,
        "bban": "12345678903",
        "iban": "NO3612345678903",
        "currency": "NOK",
        "name": "Brukskonto",
        "_links": {
            "balances": link(&format!("/v1/accounts/{id}/balances"), "GET"),
            "transactions": link(&format!("/v1/accounts/{id}/transactions"), "GET"),
        },
    })
}

fn accounts(_: &Ids<'_>) -> Value {
    json!({"accounts": [one_account("konto-1"), one_account("konto-2")]})
}

fn account(ids: &Ids<'_>) -> Value {
    json!({"account": one_account(id(ids, 0))})
}

fn balances(ids: &Ids<'_>) -> Value {
    json!({
        "account": {"resourceId": id(ids, 0), "currency": "NOK"},
        "balances": [{"balanceType": "interimAvailable", "balanceAmount": nok("1234.50")}],
    })
}

fn transactions(ids: &Ids<'_>) -> Value {
    let href = format!("/v1/accounts/{}/transactions/tx-1", id(ids, 0));
    json!({
        "transactions": {
            "booked": [{
                "transactionId": "tx-1",
                "bookingDate": "2025-03-03",
                "transactionAmount": nok("-199.00"),
                "remittanceInformationUnstructured": "Kaffe og kanelboller",
                "_links": {"transactionDetails": link(&href, "GET")},
            }],
            "pending": [],
        },
    })
}

fn transaction(ids: &Ids<'_>) -> Value {
    json!({
        "transactionsDetails": {
            "transactionId": id(ids, 1),
            "bookingDate": "2025-03-03",
            "valueDate": "2025-03-03",
            "transactionAmount": nok("-199.00"),
            "creditorName": "Bakeriet på hjørnet",
            "creditorAccount": {"iban": "NO3612345678903", "currency": "NOK"},
            "remittanceInformationUnstructured": "Kaffe og kanelboller",
        },
    })
}

fn fee(_: &Ids<'_>) -> Value {
    json!({"transactionFeeIndicator": true, "transactionFees": nok("2.00")})
}

fn payment(ids: &Ids<'_>) -> Value {
    let payment = new_id();
    let path = format!("/v1/payments/{}/{payment}", id(ids, 0));
    json!({
        "paymentId": payment,
        "transactionStatus": "RCVD",
        "_links": authorise_and_status(&path),
    })
}

fn authorise_and_status(path: &str) -> Value {
    json!({
        "self": link(path, "GET"),
        "startAuthorisation": link(&format!("{path}/authorisations"), "POST"),
        "status": link(&format!("{path}/status"), "GET"),
    })
}

fn payment_read(ids: &Ids<'_>) -> Value {
    json!({"paymentId": id(ids, 1), "transactionStatus": "RCVD", "instructedAmount": nok("100.00")})
}

fn status(_: &Ids<'_>) -> Value {
    json!({"transactionStatus": "RCVD"})
}

fn sca(_: &Ids<'_>) -> Value {
    json!({"_links": {"scaRedirect": link("https://sca.example/placeholder", "GET")}})
}

fn basket(_: &Ids<'_>) -> Value {
    let basket = new_id();
    let path = format!("/v1/signing-baskets/{basket}");
    json!({
        "basketId": basket,
        "transactionStatus": "RCVD",
        "_links": authorise_and_status(&path),
    })
}

fn basket_read(ids: &Ids<'_>) -> Value {
    json!({"basketId": id(ids, 0), "transactionStatus": "RCVD"})
}

fn agreements(_: &Ids<'_>) -> Value {
    json!({"agreements": [{"id": "7d1f1f1c-52c8-4c52-9c3a-0d9a30a8c9f1", "name": "Fisk og Redskap AS"}]})
}

fn sandbox_customers(_: &Ids<'_>) -> Value {
    json!([{"id": "kunde-1", "name": "Kari Nordmann", "context": "PRIVATE"}])
}

fn sandbox_account(_: &Ids<'_>) -> Value {
    json!({"id": new_id(), "bban": "12345678903", "currency": "NOK"})
}

fn sandbox_transactions(ids: &Ids<'_>) -> Value {
    json!([one_sandbox_transaction(id(ids, 0), "tx-1")])
}

fn sandbox_transaction(ids: &Ids<'_>) -> Value {
    one_sandbox_transaction(id(ids, 0), &new_id())
}

fn one_sandbox_transaction(account: &str, transaction: &str) -> Value {
    let href = format!("/v1/sandbox/accounts/{account}/transactions");
    json!({
        "id": transaction,
        "amount": 199,
        "currency": "NOK",
        "valueDate": "2025-03-03",
        "bookingDate": "2025-03-03",
        "remittanceInformationUnstructured": "Kaffe og kanelboller",
        "creditorName": "Bakeriet på hjørnet",
        "creditorAccount": {"iban": "NO3612345678903", "bban": "12345678903"},
        "debtorName": "Kari Nordmann",
        "debtorAccount": {"iban": "NO9386011117947", "bban": "86011117947"},
        "bankTransactionCode": "PMNT",
        "ultimateDebtor": "",
        "ultimateCreditor": "",
        "purposeCode": "OTHR",
        "_links": {"self": link(&href, "GET")},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_answers_to_its_own_path() {
        for (method, pattern, status, _) in OPERATIONS {
            let (given, body) = answer(method, &pattern.replace("{}", "x-1"));
            assert_eq!(given, *status, "{method} {pattern}");
            assert!(body.is_object() || body.is_array());
        }
    }

    #[test]
    fn what_is_no_operation_is_unknown() {
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/v1/accounts/"),
            ("GET", "/v1/accounts//balances"),
            ("DELETE", "/v1/accounts"),
            ("GET", "/v1/accounts/a/balances/b"),
        ] {
            let (status, body) = answer(method, path);
            assert_eq!(
                (status, &body["code"]),
                (404, &json!("RESOURCE_UNKNOWN")),
                "{path}"
            );
        }
    }

    #[test]
    fn ids_come_from_the_path() {
        let (_, body) = answer("GET", "/v1/accounts/a/transactions/b%2F");
        assert_eq!(body["transactionsDetails"]["transactionId"], "b%2F");
        let (_, body) = answer(
            "GET",
            "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        );
        assert_eq!(body["transactionFeeIndicator"], true);
    }
}
