//! What outlives a request: the PSU's binding, sessions and consents, the quota, request ids, SCA that was completed.
//!
//! On the request's path there are two verbs: [`Kept::psu`] looks a PSU up, [`Kept::commit`] claims a request id and a
//! call of the quota in one step. Elsewhere: [`Kept::give_back`], [`Kept::finish`], [`Kept::bind`], [`Kept::learn`],
//! [`Kept::withdraw`]. Each is one step that happens whole or not at all, across processes and crashes.
//!
//! Invariants: no PSU-ID, account or session id is kept in clear ([`Keys`]); what is answered from memory is at most a
//! tenth of a second older than what another process did, and never older than what this one did. Deliberately not here:
//! what a stored fact permits. That is admission's, which turns it into evidence, and the time is always the caller's.

// What is asked and answered.
mod keys;
mod psu;
mod settings;
mod verbs;

// Pure parts: the quota's decision, the replay's and the clock's, and what is held in memory.
mod calls;
mod clock;
mod memory;
mod replay;
mod seen;

// The kinds of stores.
mod hash_key;
pub(crate) mod sqlite;

pub use keys::{Hash, Keys};
pub use psu::{Accounts, Consent, Context, Psu, Session};
pub use settings::{OpenFault, StateSettings};
pub use verbs::{
    Asked, Bind, Bound, Completion, Counters, Decision, Finish, Finished, Learned, Left, Page,
    PsuRef, QuotaAsked, RequestAsked, Retention, Rows, Taken, Unavailable, Withdraw, Withdrawn,
};

use crate::clock::Timestamp;
use clock::Clock;
use memory::Memory;
use seen::Claim;
use sqlite::Sqlite;
use std::{fmt, sync::Arc};

/// State that is kept.
///
/// Its verbs are to be called on a tokio runtime with time.
pub struct Kept {
    keys: Box<Keys>,
    kind: Kind,
}

/// The kinds of stores.
enum Kind {
    /// On one machine.
    Sqlite(Box<Sqlite>),
}

impl Kept {
    /// Opens the state of a configuration; at the first start its file, its hash key and their folders are made.
    ///
    /// # Errors
    /// Why it cannot be used. A file that is there is left as it is.
    pub fn open(settings: &StateSettings) -> Result<Self, OpenFault> {
        let (sqlite, keys) = Sqlite::open(settings)?;
        Ok(Self {
            keys: Box::new(keys),
            kind: Kind::Sqlite(Box::new(sqlite)),
        })
    }

    /// The key of its hashes.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// A PSU of a TPP (SCA-3), perhaps from memory: what it permits is good, what it does not is to be asked again
    /// with [`Kept::psu_now`].
    ///
    /// # Errors
    /// The store is away.
    pub async fn psu(&self, who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        let psu = self.keys.psu(who.psu);
        match self.memory().psu(psu) {
            Some(known) => Ok((*known.tpp == *who.tpp).then_some(known.psu)),
            None => self.read(psu, who.tpp).await,
        }
    }

    /// The same, never from memory.
    ///
    /// # Errors
    /// The store is away.
    pub async fn psu_now(&self, who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        self.read(self.keys.psu(who.psu), who.tpp).await
    }

    /// Whether a PSU-ID is bound, to whichever TPP (SCA-19); never from memory.
    ///
    /// # Errors
    /// The store is away.
    pub async fn is_taken(&self, psu: u128) -> Result<bool, Unavailable> {
        let Kind::Sqlite(sqlite) = &self.kind;
        Ok(sqlite.psu(self.keys.psu(psu)).await?.is_some())
    }

    async fn read(&self, psu: Hash, tpp: &str) -> Result<Option<Arc<Psu>>, Unavailable> {
        let Kind::Sqlite(sqlite) = &self.kind;
        let known = sqlite.psu(psu).await?;
        Ok(known
            .filter(|known| *known.tpp == *tpp)
            .map(|known| known.psu))
    }

    /// Takes what a request needs, all or nothing, and answers when it is durable (QUO-5 to QUO-7, REP-1). A request id
    /// that was used wins over a quota that is used up.
    ///
    /// # Errors
    /// The store is away, there is no room to remember the request id, or the clock stepped back so far that nobody can
    /// say whether it was used: nothing is taken.
    pub async fn commit(&self, asked: Asked) -> Result<Decision, Unavailable> {
        if asked.request.is_some() || asked.quota.is_some() {
            self.clock().see(asked.now)?;
        }
        let durable = asked.request.filter(RequestAsked::is_durable);
        if durable.is_some_and(|request| request.may_be_removed(self.clock().latest())) {
            return Err(self.behind());
        }
        let mut claimed = match self.claim_in_memory(asked) {
            Ok(claimed) => claimed,
            Err(Claim::Used) => return Ok(Decision::Replayed),
            Err(Claim::Full) => {
                return Err(Unavailable(
                    "more requests than state.request_ids_in_memory allows".into(),
                ));
            }
            Err(Claim::Forgotten | Claim::First) => return Err(self.behind()),
        };
        let started = self.claim(durable, asked).await?;
        let (call, left) = match started {
            sqlite::Started::Held { call, left } => (call, left),
            sqlite::Started::Replayed => return Ok(Decision::Replayed),
            sqlite::Started::NextAt(at) => return Ok(Decision::NextAt(at)),
        };
        if let Some(claimed) = &mut claimed {
            claimed.kept = true;
        }
        Ok(Decision::Held(Taken {
            request: asked.request,
            at: asked.now,
            call,
            left,
        }))
    }

    /// The part that memory holds, safe and unsafe methods side by side: an id passes once, whatever the method (REP-1).
    /// What memory forgot of an unsafe method, the store knows.
    fn claim_in_memory(&self, asked: Asked) -> Result<Option<InMemory<'_>>, Claim> {
        let request = asked.request;
        let Some((request, until)) = request.and_then(|it| Some((it, it.in_memory_until()?)))
        else {
            return Ok(None);
        };
        let memory = self.memory();
        match memory.seen.claim(request.id, until, asked.now) {
            Claim::First => Ok(Some(InMemory {
                memory,
                id: request.id,
                until,
                kept: false,
            })),
            Claim::Forgotten if request.is_durable() => Ok(None),
            other => Err(other),
        }
    }

    /// The part that has to be durable. No thread is asked where there is none, or where memory knows the answer.
    async fn claim(
        &self,
        durable: Option<RequestAsked>,
        asked: Asked,
    ) -> Result<sqlite::Started, Unavailable> {
        if durable.is_none() {
            let Some(quota) = asked.quota else {
                return Ok(sqlite::Started::Held {
                    call: None,
                    left: None,
                });
            };
            // A later page may need no call.
            let first = quota.page.is_none_or(|page| page.offset == 0);
            if first && let Some(next) = self.memory().used_up(quota.key, asked.now) {
                return Ok(sqlite::Started::NextAt(next));
            }
        }
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite
            .claim(sqlite::Claimed {
                request: durable,
                quota: asked.quota,
                now: asked.now,
            })
            .await
    }

    /// Gives back the call of the quota (QUO-5); where the upstream was never connected the request id too (REP-1).
    /// It is durable when this answers. Whether a call was given back: none is where a page was counted with it, and a page
    /// is none (QUO-13).
    ///
    /// # Errors
    /// The store is away: nothing that is durable is given back.
    pub async fn give_back(&self, taken: &Taken, connected: bool) -> Result<bool, Unavailable> {
        let request = taken.request.filter(|_| !connected);
        if let Some((request, until)) = request.and_then(|it| Some((it, it.in_memory_until()?))) {
            self.memory().seen.forget(request.id, until);
        }
        let durable = request.filter(RequestAsked::is_durable);
        if durable.is_none() && taken.call.is_none() {
            return Ok(false);
        }
        let (call, at) = (taken.call, taken.at);
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite
            .change(move |change| {
                if let Some(request) = durable {
                    sqlite::forget(change, request.id, request.until(at))?;
                }
                call.map_or(Ok(false), |call| sqlite::give_back(change, call))
            })
            .await
    }

    /// An SCA ended: its token is spent, and what it gives is kept, in one step (SCA-12).
    ///
    /// # Errors
    /// The store is away: nothing changed.
    pub async fn finish(&self, finish: Finish<'_>) -> Result<Finished, Unavailable> {
        let now = finish.now;
        let Kind::Sqlite(sqlite) = &self.kind;
        let completed = sqlite::Completed::new(&self.keys, finish);
        sqlite.finish(completed, now).await
    }

    /// Brings a PSU in, or up to date (SCA-19, SCA-21).
    ///
    /// # Errors
    /// The store is away: nothing changed.
    pub async fn bind(&self, bind: Bind<'_>) -> Result<Bound, Unavailable> {
        let binding = sqlite::NewBinding::new(&self.keys, &bind);
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite.change(move |change| binding.run(change)).await
    }

    /// Binds a PSU by the core's word, unless it is bound already (SCA-19).
    ///
    /// # Errors
    /// The store is away: nothing changed.
    pub async fn learn(&self, learned: Learned<'_>) -> Result<Bound, Unavailable> {
        let binding = sqlite::NewBinding::learned(&self.keys, &learned);
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite.change(move |change| binding.run(change)).await
    }

    /// Takes a consent, a session or a whole PSU back (SCA-13, SCA-19).
    ///
    /// # Errors
    /// The store is away: nothing changed.
    pub async fn withdraw(
        &self,
        who: PsuRef<'_>,
        what: Withdraw,
    ) -> Result<Withdrawn, Unavailable> {
        let withdrawal = sqlite::Withdrawal::new(&self.keys, who, what);
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite.change(move |change| withdrawal.run(change)).await
    }

    /// Removes everything that expired by `now`, in small steps between other changes. The store does that by itself, a
    /// little every second, by the time that its callers last gave. How many rows were removed.
    ///
    /// # Errors
    /// The store is away.
    pub async fn tidy(&self, now: Timestamp) -> Result<u64, Unavailable> {
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite.tidy(now).await
    }

    /// Whether it can be written, as of the last time that it was tried, and whether the clock can be believed: for
    /// readiness. A store that could not be written is tried again every second.
    ///
    /// # Errors
    /// Why not: for the operator.
    pub fn health(&self, now: Timestamp) -> Result<(), Unavailable> {
        self.believes(now)?;
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite.note(now);
        sqlite.health()
    }

    /// Whether the clock did not step back so far that requests are refused for it (REP-1).
    fn believes(&self, now: Timestamp) -> Result<(), Unavailable> {
        self.clock().see(now)?;
        self.memory().seen.open_at(now);
        let (signed_now, latest) = (replay::date_ends(now), self.clock().latest());
        let refusing = signed_now <= self.memory().seen.forgotten()
            || self.clock().is_refusing() && replay::may_be_removed(signed_now, latest);
        self.clock().note_refusing(refusing);
        if refusing {
            return Err(self.behind());
        }
        Ok(())
    }

    /// The clock stepped back, and it is forgotten whether a safe method's id was used.
    fn behind(&self) -> Unavailable {
        self.clock().note_refusing(true);
        let latest = self.clock().latest();
        Unavailable(format!(
            "the clock stepped back from {latest}: requests that change nothing could be taken twice, so they are refused \
             until it is there again, or until you say that it is right with `portvakt state accept-clock`"
        ))
    }

    /// What it did since it was opened, and how much it holds.
    pub fn counters(&self) -> Counters {
        let Kind::Sqlite(sqlite) = &self.kind;
        Counters {
            clock_stepped_back: self.clock().is_refusing(),
            ..sqlite.counters()
        }
    }

    fn clock(&self) -> &Clock {
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite.clock()
    }

    fn memory(&self) -> &Memory {
        let Kind::Sqlite(sqlite) = &self.kind;
        sqlite.memory()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Kept(***)")
    }
}

/// A claim in memory, undone unless the rest of what the request needs is taken as well.
struct InMemory<'a> {
    memory: &'a Memory,
    id: Hash,
    until: Timestamp,
    kept: bool,
}

impl Drop for InMemory<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.memory.seen.forget(self.id, self.until);
        }
    }
}
