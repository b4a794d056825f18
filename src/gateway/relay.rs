//! Relays the body of the core's answer to the caller: part by part, or buffered if a signature covers it (SIG-12).
//!
//! A body above the buffer's limit is relayed part by part, unsigned. While a slow caller takes a part, the core's answer is read
//! on ([`super::read_ahead`]).

use super::{
    answer_head::AnswerContext,
    answer_signature::SignedAnswer,
    caller_watch::{unanswered, work_for},
    core_head::is_bodiless,
    failure,
    read_ahead::{CallerPart, PartsAhead},
    upstream::{BodyPart, CoreBody},
};
use crate::{clock::Stopwatch, upstreams::InFlightRequest};
use bytes::Bytes;
use http::{header, response::Parts};
use pingora::{Error, Result, protocols::http::ServerSession as Session};
use std::{
    pin::{Pin, pin},
    time::Duration,
};
use tokio::time::timeout;

/// The time in which a caller takes a part of an answer, up to 64 KiB, before the answer is read on. Most callers never are slower.
const PATIENCE: Duration = Duration::from_millis(100);

/// The body of the core's answer, as the caller gets it.
pub(super) struct AnswerBody<'a> {
    /// The body as the core sends it.
    pub(super) core: &'a mut CoreBody,
    /// The most bytes that the core may still send (FWD-7).
    pub(super) left: usize,
    /// Whether the answer ends when the caller disconnects: it is that of a safe request (FWD-4).
    pub(super) watched: bool,
    /// The time-out of each part.
    pub(super) read_timeout: Duration,
    /// Whether the answer waits for the core, and not for the caller.
    pub(super) awaits_core: bool,
    /// Since when it waits, if it does.
    pub(super) since: Stopwatch,
    /// Inspects the first part (FWD-7).
    pub(super) inspect: &'a (dyn Fn(&[u8]) + Sync),
    /// The parts that were read while the caller took an earlier one.
    pub(super) ahead: PartsAhead<'a>,
    /// The request, which the core has until its last part.
    pub(super) in_flight: &'a mut InFlightRequest,
}

impl AnswerBody<'_> {
    /// Returns the next part for the caller.
    async fn next(&mut self, caller: &mut Session) -> Result<CallerPart> {
        if let Some(part) = self.ahead.pop() {
            return Ok(part);
        }
        self.awaits_core = true;
        let reading = self.core.next();
        let part = work_for(caller, self.watched, self.read_timeout, reading).await?;
        self.awaits_core = false;
        self.take(part)
    }

    /// Takes a part that the core has sent.
    fn take(&mut self, part: BodyPart) -> Result<CallerPart> {
        if part.is_last {
            self.in_flight.core_has_answered();
        }
        let length = part.bytes.as_ref().map_or(0, Bytes::len);
        self.left = self
            .left
            .checked_sub(length)
            .ok_or_else(failure::large_answer)?;
        if let Some(first) = part.bytes.as_deref().filter(|_| part.is_first) {
            (self.inspect)(first);
        }
        Ok(CallerPart {
            bytes: part.bytes,
            is_last: part.is_last,
        })
    }

    /// Sends a part to the caller, and reads the answer on as long as the caller is slow and there is memory.
    async fn send(
        &mut self,
        mut sending: Pin<&mut impl Future<Output = Result<()>>>,
        is_last: bool,
    ) -> Result<()> {
        loop {
            if let Ok(sent) = timeout(PATIENCE, &mut sending).await {
                return sent.map_err(Error::into_down);
            }
            while !is_last && self.ahead.has_room() {
                // Boxed, because most answers never get here, and each of them holds this future.
                if Box::pin(self.read_on(&mut sending)).await? {
                    return Ok(());
                }
            }
        }
    }

    /// Reads the next part while another one is being sent; returns whether that one was.
    async fn read_on(
        &mut self,
        sending: &mut Pin<&mut impl Future<Output = Result<()>>>,
    ) -> Result<bool> {
        let (is_sent, part) = {
            let mut reading = pin!(timeout(self.read_timeout, self.core.next()));
            tokio::select! {
                biased;
                sent = sending => {
                    sent.map_err(Error::into_down)?;
                    // A read that is given up could lose bytes.
                    (self.awaits_core, self.since) = (true, Stopwatch::start());
                    (true, reading.await)
                }
                part = &mut reading => (false, part),
            }
        };
        self.awaits_core = false;
        let part = part.unwrap_or_else(|_| unanswered())?;
        let part = self.take(part)?;
        self.ahead.push(part);
        Ok(is_sent)
    }
}

/// Sends an answer to the caller.
///
/// # Errors
/// The client or the core failed, or signing failed.
pub(super) async fn send(
    session: &mut Session,
    head: Parts,
    body: &mut AnswerBody<'_>,
    context: AnswerContext<'_>,
) -> Result<()> {
    match context.signed(head.status) {
        None => pass(session, head, body).await,
        Some(signed) => hold(session, head, body, signed).await,
    }
}

/// Sends an answer part by part.
async fn pass(session: &mut Session, head: Parts, body: &mut AnswerBody<'_>) -> Result<()> {
    let part = body.next(session).await?;
    let empty = part.is_last && part.bytes.as_ref().is_none_or(Bytes::is_empty);
    write_head(session, head).await?;
    if empty {
        return Ok(());
    }
    stream(session, body, part).await
}

/// Sends the rest of a body, beginning with a part that was already read.
async fn stream(
    session: &mut Session,
    body: &mut AnswerBody<'_>,
    mut part: CallerPart,
) -> Result<()> {
    loop {
        let is_last = part.is_last;
        let bytes = part.bytes.unwrap_or_default();
        {
            let sending = pin!(session.write_response_body(bytes, is_last));
            body.send(sending, is_last).await?;
        }
        if is_last {
            return Ok(());
        }
        body.since = Stopwatch::start();
        part = body.next(session).await?;
    }
}

/// Reads the body up to the limit, signs the answer, and sends head and body (SIG-12).
async fn hold(
    session: &mut Session,
    mut head: Parts,
    body: &mut AnswerBody<'_>,
    signed: SignedAnswer<'_>,
) -> Result<()> {
    let mut held = Vec::new();
    loop {
        let part = body.next(session).await?;
        held.extend_from_slice(&part.bytes.unwrap_or_default());
        if part.is_last {
            break;
        }
        if held.len() > signed.body_limit() {
            write_head(session, head).await?;
            let part = CallerPart {
                bytes: Some(held.into()),
                is_last: false,
            };
            return stream(session, body, part).await;
        }
    }
    let bodiless = is_bodiless(&head, &session.req_header().method);
    if !bodiless {
        head.headers.remove(header::TRANSFER_ENCODING);
        head.headers
            .insert(header::CONTENT_LENGTH, held.len().into());
    }
    let held = Bytes::from(held);
    if held.len() <= signed.body_limit() {
        signed.sign(&mut head.headers, &held).await?;
    }
    write_head(session, head).await?;
    if !bodiless && !held.is_empty() {
        let body = session.write_response_body(held, true).await;
        body.map_err(Error::into_down)?;
    }
    Ok(())
}

async fn write_head(session: &mut Session, head: Parts) -> Result<()> {
    let written = session.write_response_header(Box::new(head.into())).await;
    written.map_err(Error::into_down)
}
