//! The change of a payment in the bank's own channel (§Versioning 1.18.0, SBX-17).
//!
//! Invariants: the payment keeps its id, its debtor's account and its place among the payments; what it becomes was validated as a new
//! order is. A payment that waits for its signature is not changed: the PSU could be reading it on the SCA page.

use super::super::bank::{Bank, BankFault};
use super::order::{Ordered, Violation};
use super::{Form, Payment};
use rusqlite::params;
use serde_json::{Map, Value};

/// The members that the customer can change.
const CHANGEABLE: [&str; 3] = [
    "instructedAmount",
    "remittanceInformationUnstructured",
    "requestedExecutionDate",
];

/// Whether the customer can change this member.
pub(in super::super) fn is_changeable(name: &str) -> bool {
    CHANGEABLE.contains(&name)
}

impl Payment {
    /// Whether its customer can change it: a single payment that is signed and not booked.
    pub(in super::super) fn is_changeable(&self) -> bool {
        self.form == Form::Single && self.parts.iter().all(|part| part.status.is_pending())
    }
}

impl Bank {
    /// Changes members of a payment that [`Payment::is_changeable`]; null removes one. Returns the violations, if any, after which
    /// nothing has changed. The payment counts as signed again: its customer has authenticated in the bank's own channel.
    pub(in super::super) fn change(
        &self,
        payment: &Payment,
        changes: &Map<String, Value>,
    ) -> Result<Result<(), Vec<Violation>>, BankFault> {
        if changes.is_empty() {
            let text = format!("At least one of {}.", CHANGEABLE.join(", "));
            return Ok(Err(vec![Violation::format("", &text)]));
        }
        let mut body: Map<String, Value> =
            serde_json::from_str(&payment.body).map_err(|_| BankFault::Kept("a payment"))?;
        for (name, value) in changes {
            match value {
                Value::Null => body.remove(name),
                value => body.insert(name.clone(), value.clone()),
            };
        }
        let body = Value::Object(body).to_string();
        let changed = match self.order(&Ordered {
            tpp: &payment.tpp,
            customer: &payment.customer,
            agreement: payment.agreement,
            product: &payment.product,
            body: body.as_bytes(),
        })? {
            Ok(changed) => Payment {
                id: payment.id.clone(),
                ..changed
            },
            Err(violations) => return Ok(Err(violations)),
        };
        self.db
            .prepare_cached("UPDATE payment SET requested = ?2, due = ?3, body = ?4 WHERE id = ?1")?
            .execute(params![
                changed.id,
                changed.requested.map(|day| day.to_string()),
                changed.due.to_string(),
                changed.body
            ])?;
        self.db
            .prepare_cached("DELETE FROM part WHERE payment = ?1")?
            .execute([&changed.id])?;
        self.keep_parts(&changed)?;
        self.sign(&changed.id)?;
        Ok(Ok(()))
    }
}
