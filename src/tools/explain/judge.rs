//! Runs a saved request through the pipeline, as of a given time.

use crate::{
    admission::{Record, Stage, Trial, Verdict},
    clock::{Clock, Timestamp},
    config::Settings,
    gateway::saved::{SavedBody, SavedHead, judge_saved},
    interface::{
        Reason, Refusal, headers,
        openapi::page::{self, Document},
        operations::AnsweredBy,
    },
    tools::saved::{KeptBody, SavedRequest, Wire},
};
use bytes::Bytes;
use http::Method;
use serde_json::Value;
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
    /// The verdict needs a body that the file does not have: it is none.
    pub(super) is_open: bool,
    /// The gateway's signing string, if the Signature header is readable.
    pub(super) signing_string: Option<Vec<u8>>,
}

/// Judges a request without a listener, by the code of the listener ([`gateway::saved`](crate::gateway::saved)).
///
/// # Errors
/// The runtime for reading the request cannot start.
pub(super) fn judge(
    request: &SavedRequest,
    settings: &Settings,
    moment: Moment,
) -> io::Result<JudgedRequest> {
    let snapshot = &settings.reloadable.snapshot;
    let listener = &settings.fixed.listener;
    let clock = Clock::standing(moment.at());
    let mut record = Record::open();
    let trial = Trial::open(snapshot, &clock, &mut record);
    // Over HTTP/2, a saved request's method was read as one.
    let method = request.method.parse::<Method>().unwrap_or_default();
    let (head, body) = parts(request, &method);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let judged = runtime.block_on(judge_saved(head, body, &listener.limits, trial));
    let verdict = judged.verdict.map(|proof| Holds {
        answered_by: proof.answered_by,
        observed: proof.observed,
    });
    let last = record.checks().last();
    let is_open = matches!(request.kept, KeptBody::Lost(_))
        && last.is_some_and(|check| {
            check.stage == Stage::Body
                && check.verdict == Verdict::Refused(Reason::MalformedRequest)
        });
    Ok(JudgedRequest {
        moment,
        record,
        verdict: described(verdict, request, listener.description),
        is_open,
        signing_string: judged.signing_string,
    })
}

/// Head and body, as the listener gets them.
fn parts<'a>(request: &'a SavedRequest, method: &'a Method) -> (SavedHead<'a>, SavedBody) {
    let body = match &request.kept {
        KeptBody::Framed(_) => SavedBody::Framed,
        KeptBody::Alone => SavedBody::Whole(Bytes::from(request.body.clone())),
        KeptBody::Lost(announced) => SavedBody::Lost(*announced),
    };
    let head = match (&request.wire, &request.kept) {
        (Wire::Lines(raw), KeptBody::Framed(rest)) => {
            SavedHead::Lines([raw.as_slice(), rest].concat().into())
        }
        (Wire::Lines(raw), _) => SavedHead::Lines(raw.clone().into()),
        (Wire::Frames(authority), _) => SavedHead::Frames {
            method,
            target: &request.target,
            authority: authority.as_deref(),
            headers: &request.headers,
        },
    };
    (head, body)
}

/// A request for a description of the interface is answered, though it is no operation (`listener.description`).
fn described(
    verdict: Result<Holds, Refusal>,
    request: &SavedRequest,
    is_described: bool,
) -> Result<Holds, Refusal> {
    let refusal = match verdict {
        Err(refusal) if is_described && refusal.reason() == Reason::OperationUnknown => refusal,
        verdict => return verdict,
    };
    let path = request.target.split(|byte| *byte == b'?').next();
    let is_asked = |document: Document| path == Some(document.path.as_bytes());
    let reads = ["GET", "HEAD"].contains(&request.method.as_str());
    if reads && page::documents(&Value::Null).into_iter().any(is_asked) {
        return Ok(Holds {
            answered_by: AnsweredBy::Gateway,
            observed: Vec::new(),
        });
    }
    Err(refusal)
}
