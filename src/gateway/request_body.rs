//! The body of a request, read once, whole.

use super::listener::ClientConnection;
use crate::{
    admission::{Announced, BodyFault, Incoming},
    clock::Stopwatch,
    interface::{chunks::ChunkedBody, headers},
};
use bytes::{Bytes, BytesMut};
use http::{
    Version,
    header::{CONTENT_LENGTH, EXPECT},
};
use pingora::{Error, ErrorType, protocols::http::ServerSession as Session};
use std::{
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

/// The time after which the first bytes must have arrived (HTTP-9): the least rate applies to each second after the first.
const START: Duration = Duration::from_secs(2);

/// How fast a body must arrive (HTTP-9).
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyPace {
    /// The time-out of the whole body.
    pub(super) timeout: Duration,
    /// The least number of bytes in each second after the first.
    pub(super) rate: Option<u32>,
}

/// A body that is still arriving.
pub(super) struct DownstreamBody<'a> {
    session: &'a mut Session,
    announced: Announced,
    pace: BodyPace,
}

impl<'a> DownstreamBody<'a> {
    /// The body must arrive at this pace.
    pub(super) fn new(session: &'a mut Session, pace: BodyPace) -> Self {
        let announced = announced(session);
        Self {
            session,
            announced,
            pace,
        }
    }

    /// Reads the body; `received` gets the number of bytes so far.
    async fn read_whole(
        &mut self,
        limit: usize,
        received: &AtomicUsize,
    ) -> Result<Bytes, BodyFault> {
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
            let length = first
                .len()
                .saturating_add(joined.len())
                .saturating_add(chunk.len());
            if length > limit {
                return Err(BodyFault::TooLarge);
            }
            received.store(length, Ordering::Relaxed);
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
        let Some(connection) = connection else {
            return Err(BodyFault::Broken("its connection is unknown".to_owned()));
        };
        let is_followed = match self.announced {
            Announced::Unknown => match connection.chunked_body() {
                ChunkedBody::Exact => false,
                ChunkedBody::Followed => true,
                ChunkedBody::Incomplete | ChunkedBody::Malformed => {
                    return Err(BodyFault::Chunks("its chunks are malformed".to_owned()));
                }
            },
            Announced::Nothing | Announced::Length(_) => connection.is_followed(length),
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
        let pace = self.pace;
        let received = AtomicUsize::new(0);
        let reading = pin!(self.read_whole(limit, &received));
        let too_slow = pin!(pace.lost(&received));
        tokio::select! {
            biased;
            read = reading => read,
            () = too_slow => Err(BodyFault::TooSlow),
        }
    }
}

impl BodyPace {
    /// Returns when the body is too slow. The clock is read only when the time for the bytes so far is over.
    async fn lost(self, received: &AtomicUsize) {
        let watch = Stopwatch::start();
        loop {
            let allowed = self.allowed(received.load(Ordering::Relaxed));
            let left = allowed.saturating_sub(watch.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// The end of the second within which more than these bytes must have arrived, or the whole body.
    fn allowed(self, received: usize) -> Duration {
        let Some(rate) = self.rate else {
            return self.timeout;
        };
        let received = u32::try_from(received).unwrap_or(u32::MAX);
        let seconds = Duration::from_secs(u64::from(received / rate.max(1)));
        START.saturating_add(seconds).min(self.timeout)
    }
}

/// The time within which the body of a refused request must arrive, and its size in bytes, if its connection is to be kept.
const DISCARD_WITHIN: Duration = Duration::from_millis(100);
const DISCARD_LIMIT: usize = 64 * 1024;

/// Reads and discards the small body of a refused request over HTTP/1.1, as far as it arrives at once. A caller that waits for
/// 100-continue sends none.
pub(super) async fn discard_arrived(session: &mut Session) {
    let waits = session.get_header(EXPECT).is_some();
    let ends = session.get_keepalive().is_none() || session.is_body_done();
    if session.as_http1().is_none() || waits || ends {
        return;
    }
    let pace = BodyPace {
        timeout: DISCARD_WITHIN,
        rate: None,
    };
    let read = DownstreamBody::new(session, pace).read(DISCARD_LIMIT).await;
    if read.is_err() {
        session.set_keepalive(None);
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
    let why = error.etype().as_str().to_owned();
    // pingora's types of errors about chunks and trailers.
    match why.as_str() {
        "InvalidChunk" | "InvalidTrailerEnd" => BodyFault::Chunks(why),
        _ => BodyFault::Broken(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_a_body() {
        let pace = |rate| BodyPace {
            timeout: Duration::from_secs(10),
            rate,
        };
        let slowest = pace(Some(1024));
        for (received, seconds) in [(0, 2.0), (1023, 2.0), (1024, 3.0), (9 * 1024, 10.0)] {
            assert_eq!(slowest.allowed(received).as_secs_f64(), seconds);
        }
        assert_eq!(slowest.allowed(64 * 1024), slowest.timeout);
        assert_eq!(slowest.allowed(usize::MAX), slowest.timeout);
        assert_eq!(pace(None).allowed(0), slowest.timeout);
    }

    /// HTTP-9: a body is given up at the end of the second in which too little came, and after its whole time in any case.
    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn a_body_is_given_up_in_time() {
        let pace = BodyPace {
            timeout: Duration::from_secs(10),
            rate: Some(1024),
        };
        // So many seconds with a KiB each, then nothing.
        for (seconds, end) in [(0, 2), (1, 3), (5, 7), (100, 10)] {
            let (received, watch) = (AtomicUsize::new(0), Stopwatch::start());
            let arriving = async {
                for second in 1..=seconds {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    received.store(second * 1024, Ordering::Relaxed);
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = pace.lost(&received) => {}
                () = arriving => {}
            }
            let took = watch.elapsed().as_secs_f64();
            assert!((took - f64::from(end)).abs() < 0.01, "{seconds}: {took}");
        }
    }
}
