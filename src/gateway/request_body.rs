//! The body of a request, read once, whole.

use super::listener::{ChunkedBody, ClientConnection};
use crate::{
    admission::{Announced, BodyFault, Incoming},
    interface::headers,
};
use bytes::{Bytes, BytesMut};
use http::{
    Version,
    header::{CONTENT_LENGTH, EXPECT},
};
use pingora::{Error, ErrorType, protocols::http::ServerSession as Session};
use std::time::Duration;

/// A body that is still arriving.
pub(super) struct DownstreamBody<'a> {
    session: &'a mut Session,
    announced: Announced,
    time_limit: Duration,
}

impl<'a> DownstreamBody<'a> {
    /// The whole body must arrive within `time_limit`.
    pub(super) fn new(session: &'a mut Session, time_limit: Duration) -> Self {
        let announced = announced(session);
        Self {
            session,
            announced,
            time_limit,
        }
    }

    async fn read_whole(&mut self, limit: usize) -> Result<Bytes, BodyFault> {
        let session = &mut *self.session;
        // HTTP/1.0 has no interim answers (RFC 9110, section 10.1.1).
        let is_1_0 = session.req_header().version == Version::HTTP_10;
        if !is_1_0 && session.get_header(EXPECT).is_some() {
            session
                .write_continue_response()
                .await
                .map_err(|error| broken(&error))?;
        }
        let mut first = Bytes::new();
        let mut joined = BytesMut::new();
        while let Some(chunk) = session
            .read_request_body()
            .await
            .map_err(|error| fault(&error))?
        {
            if first
                .len()
                .saturating_add(joined.len())
                .saturating_add(chunk.len())
                > limit
            {
                return Err(BodyFault::TooLarge);
            }
            if first.is_empty() && joined.is_empty() {
                first = chunk;
            } else {
                joined.extend_from_slice(&std::mem::take(&mut first));
                joined.extend_from_slice(&chunk);
            }
        }
        let body = match joined.is_empty() {
            true => first,
            false => joined.freeze(),
        };
        self.judge_end(body.len())?;
        Ok(body)
    }

    /// HTTP-7: the framing of a chunked body must be exact. Bytes that have arrived after the body are lost, so the connection ends
    /// with this answer.
    fn judge_end(&mut self, length: usize) -> Result<(), BodyFault> {
        let session = &mut *self.session;
        if session.as_http1().is_none() {
            return Ok(());
        }
        let connection = session.digest().and_then(ClientConnection::of);
        let is_followed = match (self.announced, connection) {
            (_, None) => false,
            (Announced::Unknown, Some(connection)) => match connection.chunked_body() {
                ChunkedBody::Exact => false,
                ChunkedBody::Followed => true,
                ChunkedBody::Incomplete | ChunkedBody::Malformed => {
                    return Err(BodyFault::Broken("its chunks are malformed".to_owned()));
                }
            },
            (_, Some(connection)) => connection.is_followed(length),
        };
        if is_followed {
            session.set_keepalive(None);
        }
        Ok(())
    }
}

impl Incoming for DownstreamBody<'_> {
    fn announced(&self) -> Announced {
        self.announced
    }

    async fn read(&mut self, limit: usize) -> Result<Bytes, BodyFault> {
        if self.announced == Announced::Nothing {
            return Ok(Bytes::new());
        }
        tokio::time::timeout(self.time_limit, self.read_whole(limit))
            .await
            .unwrap_or(Err(BodyFault::TooSlow))
    }
}

/// The length or framing that the head announces for the body.
pub(super) fn announced(session: &mut Session) -> Announced {
    if session.is_body_empty() {
        return Announced::Nothing;
    }
    let length = session.req_header().headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| {
        std::str::from_utf8(headers::trim(length.as_bytes()))
            .ok()?
            .parse()
            .ok()
    });
    length.map_or(Announced::Unknown, Announced::Length)
}

fn fault(error: &Error) -> BodyFault {
    if matches!(error.etype(), ErrorType::ReadTimedout) {
        BodyFault::TooSlow
    } else {
        broken(error)
    }
}

fn broken(error: &Error) -> BodyFault {
    BodyFault::Broken(error.etype().as_str().to_owned())
}
