//! The answers of one HTTP/2 connection that are not written yet, so that the line of a request says what its caller got (ERR-8).
//!
//! The HTTP/2 library takes the last bytes of an answer long before it writes them to a slow caller; by then the connection may be cut.
//! The stream notes here what it writes, and the request waits here for its last byte: an answer is written when the kernel has all of
//! it. Deliberately not here: whether the caller received it, which nobody knows.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// The most answers of reset streams that are kept for requests that have not ended yet.
const RESET: usize = 256;

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Delivery {
    /// It was written to its end.
    Written,
    /// It will not be: only this many bytes of its body were written.
    Lost(u64),
}

/// The answers that are not written yet. Their number is bounded by that of open streams, and by [`RESET`].
#[derive(Debug, Default)]
pub(super) struct UnsentAnswers(Mutex<Vec<Answer>>);

#[derive(Debug)]
struct Answer {
    stream: u32,
    /// The bytes of its body that were written.
    written: u64,
    progress: Progress,
    /// The request that waits for its end.
    waiting: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Open,
    /// Its last frame was passed to TLS.
    Ended,
    Lost,
}

impl UnsentAnswers {
    fn lock(&self) -> MutexGuard<'_, Vec<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream begins.
    pub(super) fn begin(&self, stream: u32) {
        self.lock().push(Answer {
            stream,
            written: 0,
            progress: Progress::Open,
            waiting: None,
        });
    }

    /// A DATA frame of this length, or the last frame of an answer, was passed to TLS.
    pub(super) fn wrote(&self, stream: u32, length: u32, is_last: bool) {
        let mut answers = self.lock();
        if let Some(answer) = answers.iter_mut().find(|answer| answer.stream == stream) {
            answer.written = answer.written.saturating_add(length.into());
            if is_last {
                answer.progress = Progress::Ended;
            }
        }
    }

    /// A side resets a stream: nothing more of its answer is written. It stays for its request, which may not wait for it yet.
    pub(super) fn reset(&self, stream: u32) {
        let mut answers = self.lock();
        if let Some(answer) = answers.iter_mut().find(|answer| answer.stream == stream) {
            answer.progress = Progress::Lost;
            if let Some(waiting) = answer.waiting.take() {
                waiting.wake();
            }
        }
        // No request waits for most of those that the library refused.
        let is_lost = |answer: &Answer| answer.progress == Progress::Lost;
        if answers.iter().filter(|answer| is_lost(answer)).count() > RESET
            && let Some(oldest) = answers.iter().position(is_lost)
        {
            answers.remove(oldest);
        }
    }

    /// Everything that was passed to TLS is with the kernel.
    pub(super) fn flushed(&self) {
        self.lock().retain_mut(|answer| {
            let is_ended = answer.progress == Progress::Ended;
            if is_ended && let Some(waiting) = answer.waiting.take() {
                waiting.wake();
            }
            !is_ended
        });
    }

    /// The connection ends.
    pub(super) fn lose(&self) {
        for answer in self.lock().iter_mut() {
            answer.progress = Progress::Lost;
            if let Some(waiting) = answer.waiting.take() {
                waiting.wake();
            }
        }
    }

    /// Waits for the end of an answer that the library has taken to its end.
    pub(super) fn poll(&self, stream: u32, context: &mut Context<'_>) -> Poll<Delivery> {
        let mut answers = self.lock();
        let Some(at) = answers.iter().position(|answer| answer.stream == stream) else {
            return Poll::Ready(Delivery::Written);
        };
        let Some(answer) = answers.get_mut(at) else {
            return Poll::Ready(Delivery::Written);
        };
        if answer.progress == Progress::Lost {
            let written = answer.written;
            answers.swap_remove(at);
            return Poll::Ready(Delivery::Lost(written));
        }
        answer.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// The bytes of the body of an unfinished answer that were written; `None` if it was written to its end. Nothing more is noted.
    pub(super) fn written(&self, stream: u32) -> Option<u64> {
        let mut answers = self.lock();
        let at = answers.iter().position(|answer| answer.stream == stream)?;
        Some(answers.swap_remove(at).written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(answers: &UnsentAnswers, stream: u32) -> Poll<Delivery> {
        answers.poll(stream, &mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_answer_is_written_when_it_is_flushed() {
        let answers = UnsentAnswers::default();
        answers.begin(1);
        answers.begin(3);
        answers.wrote(1, 300, false);
        answers.flushed();
        assert_eq!(poll(&answers, 1), Poll::Pending);
        answers.wrote(1, 200, true);
        assert_eq!(poll(&answers, 1), Poll::Pending);
        answers.flushed();
        assert_eq!(poll(&answers, 1), Poll::Ready(Delivery::Written));
        assert_eq!(answers.written(1), None);
        answers.wrote(3, 100, true);
        answers.lose();
        assert_eq!(poll(&answers, 3), Poll::Ready(Delivery::Lost(100)));
        assert!(answers.lock().is_empty());
    }

    /// A stream that is reset keeps its count for its request, and many leave little.
    #[test]
    fn a_reset_stream() {
        let answers = UnsentAnswers::default();
        for stream in [1, 3] {
            answers.begin(stream);
            answers.wrote(stream, 100, false);
        }
        assert_eq!(poll(&answers, 3), Poll::Pending);
        answers.reset(1);
        answers.reset(3);
        assert_eq!(answers.written(1), Some(100));
        assert_eq!(poll(&answers, 3), Poll::Ready(Delivery::Lost(100)));
        assert!(answers.lock().is_empty());
        for stream in 0..1_000 {
            answers.begin(stream);
            answers.reset(stream);
        }
        assert_eq!(answers.lock().len(), RESET);
    }
}
