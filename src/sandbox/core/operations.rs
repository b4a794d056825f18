//! The stand-in core's operations as a table: method, path, and who answers.
//!
//! Invariant: a path matches one row at most, because `{}` stands for one whole segment and literal segments are told first.

use super::bank::Bank;
use super::{answers, examples};
use axum::http::HeaderMap;
use serde_json::{Value, json};

/// The segments that stood where the pattern has `{}`, in order.
pub(super) type Ids<'a> = Vec<&'a str>;

/// A request, as the gateway forwarded it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// The method.
    pub(super) method: &'a str,
    /// The path, without its query.
    pub(super) path: &'a str,
    /// The headers, the gateway's own included.
    pub(super) headers: &'a HeaderMap,
    /// The body, whole.
    pub(super) body: &'a [u8],
}

impl<'a> Asked<'a> {
    /// A header's value, where it is there once and is text.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Status and body.
pub(super) type Answer = (u16, Value);

/// Who answers.
enum Answers {
    /// What the bank knows.
    Bank(fn(&Asked<'_>, &Ids<'_>, &mut Bank) -> Answer),
    /// An example, with this status.
    Example(u16, fn(&Ids<'_>) -> Value),
}

use Answers::{Bank as Told, Example};

/// Every operation of the interface, §Endpoints; where the interface shows no path, those of HTTP-11.
const OPERATIONS: &[(&str, &str, Answers)] = &[
    ("GET", "/v1/accounts", Told(answers::accounts)),
    ("GET", "/v1/accounts/{}", Told(answers::account)),
    ("GET", "/v1/accounts/{}/balances", Told(answers::balances)),
    (
        "GET",
        "/v1/accounts/{}/transactions",
        Told(answers::transactions),
    ),
    (
        "GET",
        "/v1/accounts/{}/transactions/{}",
        Told(answers::transaction),
    ),
    (
        "GET",
        "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        Example(200, examples::fee),
    ),
    ("POST", "/v1/payments/{}", Told(answers::initiate)),
    ("GET", "/v1/payments/{}/{}", Told(answers::payment)),
    ("GET", "/v1/payments/{}/{}/status", Told(answers::status)),
    (
        "POST",
        "/v1/payments/{}/{}/authorisations",
        Told(answers::authorise_payment),
    ),
    (
        "POST",
        "/v1/signing-baskets",
        Example(201, examples::basket),
    ),
    (
        "GET",
        "/v1/signing-baskets/{}",
        Example(200, examples::basket_read),
    ),
    (
        "GET",
        "/v1/signing-baskets/{}/status",
        Example(200, examples::status),
    ),
    (
        "POST",
        "/v1/signing-baskets/{}/authorisations",
        Told(answers::authorise),
    ),
    ("GET", "/v1/users", Example(200, examples::sca)),
    ("POST", "/v1/consents", Example(200, examples::sca)),
    (
        "POST",
        "/v1/bank-offered-consents",
        Example(200, examples::sca),
    ),
    ("GET", "/v1/agreements", Told(answers::agreements)),
    (
        "GET",
        "/v1/sandbox/customers",
        Example(200, examples::sandbox_customers),
    ),
    (
        "POST",
        "/v1/sandbox/accounts",
        Example(201, examples::sandbox_account),
    ),
    (
        "GET",
        "/v1/sandbox/accounts/{}/transactions",
        Example(200, examples::sandbox_transactions),
    ),
    (
        "POST",
        "/v1/sandbox/accounts/{}/transactions",
        Example(201, examples::sandbox_transaction),
    ),
];

/// The answer to a request.
pub(super) fn answer(asked: &Asked<'_>, bank: &mut Bank) -> Answer {
    for (method, pattern, answers) in OPERATIONS {
        if *method == asked.method
            && let Some(ids) = matched(pattern, asked.path)
        {
            return match answers {
                Told(told) => told(asked, &ids, bank),
                Example(status, example) => (*status, example(&ids)),
            };
        }
    }
    error(404, "RESOURCE_UNKNOWN", "There is no such operation.")
}

/// The interface's error body, §Errors.
pub(super) fn error(status: u16, code: &str, message: &str) -> Answer {
    let body = json!({
        "id": super::new_id(),
        "system": super::SYSTEM,
        "status": status,
        "code": code,
        "message": message,
    });
    (status, body)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::bank::tests::bank;

    fn ask(method: &str, path: &str) -> Answer {
        let asked = Asked {
            method,
            path,
            headers: &HeaderMap::new(),
            body: b"",
        };
        answer(&asked, &mut bank())
    }

    #[test]
    fn every_example_answers_to_its_own_path() {
        for (method, pattern, answers) in OPERATIONS {
            if let Example(status, _) = answers {
                let (given, body) = ask(method, &pattern.replace("{}", "x-1"));
                assert_eq!(given, *status, "{method} {pattern}");
                assert!(body.is_object() || body.is_array());
            }
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
            let (status, body) = ask(method, path);
            assert_eq!(
                (status, &body["code"]),
                (404, &json!("RESOURCE_UNKNOWN")),
                "{path}"
            );
        }
    }

    #[test]
    fn ids_come_from_the_path_and_literals_go_first() {
        let ids = matched(
            "/v1/accounts/{}/transactions/{}",
            "/v1/accounts/a/transactions/b%2F",
        );
        assert_eq!(ids, Some(vec!["a", "b%2F"]));
        let (_, body) = ask(
            "GET",
            "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        );
        assert_eq!(body["transactionFeeIndicator"], true);
    }
}
