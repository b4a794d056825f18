//! A request to the simulated core and its answer, as types.
//!
//! Every operation takes an [`Asked`] and returns an [`Answer`] or a [`Stop`]. Deliberately not here: which operations there are
//! (operations.rs), and what they answer (answers.rs).

use super::bank::BankFault;
use super::caller::Caller;
use super::language::Language;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The core's name in errors and failed redirects.
pub(super) const SYSTEM: &str = "sandbox-core";

/// The segments at each `{}` of the pattern, in order, decoded (HTTP-10).
pub(super) type Ids = Vec<String>;

/// A request, as the gateway forwarded it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// The method.
    pub(super) method: &'a str,
    /// The path, without its query.
    pub(super) path: &'a str,
    /// The query, without its question mark.
    pub(super) query: &'a str,
    /// The caller and its PSU.
    pub(super) caller: &'a Caller,
    /// The body, whole. An operation reads it by body.rs, or a payment's as an order.
    pub(super) body: &'a [u8],
}

impl Asked<'_> {
    /// A parameter of the query, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&');
        // A name without a value has an empty one.
        let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let (_, value) = pairs.find(|(known, _)| decoded(known) == name)?;
        Some(decoded(value))
    }

    /// As [`Self::parameter`], parsed.
    pub(super) fn parsed<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.parameter(name)?.parse().ok()
    }
}

/// A text in a body; `None` if the body says nothing of it, or null.
///
/// # Errors
/// 400 if it is no text: a default would take its place unseen.
pub(super) fn text_member<'a>(
    body: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, Stop> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(refused(400, "FORMAT_ERROR", &format!("{name}: a string."))),
    }
}

/// Status and body.
pub(super) type Answer = (u16, Value);

/// Content-Language (ERR-9): what a new payment says to the PSU is in the language of the request, and every other text in English.
pub(super) fn content_language((status, body): &Answer, accepted: Language) -> &'static str {
    match body.get("psuMessage") {
        Some(_) if *status == 201 => accepted.tag(),
        _ => Language::English.tag(),
    }
}

/// The reason why an operation has no regular answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// The request is refused, with this answer.
    Refused(Answer),
    /// The bank failed.
    Broken(BankFault),
}

impl From<BankFault> for Stop {
    fn from(fault: BankFault) -> Self {
        Self::Broken(fault)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(fault: rusqlite::Error) -> Self {
        Self::Broken(fault.into())
    }
}

/// The interface's error body, §Errors.
pub(super) fn error(status: u16, code: &str, message: &str) -> Answer {
    let body = json!({
        "id": Uuid::new_v4().to_string(),
        "system": SYSTEM,
        "status": status,
        "code": code,
        "message": message,
    });
    (status, body)
}

/// ERR-1: the errors of payments and baskets carry tppMessages, and so does this answer then: its own, or else its code and its message.
pub(super) fn with_messages((status, mut body): Answer) -> Answer {
    if status >= 400
        && let Some(body) = body.as_object_mut()
        && !body.contains_key("tppMessages")
    {
        let [code, text] = ["code", "message"].map(|name| body.get(name).cloned());
        let message = json!({"category": "ERROR", "code": code, "text": text});
        body.insert("tppMessages".to_owned(), json!([message]));
    }
    (status, body)
}

/// As [`error`], as a [`Stop`].
pub(super) fn refused(status: u16, code: &str, message: &str) -> Stop {
    Stop::Refused(error(status, code, message))
}

/// A segment or a parameter, decoded (HTTP-10).
pub(super) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
