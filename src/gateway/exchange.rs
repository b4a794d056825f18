//! One request's exchange: its facts from the end of the request's head to the end of its answer.
//!
//! Invariant: an exchange has one outcome and is reported once, also if its caller disconnects or the process cuts it off. All
//! counters and log lines of exchanges belong into [`Exchange::report`].

use super::{answer_head::AnswerContext, drain::Underway};
use crate::{
    admission::{Outcome, Record, Trial},
    clock::{Clock, Timestamp},
    in_use::InUse,
    interface::{headers::RequestId, operations::Operation},
    sca::Links,
    telemetry::{CoreAnswered, Finished, Telemetry},
};
use http::HeaderValue;
use std::sync::Arc;

/// The counter and the telemetry of exchanges.
#[derive(Debug)]
pub(super) struct Ledger {
    clock: Clock,
    telemetry: Arc<Telemetry>,
    underway: Arc<Underway>,
    hsts: Option<HeaderValue>,
}

impl Ledger {
    /// Creates exchanges that use `clock` and report to `telemetry`. Their answers have this Strict-Transport-Security.
    pub(super) fn new(clock: Clock, telemetry: Arc<Telemetry>, hsts: Option<HeaderValue>) -> Self {
        Self {
            clock,
            hsts,
            telemetry,
            underway: Arc::default(),
        }
    }

    /// The telemetry that exchanges are reported to.
    pub(super) const fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// The pending requests.
    pub(super) const fn underway(&self) -> &Arc<Underway> {
        &self.underway
    }

    /// Begins an exchange that uses this configuration.
    pub(super) fn begin(&self, in_use: Arc<InUse>, request_id: Option<RequestId>) -> Exchange<'_> {
        self.underway.begin();
        self.telemetry.request_begun();
        Exchange {
            ledger: self,
            in_use,
            record: Record::open(),
            request_id,
            outcome: None,
            operator_text: None,
            core: None,
            reported: false,
        }
    }
}

/// One request's exchange.
#[derive(Debug)]
pub(super) struct Exchange<'l> {
    ledger: &'l Ledger,
    in_use: Arc<InUse>,
    record: Record,
    request_id: Option<RequestId>,
    outcome: Option<Outcome>,
    operator_text: Option<String>,
    core: Option<CoreAnswered>,
    reported: bool,
}

impl Exchange<'_> {
    /// The configuration of the request, unchanged until the exchange ends.
    pub(super) fn in_use(&self) -> &InUse {
        &self.in_use
    }

    /// Opens the trial of the request, which records the decision. Also returns the SCA links.
    pub(super) fn trial(&mut self) -> (Trial<'_>, &Arc<Links>) {
        let trial = Trial::open(&self.in_use.snapshot, &self.ledger.clock, &mut self.record);
        (trial, &self.in_use.links)
    }

    /// The facts that the answer needs.
    pub(super) fn answer_context(&self) -> AnswerContext<'_> {
        AnswerContext {
            operation: self.operation(),
            request_id: self.request_id.as_ref(),
            hsts: self.ledger.hsts.as_ref(),
            catalogue: &self.in_use.snapshot.catalogue,
        }
    }

    /// The operation, if the request names one.
    pub(super) fn operation(&self) -> Option<&Operation> {
        self.record.operation().map(Arc::as_ref)
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.ledger.clock.now()
    }

    /// Sets the outcome that is known so far.
    pub(super) const fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    /// Sets the part of a refusal that only the operator reads.
    pub(super) fn set_operator_text(&mut self, text: Option<&str>) {
        self.operator_text = text.map(str::to_owned);
    }

    /// Sets the head of the core's answer.
    pub(super) const fn set_core_answered(&mut self, core: CoreAnswered) {
        self.core = Some(core);
    }

    /// Ends the exchange. `status` is that of the sent answer; `None` if no answer was sent.
    pub(super) fn end(&mut self, status: Option<u16>) {
        self.report(status);
        self.reported = true;
    }

    fn report(&self, status: Option<u16>) {
        let finished = Finished {
            record: &self.record,
            outcome: self.outcome.unwrap_or(Outcome::Abandoned),
            status,
            request_id: self.request_id.as_ref(),
            operator: self.operator_text.as_deref(),
            core: self.core,
            at: self.now(),
        };
        self.ledger.telemetry.take(&self.in_use.handles, finished);
    }
}

/// An exchange that is dropped before its end was cut off with the process. It is reported too.
impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if !self.reported {
            self.outcome = Some(Outcome::Abandoned);
            self.report(None);
        }
        self.ledger.underway.end();
    }
}
