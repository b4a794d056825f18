//! Calls that run to their end, also if their caller disconnects.
//!
//! Invariant: such a call is not dropped between its change and the record of it, unless the process ends. A stop therefore waits for
//! these calls, within the time-out of the listener.

use axum::response::Response;
use tokio::{sync::watch, task::JoinHandle};

/// The calls that run: each holds a receiver of this channel.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningCalls(watch::Sender<()>);

impl RunningCalls {
    /// Runs a call, whether or not somebody waits for its answer.
    pub(super) fn run(
        &self,
        call: impl Future<Output = Response> + Send + 'static,
    ) -> JoinHandle<Response> {
        let running = self.0.subscribe();
        tokio::spawn(async move {
            let answer = call.await;
            drop(running);
            answer
        })
    }

    /// Returns when no call runs.
    pub(super) async fn ended(&self) {
        self.0.closed().await;
    }
}
