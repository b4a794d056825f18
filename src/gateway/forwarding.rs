//! Forwarding: an admitted request goes to the core, and the core's answer to the caller.
//!
//! Everything that the answer settles is settled before its head goes out, so that the caller can rely on it. Deliberately not
//! here: the gateway's own answer where forwarding fails, which [`super::gate`] gives.

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
    config,
    interface::{QuotaLeft, Reason, Refusal},
    signing::AnswerSigning,
    state::StateStore,
    telemetry::Telemetry,
};
use http::response::Parts;
use pingora::{
    Error, ErrorType, Result, prelude::timeout, protocols::http::ServerSession as Session,
};
use std::{pin::pin, sync::Arc, time::Duration};

/// The way of admitted requests.
#[derive(Debug)]
pub(super) struct Forwarder {
    upstream: Upstream,
    inner_hosts: InnerHosts,
    inner_report: AddressReport,
    kept: Arc<StateStore>,
    telemetry: Arc<Telemetry>,
    closing: Arc<Closing>,
    signing: Option<AnswerSigning>,
    /// How long the whole answer may take, from the end of its head (HTTP-9).
    answer_timeout: Duration,
    in_flight: InFlight,
}

/// Why a request has no answer of the core's.
pub(super) enum ForwardFailure {
    /// The core does not know the PSU that was to be learned: the gateway refuses the request (SCA-19).
    PsuUnknown(Box<Refusal>),
    /// The core has as many requests as it may have, in all or of this TPP (ERR-4).
    TooManyInFlight,
    /// The core's error is not JSON and is replaced; its status stays (ERR-6).
    ErrorReplaced(u16),
    /// Either side, or the gateway itself, failed.
    Error(Box<Error>),
}

impl From<Box<Error>> for ForwardFailure {
    fn from(error: Box<Error>) -> Self {
        Self::Error(error)
    }
}

impl Forwarder {
    /// Forwards to one core, `upstream`, with the limits of `settings`.
    pub(super) fn new(
        upstream: Upstream,
        settings: &config::Upstream,
        answer_timeout: Duration,
        signing: Option<AnswerSigning>,
        kept: Arc<StateStore>,
        telemetry: Arc<Telemetry>,
        closing: Arc<Closing>,
    ) -> Self {
        Self {
            upstream,
            inner_hosts: InnerHosts::new(settings.address.ip(), &settings.host),
            inner_report: AddressReport::new(Arc::clone(&telemetry)),
            in_flight: InFlight::new(
                settings.max_in_flight,
                settings.max_in_flight_per_tpp,
                Arc::clone(&telemetry),
            ),
            kept,
            telemetry,
            closing,
            signing,
            answer_timeout,
        }
    }

    /// Sends an admitted request to the core, and the core's answer to the caller.
    ///
    /// # Errors
    /// There is no answer, none that goes on, or the caller did not get all of it.
    pub(super) async fn forward(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
        admitted: &Admitted,
    ) -> Result<(), ForwardFailure> {
        let tpp = admitted.tpp().map(|tpp| tpp.certificate().tpp_id());
        let Some(_in_flight) = self.in_flight.begin(tpp) else {
            if let Some(claim) = admitted.claim() {
                settle::give_back(claim, &self.kept, false).await;
            }
            return Err(ForwardFailure::TooManyInFlight);
        };
        let CoreAnswer {
            mut head,
            mut body,
            took,
        } = match pin!(self.upstream.send(admitted, session)).await {
            Ok(answer) => answer,
            Err(failure) => {
                self.undo(admitted, &failure).await;
                return Err(failure.error.into());
            }
        };
        exchange.set_core_took(took);
        let bodiless = core_head::is_bodiless(&head, admitted.method());
        let left = pin!(self.settle(admitted, &head, exchange)).await?;
        let status = head.status.as_u16();
        if status >= 400 && !core_head::is_json(&head) {
            return Err(ForwardFailure::ErrorReplaced(status));
        }
        exchange.set_outcome(Outcome::Forwarded(status));
        let link = self.rewrite_head(&mut head, admitted, left, exchange)?;
        self.closing.end_with_answer(session);
        let inspect = |part: &[u8]| self.inspect(part, exchange);
        let mut answer = AnswerBody {
            core: &mut body,
            link,
            inspect: &inspect,
        };
        let sending = relay::send(session, head, &mut answer, self.signing.as_ref());
        match timeout(self.answer_timeout, pin!(sending)).await {
            Ok(sent) => sent?,
            Err(_) => {
                self.telemetry.cut("slow_answer");
                return Err(slow_answer().into());
            }
        }
        self.upstream.recycle(body, bodiless).await;
        Ok(())
    }

    /// Gives back what a request took that the core never answered (QUO-5, REP-1). One whose caller left, or that the core was
    /// too slow for, stays counted: the core may have done it.
    async fn undo(&self, admitted: &Admitted, failure: &SendFailure) {
        // An answer that is not taken is none that the caller had.
        let unreachable = failure::refusal(&failure.error).is_some_and(|refusal| {
            matches!(
                refusal.reason(),
                Reason::UpstreamUnreachable | Reason::UpstreamError
            )
        });
        if let Some(claim) = admitted.claim()
            && (unreachable || !failure.connected)
        {
            settle::give_back(claim, &self.kept, failure.connected).await;
        }
    }

    /// Settles what the core's answer decides; what is left of the quota.
    ///
    /// # Errors
    /// The core refuses a PSU that is being learned: the gateway answers by itself (SCA-19).
    async fn settle(
        &self,
        admitted: &Admitted,
        head: &Parts,
        exchange: &Exchange<'_>,
    ) -> Result<Option<QuotaLeft>, ForwardFailure> {
        if settle::is_not_learned(admitted, head.status, &head.headers) {
            settle::answered(admitted, &self.kept, 401).await;
            return Err(ForwardFailure::PsuUnknown(Box::new(admitted.not_learned())));
        }
        let left = settle::answered(admitted, &self.kept, head.status.as_u16()).await;
        if head.status.is_success() {
            let account_ids = &exchange.in_use().snapshot.policy.account_ids;
            let (now, kept, telemetry) = (exchange.now(), &*self.kept, &*self.telemetry);
            settle::learn(admitted, &head.headers, now, account_ids, kept, telemetry).await;
        }
        Ok(left)
    }

    /// Makes the head of the core's answer the gateway's; the writer of the link that its body gets, if any.
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

    /// Looks at the first part of an answer's body, as it came (FWD-7). The gateway's own page is nobody's secret.
    fn inspect(&self, part: &[u8], exchange: &Exchange<'_>) {
        let page = Some(exchange.in_use().links.page());
        if self.inner_hosts.is_linked_in(part, page) {
            let (place, action) = (AddressPlace::Body, AddressAction::Passed);
            self.inner_report
                .report(place, action, exchange.operation(), exchange.now());
        }
    }
}

/// The whole answer took too long (HTTP-9). What the caller has of it ends where it is.
fn slow_answer() -> Box<Error> {
    Error::explain(ErrorType::WriteTimedout, "the whole answer").into_down()
}
