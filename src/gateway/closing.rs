//! The end of the public listener, for the connections that are open when it closes.

use pingora::protocols::http::ServerSession as Session;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Whether the public listener is closed: from then on no connection waits for another request.
#[derive(Debug, Default)]
pub(super) struct Closing {
    closed: AtomicBool,
    notify: Notify,
}

impl Closing {
    /// The listener is closed.
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

    /// Where the listener is closed, the answer to this request ends its connection, and says so.
    pub(super) fn end_with_answer(&self, session: &mut Session) {
        if self.closed.load(Ordering::Acquire) {
            session.set_keepalive(None);
        }
    }
}
