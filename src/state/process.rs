//! The part of a store that one process holds in memory, with every engine: rows, request ids, the clock.

use super::{
    ClaimRequest, Decision, PsuHash, QuotaHash, RequestHash, StateSettings, Unavailable,
    blocks::{Blocks, LiveBlocks},
    cache::RowCache,
    clock::{Clock, ClockRow},
    event_key::KeyInUse,
    events::MOST_KEPT,
    freshness::{Dated, Freshness},
    request_ids::{IdClaim, RequestIds},
    rows::BoundPsu,
    rules,
};
use portvakt_base::clock::Timestamp;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::watch;

/// The memory of a process.
pub(super) struct Process {
    pub(super) cache: RowCache,
    /// CTL-2: every block.
    pub(super) blocks: LiveBlocks,
    /// REP-1: also the ids of unsafe methods, which the engine stores too.
    pub(super) request_ids: RequestIds,
    pub(super) clock: Clock,
    /// The number of times that an operator had accepted the clock.
    accepted: AtomicU64,
    /// The age of what the cache holds.
    pub(super) freshness: Arc<Freshness>,
    /// The last time that a caller gave, for housekeeping; 0 before the first.
    noted: AtomicU64,
    /// CTL-3.
    pub(super) customer_key: KeyInUse,
    /// CTL-3: changes when the stream may have more events.
    pub(super) events: watch::Sender<u64>,
    /// The time for which events are kept, in seconds, and their maximum number.
    pub(super) events_kept: (u64, u64),
}

impl Process {
    /// The memory of a process; `stored` is the engine's clock, and the engine reports to `freshness` when it heard of every change.
    pub(super) fn new(
        settings: &StateSettings,
        stored: ClockRow,
        freshness: Arc<Freshness>,
    ) -> Self {
        let clock = Clock::default();
        clock.begin(stored);
        Self {
            cache: RowCache::new(settings),
            blocks: LiveBlocks::default(),
            request_ids: RequestIds::new(settings.request_ids_in_memory, clock.latest()),
            clock,
            accepted: AtomicU64::new(stored.accepted),
            freshness,
            noted: AtomicU64::new(0),
            customer_key: KeyInUse::default(),
            events: watch::Sender::new(0),
            events_kept: (
                u64::from(settings.events.keep_days).saturating_mul(86_400),
                MOST_KEPT,
            ),
        }
    }

    /// A PSU from the cache, if memory may be used (SCA-6, SCA-13).
    pub(super) fn cached_psu(&self, psu: PsuHash) -> Option<Dated<BoundPsu>> {
        let as_of = self.freshness.of_memory()?;
        let fact = self.cache.psu(psu)?;
        Some(Dated { fact, as_of })
    }

    /// The time until which a quota is known to be used up, if memory may be used: a call may have been given back elsewhere since.
    pub(super) fn used_up(&self, key: QuotaHash, now: Timestamp) -> Option<Timestamp> {
        let until = self.cache.used_up(key, now)?;
        self.freshness.of_memory().map(|_| until)
    }

    /// The blocks of TPPs from memory, if memory may be used (CTL-2).
    pub(super) fn current_blocks(&self) -> Option<Arc<Blocks>> {
        self.freshness.of_memory().map(|_| self.blocks.current())
    }

    /// Wakes the readers of events (CTL-3).
    pub(super) fn wake_events(&self) {
        self.events
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The last second and the number up to which events are removed by `now`; `last` is the number of the last event.
    pub(super) fn events_removed_through(&self, now: Timestamp, last: u64) -> (u64, u64) {
        let (seconds, most) = self.events_kept;
        (
            now.unix().saturating_sub(seconds),
            last.saturating_sub(most),
        )
    }

    /// Records the time of a caller. Housekeeping uses this time, so the clock is checked first.
    pub(super) fn note(&self, now: Timestamp) {
        if self.clock.see(now).is_ok() {
            self.noted.store(now.unix(), Ordering::Relaxed);
        }
    }

    /// The time by which housekeeping removes rows; `None` if no caller gave a time yet, or if the clock is not trusted.
    pub(super) fn housekeeping_time(&self) -> Option<Timestamp> {
        let noted = self.noted.load(Ordering::Relaxed);
        (noted != 0 && !self.clock.stepped_back()).then(|| Timestamp::from_unix(noted))
    }

    /// Applies the engine's clock: an operator's acceptance, and the time of other processes. Returns the row to store.
    pub(super) fn heed_clock(&self, stored: ClockRow) -> ClockRow {
        if self.accepted.swap(stored.accepted, Ordering::Relaxed) != stored.accepted {
            tracing::info!("an operator says that the clock is right");
            self.clock.begin(stored);
            self.clock.note_refusing(false);
            self.noted.store(stored.latest, Ordering::Relaxed);
            self.cache.clear();
            self.request_ids.trust_clock();
        }
        self.clock.merge(stored)
    }

    /// Checks that the clock did not step back so far that requests are refused (REP-1).
    ///
    /// # Errors
    /// The clock stepped back too far.
    pub(super) fn believes(&self, now: Timestamp) -> Result<(), Unavailable> {
        self.clock.see(now)?;
        self.request_ids.open_at(now);
        let (signed_now, latest) = (rules::date_ends(now), self.clock.latest());
        let refusing = signed_now <= self.request_ids.forgotten()
            || self.clock.is_refusing() && rules::may_be_removed(signed_now, latest);
        self.clock.note_refusing(refusing);
        if refusing {
            return Err(self.clock.behind());
        }
        Ok(())
    }

    /// Judges the time of a caller, before rows decide about it.
    ///
    /// # Errors
    /// The clock stepped back too far.
    pub(super) fn judge(&self, now: Timestamp) -> Result<Judged, Unavailable> {
        // Read before the check: the clock may go on between them.
        let judged = Judged(self.clock.latest().max(now));
        self.clock.see(now)?;
        Ok(judged)
    }

    /// Checks, after rows have decided about a caller's time, that none of them can have been removed meanwhile: the clock went on by no more
    /// than [`rules::WAITS`] (REP-1, QUO-1, SCA-12).
    ///
    /// # Errors
    /// The clock stepped forward.
    pub(super) fn holds(&self, judged: Judged) -> Result<(), Unavailable> {
        let (Judged(then), latest) = (judged, self.clock.latest());
        if latest.unix() <= then.unix().saturating_add(rules::WAITS) {
            return Ok(());
        }
        Err(Unavailable(format!(
            "the clock went from {then} to {latest} while the state decided: what refuses this request may just have been removed"
        )))
    }

    /// Judges the clock and claims the request id in memory, before the engine decides about the rest.
    ///
    /// # Errors
    /// The id was used, or nothing can be claimed.
    pub(super) fn begin(&self, claim: ClaimRequest) -> Result<Begun<'_>, NotBegun> {
        let clock = &self.clock;
        let judged = if claim.request.is_some() || claim.quota.is_some() {
            self.judge(claim.now)?
        } else {
            Judged(clock.latest())
        };
        let durable = claim.durable_request();
        if durable.is_some_and(|request| request.may_be_removed(clock.latest())) {
            return Err(clock.behind().into());
        }
        let in_memory = self.claim(claim).map_err(|refused| match refused {
            IdClaim::Used => NotBegun::Replayed,
            IdClaim::Full => NotBegun::Unavailable(Unavailable(
                "more requests than state.request_ids_in_memory allows".into(),
            )),
            IdClaim::Forgotten | IdClaim::First => clock.behind().into(),
        })?;
        Ok(Begun { in_memory, judged })
    }

    /// Claims the request id in memory, for safe and unsafe methods together: an id passes once, whatever the method (REP-1). The engine
    /// knows the ids of unsafe methods that memory no longer has.
    fn claim(&self, claim: ClaimRequest) -> Result<Option<ClaimedInMemory<'_>>, IdClaim> {
        let request = claim.request;
        let Some((request, until)) = request.and_then(|it| Some((it, it.in_memory_until()?)))
        else {
            return Ok(None);
        };
        match self.request_ids.claim(request.id, until, claim.now) {
            IdClaim::First => Ok(Some(ClaimedInMemory {
                request_ids: &self.request_ids,
                id: request.id,
                until,
                is_kept: false,
            })),
            IdClaim::Forgotten if request.is_durable() => Ok(None),
            other => Err(other),
        }
    }
}

/// The latest known time when a caller's time was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Judged(Timestamp);

/// A claim that the engine may decide.
pub(super) struct Begun<'a> {
    pub(super) in_memory: Option<ClaimedInMemory<'a>>,
    pub(super) judged: Judged,
}

/// The reason why a claim is answered before the engine decides about it.
#[derive(Debug)]
pub(super) enum NotBegun {
    /// The request id was used.
    Replayed,
    /// Nothing can be claimed.
    Unavailable(Unavailable),
}

impl From<Unavailable> for NotBegun {
    fn from(fault: Unavailable) -> Self {
        Self::Unavailable(fault)
    }
}

impl NotBegun {
    /// What the caller is told.
    pub(super) fn answer(self) -> Result<Decision, Unavailable> {
        match self {
            Self::Replayed => Ok(Decision::Replayed),
            Self::Unavailable(fault) => Err(fault),
        }
    }
}

/// A claim in memory, which is undone unless the rest of the request's claim is granted.
pub(super) struct ClaimedInMemory<'a> {
    request_ids: &'a RequestIds,
    id: RequestHash,
    until: Timestamp,
    is_kept: bool,
}

impl ClaimedInMemory<'_> {
    /// Makes the claim permanent.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for ClaimedInMemory<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.request_ids.forget(self.id, self.until);
        }
    }
}

#[cfg(test)]
impl Process {
    /// The last time that a caller gave, for models that make a process of what they keep.
    pub(super) fn noted(&self) -> u64 {
        self.noted.load(Ordering::Relaxed)
    }

    pub(super) fn set_noted(&self, noted: u64) {
        self.noted.store(noted, Ordering::Relaxed);
    }
}
