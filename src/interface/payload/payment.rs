//! What is read of a payment (§Payment creation request), and nothing else of it (PAY-14).

use super::{
    json::{Malformed, Members, Reader},
    value::{Found, Part},
};

/// The members of a payment: no other may be read as one of them (PAY-14).
const PAYMENT: [&str; 11] = [
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

/// A payment, as far as rules look at it.
#[derive(Debug, Default)]
pub(super) struct Payment<'a> {
    pub(super) amount: Part<Money<'a>>,
    pub(super) creditor_name: Found<'a>,
    pub(super) creditor_agent: Found<'a>,
    pub(super) creditor_account: Part<Account<'a>>,
    pub(super) creditor_address: Part<Address<'a>>,
    pub(super) debtor_account: Part<Account<'a>>,
    pub(super) remittance: Found<'a>,
    pub(super) purpose: Found<'a>,
    pub(super) execution_date: Found<'a>,
    pub(super) reporting_code: Found<'a>,
    pub(super) reporting_information: Found<'a>,
}

/// §Amount object.
#[derive(Debug, Default)]
pub(super) struct Money<'a> {
    pub(super) amount: Found<'a>,
    pub(super) currency: Found<'a>,
}

/// §Account reference.
#[derive(Debug, Default)]
pub(super) struct Account<'a> {
    pub(super) iban: Found<'a>,
    pub(super) bban: Found<'a>,
    pub(super) currency: Found<'a>,
}

/// §Address.
#[derive(Debug, Default)]
pub(super) struct Address<'a> {
    pub(super) street: Found<'a>,
    pub(super) building_number: Found<'a>,
    pub(super) postal_code: Found<'a>,
    pub(super) city: Found<'a>,
    pub(super) country: Found<'a>,
}

impl<'a> Members<'a> for Payment<'a> {
    fn member(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<(), Malformed> {
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
    fn part(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<(), Malformed> {
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

impl<'a> Members<'a> for Money<'a> {
    fn member(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<(), Malformed> {
        match name {
            "amount" => self.amount = reader.found()?,
            "currency" => self.currency = reader.found()?,
            _ => reader.unknown(name, &["amount", "currency"])?,
        }
        Ok(())
    }
}

impl<'a> Members<'a> for Account<'a> {
    fn member(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<(), Malformed> {
        match name {
            "iban" => self.iban = reader.found()?,
            "bban" => self.bban = reader.found()?,
            "currency" => self.currency = reader.found()?,
            _ => reader.unknown(name, &["iban", "bban", "currency"])?,
        }
        Ok(())
    }
}

impl<'a> Members<'a> for Address<'a> {
    fn member(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<(), Malformed> {
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
