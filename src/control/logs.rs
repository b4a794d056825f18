//! Opens the logs again at SIGUSR1, after a tool for rotation has moved their files.

use super::context::ControlContext;
use tokio::signal::unix::Signal;

/// Opens the files of the logs again at each SIGUSR1.
pub(super) async fn reopen_at_signal(context: &ControlContext, signal: Option<Signal>) {
    if let Some(mut signal) = signal {
        while signal.recv().await.is_some() {
            context.telemetry.reopen_logs();
            tracing::info!("the logs were opened again");
        }
    }
    std::future::pending::<()>().await;
}
