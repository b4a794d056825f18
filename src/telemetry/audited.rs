//! Records of the audit about finished requests: refusals, failures, and the outcome of those whose forwarding was recorded; and about
//! refused calls of the control listener.
//!
//! Invariant: callers cannot fill the disk: each second has a bounded number of refusals, and fewer of unverified callers. Deliberately
//! not here: the record before a request is forwarded, which the gateway waits for.

use super::facts::Finished;
use crate::{
    admission::{Outcome, Stage},
    audit::{Audit, AuditEvent, Kind},
    clock::Stopwatch,
    interface::{Reason, TppId, headers::RequestId},
};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The most records of refusals in a second, of callers whose signature verified.
const VERIFIED: u32 = 50;

/// The same, of callers who only show a certificate, which anybody can.
const UNVERIFIED: u32 = 10;

/// The same, of calls of the control listener: anybody who reaches its port can be refused.
const CALLS: u32 = 10;

/// Counts the records of refusals.
#[derive(Debug, Default)]
pub(super) struct RefusalRecords {
    verified: Window,
    unverified: Window,
    calls: Window,
}

impl RefusalRecords {
    /// Records a finished request, if the audit is to have it.
    pub(super) fn record(&self, finished: &Finished<'_>, audit: &Audit) {
        let (kind, reason) = match finished.outcome {
            Outcome::Refused(reason) => (Kind::Refused, Some(reason)),
            Outcome::Failed(reason) => (Kind::Failed, Some(reason)),
            Outcome::Forwarded(_) | Outcome::Answered | Outcome::Abandoned(_) | Outcome::Cut(_) => {
                (Kind::Outcome, None)
            }
        };
        if finished.is_audited {
            audit.record(event(finished, audit, Kind::Outcome, reason));
            return;
        }
        // A refusal of nobody's request tells nothing later, and would fill the disk.
        if reason.is_none() || finished.record.shown_tpp().is_none() {
            return;
        }
        let (window, most) = match is_verified(finished) {
            true => (&self.verified, VERIFIED),
            false => (&self.unverified, UNVERIFIED),
        };
        window.record(most, audit, || event(finished, audit, kind, reason));
    }

    /// Records a refused call of the control listener.
    pub(super) fn record_call(&self, audit: &Audit, event: impl FnOnce() -> AuditEvent) {
        self.calls.record(CALLS, audit, event);
    }
}

fn event(finished: &Finished<'_>, audit: &Audit, kind: Kind, reason: Option<Reason>) -> AuditEvent {
    let record = finished.record;
    let outcome = match finished.outcome {
        Outcome::Forwarded(_) => "forwarded",
        Outcome::Answered => "answered",
        Outcome::Refused(_) => "refused",
        Outcome::Failed(_) => "failed",
        Outcome::Abandoned(_) => "abandoned",
        Outcome::Cut(_) => "cut",
    };
    let tpp = record.shown_tpp().map(TppId::as_str);
    let name = if is_verified(finished) {
        "tpp"
    } else {
        "shown_tpp"
    };
    let operation = record.operation().map(|operation| operation.name.as_str());
    let id = finished.id.map(|id| id.to_string());
    let trace = finished.trace.map(|trace| trace.trace_id().to_string());
    audit
        .event(kind)
        .with_some(name, tpp)
        .with_some("operation", operation)
        .with_some("request_id", finished.request_id.map(RequestId::as_str))
        .with_some("id", id)
        .with_some("trace_id", trace)
        .with("outcome", outcome)
        .with_some("reason", reason.map(Reason::slug))
        .with_some("operator", finished.operator)
        .with_some("status", finished.status)
        .with_some(
            "upstream_status",
            finished.core.and_then(|core| core.status),
        )
}

fn is_verified(finished: &Finished<'_>) -> bool {
    finished.record.holds(Stage::Signature)
}

/// The records of the current second.
#[derive(Debug)]
struct Window(Mutex<(Stopwatch, u32, u64)>);

impl Default for Window {
    fn default() -> Self {
        Self(Mutex::new((Stopwatch::start(), 0, 0)))
    }
}

impl Window {
    /// Records an event if this second has a place, with the number of those before it that found none.
    fn record(&self, most: u32, audit: &Audit, event: impl FnOnce() -> AuditEvent) {
        let Some(omitted) = self.take(most) else {
            return;
        };
        let omitted = Some(omitted).filter(|omitted| *omitted > 0);
        audit.record(event().with_some("omitted", omitted));
    }

    /// Takes a place of this second; returns the number of those that found none since the last one that did.
    fn take(&self, most: u32) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, taken, omitted) = &mut *window;
        if since.elapsed() >= Duration::from_secs(1) {
            (*since, *taken) = (Stopwatch::start(), 0);
        }
        if *taken >= most {
            *omitted = omitted.saturating_add(1);
            return None;
        }
        *taken = taken.saturating_add(1);
        Some(std::mem::take(omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_bounded_number_of_refusals() {
        let window = Window::default();
        let taken = (0..1_000).filter(|_| window.take(10).is_some()).count();
        // On a loaded machine, another second may have begun.
        assert!((10..=30).contains(&taken), "{taken}");
        std::thread::sleep(Duration::from_millis(1_010));
        let omitted = u64::try_from(1_000 - taken).unwrap();
        assert_eq!(window.take(10), Some(omitted));
    }
}
