//! The answer of an operation that succeeds, and where its shape comes from.

use super::{components::Components, shapes, simulated};
use crate::operations::{Answer, AnsweredBy, Operation, Schema, Transactions};
use serde_json::{Value, json};

/// The operation whose answer is known by its name only (§D).
const MOCK_TRANSACTIONS: &str = "sandbox-transaction-list";

/// The answer of an operation that succeeds.
pub(super) struct Success {
    /// `200`, `201`, or `2XX` if nobody said which.
    pub(super) status: String,
    pub(super) schema: Value,
    pub(super) text: &'static str,
}

impl Success {
    fn new(status: u16, schema: Value, text: &'static str) -> Self {
        Self {
            status: status.to_string(),
            schema,
            text,
        }
    }
}

/// The deployment's own answer, the interface's, or else the simulated bank's.
pub(super) fn of(operation: &Operation, components: &mut Components<'_>) -> Success {
    if operation.answered_by == AnsweredBy::Gateway {
        let schema = shapes::links_only(components);
        return Success::new(200, schema, "The link by which the PSU begins SCA.");
    }
    if let Some(Answer { status, schema }) = &operation.answer {
        return Success::new(*status, schema.clone(), "Done.");
    }
    if let Some((status, schema)) = shown(operation, components) {
        return Success::new(status, schema, "Done.");
    }
    if let Some((status, schema)) = simulated::of(&operation.name, components) {
        let text = "Done. The interface does not show this answer: it is described as the simulated bank gives it.";
        return Success::new(status, schema, text);
    }
    Success {
        status: "2XX".to_owned(),
        schema: json!({ "description": "Nobody has described its members." }),
        text: "Done.",
    }
}

/// The four answers that the interface shows (§A to §D).
fn shown(operation: &Operation, components: &mut Components<'_>) -> Option<(u16, Value)> {
    if operation.name == MOCK_TRANSACTIONS {
        return Some((200, shapes::array(shapes::mock_transaction(components))));
    }
    match (operation.schema, operation.transactions) {
        (Schema::CrossBorderPayment, _) => Some((201, shapes::payment_created(components))),
        (Schema::Basket, _) => Some((201, shapes::basket_created(components))),
        (_, Transactions::Details) => Some((200, shapes::details(components))),
        _ => None,
    }
}
