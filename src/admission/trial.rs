//! The trial of one request: the snapshot and the time by which the request is judged, and the verdict on each check.
//!
//! The trial decides, and the [`Record`] only notes. A refusal is waived only here, and only if the policy observes the check (FWD-6).

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
    /// Opens the trial of a request whose head has just been received. `world` judges the request, `record` notes each check.
    pub fn open(world: &'a Snapshot, clock: &'a Clock, record: &'a mut Record) -> Self {
        Self {
            world,
            clock,
            received: clock.now(),
            lap: record.opened(),
            record,
        }
    }

    /// The time at which the head was received; the request is judged at this time.
    pub(super) const fn received(&self) -> Timestamp {
        self.received
    }

    /// The current time, which differs from [`Self::received`] after the body was read.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Judges a check that always refuses, because later checks need its evidence.
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

    /// Skips a check without input. `_because` is the waiver of an earlier check whose evidence this check needs: without a waiver no check
    /// can be skipped.
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
