//! A saved request through the pipeline, as of a moment.

use crate::{
    admission::{self, Framing, Head, Record, Snapshot, Trial},
    clock::{Clock, Timestamp},
    interface::{Reason, Refusal, headers, operations::AnsweredBy},
    tools::saved::{SavedRequest, Wire},
};
use bytes::Bytes;
use http::Method;
use std::io;

/// The moment that a request is judged as of, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// `--at`.
    Asked(Timestamp),
    /// The request's own: it is always stale when it is looked at.
    OfRequest(Timestamp),
    /// The present, because the request's Date cannot be read.
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

/// What holds by itself. What is kept of the PSU and of request ids is the gateway's, and not looked at here.
pub(super) struct Holds {
    pub(super) answered_by: AnsweredBy,
    /// What was observed and not refused (FWD-6).
    pub(super) observed: Vec<Reason>,
}

/// What came of it.
pub(super) struct JudgedRequest {
    pub(super) moment: Moment,
    pub(super) record: Record,
    pub(super) verdict: Result<Holds, Refusal>,
    /// What the gateway would have the caller sign, where the Signature header can be read.
    pub(super) signing_string: Option<Vec<u8>>,
}

/// Judges a request without a listener.
///
/// # Errors
/// The runtime that a body is read on cannot be had.
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
