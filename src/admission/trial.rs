//! The trial of one request: the snapshot and the time by which the request is judged, and the verdict on each check.
//!
//! The trial decides, and the [`Record`] only notes. A refusal is waived only here, and only if the policy observes the check (FWD-6).

use super::{
    Head, Judged, Record, Snapshot, Stage, Verdict, certificate,
    enforcement::{Caller, Ruling, Waiver, Whose},
    standing,
};
use crate::{
    clock::{Clock, Stopwatch, Timestamp},
    interface::{Refusal, TppId, headers, operations::Operation},
    state::Blocks,
};
use std::{sync::Arc, time::Duration};

/// Judges one request.
#[derive(Debug)]
pub struct Trial<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) record: &'a mut Record,
    /// The head of the request, while it is proven.
    head: Option<&'a Head<'a>>,
    clock: &'a Clock,
    received: Timestamp,
    lap: Stopwatch,
    /// The blocks by the bank's calls, for an early refusal (CTL-2).
    blocks: Option<Arc<Blocks>>,
    /// The refusals of checks before the certificate that are observed for some senders: [`Self::confirm`] decides on them.
    undecided: Vec<(Stage, Refusal)>,
}

impl<'a> Trial<'a> {
    /// Opens the trial of a request whose head has just been received. `snapshot` judges the request, `record` notes each check.
    pub fn open(snapshot: &'a Snapshot, clock: &'a Clock, record: &'a mut Record) -> Self {
        Self {
            snapshot,
            head: None,
            clock,
            received: clock.now(),
            lap: record.opened(),
            record,
            blocks: None,
            undecided: Vec::new(),
        }
    }

    /// Also refuses TPPs that the bank blocks by a call before their bodies are read (CTL-2). [`authorise`](super::authorise) decides in any
    /// case.
    #[must_use]
    pub fn heeding(self, blocks: Arc<Blocks>) -> Self {
        Self {
            blocks: Some(blocks),
            ..self
        }
    }

    /// Refuses if the bank blocks one of these TPPs by a call.
    pub(super) fn heed_blocks(
        &mut self,
        tpps: &[TppId],
        operation: &Operation,
    ) -> Result<(), Refusal> {
        let Some(blocks) = self.blocks.as_ref().filter(|blocks| !blocks.is_empty()) else {
            return Ok(());
        };
        match standing::heed(blocks, tpps, operation, self.received) {
            Ok(()) => Ok(()),
            Err(refusal) => self.require(Stage::Register, Err(refusal)),
        }
    }

    /// Takes the head of the request.
    pub(super) const fn read(&mut self, head: &'a Head<'a>) {
        self.head = Some(head);
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
        if result.is_err() {
            self.name_caller(stage);
        }
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

    /// Judges another part of a check that held: a refusal replaces its verdict.
    pub(super) fn judge_further<T>(
        &mut self,
        stage: Stage,
        result: Result<T, Refusal>,
    ) -> Result<Judged<T>, Refusal> {
        let refusal = match result {
            Ok(evidence) => return Ok(Judged::Held(evidence)),
            Err(refusal) => refusal,
        };
        let reason = refusal.reason();
        let waiver = self.observe(stage, refusal);
        let verdict = match &waiver {
            Ok(_) => Verdict::Waived(reason),
            Err(refusal) => Verdict::Refused(refusal.reason()),
        };
        self.record.replace(stage, verdict);
        waiver.map(Judged::Waived)
    }

    /// Skips a check without input. `_because` is the waiver of an earlier check whose evidence this check needs: without a waiver no check
    /// can be skipped.
    pub(super) fn pass_over<T>(&mut self, stage: Stage, _because: &Waiver) -> Judged<T> {
        self.note(stage, Verdict::Skipped);
        Judged::without_evidence()
    }

    /// Decides again on the checks before the certificate, because now the sender is known: a TPP may have its own observed checks.
    ///
    /// # Errors
    /// The refusal of the first of these checks that is enforced for the sender.
    pub(super) fn confirm(&mut self) -> Result<(), Refusal> {
        for (stage, refusal) in std::mem::take(&mut self.undecided) {
            let whose = Whose::Of(self.caller());
            let enforcement = &self.snapshot.policy.enforcement;
            let Ruling { observed, decision } = enforcement.rule(stage, refusal, whose);
            self.record.replace_observed(stage, &observed);
            if let Err(refusal) = decision {
                self.record
                    .replace(stage, Verdict::Refused(refusal.reason()));
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Decides on a failed check, and notes the faults that are only observed.
    ///
    /// # Errors
    /// The faults that refuse.
    pub(super) fn observe(&mut self, stage: Stage, refusal: Refusal) -> Result<Waiver, Refusal> {
        let enforcement = &self.snapshot.policy.enforcement;
        let whose = if stage < Stage::Certificate && enforcement.has_tpps() {
            self.undecided.push((stage, refusal.clone()));
            Whose::Any
        } else {
            Whose::Of(self.caller())
        };
        let Ruling { observed, decision } = enforcement.rule(stage, refusal, whose);
        self.record.note_observed(stage, &observed);
        decision
    }

    fn caller(&self) -> Caller<'_> {
        Caller {
            shown: self.record.shown_tpp(),
            proven: self.record.proven_tpp(),
        }
    }

    #[cold]
    fn waive<T>(&mut self, stage: Stage, refusal: Refusal) -> Result<Judged<T>, Refusal> {
        let reason = refusal.reason();
        match self.observe(stage, refusal) {
            Ok(waiver) => {
                self.note(stage, Verdict::Waived(reason));
                Ok(Judged::Waived(waiver))
            }
            Err(refusal) => {
                self.note(stage, Verdict::Refused(refusal.reason()));
                self.name_caller(stage);
                Err(refusal)
            }
        }
    }

    /// Notes whose request was refused before its certificate was judged: the operator looks for refusals by TPP. A request without a
    /// signature is nobody's, and floods of cheap refusals must stay cheap.
    #[cold]
    fn name_caller(&mut self, stage: Stage) {
        let is_early = Stage::Match < stage && stage < Stage::Certificate;
        let Some(head) = self.head.filter(|_| is_early) else {
            return;
        };
        if headers::SIGNATURE.get_filled(&head.fields).is_some()
            && self.snapshot.rates.name(head.peer)
        {
            self.record.note_claimed(certificate::claimed_tpp(head));
        }
    }

    pub(super) fn note(&mut self, stage: Stage, verdict: Verdict) {
        let took = if stage.is_timed() {
            self.lap.lap()
        } else {
            Duration::ZERO
        };
        self.record.note(stage, verdict, took);
    }
}
