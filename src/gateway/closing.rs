//! Closing the public listener: the end of its open connections.

use pingora::protocols::http::ServerSession as Session;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Whether the public listener is closed. From then on, no connection waits for another request.
#[derive(Debug, Default)]
pub(super) struct Closing {
    closed: AtomicBool,
    notify: Notify,
}

impl Closing {
    /// Marks the listener as closed.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Returns when the listener is closed.
    pub(super) async fn closed(&self) {
        let notified = self.notify.notified();
        if !self.closed.load(Ordering::Acquire) {
            notified.await;
        }
    }

    /// If the listener is closed, the answer to this request announces and causes the end of its connection.
    pub(super) fn end_with_answer(&self, session: &mut Session) {
        if self.closed.load(Ordering::Acquire) {
            session.set_keepalive(None);
        }
    }
}
