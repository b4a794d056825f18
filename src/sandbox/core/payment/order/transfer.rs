//! One transfer of an order: amount, creditor, reference, and fee.

use super::super::super::bank::{Bank, BankFault};
use super::super::super::customer::Account;
use super::super::super::details::{CREDITOR_EXCHANGE, is_bic, is_iban, text_fault};
use super::super::super::kid;
use super::super::super::money::{self, BIC, MOST, NOK, iban};
use super::super::{CROSS_BORDER, INSTANT, Part};
use super::members::{Members, Violation};
use super::{is_norwegian, received, takes_currency};
use serde_json::{Map, Value, json};

/// The amount from which a transfer abroad needs reporting data (PAY-11), in øre.
const REPORTED: i64 = 10_000_000;

/// Members of an order that its transaction shows, by their names there. creditorName has a rule of its own.
const SHOWN: [(&str, &str); 3] = [
    ("endToEndIdentification", "endToEndId"),
    (
        "remittanceInformationUnstructured",
        "remittanceInformationUnstructured",
    ),
    ("purposeCode", "purposeCode"),
];

impl Bank {
    /// Reads a transfer; `None` after reporting its violations.
    pub(super) fn transfer(
        &self,
        product: &str,
        debtor: &Account,
        members: &mut Members<'_>,
    ) -> Result<Option<Part>, BankFault> {
        let amount = self.amount(product, members);
        let name = members.text("creditorName").map(str::to_owned);
        if !name
            .as_ref()
            .is_some_and(|name| (1..=70).contains(&name.chars().count()))
        {
            members.refuse("creditorName", "1 to 70 characters.");
        }
        let creditor = members.account("creditorAccount");
        check_forms(members);
        let (Some((amount, currency)), Some(name), Some((number, named))) =
            (amount, name, creditor)
        else {
            return Ok(None);
        };
        let bban = money::bban_of(&number).unwrap_or(&number);
        if is_norwegian(product) && !money::is_bban(bban) {
            members.refuse(
                "creditorAccount",
                "This product takes account numbers of Norway.",
            );
            return Ok(None);
        }
        let account = match is_abroad(members, &number) {
            true => None,
            false => self.account_of_number(bban)?,
        };
        check_creditor(members, account.as_ref(), debtor, named.as_deref());
        check_reference(members, account.as_ref());
        let booked = |to: &str| {
            let sum = self.rates.convert(amount, &currency, to)?;
            (sum <= MOST).then_some(sum.max(1))
        };
        let debit = booked(&debtor.currency);
        let fee = debit.and_then(|debit| self.fee(product, &currency, (debit, &debtor.currency)));
        let credit = match &account {
            Some(account) => booked(&account.currency),
            None => Some(0),
        };
        let (Some(debit), Some(fee), Some(credit)) = (debit, fee, credit) else {
            members.refuse(
                "instructedAmount.amount",
                "The amount is more than the bank books.",
            );
            return Ok(None);
        };
        let mut part = Part {
            debit,
            fee,
            credit,
            ..received(amount, &currency)
        };
        let worth = self.rates.convert(amount, &currency, NOK);
        if product == CROSS_BORDER && worth.is_none_or(|worth| worth >= REPORTED) {
            check_reporting(members);
        }
        let shown = match &account {
            Some(account) => account_reference(&account.bban, Some(&account.currency)),
            None => creditor_elsewhere(members, &number, named.as_deref()),
        };
        part.details = self.details(product, debtor, &part, (&name, shown), members);
        if let Some(account) = account
            .as_ref()
            .filter(|account| account.currency != currency)
        {
            let exchange = self.exchange(&account.currency, &currency);
            part.details.insert(CREDITOR_EXCHANGE.to_owned(), exchange);
        }
        part.creditor = account.map(|account| account.id);
        Ok(Some(part))
    }

    fn amount(&self, product: &str, members: &mut Members<'_>) -> Option<(i64, String)> {
        let Some(written) = members.get("instructedAmount").and_then(Value::as_object) else {
            let text = "Required: an amount and its currency, as in {\"amount\": \"75.00\", \"currency\": \"NOK\"}.";
            members.refuse("instructedAmount", text);
            return None;
        };
        let text = |name: &str| written.get(name)?.as_str();
        let Some(currency) = text("currency") else {
            let text = "Required: three letters, such as NOK.";
            members.refuse("instructedAmount.currency", text);
            return None;
        };
        let Some(digits) = self.rates.digits(currency) else {
            let text = "The bank has no rate for this currency.";
            members.refuse("instructedAmount.currency", text);
            return None;
        };
        if !takes_currency(product, currency) {
            members.refuse("instructedAmount.currency", "This product takes NOK only.");
            return None;
        }
        let amount = text("amount").and_then(|amount| self.rates.read(amount, currency));
        let amount = amount.filter(|amount| *amount > 0);
        if amount.is_none() {
            let most = money::written(MOST, digits);
            let text = format!("A positive decimal with {digits} fraction digits, at most {most}.");
            members.refuse("instructedAmount.amount", &text);
        }
        amount.map(|amount| (amount, currency.to_owned()))
    }

    /// The transaction details.
    fn details(
        &self,
        product: &str,
        debtor: &Account,
        part: &Part,
        creditor: (&str, Value),
        members: &Members<'_>,
    ) -> Map<String, Value> {
        let code = match product {
            CROSS_BORDER => "PMNT-ICDT-XBCT",
            INSTANT => "PMNT-IRCT-DMCT",
            _ => "PMNT-ICDT-DMCT",
        };
        let (name, account) = creditor;
        let holder = self.customer_by_id(&debtor.customer);
        let mut details = Map::new();
        let mut say = |name: &str, value: Value| {
            if !value.is_null() {
                details.insert(name.to_owned(), value);
            }
        };
        say("bankTransactionCode", json!(code));
        // An empty text is an unknown value.
        let text = |name: &str| members.text(name).filter(|text| !text.is_empty());
        say("endToEndId", json!(text("endToEndIdentification")));
        if part.currency != debtor.currency {
            say(
                "currencyExchange",
                self.exchange(&part.currency, &debtor.currency),
            );
        }
        say("creditorName", json!(name));
        say("creditorAccount", account);
        // PAY-7: the interface's details show letters only at the beginning of a BIC.
        let agent = members.text("creditorAgent");
        let is_shown = |code: &&str| code.bytes().take(6).all(|byte| byte.is_ascii_uppercase());
        say("creditorAgent", json!(agent.filter(is_shown)));
        say("debtorName", json!(holder.ok().map(|holder| holder.name)));
        say(
            "debtorAccount",
            account_reference(&debtor.bban, Some(&debtor.currency)),
        );
        say("debtorAgent", json!(BIC));
        let message = text("remittanceInformationUnstructured");
        say("remittanceInformationUnstructured", json!(message));
        say(
            "remittanceInformationUnstructuredArray",
            json!(message.map(|message| [message])),
        );
        say("purposeCode", json!(text("purposeCode")));
        if let Some(reference) = reference(members) {
            let entry = json!({"reference": reference, "referenceType": "KID"});
            say("remittanceInformationStructuredArray", json!([entry]));
        }
        details
    }

    /// The exchange of a payment from a source currency into a target currency.
    fn exchange(&self, target: &str, source: &str) -> Value {
        let (unit, rate) = self.rates.quote(target, source).unzip();
        json!({
            "sourceCurrency": source,
            "exchangeRate": rate,
            "unitCurrency": unit,
            "targetCurrency": target,
            "quotationDate": self.rates.quoted.to_string(),
        })
    }
}

/// The creditor's account of this bank is not the debtor's, and has the currency that the order names.
fn check_creditor(
    members: &mut Members<'_>,
    creditor: Option<&Account>,
    debtor: &Account,
    currency: Option<&str>,
) {
    let Some(creditor) = creditor else {
        return;
    };
    if creditor.id == debtor.id {
        members.refuse("creditorAccount", "The account would pay itself.");
    }
    if currency.is_some_and(|currency| currency != creditor.currency) {
        let text = "The account has another currency.";
        members.refuse("creditorAccount.currency", text);
    }
}

/// SBX-8: what the transaction shows of the order keeps the table of its details.
fn check_forms(members: &mut Members<'_>) {
    for (name, shown) in SHOWN {
        if let Some(fault) = given(members, name).and_then(|value| text_fault(shown, value)) {
            members.refuse(name, &fault);
        }
    }
    let agent = given(members, "creditorAgent");
    if agent.is_some_and(|agent| !agent.as_str().is_some_and(is_bic)) {
        members.refuse("creditorAgent", "A BIC has 8 or 11 capitals and digits.");
    }
}

/// The members that may have the payment reference: a string, or structured remittance information as in the Berlin Group framework.
const REFERENCES: [&str; 2] = [
    "remittanceInformationStructured",
    "remittanceInformationStructuredArray",
];

/// The payment reference.
fn reference<'a>(members: &Members<'a>) -> Option<&'a str> {
    let [one, several] = REFERENCES.map(|name| given(members, name));
    let written = one.or_else(|| several?.get(0))?;
    read_reference(written)
}

/// The payment reference in structured remittance information.
fn read_reference(written: &Value) -> Option<&str> {
    written
        .as_str()
        .or_else(|| written.get("reference")?.as_str())
}

/// A member that is given, and not null.
fn given<'a>(members: &Members<'a>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

/// Refuses a reference in a form that [`reference`] does not read, which would be lost. Returns whether there is none.
fn check_readable(members: &mut Members<'_>) -> bool {
    let [one, several] = REFERENCES;
    if given(members, one).is_some_and(|written| read_reference(written).is_none()) {
        members.refuse(one, "A string, or an object with reference as a string.");
        return false;
    }
    let is_readable = |written: &Value| {
        let entries = written.as_array();
        entries.is_some_and(|entries| entries.iter().all(|one| read_reference(one).is_some()))
    };
    let entries = given(members, several).and_then(Value::as_array);
    let count = entries.map_or(0, Vec::len);
    if count > 1 || count > 0 && given(members, one).is_some() {
        members.refuse(several, "A payment has one reference: name one of them.");
        return false;
    }
    if given(members, several).is_some_and(|written| !is_readable(written)) {
        let text = "A list of strings, or of objects with reference as a string.";
        members.refuse(several, text);
        return false;
    }
    true
}

/// SBX-12: a KID is required if the creditor needs one, and every KID must be valid.
fn check_reference(members: &mut Members<'_>, creditor: Option<&Account>) {
    if !check_readable(members) {
        return;
    }
    let needed = creditor.and_then(|account| account.kid);
    let (code, text) = match (reference(members), needed) {
        (None, Some(modulus)) => {
            let text = format!("The creditor needs a KID ({}).", modulus.name());
            ("KID_MISSING", text)
        }
        (Some(kid), Some(modulus)) if !modulus.holds(kid) => (
            "KID_INVALID",
            format!(
                "2 to 25 digits, the last the check digit by {}.",
                modulus.name()
            ),
        ),
        (Some(kid), None) if !kid::holds(kid) => (
            "KID_INVALID",
            "2 to 25 digits, the last a check digit by MOD10 or MOD11.".to_owned(),
        ),
        _ => return,
    };
    members.say(Violation {
        status: 400,
        code,
        path: "remittanceInformationStructured".into(),
        text,
    });
}

/// The gateway checks this for amounts in NOK; the core converts other currencies (PAY-11).
fn check_reporting(members: &mut Members<'_>) {
    for name in ["regulatoryReportingCode", "regulatoryReportingInformation"] {
        if members.text(name).is_none_or(str::is_empty) {
            members.refuse(name, "Required: this is worth 100 000 NOK or more.");
        }
    }
}

/// Whether the creditor's account is at a bank abroad, where the digits of a Norwegian account may be another one's. An IBAN says itself
/// where it is.
fn is_abroad(members: &Members<'_>, number: &str) -> bool {
    let agent = members.text("creditorAgent");
    let country = agent.and_then(|agent| agent.get(4..6));
    money::bban_of(number).is_none() && country.is_some_and(|country| country != "NO")
}

/// The creditor's account at another bank, in the currency that the order names for it.
fn creditor_elsewhere(members: &Members<'_>, number: &str, currency: Option<&str>) -> Value {
    match is_abroad(members, number) {
        true => foreign_reference(number, currency),
        false => account_reference(number, currency),
    }
}

/// An account as the interface refers to it, in its own currency, where that is known: an amount may be in another one.
fn account_reference(number: &str, currency: Option<&str>) -> Value {
    let bban = money::bban_of(number).unwrap_or(number);
    if !money::is_bban(bban) {
        return foreign_reference(number, currency);
    }
    let mut account = foreign_reference(bban, currency);
    if let Some(account) = account.as_object_mut() {
        account.insert("iban".into(), json!(iban(bban)));
    }
    account
}

/// As [`account_reference`], of an account abroad, where the digits of a BBAN make no IBAN of Norway.
fn foreign_reference(number: &str, currency: Option<&str>) -> Value {
    let kind = if is_iban(number) { "iban" } else { "bban" };
    let mut account = json!({kind: number});
    if let (Some(account), Some(currency)) = (account.as_object_mut(), currency) {
        account.insert("currency".into(), json!(currency));
    }
    account
}
