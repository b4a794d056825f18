//! The part of a store that one process holds in memory, with every engine: rows, request ids, the clock.

use super::{
    ClaimRequest, RequestHash, StateSettings, Unavailable,
    cache::RowCache,
    clock::{Clock, ClockRow},
    request_ids::{IdClaim, RequestIds},
    rules,
};
use crate::clock::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of a process.
pub(super) struct Process {
    pub(super) cache: RowCache,
    /// REP-1: those of unsafe methods besides the engine.
    pub(super) request_ids: RequestIds,
    pub(super) clock: Clock,
    /// How often an operator had said that the clock is right.
    accepted: AtomicU64,
    /// The last time that a caller gave, for housekeeping; 0 before the first.
    noted: AtomicU64,
}

impl Process {
    /// `kept` is the clock as the engine has it.
    pub(super) fn new(settings: &StateSettings, kept: ClockRow) -> Self {
        let clock = Clock::default();
        clock.begin(kept);
        Self {
            cache: RowCache::new(settings),
            request_ids: RequestIds::new(settings.request_ids_in_memory, clock.latest()),
            clock,
            accepted: AtomicU64::new(kept.accepted),
            noted: AtomicU64::new(0),
        }
    }

    /// Notes the time that a caller gave. Housekeeping goes by it, so the clock is held against it first.
    pub(super) fn note(&self, now: Timestamp) {
        if self.clock.see(now).is_ok() {
            self.noted.store(now.unix(), Ordering::Relaxed);
        }
    }

    /// The time by which housekeeping removes rows; none where no caller gave one, or where the clock is not believed.
    pub(super) fn housekeeping_time(&self) -> Option<Timestamp> {
        let noted = self.noted.load(Ordering::Relaxed);
        (noted != 0 && !self.clock.stepped_back()).then(|| Timestamp::from_unix(noted))
    }

    /// Heeds the clock as the engine keeps it: an operator's word, and the time that other processes saw. Returns the row to
    /// keep from now on.
    pub(super) fn heed_clock(&self, kept: ClockRow) -> ClockRow {
        if self.accepted.swap(kept.accepted, Ordering::Relaxed) != kept.accepted {
            tracing::info!("an operator says that the clock is right");
            self.clock.begin(kept);
            self.clock.note_refusing(false);
            self.noted.store(kept.latest, Ordering::Relaxed);
            self.cache.clear();
            self.request_ids.trust_clock();
        }
        self.clock.merge(kept)
    }

    /// Whether the clock did not step back so far that requests are refused for it (REP-1).
    ///
    /// # Errors
    /// They are refused.
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

    /// Claims the part of a request that memory holds, safe and unsafe methods side by side: an id passes once, whatever the
    /// method (REP-1). An id of an unsafe method that memory forgot, the engine knows.
    pub(super) fn claim(
        &self,
        claim: ClaimRequest,
    ) -> Result<Option<ClaimedInMemory<'_>>, IdClaim> {
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

/// A claim in memory, undone unless the rest of the request's claim is granted as well.
pub(super) struct ClaimedInMemory<'a> {
    request_ids: &'a RequestIds,
    id: RequestHash,
    until: Timestamp,
    is_kept: bool,
}

impl ClaimedInMemory<'_> {
    /// The claim stands.
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
