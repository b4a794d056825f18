//! The payment or the basket that a request of the probe made.

use super::request::Example;
use super::session::Outcome;
use axum::http::Method;
use serde_json::Value;

/// A payment or a basket of the core.
#[derive(Debug)]
pub(super) struct Created {
    /// The first word of its operations.
    kind: &'static str,
    /// Its path.
    path: String,
}

impl Created {
    /// `None` unless the answer is a success that names one.
    pub(super) fn of(example: &Example, outcome: &Outcome) -> Option<Self> {
        let answer = outcome.answer.as_ref().ok()?;
        if example.method != Method::POST || !outcome.is_success() {
            return None;
        }
        let body: Value = serde_json::from_slice(&answer.body).ok()?;
        let kinds = [("payment", "paymentId"), ("basket", "basketId")];
        let mut named = kinds
            .into_iter()
            .filter_map(|(kind, member)| Some((kind, body.get(member)?.as_str()?)));
        let (kind, id) = named.next()?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        if id.is_empty() || !id.bytes().all(is_plain) {
            return None;
        }
        let collection = example.target.split('?').next().unwrap_or_default();
        let path = format!("{collection}/{id}");
        Some(Self { kind, path })
    }

    /// Reads it.
    pub(super) fn read(&self) -> Example {
        self.example("read", Method::GET, "")
    }

    /// Reads its status.
    pub(super) fn status(&self) -> Example {
        self.example("status", Method::GET, "/status")
    }

    /// Starts its authorisation.
    pub(super) fn authorise(&self) -> Example {
        self.example("authorise", Method::POST, "/authorisations")
    }

    fn example(&self, verb: &str, method: Method, below: &str) -> Example {
        Example {
            operation: format!("{}-{verb}", self.kind),
            method,
            target: format!("{}{below}", self.path),
            body: Vec::new(),
        }
    }
}
