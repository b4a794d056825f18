//! The simulated core's operations as a table: method, path and function.
//!
//! Invariant: a path matches at most one row, because `{}` stands for one whole segment and literal segments are matched first.
//! Each request is one transaction of the bank, which a status of 400 and above rolls back.

use super::answer::{Answer, Asked, Ids, Stop, decoded, error, with_messages};
use super::answers::{accounts, baskets, contact, mock, payments, sandbox};
use super::bank::Bank;
use portvakt_base::terminal::complain;

type Answers = fn(&Asked<'_>, &Ids, &Bank) -> Result<Answer, Stop>;

/// All operations of the interface (§Endpoints); if the interface gives no path, those of HTTP-11. The last four are the simulation's
/// and the bank's own channel: a gateway forwards them only if its file of operations adds them.
const OPERATIONS: &[(&str, &str, Answers)] = &[
    ("GET", "/v1/accounts", accounts::list),
    ("GET", "/v1/accounts/{}", accounts::one),
    ("GET", "/v1/accounts/{}/balances", accounts::balances),
    (
        "GET",
        "/v1/accounts/{}/transactions",
        accounts::transactions,
    ),
    ("GET", "/v1/accounts/{}/transactions/{}", accounts::details),
    (
        "GET",
        "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        payments::fee_information,
    ),
    ("POST", "/v1/payments/{}", payments::initiate),
    ("GET", "/v1/payments/{}/{}", payments::read),
    ("GET", "/v1/payments/{}/{}/status", payments::status),
    (
        "POST",
        "/v1/payments/{}/{}/authorisations",
        payments::authorise,
    ),
    ("POST", "/v1/signing-baskets", baskets::create),
    ("GET", "/v1/signing-baskets/{}", baskets::read),
    ("GET", "/v1/signing-baskets/{}/status", baskets::status),
    (
        "POST",
        "/v1/signing-baskets/{}/authorisations",
        baskets::authorise,
    ),
    ("GET", "/v1/users", contact::sca),
    ("POST", "/v1/consents", contact::sca),
    ("POST", "/v1/bank-offered-consents", contact::sca),
    ("GET", "/v1/agreements", accounts::agreements),
    ("GET", "/v1/tpp/contact", contact::read),
    ("PUT", "/v1/tpp/contact", contact::write),
    ("POST", "/v1/sandbox/initialisation", sandbox::initialise),
    ("GET", "/v1/sandbox/customers", sandbox::customers),
    ("POST", "/v1/sandbox/accounts", sandbox::open_account),
    (
        "GET",
        "/v1/sandbox/accounts/{}/transactions",
        mock::transactions,
    ),
    (
        "POST",
        "/v1/sandbox/accounts/{}/transactions",
        mock::add_transaction,
    ),
    ("PUT", "/v1/sandbox/accounts/{}/balances", mock::set_balance),
    (
        "PUT",
        "/v1/sandbox/card-accounts/{}/balances",
        mock::set_card_balance,
    ),
    ("POST", "/v1/sandbox/batch", sandbox::run_batch),
    (
        "POST",
        "/v1/sandbox/payments/{}/cancellation",
        sandbox::cancel_payment,
    ),
    ("POST", "/v1/sandbox/payments/{}/change", payments::change),
    ("PUT", "/v1/sandbox/accounts/{}/payments", payments::permit),
];

/// The answer to a request.
pub(super) fn answer(asked: &Asked<'_>, bank: &Bank) -> Answer {
    for (method, pattern, answers) in OPERATIONS {
        if *method == asked.method
            && let Some(ids) = matched(pattern, asked.path)
        {
            let answer = match bank.atomically(|bank| answers(asked, &ids, bank)) {
                Ok(answer) | Err(Stop::Refused(answer)) => answer,
                Err(Stop::Broken(fault)) => {
                    complain("portvakt-sandbox", fault);
                    error(500, "SYSTEM_ERROR", "The simulated bank cannot answer.")
                }
            };
            return match is_of_payments(pattern) {
                true => with_messages(answer),
                false => answer,
            };
        }
    }
    error(404, "RESOURCE_UNKNOWN", "There is no such operation.")
}

/// Whether this is an operation of payments or baskets. The changes of a payment in the bank's own channel are none of the interface's.
fn is_of_payments(pattern: &str) -> bool {
    ["/v1/payments/", "/v1/signing-baskets"]
        .iter()
        .any(|kind| pattern.starts_with(kind))
}

/// The variable segments, if the path matches the pattern.
fn matched(pattern: &str, path: &str) -> Option<Ids> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut ids = Ids::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(ids),
            (Some("{}"), Some(segment)) if !segment.is_empty() => ids.push(decoded(segment)),
            (Some(literal), Some(segment)) if literal == segment => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::core::bank::tests::bank;
    use crate::core::caller::{Caller, Fixes};
    use serde_json::{Value, json};

    pub(in super::super) const TPP: &str = "PSDNO-FSA-1";

    /// Calls an operation as the gateway does for a TPP, with every fix on.
    pub(in super::super) fn ask(bank: &Bank, line: &str, caller: Caller, body: &Value) -> Answer {
        let (method, target) = line.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let asked = Asked {
            method,
            path,
            query,
            caller: &caller,
            body: body.as_bytes(),
        };
        answer(&asked, bank)
    }

    /// A TPP, without a PSU.
    pub(in super::super) fn tpp() -> Caller {
        Caller {
            tpp: TPP.into(),
            fixes: Fixes::all(),
            ..Caller::default()
        }
    }

    #[test]
    fn every_operation_answers() {
        let (bank, _) = bank();
        for operation in portvakt_interface::operations::builtin() {
            let path = operation
                .path
                .replace("{payment-product}", "norwegian-domestic-credit-transfers");
            let path: String = path
                .split('/')
                .map(|segment| {
                    if segment.starts_with('{') {
                        "x-1"
                    } else {
                        segment
                    }
                })
                .collect::<Vec<_>>()
                .join("/");
            let line = format!("{} {path}", operation.method);
            let (status, body) = ask(&bank, &line, tpp(), &json!({}));
            assert_ne!(body["message"], "There is no such operation.", "{line}");
            assert!(status < 500, "{line}: {body}");
        }
    }

    //= ERR-1 accepted
    #[test]
    fn errors_of_payments_and_baskets_have_tpp_messages() {
        let (bank, _) = bank();
        for operation in portvakt_interface::operations::builtin() {
            let path = operation.path.replace(['{', '}'], "");
            let path = path.replace("/payment-product", "/norwegian-domestic-credit-transfers");
            let line = format!("{} {path}", operation.method);
            // A member that no operation takes.
            let (status, body) = ask(&bank, &line, tpp(), &json!({"x": 1}));
            let is_error = status >= 400;
            let expected = match is_error && operation.tpp_messages {
                true => {
                    json!([{"category": "ERROR", "code": body["code"], "text": body["message"]}])
                }
                false => Value::Null,
            };
            assert_eq!(body["tppMessages"], expected, "{line}: {body}");
        }
    }

    #[test]
    fn what_is_no_operation_is_unknown() {
        let (bank, _) = bank();
        for line in [
            "GET /",
            "GET /v1/accounts/",
            "GET /v1/accounts//balances",
            "DELETE /v1/accounts",
            "GET /v1/accounts/a/balances/b",
        ] {
            let (status, body) = ask(&bank, line, tpp(), &Value::Null);
            assert_eq!(
                (status, &body["code"]),
                (404, &json!("RESOURCE_UNKNOWN")),
                "{line}"
            );
        }
    }

    #[test]
    fn ids_come_from_the_path_and_parameters_from_the_query() {
        let ids = matched(
            "/v1/accounts/{}/transactions/{}",
            "/v1/accounts/a/transactions/b%3A1",
        );
        assert_eq!(ids, Some(vec!["a".to_owned(), "b:1".to_owned()]));
        let asked = Asked {
            method: "GET",
            path: "/",
            query: "a=b%20c&limit=2&x",
            caller: &Caller::default(),
            body: b"",
        };
        assert_eq!(asked.parameter("a").as_deref(), Some("b c"));
        assert_eq!(asked.parsed("limit"), Some(2));
        assert_eq!(asked.parsed::<u32>("a"), None);
    }
}
