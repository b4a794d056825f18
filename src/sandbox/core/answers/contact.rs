//! The contact address of a TPP (SBX-13), and operations that reach the core only if the gateway is configured to forward them
//! (SCA-20).

use super::super::answer::{Answer, Asked, Ids, Stop, refused, text_member};
use super::super::bank::Bank;
use super::{answered, sca_demanded, sca_link, unknown};
use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};

/// RFC 5321, section 4.5.3.1.3.
const MOST: usize = 254;

/// The address that this TPP has registered.
pub(in super::super) fn read(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let mut found = bank
        .db
        .prepare_cached("SELECT email FROM contact WHERE tpp = ?1")?;
    let email: Option<String> = found
        .query_row([&asked.caller.tpp], |row| row.get(0))
        .optional()?;
    let email = email.ok_or_else(|| unknown("The TPP has registered no address."))?;
    answered(asked, 200, shown(asked, &email))
}

/// Registers an address, or replaces it.
pub(in super::super) fn write(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let body = asked.members(|name| matches!(name, "email" | "organisationNumber"))?;
    let email = body.get("email").and_then(Value::as_str);
    let email = email.filter(|email| is_address(email));
    let email = email.ok_or_else(|| {
        refused(
            400,
            "FORMAT_ERROR",
            "email: an address, as in psd2@tpp.example.",
        )
    })?;
    if let Some(number) = text_member(&body, "organisationNumber")?
        && without_prefix(number) != without_prefix(&asked.caller.tpp)
    {
        let text = "organisationNumber is another TPP's.";
        return Err(refused(403, "FORBIDDEN", text));
    }
    bank.db
        .prepare_cached("INSERT OR REPLACE INTO contact (tpp, email) VALUES (?1, ?2)")?
        .execute(params![asked.caller.tpp, email])?;
    answered(asked, 200, shown(asked, email))
}

/// Registration and consent start with an SCA; a body is ignored, as the gateway does (SCA-20). A GET has no link of its own: the gateway adds it to a 401 (SCA-14).
pub(in super::super) fn sca(asked: &Asked<'_>, _: &Ids, _: &Bank) -> Result<Answer, Stop> {
    if asked.caller.sca_redirect.is_none() {
        return Err(sca_demanded());
    }
    answered(asked, 200, sca_link(asked)?)
}

fn shown(asked: &Asked<'_>, email: &str) -> Value {
    json!({"email": email, "organisationNumber": asked.caller.tpp})
}

/// §Versioning 1.21.6: the prefix PSD is optional.
fn without_prefix(number: &str) -> &str {
    number.strip_prefix("PSD").unwrap_or(number)
}

/// A minimal check: no mail is ever sent to the address.
fn is_address(text: &str) -> bool {
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let parts = text.split_once('@');
    text.len() <= MOST
        && parts.is_some_and(|(local, host)| {
            is_word(local) && is_word(host) && host.contains('.') && !host.contains('@')
        })
}
