//! Members of a payment's body, and all their violations (PAY-2).

use super::super::super::details::{UNPROCESSABLE, currency_fault, is_processable, number_fault};
use super::super::super::money;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super::super) struct Violation {
    /// HTTP status code.
    pub(in super::super::super) status: u16,
    /// One of the interface's codes.
    pub(in super::super::super) code: &'static str,
    /// The path of the member, as in instructedAmount.amount.
    pub(in super::super::super) path: String,
    /// The accepted form.
    pub(in super::super::super) text: String,
}

impl Violation {
    /// A member with a wrong form.
    pub(in super::super::super) fn format(path: &str, text: &str) -> Self {
        Self {
            status: 400,
            code: "FORMAT_ERROR",
            path: path.into(),
            text: text.into(),
        }
    }

    /// As tppMessages write it (§Message object).
    pub(in super::super::super) fn message(&self) -> Value {
        let mut message = json!({"category": "ERROR", "code": self.code, "text": self.text});
        if let Some(message) = message.as_object_mut()
            && !self.path.is_empty()
        {
            message.insert("path".into(), json!(self.path));
        }
        message
    }
}

/// An object of the body.
#[derive(Debug)]
pub(super) struct Members<'a> {
    object: Option<&'a Map<String, Value>>,
    prefix: String,
    violations: Vec<Violation>,
}

impl<'a> Members<'a> {
    pub(super) const fn new(object: &'a Map<String, Value>) -> Self {
        Self {
            object: Some(object),
            prefix: String::new(),
            violations: Vec::new(),
        }
    }

    /// One entry of a bulk. Its violations are merged when it is read.
    pub(super) fn entry(&self, entry: &'a Value, number: usize) -> Self {
        Self {
            object: entry.as_object(),
            prefix: format!("payments[{number}]."),
            violations: Vec::new(),
        }
    }

    pub(super) fn take_over(&mut self, entry: Self) {
        self.violations.extend(entry.violations);
    }

    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object?.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// A day as the interface writes it: the parser knows more forms, such as 20270131.
    pub(super) fn day(&self, name: &str) -> Option<Date> {
        let text = self.text(name)?;
        let day: Date = text.parse().ok()?;
        (day.to_string() == text).then_some(day)
    }

    /// Reports a violation.
    pub(super) fn say(&mut self, violation: Violation) {
        let path = format!("{}{}", self.prefix, violation.path);
        self.violations.push(Violation { path, ..violation });
    }

    /// Reports a wrong form.
    pub(super) fn refuse(&mut self, path: &str, text: &str) {
        self.say(Violation::format(path, text));
    }

    /// An account reference: its number, as IBAN or BBAN, and its currency.
    pub(super) fn account(&mut self, name: &str) -> Option<(String, Option<String>)> {
        let account = self.get(name).and_then(Value::as_object);
        let no_text = ["iban", "bban", "currency"].into_iter().find(|kind| {
            let given = account.and_then(|members| members.get(*kind));
            given.is_some_and(|value| !value.is_null() && !value.is_string())
        });
        if let Some(kind) = no_text {
            self.refuse(&format!("{name}.{kind}"), "A string.");
            return None;
        }
        let text = |kind: &str| account?.get(kind)?.as_str();
        let (kind, found) = match (text("iban"), text("bban")) {
            (Some(_), Some(_)) => {
                self.refuse(name, "An account has an iban or a bban, and not both.");
                return None;
            }
            (Some(iban), _) => ("iban", iban),
            (None, Some(bban)) => ("bban", bban),
            (None, None) => {
                self.refuse(name, "An account has an iban or a bban.");
                return None;
            }
        };
        if found.starts_with("NO") && money::bban_of(found).is_none() {
            self.refuse(name, "This is no IBAN of Norway.");
            return None;
        }
        if let Some(fault) = number_fault(kind, found) {
            self.refuse(&format!("{name}.{kind}"), fault);
            return None;
        }
        if let Some(fault) = text("currency").and_then(currency_fault) {
            self.refuse(&format!("{name}.currency"), fault);
            return None;
        }
        Some((found.to_owned(), text("currency").map(str::to_owned)))
    }

    /// SBX-11: the simulated downstream system supports only Latin letters and common punctuation.
    pub(super) fn check_characters(&mut self) {
        let mut found = Vec::new();
        if let Some(object) = self.object {
            for (name, value) in object {
                unknown_characters(name, value, &mut found);
            }
        }
        for path in found {
            self.refuse(&path, UNPROCESSABLE);
        }
    }
}

fn unknown_characters(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if !is_processable(text) => found.push(path.to_owned()),
        Value::Array(entries) => {
            for (number, entry) in entries.iter().enumerate() {
                unknown_characters(&format!("{path}[{number}]"), entry, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                unknown_characters(&format!("{path}.{name}"), member, found);
            }
        }
        _ => {}
    }
}
