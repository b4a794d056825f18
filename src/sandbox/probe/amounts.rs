//! Amounts that the gateway does not judge (PAY-4, PAY-5): those in the parts of a bulk, and those that the core shows.
//!
//! The interface names no members of bulks, so the gateway judges their parts only for a payment product whose members are configured. The
//! amount of a periodic payment stands where that of every payment does, and the gateway judges it; here a periodic payment only makes
//! the core show it. Judgement of an amount is that of the gateway. No amount of an answer is repeated in the report.

use super::created::Created;
use super::report::{ANSWERS as AREA, Check, NAMED};
use super::request::Example;
use super::session::{Outcome, Session, listed};
use super::wire::Answer;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use portvakt_base::clock::Clock;
use portvakt_interface::operations::Schema;
use portvakt_interface::payload::{Ibans, check};
use serde_json::{Map, Value, json};

const NAME: &str = "bulk-amounts";

/// The operation of the payments that may be bulks.
const CREATE: &str = "payment-create";

const AMOUNT: &str = "instructedAmount";

/// Members of a payment that a bulk has once; the others are its part's (docs/tpp/operations.md).
const OF_THE_BULK: [&str; 2] = ["debtorAccount", "requestedExecutionDate"];

/// The parts of a bulk, where `--body` is a single payment.
const PARTS: &str = "payments";

/// Amounts that no currency has, and some that a few have. Those that the part's currency has are left out.
const MALFORMED: [&str; 8] = ["1.2", "1", "1.234567", "1,00", "-1.00", "0.00", "1e2", ""];

/// The time until a periodic payment starts, in seconds.
const MONTH: u64 = 30 * 24 * 3600;

/// A day for rules that look at none.
const ANY_DAY: Date = date(2026, 1, 1);

/// A bulk with right amounts, as `--body` has them.
struct Bulk {
    body: Value,
    /// The member with the parts, and the currency of each part.
    member: String,
    currencies: Vec<String>,
}

/// Whether the core takes a bulk with a malformed amount in a part. A core that takes no bulk at all passes.
pub(super) fn bulk(session: &Session) -> Check {
    let untested = |found: String| Check::new(AREA, NAME, found, true, "");
    show_periodic(session);
    let Some(bulk) = Bulk::of(&session.write) else {
        return untested("not tested: --write makes no payment with an amount".to_owned());
    };
    let right = post(session, "bulk with right amounts", &bulk.body);
    show(session, &right);
    if !right.is_success() {
        return untested(format!("not tested: {right}"));
    }
    let cases = bulk.malformed();
    let count = cases.len();
    let mut taken = Vec::new();
    for (at, amount) in cases {
        let what = format!("bulk with {amount} in {}[{at}]", bulk.member);
        let outcome = post(session, &what, &bulk.with(at, amount));
        show(session, &outcome);
        let status = outcome.answer.as_ref().map(|answer| answer.status);
        if !status.is_ok_and(|status| (400..500).contains(&status)) {
            taken.push(outcome);
        }
    }
    let passed = taken.is_empty();
    taken.truncate(NAMED);
    let found = match passed {
        true => format!("{count} malformed amounts refused"),
        false => listed(&taken),
    };
    let mend = "answer 400 to a bulk with a malformed amount in any of its parts (PAY-4): the gateway judges parts only for a payment \
                product that lists them as a member of the kind payments";
    Check::new(AREA, NAME, found, passed, mend)
}

/// What is wrong with the amounts that an answer shows: the first that is none of the interface's. It may be zero or negative.
pub(super) fn fault(answer: &Answer) -> Option<String> {
    let body: Value = match answer.status {
        200..=299 => serde_json::from_slice(&answer.body).ok()?,
        _ => return None,
    };
    let path = malformed_in("", &body)?;
    Some(format!("{path} is no amount of its currency"))
}

impl Bulk {
    /// `None` where the request makes no payment, or one without an amount.
    fn of(example: &Example) -> Option<Self> {
        let body = payment(example)?;
        let is_bulk = |value: &Value| {
            let parts = value.as_array().filter(|parts| !parts.is_empty());
            parts.is_some_and(|parts| parts.iter().all(|part| part.get(AMOUNT).is_some()))
        };
        let member = body.iter().find(|(_, value)| is_bulk(value));
        if let Some((member, parts)) = member {
            let (member, currencies) = (member.clone(), currencies(parts));
            let body = Value::Object(body);
            return Some(Self {
                body,
                member,
                currencies,
            });
        }
        body.get(AMOUNT)?;
        let is_common = |name: &String| OF_THE_BULK.contains(&name.as_str());
        let (mut bulk, part): (Map<String, Value>, Map<String, Value>) =
            body.into_iter().partition(|(name, _)| is_common(name));
        let parts = json!([part, part]);
        let currencies = currencies(&parts);
        bulk.insert(PARTS.to_owned(), parts);
        Some(Self {
            body: Value::Object(bulk),
            member: PARTS.to_owned(),
            currencies,
        })
    }

    /// Places and malformed amounts: one in each part, and every one in the last part.
    fn malformed(&self) -> Vec<(usize, Value)> {
        let last = self.currencies.len().saturating_sub(1);
        let mut cases = Vec::new();
        for (at, currency) in self.currencies.iter().enumerate() {
            let texts = MALFORMED.into_iter().map(Value::from);
            let amounts = texts.chain([json!(1.2), json!(-1), Value::Null]);
            let wrong = amounts.filter(|amount| !is_amount(amount, currency));
            let most = if at == last { usize::MAX } else { 1 };
            cases.extend(wrong.take(most).map(|amount| (at, amount)));
        }
        cases
    }

    /// The bulk with another amount in a part.
    fn with(&self, at: usize, amount: Value) -> Value {
        let mut body = self.body.clone();
        let part = body
            .get_mut(&self.member)
            .and_then(|parts| parts.get_mut(at));
        let money = part.and_then(|part| part.get_mut(AMOUNT));
        if let Some(money) = money.and_then(Value::as_object_mut) {
            money.insert("amount".to_owned(), amount);
        }
        body
    }
}

/// The body of a request that makes a payment other than a cross-border one, which is never a bulk.
fn payment(example: &Example) -> Option<Map<String, Value>> {
    let is_payment = example.operation == CREATE;
    is_payment
        .then(|| serde_json::from_slice(&example.body).ok())
        .flatten()
}

/// The currencies of parts. An amount without one is malformed in any currency.
fn currencies(parts: &Value) -> Vec<String> {
    let parts = parts.as_array().into_iter().flatten();
    let currencies = parts.map(|part| part.pointer("/instructedAmount/currency"));
    let texts = currencies.map(|currency| currency.and_then(Value::as_str));
    texts
        .map(|text| text.unwrap_or_default().to_owned())
        .collect()
}

/// Sends another body in place of `--body`.
fn post(session: &Session, what: &str, body: &Value) -> Outcome {
    let request = session.gateway.forwarded(&session.write);
    let request = request.with_body(body.to_string().into_bytes());
    session.ask(what, &session.gateway.vouch(request))
}

/// Makes the core show a periodic payment, where `--body` is a single one.
fn show_periodic(session: &Session) {
    let Some(mut body) = payment(&session.write) else {
        return;
    };
    if body.contains_key(AMOUNT) && !body.contains_key("frequency") {
        body.insert("frequency".to_owned(), json!("Monthly"));
        body.insert("startDate".to_owned(), json!(in_a_month().to_string()));
        let made = post(session, "periodic payment", &Value::Object(body));
        show(session, &made);
    }
}

/// Makes the core show what it took. Like every answer, this one is judged in the end.
fn show(session: &Session, made: &Outcome) {
    if let Some(created) = Created::of(&session.write, made) {
        let request = session.gateway.vouched(&created.read());
        let _ = session.ask("GET of the payment", &request);
    }
}

fn in_a_month() -> Date {
    let then = Clock::System.now().unix().saturating_add(MONTH);
    let then = i64::try_from(then).unwrap_or_default();
    let then = jiff::Timestamp::from_second(then).unwrap_or_default();
    then.to_zoned_datetime(TimeZone::UTC).date()
}

/// Whether the gateway would forward a payment of this amount.
fn is_amount(amount: &Value, currency: &str) -> bool {
    let body = json!({AMOUNT: {"amount": amount, "currency": currency}}).to_string();
    check(
        body.as_bytes(),
        Schema::Payment,
        &[],
        ANY_DAY,
        &Ibans::default(),
    )
    .is_ok()
}

/// The path of the first member that is an amount by its place and not by its form.
fn malformed_in(path: &str, value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => {
            let amount = members.get("amount").filter(|amount| !amount.is_object());
            let currency = members.get("currency").and_then(Value::as_str);
            if let (Some(amount), Some(currency)) = (amount, currency)
                && !is_shown_amount(amount, currency)
            {
                return Some(below(path, "amount"));
            }
            let mut members = members.iter();
            members.find_map(|(name, value)| malformed_in(&below(path, name), value))
        }
        Value::Array(entries) => {
            let mut entries = entries.iter().enumerate();
            entries.find_map(|(at, entry)| malformed_in(&format!("{path}[{at}]"), entry))
        }
        _ => None,
    }
}

fn below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// As [`is_amount`], and zero or negative.
fn is_shown_amount(amount: &Value, currency: &str) -> bool {
    let Some(text) = amount.as_str() else {
        return false;
    };
    let plain = text.strip_prefix('-').unwrap_or(text);
    let is_zero = plain.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    // Zero has the form of the least amount.
    let least = plain.strip_suffix('0').filter(|_| is_zero);
    match least {
        Some(rest) => is_amount(&json!(format!("{rest}1")), currency),
        None => is_amount(&json!(plain), currency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(body: &Value) -> Example {
        Example {
            operation: CREATE.to_owned(),
            method: axum::http::Method::POST,
            target: "/v1/payments/norwegian-domestic-credit-transfers".to_owned(),
            body: body.to_string().into_bytes(),
        }
    }

    #[test]
    fn a_single_payment_becomes_a_bulk_of_two() {
        let single = json!({
            "instructedAmount": {"amount": "1.00", "currency": "NOK"},
            "debtorAccount": {"bban": "1"},
            "creditorName": "A",
        });
        let bulk = Bulk::of(&example(&single)).unwrap();
        assert_eq!(bulk.member, "payments");
        assert_eq!(bulk.currencies, ["NOK", "NOK"]);
        assert_eq!(bulk.body["debtorAccount"]["bban"], "1");
        assert_eq!(bulk.body["payments"][1]["creditorName"], "A");
        assert!(bulk.body["payments"][0].get("debtorAccount").is_none());
        let changed = bulk.with(1, json!("1.2"));
        assert_eq!(changed["payments"][1]["instructedAmount"]["amount"], "1.2");
        assert_eq!(changed["payments"][0]["instructedAmount"]["amount"], "1.00");
        for other in [json!({"email": "a@tpp.example"}), json!([7])] {
            assert!(Bulk::of(&example(&other)).is_none(), "{other}");
        }
        let mut contact = example(&single);
        contact.operation = "tpp-contact-write".to_owned();
        assert!(Bulk::of(&contact).is_none());
    }

    #[test]
    fn a_bulk_keeps_its_own_members_and_each_part_is_tried() {
        let part =
            |currency: &str| json!({"instructedAmount": {"amount": "1", "currency": currency}});
        let own = json!({"transfers": [part("JPY"), part("NOK"), part("JPY")], "tags": ["x"]});
        let bulk = Bulk::of(&example(&own)).unwrap();
        assert_eq!(bulk.member, "transfers");
        let cases = bulk.malformed();
        let in_part = |at: usize| cases.iter().filter(move |(part, _)| *part == at);
        assert_eq!(in_part(0).count(), 1);
        assert_eq!(in_part(1).count(), 1);
        // 1 is an amount of yen.
        assert_eq!(in_part(2).count(), MALFORMED.len() + 2);
        assert!(in_part(2).all(|(_, amount)| *amount != "1"));
    }

    #[test]
    fn amounts_that_an_answer_shows() {
        for (amount, currency, passes) in [
            (json!("1.20"), "NOK", true),
            (json!("0.00"), "NOK", true),
            (json!("-0.05"), "NOK", true),
            (json!("0"), "JPY", true),
            (json!("1.2"), "NOK", false),
            (json!("0.0"), "NOK", false),
            (json!("00.00"), "NOK", false),
            (json!("--1.00"), "NOK", false),
            (json!(""), "NOK", false),
            (json!(1.25), "NOK", false),
            (json!("1.00"), "JPY", false),
            (json!("1.00"), "EEK", false),
        ] {
            let shown = json!({"payments": [{"instructedAmount": {"amount": amount, "currency": currency}}]});
            let expected = "payments[0].instructedAmount.amount".to_owned();
            let found = malformed_in("", &shown);
            assert_eq!(found, (!passes).then_some(expected), "{shown}");
        }
        let other = json!({"amount": {"value": 1}, "currency": "NOK"});
        assert_eq!(malformed_in("", &other), None);
    }
}
