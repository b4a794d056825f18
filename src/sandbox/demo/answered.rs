//! The gateway's answer to a scene, and reading its content.
//!
//! Deliberately not here: whether it is the expected one (play.rs).

use portvakt::tools::tpp::TppAnswer;
use serde_json::Value;

/// An answer of the gateway.
#[derive(Debug)]
pub(super) struct Answered {
    /// Its HTTP status.
    pub(super) status: u16,
    /// Its body; null if it is not JSON.
    pub(super) body: Value,
    headers: Vec<(String, String)>,
}

impl Answered {
    /// Reads an answer.
    pub(super) fn of(answer: TppAnswer) -> Self {
        Self {
            status: answer.status,
            body: serde_json::from_slice(&answer.body).unwrap_or(Value::Null),
            headers: answer.headers,
        }
    }

    /// An answer without headers.
    #[cfg(test)]
    pub(super) const fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            body,
            headers: Vec::new(),
        }
    }

    /// The value of the first header of this name, which is in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    /// The target of a link in the body.
    pub(super) fn link(&self, name: &str) -> Option<&str> {
        self.body.get("_links")?.get(name)?.get("href")?.as_str()
    }

    /// A member of the body that is text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name)?.as_str()
    }

    /// What to change: the first fault with the header that it stands in, or where the title says it all, the title.
    pub(super) fn first_fault(&self) -> Option<String> {
        let Some(fault) = self.body.get("faults").and_then(|faults| faults.get(0)) else {
            return self.text("message").map(str::to_owned);
        };
        let text = fault.get("text")?.as_str()?;
        Some(match fault.get("header").and_then(Value::as_str) {
            Some(header) => format!("{header}: {text}"),
            None => text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_fault_or_the_title() {
        let fault = |body| Answered::new(400, body).first_fault();
        let faults =
            json!({"message": "m", "faults": [{"header": "Date", "text": "t"}, {"text": "u"}]});
        assert_eq!(fault(faults).unwrap(), "Date: t");
        assert_eq!(
            fault(json!({"message": "m", "faults": [{"text": "u"}]})).unwrap(),
            "u"
        );
        assert_eq!(fault(json!({"message": "m"})).unwrap(), "m");
        assert_eq!(fault(Value::Null), None);
    }
}
