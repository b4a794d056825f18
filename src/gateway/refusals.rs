//! Refusals on the connection of a request: sent whole, replaced where they cannot be signed, or noted as not sent.
//!
//! Invariant: a connection is reused only after a whole answer. Without one, the caller would take the answer to its next request for the
//! answer to this one. Deliberately not here: the bytes of a refusal ([`super::respond`]).

use super::{closing::Closing, delivery::cut_of, exchange::Exchange, failure, respond::Responder};
use crate::{admission::Outcome, interface::Refusal, telemetry::Telemetry};
use pingora::{Result, protocols::http::ServerSession as Session};
use std::pin::pin;

/// Whether an answer has begun: its head was written.
pub(super) fn has_begun(session: &Session) -> bool {
    let written = session.response_written();
    written.is_some_and(|head| !head.status.is_informational())
}

/// Sends refusals.
pub(super) struct Refusals<'a> {
    responder: &'a Responder,
    closing: &'a Closing,
    telemetry: &'a Telemetry,
}

impl<'a> Refusals<'a> {
    pub(super) const fn new(
        responder: &'a Responder,
        closing: &'a Closing,
        telemetry: &'a Telemetry,
    ) -> Self {
        Self {
            responder,
            closing,
            telemetry,
        }
    }

    /// Sends a refusal. Returns whether all of it was sent, or of the one in place of it.
    pub(super) async fn send(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
        refusal: &Refusal,
    ) -> bool {
        let sent = pin!(self.try_send(session, exchange, refusal)).await;
        match sent {
            Err(error) if failure::is_unsigned(&error) => {
                pin!(self.end_unsigned(session, exchange)).await
            }
            sent => self.is_sent(session, exchange, sent),
        }
    }

    /// Ends a request whose answer cannot be signed, before anything of it was written: by 503, which is never signed (SIG-12). An unsafe
    /// request that the core may have executed gets no answer, because 503 asks the caller to send it again. Returns whether all of an answer
    /// was sent.
    pub(super) async fn end_unsigned(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
    ) -> bool {
        let refusal = failure::not_signed();
        let is_unknown = !session.req_header().method.is_safe() && exchange.may_be_executed();
        exchange.set_outcome(Outcome::Failed(refusal.reason()));
        if is_unknown {
            exchange.set_operator_text(refusal.operator());
            return false;
        }
        let sent = pin!(self.try_send(session, exchange, &refusal)).await;
        self.is_sent(session, exchange, sent)
    }

    async fn try_send(
        &self,
        session: &mut Session,
        exchange: &mut Exchange<'_>,
        refusal: &Refusal,
    ) -> Result<()> {
        self.closing.end_with_answer(session);
        exchange.set_operator_text(refusal.operator());
        let id = exchange.make_id();
        let context = exchange.answer_context();
        self.responder.refuse(session, refusal, id, &context).await
    }

    /// Whether a refusal was sent; notes it if not.
    fn is_sent(&self, session: &Session, exchange: &mut Exchange<'_>, sent: Result<()>) -> bool {
        if let Err(error) = &sent {
            failure::count_blocked(self.telemetry, session, error);
            exchange.set_undelivered(cut_of(session, error));
        }
        sent.is_ok()
    }
}
