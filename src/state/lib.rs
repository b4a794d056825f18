//! The state that outlives a request: the PSU's binding, sessions and consents, the quota, request ids, spent SCA tokens.
//!
//! The request path has two functions: [`StateStore::find`] looks a PSU up, and [`StateStore::commit`] claims a request id and a call of the
//! quota in one step. Other paths: [`StateStore::give_back`], [`StateStore::finish`], [`StateStore::bind`], [`StateStore::learn`],
//! [`StateStore::withdraw`]. Each is atomic, across processes and crashes.
//!
//! Three layers: `rules` decides, by pure functions over rows; an `engine` loads the rows of a batch, lets the rules decide and commits, in
//! one transaction; `process` holds the rows that one process may answer from memory. The path of a claim: admission makes a
//! [`ClaimRequest`], [`StateStore::commit`] claims the request id in memory and passes the same value to the engine, and returns the
//! [`Decision`] of `rules`.
//!
//! Invariants: the bank or the core confirmed every fact ([`Known`]); no PSU-ID, account or session id is stored in clear
//! ([`Keys`]); an answer from memory is never older than a change by this process, and at most a tenth of a second older than one by another
//! process that runs. In a database shared by several gateways it is at most a quarter of a second older where a notification is lost. A
//! process that hears of no changes for a second, because it stood still or the database does not answer, answers nothing from memory
//! ([`AsOf`], docs/scaling.md). Deliberately not here: the permissions that follow from a stored fact, which admission decides, and the time,
//! which the caller always gives.
//!
//! The state knows no certificate, no request and no proxy: it gets names, hashes and the time as values.
//!
//! ```compile_fail,E0432
//! use portvakt_trust::Certificate;
//! ```
//!
//! ```compile_fail,E0432
//! use portvakt::admission::Snapshot;
//! ```
//!
//! ```compile_fail,E0432
//! use pingora::Error;
//! ```

// Requests, answers, and the facts about a PSU.
mod beside;
mod block_calls;
mod calls_left;
mod counters;
mod customer;
mod customer_calls;
mod event_calls;
mod event_key;
mod events;
mod hash;
mod keys;
mod known_psu;
mod lookups;
mod move_calls;
mod moves;
mod psu;
mod settings;
mod verbs;
// Values that only the TPP states, and values that the bank or its core confirmed.
mod word;

// The decisions: pure functions over rows, and changes that share a transaction.
mod change;
mod rows;
mod rules;

// The memory of a process: cached rows, blocks of TPPs, request ids, the clock.
mod blocks;
mod cache;
mod clock;
mod freshness;
mod lock;
mod process;
mod request_ids;

// The engines, which load, store and commit rows: their interface, what they have in common, and each.
mod any_engine;
mod engine;
mod hash_key;
#[cfg(feature = "sandbox")]
mod in_memory;
mod key_chain;
mod level;
mod opening;
mod outbox;
pub mod postgres;
pub mod rotation;
pub mod sqlite;
mod stored;
mod sweep;
#[cfg(feature = "sandbox")]
mod volatile;

pub use beside::Beside;
pub use blocks::{Block, BlockScope, Blocked, Blocks, Lifted, SoughtPsu};
pub use calls_left::CallsLeft;
pub use clock::AcceptedClock;
pub use counters::{Counters, Rows};
pub use customer::CustomerKey;
pub use events::{Cursor, CustomerPseudonym, Event, EventKind, EventsAnswer, NewEvent};
pub use freshness::{AsOf, Dated};
pub use hash::{
    AccountHash, BlockHash, CorporateHash, CustomerHash, Hash, ListHash, MoveHash, PsuHash,
    QuotaHash, ReportHash, RequestHash, SessionHash, TokenHash,
};
pub use hash_key::check as check_hash_key;
pub use keys::{Keys, QuotaKey};
pub use known_psu::KnownPsu;
pub use moves::{Move, MoveEnded, Moved, Moves};
pub use postgres::settings::PlantedFault;
pub use postgres::settings::{PostgresSettings, PostgresTls, StaleReads};
pub use psu::{Accounts, Consent, ConsentAccounts, Context, ContextOrigin, Psu, Session};
pub use rules::{Removal, SCA_LASTS};
pub use settings::{EngineSettings, EventSettings, OpenFault, StateSettings};
pub use verbs::{
    AccessChange, AccessesOf, Bind, Bound, Changes, ClaimRequest, Completion, ConsentChange,
    CustomerAccess, CustomerAccesses, Decision, Ended, Erased, Finish, Finished, Learned,
    LearnedContext, Page, PsuRef, QuotaClaim, RequestIdClaim, Retention, Taken, Unavailable,
    Withdraw, Withdrawn,
};
#[cfg(feature = "sandbox")]
pub use volatile::VolatileTables;
pub use word::{Claimed, Confirmable, CoreWord, Known, Named};

use any_engine::AnyEngine;
use engine::Engine;
use portvakt_base::clock::Timestamp;
use portvakt_interface::headers::PsuId;
use process::{Begun, Process};
use rules::{Erasure, GiveBack, Mark, NewBinding, ScaEnd, Withdrawal};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The store of the state.
///
/// Its methods require a tokio runtime with a time driver.
pub struct StateStore {
    keys: Box<Keys>,
    process: Arc<Process>,
    engine: AnyEngine,
    /// Whether [`Self::has_written`] was true once.
    was_proven: AtomicBool,
}

impl StateStore {
    /// The key of the store's hashes.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Decides a claim atomically, and answers when the claim is durable (QUO-5 to QUO-7, REP-1). If the request id was used and the quota
    /// is used up, the decision is about the request id.
    ///
    /// # Errors
    /// The store is unavailable, there is no memory for the request id, or the clock stepped back so far that an earlier use is unknown:
    /// nothing is claimed. Where the clock stepped forward meanwhile, so that an earlier use may just have been removed, what was claimed
    /// stays claimed.
    pub async fn commit(&self, claim: ClaimRequest) -> Result<Decision, Unavailable> {
        let Begun { in_memory, judged } = match self.process.begin(claim) {
            Ok(begun) => begun,
            Err(not_begun) => return not_begun.answer(),
        };
        let decision = self.decide(claim).await?;
        if matches!(decision, Decision::Held(_)) {
            self.process.holds(judged)?;
            if let Some(in_memory) = in_memory {
                in_memory.keep();
            }
        }
        Ok(decision)
    }

    /// Decides the durable part of a claim. The engine is not called if there is no such part, or if the cache has the answer.
    async fn decide(&self, claim: ClaimRequest) -> Result<Decision, Unavailable> {
        if claim.durable_request().is_none() {
            let Some(quota) = claim.quota else {
                return Ok(claim.taken_in_memory());
            };
            // A later page may need no call.
            let is_first = quota.page.is_none_or(|page| page.offset == 0);
            if is_first && let Some(next) = self.process.used_up(quota.key, claim.now) {
                return Ok(Decision::NextAt(next));
            }
        }
        self.process.note(claim.now);
        self.engine.commit(claim).await
    }

    /// Gives back the call of the quota (QUO-5), and the request id if the upstream was never connected (REP-1). The change is durable when
    /// this function returns. Returns the calls that are left if a call was given back; `None` otherwise: a call with which a page was
    /// counted stays counted, and a page is not a call (QUO-13).
    ///
    /// # Errors
    /// The store is unavailable: nothing durable is given back.
    pub async fn give_back(
        &self,
        taken: &Taken,
        connected: bool,
    ) -> Result<Option<CallsLeft>, Unavailable> {
        let Taken { claim, call, .. } = *taken;
        let request = claim.request.filter(|_| !connected);
        if let Some((request, until)) = request.and_then(|it| Some((it, it.in_memory_until()?))) {
            self.process.request_ids.forget(request.id, until);
        }
        let with_request = request.is_some_and(|request| request.is_durable());
        if !with_request && call.is_none() {
            return Ok(None);
        }
        let give_back = GiveBack {
            claim,
            call,
            with_request,
        };
        self.engine.commit(give_back).await
    }

    /// Ends an SCA: its token is spent, and its session and consent are stored, in one step (SCA-12).
    ///
    /// # Errors
    /// The store is unavailable, or the clock stepped back so far that an earlier use of the token is unknown: nothing changed. Where the
    /// clock stepped forward meanwhile, it is unknown whether something changed; the end may be reported again.
    pub async fn finish(&self, finish: Finish<'_>) -> Result<Finished, Unavailable> {
        let judged = self.process.judge(finish.now)?;
        self.process.note(finish.now);
        let standing = self.blocks_now().await?;
        let end = ScaEnd::new(&self.keys, standing.moves(), finish);
        let finished = self.engine.commit(end).await?;
        self.process.holds(judged)?;
        Ok(finished)
    }

    /// Binds or updates a PSU by the bank's statement (SCA-19, SCA-21).
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn bind(&self, bind: Bind<'_>) -> Result<Bound, Unavailable> {
        let standing = self.blocks_now().await?;
        let binding = NewBinding::by_bank(&self.keys, standing.moves(), &bind);
        self.engine.commit(binding).await
    }

    /// Binds a PSU by the core's statement, unless it is bound already (SCA-19), or the bank took something of it back after `since`.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn learn(&self, learned: Learned<'_>, since: Removal) -> Result<Bound, Unavailable> {
        let standing = self.blocks_now().await?;
        let binding = NewBinding::learned(&self.keys, standing.moves(), &learned, since);
        self.engine.commit(binding).await
    }

    /// Withdraws a consent, a session or a whole PSU (SCA-13, SCA-19).
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn withdraw(
        &self,
        who: PsuRef<'_>,
        what: Withdraw,
    ) -> Result<Withdrawn, Unavailable> {
        let standing = self.blocks_now().await?;
        let latest = self.process.clock.latest();
        let withdrawal = Withdrawal::new(&self.keys, standing.moves(), who, what, latest)?;
        self.engine.commit(withdrawal).await
    }

    /// Notes that the bank takes back whatever an answer of the core that is under way may say of a PSU (SCA-13, SCA-19).
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn note_removal(&self, psu: Known<PsuId>) -> Result<(), Unavailable> {
        let mark = Mark::new(self.keys.psu(psu), self.process.clock.latest())?;
        self.engine.commit(mark).await
    }

    /// Removes the binding of a PSU, with its session and every consent. Returns what ended, if it was bound. What else there is of the PSU,
    /// calls of a quota, expires by itself within a day.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn erase(&self, psu: Known<PsuId>) -> Result<Option<Erased>, Unavailable> {
        let erasure = Erasure::new(self.keys.psu(psu), self.process.clock.latest())?;
        let standing = self.blocks_now().await?;
        let erased = self.engine.commit(erasure).await?;
        Ok(erased.map(|(written, ended)| Erased {
            tpp: standing.moves().owner(&written).clone(),
            ended,
        }))
    }

    /// Removes everything that expired by `now`, in small steps between other changes, and returns the number of removed rows. The store
    /// also does this by itself, a little every second, by the last time of its callers.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn tidy(&self, now: Timestamp) -> Result<u64, Unavailable> {
        self.process.note(now);
        self.engine.tidy(now).await
    }

    /// Whether the store can write, by its last attempt, and whether the clock can be trusted: for readiness. A store that failed to write
    /// tries again every second.
    ///
    /// # Errors
    /// The reason, for the operator.
    pub fn health(&self, now: Timestamp) -> Result<(), Unavailable> {
        self.clock_health(now)?;
        self.engine.health()
    }

    /// Notes the time of a caller: changes and their events are dated by the latest one.
    pub fn note_time(&self, now: Timestamp) {
        self.process.note(now);
    }

    /// Whether the clock can be trusted.
    fn clock_health(&self, now: Timestamp) -> Result<(), Unavailable> {
        self.process.believes(now)?;
        self.process.note(now);
        Ok(())
    }

    /// Whether a fault of [`Self::health`] is one that all gateways of the state have: not of a file, not of this gateway's clock, not one that
    /// a restart mends, and not where [`Self::has_written`] was never true, so that perhaps only this one does not reach the database.
    pub fn shares_fault(&self, now: Timestamp) -> bool {
        self.engine.is_shared()
            && !self.engine.needs_restart()
            && self.was_proven.load(Ordering::Relaxed)
            && self.clock_health(now).is_ok()
    }

    /// Whether a write has been durable since the store was opened: before that, nobody knows whether it can write. It tries by itself.
    pub fn has_written(&self) -> bool {
        let has_written = self.engine.has_written();
        self.was_proven.fetch_or(has_written, Ordering::Relaxed);
        has_written
    }

    /// The store's activity since it was opened, and the number of its rows.
    pub fn counters(&self) -> Counters {
        Counters {
            clock_stepped_back: self.process.clock.is_refusing(),
            clock_steps: self.process.clock.steps(),
            latest: Some(self.process.clock.latest()),
            ..self.engine.counters()
        }
    }
}

impl fmt::Debug for StateStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StateStore(***)")
    }
}

// Every interleaving of several gateways.
#[cfg(test)]
mod model;
