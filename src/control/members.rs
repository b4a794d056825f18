//! Reads a JSON object member by member.
//!
//! As for a configuration file, all faults are reported at once, and an unknown member is a fault: a misspelled
//! `psu_corporate_id` must not complete an SCA for a private person. A duplicate member at any depth is a fault too, because
//! parsers differ in the value they take. A `null` counts as an absent member. Invariant: a fault names the member, and repeats
//! no value.

mod once;

use super::fault::{ApiFault, MemberFault};
use crate::{
    clock::Timestamp,
    interface::{
        ForbiddenTpp, PermittedTpp,
        headers::{CorporateId, PsuId},
        path::AccountIds,
    },
    state::{CustomerKey, Known},
};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

/// The most characters of an unknown member's name that a fault repeats.
const MAX_NAME: usize = 64;

/// The unread members of an object, and the faults of those read.
#[derive(Debug)]
pub(super) struct Members {
    left: Map<String, Value>,
    faults: Vec<MemberFault>,
}

impl Members {
    /// Parses an object.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ApiFault> {
        match once::parse(bytes) {
            Ok((Value::Object(left), doubled)) => Ok(Self {
                left,
                faults: doubled
                    .into_iter()
                    .map(|member| MemberFault {
                        member,
                        text: "it stands more than once".to_owned(),
                    })
                    .collect(),
            }),
            Ok(_) => Err(ApiFault::NotJson("The body must be one JSON object.")),
            Err(_) => Err(ApiFault::NotJson("The body is not JSON in UTF-8.")),
        }
    }

    /// Reads a required member. `expected` completes "it must be …".
    pub(super) fn required<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        match self.take(name) {
            Some(value) => self.read(name, expected, &value, read),
            None => {
                self.fault(name, format!("it is missing; it must be {expected}"));
                None
            }
        }
    }

    /// Reads an optional member.
    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        self.read(name, expected, &value, read)
    }

    /// Whether an unread member of this name is present.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|value| !value.is_null())
    }

    /// Reports a member that this form of the call does not have.
    pub(super) fn exclude(&mut self, name: &str, text: &str) {
        if self.take(name).is_some() {
            self.fault(name, text);
        }
    }

    /// Reports a faulty member.
    pub(super) fn fault(&mut self, name: &str, text: impl Into<String>) {
        self.faults.push(MemberFault {
            member: name.to_owned(),
            text: text.into(),
        });
    }

    /// Returns all faults, with one for every unread member; `Ok` if there are none.
    pub(super) fn finish(&mut self) -> Result<(), ApiFault> {
        let unknown = std::mem::take(&mut self.left).into_iter();
        let unknown = unknown.map(|(name, _)| MemberFault {
            member: name.chars().take(MAX_NAME).collect(),
            text: "this call has no such member".to_owned(),
        });
        self.faults.extend(unknown);
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(ApiFault::Members(std::mem::take(&mut self.faults)))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        value: &Value,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let read = read(value);
        if read.is_none() {
            self.fault(name, format!("it must be {expected}"));
        }
        read
    }
}

/// The form of a UUID, for faults.
pub(super) const UUID: &str = "a UUID with its hyphens";
/// The form of a TPP's identity, for faults.
pub(super) const TPP: &str = "a TPP's identity, such as PSDNO-FSA-123456";
/// The form of a time, for faults.
pub(super) const MOMENT: &str = "a moment that is not in the future, such as 2027-01-31T12:00:00Z";
/// The form of account ids, for faults.
pub(super) const ACCOUNTS: &str = "a list of account ids, at least one, each of 1 to 128 characters of bank.account_ids; for all accounts leave it out";

/// The form of the bank's own key for its customer, for faults.
pub(super) const CUSTOMER: &str = "the bank's own key for its customer: text of 1 to 128 characters, without control characters, and without a space at either end";

/// The bank's own key for its customer (CTL-1).
pub(super) fn customer(value: &Value) -> Option<CustomerKey> {
    CustomerKey::parse(value.as_str()?)
}

/// A PSU-ID (HDR-9), by the bank's word.
pub(super) fn psu(value: &Value) -> Option<Known<PsuId>> {
    PsuId::parse(value.as_str()?.as_bytes()).map(Known::by_bank)
}

/// A PSU-Corporate-ID (HDR-9), by the bank's word.
pub(super) fn corporate(value: &Value) -> Option<Known<CorporateId>> {
    CorporateId::parse(value.as_str()?.as_bytes()).map(Known::by_bank)
}

/// A TPP that a call permits something, or reads about: exactly this one (CRT-4, FWD-6).
pub(super) fn permitted_tpp(value: &Value) -> Option<PermittedTpp> {
    PermittedTpp::parse(value.as_str()?)
}

/// A TPP that a call takes something from, in every spelling of its identity (FWD-6).
pub(super) fn forbidden_tpp(value: &Value) -> Option<ForbiddenTpp> {
    ForbiddenTpp::parse(value.as_str()?)
}

/// Text of a length in characters.
pub(super) fn text(value: &Value, most: usize) -> Option<String> {
    let text = value.as_str()?;
    (1..=most)
        .contains(&text.chars().count())
        .then(|| text.to_owned())
}

/// A time (RFC 3339), truncated to the whole second, not after `now`.
pub(super) fn moment(value: &Value, now: Timestamp) -> Option<Timestamp> {
    time(value).filter(|moment| *moment <= now)
}

/// A time (RFC 3339), truncated to the whole second, after `now`.
pub(super) fn future(value: &Value, now: Timestamp) -> Option<Timestamp> {
    time(value).filter(|moment| *moment > now)
}

fn time(value: &Value) -> Option<Timestamp> {
    let moment: jiff::Timestamp = value.as_str()?.parse().ok()?;
    let seconds = u64::try_from(moment.as_second()).ok()?;
    Some(Timestamp::from_unix(seconds))
}

/// Account ids, sorted and without duplicates: as clear text, not percent-encoded (QUO-15), of these characters (HTTP-10).
pub(super) fn accounts(value: &Value, account_ids: &AccountIds) -> Option<Vec<String>> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    let ids = list.iter().map(|id| {
        let id = id.as_str().filter(|id| account_ids.include(id))?;
        Some(id.to_owned())
    });
    let mut ids = ids.collect::<Option<Vec<_>>>()?;
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}

/// A time as answers contain it.
pub(super) fn shown(moment: Timestamp) -> Option<String> {
    Some(calendar(moment)?.to_string())
}

/// The day of a time, in UTC, as answers contain it.
pub(super) fn shown_day(moment: Timestamp) -> Option<String> {
    let day = TimeZone::UTC.to_datetime(calendar(moment)?).date();
    Some(day.to_string())
}

fn calendar(moment: Timestamp) -> Option<jiff::Timestamp> {
    let seconds = i64::try_from(moment.unix()).ok()?;
    jiff::Timestamp::from_second(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

    #[test]
    fn all_faults_are_reported_at_once_without_values() {
        let body = br#"{"psu_id": "01010112345", "tpp": 7, "psuCorporateId": "x", "note": null}"#;
        let mut members = Members::parse(body).unwrap();
        assert_eq!(members.required("psu_id", UUID, psu), None);
        assert_eq!(members.required("tpp", TPP, permitted_tpp), None);
        assert_eq!(members.required("request", "a token", psu), None);
        assert_eq!(members.optional("note", "text", |_| Some(())), None);
        let ApiFault::Members(faults) = members.finish().unwrap_err() else {
            panic!("faults of members");
        };
        let said: Vec<_> = faults
            .iter()
            .map(|fault| format!("{}: {}", fault.member, fault.text))
            .collect();
        assert_eq!(
            said,
            [
                "psu_id: it must be a UUID with its hyphens",
                "tpp: it must be a TPP's identity, such as PSDNO-FSA-123456",
                "request: it is missing; it must be a token",
                "psuCorporateId: this call has no such member",
            ]
        );
    }

    #[test]
    fn bodies_that_are_not_an_object() {
        for body in [&b""[..], b"[]", b"7", b"{", b"{\"a\":\xff}", b"{}{}"] {
            assert!(matches!(Members::parse(body), Err(ApiFault::NotJson(_))));
        }
        let deep = [b"{\"a\":".to_vec(), b"[".repeat(60_000)].concat();
        assert!(Members::parse(&deep).is_err());
    }

    #[test]
    fn values() {
        let at = |text: &str| moment(&json!(text), NOW).map(Timestamp::unix);
        assert_eq!(at("2027-01-15T08:00:00Z"), Some(1_800_000_000));
        assert_eq!(at("2027-01-15T09:00:00.9+01:00"), Some(1_800_000_000));
        assert_eq!(shown(NOW).unwrap(), "2027-01-15T08:00:00Z");
        assert_eq!(shown_day(NOW).unwrap(), "2027-01-15");
        for bad in [
            "2027-01-15T08:00:01Z",
            "2027-01-15",
            "1800000000",
            "",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(at(bad), None, "{bad}");
        }
        let named = json!(" psdno-fsa-1 ");
        assert_eq!(permitted_tpp(&named), PermittedTpp::parse("PSDNO-FSA-1"));
        assert_eq!(forbidden_tpp(&named), ForbiddenTpp::parse("PSDNO-FSA-1"));
        assert_eq!(permitted_tpp(&json!("FSA-1")), None);
        assert_eq!(forbidden_tpp(&json!("FSA-1")), None);
        let ids = AccountIds::default();
        let listed = accounts(&json!(["b", "a", "b"]), &ids);
        assert_eq!(listed, Some(vec!["a".to_owned(), "b".to_owned()]));
        for bad in [
            json!([]),
            json!("a"),
            json!([""]),
            json!(["a", 7]),
            json!(["acc-9 "]),
            json!(["acc%2D9"]),
            json!(["x".repeat(129)]),
        ] {
            assert_eq!(accounts(&bad, &ids), None, "{bad}");
        }
    }
}
