//! Account information: the accounts that the PSU consented to (§Account access), and the agreements of the PSU.

use super::super::answer::{Answer, Asked, Ids, Stop, refused};
use super::super::bank::Bank;
use super::super::caller::Fixes;
use super::super::customer::{Account, AccountKind};
use super::super::details::lighten;
use super::super::history::{Page, PendingTransaction, Transaction};
use super::{amount, answered, link, psu, reference, sca_demanded, unknown};
use serde_json::{Map, Value, json};

/// §Limits: the page size of a transaction list, which its links contain.
const PAGE: i64 = 200;

/// The most characters of a card account's name without the fix longer-names.
const SHORT_NAME: usize = 35;

/// §Other operations: the accounts that the PSU consented to.
pub(in super::super) fn list(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let accounts = open_accounts(asked, bank)?;
    let shown = accounts
        .iter()
        .map(|account| shown(account, asked.caller.fixes));
    answered(asked, 200, json!({"accounts": shown.collect::<Value>()}))
}

/// One of these accounts.
pub(in super::super) fn one(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let account = open_account(asked, ids, bank)?;
    answered(
        asked,
        200,
        json!({"account": shown(&account, asked.caller.fixes)}),
    )
}

/// §Other operations: the balances of an account.
pub(in super::super) fn balances(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let account = open_account(asked, ids, bank)?;
    let balance = bank.balance(&account.id)?;
    let of = |kind: &str, sum: i64, with_line: bool| {
        json!({
            "balanceType": kind,
            "balanceAmount": amount(bank, sum, &account.currency),
            "creditLimitIncluded": with_line,
        })
    };
    let body = json!({
        "account": reference(&account),
        "balances": [
            of("interimAvailable", balance.available(), balance.credit_line > 0),
            of("interimBooked", balance.booked, false),
            of("expected", balance.expected(), false),
        ],
    });
    answered(asked, 200, body)
}

/// §Other operations: the transactions of an account (SBX-10), lighter than their details (SBX-8). Booked and pending ones are paged
/// apart: each group has at most `limit` on a page, and the next page exists if one of them has more.
pub(in super::super) fn transactions(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let account = open_account(asked, ids, bank)?;
    let status = booking_status(asked)?;
    let page = Page {
        from: asked.parsed("dateFrom").or(asked.caller.history_from),
        to: asked.parsed("dateTo"),
        offset: asked.parsed("offset").unwrap_or(0),
        limit: asked.parsed("limit").unwrap_or(PAGE),
    };
    let mut transactions = Map::new();
    let mut more = false;
    if status != "pending" {
        let (booked, is_more) = bank.transactions(&account.id, &page)?;
        more |= is_more;
        let booked = booked.into_iter().map(|one| {
            let href = format!("/v1/accounts/{}/transactions/{}", account.id, one.id);
            let mut shown = as_booked(bank, &account, one, asked.caller.fixes);
            lighten(&mut shown);
            shown.insert(
                "_links".into(),
                json!({"transactionDetails": link(&href, "GET")}),
            );
            Value::Object(shown)
        });
        transactions.insert("booked".into(), booked.collect());
    }
    if status != "booked" {
        let (pending, is_more) = bank.pending(&account, &page)?;
        more |= is_more;
        let pending = pending
            .into_iter()
            .map(|one| as_pending(bank, &account, one));
        transactions.insert("pending".into(), pending.collect());
    }
    transactions.insert(
        "_links".into(),
        page_links(asked, &account, &status, &page, more),
    );
    let body = json!({"account": reference(&account), "transactions": transactions});
    answered(asked, 200, body)
}

/// §C: all details of a transaction (SBX-8).
pub(in super::super) fn details(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let account = open_account(asked, ids, bank)?;
    let id = ids.get(1).map(String::as_str).unwrap_or_default();
    let found = bank.transaction(&account.id, id)?;
    let found = found.ok_or_else(|| unknown("There is no such transaction."))?;
    let mut shown = as_booked(bank, &account, found, asked.caller.fixes);
    // §Transaction details: in a corporate context only.
    if asked.caller.agreement.is_some() {
        let href = format!("/v1/accounts/{}/transactions/{id}", account.id);
        shown.insert(
            "_links".into(),
            json!({"transactionDetails": link(&href, "GET")}),
        );
    }
    answered(asked, 200, json!({"transactionsDetails": shown}))
}

/// §Corporate context: the agreements of the PSU.
pub(in super::super) fn agreements(
    asked: &Asked<'_>,
    _: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let customer = psu(asked, bank)?;
    let agreements = bank.agreements_of(&customer.id)?.into_iter();
    let shown =
        agreements.map(|agreement| json!({"id": agreement.id.to_string(), "name": agreement.name}));
    answered(asked, 200, json!({"agreements": shown.collect::<Value>()}))
}

/// The groups of transactions that the list shows: the booked ones by default.
fn booking_status(asked: &Asked<'_>) -> Result<String, Stop> {
    let status = asked.parameter("bookingStatus");
    let status = status.unwrap_or_else(|| "booked".to_owned());
    match status.as_str() {
        "booked" | "pending" | "both" | "all" => Ok(status),
        _ => {
            let text = "The parameter bookingStatus is booked, pending, both or all.";
            Err(refused(400, "FORMAT_ERROR", text))
        }
    }
}

/// The accounts that are open to the TPP in this context. If no SCA ever gave a consent, SCA is demanded.
fn open_accounts(asked: &Asked<'_>, bank: &Bank) -> Result<Vec<Account>, Stop> {
    let customer = psu(asked, bank)?;
    let id = asked.caller.psu.ok_or_else(sca_demanded)?;
    let open = bank.open_accounts(id, asked.caller.agreement)?;
    let all = bank.accounts_in(&customer.id, asked.caller.agreement)?;
    match all {
        Some(mut all) if !open.is_empty() => {
            all.retain(|account| open.contains(&account.id));
            Ok(all)
        }
        _ => Err(sca_demanded()),
    }
}

fn open_account(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Account, Stop> {
    let accounts = open_accounts(asked, bank)?.into_iter();
    let mut found = accounts.filter(|account| ids.first() == Some(&account.id));
    found
        .next()
        .ok_or_else(|| unknown("There is no such account."))
}

/// An element of the account list.
fn shown(account: &Account, fixes: Fixes) -> Value {
    let Account { id, bban, .. } = account;
    let kind = match (account.kind, fixes.account_type_iso) {
        (AccountKind::Current, true) => "CACC",
        (AccountKind::Savings, true) => "SVGS",
        (AccountKind::Card, true) => "CARD",
        (kind, false) => kind.name(),
    };
    let mut shown = json!({
        "resourceId": id,
        "currency": account.currency,
        "name": account.name,
        "cashAccountType": kind,
        "status": "enabled",
        "_links": {
            "balances": link(&format!("/v1/accounts/{id}/balances"), "GET"),
            "transactions": link(&format!("/v1/accounts/{id}/transactions"), "GET"),
        },
    });
    let mut say = |name: &str, value: Value| {
        if let Some(shown) = shown.as_object_mut() {
            shown.insert(name.to_owned(), value);
        }
    };
    if account.kind == AccountKind::Card {
        let last = bban.get(7..).unwrap_or_default();
        say("maskedPan", json!(format!("554433******{last}")));
        if !fixes.longer_names {
            let name: String = account.name.chars().take(SHORT_NAME).collect();
            say("name", json!(name));
        }
    } else {
        say("bban", json!(bban));
        say("iban", json!(super::iban(bban)));
    }
    shown
}

fn as_booked(
    bank: &Bank,
    account: &Account,
    transaction: Transaction,
    fixes: Fixes,
) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert("transactionId".into(), json!(transaction.id));
    shown.insert("bookingDate".into(), json!(transaction.booked.to_string()));
    shown.insert("valueDate".into(), json!(transaction.valued.to_string()));
    let sum = amount(bank, transaction.amount, &account.currency);
    shown.insert("transactionAmount".into(), sum);
    shown.extend(transaction.details);
    if account.kind == AccountKind::Card
        && !fixes.card_amounts
        && let Some(original) = shown.remove("originalAmount")
        && let Some(booked) = shown.insert("transactionAmount".into(), original)
    {
        shown.insert("originalAmount".into(), booked);
    }
    shown
}

fn as_pending(bank: &Bank, account: &Account, pending: PendingTransaction) -> Value {
    let mut shown = Map::new();
    shown.insert("valueDate".into(), json!(pending.due.to_string()));
    let sum = amount(bank, pending.amount, &account.currency);
    shown.insert("transactionAmount".into(), sum);
    shown.extend(pending.details);
    lighten(&mut shown);
    Value::Object(shown)
}

/// The links to the balances, and to the previous and the next page: the same query with another offset. All lead to operations of the
/// interface, which has none of a single account.
fn page_links(
    asked: &Asked<'_>,
    account: &Account,
    status: &str,
    page: &Page,
    more: bool,
) -> Value {
    let path = format!("/v1/accounts/{}", account.id);
    let balances = format!("{path}/balances");
    let at = |offset: i64| {
        let mut href = format!("{path}/transactions?bookingStatus={status}");
        for name in ["dateFrom", "dateTo"] {
            if let Some(day) = asked.parameter(name) {
                href.push_str(&format!("&{name}={day}"));
            }
        }
        link(
            &format!("{href}&offset={offset}&limit={}", page.limit),
            "GET",
        )
    };
    let mut links = Map::new();
    links.insert("balances".into(), link(&balances, "GET"));
    if page.offset > 0 {
        let before = page.offset.saturating_sub(page.limit).max(0);
        links.insert("previous".into(), at(before));
    }
    if more {
        links.insert("next".into(), at(page.offset.saturating_add(page.limit)));
    }
    Value::Object(links)
}
