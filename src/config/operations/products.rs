//! The payment products of the file (HTTP-3): names, shapes, and the headers that their initiation requires.
//!
//! Invariant: a product adds to what the initiation of a payment requires, and no key takes anything away (HDR-5, PAY-14).

use super::keys::{MAX_NAME, choice, read_answer};
use crate::config::fault::FilePosition;
use crate::config::inspection::Inspection;
use crate::config::section::Section;
use crate::config::value::Value;
use crate::interface::headers::{self, Header};
use crate::interface::operations::{Member, MemberKind, Operation, Product, Required, Schema};
use crate::interface::payload;

/// The longest name of a product, in characters: with the name of the initiation it fits into the name of an operation.
const MAX_PRODUCT: usize = 48;

/// The longest text that a member may allow, in characters. A body has at most 64 KiB (HTTP-6).
const MAX_TEXT: usize = 65_536;

/// The product whose shape the interface shows.
const SHOWN: &str = "norwegian-cross-border-credit-transfers";

/// The shapes that a product may have.
const SHAPES: [(&str, Schema); 2] = [
    (Schema::Payment.name(), Schema::Payment),
    (
        Schema::CrossBorderPayment.name(),
        Schema::CrossBorderPayment,
    ),
];

/// The words for the kinds of own members.
#[derive(Clone, Copy, PartialEq)]
enum OwnMemberKind {
    Text,
    Date,
    Boolean,
    Amount,
    Account,
    Payments,
}

const KINDS: [(&str, OwnMemberKind); 6] = [
    ("text", OwnMemberKind::Text),
    ("date", OwnMemberKind::Date),
    ("boolean", OwnMemberKind::Boolean),
    ("amount", OwnMemberKind::Amount),
    ("account", OwnMemberKind::Account),
    ("payments", OwnMemberKind::Payments),
];

/// Reads the key `payment_products`.
pub(super) fn read_products(root: &mut Section<'_>) -> Vec<(Product, FilePosition)> {
    let mut products: Vec<(Product, FilePosition)> = Vec::new();
    for value in root.optional_list("payment_products").unwrap_or_default() {
        let mut section = value.as_section();
        let product = read_product(&mut section);
        let place = section.place_of("name");
        if let Some(product) = &product
            && products.iter().any(|(known, _)| known.name == product.name)
        {
            section.fault("name", "the file already contains a product of this name");
        }
        section.finish();
        products.extend(product.map(|product| (product, place)));
    }
    products
}

/// The operations of the products alone, and the place of the product for faults.
pub(super) fn own_operations(
    products: &[(Product, FilePosition)],
    all: &[Operation],
    inspection: &Inspection,
) -> Vec<(Operation, FilePosition)> {
    let mut own = Vec::new();
    for (product, place) in products {
        for operation in product.operations(all) {
            if operation.name.len() > MAX_NAME {
                let text = format!(
                    "its operation would be named {}: choose a name with which that has at most {MAX_NAME} characters",
                    operation.name
                );
                inspection.report(place.clone(), text);
            }
            own.push((operation, place.clone()));
        }
    }
    own
}

fn read_product(section: &mut Section<'_>) -> Option<Product> {
    let name = section
        .required("name")
        .and_then(|value| product_name(&value).map(str::to_owned));
    let schema = choice(section, "schema", &SHAPES).unwrap_or(Schema::Payment);
    let members = read_members(section, schema);
    let mut required: Vec<&'static Header> = Vec::new();
    for value in section.optional_list("headers").unwrap_or_default() {
        let Some(header) = header(&value) else {
            continue;
        };
        if required.iter().any(|known| known.name == header.name) {
            value.fault("the list already contains this header");
        }
        required.push(header);
    }
    let answer = read_answer(section);
    Some(Product {
        name: name?,
        schema,
        members,
        required: required.into_iter().map(Required::One).collect(),
        answer,
    })
}

fn product_name<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    let is_valid = text.len() <= MAX_PRODUCT
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !is_valid {
        return value.refuse(
            "a name of at most 48 lower-case letters, digits and hyphens, such as sepa-credit-transfers",
        );
    }
    if text == SHOWN {
        value.fault("the interface shows the headers and the members of this product: they cannot be changed");
        return None;
    }
    Some(text)
}

fn read_members(section: &mut Section<'_>, schema: Schema) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for value in section.optional_list("members").unwrap_or_default() {
        let mut entry = value.as_section();
        if let Some(member) = read_member(&mut entry, schema) {
            let is_same = |known: &Member| known.name.eq_ignore_ascii_case(&member.name);
            if members.iter().any(is_same) {
                let text = "the list already contains this member, perhaps in another letter case";
                entry.fault("name", text);
            }
            members.push(member);
        }
        entry.finish();
    }
    members
}

fn read_member(entry: &mut Section<'_>, schema: Schema) -> Option<Member> {
    let name = entry.required("name");
    let required = entry.optional("required");
    let required = required.and_then(|value| value.boolean()) == Some(true);
    let name = name?;
    let text = member_name(&name)?;
    let kind = match payload::interface_member(text) {
        None => own_kind(entry)?,
        Some(known) if known != text => {
            name.fault(format!(
                "some servers read this name as {known}: write {known}"
            ));
            return None;
        }
        Some(known) => {
            for key in ["kind", "min_length", "max_length", "one_of"] {
                if entry.has(key) {
                    entry.fault(key, format!("{known} is judged by the interface's rule"));
                }
            }
            if schema == Schema::CrossBorderPayment && !required {
                let text = "cross-border-payment judges this member already: list it only with required: true";
                entry.fault("name", text);
            }
            MemberKind::Interface
        }
    };
    Some(Member {
        name: text.to_owned(),
        required,
        kind,
    })
}

/// The kind of a member that the interface does not have.
fn own_kind(entry: &mut Section<'_>) -> Option<MemberKind> {
    let kind = entry.required("kind");
    let kind = kind.and_then(|value| value.one_of(&KINDS));
    let has_words = entry.has("one_of");
    let has_length = entry.has("max_length");
    let least = length(entry, "min_length");
    let most = length(entry, "max_length");
    let one_of = words(entry);
    let kind = kind?;
    if kind != OwnMemberKind::Text {
        for key in ["min_length", "max_length", "one_of"] {
            if entry.has(key) {
                entry.fault(key, "only a text has this key");
            }
        }
    }
    Some(match kind {
        OwnMemberKind::Date => MemberKind::Date,
        OwnMemberKind::Boolean => MemberKind::Boolean,
        OwnMemberKind::Amount => MemberKind::Amount,
        OwnMemberKind::Account => MemberKind::Account,
        OwnMemberKind::Payments => MemberKind::Payments,
        OwnMemberKind::Text => {
            if has_words == has_length || has_words && entry.has("min_length") {
                entry.fault(
                    "kind",
                    "a text has either max_length, with or without min_length, or one_of",
                );
                return None;
            }
            let (least, most) = (least.unwrap_or(1), most.unwrap_or(MAX_TEXT));
            if least > most {
                entry.fault(
                    "max_length",
                    format!("it is less than min_length, which is {least}"),
                );
            }
            MemberKind::Text {
                least,
                most,
                one_of,
            }
        }
    })
}

/// A header that a product may require: one about the PSU, or one that the interface requires of its own initiations.
fn header(value: &Value<'_>) -> Option<&'static Header> {
    let text = value.as_str()?;
    let may_stand = text.starts_with("psu-")
        || matches!(
            text,
            "x-accept-fix" | "tpp-session-id" | "x-psu-identity" | "digest"
        );
    let known = headers::find(text).filter(|header| may_stand && header.name == text);
    if known.is_some_and(|header| header.name == headers::PSU_IP_ADDRESS.name) {
        value.fault("the initiation of every payment requires it already");
        return None;
    }
    known.or_else(|| {
        value.refuse("a header about the PSU in lower case, such as psu-user-agent, or x-accept-fix, tpp-session-id, x-psu-identity or digest")
    })
}

fn length(entry: &mut Section<'_>, key: &'static str) -> Option<usize> {
    entry.optional(key)?.integer(0..=MAX_TEXT)
}

fn words(entry: &mut Section<'_>) -> Vec<String> {
    let values = entry.optional_list("one_of").unwrap_or_default();
    if values.is_empty() && entry.has("one_of") {
        entry.fault("one_of", "expected at least one text");
    }
    let texts = values.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// JSON paths and descriptions repeat the name, and PAY-14 protects it: letters, digits and underscores only.
fn member_name<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    let is_valid = text.len() <= MAX_NAME
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_valid {
        return Some(text);
    }
    value.refuse("the name of a member: at most 64 letters, digits and underscores, such as endToEndIdentification")
}
