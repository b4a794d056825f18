//! The table of §Transaction details: the forms of its members, and the members that the transaction list leaves to the details (SBX-8).
//!
//! Invariant: a value that a TPP gives is judged here before it is stored, so every transaction that is shown keeps the table. A fault
//! names the member and its form, and repeats no value. Deliberately not here: amounts, which need the currencies of the bank.

use super::ledger::{HISTORY_DAYS, first_day};
use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Map, Value};

/// The members that only the details have. §Versioning 3 announces a lighter list and names no member. The interface has one other table
/// of an element of a list, §Sandbox transaction: the list keeps the members that are in both tables, and leaves the others here. It
/// keeps remittanceInformationUnstructuredArray too, which §Versioning 1.21.4 names in the list.
const DETAILS_ONLY: [&str; 7] = [
    "endToEndId",
    "currencyExchange",
    "creditorId",
    "creditorAgent",
    "debtorAgent",
    "proprietaryBankTransactionCode",
    "remittanceInformationStructuredArray",
];

/// The beginning of the names of additional proprietary references, which only the details have too.
const PROPRIETARY: &str = "additionalInformationProprietary";

/// The exchange into the currency of the creditor's account of this bank: a member of stored details, which [`of_side`] puts in the place
/// of `currencyExchange`, or away.
pub(super) const CREDITOR_EXCHANGE: &str = "creditorCurrencyExchange";

/// The texts that a TPP can give, with the fewest and the most characters.
const TEXTS: [(&str, usize, usize); 9] = [
    ("bankTransactionCode", 4, 14),
    ("endToEndId", 0, 35),
    ("creditorName", 0, 70),
    ("ultimateCreditor", 0, 70),
    ("debtorName", 0, 70),
    ("ultimateDebtor", 0, 70),
    ("remittanceInformationUnstructured", 0, 140),
    ("purposeCode", 1, 4),
    // The table gives these no length: that of its other references.
    (PROPRIETARY, 1, 35),
];

/// The texts of a transaction that is made by hand (§Sandbox transaction).
const TEXTS_BY_HAND: [&str; 7] = [
    "remittanceInformationUnstructured",
    "creditorName",
    "debtorName",
    "bankTransactionCode",
    "ultimateDebtor",
    "ultimateCreditor",
    "purposeCode",
];

/// The further members of a transaction that is made by hand.
const BY_HAND: [&str; 7] = [
    "amount",
    "currency",
    "originalAmount",
    "bookingDate",
    "valueDate",
    "creditorAccount",
    "debtorAccount",
];

/// The longest name of a member that a refusal repeats.
const MOST_NAME: usize = 40;

/// The largest distance of a value date from its booking date, in days: a month, for interest that is booked afterwards.
const VALUE_DAYS: i64 = 31;

/// The fault of a text with a character that [`is_processable`] does not know.
pub(super) const UNPROCESSABLE: &str = "It holds a character that the bank's systems cannot process: \
    they take Latin letters, digits and common punctuation.";

/// The most characters of an IBAN and of a BBAN.
const MOST_IBAN: usize = 34;
const MOST_BBAN: usize = 30;

/// A transaction that is made by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByHand {
    /// The booking date.
    pub(super) booked: Date,
    /// The value date.
    pub(super) valued: Date,
    /// The further details.
    pub(super) details: Map<String, Value>,
}

/// Leaves the members that the transaction list has too.
pub(super) fn lighten(shown: &mut Map<String, Value>) {
    shown
        .retain(|name, _| !DETAILS_ONLY.contains(&name.as_str()) && !name.starts_with(PROPRIETARY));
}

/// Stored details, as one of the two sides shows them: the exchange into the currency of the creditor's account is the creditor's alone.
pub(super) fn of_side(mut details: Map<String, Value>, is_creditor: bool) -> Map<String, Value> {
    if let Some(exchange) = details.remove(CREDITOR_EXCHANGE)
        && is_creditor
    {
        details.insert("currencyExchange".to_owned(), exchange);
    }
    details
}

/// The form of a text of the table, if this value does not have it.
pub(super) fn text_fault(name: &str, value: &Value) -> Option<String> {
    let (_, least, most) = TEXTS.iter().find(|(known, _, _)| *known == name)?;
    let length = value.as_str().map(|text| text.chars().count());
    let fits = length.is_some_and(|length| (*least..=*most).contains(&length));
    (!fits).then(|| format!("{least} to {most} characters, as a string."))
}

/// As [`text_fault`], of a text that no order has: the characters of an order are judged as a whole.
pub(super) fn given_text_fault(name: &str, value: &Value) -> Option<String> {
    let is_processable = value.as_str().is_none_or(is_processable);
    text_fault(name, value).or_else(|| (!is_processable).then(|| UNPROCESSABLE.to_owned()))
}

/// Whether the simulated downstream systems can process each character of a text (SBX-11): Latin up to Extended-B, dashes, quotation marks,
/// the ellipsis, the euro, tabs and line breaks.
pub(super) fn is_processable(text: &str) -> bool {
    text.chars().all(|letter| {
        matches!(letter, '\n' | '\r' | '\t' | ' '..='~' | '\u{a0}'..='\u{24f}' | '\u{2010}'..='\u{201f}' | '…' | '€')
    })
}

/// The form of an account's number, if this one does not have it. The kind is `iban` or `bban`.
pub(super) fn number_fault(kind: &str, number: &str) -> Option<&'static str> {
    let is_bban = || (1..=MOST_BBAN).contains(&number.chars().count());
    match kind {
        "iban" if is_iban(number) => None,
        "iban" => Some("ISO 13616: two capitals, two check digits, up to 30 capitals and digits."),
        _ if is_bban() => None,
        _ => Some("1 to 30 characters, as a string."),
    }
}

/// Whether this is an IBAN of any country: its characters, and its check digits by modulo 97 (ISO 13616).
pub(super) fn is_iban(number: &str) -> bool {
    let bytes = number.as_bytes();
    let parts = (bytes.get(..2), bytes.get(2..4), bytes.get(4..));
    let (Some(country), Some(check), Some(account)) = parts else {
        return false;
    };
    let moved = account.iter().chain(country).chain(check);
    let rest = moved.fold(0_u32, |rest, byte| {
        match char::from(*byte).to_digit(36).unwrap_or_default() {
            digit @ 0..10 => (rest * 10 + digit) % 97,
            letter => (rest * 100 + letter) % 97,
        }
    });
    let is_of_account = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    !account.is_empty()
        && bytes.len() <= MOST_IBAN
        && country.iter().all(u8::is_ascii_uppercase)
        && check.iter().all(u8::is_ascii_digit)
        && account.iter().all(is_of_account)
        && rest == 1
}

/// Whether this is a BIC (ISO 9362), also with digits in its first four characters, which the table does not have (PAY-7).
pub(super) fn is_bic(code: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 5 => byte.is_ascii_uppercase(),
        6 => byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'9'),
        7 => byte.is_ascii_digit() || byte.is_ascii_uppercase() && byte != b'O',
        _ => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
    };
    matches!(code.len(), 8 | 11) && code.bytes().enumerate().all(fits)
}

/// The name of a member as a refusal repeats it: a foreign one may be a value.
pub(super) fn named(name: &str) -> &str {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphabetic());
    match is_word && (1..=MOST_NAME).contains(&name.len()) {
        true => name,
        false => "a member",
    }
}

/// Whether a transaction that is made by hand has a member of this name.
pub(super) fn is_by_hand(name: &str) -> bool {
    TEXTS_BY_HAND.contains(&name) || BY_HAND.contains(&name) || name.starts_with(PROPRIETARY)
}

/// A transaction that is made by hand, from the members that [`is_by_hand`] names. Null and an empty text are unknown values, as the list
/// of sandbox transactions writes them. Without a booking date it is booked today; without a value date its
/// booking date is that too (SBX-17).
///
/// # Errors
/// Each member that breaks the table, with its form, such as `purposeCode: 1 to 4 characters, as a string.`
pub(super) fn by_hand(body: &Map<String, Value>, today: Date) -> Result<ByHand, Vec<String>> {
    let mut details = Map::new();
    let mut faults = Vec::new();
    let (booked, valued) = days(body, today, &mut faults);
    for name in TEXTS_BY_HAND {
        let Some(value) = known(body, name) else {
            continue;
        };
        match given_text_fault(name, value) {
            Some(text) => faults.push(format!("{name}: {text}")),
            None => {
                details.insert(name.to_owned(), value.clone());
            }
        }
    }
    for name in ["creditorAccount", "debtorAccount"] {
        if let Some(value) = known(body, name)
            && let Some(account) = account(name, value, &mut faults)
        {
            details.insert(name.to_owned(), Value::Object(account));
        }
    }
    details.extend(proprietary(body, &mut faults));
    match faults.is_empty() {
        true => Ok(ByHand {
            booked,
            valued,
            details,
        }),
        false => Err(faults),
    }
}

/// The booking date and the value date.
fn days(body: &Map<String, Value>, today: Date, faults: &mut Vec<String>) -> (Date, Date) {
    let first = first_day(today);
    let booked = match known(body, "bookingDate").map(|value| day_within(value, first, today)) {
        None => today,
        Some(Some(booked)) => booked,
        Some(None) => {
            faults.push(format!(
                "bookingDate: a date as in {today}, of the last {HISTORY_DAYS} days: from {first} to {today}."
            ));
            // Without a booking date no value date is near it.
            return (today, today);
        }
    };
    let earliest = booked.saturating_sub(VALUE_DAYS.days());
    let latest = booked.saturating_add(VALUE_DAYS.days());
    match known(body, "valueDate").map(|value| day_within(value, earliest, latest)) {
        None => (booked, booked),
        Some(Some(valued)) => (booked, valued),
        Some(None) => {
            faults.push(format!(
                "valueDate: a date as in {booked}, at most {VALUE_DAYS} days from the booking date: from {earliest} to {latest}."
            ));
            (booked, booked)
        }
    }
}

/// A day of this period, in the form of ISO 8601 with hyphens and nothing else.
fn day_within(value: &Value, from: Date, to: Date) -> Option<Date> {
    let text = value.as_str()?;
    let day: Date = text.parse().ok()?;
    // The parser knows more forms, such as 20260302.
    (day.to_string() == text && (from..=to).contains(&day)).then_some(day)
}

/// The additional proprietary references. The interface calls each additionalInformationProprietaryX and does not say what X is: here a
/// digit from 1 to 9.
fn proprietary(body: &Map<String, Value>, faults: &mut Vec<String>) -> Map<String, Value> {
    let mut references = Map::new();
    for (name, value) in body {
        let Some(number) = name.strip_prefix(PROPRIETARY) else {
            continue;
        };
        if !is_known(value) {
            continue;
        }
        if !matches!(number.as_bytes(), [b'1'..=b'9']) {
            faults.push(format!("{PROPRIETARY}X: X is a digit from 1 to 9."));
            continue;
        }
        match given_text_fault(PROPRIETARY, value) {
            Some(text) => faults.push(format!("{name}: {text}")),
            None => {
                references.insert(name.clone(), value.clone());
            }
        }
    }
    references
}

/// An account with its known members, unless both numbers are unknown or a member breaks the table.
fn account(name: &str, value: &Value, faults: &mut Vec<String>) -> Option<Map<String, Value>> {
    let members = value.as_object();
    let Some(members) = members.filter(|all| all.contains_key("iban") || all.contains_key("bban"))
    else {
        faults.push(format!("{name}: an object with an iban or a bban."));
        return None;
    };
    let mut account = Map::new();
    let is_member = |name: &String| ["iban", "bban", "currency"].contains(&name.as_str());
    if let Some(other) = members.keys().find(|name| !is_member(name)) {
        let other = named(other);
        faults.push(format!("{name}.{other}: an account has no such member."));
    }
    for kind in ["iban", "bban", "currency"] {
        let Some(value) = known(members, kind) else {
            continue;
        };
        let fault = match (kind, value.as_str()) {
            (_, None) => Some("a string."),
            ("currency", Some(code)) => currency_fault(code),
            (_, Some(number)) => number_fault(kind, number)
                .or_else(|| (!is_processable(number)).then_some(UNPROCESSABLE)),
        };
        match fault {
            Some(text) => faults.push(format!("{name}.{kind}: {text}")),
            None => {
                account.insert(kind.to_owned(), value.clone());
            }
        }
    }
    let is_numbered = account.contains_key("iban") || account.contains_key("bban");
    is_numbered.then_some(account)
}

/// The form of a currency's code, if this one does not have it.
pub(super) fn currency_fault(code: &str) -> Option<&'static str> {
    let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    (!is_code).then_some("three capitals, such as NOK.")
}

/// A member whose value is known.
fn known<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| is_known(value))
}

fn is_known(value: &Value) -> bool {
    !value.is_null() && value.as_str() != Some("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_of_accounts_hold() {
        for good in [
            "NO9386011117947",
            "DE89370400440532013000",
            // With letters.
            "MT84MALT011000012345MTLCAST001S",
            "GB29NWBK60161331926819",
        ] {
            assert_eq!(number_fault("iban", good), None, "{good}");
        }
        for bad in [
            "",
            "N",
            "NO93",
            "NO9486011117947",
            "no9386011117947",
            "NO93 8601 1117 947",
            "86011117947",
            "NOæ386011117947",
            "DE89370400440532013000DE89370400440532013000",
        ] {
            assert!(number_fault("iban", bad).is_some(), "{bad}");
        }
        assert_eq!(number_fault("bban", &"7".repeat(30)), None);
        for bad in ["", &"7".repeat(31)] {
            assert!(number_fault("bban", bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn codes_of_banks_hold() {
        for good in ["DNBANOKK", "PVSBNO22XXX", "WG11US335AB"] {
            assert!(is_bic(good), "{good}");
        }
        for bad in [
            "",
            "DNBANOK",
            "DNBANOKKXX",
            "dnbanokk",
            "DNBA1OKK",
            "ABCDEF0A",
            "ABCDEFAO",
            "ABCDEFÆA",
            "ABCDEFGH!!!",
        ] {
            assert!(!is_bic(bad), "{bad}");
        }
    }

    #[test]
    fn unknown_values_are_left_out() {
        let body = json!({
            "amount": 1, "creditorName": "", "debtorName": null, "purposeCode": "SALA",
            "creditorAccount": {"iban": "", "bban": ""},
            "debtorAccount": {"iban": "NO9386011117947", "bban": "", "currency": null},
            "bookingDate": "", "valueDate": null, "additionalInformationProprietary1": "",
        });
        let today = jiff::civil::date(2026, 3, 2);
        let made = by_hand(body.as_object().unwrap(), today).unwrap();
        let expected = json!({"purposeCode": "SALA", "debtorAccount": {"iban": "NO9386011117947"}});
        assert_eq!(Value::Object(made.details), expected);
        assert_eq!((made.booked, made.valued), (today, today));
    }
}
