//! Connections to the core that wait for the next request.
//!
//! The one that was used last is used next, so that those that are not needed grow old. Invariant: a connection that
//! the core has closed, or on which it has said something unasked, is never handed out. Nothing watches the others: one
//! that grew too old is dropped when a connection is next taken or put back.

use crate::clock::Stopwatch;
use pingora::protocols::Stream;
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Waker},
    time::Duration,
};
use tokio::io::{AsyncRead, ReadBuf};

/// How many wait at most.
const MOST: usize = 1_024;

/// The connections that wait, the oldest in front.
pub(super) struct Pool {
    waiting: Mutex<VecDeque<(Stream, Stopwatch)>>,
    lasts: Duration,
}

impl Pool {
    /// None yet. Each may wait for as long as `lasts`.
    pub(super) fn new(lasts: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            lasts,
        }
    }

    /// One that can be used.
    pub(super) fn take(&self) -> Option<Stream> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.tidy(&mut waiting);
        while let Some((mut stream, _)) = waiting.pop_back() {
            if is_quiet(&mut stream) {
                return Some(stream);
            }
        }
        None
    }

    /// Keeps one whose answer was read to its end.
    pub(super) fn put(&self, stream: Stream) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.tidy(&mut waiting);
        if waiting.len() < MOST {
            waiting.push_back((stream, Stopwatch::start()));
        }
    }

    fn tidy(&self, waiting: &mut VecDeque<(Stream, Stopwatch)>) {
        while let Some((_, since)) = waiting.front()
            && since.elapsed() > self.lasts
        {
            waiting.pop_front();
        }
    }
}

/// Whether nothing has come on it, not even its end.
fn is_quiet(stream: &mut Stream) -> bool {
    let mut byte = [0; 1];
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(stream)
        .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
        .is_pending()
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").finish_non_exhaustive()
    }
}
