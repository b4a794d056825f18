//! One request before the checks: the world and the time that it is judged by, and the verdict on each check.
//!
//! The trial decides, and the [`Record`] only notes: a refusal passes where the policy observes the check (FWD-6), and
//! nowhere else.

use super::{Judged, Record, Snapshot, Stage, Verdict, enforcement::Waiver};
use crate::{
    clock::{Clock, Stopwatch, Timestamp},
    interface::Refusal,
};
use std::time::Duration;

/// Judges one request.
#[derive(Debug)]
pub struct Trial<'a> {
    pub(super) world: &'a Snapshot,
    pub(super) record: &'a mut Record,
    clock: &'a Clock,
    received: Timestamp,
    lap: Stopwatch,
}

impl<'a> Trial<'a> {
    /// Opens the trial of a request whose head has just been received. `world` judges it, `record` notes each check.
    pub fn open(world: &'a Snapshot, clock: &'a Clock, record: &'a mut Record) -> Self {
        Self {
            world,
            clock,
            received: clock.now(),
            lap: record.opened(),
            record,
        }
    }

    /// The time at which the head was received: the request is judged as of then.
    pub(super) const fn received(&self) -> Timestamp {
        self.received
    }

    /// The present time: reading the body takes time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Judges a check that always refuses, because no later check can judge without its evidence.
    pub(super) fn require<T>(
        &mut self,
        stage: Stage,
        result: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let refused = result.as_ref().err();
        let verdict = refused.map_or(Verdict::Held, |refusal| Verdict::Refused(refusal.reason()));
        self.note(stage, verdict);
        result
    }

    /// Judges a check that the policy may observe.
    pub(super) fn judge<T>(
        &mut self,
        stage: Stage,
        result: Result<T, Refusal>,
    ) -> Result<Judged<T>, Refusal> {
        match result {
            Ok(evidence) => {
                self.note(stage, Verdict::Held);
                Ok(Judged::Held(evidence))
            }
            Err(refusal) => self.waive(stage, refusal),
        }
    }

    /// Passes a check over that has nothing to judge by. `_because` is the waiver of an earlier check, whose evidence
    /// it would need: without one, no check is passed over.
    pub(super) fn pass_over<T>(&mut self, stage: Stage, _because: &Waiver) -> Judged<T> {
        self.note(stage, Verdict::Skipped);
        Judged::without_evidence()
    }

    fn waive<T>(&mut self, stage: Stage, refusal: Refusal) -> Result<Judged<T>, Refusal> {
        let tpp = self.record.certificate();
        let tpp = tpp.map(|certificate| certificate.tpp_id());
        let enforcement = &self.world.policy.enforcement;
        if let Some(waiver) = enforcement.waiver(stage, &refusal, tpp) {
            self.note(stage, Verdict::Waived(refusal.reason()));
            return Ok(Judged::Waived(Box::new(refusal), waiver));
        }
        self.note(stage, Verdict::Refused(refusal.reason()));
        Err(refusal)
    }

    fn note(&mut self, stage: Stage, verdict: Verdict) {
        let took = if stage.is_timed() {
            self.lap.lap()
        } else {
            Duration::ZERO
        };
        self.record.note(stage, verdict, took);
    }
}
