//! Single faults of generated bodies, each with its rule and the path in the answer.

use serde_json::{Value, json};

/// A fault that is inserted into a valid payment.
#[derive(Clone, Copy, Debug)]
pub(in crate::payload) struct Fault {
    pub(in crate::payload) rule: &'static str,
    pub(in crate::payload) name: &'static str,
    pub(in crate::payload) make: fn(&mut Value),
    pub(in crate::payload) path: &'static str,
}

impl Fault {
    /// The faulty member of the payment.
    pub(in crate::payload) fn member(&self) -> &str {
        self.path.split('.').next().unwrap()
    }

    /// Whether the fault changes only the member itself.
    pub(in crate::payload) fn is_of_one_member(&self) -> bool {
        self.rule != "PAY-11" && self.name != "a bban without a BIC"
    }

    /// Faults that JSON Schema cannot express: check digits, and today's date.
    pub(in crate::payload) fn is_unsaid(&self) -> bool {
        self.name.starts_with("a wrong check")
            || ["yesterday", "long ago", "no such day"].contains(&self.name)
    }
}

const fn fault(
    rule: &'static str,
    name: &'static str,
    make: fn(&mut Value),
    path: &'static str,
) -> Fault {
    Fault {
        rule,
        name,
        make,
        path,
    }
}

fn without(object: &mut Value, member: &str) {
    object.as_object_mut().unwrap().shift_remove(member);
}

/// A transfer with its purpose.
fn large(payment: &mut Value, amount: &str) {
    payment["instructedAmount"] = json!({"amount": amount, "currency": "NOK"});
    payment["regulatoryReportingCode"] = json!("14");
    payment["regulatoryReportingInformation"] = json!("x");
}

/// Members that all products share (PAY-14).
#[rustfmt::skip]
pub(in crate::payload) const SHARED: &[Fault] = &[
    fault("PAY-4", "zero", |p| p["instructedAmount"] = json!({"amount": "0.00", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "a minus", |p| p["instructedAmount"] = json!({"amount": "-1.00", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "a plus", |p| p["instructedAmount"] = json!({"amount": "+1.00", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "an exponent", |p| p["instructedAmount"] = json!({"amount": "1e2", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "a leading zero", |p| p["instructedAmount"] = json!({"amount": "01.00", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "a comma", |p| p["instructedAmount"] = json!({"amount": "1,00", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "grouping", |p| p["instructedAmount"] = json!({"amount": "1 000.00", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "no digits", |p| p["instructedAmount"] = json!({"amount": "", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "a point at the end", |p| p["instructedAmount"] = json!({"amount": "1.", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "a point in front", |p| p["instructedAmount"] = json!({"amount": ".50", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "one digit too few", |p| p["instructedAmount"] = json!({"amount": "1.0", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "one digit too many", |p| p["instructedAmount"] = json!({"amount": "1.000", "currency": "EUR"}), "instructedAmount.amount"),
    fault("PAY-4", "no fraction digits", |p| p["instructedAmount"] = json!({"amount": "100", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "fraction digits of a currency without", |p| p["instructedAmount"] = json!({"amount": "1.00", "currency": "JPY"}), "instructedAmount.amount"),
    fault("PAY-4", "two fraction digits of three", |p| p["instructedAmount"] = json!({"amount": "1.00", "currency": "KWD"}), "instructedAmount.amount"),
    fault("PAY-4", "six digits", |p| p["instructedAmount"] = json!({"amount": "0.123456", "currency": "XDR"}), "instructedAmount.amount"),
    fault("PAY-4", "19 digits", |p| p["instructedAmount"] = json!({"amount": "12345678901234567.89", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "19 digits of none", |p| p["instructedAmount"] = json!({"amount": "1234567890123456789", "currency": "JPY"}), "instructedAmount.amount"),
    fault("PAY-4", "not a number", |p| p["instructedAmount"] = json!({"amount": "NaN", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "digits of another script", |p| p["instructedAmount"] = json!({"amount": "１.00", "currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "10 000 digits", |p| p["instructedAmount"]["amount"] = json!("9".repeat(10_000)), "instructedAmount.amount"),
    fault("PAY-4", "a number as amount", |p| p["instructedAmount"]["amount"] = json!(1), "instructedAmount.amount"),
    fault("PAY-4", "null as amount", |p| p["instructedAmount"]["amount"] = json!(null), "instructedAmount.amount"),
    fault("PAY-4", "no amount in it", |p| p["instructedAmount"] = json!({"currency": "NOK"}), "instructedAmount.amount"),
    fault("PAY-4", "a text as money", |p| p["instructedAmount"] = json!("100.00 NOK"), "instructedAmount"),
    fault("PAY-4", "null as money", |p| p["instructedAmount"] = json!(null), "instructedAmount"),
    fault("PAY-5", "a currency of the amount that was", |p| p["instructedAmount"]["currency"] = json!("EEK"), "instructedAmount.currency"),
    fault("PAY-5", "a currency of the amount that is not accepted", |p| p["instructedAmount"]["currency"] = json!("VES"), "instructedAmount.currency"),
    fault("PAY-5", "small letters of the amount", |p| p["instructedAmount"]["currency"] = json!("nok"), "instructedAmount.currency"),
    fault("PAY-5", "a number as currency of the amount", |p| p["instructedAmount"]["currency"] = json!(578), "instructedAmount.currency"),
    fault("PAY-5", "no currency of the amount", |p| without(&mut p["instructedAmount"], "currency"), "instructedAmount.currency"),
    fault("PAY-5", "a currency of the creditor that was", |p| p["creditorAccount"]["currency"] = json!("EEK"), "creditorAccount.currency"),
    fault("PAY-5", "a currency of the creditor that is not accepted", |p| p["creditorAccount"]["currency"] = json!("VES"), "creditorAccount.currency"),
    fault("PAY-5", "small letters of the creditor", |p| p["creditorAccount"]["currency"] = json!("nok"), "creditorAccount.currency"),
    fault("PAY-5", "a number as currency of the creditor", |p| p["creditorAccount"]["currency"] = json!(578), "creditorAccount.currency"),
    fault("PAY-5", "no currency of the creditor", |p| without(&mut p["creditorAccount"], "currency"), "creditorAccount.currency"),
    fault("PAY-5", "a currency of the debtor that was", |p| p["debtorAccount"]["currency"] = json!("EEK"), "debtorAccount.currency"),
    fault("PAY-5", "a currency of the debtor that is not accepted", |p| p["debtorAccount"]["currency"] = json!("VES"), "debtorAccount.currency"),
    fault("PAY-5", "small letters of the debtor", |p| p["debtorAccount"]["currency"] = json!("nok"), "debtorAccount.currency"),
    fault("PAY-5", "a number as currency of the debtor", |p| p["debtorAccount"]["currency"] = json!(578), "debtorAccount.currency"),
    fault("PAY-5", "no currency of the debtor", |p| without(&mut p["debtorAccount"], "currency"), "debtorAccount.currency"),
    fault("PAY-6", "neither of the creditor", |p| p["creditorAccount"] = json!({"currency": "NOK"}), "creditorAccount"),
    fault("PAY-6", "the creditor as text", |p| p["creditorAccount"] = json!("NO9386011117947"), "creditorAccount"),
    fault("PAY-6", "the creditor as array", |p| p["creditorAccount"] = json!([]), "creditorAccount"),
    fault("PAY-6", "a wrong check the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "NO9386011117948", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "one too short the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "NO938601111794", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "one too long the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "NO93860111179471", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "small letters in the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "no9386011117947", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "spaces in the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "NO93 8601 1117 947", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "no country of the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "XX9386011117947", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "a letter among the digits of the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "NO938601111794A", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "only digits in the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "86011117947", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "nothing as the creditor's iban", |p| p["creditorAccount"] = json!({"iban": "", "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "35 characters of the creditor", |p| p["creditorAccount"] = json!({"iban": "NO93".to_owned() + &"8".repeat(31), "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "a number as the creditor's iban", |p| p["creditorAccount"] = json!({"iban": 86011117947_u64, "currency": "NOK"}), "creditorAccount.iban"),
    fault("PAY-6", "neither of the debtor", |p| p["debtorAccount"] = json!({"currency": "NOK"}), "debtorAccount"),
    fault("PAY-6", "the debtor as text", |p| p["debtorAccount"] = json!("NO9386011117947"), "debtorAccount"),
    fault("PAY-6", "the debtor as array", |p| p["debtorAccount"] = json!([]), "debtorAccount"),
    fault("PAY-6", "a wrong check the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "NO9386011117948", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "one too short the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "NO938601111794", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "one too long the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "NO93860111179471", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "small letters in the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "no9386011117947", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "spaces in the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "NO93 8601 1117 947", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "no country of the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "XX9386011117947", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "a letter among the digits of the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "NO938601111794A", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "only digits in the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "86011117947", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "nothing as the debtor's iban", |p| p["debtorAccount"] = json!({"iban": "", "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "35 characters of the debtor", |p| p["debtorAccount"] = json!({"iban": "NO93".to_owned() + &"8".repeat(31), "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "a number as the debtor's iban", |p| p["debtorAccount"] = json!({"iban": 86011117947_u64, "currency": "NOK"}), "debtorAccount.iban"),
    fault("PAY-6", "both numbers", |p| p["debtorAccount"] = json!({"iban": "NO9386011117947", "bban": "86011117947", "currency": "NOK"}), "debtorAccount"),
    fault("PAY-6", "both, one of them null", |p| p["debtorAccount"] = json!({"iban": "NO9386011117947", "bban": null, "currency": "NOK"}), "debtorAccount"),
    fault("PAY-6", "an empty bban", |p| p["debtorAccount"] = json!({"bban": "", "currency": "NOK"}), "debtorAccount.bban"),
    fault("PAY-6", "a number as bban", |p| p["debtorAccount"] = json!({"bban": 86011117947_u64, "currency": "NOK"}), "debtorAccount.bban"),
    fault("PAY-6", "31 characters of bban, ASCII", |p| p["debtorAccount"] = json!({"bban": "x".repeat(31), "currency": "NOK"}), "debtorAccount.bban"),
    fault("PAY-6", "31 characters of bban, two bytes each", |p| p["debtorAccount"] = json!({"bban": "ø".repeat(31), "currency": "NOK"}), "debtorAccount.bban"),
    fault("PAY-6", "31 characters of bban, four bytes each", |p| p["debtorAccount"] = json!({"bban": "😀".repeat(31), "currency": "NOK"}), "debtorAccount.bban"),
    fault("PAY-7", "a short BIC", |p| p["creditorAgent"] = json!("DNBANOK"), "creditorAgent"),
    fault("PAY-7", "a long BIC", |p| p["creditorAgent"] = json!("DNBANOKKX"), "creditorAgent"),
    fault("PAY-7", "small letters in a BIC", |p| p["creditorAgent"] = json!("dnbanokk"), "creditorAgent"),
    fault("PAY-7", "a sign in the bank of a BIC", |p| p["creditorAgent"] = json!("DN-BNOKK"), "creditorAgent"),
    fault("PAY-7", "the letter O in a BIC", |p| p["creditorAgent"] = json!("DNBANOKO"), "creditorAgent"),
    fault("PAY-7", "an empty BIC", |p| p["creditorAgent"] = json!(""), "creditorAgent"),
    fault("PAY-7", "a longer BIC", |p| p["creditorAgent"] = json!("DNBANOKKXXXX"), "creditorAgent"),
    fault("PAY-7", "a number as BIC", |p| p["creditorAgent"] = json!(1), "creditorAgent"),
    fault("PAY-8", "71 characters of name, ASCII", |p| p["creditorName"] = json!("x".repeat(71)), "creditorName"),
    fault("PAY-8", "71 characters of name, two bytes each", |p| p["creditorName"] = json!("ø".repeat(71)), "creditorName"),
    fault("PAY-8", "71 characters of name, four bytes each", |p| p["creditorName"] = json!("😀".repeat(71)), "creditorName"),
    fault("PAY-8", "an empty name", |p| p["creditorName"] = json!(""), "creditorName"),
    fault("PAY-8", "a number as name", |p| p["creditorName"] = json!(7), "creditorName"),
    fault("PAY-8", "null as name", |p| p["creditorName"] = json!(null), "creditorName"),
    fault("PAY-8", "an array as name", |p| p["creditorName"] = json!(["M"]), "creditorName"),
    fault("PAY-9", "141 characters of remittance, ASCII", |p| p["remittanceInformationUnstructured"] = json!("x".repeat(141)), "remittanceInformationUnstructured"),
    fault("PAY-9", "141 characters of remittance, two bytes each", |p| p["remittanceInformationUnstructured"] = json!("ø".repeat(141)), "remittanceInformationUnstructured"),
    fault("PAY-9", "141 characters of remittance, four bytes each", |p| p["remittanceInformationUnstructured"] = json!("😀".repeat(141)), "remittanceInformationUnstructured"),
    fault("PAY-9", "an empty remittance", |p| p["remittanceInformationUnstructured"] = json!(""), "remittanceInformationUnstructured"),
    fault("PAY-9", "a number as remittance", |p| p["remittanceInformationUnstructured"] = json!(7), "remittanceInformationUnstructured"),
    fault("PAY-9", "null as remittance", |p| p["remittanceInformationUnstructured"] = json!(null), "remittanceInformationUnstructured"),
    fault("PAY-9", "an array as remittance", |p| p["remittanceInformationUnstructured"] = json!(["x"]), "remittanceInformationUnstructured"),
];

/// The additional members of cross-border payments.
#[rustfmt::skip]
pub(in crate::payload) const CROSS_BORDER: &[Fault] = &[
    fault("PAY-3", "no instructedAmount", |p| without(p, "instructedAmount"), "instructedAmount"),
    fault("PAY-3", "no creditorName", |p| without(p, "creditorName"), "creditorName"),
    fault("PAY-3", "no creditorAccount", |p| without(p, "creditorAccount"), "creditorAccount"),
    fault("PAY-3", "no debtorAccount", |p| without(p, "debtorAccount"), "debtorAccount"),
    fault("PAY-7", "a bban without a BIC", |p| {
            p["creditorAccount"] = json!({"bban": "1", "currency": "NOK"});
            without(p, "creditorAgent");
        }, "creditorAgent"),
    fault("PAY-8", "no country", |p| p["creditorAddress"] = json!({}), "creditorAddress.country"),
    fault("PAY-8", "an unknown country", |p| p["creditorAddress"] = json!({"country": "XX"}), "creditorAddress.country"),
    fault("PAY-8", "a small country", |p| p["creditorAddress"] = json!({"country": "no"}), "creditorAddress.country"),
    fault("PAY-8", "a long country", |p| p["creditorAddress"] = json!({"country": "NOR"}), "creditorAddress.country"),
    fault("PAY-8", "an empty country", |p| p["creditorAddress"] = json!({"country": ""}), "creditorAddress.country"),
    fault("PAY-8", "null as country", |p| p["creditorAddress"] = json!({"country": null}), "creditorAddress.country"),
    fault("PAY-8", "71 characters of street, ASCII", |p| p["creditorAddress"] = json!({"country": "NO", "street": "x".repeat(71)}), "creditorAddress.street"),
    fault("PAY-8", "71 characters of street, two bytes each", |p| p["creditorAddress"] = json!({"country": "NO", "street": "ø".repeat(71)}), "creditorAddress.street"),
    fault("PAY-8", "71 characters of street, four bytes each", |p| p["creditorAddress"] = json!({"country": "NO", "street": "😀".repeat(71)}), "creditorAddress.street"),
    fault("PAY-8", "a number as street", |p| p["creditorAddress"] = json!({"country": "NO", "street": 7}), "creditorAddress.street"),
    fault("PAY-8", "a number as buildingNumber", |p| p["creditorAddress"] = json!({"country": "NO", "buildingNumber": 7}), "creditorAddress.buildingNumber"),
    fault("PAY-8", "a number as postalCode", |p| p["creditorAddress"] = json!({"country": "NO", "postalCode": 7}), "creditorAddress.postalCode"),
    fault("PAY-8", "a number as city", |p| p["creditorAddress"] = json!({"country": "NO", "city": 7}), "creditorAddress.city"),
    fault("PAY-8", "a text as address", |p| p["creditorAddress"] = json!("Oslo"), "creditorAddress"),
    fault("PAY-8", "null as address", |p| p["creditorAddress"] = json!(null), "creditorAddress"),
    fault("PAY-10", "a stranger as purpose", |p| p["purposeCode"] = json!("GIFT"), "purposeCode"),
    fault("PAY-10", "small letters in the purpose", |p| p["purposeCode"] = json!("invs"), "purposeCode"),
    fault("PAY-10", "an empty purpose", |p| p["purposeCode"] = json!(""), "purposeCode"),
    fault("PAY-10", "two in the purpose", |p| p["purposeCode"] = json!("INVS, SALA"), "purposeCode"),
    fault("PAY-10", "a number as purpose", |p| p["purposeCode"] = json!(7), "purposeCode"),
    fault("PAY-10", "a stranger as report", |p| p["regulatoryReportingCode"] = json!("15"), "regulatoryReportingCode"),
    fault("PAY-10", "a zero before the report", |p| p["regulatoryReportingCode"] = json!("014"), "regulatoryReportingCode"),
    fault("PAY-10", "an empty report", |p| p["regulatoryReportingCode"] = json!(""), "regulatoryReportingCode"),
    fault("PAY-10", "a number as report", |p| p["regulatoryReportingCode"] = json!(14), "regulatoryReportingCode"),
    fault("PAY-10", "141 characters of report, ASCII", |p| p["regulatoryReportingInformation"] = json!("x".repeat(141)), "regulatoryReportingInformation"),
    fault("PAY-10", "141 characters of report, two bytes each", |p| p["regulatoryReportingInformation"] = json!("ø".repeat(141)), "regulatoryReportingInformation"),
    fault("PAY-10", "141 characters of report, four bytes each", |p| p["regulatoryReportingInformation"] = json!("😀".repeat(141)), "regulatoryReportingInformation"),
    fault("PAY-10", "null as what is reported", |p| p["regulatoryReportingInformation"] = json!(null), "regulatoryReportingInformation"),
    fault("PAY-11", "no code of the limit", |p| {
            large(p, "100000.00");
            without(p, "regulatoryReportingCode");
        }, "regulatoryReportingCode"),
    fault("PAY-11", "no words on the limit", |p| {
            large(p, "100000.00");
            without(p, "regulatoryReportingInformation");
        }, "regulatoryReportingInformation"),
    fault("PAY-11", "empty words on the limit", |p| {
            large(p, "100000.00");
            p["regulatoryReportingInformation"] = json!("");
        }, "regulatoryReportingInformation"),
    fault("PAY-11", "no code of the most there can be", |p| {
            large(p, "9999999999999999.99");
            without(p, "regulatoryReportingCode");
        }, "regulatoryReportingCode"),
    fault("PAY-11", "no words on the most there can be", |p| {
            large(p, "9999999999999999.99");
            without(p, "regulatoryReportingInformation");
        }, "regulatoryReportingInformation"),
    fault("PAY-11", "empty words on the most there can be", |p| {
            large(p, "9999999999999999.99");
            p["regulatoryReportingInformation"] = json!("");
        }, "regulatoryReportingInformation"),
    fault("PAY-12", "yesterday", |p| p["requestedExecutionDate"] = json!("2026-01-14"), "requestedExecutionDate"),
    fault("PAY-12", "long ago", |p| p["requestedExecutionDate"] = json!("1999-12-31"), "requestedExecutionDate"),
    fault("PAY-12", "no such day", |p| p["requestedExecutionDate"] = json!("2026-02-30"), "requestedExecutionDate"),
    fault("PAY-12", "no day", |p| p["requestedExecutionDate"] = json!(""), "requestedExecutionDate"),
    fault("PAY-12", "a day with its hour", |p| p["requestedExecutionDate"] = json!("2026-07-01T00:00:00+02:00"), "requestedExecutionDate"),
    fault("PAY-12", "a day in another form", |p| p["requestedExecutionDate"] = json!("01.07.2026"), "requestedExecutionDate"),
    fault("PAY-12", "a day without dashes", |p| p["requestedExecutionDate"] = json!("20260701"), "requestedExecutionDate"),
    fault("PAY-12", "a number as day", |p| p["requestedExecutionDate"] = json!(20260701), "requestedExecutionDate"),
];

/// A function that makes a body faulty, and the path of the fault.
pub(in crate::payload) type Spoilt = (fn(&mut Value), &'static str);

/// Faults of a basket (PAY-13), and their paths.
pub(in crate::payload) fn basket_faults() -> [Spoilt; 12] {
    fn ids(basket: &mut Value) -> &mut Vec<Value> {
        basket["paymentIds"].as_array_mut().unwrap()
    }
    [
        (|b| without(b, "paymentIds"), "paymentIds"),
        (|b| ids(b).clear(), "paymentIds"),
        (
            |b| *ids(b) = (0..11).map(|n| json!(n.to_string())).collect(),
            "paymentIds",
        ),
        (
            |b| *ids(b) = (0..1_000).map(|n| json!(n.to_string())).collect(),
            "paymentIds",
        ),
        (|b| b["paymentIds"] = json!("1"), "paymentIds"),
        (|b| b["paymentIds"] = json!({"0": "1"}), "paymentIds"),
        (|b| b["paymentIds"] = json!(null), "paymentIds"),
        (|b| ids(b)[0] = json!(""), "paymentIds[0]"),
        (|b| ids(b)[0] = json!(7), "paymentIds[0]"),
        (|b| ids(b)[0] = json!(null), "paymentIds[0]"),
        (
            |b| *ids(b) = vec![ids(b)[0].clone(), ids(b)[0].clone()],
            "paymentIds[1]",
        ),
        (|b| *b = json!([b["paymentIds"]]), "$"),
    ]
}

/// A change of the text of a payment, and the reason in the answer.
pub(in crate::payload) type Malformed = (&'static str, fn(&str) -> Vec<u8>, &'static str);

/// Changes that make any payment invalid or ambiguous JSON (PAY-1).
pub(in crate::payload) fn malformed() -> Vec<Malformed> {
    /// Inserts a member in front.
    fn with(body: &str, member: &str) -> Vec<u8> {
        format!("{{{member},{}", &body[1..]).into_bytes()
    }
    fn behind(body: &str, rest: &[u8]) -> Vec<u8> {
        [body.as_bytes(), rest].concat()
    }
    vec![
        (
            "a byte order mark",
            |b| format!("\u{feff}{b}").into_bytes(),
            "byte order mark",
        ),
        ("two values", |b| behind(b, b"{}"), "behind the JSON value"),
        (
            "a comma behind",
            |b| behind(b, b","),
            "behind the JSON value",
        ),
        (
            "a zero behind",
            |b| behind(b, b"\0"),
            "behind the JSON value",
        ),
        (
            "a member twice",
            |b| with(b, r#""x":1,"y":2,"x":3"#),
            "of this name",
        ),
        (
            "a member of the payment twice",
            |b| with(b, r#""unknown":{}"#),
            "of this name",
        ),
        (
            "a member twice, in escapes",
            |b| with(b, r#""\u0075nknown":{}"#),
            "of this name",
        ),
        (
            "a member twice, further in",
            |b| with(b, r#""x":[{"y":1,"y":1}]"#),
            "of this name",
        ),
        (
            "33 levels",
            |b| with(b, &format!("\"x\":{}{}", "[".repeat(32), "]".repeat(32))),
            "32 levels",
        ),
        (
            "half of a pair",
            |b| with(b, r#""x":"\ud83d""#),
            "surrogate pair",
        ),
        (
            "half of a pair in a name",
            |b| with(b, r#""\ude00":1"#),
            "surrogate pair",
        ),
        (
            "a line break in a text",
            |b| with(b, "\"x\":\"a\nb\""),
            "control character",
        ),
        (
            "a leading zero",
            |b| with(b, r#""x":01"#),
            "no leading zero",
        ),
        (
            "a number that is none",
            |b| with(b, r#""x":NaN"#),
            "a JSON value must stand here",
        ),
        (
            "single quotes",
            |b| with(b, "'x':1"),
            "the name of a member",
        ),
        ("a comment", |b| with(b, r#""x":1/**/"#), "a comma or }"),
        (
            "a comma too many",
            |b| with(b, r#""x":[1,]"#),
            "a JSON value must stand here",
        ),
        (
            "Latin-1",
            |b| [b"{\"creditor\":\"B\xe6r\",", &b.as_bytes()[1..]].concat(),
            "not UTF-8",
        ),
        (
            "a surrogate in UTF-8",
            |b| [b"{\"x\":\"\xed\xa0\x80\",", &b.as_bytes()[1..]].concat(),
            "not UTF-8",
        ),
        (
            "no end",
            |b| b.as_bytes()[..b.len() - 1].to_vec(),
            "a comma or }",
        ),
    ]
}
