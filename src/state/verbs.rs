//! Requests to a store, and its answers.

use super::{
    ConsentAccounts, ListHash, QuotaHash, ReportHash, RequestHash, TokenHash, rows::ListRow,
};
use crate::{
    clock::Timestamp,
    interface::{
        QuotaLeft, TppId,
        headers::{CorporateId, PsuId, SessionId},
    },
};
use std::time::Duration;

/// A PSU of a TPP. Both ids are in clear: the store keeps their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PsuRef<'a> {
    /// The TPP's identity (CRT-4).
    pub tpp: &'a TppId,
    /// PSU-ID.
    pub psu: PsuId,
}

/// A request's claim before it is forwarded: granted whole or not at all.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest {
    /// The first use of its X-Request-ID (REP-1); none where it has none.
    pub request: Option<RequestIdClaim>,
    /// One of the calls without the PSU (QUO-1 to QUO-3); none where they are not limited.
    pub quota: Option<QuotaClaim>,
    /// The caller's time.
    pub now: Timestamp,
}

/// The first use of a request id.
#[derive(Clone, Copy, Debug)]
pub struct RequestIdClaim {
    /// [`Keys::request`](super::Keys::request).
    pub id: RequestHash,
    /// The request's Date, which holds now.
    pub date: Timestamp,
    /// Where it is remembered, and for how long.
    pub retention: Retention,
}

/// Where a request id is remembered, and for how long (REP-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// In this process's memory, until its Date + 61 s: a safe method.
    Memory,
    /// Until then in the store, over restarts and for all replicas: a safe method under `replay.scope: all`.
    Date,
    /// In the store for 24 hours: an unsafe method.
    Day,
}

impl RequestIdClaim {
    /// Whether the claim survives a restart and holds across replicas.
    pub(super) fn is_durable(&self) -> bool {
        self.retention != Retention::Memory
    }
}

/// A call of a quota: four in any 24 hours (QUO-1).
#[derive(Clone, Copy, Debug)]
pub struct QuotaClaim {
    /// [`Keys::quota`](super::Keys::quota).
    pub key: QuotaHash,
    /// The page that it asks for, where later pages are counted with the call that they continue (QUO-13: `once`).
    pub page: Option<Page>,
}

/// A page of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The request without its offset and limit: [`Keys::list`](super::Keys::list).
    pub list: ListHash,
    /// How many entries it leaves out.
    pub offset: u32,
    /// How many entries it asks for.
    pub limit: u32,
}

impl Page {
    /// The last entry that it asks for. A later page continues the list behind it, so that no entry is polled by pages
    /// (QUO-13); which limit that one has is its own matter.
    pub(super) fn last(&self) -> i64 {
        i64::from(self.offset) + i64::from(self.limit) - 1
    }
}

/// The decision on a claim.
#[derive(Debug)]
pub enum Decision {
    /// The whole claim is granted.
    Held(Taken),
    /// The request id was used before, and is remembered. Nothing is taken.
    Replayed,
    /// The quota is used up until then. Nothing is taken.
    NextAt(Timestamp),
}

/// A claim that was granted. [`StateStore::give_back`](super::StateStore::give_back) undoes it.
#[must_use]
#[derive(Debug)]
pub struct Taken {
    /// Its claim.
    pub(super) claim: ClaimRequest,
    /// The call that was counted, or the page that continued an earlier one.
    pub(super) call: Option<Call>,
    /// The calls that are left of the quota, where one was claimed.
    pub(super) left: Option<CallsLeft>,
}

/// A call of a quota as it was taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// A call that counts, and the list of pages that it began.
    Counted { list: Option<ListRow> },
    /// A page of an earlier call, and the last entry that was asked for before it.
    Continued { page: Page, before: i64 },
}

/// The calls that are left of a quota (QUO-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallsLeft {
    /// Calls that could be made now.
    pub calls: u8,
    /// When one more can be made than now.
    pub next: Timestamp,
}

impl CallsLeft {
    /// The same for a caller of that time, as the interface writes it.
    pub const fn seen_at(self, now: Timestamp) -> QuotaLeft {
        QuotaLeft {
            calls: self.calls,
            seconds: self.next.unix().saturating_sub(now.unix()),
        }
    }
}

impl Taken {
    /// When it was claimed.
    pub const fn at(&self) -> Timestamp {
        self.claim.now
    }

    /// The calls that are left of the quota, where the request needed one.
    pub const fn left(&self) -> Option<CallsLeft> {
        self.left
    }
}

/// An SCA that ended, well or not (SCA-12). It spends its token.
#[derive(Clone, Debug)]
pub struct Finish<'a> {
    /// The token's own id.
    pub token: TokenHash,
    /// When the token expires. It is remembered as spent for a day longer, for clocks that step back.
    pub expires: Timestamp,
    /// A hash of everything that was said of the end: the same again is no fault, something else is.
    pub said: ReportHash,
    /// The gains of a successful SCA; none for one that failed.
    pub completion: Option<Completion<'a>>,
    /// The caller's time.
    pub now: Timestamp,
}

/// The gains of a completed SCA: session, context, consent (SCA-4, SCA-17, SCA-18).
#[derive(Clone, Debug)]
pub struct Completion<'a> {
    /// Who.
    pub who: PsuRef<'a>,
    /// The context: a corporate agreement, or PRIVATE.
    pub corporate: Option<CorporateId>,
    /// TPP-Session-ID.
    pub session: SessionId,
    /// The accounts of the consent that was given. Where none was, one that stands is unchanged.
    pub consent: Option<&'a ConsentAccounts>,
}

/// The outcome of finishing an SCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The token is spent, and the session and the consent are kept.
    Done,
    /// It was finished before in just this way: nothing changed, no time moved.
    Again,
    /// It was finished before in another way: nothing changed (409).
    Otherwise,
    /// The PSU is bound to another TPP: nothing changed, the token is not spent (SCA-19).
    BoundElsewhere,
}

/// A PSU that the bank knows of from elsewhere (SCA-19, SCA-21): brought in, or brought up to date. Times only move
/// forward.
#[derive(Clone, Debug)]
pub struct Bind<'a> {
    /// Who.
    pub who: PsuRef<'a>,
    /// The context.
    pub corporate: Option<CorporateId>,
    /// The last SCA in that context.
    pub last_sca: Timestamp,
    /// The consent's time and accounts, where one stands.
    pub consent: Option<(Timestamp, &'a ConsentAccounts)>,
}

/// A PSU that the core says is the TPP's own (SCA-19): kept unless it is bound already. The bank's word takes its place,
/// whichever TPP it is for.
#[derive(Clone, Debug)]
pub struct Learned<'a> {
    /// Who.
    pub who: PsuRef<'a>,
    /// The context.
    pub corporate: Option<CorporateId>,
    /// The last SCA, where the core names it; without it there is no recent one.
    pub last_sca: Option<Timestamp>,
    /// The consent's time and accounts, where the core names one.
    pub consent: Option<(Timestamp, &'a ConsentAccounts)>,
}

/// The outcome of binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is bound to this TPP, now or already.
    Here,
    /// It is bound to another TPP: nothing changed (SCA-19).
    Elsewhere,
}

/// A consent, a session or a binding that the bank takes back (SCA-13, SCA-19). The quota stays in any case (QUO-15), the binding in all but one (SCA-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdraw {
    /// The consent of one context: a corporate agreement, or PRIVATE.
    Consent(Option<CorporateId>),
    /// The consents of every context.
    Consents,
    /// The session.
    Session,
    /// The binding, with the session and every consent: the PSU-ID is nobody's again.
    Binding,
}

/// The outcome of withdrawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// From now on SCA is needed.
    Done,
    /// This TPP has no such PSU: there was nothing to withdraw.
    Unknown,
}

/// The store is unavailable: it cannot be reached, is full, or does not answer in time. Fail closed (ERR-4). The text is the
/// operator's.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// A store's activity since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transactions, those that failed included.
    pub batches: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Changes that were asked for, in all batches.
    pub changes: u64,
    /// The most changes in one transaction.
    pub largest_batch: u64,
    /// The time that was spent in transactions.
    pub spent: Duration,
    /// Rows, as housekeeping last counted them.
    pub rows: Rows,
    /// Whether requests are refused because the clock stepped back (REP-1).
    pub clock_stepped_back: bool,
}

/// Rows by kind; none until housekeeping has been around for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Quotas with a call.
    pub quotas: Option<u64>,
    /// Lists that are read page by page.
    pub pages: Option<u64>,
    /// Request ids that are remembered durably.
    pub requests: Option<u64>,
    /// SCA tokens that are spent.
    pub tokens: Option<u64>,
    /// PSUs that are bound.
    pub psus: Option<u64>,
}
