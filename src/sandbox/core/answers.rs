//! What the stand-in core answers from what the bank knows: account information, payments, agreements.
//!
//! It believes the gateway (FWD-1): who the TPP is, and that the PSU of a PSU-ID may be asked about. Invariant: whatever it has
//! belongs to a TPP, and another is told that there is no such thing. Where it has nothing for a PSU-ID it demands SCA, with a 401
//! without a link, which the gateway adds (SCA-14).

use super::account::Account;
use super::bank::{Bank, is_identity};
use super::link;
use super::operations::{Answer, Asked, Ids, error};
use super::payment::Payment;
use serde_json::{Value, json};
use uuid::Uuid;

/// §Other operations: the accounts that the PSU consented to.
pub(super) fn accounts(asked: &Asked<'_>, _: &Ids<'_>, bank: &mut Bank) -> Answer {
    match open_accounts(asked, bank) {
        Some(accounts) => {
            let shown = accounts.into_iter().map(Account::shown);
            (200, json!({"accounts": shown.collect::<Value>()}))
        }
        None => sca_demanded(),
    }
}

/// One of them.
pub(super) fn account(asked: &Asked<'_>, ids: &Ids<'_>, bank: &mut Bank) -> Answer {
    of_account(asked, ids, bank, |account| {
        Some(json!({"account": account.shown()}))
    })
}

/// §Other operations: what is in it.
pub(super) fn balances(asked: &Asked<'_>, ids: &Ids<'_>, bank: &mut Bank) -> Answer {
    of_account(asked, ids, bank, |account| Some(account.balances()))
}

/// §Other operations: what moved.
pub(super) fn transactions(asked: &Asked<'_>, ids: &Ids<'_>, bank: &mut Bank) -> Answer {
    of_account(asked, ids, bank, |account| Some(account.transactions()))
}

/// §C.
pub(super) fn transaction(asked: &Asked<'_>, ids: &Ids<'_>, bank: &mut Bank) -> Answer {
    let id = ids.get(1).copied().unwrap_or_default();
    of_account(asked, ids, bank, |account| account.transaction(id))
}

/// §Corporate context: whom the PSU acts for.
pub(super) fn agreements(asked: &Asked<'_>, _: &Ids<'_>, bank: &mut Bank) -> Answer {
    let Some(identity) = identity_of(asked, bank) else {
        return sca_demanded();
    };
    let agreements = bank.customer(&identity).agreements.iter();
    let shown =
        agreements.map(|agreement| json!({"id": agreement.id.to_string(), "name": agreement.name}));
    (200, json!({"agreements": shown.collect::<Value>()}))
}

/// §B and the other products: a payment of the PSU, or of whom X-PSU-IDENTITY names (§Single SCA payment flow).
pub(super) fn initiate(asked: &Asked<'_>, ids: &Ids<'_>, bank: &mut Bank) -> Answer {
    let Some(payer) = identity_of(asked, bank).or_else(|| named_identity(asked)) else {
        return sca_demanded();
    };
    let product = ids.first().copied().unwrap_or_default();
    let Some(payment) =
        Payment::received(tpp(asked), &payer, agreement(asked), product, asked.body)
    else {
        return error(400, "FORMAT_ERROR", "The body is no JSON object.");
    };
    bank.customer(&payer);
    let answer = payment.created();
    bank.keep(payment);
    (201, answer)
}

/// What was posted, and where it stands.
pub(super) fn payment(asked: &Asked<'_>, _: &Ids<'_>, bank: &mut Bank) -> Answer {
    of_payment(asked, asked.path, bank, |payment| (200, payment.shown()))
}

/// §Single payment 4.
pub(super) fn status(asked: &Asked<'_>, _: &Ids<'_>, bank: &mut Bank) -> Answer {
    let path = asked.path.trim_end_matches("/status");
    of_payment(asked, path, bank, |payment| (200, payment.look()))
}

/// §Single payment 2.
pub(super) fn authorise_payment(asked: &Asked<'_>, ids: &Ids<'_>, bank: &mut Bank) -> Answer {
    let path = asked.path.trim_end_matches("/authorisations");
    match bank.payment(tpp(asked), path) {
        Some(_) => authorise(asked, ids, bank),
        None => no_such_payment(),
    }
}

/// The link is the gateway's, made for this request (SCA-21).
pub(super) fn authorise(asked: &Asked<'_>, _: &Ids<'_>, _: &mut Bank) -> Answer {
    match asked.header("gateway-sca-redirect") {
        Some(href) => (201, json!({"_links": {"scaRedirect": link(href, "GET")}})),
        None => error(
            500,
            "SYSTEM_ERROR",
            "The gateway sent no Gateway-Sca-Redirect, from which an SCA starts.",
        ),
    }
}

/// SCA-14: the gateway puts the link in.
fn sca_demanded() -> Answer {
    error(401, "SCA_NOT_FOUND", "The PSU must authenticate first.")
}

fn tpp<'a>(asked: &Asked<'a>) -> &'a str {
    asked.header("gateway-tpp-id").unwrap_or_default()
}

fn psu(asked: &Asked<'_>) -> Option<Uuid> {
    asked.header("psu-id")?.parse().ok()
}

fn agreement(asked: &Asked<'_>) -> Option<Uuid> {
    asked.header("psu-corporate-id")?.parse().ok()
}

/// Whom the PSU-ID stands for, where this TPP was given it.
fn identity_of(asked: &Asked<'_>, bank: &Bank) -> Option<String> {
    let identity = bank.identity(tpp(asked), psu(asked)?)?;
    Some(identity.to_owned())
}

fn named_identity(asked: &Asked<'_>) -> Option<String> {
    let identity = asked.header("x-psu-identity")?;
    is_identity(identity).then(|| identity.to_owned())
}

fn open_accounts<'b>(asked: &Asked<'_>, bank: &'b Bank) -> Option<Vec<&'b Account>> {
    bank.open_accounts(tpp(asked), psu(asked)?, agreement(asked))
}

fn of_account(
    asked: &Asked<'_>,
    ids: &Ids<'_>,
    bank: &Bank,
    answer: impl FnOnce(&Account) -> Option<Value>,
) -> Answer {
    let Some(accounts) = open_accounts(asked, bank) else {
        return sca_demanded();
    };
    let found = accounts
        .into_iter()
        .find(|account| ids.first() == Some(&account.id.as_str()));
    match found.and_then(answer) {
        Some(body) => (200, body),
        None => error(
            404,
            "RESOURCE_UNKNOWN",
            "There is no such account or transaction.",
        ),
    }
}

fn of_payment(
    asked: &Asked<'_>,
    path: &str,
    bank: &mut Bank,
    answer: impl FnOnce(&mut Payment) -> Answer,
) -> Answer {
    match bank.payment(tpp(asked), path) {
        Some(payment) => answer(payment),
        None => no_such_payment(),
    }
}

fn no_such_payment() -> Answer {
    error(404, "RESOURCE_UNKNOWN", "There is no such payment.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::bank::tests::{KARI, bank};
    use crate::core::operations;
    use axum::http::{HeaderMap, HeaderName, HeaderValue};
    use std::collections::BTreeSet;

    const TPP: &str = "PSDNO-FSA-1";
    const DOMESTIC: &str = "/v1/payments/norwegian-domestic-credit-transfers";

    fn ask(bank: &mut Bank, line: &str, headers: &[(&str, &str)]) -> Answer {
        let (method, path) = line.split_once(' ').unwrap();
        let gateway = [("gateway-tpp-id", TPP)];
        let headers: HeaderMap = gateway
            .iter()
            .chain(headers)
            .map(|(name, value)| {
                let name: HeaderName = name.parse().unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect();
        let asked = Asked {
            method,
            path,
            headers: &headers,
            body: br#"{"creditorName": "a"}"#,
        };
        operations::answer(&asked, bank)
    }

    #[test]
    fn account_information_follows_the_consent() {
        let mut bank = bank();
        let psu = bank.psu_id(TPP, KARI);
        let id = psu.to_string();
        let as_psu: &[_] = &[("psu-id", id.as_str())];
        assert_eq!(ask(&mut bank, "GET /v1/accounts", as_psu).0, 401);
        assert_eq!(ask(&mut bank, "GET /v1/accounts", &[]).0, 401);
        let [open, closed] = [0, 1].map(|at| bank.customer(KARI).accounts[at].id.clone());
        bank.consent(psu, None, BTreeSet::from([open.clone()]));
        let (status, list) = ask(&mut bank, "GET /v1/accounts", as_psu);
        assert_eq!(
            (status, list["accounts"].as_array().unwrap().len()),
            (200, 1)
        );
        assert_eq!(list["accounts"][0]["resourceId"], open.as_str());
        for rest in ["", "/balances", "/transactions"] {
            let mut of =
                |id: &str| ask(&mut bank, &format!("GET /v1/accounts/{id}{rest}"), as_psu).0;
            assert_eq!((of(&open), of(&closed), of("x")), (200, 404, 404), "{rest}");
        }
        let (_, list) = ask(
            &mut bank,
            &format!("GET /v1/accounts/{open}/transactions"),
            as_psu,
        );
        let href =
            list["transactions"]["booked"][0]["_links"]["transactionDetails"]["href"].clone();
        let details = ask(
            &mut bank,
            &format!("GET {}", href.as_str().unwrap()),
            as_psu,
        );
        assert_eq!(details.0, 200, "{href}");
        let missing = ask(
            &mut bank,
            &format!("GET /v1/accounts/{open}/transactions/x"),
            as_psu,
        );
        assert_eq!(missing.1["code"], "RESOURCE_UNKNOWN");
    }

    #[test]
    fn a_payment_is_initiated_authorised_and_read_by_its_tpp() {
        let mut bank = bank();
        let (status, created) = ask(
            &mut bank,
            &format!("POST {DOMESTIC}"),
            &[("x-psu-identity", KARI)],
        );
        assert_eq!(
            (status, &created["transactionStatus"]),
            (201, &json!("RCVD"))
        );
        let path = |name: &str| created["_links"][name]["href"].as_str().unwrap().to_owned();
        let authorise = format!("POST {}", path("startAuthorisation"));
        let link = ask(
            &mut bank,
            &authorise,
            &[("gateway-sca-redirect", "https://b.example/")],
        );
        assert_eq!(link.0, 201);
        assert_eq!(
            link.1["_links"]["scaRedirect"]["href"],
            "https://b.example/"
        );
        assert_eq!(ask(&mut bank, &authorise, &[]).0, 500);
        let read = format!("GET {}", path("self"));
        assert_eq!(ask(&mut bank, &read, &[]).1["creditorName"], "a");
        let status = format!("GET {}", path("status"));
        assert_eq!(ask(&mut bank, &status, &[]).1["transactionStatus"], "RCVD");
        bank.payment(TPP, &path("self")).unwrap().sign();
        assert_eq!(ask(&mut bank, &status, &[]).1["transactionStatus"], "ACTC");
        assert_eq!(ask(&mut bank, &status, &[]).1["transactionStatus"], "ACSC");
        assert!(bank.payment("PSDNO-FSA-2", &path("self")).is_none());
        assert_eq!(
            ask(&mut bank, &format!("GET {DOMESTIC}/x/status"), &[]).0,
            404
        );
    }

    #[test]
    fn a_payment_needs_somebody_who_pays() {
        let mut bank = bank();
        let line = format!("POST {DOMESTIC}");
        assert_eq!(ask(&mut bank, &line, &[]).0, 401);
        assert_eq!(ask(&mut bank, &line, &[("x-psu-identity", "1")]).0, 401);
        let psu = bank.psu_id(TPP, KARI).to_string();
        assert_eq!(ask(&mut bank, &line, &[("psu-id", &psu)]).0, 201);
        let (_, agreements) = ask(&mut bank, "GET /v1/agreements", &[("psu-id", &psu)]);
        assert_eq!(agreements, json!({"agreements": []}));
    }
}
