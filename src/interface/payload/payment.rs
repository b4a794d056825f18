//! The members of a payment that the rules read (§Payment creation request); no others are read (PAY-14).

use super::{
    json::{JsonReader, Malformed, ReadMembers},
    value::{ObjectMember, TextMember},
};

/// The members of a payment: no other name may be readable as one of them (PAY-14).
pub(super) const PAYMENT: [&str; 11] = [
    "instructedAmount",
    "creditorName",
    "creditorAgent",
    "creditorAccount",
    "creditorAddress",
    "debtorAccount",
    "remittanceInformationUnstructured",
    "purposeCode",
    "requestedExecutionDate",
    "regulatoryReportingCode",
    "regulatoryReportingInformation",
];

/// The members of an address.
const ADDRESS: [&str; 5] = ["street", "buildingNumber", "postalCode", "city", "country"];

/// The members of an amount and of an account.
const OTHERS: [&str; 4] = ["amount", "currency", "iban", "bban"];

/// Whether the interface has a member of this name in a payment or in a part of it.
pub(super) fn is_known(name: &str) -> bool {
    let all = PAYMENT.iter().chain(&ADDRESS).chain(&OTHERS);
    all.into_iter().any(|known| *known == name)
}

/// The members of a payment that the rules read.
#[derive(Debug, Default)]
pub(super) struct Payment<'a> {
    pub(super) amount: ObjectMember<Money<'a>>,
    pub(super) creditor_name: TextMember<'a>,
    pub(super) creditor_agent: TextMember<'a>,
    pub(super) creditor_account: ObjectMember<Account<'a>>,
    pub(super) creditor_address: ObjectMember<Address<'a>>,
    pub(super) debtor_account: ObjectMember<Account<'a>>,
    pub(super) remittance: TextMember<'a>,
    pub(super) purpose: TextMember<'a>,
    pub(super) execution_date: TextMember<'a>,
    pub(super) reporting_code: TextMember<'a>,
    pub(super) reporting_information: TextMember<'a>,
}

/// §Amount object.
#[derive(Debug, Default)]
pub(super) struct Money<'a> {
    pub(super) amount: TextMember<'a>,
    pub(super) currency: TextMember<'a>,
}

/// §Account reference.
#[derive(Debug, Default)]
pub(super) struct Account<'a> {
    pub(super) iban: TextMember<'a>,
    pub(super) bban: TextMember<'a>,
    pub(super) currency: TextMember<'a>,
}

/// §Address.
#[derive(Debug, Default)]
pub(super) struct Address<'a> {
    pub(super) street: TextMember<'a>,
    pub(super) building_number: TextMember<'a>,
    pub(super) postal_code: TextMember<'a>,
    pub(super) city: TextMember<'a>,
    pub(super) country: TextMember<'a>,
}

impl<'a> ReadMembers<'a> for Payment<'a> {
    fn member(&mut self, name: &str, reader: &mut JsonReader<'a>) -> Result<(), Malformed> {
        let text = match name {
            "creditorName" => &mut self.creditor_name,
            "creditorAgent" => &mut self.creditor_agent,
            "remittanceInformationUnstructured" => &mut self.remittance,
            "purposeCode" => &mut self.purpose,
            "requestedExecutionDate" => &mut self.execution_date,
            "regulatoryReportingCode" => &mut self.reporting_code,
            "regulatoryReportingInformation" => &mut self.reporting_information,
            other => return self.part(other, reader),
        };
        *text = reader.found()?;
        Ok(())
    }
}

impl<'a> Payment<'a> {
    /// Whether a member of the interface is present, with any value.
    pub(super) fn has(&self, name: &str) -> bool {
        let text = match name {
            "instructedAmount" => return !matches!(self.amount, ObjectMember::Absent),
            "creditorAccount" => return !matches!(self.creditor_account, ObjectMember::Absent),
            "debtorAccount" => return !matches!(self.debtor_account, ObjectMember::Absent),
            "creditorAddress" => return !matches!(self.creditor_address, ObjectMember::Absent),
            "creditorName" => &self.creditor_name,
            "creditorAgent" => &self.creditor_agent,
            "remittanceInformationUnstructured" => &self.remittance,
            "purposeCode" => &self.purpose,
            "requestedExecutionDate" => &self.execution_date,
            "regulatoryReportingCode" => &self.reporting_code,
            "regulatoryReportingInformation" => &self.reporting_information,
            _ => return false,
        };
        *text != TextMember::Absent
    }

    fn part(&mut self, name: &str, reader: &mut JsonReader<'a>) -> Result<(), Malformed> {
        match name {
            "instructedAmount" => self.amount = reader.part()?,
            "creditorAccount" => self.creditor_account = reader.part()?,
            "debtorAccount" => self.debtor_account = reader.part()?,
            "creditorAddress" => self.creditor_address = reader.part()?,
            _ => reader.unknown(name, &PAYMENT)?,
        }
        Ok(())
    }
}

impl<'a> ReadMembers<'a> for Money<'a> {
    fn member(&mut self, name: &str, reader: &mut JsonReader<'a>) -> Result<(), Malformed> {
        match name {
            "amount" => self.amount = reader.found()?,
            "currency" => self.currency = reader.found()?,
            _ => reader.unknown(name, &["amount", "currency"])?,
        }
        Ok(())
    }
}

impl<'a> ReadMembers<'a> for Account<'a> {
    fn member(&mut self, name: &str, reader: &mut JsonReader<'a>) -> Result<(), Malformed> {
        match name {
            "iban" => self.iban = reader.found()?,
            "bban" => self.bban = reader.found()?,
            "currency" => self.currency = reader.found()?,
            _ => reader.unknown(name, &["iban", "bban", "currency"])?,
        }
        Ok(())
    }
}

impl<'a> ReadMembers<'a> for Address<'a> {
    fn member(&mut self, name: &str, reader: &mut JsonReader<'a>) -> Result<(), Malformed> {
        match name {
            "street" => self.street = reader.found()?,
            "buildingNumber" => self.building_number = reader.found()?,
            "postalCode" => self.postal_code = reader.found()?,
            "city" => self.city = reader.found()?,
            "country" => self.country = reader.found()?,
            _ => reader.unknown(name, &ADDRESS)?,
        }
        Ok(())
    }
}
