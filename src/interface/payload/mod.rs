//! Bodies (PAY-1 to PAY-14, PAY-17): one pass over the bytes, and one answer with all violations.
//!
//! [`check`] parses the JSON once, keeps the members that the rules of the operation's [`Schema`] read, and then calls the rules in their
//! order. The body is not changed: the signed bytes are forwarded (PAY-15), including members that no rule reads, except those that a core
//! could read as a known member (PAY-14). A fault names the member and the accepted form, and repeats no value, because the values of a
//! payment are personal data.
//!
//! An optional member must not be `null`: the interface gives each member a type, and cores differ in how they read `null`.
//!
//! Deliberately not here: facts that only the core knows, such as the existence of an account or an exchange rate.

// JSON (PAY-1), and the members that rules read.
mod document;
mod json;
mod misplaced;
mod value;
// Valid JSON that is refused: confusable names and text (PAY-14, PAY-17).
mod odd;

// The members of a payment, and its rules (PAY-3 to PAY-12).
mod payment;
mod rules;
// Payments of the products that a deployment configures.
mod product;
// Amounts, and the sets of codes in the interface.
mod amount;
mod codes;
mod country;
mod currency;
mod iban;

// Signing baskets (PAY-13).
mod basket;

// The same rules as JSON Schema.
pub mod describe;
// The members that rules read, for comparison with other readers.
mod reading;
// The violations (PAY-2), and the names that were meant by missing ones.
mod misspelt;
mod violation;

use super::{
    Fault, Reason,
    operations::{Member, Schema},
};
use document::read;
use jiff::civil::Date;
use json::{JsonReader, Malformed, ReadMembers};
use odd::Oddities;
use product::ProductPayment;
use value::ObjectMember;
use violation::Violations;

pub use iban::{IbanCountry, Ibans};
pub use json::MAX_DEPTH;
pub use product::interface_member;
pub use reading::reading;

/// Checks a body. `members` are those that a deployment lists for the product of a payment; `today` is the date in the bank's time zone
/// (PAY-12), and `ibans` are the countries whose IBANs are accepted (PAY-6).
///
/// # Errors
/// One fault if the body is not JSON (PAY-1); otherwise every violation of the schema, in the order of the rules (PAY-2).
pub fn check(
    body: &[u8],
    schema: Schema,
    members: &[Member],
    today: Date,
    ibans: &Ibans,
) -> Result<(), Vec<Fault>> {
    let text = std::str::from_utf8(body).map_err(|fault| {
        let malformed = Malformed {
            at: fault.valid_up_to(),
            why: match body {
                [0x1f, 0x8b, ..] => "this is not UTF-8: the body is gzip, which it may not be",
                [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "this is not UTF-8: the body is UTF-16",
                _ => "this is not UTF-8",
            },
        };
        vec![fault_of(body, malformed)]
    })?;
    let mut violations = Violations::new(ibans.clone());
    let read = match schema {
        Schema::Any => read(text, |reader| reader.skip()).map(|(_, odd)| odd),
        Schema::CrossBorderPayment | Schema::Payment if !members.is_empty() => {
            let read = read(text, |reader| ProductPayment::read(reader, members, ibans));
            judged(read, &mut violations, |payment, violations| match schema {
                Schema::CrossBorderPayment => {
                    payment.judge_cross_border(members, today, violations);
                }
                _ => payment.judge(members, today, violations),
            })
        }
        Schema::CrossBorderPayment => object(text, &mut violations, |payment, violations| {
            rules::cross_border(payment, today, violations);
        }),
        Schema::Payment => object(text, &mut violations, rules::other_product),
        Schema::Basket => object(text, &mut violations, basket::judge),
    };
    let odd = read.map_err(|malformed| vec![fault_of(body, malformed)])?;
    misspelt::name(text, members, &mut violations);
    odd.report(text, &mut violations);
    match violations.into_faults() {
        faults if faults.is_empty() => Ok(()),
        faults => Err(faults),
    }
}

/// Parses a body that must be an object, and checks it. Returns its oddities.
fn object<'a, T: ReadMembers<'a>>(
    text: &'a str,
    violations: &mut Violations,
    judge: impl FnOnce(&T, &mut Violations),
) -> Result<Oddities<'a>, Malformed> {
    judged(read(text, JsonReader::part), violations, judge)
}

/// Checks a body that was read and must be an object. Returns its oddities.
fn judged<'a, T>(
    read: Result<(ObjectMember<T>, Oddities<'a>), Malformed>,
    violations: &mut Violations,
    judge: impl FnOnce(&T, &mut Violations),
) -> Result<Oddities<'a>, Malformed> {
    let (part, odd) = read?;
    match part {
        ObjectMember::Object(object) => judge(&object, violations),
        ObjectMember::Other(kind) => {
            violations.add("$", format!("it is {kind}; it must be an object"))
        }
        ObjectMember::Absent => {}
    }
    Ok(odd)
}

/// Lines and columns count from 1, columns in bytes.
fn fault_of(body: &[u8], malformed: Malformed) -> Fault {
    let before = body.get(..malformed.at).unwrap_or(body);
    let line = memchr::memchr_iter(b'\n', before).count().saturating_add(1);
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at.saturating_add(1));
    let column = before.len().saturating_sub(start).saturating_add(1);
    let text = format!("line {line}, column {column}: {}", malformed.why);
    Fault::body(Reason::PayloadMalformed, text)
}

#[cfg(test)]
mod tests;
