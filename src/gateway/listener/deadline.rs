//! A deadline whose timer is created only when a task waits for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// An element that a connection has begun to send, and must complete in time (HTTP-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// HTTP/1.1: the first byte of the connection.
    FirstByte,
    /// HTTP/1.1: the first byte of another request, after this many.
    Request(u32),
    /// The preface and the first SETTINGS.
    Preface,
    /// The rest of a header section, with all its frames, or of another frame. The number distinguishes successive ones.
    Head(u32),
}

/// The deadline of an operation: created when the stream first has to wait, kept until the operation has ended.
#[derive(Debug)]
pub(super) struct Deadline<K> {
    running: Option<(K, Pin<Box<Sleep>>)>,
}

impl<K: Copy + PartialEq> Deadline<K> {
    /// A deadline without a timer.
    pub(super) const fn new() -> Self {
        Self { running: None }
    }

    /// Whether an operation is under way.
    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Clears the deadline, because the operation has ended.
    pub(super) fn clear(&mut self) {
        if self.running.is_some() {
            self.running = None;
        }
    }

    /// Whether the time for `what` is over; if not, the task is woken then. The time starts with the first call for `what`.
    pub(super) fn is_over(&mut self, context: &mut Context<'_>, what: K, limit: Duration) -> bool {
        if !matches!(&self.running, Some((running, _)) if *running == what) {
            self.running = Some((what, Box::pin(sleep(limit))));
        }
        let running = self.running.as_mut();
        running.is_some_and(|(_, end)| matches!(end.as_mut().poll(context), Poll::Ready(())))
    }
}

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::advance;

    const LIMIT: Duration = Duration::from_secs(10);
    const MOMENT: Duration = Duration::from_millis(10);

    async fn is_over(deadline: &mut Deadline<u8>, what: u8) -> bool {
        poll_fn(|context| Poll::Ready(deadline.is_over(context, what, LIMIT))).await
    }

    /// HTTP-9: the deadline of an operation ends with it, and begins anew for the next one.
    #[tokio::test(start_paused = true)]
    async fn the_time_of_an_operation() {
        let mut deadline = Deadline::new();
        assert!(!is_over(&mut deadline, 1).await);
        advance(LIMIT - MOMENT).await;
        assert!(!is_over(&mut deadline, 1).await);
        advance(2 * MOMENT).await;
        assert!(is_over(&mut deadline, 1).await);
        assert!(!is_over(&mut deadline, 2).await, "another operation");
        advance(LIMIT - MOMENT).await;
        deadline.clear();
        assert!(!deadline.is_running() && !is_over(&mut deadline, 2).await);
        advance(2 * MOMENT).await;
        assert!(!is_over(&mut deadline, 2).await, "it began anew");
    }

    /// The task that waits is woken when the time is over.
    #[tokio::test(start_paused = true)]
    async fn the_task_is_woken() {
        let (mut deadline, began) = (Deadline::new(), tokio::time::Instant::now());
        poll_fn(|context| match deadline.is_over(context, 1, LIMIT) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        assert!((LIMIT..LIMIT + MOMENT).contains(&began.elapsed()));
    }
}
