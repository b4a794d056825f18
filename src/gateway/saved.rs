//! A saved request, judged by the code that judges one on the public listener: for `portvakt explain`.
//!
//! Invariant: nothing is checked a second time here. The HTTP layer reads the head, with the listener's inspection; then come the checks
//! of the gate, in its order, and [`admission::prove`]. Deliberately not here: a socket, the state, and the limits of connections.

use super::{
    closing::Closing,
    head_limits::{judge_expectation, judge_size},
    listener::{ClientConnection, saved_session},
    request_body::{BodyPace, DownstreamBody},
    request_head::{NextHead, read_head},
};
use crate::{
    admission::{self, Announced, BodyFault, Framing, Head, Incoming, Trial},
    config::ListenerLimits,
    interface::{Reason, Refusal, operations::AnsweredBy},
};
use bytes::Bytes;
use http::{HeaderMap, Method, Version, request::Parts};
use std::time::Duration;

/// A saved body is there or not there: it needs no time.
const PACE: BodyPace = BodyPace {
    timeout: Duration::from_secs(60),
    rate: None,
};

/// The head of a saved request.
pub(crate) enum SavedHead<'a> {
    /// The bytes of a head over HTTP/1.1, and of its framed body.
    Lines(Bytes),
    /// A head over HTTP/2.
    Frames {
        method: &'a Method,
        target: &'a [u8],
        authority: Option<&'a str>,
        headers: &'a HeaderMap,
    },
}

/// The body of a saved request.
pub(crate) enum SavedBody {
    /// It follows the head, framed as it was sent; over HTTP/2 there is none.
    Framed,
    /// These bytes, whatever the head says about them.
    Whole(Bytes),
    /// The head announces a body that was not saved: the verdict of the check `body` says nothing.
    Lost(Announced),
}

/// The verdict of every check that needs no state.
pub(crate) struct SavedVerdict {
    pub(crate) verdict: Result<SavedProof, Refusal>,
    /// The gateway's signing string, if the Signature header is readable.
    pub(crate) signing_string: Option<Vec<u8>>,
}

/// An admitted request.
pub(crate) struct SavedProof {
    pub(crate) answered_by: AnsweredBy,
    /// The faults that were observed and not refused (FWD-6).
    pub(crate) observed: Vec<Reason>,
}

/// Judges a saved request.
pub(crate) async fn judge_saved(
    head: SavedHead<'_>,
    body: SavedBody,
    limits: &ListenerLimits,
    trial: Trial<'_>,
) -> SavedVerdict {
    match head {
        SavedHead::Lines(bytes) => judge_lines(bytes, body, limits, trial).await,
        SavedHead::Frames {
            method,
            target,
            authority,
            headers,
        } => {
            let framing = Framing::Frames {
                other_scheme: false,
            };
            let head = Head {
                authority,
                ..Head::unconnected(method, target, headers, framing)
            };
            let mut parts = http::Request::new(()).into_parts().0;
            parts.headers = headers.clone();
            parts.version = Version::HTTP_2;
            let size = judge_head(&parts, limits);
            prove(&head, size, UnframedBody::of(body), trial).await
        }
    }
}

async fn judge_lines(
    bytes: Bytes,
    body: SavedBody,
    limits: &ListenerLimits,
    trial: Trial<'_>,
) -> SavedVerdict {
    let Some(mut session) = saved_session(bytes, limits.head_size) else {
        return SavedVerdict::unread(Reason::Internal);
    };
    let closing = Closing::default();
    match read_head(&mut session, &closing).await {
        NextHead::Read => {}
        NextHead::Refused(head) => return SavedVerdict::refused(head.refusal),
        // A head without an end; the gateway would wait for the rest.
        NextHead::Absent => return SavedVerdict::unread(Reason::RequestTimeout),
    }
    let http1 = session.as_http1();
    let raw = http1.map_or_else(Bytes::new, |http1| http1.get_headers_raw_bytes());
    let connection = session.digest().and_then(ClientConnection::of);
    let target_rewritten = connection.is_some_and(ClientConnection::begin_request);
    let received = session.req_header().as_owned_parts();
    let target = session.req_header().raw_path().to_vec();
    let framing = Framing::Lines {
        raw: &raw,
        target_rewritten,
    };
    let head = Head::unconnected(&received.method, &target, &received.headers, framing);
    let size = judge_head(&received, limits);
    match body {
        SavedBody::Framed => {
            let body = DownstreamBody::new(&mut session, PACE);
            prove(&head, size, body, trial).await
        }
        body => prove(&head, size, UnframedBody::of(body), trial).await,
    }
}

/// The checks of the gate before those of the interface.
fn judge_head(head: &Parts, limits: &ListenerLimits) -> Result<(), Refusal> {
    judge_size(head, limits)?;
    judge_expectation(head)
}

async fn prove(
    head: &Head<'_>,
    size: Result<(), Refusal>,
    mut body: impl Incoming,
    trial: Trial<'_>,
) -> SavedVerdict {
    let signing_string = admission::signing_string(head);
    let verdict = match size {
        Ok(()) => {
            let proven = admission::prove(head, &mut body, trial).await;
            proven.map(|proven| SavedProof {
                answered_by: proven.operation().answered_by,
                observed: proven.waived().collect(),
            })
        }
        Err(refusal) => Err(refusal),
    };
    SavedVerdict {
        verdict,
        signing_string,
    }
}

impl SavedVerdict {
    /// The refusal of a head that the HTTP layer does not read.
    fn unread(reason: Reason) -> Self {
        Self::refused(Refusal::new(reason))
    }

    fn refused(refusal: Refusal) -> Self {
        Self {
            verdict: Err(refusal),
            signing_string: None,
        }
    }
}

/// A body whose framing is not known, or that was not saved.
enum UnframedBody {
    Whole(Bytes),
    Lost(Announced),
}

impl UnframedBody {
    fn of(body: SavedBody) -> Self {
        match body {
            SavedBody::Framed => Self::Whole(Bytes::new()),
            SavedBody::Whole(bytes) => Self::Whole(bytes),
            SavedBody::Lost(announced) => Self::Lost(announced),
        }
    }
}

impl Incoming for UnframedBody {
    fn announced(&self) -> Announced {
        match self {
            Self::Whole(bytes) => bytes.announced(),
            Self::Lost(announced) => *announced,
        }
    }

    async fn read(&mut self, limit: usize) -> Result<Bytes, BodyFault> {
        match self {
            Self::Whole(bytes) => bytes.read(limit).await,
            Self::Lost(_) => Err(BodyFault::Broken("it was not saved".to_owned())),
        }
    }
}
