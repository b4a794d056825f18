//! The members of a body that the rules read, public for the comparison with other parsers.
//!
//! If a core parses a different amount than the gateway, it books an amount that was not checked. The tests give every admitted body to
//! other JSON parsers (`make test-systems`) and compare their results with this one.

use super::{
    basket::Basket,
    document::read,
    json::{JsonReader, ReadMembers},
    payment::{Account, Payment},
    value::{ObjectMember, TextMember},
};
use crate::operations::Schema;

/// The strings that the rules of a schema read in a body, by path; the payments of a basket in their order. Empty if the body is not JSON.
pub fn reading(body: &[u8], schema: Schema) -> Vec<(&'static str, String)> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Vec::new();
    };
    match schema {
        Schema::Any => Vec::new(),
        Schema::Basket => object::<Basket<'_>>(text).map_or_else(Vec::new, |basket| {
            let ids = basket.ids().iter();
            strings(ids.map(|id| ("paymentIds", id)))
        }),
        Schema::Payment => object::<Payment<'_>>(text)
            .map_or_else(Vec::new, |payment| strings(shared(&payment).into_iter())),
        Schema::CrossBorderPayment => {
            object::<Payment<'_>>(text).map_or_else(Vec::new, |payment| {
                let own = own(&payment).into_iter();
                strings(shared(&payment).into_iter().chain(own))
            })
        }
    }
}

fn object<'a, T: ReadMembers<'a>>(text: &'a str) -> Option<T> {
    match read(text, JsonReader::part) {
        Ok((ObjectMember::Object(object), _)) => Some(object),
        _ => None,
    }
}

type Member<'p, 'a> = (&'static str, &'p TextMember<'a>);

fn strings<'p, 'a: 'p>(
    members: impl Iterator<Item = Member<'p, 'a>>,
) -> Vec<(&'static str, String)> {
    let texts = members.filter_map(|(path, found)| match found {
        TextMember::Text(text) => Some((path, text.clone().into_owned())),
        TextMember::Absent | TextMember::Other(_) => None,
    });
    texts.collect()
}

/// The members that all products share (PAY-14).
fn shared<'p, 'a>(payment: &'p Payment<'a>) -> Vec<Member<'p, 'a>> {
    let mut members = vec![
        ("creditorName", &payment.creditor_name),
        ("creditorAgent", &payment.creditor_agent),
        ("remittanceInformationUnstructured", &payment.remittance),
    ];
    if let ObjectMember::Object(money) = &payment.amount {
        members.push(("instructedAmount.amount", &money.amount));
        members.push(("instructedAmount.currency", &money.currency));
    }
    let creditor = [
        "creditorAccount.iban",
        "creditorAccount.bban",
        "creditorAccount.currency",
    ];
    let debtor = [
        "debtorAccount.iban",
        "debtorAccount.bban",
        "debtorAccount.currency",
    ];
    members.extend(account(&payment.creditor_account, creditor));
    members.extend(account(&payment.debtor_account, debtor));
    members
}

fn account<'p, 'a>(
    account: &'p ObjectMember<Account<'a>>,
    [iban, bban, currency]: [&'static str; 3],
) -> Vec<Member<'p, 'a>> {
    match account {
        ObjectMember::Object(account) => vec![
            (iban, &account.iban),
            (bban, &account.bban),
            (currency, &account.currency),
        ],
        ObjectMember::Absent | ObjectMember::Other(_) => Vec::new(),
    }
}

/// The other members of a cross-border payment.
fn own<'p, 'a>(payment: &'p Payment<'a>) -> Vec<Member<'p, 'a>> {
    let mut members = vec![
        ("purposeCode", &payment.purpose),
        ("requestedExecutionDate", &payment.execution_date),
        ("regulatoryReportingCode", &payment.reporting_code),
        (
            "regulatoryReportingInformation",
            &payment.reporting_information,
        ),
    ];
    if let ObjectMember::Object(address) = &payment.creditor_address {
        members.extend([
            ("creditorAddress.street", &address.street),
            ("creditorAddress.buildingNumber", &address.building_number),
            ("creditorAddress.postalCode", &address.postal_code),
            ("creditorAddress.city", &address.city),
            ("creditorAddress.country", &address.country),
        ]);
    }
    members
}
