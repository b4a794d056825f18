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
