//! Runs a saved request through the pipeline, as of a given time.

use crate::{
    admission::{self, Framing, Head, Record, Snapshot, Trial},
    clock::{Clock, Timestamp},
    interface::{Reason, Refusal, headers, operations::AnsweredBy},
    tools::saved::{SavedRequest, Wire},
};
use bytes::Bytes;
use http::Method;
use std::io;

/// The time of the decision, and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// `--at`.
    Asked(Timestamp),
    /// The request's own Date: a saved request is always stale at present.
    OfRequest(Timestamp),
    /// The current time, because the Date is unreadable.
    Present(Timestamp),
}

impl Moment {
    pub(super) fn of(request: &SavedRequest, asked: Option<Timestamp>, now: Timestamp) -> Self {
        let date = || {
            let value = request.headers.get(&headers::DATE.name)?;
            headers::date::parse(headers::trim(value.as_bytes()))
        };
        match (asked, date()) {
            (Some(at), _) => Self::Asked(at),
            (None, Some(date)) => Self::OfRequest(date),
            (None, None) => Self::Present(now),
        }
    }

    pub(super) const fn at(self) -> Timestamp {
        match self {
            Self::Asked(at) | Self::OfRequest(at) | Self::Present(at) => at,
        }
    }
}

/// The result without the store: PSU bindings and request ids are not checked.
pub(super) struct Holds {
    pub(super) answered_by: AnsweredBy,
    /// The faults that were observed and not refused (FWD-6).
    pub(super) observed: Vec<Reason>,
}

/// The result.
pub(super) struct JudgedRequest {
    pub(super) moment: Moment,
    pub(super) record: Record,
    pub(super) verdict: Result<Holds, Refusal>,
    /// The gateway's signing string, if the Signature header is readable.
    pub(super) signing_string: Option<Vec<u8>>,
}

/// Judges a request without a listener.
///
/// # Errors
/// The runtime for reading the body cannot start.
pub(super) fn judge(
    request: &SavedRequest,
    world: &Snapshot,
    moment: Moment,
) -> io::Result<JudgedRequest> {
    // A saved request's method was read as one.
    let method = request.method.parse::<Method>().unwrap_or_default();
    let head = head(request, &method);
    let clock = Clock::standing(moment.at());
    let mut record = Record::open();
    let trial = Trial::open(world, &clock, &mut record);
    let mut body = Bytes::from(request.body.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let proven = runtime.block_on(admission::prove(&head, &mut body, trial));
    let verdict = proven.map(|proven| Holds {
        answered_by: proven.operation().answered_by,
        observed: proven.waived().collect(),
    });
    Ok(JudgedRequest {
        moment,
        record,
        verdict,
        signing_string: admission::signing_string(&head),
    })
}

fn head<'a>(request: &'a SavedRequest, method: &'a Method) -> Head<'a> {
    let (framing, authority) = match &request.wire {
        Wire::Lines(raw) => (
            Framing::Lines {
                raw,
                target_rewritten: !request.target.iter().all(u8::is_ascii_graphic),
            },
            None,
        ),
        Wire::Frames(authority) => (
            Framing::Frames {
                other_scheme: false,
            },
            authority.as_deref(),
        ),
    };
    Head {
        authority,
        ..Head::unconnected(method, &request.target, &request.headers, framing)
    }
}
