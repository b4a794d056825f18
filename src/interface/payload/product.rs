//! Payments of a product that a deployment configures: the interface's members by the interface's rules, and the product's own members.
//!
//! The rules for the members that all payments share always hold (PAY-14). A further member of the interface is judged where the product
//! lists it. The names of own members are protected like those of the interface.

use super::{
    iban::Ibans,
    json::{JsonReader, Malformed, ReadMembers},
    payment::{Account, Money, PAYMENT, Payment},
    rules::{self, AccountPaths, MoneyPaths},
    value::{JsonKind, ObjectMember, TextMember},
    violation::Violations,
};
use crate::{
    day, fold,
    operations::{Member, MemberKind},
};
use jiff::civil::Date;

/// From this number of violations in the entries of a bulk, no further entry is judged, which bounds the length of the answer.
const MANY: usize = 16;

/// The member of the interface that a name is, or that some servers read it as (PAY-14).
pub fn interface_member(name: &str) -> Option<&'static str> {
    let mut known = PAYMENT.into_iter();
    known.find(|known| fold::reads_as(name, known))
}

/// A payment, with the members that the product adds, in the order of its list.
pub(super) struct ProductPayment<'a> {
    payment: Payment<'a>,
    own: Vec<OwnMember<'a>>,
}

/// The value of a member that the product adds.
enum OwnMember<'a> {
    Absent,
    Text(TextMember<'a>),
    Boolean(JsonKind),
    Amount(ObjectMember<Money<'a>>),
    Account(ObjectMember<Account<'a>>),
    /// The number of payments, and their violations.
    Payments(usize, Violations),
    /// A value that is no array of payments.
    NoPayments(JsonKind),
}

impl<'a> ProductPayment<'a> {
    /// Reads a body, and keeps only an object.
    pub(super) fn read(
        reader: &mut JsonReader<'a>,
        members: &'a [Member],
        ibans: &Ibans,
    ) -> Result<ObjectMember<Self>, Malformed> {
        if reader.peek() != Some(b'{') {
            return reader.skip().map(ObjectMember::Other);
        }
        let mut payment = Payment::default();
        let mut own: Vec<_> = members.iter().map(|_| OwnMember::Absent).collect();
        reader.object(|name, reader| {
            let mut places = members.iter().zip(&mut own);
            let is_own = |member: &Member| member.kind != MemberKind::Interface;
            match places.find(|(member, _)| is_own(member) && member.name == name) {
                Some((member, place)) => *place = OwnMember::read(reader, member, ibans)?,
                None => {
                    let own = members.iter().filter(|member| is_own(member));
                    reader.look_at_name(name, own.map(|member| member.name.as_str()));
                    payment.member(name, reader)?;
                }
            }
            Ok(())
        })?;
        Ok(ObjectMember::Object(Self { payment, own }))
    }

    /// Checks a payment whose product has the general shape: what is required, the rules of the interface in their order, the own members.
    pub(super) fn judge(&self, members: &[Member], today: Date, violations: &mut Violations) {
        self.required(members, violations);
        rules::other_product(&self.payment, violations);
        let listed = |name: &str| members.iter().any(|member| member.name == name);
        type Rule = fn(&Payment<'_>, &mut Violations);
        let further: [(&str, Rule); 4] = [
            ("creditorAddress", rules::address),
            ("purposeCode", rules::purpose),
            ("regulatoryReportingCode", rules::reporting_code),
            (
                "regulatoryReportingInformation",
                rules::reporting_information,
            ),
        ];
        for (_, rule) in further.iter().filter(|(name, _)| listed(name)) {
            rule(&self.payment, violations);
        }
        if listed("requestedExecutionDate") {
            rules::execution_date(&self.payment, today, violations);
        }
        self.own(members, violations);
    }

    /// Checks a payment whose product has the shape of a cross-border payment.
    pub(super) fn judge_cross_border(
        &self,
        members: &[Member],
        today: Date,
        violations: &mut Violations,
    ) {
        self.required(members, violations);
        rules::cross_border(&self.payment, today, violations);
        self.own(members, violations);
    }

    fn required(&self, members: &[Member], violations: &mut Violations) {
        for (member, found) in members.iter().zip(&self.own) {
            let is_present = match member.kind {
                MemberKind::Interface => self.payment.has(&member.name),
                _ => !matches!(found, OwnMember::Absent),
            };
            if member.required && !is_present {
                violations.missing(&member.name, "every payment of this product has it");
            }
        }
    }

    fn own(&self, members: &[Member], violations: &mut Violations) {
        for (member, found) in members.iter().zip(&self.own) {
            found.judge(member, violations);
        }
    }
}

impl<'a> OwnMember<'a> {
    fn read(
        reader: &mut JsonReader<'a>,
        member: &Member,
        ibans: &Ibans,
    ) -> Result<Self, Malformed> {
        Ok(match member.kind {
            MemberKind::Interface => Self::Absent,
            MemberKind::Text { .. } | MemberKind::Date => Self::Text(reader.found()?),
            MemberKind::Boolean => Self::Boolean(reader.skip()?),
            MemberKind::Amount => Self::Amount(reader.part()?),
            MemberKind::Account => Self::Account(reader.part()?),
            MemberKind::Payments => return Self::read_payments(reader, &member.name, ibans),
        })
    }

    /// Reads and judges one payment after the other, so that only their violations are kept.
    fn read_payments(
        reader: &mut JsonReader<'a>,
        name: &str,
        ibans: &Ibans,
    ) -> Result<Self, Malformed> {
        if reader.peek() != Some(b'[') {
            return reader.skip().map(Self::NoPayments);
        }
        let (mut count, mut violations) = (0, Violations::new(ibans.clone()));
        reader.array(|index, reader| {
            count = index.saturating_add(1);
            let path = format!("{name}[{index}]");
            match reader.part()? {
                _ if violations.count() >= MANY => {}
                ObjectMember::Object(payment) => {
                    let judge = |found: &mut Violations| rules::other_product(&payment, found);
                    violations.extend(Violations::of_element(path, ibans, judge));
                }
                ObjectMember::Other(kind) => {
                    violations.add(path, format!("it is {kind}; it must be an object"));
                }
                ObjectMember::Absent => {}
            }
            Ok(())
        })?;
        Ok(Self::Payments(count, violations))
    }

    fn judge(&self, member: &Member, violations: &mut Violations) {
        let name = member.name.as_str();
        let below = |part: &str| format!("{name}.{part}");
        match self {
            Self::Absent | Self::Boolean(JsonKind::Boolean) => {}
            Self::Text(found) => text(found, member, violations),
            Self::Boolean(kind) => {
                violations.add(name, format!("it is {kind}; it must be true or false"));
            }
            Self::Amount(found) => {
                let (amount, currency) = (below("amount"), below("currency"));
                let paths = MoneyPaths {
                    money: name,
                    amount: &amount,
                    currency: &currency,
                };
                rules::money(found, &paths, violations);
                if let ObjectMember::Object(money) = found {
                    rules::currency(&money.currency, &currency, violations);
                }
            }
            Self::Account(found) => {
                let (iban, bban, currency) = (below("iban"), below("bban"), below("currency"));
                let paths = AccountPaths {
                    account: name,
                    iban: &iban,
                    bban: &bban,
                    currency: &currency,
                };
                rules::account(found, &paths, violations);
                if let ObjectMember::Object(account) = found {
                    rules::currency(&account.currency, &currency, violations);
                }
            }
            Self::Payments(0, _) => {
                violations.add(name, "it is empty; at least one payment stands in it")
            }
            Self::Payments(_, found) => violations.extend(found.clone()),
            Self::NoPayments(kind) => {
                violations.add(
                    name,
                    format!("it is {kind}; it must be an array of payments"),
                );
            }
        }
    }
}

fn text(found: &TextMember<'_>, member: &Member, violations: &mut Violations) {
    let name = member.name.as_str();
    match &member.kind {
        MemberKind::Text {
            least,
            most,
            one_of,
        } if one_of.is_empty() => {
            violations.length(found, name, *least, *most);
        }
        MemberKind::Text { one_of, .. } => {
            let value = violations.text(found, name);
            if value.is_some_and(|value| one_of.iter().all(|known| known != value)) {
                violations.add(name, format!("it must be one of: {}", one_of.join(", ")));
            }
        }
        _ => {
            let value = violations.text(found, name);
            if let Some(value) = value.filter(|value| day::parse(value).is_none()) {
                violations.add(name, day::fault(value));
            }
        }
    }
}
