//! Facts that come from headers, in some of the ways in which a core may read them, and answers in which little is equal from one to the
//! next.

use super::{Asked, Core};
use portvakt::clock::Clock;
use serde_json::{Value, json};
use uuid::Uuid;

const TPP: &str = "gateway-tpp-id";

/// Cores that read a header have new ids, links and times in each answer, and so has one that does not.
const FRESH: [&str; 13] = [
    "fresh",
    "fallback",
    "fallback-psu",
    "lower-cases",
    "underscore",
    "second-header",
    "first-header",
    "reads-by-header",
    "writes-by-header",
    "payments-by-header",
    "psu-by-another-header",
    "psu-of-payments",
    "none-fresh",
];

impl Core {
    /// The TPP: the claim, or a header where this is the core's fault.
    pub(super) fn tpp(&self, claims: &Value, asked: &Asked) -> String {
        let claim = claims[TPP].as_str();
        let claimed = claim.unwrap_or_default().to_owned();
        let header = || asked.text(TPP);
        let named = |name: &str| {
            let headers = asked.headers.iter();
            let mut values = headers.filter(|(known, _)| known == name).map(text);
            values.next()
        };
        let all: Vec<_> = asked.all(TPP).into_iter().map(text).collect();
        let is_payment = asked.target.starts_with("/v1/payments/");
        match self.fault.as_str() {
            "facts" | "fresh" | "wraps" | "pads" => header(),
            "fallback" => claim.map_or_else(header, str::to_owned),
            "lower-cases" => named(TPP).unwrap_or(claimed).to_lowercase(),
            "underscore" => named("Gateway_Tpp_Id").unwrap_or(claimed),
            // Only the other one of two is compared with the claim.
            "second-header" => all.get(1).cloned().unwrap_or(claimed),
            "first-header" if all.len() == 2 => all[0].clone(),
            "reads-by-header" if asked.method == "GET" => header(),
            "writes-by-header" if asked.method != "GET" => header(),
            "payments-by-header" if is_payment => header(),
            _ => claimed,
        }
    }

    /// The PSU in the same way.
    pub(super) fn psu(&self, claims: &Value, asked: &Asked) -> String {
        let claim = claims["psu_id"].as_str();
        let claimed = || claim.unwrap_or_default().to_owned();
        let is_change = asked.method != "GET";
        match self.fault.as_str() {
            "psu-header" => asked.text("psu-id"),
            "fallback-psu" => claim.map_or_else(|| asked.text("psu-id"), str::to_owned),
            "psu-by-another-header" => match asked.header("gateway-psu-id") {
                Some(_) => asked.text("gateway-psu-id"),
                None => claimed(),
            },
            "psu-of-payments" if is_change => asked.text("psu-id"),
            _ => claimed(),
        }
    }

    /// Another fact: the claim, or the header of its name.
    pub(super) fn fact(&self, fault: &str, claims: &Value, asked: &Asked, name: &str) -> String {
        match self.has(fault) {
            true => asked.text(name),
            false => claims[name].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// The body as it is sent.
    pub(super) fn disguised(&self, body: Value) -> String {
        let id = Uuid::new_v4();
        let text = id.to_string();
        match self.fault.as_str() {
            fault if FRESH.contains(&fault) => fresh(body, &text).to_string(),
            "wraps" | "none-wraps" => {
                let inner = json!({"at": text, "content": body}).to_string();
                json!({text: {"document": inner}}).to_string()
            }
            "pads" | "none-pads" => {
                let width = usize::from(id.as_bytes()[0]);
                let padding = text.repeat(width % 7 + 1);
                let padded = json!({"padding": padding, "content": body});
                format!("{padded}{:width$}", "")
            }
            _ => body.to_string(),
        }
    }
}

/// Members that are new in each answer, beside those of an object or around another value.
fn fresh(body: Value, id: &str) -> Value {
    let mut body = match body {
        Value::Object(_) => body,
        other => json!({ "content": other }),
    };
    body["requestId"] = json!(id);
    body["timestamp"] = json!(Clock::System.now().unix());
    body["more"] = json!([{"href": format!("/v1/requests/{id}?at={id}")}]);
    body
}

fn text((_, value): &(String, Vec<u8>)) -> String {
    String::from_utf8_lossy(value).into_owned()
}
