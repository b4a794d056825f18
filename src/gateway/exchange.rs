//! One request's exchange: its facts from the end of the request's head to the end of its answer.
//!
//! Invariant: an exchange has one outcome and is reported once, also if its caller disconnects or the process cuts it off. All
//! counters and log lines of exchanges belong into [`Exchange::report`].

use super::{
    answer_head::AnswerContext,
    answer_signature::AnswerSignatures,
    drain::Underway,
    opening::{Opening, TraceIds},
};
use crate::{
    admission::{self, ObservedFault, Outcome, Record, Trial},
    clock::{Clock, Timestamp},
    in_use::InUse,
    interface::{
        Reason, Refusal, Side,
        headers::{RequestId, trace::TraceContext},
        operations::Operation,
    },
    sca::Links,
    state::Blocks,
    telemetry::{CoreEndpoint, CoreTook, CutCause, FailureKind, Finished, Subject, Telemetry},
    trust::Certificate,
    upstreams::Endpoint,
};
use http::HeaderValue;
use pingora::protocols::http::ServerSession as Session;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use uuid::Uuid;

/// The time for which the core may owe an answer before it is at fault if the caller leaves: a second, less the part of a caller's time-out
/// of one second that passes before the core has the request.
const OWED: Duration = Duration::from_millis(900);

/// The operator's texts about a request that was not finished: the process ended, or the thread panicked.
const PROCESS_ENDED: &str = "the process ended";
const DEFECT: &str = "a defect of the gateway ended the request";

/// The counter and the telemetry of exchanges.
#[derive(Debug)]
pub(super) struct Ledger {
    clock: Clock,
    telemetry: Arc<Telemetry>,
    underway: Arc<Underway>,
    hsts: Option<HeaderValue>,
    trace_ids: TraceIds,
}

impl Ledger {
    /// Creates exchanges that use `clock` and report to `telemetry`. Their answers have this Strict-Transport-Security.
    pub(super) fn new(clock: Clock, telemetry: Arc<Telemetry>, hsts: Option<HeaderValue>) -> Self {
        Self {
            clock,
            hsts,
            telemetry,
            underway: Arc::default(),
            trace_ids: TraceIds::default(),
        }
    }

    /// The ids of traces and spans.
    pub(super) const fn trace_ids(&self) -> &TraceIds {
        &self.trace_ids
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
    pub(super) fn begin(&self, in_use: Arc<InUse>, opening: Opening) -> Exchange<'_> {
        self.underway.begin();
        self.telemetry.request_begun();
        Exchange {
            ledger: self,
            in_use,
            record: Record::open(),
            opening,
            id: None,
            outcome: None,
            operator_text: None,
            core: None,
            endpoint: None,
            owed: None,
            is_audited: false,
            written: None,
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
    opening: Opening,
    /// `id` of the gateway's own error answer.
    id: Option<Uuid>,
    outcome: Option<Outcome>,
    operator_text: Option<String>,
    core: Option<CoreTook>,
    endpoint: Option<Arc<CoreEndpoint>>,
    /// How long the core had owed the answer when the caller left.
    owed: Option<Duration>,
    is_audited: bool,
    /// The bytes of the answer's body that were written, if not all were.
    written: Option<u64>,
    reported: bool,
}

impl Exchange<'_> {
    /// The configuration of the request, unchanged until the exchange ends.
    pub(super) fn in_use(&self) -> &InUse {
        &self.in_use
    }

    /// Opens the trial of the request, which records the decision. `blocks` are those by the bank's calls. Also returns the SCA links.
    pub(super) fn trial(&mut self, blocks: Arc<Blocks>) -> (Trial<'_>, &Arc<Links>) {
        let trial = Trial::open(&self.in_use.snapshot, &self.ledger.clock, &mut self.record);
        (trial.heeding(blocks), &self.in_use.links)
    }

    /// The facts that the answer needs.
    pub(super) fn answer_context(&self) -> AnswerContext<'_> {
        AnswerContext {
            operation: self.operation(),
            request_id: self.opening.request_id.as_ref(),
            hsts: self.ledger.hsts.as_ref(),
            catalogue: &self.in_use.snapshot.catalogue,
            record: &self.record,
            signatures: self
                .in_use
                .response_signing
                .as_ref()
                .map(AnswerSignatures::new),
        }
    }

    /// The operation, if the request names one.
    pub(super) fn operation(&self) -> Option<&Operation> {
        self.record.operation().map(Arc::as_ref)
    }

    /// Whose request it is (FWD-8).
    pub(super) fn subject(&self) -> Subject {
        Subject::of(&self.record, self.opening.http.caller)
    }

    /// The place in a trace.
    pub(super) const fn trace(&self) -> TraceContext {
        self.opening.trace
    }

    /// Makes the id of the gateway's own error answer (ERR-1), by which its line is found.
    pub(super) fn make_id(&mut self) -> Uuid {
        *self.id.insert(Uuid::new_v4())
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.ledger.clock.now()
    }

    /// Sets the outcome that is known so far.
    pub(super) const fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    /// Whether the outcome says that the caller got an answer which it had asked for.
    pub(super) const fn is_answered(&self) -> bool {
        matches!(
            self.outcome,
            Some(Outcome::Forwarded(_) | Outcome::Answered)
        )
    }

    /// Sets the outcome of an answer of which the caller did not get all: the gateway cut it for this cause, or the caller left.
    pub(super) fn set_undelivered(&mut self, cut: Option<CutCause>) {
        self.outcome = Some(match cut {
            Some(_) => Outcome::Cut(Side::Caller),
            None => self.abandoned(),
        });
        if self.operator_text.is_none() {
            self.set_operator_text(cut.map(CutCause::name));
        }
    }

    /// Whether the core may have executed the request, as far as the gateway knows: it has answered, or its answer was lost.
    pub(super) const fn may_be_executed(&self) -> bool {
        self.core.is_some() || matches!(self.outcome, Some(Outcome::Failed(Reason::OutcomeUnknown)))
    }

    /// Notes how many bytes of the answer's body were written, if not all that the HTTP layer took.
    pub(super) const fn set_written(&mut self, bytes: Option<u64>) {
        self.written = bytes;
    }

    /// Sets the part of a refusal that only the operator reads.
    pub(super) fn set_operator_text(&mut self, text: Option<&str>) {
        self.operator_text = text.map(str::to_owned);
    }

    /// Notes faults of SCA that are found after the request was admitted, and only observed: those for which it would be refused after the
    /// end of learning (SCA-19), and those that came up on the way (SCA-13).
    pub(super) fn note_late(&mut self, faults: &[ObservedFault]) {
        self.record.note_late(faults);
    }

    /// Notes what is known of a request that is refused before its checks.
    pub(super) fn note_unjudged(
        &mut self,
        operation: &Arc<Operation>,
        certificate: Arc<Certificate>,
    ) {
        self.record.note_unjudged(operation, certificate);
    }

    /// Counts a refused request towards the rate of its address, if its checks have not (QUO-12). Returns the refusal that it gets.
    pub(super) fn count_refused(&mut self, refusal: Refusal, peer: Option<SocketAddr>) -> Refusal {
        let (trial, _) = self.trial(Arc::default());
        admission::count_refused(refusal, peer, trial)
    }

    /// Notes the endpoint that the request was sent to last, or to which no connection could be made.
    pub(super) fn set_endpoint(&mut self, endpoint: &Endpoint) {
        self.endpoint = Some(Arc::clone(endpoint.named()));
    }

    /// Sets the status and the time of the head of the core's answer.
    pub(super) const fn set_core_answered(&mut self, status: u16, took: Duration) {
        let status = Some(status);
        self.core = Some(CoreTook { status, took });
    }

    /// Notes that the caller left while the core owed the answer, or a part of it, for this time. Returns whether that is the core's fault.
    pub(super) fn set_left_at_core(&mut self, owed: Duration) -> bool {
        self.core.get_or_insert(CoreTook {
            status: None,
            took: owed,
        });
        self.owed = Some(owed);
        self.abandoned().at_fault() == Some(Side::Core)
    }

    fn abandoned(&self) -> Outcome {
        let is_due = self.owed.is_some_and(|owed| owed >= OWED);
        Outcome::Abandoned(if is_due { Side::Core } else { Side::Caller })
    }

    /// Notes that the audit has, or may get, a record of forwarding the request.
    pub(super) const fn set_audited(&mut self) {
        self.is_audited = true;
    }

    /// X-Request-ID, if it is well-formed.
    pub(super) const fn request_id(&self) -> Option<&RequestId> {
        self.opening.request_id.as_ref()
    }

    /// Ends the exchange of this session.
    pub(super) fn end(&mut self, session: &Session) {
        let count = |bytes: usize| Some(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.opening.http.received = count(session.body_bytes_read());
        let sent = count(session.body_bytes_sent());
        self.opening.http.sent = self.written.or(sent);
        self.report(session.response_written().map(|head| head.status.as_u16()));
        self.reported = true;
    }

    fn report(&self, status: Option<u16>) {
        if self.owed.is_some() {
            self.ledger
                .telemetry
                .upstream_failed(FailureKind::Abandoned);
        }
        let finished = Finished {
            record: &self.record,
            outcome: self.outcome.unwrap_or_else(|| self.abandoned()),
            status,
            id: self.id,
            request_id: self.opening.request_id.as_ref(),
            trace: Some(self.opening.trace),
            http: self.opening.http,
            operator: self.operator_text.as_deref(),
            core: self.core,
            endpoint: self.endpoint.as_ref(),
            is_audited: self.is_audited,
            at: self.ledger.clock.log_time(),
        };
        self.ledger.telemetry.take(&self.in_use.handles, finished);
    }
}

/// An exchange that is dropped before its end was cut off with the process, or by a panic. It is reported too.
impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if !self.reported {
            self.outcome = Some(Outcome::Cut(Side::Gateway));
            let text = match std::thread::panicking() {
                true => DEFECT,
                false => PROCESS_ENDED,
            };
            self.set_operator_text(Some(text));
            self.report(None);
        }
        self.ledger.underway.end();
    }
}
