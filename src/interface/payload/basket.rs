//! Signing baskets (PAY-13).

use super::{
    json::{JsonReader, Malformed, ReadMembers},
    value::{JsonKind, TextMember},
    violation::Violations,
};

/// The maximum number of payments in a basket (§Limits).
pub(super) const MAX_PAYMENTS: usize = 10;

/// The members of a basket that the rules read.
#[derive(Debug, Default)]
pub(super) struct Basket<'a> {
    payments: Payments<'a>,
}

/// The value of `paymentIds`.
#[derive(Debug, Default)]
enum Payments<'a> {
    #[default]
    Absent,
    /// The first ids, at most as many as a basket may have, and the total number.
    List(Vec<TextMember<'a>>, usize),
    Other(JsonKind),
}

impl<'a> ReadMembers<'a> for Basket<'a> {
    fn member(&mut self, name: &str, reader: &mut JsonReader<'a>) -> Result<(), Malformed> {
        match name {
            "paymentIds" => self.payments = Payments::read(reader)?,
            _ => reader.unknown(name, &["paymentIds"])?,
        }
        Ok(())
    }
}

impl<'a> Basket<'a> {
    /// The ids of the payments, at most as many as a basket may have.
    pub(super) fn ids(&self) -> &[TextMember<'a>] {
        match &self.payments {
            Payments::List(first, _) => first,
            Payments::Absent | Payments::Other(_) => &[],
        }
    }
}

impl<'a> Payments<'a> {
    fn read(reader: &mut JsonReader<'a>) -> Result<Self, Malformed> {
        if reader.peek() != Some(b'[') {
            return reader.skip().map(Self::Other);
        }
        let (mut first, mut count) = (Vec::with_capacity(MAX_PAYMENTS), 0);
        reader.array(|index, reader| {
            count = index.saturating_add(1);
            let id = reader.found()?;
            if index < MAX_PAYMENTS {
                first.push(id);
            }
            Ok(())
        })?;
        Ok(Self::List(first, count))
    }
}

/// PAY-13.
pub(super) fn judge(basket: &Basket<'_>, violations: &mut Violations) {
    const PATH: &str = "paymentIds";
    let (ids, count) = match &basket.payments {
        Payments::Absent => return violations.missing(PATH, "name 1 to 10 payments"),
        Payments::Other(kind) => {
            let text = format!("it is {kind}; it must be an array of 1 to 10 strings");
            return violations.add(PATH, text);
        }
        Payments::List(ids, count) => (ids, *count),
    };
    if !(1..=MAX_PAYMENTS).contains(&count) {
        let text = format!("it names {count} payments; a basket has 1 to 10");
        violations.add(PATH, text);
    }
    for (index, id) in ids.iter().enumerate() {
        let path = || format!("{PATH}[{index}]");
        match id {
            TextMember::Text(text) if text.is_empty() => {
                violations.add(path(), "it is empty; it must be the id of a payment");
            }
            TextMember::Text(_) if ids.iter().take(index).any(|earlier| earlier == id) => {
                violations.add(path(), "it stands in this basket already");
            }
            TextMember::Other(kind) => {
                violations.add(path(), format!("it is {kind}; it must be a string"));
            }
            TextMember::Text(_) | TextMember::Absent => {}
        }
    }
}
