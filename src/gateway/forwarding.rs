//! Forwarding: sends an admitted request to the core, and the core's answer to the caller.
//!
//! Every change to the state that depends on the answer is made before the answer's head is sent, so the caller can rely on it.
//! Deliberately not here: the gateway's own answer if forwarding fails, which [`super::gate`] sends.

use super::{
    answer_head::{write_common_headers, write_quota_headers},
    audited,
    caller_watch::is_connected,
    closing::Closing,
    core_head,
    delivery::note_left,
    error_answer,
    exchange::Exchange,
    failure::{self, ForwardFailure},
    inner_address::{AddressReport, InnerHosts},
    read_ahead::ReadAhead,
    relay::{self, AnswerBody},
    sca_link, settle,
    upstream::{CoreAnswer, Destination, SendFailure, Upstream, broken_off},
};
use crate::{
    admission::{Admitted, Outcome, UnderWay},
    clock::Stopwatch,
    config::ListenerLimits,
    in_use::Current,
    interface::QuotaLeft,
    state::{Removal, StateStore},
    telemetry::{AddressAction, AddressPlace, CutCause, FailureKind, Telemetry},
    upstreams::{Failure, Group, InFlightRequest, RequestRoom, TppMark},
};
use http::{Version, response::Parts};
use pingora::{Error, ErrorSource, ErrorType, Result, protocols::http::ServerSession as Session};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::timeout;

/// Forwards admitted requests.
#[derive(Debug)]
pub(super) struct Forwarder {
    upstream: Upstream,
    read_ahead: ReadAhead,
    inner_report: AddressReport,
    store: Arc<StateStore>,
    telemetry: Arc<Telemetry>,
    closing: Arc<Closing>,
    /// The configuration in use, which a reload may replace while a request waits.
    current: Arc<Current>,
    /// The time-out of the whole answer, from the end of its head (HTTP-9).
    answer_timeout: Duration,
}

/// A request that the core answered.
struct Answered<'a> {
    admitted: &'a Admitted,
    /// The last removal of something of the PSU before the request went to the core, if the answer may teach.
    last_removal: Option<Removal>,
    group: &'a Group,
    answer: CoreAnswer,
    in_flight: InFlightRequest,
}

impl Forwarder {
    /// Creates a forwarder to the core.
    pub(super) fn new(
        upstream: Upstream,
        limits: &ListenerLimits,
        store: Arc<StateStore>,
        telemetry: Arc<Telemetry>,
        closing: Arc<Closing>,
        current: Arc<Current>,
    ) -> Self {
        Self {
            upstream,
            read_ahead: ReadAhead::new(limits.read_ahead, Arc::clone(&telemetry)),
            inner_report: AddressReport::new(Arc::clone(&telemetry)),
            store,
            telemetry,
            closing,
            current,
            answer_timeout: limits.answer_timeout,
        }
    }

    /// Sends an admitted request to the core, and the core's answer to the caller.
    ///
    /// # Errors
    /// There is no acceptable answer, or the caller did not receive all of it.
    pub(super) async fn forward(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
        admitted: &mut Admitted,
        room: Option<RequestRoom>,
    ) -> Result<(), ForwardFailure> {
        let group = exchange.in_use().upstreams.of(admitted.operation());
        let Some(group) = group.map(Arc::clone) else {
            return Err(Error::new(ErrorType::InternalError).into());
        };
        let tpp = admitted.tpp().map(|tpp| tpp.certificate().tpp_id());
        let in_flight = match group.in_flight().begin(tpp, room).await {
            Ok(in_flight) => in_flight,
            Err(full) => {
                self.give_back(admitted).await;
                return Err(ForwardFailure::TooManyInFlight(full));
            }
        };
        if in_flight.has_waited()
            && let Err(error) = is_connected(session).await
        {
            self.give_back(admitted).await;
            return Err(error.into());
        }
        pin!(self.record(admitted, exchange)).await?;
        let tpp = in_flight.tpp();
        let last_removal = match admitted.learns() {
            Some(_) => Box::pin(settle::last_removal(admitted, &self.store)).await,
            None => None,
        };
        let in_use = exchange.in_use();
        let to = Destination::of(in_use, &group);
        let mut under_way = UnderWay::new(admitted, &in_use.snapshot, &*self.current, &self.store);
        let answered = pin!(self.upstream.send(to, &mut under_way, tpp, session)).await;
        exchange.note_late(&under_way.observed());
        let admitted = &*admitted;
        let judge = |answer| self.judge_size(answer, &group, admitted, tpp);
        let answer = match answered.and_then(judge) {
            Ok(answer) => answer,
            Err(failure) => {
                if let Some(endpoint) = &failure.endpoint {
                    exchange.set_endpoint(endpoint);
                }
                settle::undo(admitted, &failure, &self.store, &self.telemetry).await;
                if let Some(abandoned) = failure.abandoned {
                    let endpoint = abandoned.endpoint();
                    note_left(session, exchange, &failure.error, failure.took, endpoint);
                    abandoned.end(in_flight, group.settings().timeout);
                }
                let refused = failure.refused.map(ForwardFailure::NoLongerPermitted);
                return Err(refused.unwrap_or_else(|| failure.error.into()));
            }
        };
        let status = answer.head.status.as_u16();
        let endpoint = answer.body.endpoint();
        exchange.set_endpoint(&endpoint);
        // Other answers may still break off.
        if status >= 500 {
            group.answered(&endpoint, status, tpp);
        }
        let answered = Answered {
            admitted,
            last_removal,
            group: &group,
            answer,
            in_flight,
        };
        let answered = pin!(self.answer(session, exchange, answered)).await;
        if status < 500 {
            match answered.as_ref().err().and_then(ForwardFailure::of_core) {
                Some(kind) => group.failed(&endpoint, kind.name(), Failure::OfRequest(tpp)),
                None => group.answered(&endpoint, status, tpp),
            }
        }
        answered
    }

    /// Sends the core's answer to the caller.
    ///
    /// # Errors
    /// It is not acceptable, or the caller did not receive all of it.
    async fn answer(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
        answered: Answered<'_>,
    ) -> Result<(), ForwardFailure> {
        let Answered {
            admitted, group, ..
        } = answered;
        let mut in_flight = answered.in_flight;
        let core = answered.answer;
        let (mut head, mut body) = (core.head, core.body);
        let status = head.status.as_u16();
        exchange.set_core_answered(status, core.took);
        let bodiless = core_head::is_bodiless(&head, admitted.method());
        let left = pin!(self.settle(admitted, answered.last_removal, &head, exchange)).await?;
        let (safe, read_timeout) = (admitted.method().is_safe(), group.settings().read_timeout);
        let mut time = self.answer_timeout;
        let (mut limit, mut error_text) = (group.answer_limit(admitted.operation()), None);
        if status >= 400 {
            let begun = Stopwatch::start();
            let judging = error_answer::read_json(&head, &mut body, session, safe, read_timeout);
            let judged = timeout(time, pin!(judging)).await;
            match self.judge_sent(judged.ok(), true, session, exchange) {
                Ok(Some(text)) => error_text = Some(text),
                Ok(None) => {
                    self.telemetry.upstream_failed(failure::NOT_JSON);
                    return Err(ForwardFailure::ErrorReplaced(status));
                }
                Err(error) => {
                    note_left(session, exchange, &error, begun.elapsed(), &body.endpoint());
                    return Err(broken_off(error, safe, body, in_flight, group));
                }
            }
            time = time.saturating_sub(begun.elapsed());
        }
        exchange.set_outcome(Outcome::Forwarded(status));
        self.rewrite_head(&mut head, group, admitted, left, exchange)?;
        if let Some(text) = error_text.filter(|_| status == 401) {
            let linked = sca_link::write(admitted, &mut head, &mut body, &text);
            // The limit is about what the core sends.
            limit = limit.max(linked.map_err(failure::no_link)?);
        }
        if session.req_header().version == Version::HTTP_10
            && core_head::frame_for_1_0(&mut head.headers)
        {
            session.set_keepalive(None);
        }
        self.closing.end_with_answer(session);
        let inspect = |part: &[u8]| self.inspect(part, group, exchange);
        let mut answer = AnswerBody {
            core: &mut body,
            left: limit,
            watched: safe,
            read_timeout,
            awaits_core: false,
            since: core.since,
            inspect: &inspect,
            ahead: self.read_ahead.begin(),
            in_flight: &mut in_flight,
        };
        let sending = relay::send(session, head, &mut answer, exchange.answer_context());
        let sent = timeout(time, pin!(sending)).await;
        let (awaits_core, since) = (answer.awaits_core, answer.since);
        drop(answer);
        let judged = self.judge_sent(sent.ok(), awaits_core, session, exchange);
        if let Err(error) = judged {
            if awaits_core {
                note_left(session, exchange, &error, since.elapsed(), &body.endpoint());
            }
            return Err(broken_off(error, safe, body, in_flight, group));
        }
        self.upstream.recycle(body, bodiless).await;
        Ok(())
    }

    /// Puts the request into the audit, if its method is unsafe.
    async fn record(
        &self,
        admitted: &Admitted,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), ForwardFailure> {
        let (store, audit) = (&self.store, self.telemetry.audit());
        let recorded = audited::record_forwarding(admitted, exchange, store, audit);
        if recorded.await.is_err() {
            self.give_back(admitted).await;
            return Err(ForwardFailure::NotAudited);
        }
        Ok(())
    }

    /// Releases the quota and the request id of a request that the core never got.
    async fn give_back(&self, admitted: &Admitted) {
        if let Some(claim) = admitted.claim() {
            settle::give_back(claim, &self.store, false, &self.telemetry).await;
        }
    }

    /// Counts an answer that was not read or not sent to its end; `None` if its time was over.
    ///
    /// # Errors
    /// It was not.
    fn judge_sent<T>(
        &self,
        sent: Option<Result<T>>,
        awaits_core: bool,
        session: &Session,
        exchange: &mut Exchange<'_>,
    ) -> Result<T> {
        let error = match sent {
            Some(Ok(done)) => return Ok(done),
            Some(Err(error)) => {
                failure::count_blocked(&self.telemetry, session, &error);
                error
            }
            None => {
                self.telemetry.cut(CutCause::SlowAnswer);
                exchange.set_operator_text(Some(failure::SLOW_ANSWER));
                failure::slow_answer(awaits_core)
            }
        };
        self.count_failed_answer(&error);
        Err(error)
    }

    /// Refuses an answer that announces more bytes than its limit (FWD-7).
    fn judge_size(
        &self,
        answer: CoreAnswer,
        group: &Group,
        admitted: &Admitted,
        tpp: TppMark,
    ) -> std::result::Result<CoreAnswer, SendFailure> {
        let announced = core_head::content_length(&answer.head);
        let is_small =
            announced.is_none_or(|length| length <= group.answer_limit(admitted.operation()));
        if is_small || core_head::is_bodiless(&answer.head, admitted.method()) {
            return Ok(answer);
        }
        let error = failure::large_answer();
        self.count_failed_answer(&error);
        let (endpoint, failure) = (answer.body.endpoint(), Failure::OfRequest(tpp));
        group.failed(&endpoint, FailureKind::Garbage.name(), failure);
        let error = failure::unanswered(error, admitted.method().is_safe(), true);
        Err(SendFailure::rejected(&answer, error))
    }

    /// Counts an answer that exceeds its limit, or whose body broke off.
    fn count_failed_answer(&self, error: &Error) {
        if *error.esource() == ErrorSource::Upstream
            && let Some(kind) = failure::kind(error, true)
        {
            self.telemetry.upstream_failed(kind);
        }
        if *error.etype() == failure::ANSWER_REFUSED {
            self.telemetry.cut(CutCause::LargeAnswer);
        }
    }

    /// Applies the core's answer to the state; returns the remaining quota.
    ///
    /// # Errors
    /// The core does not confirm a PSU or an agreement that the gateway wants to learn: the gateway answers by itself (SCA-19, SCA-22).
    async fn settle(
        &self,
        admitted: &Admitted,
        last_removal: Option<Removal>,
        head: &Parts,
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<QuotaLeft>, ForwardFailure> {
        let snapshot = &exchange.in_use().snapshot;
        if let Some(unconfirmed) = settle::not_learned(admitted, head.status, &head.headers)
            && let Err(refusal) = admitted.not_learned(unconfirmed, &snapshot.policy.enforcement)
        {
            settle::answered(admitted, &self.store, 401, &self.telemetry).await;
            return Err(ForwardFailure::PsuUnknown(Box::new(refusal)));
        }
        let status = head.status.as_u16();
        let left = settle::answered(admitted, &self.store, status, &self.telemetry).await;
        settle::note_use(admitted, head.status, exchange.now(), &self.store);
        if admitted.learns().is_some() {
            let (now, store, telemetry) = (exchange.now(), &self.store, &self.telemetry);
            let learning = settle::learn(
                admitted,
                last_removal,
                head,
                snapshot,
                now,
                store,
                telemetry,
            );
            exchange.note_late(Box::pin(learning).await.as_slice());
        }
        Ok(left)
    }

    /// Turns the head of the core's answer into the gateway's.
    fn rewrite_head(
        &self,
        head: &mut Parts,
        group: &Group,
        admitted: &Admitted,
        left: Option<QuotaLeft>,
        exchange: &Exchange<'_>,
    ) -> Result<()> {
        core_head::clean(&mut head.headers, &group.settings().answer_headers);
        let catalogue = &exchange.in_use().snapshot.catalogue;
        let report = |place, action| self.inner_report.report(place, action, exchange);
        InnerHosts::new(&group.inner_names()).clean(&mut head.headers, catalogue, report);
        core_head::frame(head, core_head::is_bodiless(head, admitted.method()));
        if let Some(left) = left {
            write_quota_headers(&mut head.headers, left)?;
        }
        write_common_headers(head, &exchange.answer_context())
    }

    /// Searches the first part of an answer's body for inner addresses (FWD-7). Links to the bank's SCA page are not reported.
    fn inspect(&self, part: &[u8], group: &Group, exchange: &Exchange<'_>) {
        let page = Some(exchange.in_use().links.page());
        if InnerHosts::new(&group.inner_names()).is_linked_in(part, page) {
            self.inner_report
                .report(AddressPlace::Body, AddressAction::Passed, exchange);
        }
    }
}
