//! A deadline that costs nothing until somebody waits for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// The end of something that has begun: made when the stream first has to wait, kept until the thing has ended.
#[derive(Debug)]
pub(super) struct Deadline<K> {
    running: Option<(K, Pin<Box<Sleep>>)>,
}

impl<K: Copy + PartialEq> Deadline<K> {
    /// None runs.
    pub(super) const fn new() -> Self {
        Self { running: None }
    }

    /// What was waited for has come.
    pub(super) fn clear(&mut self) {
        if self.running.is_some() {
            self.running = None;
        }
    }

    /// Whether the time for `what` is over; if not, the task is woken then. It runs from when this is first asked for `what`.
    pub(super) fn is_over(&mut self, context: &mut Context<'_>, what: K, limit: Duration) -> bool {
        if !matches!(&self.running, Some((running, _)) if *running == what) {
            self.running = Some((what, Box::pin(sleep(limit))));
        }
        let running = self.running.as_mut();
        running.is_some_and(|(_, end)| matches!(end.as_mut().poll(context), Poll::Ready(())))
    }
}
