//! The claim of a request, granted as a whole or not at all, and its return (QUO-5 to QUO-7, QUO-13, REP-1).

use super::Calls;
use crate::{
    CallsLeft, ClaimRequest, Decision, QuotaClaim, QuotaHash, RequestIdClaim, Retention, Taken,
    change::Change,
    rows::{ListRow, RowKey, Rows, UsedUp},
    verbs::Call,
};
use portvakt_base::clock::Timestamp;

/// The return of a claim.
pub(crate) struct GiveBack {
    pub(crate) claim: ClaimRequest,
    pub(crate) call: Option<Call>,
    /// Whether the request id is given back as well: the upstream was never connected (REP-1).
    pub(crate) with_request: bool,
}

impl ClaimRequest {
    /// The request id, if the store must keep it.
    pub(crate) fn durable_request(&self) -> Option<RequestIdClaim> {
        self.request.filter(RequestIdClaim::is_durable)
    }

    fn request_key(&self, keys: &mut Vec<RowKey>) {
        keys.extend(self.durable_request().map(|it| RowKey::Request(it.id)));
    }

    fn quota_keys(&self, keys: &mut Vec<RowKey>) {
        if let Some(quota) = self.quota {
            keys.push(RowKey::Quota(quota.key));
            keys.extend(quota.beside.quotas().map(RowKey::Quota));
            keys.extend(quota.page.map(|page| RowKey::List(page.list)));
        }
    }

    const fn taken(self, call: Option<Call>, left: Option<CallsLeft>) -> Decision {
        Decision::Held(Taken {
            claim: self,
            call,
            left,
        })
    }

    /// The claim is granted, and no part of it must be durable.
    pub(crate) const fn taken_in_memory(self) -> Decision {
        self.taken(None, None)
    }
}

impl Change for ClaimRequest {
    type Outcome = Decision;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        self.request_key(keys);
        self.quota_keys(keys);
    }

    /// A used request id outweighs a used-up quota, and nothing is written for either.
    fn decide(&self, rows: &mut Rows) -> Decision {
        let request = self.durable_request();
        let used = request.and_then(|request| rows.requests.get(request.id));
        if used.is_some_and(|until| self.now <= *until) {
            return Decision::Replayed;
        }
        let (call, left) = match self.quota {
            None => (None, None),
            Some(quota) => match take(rows, quota, self.now) {
                Ok((call, left)) => (Some(call), Some(left)),
                Err(next) => {
                    // Calls of the other row may be given back, and nobody would say that the quota is no longer used up.
                    if quota.beside.is_empty() {
                        rows.used_up.push(UsedUp::Until(quota.key, next));
                    }
                    return Decision::NextAt(next);
                }
            },
        };
        if let Some(request) = request {
            rows.requests.put(request.id, request.until(self.now));
        }
        self.taken(call, left)
    }

    /// The id of a safe request alone (REP-1): the process's own memory would be enough.
    fn may_be_lost(&self) -> bool {
        let is_safe = |request: RequestIdClaim| request.retention == Retention::Date;
        self.quota.is_none() && self.request.is_some_and(is_safe)
    }
}

/// Takes a call, or continues one.
///
/// # Errors
/// The time of the next possible call.
fn take(
    rows: &mut Rows,
    quota: QuotaClaim,
    now: Timestamp,
) -> Result<(Call, CallsLeft), Timestamp> {
    let mut calls = calls(rows, quota.key);
    let beside = beside(rows, quota);
    let all = |calls: Calls| beside.map_or(calls, |beside| calls.with(beside));
    let list = quota
        .page
        .and_then(|page| rows.lists.get(page.list))
        .copied();
    if let Some(page) = quota.page
        && let Some(list) = list
        && list.continues_with(page, now)
    {
        let last = page.last();
        rows.lists.put(page.list, ListRow { last, ..list });
        let before = list.last;
        return Ok((Call::Continued { page, before }, all(calls).left(now)));
    }
    all(calls).take(now)?;
    let replaced = calls.take(now)?;
    rows.quotas.put(quota.key, calls);
    let list = quota.page.map(|page| {
        let begun = ListRow::begun_by(page, now, list.as_ref());
        rows.lists.put(page.list, begun);
        begun
    });
    Ok((Call::Counted { replaced, list }, all(calls).left(now)))
}

/// The calls that count beside those of a quota's own key.
fn beside(rows: &Rows, quota: QuotaClaim) -> Option<Calls> {
    let beside = quota.beside.quotas();
    beside.map(|key| calls(rows, key)).reduce(Calls::with)
}

fn calls(rows: &Rows, key: QuotaHash) -> Calls {
    rows.quotas.get(key).copied().unwrap_or_default()
}

impl Change for GiveBack {
    /// The calls that are left after the call was given back; `None` if none was. A call with which a page was counted stays counted, so
    /// does one whose list is no longer known, and a page is not a call (QUO-13).
    type Outcome = Option<CallsLeft>;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        if self.with_request {
            self.claim.request_key(keys);
        }
        if self.call.is_some() {
            self.claim.quota_keys(keys);
        }
    }

    fn decide(&self, rows: &mut Rows) -> Option<CallsLeft> {
        if self.with_request
            && let Some(request) = self.claim.durable_request()
            && rows.requests.get(request.id) == Some(&request.until(self.claim.now))
        {
            rows.requests.remove(request.id);
        }
        let quota = self.claim.quota?;
        match self.call? {
            Call::Counted { replaced, list } => {
                if let Some(begun) = list
                    && let Some(page) = quota.page
                {
                    if rows.lists.get(page.list) != Some(&begun) {
                        return None;
                    }
                    rows.lists.remove(page.list);
                }
                give_call_back(rows, quota, self.claim.now, replaced)
            }
            Call::Continued { page, before } => {
                let list = rows.lists.get(page.list).copied();
                if let Some(list) = list.filter(|list| list.last == page.last()) {
                    let last = before;
                    rows.lists.put(page.list, ListRow { last, ..list });
                }
                None
            }
        }
    }
}

fn give_call_back(
    rows: &mut Rows,
    quota: QuotaClaim,
    at: Timestamp,
    replaced: Option<u64>,
) -> Option<CallsLeft> {
    let key = quota.key;
    let mut calls = calls(rows, key);
    if calls.left(at).calls == 0 {
        rows.used_up.push(UsedUp::NoLonger(key));
    }
    if !calls.give_back(at, replaced) {
        return None;
    }
    if calls.is_empty() {
        rows.quotas.remove(key);
    } else {
        rows.quotas.put(key, calls);
    }
    let all = beside(rows, quota).map_or(calls, |beside| calls.with(beside));
    Some(all.left(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Beside, Hash, Page};

    const NOW: u64 = 1_790_000_000;
    const QUOTA: QuotaHash = Hash::from_bytes([1; 16]);

    /// A claim of the second with this number: a page of a list, with the id of a payment.
    fn claim(second: u64, id: u8, offset: u32) -> ClaimRequest {
        let list = Hash::from_bytes([2; 16]);
        ClaimRequest {
            request: Some(RequestIdClaim {
                id: Hash::from_bytes([id; 16]),
                date: Timestamp::from_unix(NOW),
                retention: Retention::Day,
            }),
            quota: Some(QuotaClaim {
                key: QUOTA,
                beside: Beside::default(),
                page: Some(Page {
                    list,
                    offset,
                    limit: 10,
                }),
            }),
            now: Timestamp::from_unix(NOW + second),
        }
    }

    /// Decides on rows of which an engine loaded what the change names.
    fn decide<C: Change>(rows: &mut Rows, change: &C) -> C::Outcome {
        let mut keys = Vec::new();
        change.keys(&mut keys);
        for key in keys {
            match key {
                RowKey::Quota(key) if !rows.quotas.has(key) => rows.quotas.load(key, None),
                RowKey::List(key) if !rows.lists.has(key) => rows.lists.load(key, None),
                RowKey::Request(key) if !rows.requests.has(key) => rows.requests.load(key, None),
                _ => {}
            }
        }
        let outcome = change.decide(rows);
        assert!(rows.is_complete());
        outcome
    }

    fn left(decision: &Decision) -> u8 {
        match decision {
            Decision::Held(taken) => taken.left.unwrap().calls,
            other => panic!("{other:?}"),
        }
    }

    //= QUO-13 accepted
    #[test]
    fn each_page_is_read_once_with_its_call() {
        let mut rows = Rows::default();
        for (id, offset, calls) in [(1, 0, 3), (2, 10, 3), (3, 20, 3), (4, 20, 2), (5, 0, 1)] {
            let decision = decide(&mut rows, &claim(u64::from(id), id, offset));
            assert_eq!(left(&decision), calls, "{id}");
        }
    }

    //= QUO-5 accepted
    #[test]
    fn a_call_is_given_back_with_its_list_and_its_id() {
        let mut rows = Rows::default();
        let claim = claim(0, 1, 0);
        let Decision::Held(taken) = decide(&mut rows, &claim) else {
            panic!("not held");
        };
        let back = GiveBack {
            claim,
            call: taken.call,
            with_request: true,
        };
        assert_eq!(decide(&mut rows, &back).unwrap().calls, 4);
        assert_eq!(rows.quotas.changed().count(), 0);
        assert_eq!(rows.lists.changed().count(), 0);
        assert_eq!(rows.requests.changed().count(), 0);
        // Once.
        assert!(decide(&mut rows, &back).is_none());
    }

    //= REP-1 refused
    #[test]
    fn a_request_that_is_refused_uses_nothing_up() {
        let mut rows = Rows::default();
        for id in 1..=4 {
            decide(&mut rows, &claim(0, id, 0));
        }
        let next = Timestamp::from_unix(NOW + 86_400);
        let refused = decide(&mut rows, &claim(1, 5, 0));
        assert!(matches!(refused, Decision::NextAt(at) if at == next));
        assert!(rows.requests.get(Hash::from_bytes([5; 16])).is_none());
        let before = *rows.quotas.get(QUOTA).unwrap();
        let replayed = decide(&mut rows, &claim(86_400, 1, 0));
        assert!(matches!(replayed, Decision::Replayed));
        assert_eq!(rows.quotas.get(QUOTA), Some(&before));
        // The id was used at the second 0, and is forgotten a day later.
        let first = decide(&mut rows, &claim(86_401, 1, 0));
        assert_eq!(left(&first), 3);
    }
}
