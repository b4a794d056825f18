//! Forwarding: sends an admitted request to the core, and the core's answer to the caller.
//!
//! Every change to the state that depends on the answer is made before the answer's head is sent, so the caller can rely on it.
//! Deliberately not here: the gateway's own answer if forwarding fails, which [`super::gate`] sends.

use super::{
    answer_head::{write_common_headers, write_quota_headers},
    closing::Closing,
    core_head,
    exchange::Exchange,
    failure,
    in_flight::InFlight,
    inner_address::{AddressAction, AddressPlace, AddressReport, InnerHosts},
    relay::{self, AnswerBody},
    sca_link::ScaLinkWriter,
    settle,
    upstream::{CoreAnswer, SendFailure, Upstream},
};
use crate::{
    admission::{Admitted, Outcome},
    config::{self, AnswerSizes},
    interface::{QuotaLeft, Reason, Refusal},
    signing::AnswerSigning,
    state::StateStore,
    telemetry::{CoreAnswered, Telemetry},
};
use http::{Version, response::Parts};
use pingora::{
    Error, ErrorSource, ErrorType, Result, prelude::timeout,
    protocols::http::ServerSession as Session,
};
use std::{pin::pin, sync::Arc, time::Duration};

/// Forwards admitted requests.
#[derive(Debug)]
pub(super) struct Forwarder {
    upstream: Upstream,
    answer_sizes: AnswerSizes,
    inner_hosts: InnerHosts,
    inner_report: AddressReport,
    store: Arc<StateStore>,
    telemetry: Arc<Telemetry>,
    closing: Arc<Closing>,
    signing: Option<AnswerSigning>,
    /// The time-out of the whole answer, from the end of its head (HTTP-9).
    answer_timeout: Duration,
    in_flight: InFlight,
}

/// The reason why a request gets no answer from the core.
pub(super) enum ForwardFailure {
    /// The core does not confirm the PSU that the gateway wants to learn: the gateway refuses the request (SCA-19).
    PsuUnknown(Box<Refusal>),
    /// The limit of pending requests at the core is reached, in total or for this TPP (ERR-4).
    TooManyInFlight,
    /// The core's error is not JSON and is replaced; its status stays (ERR-6).
    ErrorReplaced(u16),
    /// The client, the core or the gateway failed.
    Error(Box<Error>),
}

impl From<Box<Error>> for ForwardFailure {
    fn from(error: Box<Error>) -> Self {
        Self::Error(error)
    }
}

impl Forwarder {
    /// Creates a forwarder to one core, `upstream`, with the limits of `settings`.
    pub(super) fn new(
        upstream: Upstream,
        settings: &config::Upstream,
        answer_timeout: Duration,
        signing: Option<AnswerSigning>,
        store: Arc<StateStore>,
        telemetry: Arc<Telemetry>,
        closing: Arc<Closing>,
    ) -> Self {
        Self {
            upstream,
            answer_sizes: settings.answer_sizes.clone(),
            inner_hosts: InnerHosts::new(settings.address.ip(), &settings.host),
            inner_report: AddressReport::new(Arc::clone(&telemetry)),
            in_flight: InFlight::new(
                settings.max_in_flight,
                settings.max_in_flight_per_tpp,
                Arc::clone(&telemetry),
            ),
            store,
            telemetry,
            closing,
            signing,
            answer_timeout,
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
        admitted: &Admitted,
    ) -> Result<(), ForwardFailure> {
        let tpp = admitted.tpp().map(|tpp| tpp.certificate().tpp_id());
        let Some(_in_flight) = self.in_flight.begin(tpp) else {
            if let Some(claim) = admitted.claim() {
                settle::give_back(claim, &self.store, false, &self.telemetry).await;
            }
            return Err(ForwardFailure::TooManyInFlight);
        };
        let limit = self.answer_sizes.of(&admitted.operation().group);
        let answered = pin!(self.upstream.send(admitted, session)).await;
        let CoreAnswer {
            mut head,
            mut body,
            took,
        } = match answered.and_then(|answer| self.judge_size(answer, admitted, limit)) {
            Ok(answer) => answer,
            Err(failure) => {
                self.undo(admitted, &failure).await;
                return Err(failure.error.into());
            }
        };
        exchange.set_core_answered(CoreAnswered {
            status: head.status.as_u16(),
            took,
        });
        let bodiless = core_head::is_bodiless(&head, admitted.method());
        let left = pin!(self.settle(admitted, &head, exchange)).await?;
        let status = head.status.as_u16();
        if status >= 400 && !core_head::is_json(&head) {
            self.telemetry.upstream_failed(failure::NOT_JSON);
            return Err(ForwardFailure::ErrorReplaced(status));
        }
        exchange.set_outcome(Outcome::Forwarded(status));
        let link = self.rewrite_head(&mut head, admitted, left, exchange)?;
        if session.req_header().version == Version::HTTP_10
            && core_head::frame_for_1_0(&mut head.headers)
        {
            session.set_keepalive(None);
        }
        self.closing.end_with_answer(session);
        let inspect = |part: &[u8]| self.inspect(part, exchange);
        let mut answer = AnswerBody {
            core: &mut body,
            left: limit,
            link,
            inspect: &inspect,
        };
        let sending = relay::send(session, head, &mut answer, self.signing.as_ref());
        let sent = timeout(self.answer_timeout, pin!(sending)).await;
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.count_failed_answer(&error);
                failure::count_blocked(&self.telemetry, session, &error);
                return Err(error.into());
            }
            Err(_) => {
                self.telemetry.cut("slow_answer");
                return Err(slow_answer().into());
            }
        }
        self.upstream.recycle(body, bodiless).await;
        Ok(())
    }

    /// Refuses an answer that announces more bytes than its limit (FWD-7).
    fn judge_size(
        &self,
        answer: CoreAnswer,
        admitted: &Admitted,
        limit: usize,
    ) -> std::result::Result<CoreAnswer, SendFailure> {
        let announced = core_head::content_length(&answer.head);
        let is_small = announced.is_none_or(|length| length <= limit);
        if is_small || core_head::is_bodiless(&answer.head, admitted.method()) {
            return Ok(answer);
        }
        let error = failure::large_answer();
        self.count_failed_answer(&error);
        Err(SendFailure {
            error,
            connected: true,
        })
    }

    /// Counts an answer that exceeds its limit, or whose body broke off.
    fn count_failed_answer(&self, error: &Error) {
        if *error.esource() == ErrorSource::Upstream
            && let Some(kind) = failure::kind(error, true)
        {
            self.telemetry.upstream_failed(kind);
        }
        if *error.etype() == failure::ANSWER_REFUSED {
            self.telemetry.cut("large_answer");
        }
    }

    /// Releases the quota and the request id of a request that the core never answered (QUO-5, REP-1). A request stays counted if
    /// its caller disconnected or the core timed out: the core may have executed it.
    async fn undo(&self, admitted: &Admitted, failure: &SendFailure) {
        // A rejected answer never reached the caller.
        let unreachable = failure::refusal(&failure.error).is_some_and(|refusal| {
            matches!(
                refusal.reason(),
                Reason::UpstreamUnreachable | Reason::UpstreamError
            )
        });
        if let Some(claim) = admitted.claim()
            && (unreachable || !failure.connected)
        {
            settle::give_back(claim, &self.store, failure.connected, &self.telemetry).await;
        }
    }

    /// Applies the core's answer to the state; returns the remaining quota.
    ///
    /// # Errors
    /// The core refuses a PSU that the gateway wants to learn: the gateway answers by itself (SCA-19).
    async fn settle(
        &self,
        admitted: &Admitted,
        head: &Parts,
        exchange: &Exchange<'_>,
    ) -> Result<Option<QuotaLeft>, ForwardFailure> {
        if settle::is_not_learned(admitted, head.status, &head.headers) {
            settle::answered(admitted, &self.store, 401, &self.telemetry).await;
            return Err(ForwardFailure::PsuUnknown(Box::new(admitted.not_learned())));
        }
        let status = head.status.as_u16();
        let left = settle::answered(admitted, &self.store, status, &self.telemetry).await;
        if head.status.is_success() {
            let account_ids = &exchange.in_use().snapshot.policy.account_ids;
            let (now, store, telemetry) = (exchange.now(), &*self.store, &*self.telemetry);
            settle::learn(admitted, &head.headers, now, account_ids, store, telemetry).await;
        }
        Ok(left)
    }

    /// Turns the head of the core's answer into the gateway's; returns the writer of the SCA link for the body, if it needs one.
    fn rewrite_head(
        &self,
        head: &mut Parts,
        admitted: &Admitted,
        left: Option<QuotaLeft>,
        exchange: &Exchange<'_>,
    ) -> Result<Option<ScaLinkWriter>> {
        core_head::clean(&mut head.headers);
        let catalogue = &exchange.in_use().snapshot.catalogue;
        self.inner_hosts
            .clean(&mut head.headers, catalogue, |place, action| {
                self.inner_report
                    .report(place, action, exchange.operation(), exchange.now());
            });
        core_head::frame(head, core_head::is_bodiless(head, admitted.method()));
        let mut link = None;
        if head.status == http::StatusCode::UNAUTHORIZED
            && ScaLinkWriter::fits(core_head::content_length(head))
        {
            link = ScaLinkWriter::for_answer_to(admitted).map_err(failure::no_link)?;
            if link.is_some() {
                core_head::frame_changed_body(&mut head.headers);
            }
        }
        if let Some(left) = left {
            write_quota_headers(&mut head.headers, left)?;
        }
        write_common_headers(head, &exchange.answer_context())?;
        Ok(link)
    }

    /// Searches the first part of an answer's body for inner addresses (FWD-7). Links to the bank's SCA page are not reported.
    fn inspect(&self, part: &[u8], exchange: &Exchange<'_>) {
        let page = Some(exchange.in_use().links.page());
        if self.inner_hosts.is_linked_in(part, page) {
            let (place, action) = (AddressPlace::Body, AddressAction::Passed);
            self.inner_report
                .report(place, action, exchange.operation(), exchange.now());
        }
    }
}

/// The error if the whole answer took too long (HTTP-9). The caller's copy ends there.
fn slow_answer() -> Box<Error> {
    Error::explain(ErrorType::WriteTimedout, "the whole answer").into_down()
}
