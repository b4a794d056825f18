//! `/console`: what the bank knows, for the developer at this machine; and one button, which runs the batch.
//!
//! Invariants: the page is shown on loopback only, under a name of this machine (against DNS rebinding), and not through a proxy
//! or the gateway; it changes nothing but by its button, whose form has a one-time token. Every list has a limit.

use super::bank::{Bank, BankFault};
use super::customer::{Account, Customer};
use super::form_token::Owner;
use super::html::Page;
use super::ledger::Balance;
use super::money;
use super::payment::Payment;
use super::state::{Core, is_local};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use maud::{Markup, html};
use percent_encoding::percent_decode_str;
use portvakt_base::terminal::complain;
use std::sync::Arc;

/// The most customers, payments and bookings on the page, the newest first.
const ROWS: usize = 100;

/// The longest form, in bytes: it has one short field.
const FORM_LIMIT: usize = 1_024;

/// `GET /console`, and `POST /console`: the button.
pub(super) async fn show(State(core): State<Arc<Core>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    if !is_local(&head) {
        return page(
            html! { p role="alert" { "This page is for a browser on the bank's own machine." } },
        )
        .answer(StatusCode::NOT_FOUND);
    }
    let pressed = head.method == Method::POST && is_own_form(&core, &head, body).await;
    let shown = core.bank().atomically(|bank| {
        let ran = pressed.then(|| bank.run_now()).transpose()?;
        Ok::<_, BankFault>((ran, tables(bank)?, bank.next_run()))
    });
    let (ran, tables, next) = match shown {
        Ok(shown) => shown,
        Err(fault) => {
            complain("portvakt-sandbox", fault);
            return page(html! { p role="alert" { "The ledger cannot be read." } })
                .answer(StatusCode::INTERNAL_SERVER_ERROR);
        }
    };
    let form = core.console.issue(Owner::default(), (), core.seconds());
    let content = html! {
        @if let Some(ran) = ran {
            p role="status" {
                "The batch has run. Payments booked: " (ran.booked) ", settled: " (ran.settled) ", without funds: " (ran.waiting)
                ", refused: " (ran.rejected) ", released: " (ran.released) "."
            }
        }
        @if head.method == Method::POST && !pressed {
            p role="alert" { "That page was out of date, and nothing was done." }
        }
        form.card method="post" action="console" {
            h2 { "Batch" }
            p { "It runs next on " (next.date()) " at " (next.time()) ", Oslo time." }
            input type="hidden" name="form" value=(form);
            div.buttons { button.primary type="submit" { "Run it now" } }
        }
        (tables)
    };
    page(content).answer(StatusCode::OK)
}

fn page(content: Markup) -> Page<'static> {
    Page {
        language: "en",
        bank: "Simulated Bank",
        title: "Console",
        foot: "Read-only, but for one button. It is answered on this machine alone.",
        is_wide: true,
        content,
    }
}

/// Whether the request is the button of a page that this process made.
async fn is_own_form(core: &Core, head: &Parts, body: Body) -> bool {
    let Ok(body) = to_bytes(body, FORM_LIMIT).await else {
        return false;
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    let token = body.strip_prefix("form=").unwrap_or_default();
    let token = percent_decode_str(token).decode_utf8_lossy();
    head.method == Method::POST && core.console.take(&token, core.seconds()).is_some()
}

fn tables(bank: &Bank) -> Result<Markup, BankFault> {
    Ok(html! { (customers(bank)?) (payments(bank)?) (bookings(bank)?) })
}

/// A table that can be scrolled by the keyboard where it is wider than the screen.
fn table(caption: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.card.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { (rows) }
            }
        }
    }
}

fn customers(bank: &Bank) -> Result<Markup, BankFault> {
    let mut rows: Vec<(Customer, Account, Balance)> = Vec::new();
    for customer in bank.customers()?.into_iter().rev().take(ROWS) {
        for account in bank.accounts_of(&customer.id)? {
            let balance = bank.balance(&account.id)?;
            rows.push((customer.clone(), account, balance));
        }
    }
    let rows = html! {
        @for (customer, account, balance) in &rows {
            tr data-identity=(customer.identity) data-bban=(account.bban) {
                td { (customer.name) }
                td { (customer.identity) }
                td { (account.name) }
                td { (account.bban) }
                @for amount in [balance.booked, balance.available(), balance.expected()] {
                    td.number { (sum(bank, amount, &account.currency)) }
                }
            }
        }
    };
    let heads = [
        "Customer",
        "Number",
        "Account",
        "Account number",
        "Booked",
        "Available",
        "Expected",
    ];
    Ok(table("Customers and accounts", &heads, &rows))
}

fn payments(bank: &Bank) -> Result<Markup, BankFault> {
    let payments = bank.latest_payments(ROWS)?;
    let amounts = |payment: &Payment| {
        let parts = payment.parts.iter();
        let sums = parts.map(|part| sum(bank, part.amount, &part.currency));
        sums.collect::<Vec<_>>().join(" + ")
    };
    let rows = html! {
        @for payment in &payments {
            tr {
                td { (payment.id) }
                td { (payment.tpp) }
                td { (payment.product) }
                td { (payment.form.name()) }
                td { (payment.status().word()) }
                td.number { (amounts(payment)) }
                td { (payment.due) }
            }
        }
    };
    let heads = [
        "Payment", "TPP", "Product", "Form", "Status", "Amount", "Due",
    ];
    Ok(table("Latest payments", &heads, &rows))
}

fn bookings(bank: &Bank) -> Result<Markup, BankFault> {
    let bookings = bank.latest_bookings(ROWS)?;
    let rows = html! {
        @for booking in &bookings {
            tr {
                td.number { (booking.posting) }
                td { (booking.booked) }
                td { (booking.account) }
                td.number { (sum(bank, booking.amount, &booking.currency)) }
            }
        }
    };
    let heads = ["Posting", "Booked", "Account", "Amount"];
    Ok(table("Latest bookings", &heads, &rows))
}

fn sum(bank: &Bank, amount: i64, currency: &str) -> String {
    let digits = bank.rates.digits(currency).unwrap_or(2);
    format!("{} {currency}", money::written(amount, digits))
}
