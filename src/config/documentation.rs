//! `listener.documentation`: the base of the pages that explain the reasons of refusals (ERR-10).
//!
//! Deliberately not here: whether the pages exist. Nothing is fetched.

use super::section::Section;
use super::value::Value;
use crate::interface::headers::redirect_uri;
use crate::interface::operations::Environment;

/// The accepted form, for a fault.
const EXPECTED: &str = "an https URL without a query, which may end with / or #, such as https://bank.example/errors/ or https://bank.example/errors.html#";

/// Reads the base; the reason follows it at once. A base that ends with neither `/` nor `#` gets a `/`.
pub(super) fn read(listener: &mut Section<'_>) -> Option<String> {
    base(&listener.optional("documentation")?)
}

fn base(value: &Value<'_>) -> Option<String> {
    let text = value.text(EXPECTED)?;
    let page = text.strip_suffix('#').unwrap_or(text);
    match redirect_uri::split(page.as_bytes(), Environment::Production) {
        Ok(parts) if parts.query.is_some() => value.refuse(&format!("{EXPECTED} (it has a query)")),
        Ok(_) if text.ends_with(['/', '#']) => Some(text.to_owned()),
        Ok(_) => Some(format!("{text}/")),
        Err(fault) => value.refuse(&format!("{EXPECTED} ({fault})")),
    }
}
