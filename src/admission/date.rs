//! The Date header against the clock (DAT-2, REP-1).

use super::envelope::Envelope;
use crate::{
    clock::Timestamp,
    interface::{Fault, Reason, Refusal, headers},
};

/// §Limits: clock deviation of the Date header, in seconds. 60 is accepted, 61 is not.
const MAX_DEVIATION: u64 = 60;

/// The proof that the Date header is within the clock deviation.
#[must_use]
#[derive(Debug)]
pub struct FreshDate {
    date: Timestamp,
}

impl FreshDate {
    /// The Date header.
    pub const fn date(&self) -> Timestamp {
        self.date
    }
}

pub(super) fn judge(envelope: &Envelope, now: Timestamp) -> Result<FreshDate, Refusal> {
    let date = envelope.date();
    holds(date, now).map(|()| FreshDate { date })
}

/// Checks a Date at a time: when the head is received, and again when the request id is claimed (REP-1), because the body may take time.
pub(super) fn holds(date: Timestamp, now: Timestamp) -> Result<(), Refusal> {
    let deviation = date.distance(now);
    if deviation <= MAX_DEVIATION {
        return Ok(());
    }
    let direction = if date < now { "behind" } else { "ahead of" };
    let text = format!(
        "it is {deviation} s {direction} the gateway's clock, which the Date of this answer shows; at most {MAX_DEVIATION} s pass"
    );
    Err(Fault::header(Reason::DateSkewed, headers::DATE.written, text).into())
}
