//! Payments: each belongs to a TPP, and a bulk has `payments`. Every amount of a bulk has two fraction digits.

use super::{Asked, Core, answers::error};
use serde_json::{Value, json};
use uuid::Uuid;

const PAYMENTS: &str = "/v1/payments/norwegian-domestic-credit-transfers";

impl Core {
    /// The answer, if the request is about a payment that exists or is to be made.
    pub(super) fn payment(
        &self,
        asked: &Asked,
        path: &str,
        tpp: &str,
        psu: &str,
    ) -> Option<(u16, Value)> {
        let below = path.strip_prefix(PAYMENTS)?;
        if below.is_empty() {
            return Some(self.pay(asked, tpp, psu));
        }
        let mut segments = below.trim_start_matches('/').split('/');
        let payments = self.payments.lock().unwrap();
        let (owner, body) = payments.get(segments.next()?)?;
        if owner != tpp {
            return Some(error(404, "RESOURCE_UNKNOWN"));
        }
        Some(match (asked.method.as_str(), segments.next()) {
            ("GET", None) => (200, self.shown(body)),
            ("GET", Some("status")) => (200, json!({"transactionStatus": "RCVD"})),
            ("POST", Some("authorisations")) => (201, json!({"scaStatus": "started"})),
            _ => error(404, "RESOURCE_UNKNOWN"),
        })
    }

    fn pay(&self, asked: &Asked, tpp: &str, psu: &str) -> (u16, Value) {
        let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        if psu.is_empty() {
            return error(401, "PSU_CREDENTIALS_INVALID");
        }
        let is_payment = body["instructedAmount"].is_object() || body["payments"].is_array();
        if !is_payment || !self.takes_amounts(&body) {
            return error(self.status_of_a_faulty_body(), "FORMAT_ERROR");
        }
        let id = Uuid::new_v4().to_string();
        let created = json!({
            "paymentId": id, "transactionStatus": "RCVD", "owner": psu,
            "_links": {"self": {"href": format!("{PAYMENTS}/{id}")}},
        });
        let mut payments = self.payments.lock().unwrap();
        payments.insert(id, (tpp.to_owned(), body));
        (201, created)
    }

    fn takes_amounts(&self, body: &Value) -> bool {
        let parts = body["payments"].as_array().cloned().unwrap_or_default();
        let judged = match self.fault.as_str() {
            "any-amounts" => 0,
            "amount-of-the-first-part" => 1,
            _ => parts.len(),
        };
        parts.iter().take(judged).all(|part| {
            let amount = &part["instructedAmount"]["amount"];
            match self.fault.as_str() {
                "amounts-as-numbers" if amount.is_number() => true,
                "short-amounts" if amount == "1.2" => true,
                _ => amount.as_str().is_some_and(is_amount),
            }
        })
    }

    /// The payment, perhaps with a malformed amount in its last part, or in a periodic payment.
    fn shown(&self, body: &Value) -> Value {
        let mut body = body.clone();
        let parts = body.get_mut("payments").and_then(Value::as_array_mut);
        if let Some(part) = parts.and_then(|parts| parts.last_mut())
            && self.has("shows-short-amounts")
        {
            part["instructedAmount"]["amount"] = json!("10.5");
        }
        if self.has("shows-numbers") && body.get("frequency").is_some() {
            body["instructedAmount"]["amount"] = json!(10.25);
        }
        body
    }
}

/// As in 12.50, and more than zero.
fn is_amount(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').is_some_and(|(whole, fraction)| {
        let is_plain = whole == "0" || !whole.starts_with('0');
        is_number(whole) && is_number(fraction) && is_plain && fraction.len() == 2
    }) && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}
