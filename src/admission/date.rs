//! The Date header against the clock (DAT-2, REP-1).

use super::{
    Judged, Stage, Trial,
    envelope::{Envelope, ValidHeaders},
};
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

/// Judges Date. It is absent only if the fault of the headers is observed.
pub(super) fn judge(
    envelope: &Envelope,
    headers: &Judged<ValidHeaders>,
    now: Timestamp,
    trial: &mut Trial<'_>,
) -> Result<Judged<FreshDate>, Refusal> {
    match (envelope.date(), headers) {
        (Some(date), _) => {
            trial.record.note_date(date, now);
            let fresh = holds(date, now).map(|()| FreshDate { date });
            trial.judge(Stage::Date, fresh)
        }
        (None, Judged::Waived(because)) => Ok(trial.pass_over(Stage::Date, because)),
        // Unreachable: a missing or malformed Date is a fault of the headers. If that changes, the request is refused.
        (None, Judged::Held(_) | Judged::NotJudged(_)) => {
            trial.require(Stage::Date, Err(Refusal::new(Reason::HeaderMissing)))
        }
    }
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
