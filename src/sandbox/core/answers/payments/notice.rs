//! What the creation response says of a payment (§Payment creation response, SBX-17): psuMessage to the PSU, and tppMessages to the TPP.
//!
//! Invariants: both are in the language of the request; a text has far fewer than the 512 characters that the interface permits. A
//! WARNING is sent only where the requested day moves.

use super::super::super::calendar::is_bank_day;
use super::super::super::language::Language;
use super::super::super::payment::{Payment, Status};
use serde_json::{Value, json};

/// The text for the PSU: whether a signature is needed, and the day, if it is another than the requested one.
pub(super) fn psu_message(payment: &Payment, language: Language) -> String {
    let is_signed = payment.status() != Status::Received;
    let days = payment.moved_day();
    let days = days.map(|(requested, due)| (language.day(requested), language.day(due)));
    match language {
        Language::English => {
            let day = days.map(|(requested, due)| format!(" on {due}, and not on {requested},"));
            let how = match is_signed {
                true => "without your signature, because you trust its recipient",
                false => "once you have signed it",
            };
            format!(
                "The payment is carried out{} {how}.",
                day.unwrap_or_default()
            )
        }
        Language::Norwegian => {
            let day = days.map(|(requested, due)| format!(" {due}, og ikke {requested},"));
            let how = match is_signed {
                true => "uten signering, fordi du stoler på mottakeren",
                false => "når du har signert den",
            };
            format!("Betalingen utføres{} {how}.", day.unwrap_or_default())
        }
    }
}

/// The warning that the requested day moves, and why (§Message object). The code is the interface's only one of a day.
pub(super) fn warning(payment: &Payment, language: Language) -> Option<Value> {
    let (requested, due) = payment.moved_day()?;
    let text = match (language, is_bank_day(requested)) {
        (Language::English, false) => {
            format!("Carried out on {due}: {requested} is no bank day.")
        }
        (Language::English, true) => {
            format!("Carried out on {due}: the last batch of {requested} has run.")
        }
        (Language::Norwegian, false) => {
            format!("Utføres {due}: {requested} er ingen bankdag.")
        }
        (Language::Norwegian, true) => {
            format!("Utføres {due}: den siste kjøringen {requested} er over.")
        }
    };
    Some(json!({
        "category": "WARNING",
        "code": "EXECUTION_DATE_INVALID",
        "path": "requestedExecutionDate",
        "text": text,
    }))
}
