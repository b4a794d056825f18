//! The rules of payments, PAY-3 to PAY-12: one function each, in their order.

use super::{
    amount::Amount,
    codes, country,
    currency::{self, MinorUnits},
    payment::{Account, Money, Payment},
    value::{ObjectMember, TextMember},
    violation::Violations,
};
use crate::{Code, character, day};
use jiff::civil::Date;

const AGENT: &str = "creditorAgent";
const COUNTRY: &str = "creditorAddress.country";
const REPORTING_CODE: &str = "regulatoryReportingCode";
const REPORTING_INFORMATION: &str = "regulatoryReportingInformation";
const EXECUTION_DATE: &str = "requestedExecutionDate";

/// The maximum length of regulatoryReportingInformation and remittance information (§Limits), in characters.
pub(super) const MAX_INFORMATION: usize = 140;

/// The maximum length of a name and a street (§Limits), in characters.
pub(super) const MAX_NAME: usize = 70;

/// The maximum length of a bban (§Limits), in characters.
pub(super) const MAX_BBAN: usize = 30;

/// Checks a cross-border payment (B) by every rule.
pub(super) fn cross_border(payment: &Payment<'_>, today: Date, violations: &mut Violations) {
    required(payment, violations);
    amount(payment, violations);
    currencies(payment, violations);
    accounts(payment, violations);
    agent_required(payment, violations);
    agent(payment, violations);
    creditor_name(payment, violations);
    address(payment, violations);
    remittance(payment, violations);
    reporting(payment, violations);
    large_transfer(payment, violations);
    execution_date(payment, today, violations);
}

/// Checks a payment of another product by the rules for the shared members that are present (PAY-14). PAY-7 requires every agent to be a
/// BIC, but requires an agent only of a payment of B.
pub(super) fn other_product(payment: &Payment<'_>, violations: &mut Violations) {
    amount(payment, violations);
    currencies(payment, violations);
    accounts(payment, violations);
    agent(payment, violations);
    creditor_name(payment, violations);
    remittance(payment, violations);
}

/// PAY-3.
fn required(payment: &Payment<'_>, violations: &mut Violations) {
    let members = [
        (
            "instructedAmount",
            !matches!(payment.amount, ObjectMember::Absent),
        ),
        ("creditorName", payment.creditor_name != TextMember::Absent),
        (
            "creditorAccount",
            !matches!(payment.creditor_account, ObjectMember::Absent),
        ),
        (
            "debtorAccount",
            !matches!(payment.debtor_account, ObjectMember::Absent),
        ),
    ];
    for (path, _) in members.iter().filter(|(_, is_present)| !is_present) {
        violations.missing(path, "every cross-border payment has it");
    }
}

/// The paths of an amount object and its members.
pub(super) struct MoneyPaths<'p> {
    pub(super) money: &'p str,
    pub(super) amount: &'p str,
    pub(super) currency: &'p str,
}

const INSTRUCTED: MoneyPaths<'_> = MoneyPaths {
    money: "instructedAmount",
    amount: "instructedAmount.amount",
    currency: "instructedAmount.currency",
};

fn amount(payment: &Payment<'_>, violations: &mut Violations) {
    money(&payment.amount, &INSTRUCTED, violations);
}

/// PAY-4.
pub(super) fn money(
    found: &ObjectMember<Money<'_>>,
    paths: &MoneyPaths<'_>,
    violations: &mut Violations,
) {
    let money = match found {
        ObjectMember::Absent => return,
        ObjectMember::Object(money) => money,
        ObjectMember::Other(kind) => {
            let text = format!("it is {kind}; it must be an object with amount and currency");
            return violations.add(paths.money, text);
        }
    };
    let expected = "a decimal in a string, such as \"100.00\"";
    let Some(text) = violations.required(&money.amount, paths.amount, expected) else {
        return;
    };
    let amount = match Amount::parse(text) {
        Ok(amount) => amount,
        Err(text) => return violations.add(paths.amount, text),
    };
    if let TextMember::Text(code) = &money.currency
        && let Some(MinorUnits::Exactly(digits)) = currency::minor_units(code)
        && amount.scale() != digits
    {
        let example = match digits {
            0 => "100".to_owned(),
            _ => format!("100.{:0<digits$}", ""),
        };
        violations.add(
            paths.amount,
            format!("{code} has {digits} fraction digits: {example}"),
        );
    }
}

fn currencies(payment: &Payment<'_>, violations: &mut Violations) {
    if let ObjectMember::Object(money) = &payment.amount {
        currency(&money.currency, INSTRUCTED.currency, violations);
    }
    for (account, paths) in both_accounts(payment) {
        if let ObjectMember::Object(account) = account {
            currency(&account.currency, paths.currency, violations);
        }
    }
}

/// PAY-5.
pub(super) fn currency(found: &TextMember<'_>, path: &str, violations: &mut Violations) {
    let code = violations.required(found, path, "a currency such as NOK");
    if let Some(code) = code.filter(|code| currency::minor_units(code).is_none()) {
        violations.add(path, unknown_code(code, 3, "a currency", "NOK"));
    }
}

/// The fault of a code of capitals that is not in its set (ERR-10).
fn unknown_code(code: &str, length: usize, what: &str, example: &str) -> String {
    let has_length = code.chars().count() == length;
    let mut characters = code.chars().zip(1_usize..);
    match characters.find(|(found, _)| !found.is_ascii_uppercase()) {
        None if has_length => format!("{code} is not {what} that is accepted"),
        Some((found, _)) if has_length && found.is_ascii_lowercase() => {
            format!("{what} stands in capitals, such as {example}")
        }
        Some((found, at)) if has_length => {
            let found = character::name(found);
            format!("its character {at} is {found}; {what} is {length} capitals, such as {example}")
        }
        _ => format!(
            "it has {} characters; {what} has {length} capitals, such as {example}",
            code.chars().count()
        ),
    }
}

fn accounts(payment: &Payment<'_>, violations: &mut Violations) {
    for (found, paths) in both_accounts(payment) {
        account(found, paths, violations);
    }
}

/// PAY-6.
pub(super) fn account(
    found: &ObjectMember<Account<'_>>,
    paths: &AccountPaths<'_>,
    violations: &mut Violations,
) {
    match found {
        ObjectMember::Absent => {}
        ObjectMember::Object(account) => numbers(account, paths, violations),
        ObjectMember::Other(kind) => {
            let text =
                format!("it is {kind}; it must be an object with iban or bban, and currency");
            violations.add(paths.account, text);
        }
    }
}

/// The paths of an account and its members.
pub(super) struct AccountPaths<'p> {
    pub(super) account: &'p str,
    pub(super) iban: &'p str,
    pub(super) bban: &'p str,
    pub(super) currency: &'p str,
}

const CREDITOR: AccountPaths<'_> = AccountPaths {
    account: "creditorAccount",
    iban: "creditorAccount.iban",
    bban: "creditorAccount.bban",
    currency: "creditorAccount.currency",
};

const DEBTOR: AccountPaths<'_> = AccountPaths {
    account: "debtorAccount",
    iban: "debtorAccount.iban",
    bban: "debtorAccount.bban",
    currency: "debtorAccount.currency",
};

fn both_accounts<'p, 'a>(
    payment: &'p Payment<'a>,
) -> [(
    &'p ObjectMember<Account<'a>>,
    &'static AccountPaths<'static>,
); 2] {
    [
        (&payment.creditor_account, &CREDITOR),
        (&payment.debtor_account, &DEBTOR),
    ]
}

fn numbers(account: &Account<'_>, paths: &AccountPaths<'_>, violations: &mut Violations) {
    match (&account.iban, &account.bban) {
        (TextMember::Absent, TextMember::Absent) => {
            let text = "it has neither iban nor bban; one of them must stand";
            violations.add(paths.account, text);
            violations.names_missing(paths.iban);
        }
        (TextMember::Absent, bban) => violations.length(bban, paths.bban, 1, MAX_BBAN),
        (iban, TextMember::Absent) => self::iban(iban, paths.iban, violations),
        (_, _) => {
            let text = "it has both iban and bban; one of them must stand";
            violations.add(paths.account, text);
        }
    }
}

fn iban(found: &TextMember<'_>, path: &str, violations: &mut Violations) {
    let Some(text) = violations.text(found, path) else {
        return;
    };
    if let Err(fault) = violations.ibans().judge(text) {
        violations.add(path, fault.to_string());
    }
}

/// PAY-7: a payment that requires an agent has one.
fn agent_required(payment: &Payment<'_>, violations: &mut Violations) {
    if let ObjectMember::Object(account) = &payment.creditor_account
        && account.bban != TextMember::Absent
        && payment.creditor_agent == TextMember::Absent
    {
        let text = "a creditorAccount with bban needs the BIC of its bank";
        violations.missing(AGENT, text);
    }
}

/// PAY-7: an agent is a BIC.
fn agent(payment: &Payment<'_>, violations: &mut Violations) {
    let code = violations.text(&payment.creditor_agent, AGENT);
    if let Some(Err(text)) = code.map(codes::judge_bic) {
        violations.add(AGENT, text);
    }
}

/// PAY-8, the name.
fn creditor_name(payment: &Payment<'_>, violations: &mut Violations) {
    violations.length(&payment.creditor_name, "creditorName", 1, MAX_NAME);
}

/// PAY-8, the address.
pub(super) fn address(payment: &Payment<'_>, violations: &mut Violations) {
    let address = match &payment.creditor_address {
        ObjectMember::Absent => return,
        ObjectMember::Object(address) => address,
        ObjectMember::Other(kind) => {
            let text = format!("it is {kind}; it must be an object with country");
            return violations.add("creditorAddress", text);
        }
    };
    violations.length(&address.street, "creditorAddress.street", 0, MAX_NAME);
    for (found, path) in [
        (&address.building_number, "creditorAddress.buildingNumber"),
        (&address.postal_code, "creditorAddress.postalCode"),
        (&address.city, "creditorAddress.city"),
    ] {
        violations.text(found, path);
    }
    let code = violations.required(&address.country, COUNTRY, "two capitals, such as NO");
    if let Some(code) = code.filter(|code| !country::is_accepted(code)) {
        violations.add(COUNTRY, unknown_code(code, 2, "a country", "NO"));
    }
}

/// PAY-9.
fn remittance(payment: &Payment<'_>, violations: &mut Violations) {
    let path = "remittanceInformationUnstructured";
    violations.length(&payment.remittance, path, 1, MAX_INFORMATION);
}

/// PAY-10.
fn reporting(payment: &Payment<'_>, violations: &mut Violations) {
    purpose(payment, violations);
    reporting_code(payment, violations);
    reporting_information(payment, violations);
}

pub(super) fn purpose(payment: &Payment<'_>, violations: &mut Violations) {
    code(&payment.purpose, "purposeCode", codes::PURPOSES, violations);
}

pub(super) fn reporting_code(payment: &Payment<'_>, violations: &mut Violations) {
    let found = &payment.reporting_code;
    code(found, REPORTING_CODE, codes::REPORTING, violations);
}

pub(super) fn reporting_information(payment: &Payment<'_>, violations: &mut Violations) {
    let information = &payment.reporting_information;
    violations.length(information, REPORTING_INFORMATION, 0, MAX_INFORMATION);
}

fn code(found: &TextMember<'_>, path: &str, list: &str, violations: &mut Violations) {
    let code = violations.text(found, path);
    if code.is_some_and(|code| !codes::is_one_of(code, list)) {
        violations.add(path, format!("it must be one of: {list}"));
    }
}

/// PAY-11. PAY-10 reports an empty code.
///
/// The gateway does not convert 100 000 NOK to other currencies. The rule leaves the conversion to the core or to a file of rates. The core
/// has the rate for the settlement; a gateway with a different rate would refuse payments that the bank accepts. docs/upstream-contract.md
/// documents this for the core's team.
fn large_transfer(payment: &Payment<'_>, violations: &mut Violations) {
    let ObjectMember::Object(money) = &payment.amount else {
        return;
    };
    let (TextMember::Text(amount), TextMember::Text(currency)) = (&money.amount, &money.currency)
    else {
        return;
    };
    if currency != "NOK" || !Amount::parse(amount).is_ok_and(Amount::is_large) {
        return;
    }
    let text = "missing or empty: a transfer of 100000.00 NOK or more says what it is for";
    if payment.reporting_code == TextMember::Absent {
        violations.add(REPORTING_CODE, text);
        violations.names_missing(REPORTING_CODE);
    }
    match &payment.reporting_information {
        TextMember::Absent => {
            violations.add(REPORTING_INFORMATION, text);
            violations.names_missing(REPORTING_INFORMATION);
        }
        TextMember::Text(found) if found.is_empty() => violations.add(REPORTING_INFORMATION, text),
        TextMember::Text(_) | TextMember::Other(_) => {}
    }
}

/// PAY-12.
pub(super) fn execution_date(payment: &Payment<'_>, today: Date, violations: &mut Violations) {
    let text = match &payment.execution_date {
        TextMember::Absent => return,
        TextMember::Text(text) => match day::parse(text) {
            Some(date) if date < today => {
                format!("it has passed: today is {today} where the bank is")
            }
            Some(_) => return,
            None => day::fault(text),
        },
        TextMember::Other(kind) => format!("it is {kind}; it must be a string such as \"{today}\""),
    };
    violations.add_as(Code::ExecutionDateInvalid, EXECUTION_DATE, text);
}
