//! The rules of bodies as JSON Schema 2020-12, generated from the sets, limits and tables that the checks use.
//!
//! Invariant: a schema refuses no body that [`check`](super::check) accepts. Rules that JSON Schema cannot express are described in prose:
//! duplicate members, the depth, the check digits of an IBAN, today's date. Deliberately not here: the place of a body in a description of
//! the interface.

use super::{
    amount, basket,
    codes::{self, BIC},
    country,
    currency::{self, MinorUnits},
    iban::{self, Ibans},
    rules,
};
use crate::operations::{Member, MemberKind, Schema};
use serde_json::{Map, Value, json};

/// A day (§Basic rules 3).
pub fn day() -> Value {
    json!({ "type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" })
}

/// The name of a schema in [`definitions`]; `None` if any JSON is accepted.
pub const fn name(schema: Schema) -> Option<&'static str> {
    match schema {
        Schema::Any => None,
        Schema::CrossBorderPayment => Some("CrossBorderPayment"),
        Schema::Payment => Some("Payment"),
        Schema::Basket => Some("SigningBasket"),
    }
}

/// The schema of a body and the schemas that it refers to, by name. References begin with `#/components/schemas/`.
pub fn definitions(schema: Schema, ibans: &Ibans) -> Map<String, Value> {
    let mut all = Map::new();
    let Some(name) = name(schema) else { return all };
    let body = match schema {
        Schema::Any => return all,
        Schema::CrossBorderPayment => cross_border(),
        Schema::Payment => other_product(),
        Schema::Basket => {
            all.insert(name.to_owned(), signing_basket());
            return all;
        }
    };
    all.insert(name.to_owned(), body);
    all.insert("Amount".to_owned(), amount());
    all.insert("Account".to_owned(), account());
    all.insert("Currency".to_owned(), one_of(listed(&currency::ACCEPTED)));
    all.insert("Iban".to_owned(), iban(ibans));
    all.insert(
        "Bic".to_owned(),
        json!({ "type": "string", "pattern": BIC }),
    );
    if schema == Schema::CrossBorderPayment {
        all.insert("Address".to_owned(), address());
    }
    all
}

/// A reference to the schema with this name.
pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The schema with this name, for a product that requires or adds these members. It refers to the definitions of both schemas of payments.
pub fn with_members(name: &str, members: &[Member]) -> Value {
    if members.is_empty() {
        return reference(name);
    }
    let known = cross_border();
    let properties = members.iter().map(|member| {
        let schema = match &member.kind {
            MemberKind::Interface => known
                .pointer(&format!("/properties/{}", member.name))
                .cloned()
                .unwrap_or(json!(true)),
            MemberKind::Text { one_of, .. } if !one_of.is_empty() => {
                self::one_of(one_of.iter().cloned())
            }
            MemberKind::Text { least, most, .. } => {
                json!({ "type": "string", "minLength": least, "maxLength": most })
            }
            MemberKind::Date => day(),
            MemberKind::Boolean => json!({ "type": "boolean" }),
            MemberKind::Amount => reference("Amount"),
            MemberKind::Account => reference("Account"),
            MemberKind::Payments => {
                json!({ "type": "array", "minItems": 1, "items": reference("Payment") })
            }
        };
        (member.name.clone(), schema)
    });
    let required = members.iter().filter(|member| member.required);
    let required: Vec<_> = required.map(|member| member.name.as_str()).collect();
    let own =
        json!({ "type": "object", "required": required, "properties": Map::from_iter(properties) });
    json!({ "allOf": [reference(name), own] })
}

/// PAY-3 to PAY-12.
fn cross_border() -> Value {
    let mut members = shared_members();
    let information = json!({ "type": "string", "maxLength": rules::MAX_INFORMATION });
    members.extend([
        ("creditorAddress".to_owned(), reference("Address")),
        (
            "purposeCode".to_owned(),
            one_of(codes::PURPOSES.split(", ").map(str::to_owned)),
        ),
        ("requestedExecutionDate".to_owned(), execution_date()),
        (
            "regulatoryReportingCode".to_owned(),
            one_of(codes::REPORTING.split(", ").map(str::to_owned)),
        ),
        ("regulatoryReportingInformation".to_owned(), information),
    ]);
    json!({
        "type": "object",
        "description": "A cross-border payment. Members that are not listed here are forwarded untouched, unless their names are those of listed ones in another letter case.",
        "required": ["instructedAmount", "creditorName", "creditorAccount", "debtorAccount"],
        "properties": members,
        "additionalProperties": true,
        "allOf": [agent_with_bban(), reports_of_large_transfers()],
        "examples": [example()],
    })
}

/// PAY-14.
fn other_product() -> Value {
    json!({
        "type": "object",
        "description": "A payment of another product: the parts that all payments share are judged where they stand, and every other member is forwarded untouched, unless its name is that of one of these in another letter case.",
        "properties": shared_members(),
        "additionalProperties": true,
        "examples": [{ "instructedAmount": { "amount": "100.00", "currency": "NOK" } }],
    })
}

fn shared_members() -> Map<String, Value> {
    let text = |least: usize, most: usize| json!({ "type": "string", "minLength": least, "maxLength": most });
    let members = [
        ("instructedAmount", reference("Amount")),
        ("creditorName", text(1, rules::MAX_NAME)),
        ("creditorAgent", reference("Bic")),
        ("creditorAccount", reference("Account")),
        ("debtorAccount", reference("Account")),
        (
            "remittanceInformationUnstructured",
            text(1, rules::MAX_INFORMATION),
        ),
    ];
    members
        .map(|(name, schema)| (name.to_owned(), schema))
        .into_iter()
        .collect()
}

/// PAY-12, without the comparison with today's date.
fn execution_date() -> Value {
    let mut schema = day();
    let text = "Not before today's date where the bank is.";
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".to_owned(), json!(text));
    }
    schema
}

/// PAY-7.
fn agent_with_bban() -> Value {
    json!({
        "if": {
            "required": ["creditorAccount"],
            "properties": { "creditorAccount": {
                "type": "object",
                "required": ["bban"],
                "properties": { "bban": true },
            } },
        },
        "then": { "required": ["creditorAgent"], "properties": { "creditorAgent": true } },
    })
}

/// PAY-11.
fn reports_of_large_transfers() -> Value {
    let more = amount::LARGE.saturating_sub(1);
    let large = format!("^[1-9][0-9]{{{more},}}(\\.[0-9]+)?$");
    json!({
        "if": {
            "required": ["instructedAmount"],
            "properties": { "instructedAmount": {
                "type": "object",
                "required": ["amount", "currency"],
                "properties": {
                    "currency": { "const": "NOK" },
                    "amount": { "type": "string", "pattern": large },
                },
            } },
        },
        "then": {
            "required": ["regulatoryReportingCode", "regulatoryReportingInformation"],
            "properties": {
                "regulatoryReportingCode": true,
                "regulatoryReportingInformation": { "minLength": 1 },
            },
            "additionalProperties": true,
        },
    })
}

/// A cross-border payment that is valid on every day: every member except requestedExecutionDate.
pub fn example() -> Value {
    json!({
        "instructedAmount": { "amount": "250000.00", "currency": "NOK" },
        "creditorName": "Werkzeugbau Muster GmbH",
        "creditorAgent": "COBADEFFXXX",
        "creditorAccount": { "iban": "DE89370400440532013000", "currency": "EUR" },
        "creditorAddress": { "street": "Musterweg", "buildingNumber": "1", "postalCode": "10115", "city": "Berlin", "country": "DE" },
        "debtorAccount": { "iban": "NO9386011117947", "currency": "NOK" },
        "remittanceInformationUnstructured": "Invoice 4711",
        "purposeCode": "SUPP",
        "regulatoryReportingCode": "14",
        "regulatoryReportingInformation": "Machine parts",
    })
}

/// PAY-4 and PAY-5: the currencies by their minor units, each with the form of its amounts.
fn amount() -> Value {
    let units = [
        MinorUnits::Exactly(0),
        MinorUnits::Exactly(2),
        MinorUnits::Exactly(3),
        MinorUnits::Any,
    ];
    let choices = units.map(|units| {
        let of_units = |code: &String| currency::minor_units(code) == Some(units);
        let codes: Vec<_> = listed(&currency::ACCEPTED).filter(of_units).collect();
        json!({
            "properties": {
                "amount": { "type": "string", "pattern": amount_pattern(units) },
                "currency": { "type": "string", "enum": codes },
            },
        })
    });
    json!({
        "type": "object",
        "description": "A decimal in a string, more than zero, with exactly as many fraction digits as the currency has minor units.",
        "required": ["amount", "currency"],
        "properties": {
            "amount": { "type": "string", "description": "At most 18 digits, without sign, exponent, grouping or leading zeros." },
            "currency": reference("Currency"),
        },
        "additionalProperties": true,
        "anyOf": choices,
        "examples": [{ "amount": "100.00", "currency": "NOK" }, { "amount": "100", "currency": "JPY" }],
    })
}

fn amount_pattern(units: MinorUnits) -> String {
    let scales = match units {
        MinorUnits::Exactly(scale) => scale..=scale,
        MinorUnits::Any => 0..=amount::SCALE,
    };
    let forms: Vec<_> = scales.map(amounts_of_scale).collect();
    format!("^({})$", forms.join("|"))
}

/// Amounts above zero: the whole part or a fraction digit is not zero.
fn amounts_of_scale(scale: usize) -> String {
    let more = amount::PRECISION.saturating_sub(scale).saturating_sub(1);
    let whole = format!("[1-9][0-9]{{0,{more}}}");
    if scale == 0 {
        return whole;
    }
    let small = (0..scale).map(|zeros| {
        let rest = scale.saturating_sub(zeros).saturating_sub(1);
        format!("{:0<zeros$}[1-9][0-9]{{{rest}}}", "")
    });
    let small: Vec<_> = small.collect();
    format!("{whole}\\.[0-9]{{{scale}}}|0\\.({})", small.join("|"))
}

/// PAY-6.
fn account() -> Value {
    json!({
        "type": "object",
        "description": "Exactly one of iban and bban, and a currency.",
        "required": ["currency"],
        "properties": {
            "iban": reference("Iban"),
            "bban": { "type": "string", "minLength": 1, "maxLength": rules::MAX_BBAN },
            "currency": reference("Currency"),
        },
        "additionalProperties": true,
        "oneOf": [{ "required": ["iban"] }, { "required": ["bban"] }],
        "examples": [{ "iban": "NO9386011117947", "currency": "NOK" }],
    })
}

/// PAY-6: country, check digits, and the country's structure.
fn iban(ibans: &Ibans) -> Value {
    let structure = |(country, _, structure): (&str, usize, &str)| {
        let runs = iban::runs(structure).map(|(count, kind)| {
            let count = count.unwrap_or_default();
            let set = match kind {
                "n" => "[0-9]",
                "a" => "[A-Z]",
                _ => "[A-Z0-9]",
            };
            format!("{set}{{{count}}}")
        });
        format!("{country}[0-9]{{2}}{}", runs.collect::<String>())
    };
    let countries: Vec<_> = ibans.countries().map(structure).collect();
    json!({
        "type": "string",
        "maxLength": iban::MAX_LENGTH,
        "pattern": format!("^({})$", countries.join("|")),
        "description": format!(
            "ISO 13616-1, in capitals and without spaces; its check digits (ISO 7064, MOD 97-10) must be right. The countries are those of the IBAN registry as of {}, and any that this bank adds.",
            iban::AS_OF,
        ),
        "examples": ["NO9386011117947"],
    })
}

/// PAY-8.
fn address() -> Value {
    json!({
        "type": "object",
        "required": ["country"],
        "properties": {
            "street": { "type": "string", "maxLength": rules::MAX_NAME },
            "buildingNumber": { "type": "string" },
            "postalCode": { "type": "string" },
            "city": { "type": "string" },
            "country": one_of(listed(&country::ACCEPTED)),
        },
        "additionalProperties": true,
    })
}

/// PAY-13.
fn signing_basket() -> Value {
    json!({
        "type": "object",
        "description": "The payments that are to be signed together. Members that are not listed here are forwarded untouched.",
        "required": ["paymentIds"],
        "properties": { "paymentIds": {
            "type": "array",
            "items": { "type": "string", "minLength": 1 },
            "minItems": 1,
            "maxItems": basket::MAX_PAYMENTS,
            "uniqueItems": true,
        } },
        "additionalProperties": true,
        "examples": [{ "paymentIds": ["1", "2"] }],
    })
}

fn one_of(codes: impl Iterator<Item = String>) -> Value {
    json!({ "type": "string", "enum": codes.collect::<Vec<_>>() })
}

/// The codes of a set that is grouped by first letters.
fn listed(set: &'static [(&str, &str)]) -> impl Iterator<Item = String> {
    set.iter()
        .flat_map(|(first, rest)| rest.split(' ').map(move |rest| format!("{first}{rest}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_amounts() {
        let of = |scale| amount_pattern(MinorUnits::Exactly(scale));
        assert_eq!(of(0), "^([1-9][0-9]{0,17})$");
        assert_eq!(
            of(2),
            "^([1-9][0-9]{0,15}\\.[0-9]{2}|0\\.([1-9][0-9]{1}|0[1-9][0-9]{0}))$"
        );
    }

    #[test]
    fn every_currency_stands_in_one_choice() {
        let amount = amount();
        let choices = amount["anyOf"].as_array().unwrap().iter();
        let codes = choices.flat_map(|choice| {
            let codes = &choice["properties"]["currency"]["enum"];
            codes.as_array().unwrap().clone()
        });
        let mut codes: Vec<_> = codes
            .map(|code| code.as_str().unwrap().to_owned())
            .collect();
        codes.sort_unstable();
        let mut accepted: Vec<_> = listed(&currency::ACCEPTED).collect();
        accepted.sort_unstable();
        assert_eq!(codes, accepted);
    }

    #[test]
    fn ibans_by_country() {
        let iban = iban(&Ibans::default());
        let pattern = iban["pattern"].as_str().unwrap();
        assert!(pattern.contains("|NO[0-9]{2}[0-9]{11}|"), "{pattern}");
        assert_eq!(pattern.matches('|').count(), iban::COUNTRIES.len() - 1);
    }
}
