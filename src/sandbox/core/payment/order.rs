//! A TPP's order: the body of a payment, parsed and validated as far as the core must (docs/upstream-contract.md, "Not sure").
//!
//! The gateway cannot know whether an account is the PSU's, the value of a currency, or whether a reference is valid. All
//! violations are reported at once. Where the interface shows no fields, a body with `payments` is a bulk, and one with
//! `frequency` a periodic payment, as in the Berlin Group framework.

// Members of a body, and their violations.
mod members;
// One transfer of an order.
mod transfer;

pub(in super::super) use members::Violation;

use super::super::bank::{Bank, BankFault};
use super::super::customer::{Account, AccountKind};
use super::super::distinct::object;
use super::super::money::{self, NOK};
use super::{DOMESTIC, Form, INSTANT, Part, Payment, Status};
use jiff::ToSpan;
use jiff::civil::Date;
use members::Members;
use serde_json::{Map, Value};
use uuid::Uuid;

/// The most parts of a bulk.
const PARTS: usize = 100;

/// The fault of a day that cannot be read.
const NO_DAY: &str = "A day of the calendar, written as in 2027-01-31.";

/// Members that only a periodic payment has, beside its frequency: without one they would be taken for a single payment of today.
const PERIODIC: [&str; 5] = [
    "startDate",
    "endDate",
    "executionRule",
    "dayOfExecution",
    "monthsOfExecution",
];

/// Members of one transfer, which a bulk has in each of its payments.
const OF_A_TRANSFER: [&str; 12] = [
    "instructedAmount",
    "creditorName",
    "creditorAccount",
    "creditorAgent",
    "creditorAddress",
    "endToEndIdentification",
    "purposeCode",
    "remittanceInformationUnstructured",
    "remittanceInformationStructured",
    "remittanceInformationStructuredArray",
    "regulatoryReportingCode",
    "regulatoryReportingInformation",
];

/// The parties and the content of an order.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Ordered<'a> {
    /// The TPP.
    pub(in super::super) tpp: &'a str,
    /// The PSU: the id of a private customer.
    pub(in super::super) customer: &'a str,
    /// The agreement, in a corporate context.
    pub(in super::super) agreement: Option<Uuid>,
    /// The product.
    pub(in super::super) product: &'a str,
    /// The body.
    pub(in super::super) body: &'a [u8],
}

impl Bank {
    /// Reads an order; returns its violations, if any. Nothing is stored yet.
    pub(in super::super) fn order(
        &self,
        ordered: &Ordered<'_>,
    ) -> Result<Result<Payment, Vec<Violation>>, BankFault> {
        let Some(body) = object(ordered.body) else {
            let text = "The body is no JSON object, or has a member twice.";
            return Ok(Err(vec![Violation::format("", text)]));
        };
        let mut members = Members::new(&body);
        members.check_characters();
        let form = form(&mut members, ordered.product, self.today());
        let debtor = self.debtor(ordered, &mut members)?;
        let requested = requested(&mut members, ordered.product, self.today());
        let mut parts = Vec::new();
        if let Some(debtor) = &debtor {
            match body.get("payments").and_then(Value::as_array) {
                Some(entries) if form == Form::Bulk => {
                    for (number, entry) in entries.iter().enumerate() {
                        let mut entry = members.entry(entry, number);
                        check_part(&mut entry, &body, debtor);
                        parts.extend(self.transfer(ordered.product, debtor, &mut entry)?);
                        members.take_over(entry);
                    }
                }
                _ => parts.extend(self.transfer(ordered.product, debtor, &mut members)?),
            }
        }
        let violations = members.into_violations();
        let Some(debtor) = debtor.filter(|_| violations.is_empty()) else {
            return Ok(Err(violations));
        };
        let parts = parts.into_iter().zip(0..);
        Ok(Ok(Payment {
            id: Uuid::new_v4().to_string(),
            tpp: ordered.tpp.to_owned(),
            product: ordered.product.to_owned(),
            form,
            customer: ordered.customer.to_owned(),
            agreement: ordered.agreement,
            debtor: debtor.id,
            created: self.today(),
            requested,
            due: self.due_day(requested),
            body: Value::Object(body).to_string(),
            parts: parts
                .map(|(part, number)| Part { number, ..part })
                .collect(),
        }))
    }

    /// The debtor's account: one of the PSU's own in this context, not a card account, and one that the bank lets pay.
    fn debtor(
        &self,
        ordered: &Ordered<'_>,
        members: &mut Members<'_>,
    ) -> Result<Option<Account>, BankFault> {
        let Some((number, currency)) = members.account("debtorAccount") else {
            return Ok(None);
        };
        let accounts = self.accounts_in(ordered.customer, ordered.agreement)?;
        let own = accounts.unwrap_or_default().into_iter();
        let bban = money::bban_of(&number).unwrap_or(&number);
        let found = own
            .filter(|account| account.kind != AccountKind::Card)
            .find(|account| account.bban == bban);
        match &found {
            None => members.say(Violation {
                status: 404,
                code: "RESOURCE_UNKNOWN",
                path: "debtorAccount".into(),
                text: "The PSU has no such account to pay from.".into(),
            }),
            Some(account)
                if currency
                    .as_ref()
                    .is_some_and(|named| *named != account.currency) =>
            {
                members.refuse(
                    "debtorAccount.currency",
                    "The account has another currency.",
                );
            }
            Some(account) if !self.may_pay_from(&account.id)? => members.say(Violation {
                status: 403,
                code: "FORBIDDEN",
                path: "debtorAccount".into(),
                text: "The bank permits no payments from this account. It can be read as before."
                    .into(),
            }),
            Some(_) => {}
        }
        Ok(found)
    }
}

/// The form of the payment, with a check of the members that the form requires.
fn form(members: &mut Members<'_>, product: &str, today: Date) -> Form {
    let form = match (members.get("payments"), members.get("frequency")) {
        (Some(_), _) => Form::Bulk,
        (None, Some(_)) => Form::Periodic,
        (None, None) => Form::Single,
    };
    if product == INSTANT && form != Form::Single {
        members.say(Violation {
            status: 400,
            code: "PRODUCT_INVALID",
            path: String::new(),
            text: "Instant payments are single ones.".into(),
        });
    }
    match (form, members.get("payments").map(Value::as_array)) {
        (Form::Bulk, Some(Some(entries))) if (1..=PARTS).contains(&entries.len()) => {}
        (Form::Bulk, _) => members.refuse("payments", "A bulk has 1 to 100 payments."),
        _ => {}
    }
    check_contradictions(members, form, product);
    if form == Form::Periodic {
        check_period(members);
        check_days(members, today);
    } else if PERIODIC.iter().any(|name| is_given(members, name)) {
        members.refuse(
            "frequency",
            "A periodic payment has a frequency, as in Monthly.",
        );
    }
    form
}

/// A member that the form of the payment would ignore is refused.
fn check_contradictions(members: &mut Members<'_>, form: Form, product: &str) {
    match form {
        Form::Single => {}
        Form::Bulk => {
            // The gateway demands these of a payment that is not within Norway, whatever its form is (PAY-3).
            let demanded: &[&str] = match is_norwegian(product) {
                true => &[],
                false => &["instructedAmount", "creditorName", "creditorAccount"],
            };
            let others = OF_A_TRANSFER.iter().filter(|name| !demanded.contains(name));
            for name in others.copied() {
                if is_given(members, name) {
                    let text = "A bulk has none of its own: name it in each entry of payments.";
                    members.refuse(name, text);
                }
            }
            if is_given(members, "frequency") {
                let text = "A bulk is carried out once: leave the frequency or the payments out.";
                members.refuse("frequency", text);
            }
        }
        Form::Periodic => {
            if is_given(members, "requestedExecutionDate") {
                let text = "A periodic payment begins on its startDate: leave this day out.";
                members.refuse("requestedExecutionDate", text);
            }
            let is_variable = members.text("frequency") == Some("MonthlyVariable");
            if !is_variable && is_given(members, "monthsOfExecution") {
                let text = "Only the frequency MonthlyVariable has months.";
                members.refuse("monthsOfExecution", text);
            }
        }
    }
}

/// What a part of a bulk says of the whole is what the whole says, or is refused.
fn check_part(part: &mut Members<'_>, whole: &Map<String, Value>, debtor: &Account) {
    for name in ["payments", "frequency"].into_iter().chain(PERIODIC) {
        if is_given(part, name) {
            part.refuse(name, "A payment of a bulk is a single one: leave this out.");
        }
    }
    let day = "requestedExecutionDate";
    if is_given(part, day) && part.get(day) != whole.get(day) {
        part.refuse(day, "A bulk has one day: name it beside payments.");
    }
    if is_given(part, "debtorAccount")
        && let Some((number, currency)) = part.account("debtorAccount")
    {
        let bban = money::bban_of(&number).unwrap_or(&number);
        let is_currency = currency.is_none_or(|currency| currency == debtor.currency);
        if bban != debtor.bban || !is_currency {
            let text = "A bulk is paid from one account: name it beside payments.";
            part.refuse("debtorAccount", text);
        }
    }
}

fn is_given(members: &Members<'_>, name: &str) -> bool {
    members.get(name).is_some_and(|value| !value.is_null())
}

/// SBX-12: repeated months are refused.
fn check_period(members: &mut Members<'_>) {
    let frequencies = [
        "Daily",
        "Weekly",
        "EveryTwoWeeks",
        "Monthly",
        "EveryTwoMonths",
        "Quarterly",
        "SemiAnnual",
        "Annual",
        "MonthlyVariable",
    ];
    let frequency = members.get("frequency").and_then(Value::as_str);
    if !frequency.is_some_and(|frequency| frequencies.contains(&frequency)) {
        members.refuse("frequency", &format!("One of {}.", frequencies.join(", ")));
    }
    if frequency != Some("MonthlyVariable") {
        return;
    }
    let months = members.get("monthsOfExecution").and_then(Value::as_array);
    let mut seen: Vec<u32> = Vec::new();
    for month in months.into_iter().flatten() {
        let text = month
            .as_str()
            .map(str::to_owned)
            .unwrap_or_else(|| month.to_string());
        match text.parse() {
            Ok(month @ 1..=12) if !seen.contains(&month) => seen.push(month),
            Ok(1..=12) => return members.refuse("monthsOfExecution", "A month stands twice."),
            _ => return members.refuse("monthsOfExecution", "Months are 1 to 12."),
        }
    }
    if seen.is_empty() {
        members.refuse(
            "monthsOfExecution",
            "MonthlyVariable names its months, as in [\"1\", \"7\"].",
        );
    }
}

/// SBX-17: a periodic payment begins today or later, and does not end before its first day.
fn check_days(members: &mut Members<'_>, today: Date) {
    let start = members.day("startDate");
    match start {
        None => members.refuse(
            "startDate",
            "A periodic payment begins on a day, as in 2027-01-31.",
        ),
        Some(start) if start < today => {
            let text = format!("The day has passed: begin on {today} or later.");
            members.refuse("startDate", &text);
        }
        Some(_) => {}
    }
    if members.get("endDate").is_none() {
        return;
    }
    let first = start.map_or(today, |start| start.max(today));
    match members.day("endDate") {
        None => members.refuse("endDate", NO_DAY),
        Some(end) if end < first => {
            let text = format!(
                "The end is before the first payment: end on {first} or later, or leave the end out."
            );
            members.refuse("endDate", &text);
        }
        Some(_) => {}
    }
}

/// The requested day: not in the past, not too far ahead, and today for an instant payment.
fn requested(members: &mut Members<'_>, product: &str, today: Date) -> Option<Date> {
    members.get("requestedExecutionDate")?;
    let day = members.day("requestedExecutionDate");
    let year = today.saturating_add(1.year());
    let text = match day {
        None => NO_DAY.to_owned(),
        Some(day) if day < today => format!("The day has passed: {today} or later."),
        Some(day) if product == INSTANT && day != today => {
            format!("Instant payments are carried out at once: {today}, or no day.")
        }
        Some(day) if day > year => format!("At most a year ahead: {year} or earlier."),
        Some(_) => return day,
    };
    members.say(Violation {
        status: 400,
        code: "EXECUTION_DATE_INVALID",
        path: "requestedExecutionDate".into(),
        text,
    });
    None
}

/// Whether the product is one of the two for payments within Norway.
fn is_norwegian(product: &str) -> bool {
    product == DOMESTIC || product == INSTANT
}

/// A new part.
fn received(amount: i64, currency: &str) -> Part {
    Part {
        number: 0,
        status: Status::Received,
        amount,
        currency: currency.to_owned(),
        debit: amount,
        fee: 0,
        creditor: None,
        credit: 0,
        details: serde_json::Map::new(),
        attempts: 0,
    }
}

/// The currencies that a product takes.
fn takes_currency(product: &str, currency: &str) -> bool {
    !is_norwegian(product) || currency == NOK
}
