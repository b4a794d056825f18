//! Requests to a store, and its answers.

use super::{
    CallsLeft, ConsentAccounts, CustomerKey, Known, ListHash, Psu, PsuHash, QuotaHash, ReportHash,
    RequestHash, TokenHash,
    beside::{Beside, MoreThanFit},
    rows::ListRow,
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::{
    ForbiddenTpp, TppId,
    headers::{CorporateId, PsuId, SessionId},
};
use std::sync::Arc;

/// A PSU of a TPP, as the bank or the core names it. Both ids are in clear; the store keeps their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PsuRef<'a> {
    /// The TPP's identity (CRT-4).
    pub tpp: &'a TppId,
    /// PSU-ID.
    pub psu: Known<PsuId>,
}

/// The claim of a request before it is forwarded: granted as a whole or not at all.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest {
    /// The first use of its X-Request-ID (REP-1); `None` if the request has none.
    pub request: Option<RequestIdClaim>,
    /// One of the calls without the PSU (QUO-1 to QUO-3); `None` if the operation is not limited.
    pub quota: Option<QuotaClaim>,
    /// The caller's time.
    pub now: Timestamp,
}

/// The first use of a request id.
#[derive(Clone, Copy, Debug)]
pub struct RequestIdClaim {
    /// [`Keys::request`](super::Keys::request).
    pub id: RequestHash,
    /// The request's Date, which is valid now.
    pub date: Timestamp,
    /// The place and the time of its storage.
    pub retention: Retention,
}

/// The place where a request id is stored, and the time for which it is kept (REP-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// In the memory of this process, until its Date + 61 s: a safe method.
    Memory,
    /// In the store until its Date + 61 s, across restarts and replicas: a safe method under `replay.scope: all`.
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
    /// The quotas whose calls count as well: [`Keys::quota_of_account`](super::Keys::quota_of_account), because a PSU that is known now may
    /// have made them before (SCA-22), and the quotas of the same under the TPP's other identities (CTL-4).
    pub beside: Beside,
    /// The requested page, if later pages are counted with the call that they continue (QUO-13: `once`).
    pub page: Option<Page>,
}

/// A page of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The request without its offset and limit: [`Keys::list`](super::Keys::list).
    pub list: ListHash,
    /// The number of entries that the page skips.
    pub offset: u32,
    /// The number of entries that the page requests.
    pub limit: u32,
}

impl Page {
    /// The last requested entry. A later page must begin after it, so that pages cannot be used to poll an entry (QUO-13); its limit may
    /// differ.
    pub(super) fn last(&self) -> i64 {
        i64::from(self.offset) + i64::from(self.limit) - 1
    }
}

/// The decision on a claim.
#[expect(
    clippy::large_enum_variant,
    reason = "it is made once for a request, and a box would be an allocation"
)]
#[derive(Debug)]
pub enum Decision {
    /// The whole claim is granted.
    Held(Taken),
    /// The request id was used before, and is known. Nothing is claimed.
    Replayed,
    /// The quota is used up until then. Nothing is claimed.
    NextAt(Timestamp),
}

/// A granted claim. [`StateStore::give_back`](super::StateStore::give_back) undoes it.
#[must_use]
#[derive(Debug)]
pub struct Taken {
    /// The claim.
    pub(super) claim: ClaimRequest,
    /// The call that was counted, or the page that continued an earlier one.
    pub(super) call: Option<Call>,
    /// The calls that are left of the quota, if one was claimed.
    pub(super) left: Option<CallsLeft>,
}

/// The way in which a call of a quota was counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// A counted call, the time of the one that it replaced, and the list of pages that it began.
    Counted {
        replaced: Option<u64>,
        list: Option<ListRow>,
    },
    /// A page of an earlier call, and the last entry that was requested before it.
    Continued { page: Page, before: i64 },
}

impl Taken {
    /// The time of the claim.
    pub const fn at(&self) -> Timestamp {
        self.claim.now
    }

    /// Whether a call of a quota was counted. A later page of a counted call is none (QUO-13).
    pub const fn is_call(&self) -> bool {
        matches!(self.call, Some(Call::Counted { .. }))
    }

    /// The calls that are left of the quota, if the request needed one.
    pub const fn left(&self) -> Option<CallsLeft> {
        self.left
    }
}

/// A finished SCA, successful or not (SCA-12). It spends its token.
#[derive(Clone, Debug)]
pub struct Finish<'a> {
    /// The id of the token.
    pub token: TokenHash,
    /// The expiry of the token. The store keeps a spent token for a day longer, because clocks step back.
    pub expires: Timestamp,
    /// The hash of all reported facts about the end: a repeated report is accepted, a different one is refused.
    pub said: ReportHash,
    /// The results of a successful SCA; `None` for a failed one.
    pub completion: Option<Completion<'a>>,
    /// The caller's time.
    pub now: Timestamp,
}

/// The results of a completed SCA: session, context, consent (SCA-4, SCA-17, SCA-18).
#[derive(Clone, Debug)]
pub struct Completion<'a> {
    /// The PSU and the TPP.
    pub who: PsuRef<'a>,
    /// The context: a corporate agreement, or PRIVATE.
    pub corporate: Option<Known<CorporateId>>,
    /// TPP-Session-ID.
    pub session: SessionId,
    /// The accounts of the consent that was given. `None` leaves an existing consent unchanged.
    pub consent: Option<&'a ConsentAccounts>,
    /// The bank's own key for its customer (CTL-1). `None` leaves an earlier one.
    pub customer: Option<&'a CustomerKey>,
}

/// The outcome of finishing an SCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The token is spent, and the session and the consent are stored.
    Done,
    /// The same report was made before: nothing changed, and no time moved.
    Again,
    /// A different report was made before: nothing changed (409).
    Otherwise,
    /// The PSU is bound to another TPP: nothing changed, the token is not spent (SCA-19).
    BoundElsewhere,
}

/// A PSU that the bank imports from another source (SCA-19, SCA-21): bound or updated. Times only move forward.
#[derive(Clone, Debug)]
pub struct Bind<'a> {
    /// The PSU and the TPP.
    pub who: PsuRef<'a>,
    /// The context.
    pub corporate: Option<Known<CorporateId>>,
    /// Whether the statement comes from an import, and not from a call.
    pub imported: bool,
    /// The last SCA in that context.
    pub last_sca: Timestamp,
    /// The time and the accounts of the consent, if there is one.
    pub consent: Option<(Timestamp, &'a ConsentAccounts)>,
    /// The bank's own key for its customer (CTL-1). `None` leaves an earlier one.
    pub customer: Option<&'a CustomerKey>,
}

/// A PSU that the core states as the TPP's own (SCA-19): stored unless it is bound already, and then only an agreement that is new of a PSU
/// that was learned (SCA-22). A later statement of the bank replaces it, for whichever TPP.
#[derive(Clone, Debug)]
pub struct Learned<'a> {
    /// The PSU and the TPP.
    pub who: PsuRef<'a>,
    /// The context that the core's word is about; `None` if the request names an agreement that the core did not confirm.
    pub context: Option<LearnedContext<'a>>,
    /// The last SCA, if the core names it; without it no SCA is recent.
    pub last_sca: Option<Timestamp>,
}

/// The context of a request, as the core confirms it (SCA-19, SCA-22).
#[derive(Clone, Copy, Debug)]
pub struct LearnedContext<'a> {
    /// The agreement, if the request names one.
    pub corporate: Option<Known<CorporateId>>,
    /// The time and the accounts of the consent, if the core names one.
    pub consent: Option<(Timestamp, &'a ConsentAccounts)>,
}

/// The outcome of binding: what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// No TPP had the PSU-ID: it is bound to this one now.
    New,
    /// Another TPP had it by learning, which gave way to the bank (SCA-19): it is bound to this one now.
    TakenOver,
    /// This TPP had it, and something of it changed.
    Changed(Changes),
    /// This TPP had it, with everything that was stated: nothing changed.
    Unchanged,
    /// A newer consent for other accounts is stored: nothing changed. Times only move forward, so the statement cannot narrow it.
    ConsentOutdated,
    /// The bank bound it to another TPP: nothing changed (SCA-19).
    Elsewhere,
}

/// What changed of a PSU that this TPP had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// A binding that was only learned is the bank's now.
    pub binding: bool,
    /// The context, private or of an agreement, is new, or is the bank's own now: before, only the core stated it, or its origin was unknown.
    pub context: bool,
    /// A time of the last SCA moved forward.
    pub last_sca: bool,
    /// The consent.
    pub consent: Option<ConsentChange>,
    /// The bank's key for its customer (CTL-1).
    pub customer: bool,
}

impl Changes {
    /// Everything that a new binding makes, with or without a consent.
    pub fn of_new(with_consent: bool) -> Self {
        Self {
            binding: true,
            context: true,
            last_sca: true,
            consent: with_consent.then_some(ConsentChange::Given),
            customer: false,
        }
    }
}

/// What changed of a consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentChange {
    /// There was none, or an older one.
    Given,
    /// There was one of the same time for other accounts.
    OtherAccounts,
}

/// A consent, a session or a binding that the bank withdraws (SCA-13, SCA-19). The quota always stays (QUO-15), and the binding stays
/// unless it is withdrawn itself (SCA-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdraw {
    /// The consent of one context: a corporate agreement, or PRIVATE.
    Consent(Option<Known<CorporateId>>),
    /// The consents of every context.
    Consents,
    /// The session.
    Session,
    /// The binding, with the session and every consent: the PSU-ID is unbound again.
    Binding,
}

/// The outcome of withdrawing: what ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// This ended, from now on. A binding counts by itself too.
    Done {
        /// What ended.
        ended: Ended,
        /// The consents of other contexts that are left.
        left: usize,
    },
    /// It had ended before, or was never given: nothing changed.
    Already {
        /// The consents that are left.
        left: usize,
    },
    /// The PSU has no such agreement: nothing changed.
    UnknownAgreement,
    /// No agreement was named, the PSU never was in the private context, and has consents of agreements: nothing changed.
    OnlyAgreements,
    /// This TPP has no such PSU: nothing changed.
    Unknown,
}

/// What ended of a PSU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Sessions, valid or not.
    pub sessions: usize,
    /// Consents.
    pub consents: usize,
}

/// An erased PSU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erased {
    /// The TPP that it was bound to.
    pub tpp: TppId,
    /// What ended with the binding.
    pub ended: Ended,
}

/// One PSU-ID of a customer.
#[derive(Clone, Debug)]
pub struct CustomerAccess {
    /// The TPP that the PSU-ID is bound to (SCA-3).
    pub tpp: TppId,
    /// The stored facts.
    pub facts: Arc<Psu>,
    /// The keyed hash of the PSU-ID.
    pub psu: PsuHash,
}

/// The PSU-IDs of a customer.
#[derive(Clone, Debug)]
pub struct CustomerAccesses {
    /// At most 1 000 of them.
    pub accesses: Vec<CustomerAccess>,
    /// Whether there are more.
    pub more: bool,
}

/// What the bank withdraws of a customer (CTL-1).
#[derive(Clone, Copy, Debug)]
pub struct AccessesOf<'a> {
    /// The customer.
    pub customer: &'a CustomerKey,
    /// The TPP, in whatever spelling; `None` is every TPP.
    pub tpp: Option<&'a ForbiddenTpp>,
    /// The agreement whose consent is concerned; `None` is every context.
    pub agreement: Option<Known<CorporateId>>,
    /// The percent-decoded ids of the accounts that remain: a consent stays for those of them that it includes, and ends if there is none.
    /// `None` ends the consents, and with no agreement the session too.
    pub remaining: Option<&'a [String]>,
}

/// What changed of one PSU-ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessChange {
    /// The TPP that the PSU-ID is bound to.
    pub tpp: TppId,
    /// The keyed hash of the PSU-ID.
    pub psu: PsuHash,
    /// What ended.
    pub ended: Ended,
    /// The consents that are left for fewer accounts.
    pub narrowed: usize,
}

/// The store is unavailable: it cannot be reached, is full, or does not answer in time. The gateway then refuses requests (ERR-4). The text
/// is for the operator.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

impl From<MoreThanFit> for Unavailable {
    fn from(fault: MoreThanFit) -> Self {
        Self(fault.to_string())
    }
}
