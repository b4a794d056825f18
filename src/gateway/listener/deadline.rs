//! A deadline whose timer is created only when a task waits for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

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
