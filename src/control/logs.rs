//! Opens the logs again at SIGUSR1, after a tool for rotation has moved their files.

use super::context::ControlContext;
use std::sync::Arc;
use tokio::signal::unix::Signal;

/// Opens the files of the logs again at each SIGUSR1, and says what came of it.
pub(super) async fn reopen_at_signal(context: &ControlContext, signal: Option<Signal>) {
    if let Some(mut signal) = signal {
        while signal.recv().await.is_some() {
            reopen(context).await;
        }
    }
    std::future::pending::<()>().await;
}

async fn reopen(context: &ControlContext) {
    let telemetry = Arc::clone(&context.telemetry);
    let reopening = tokio::task::spawn_blocking(move || telemetry.reopen_logs());
    match reopening.await {
        Ok(faults) if faults.is_empty() => tracing::info!("the logs were opened again"),
        Ok(faults) => {
            for (log, fault) in faults {
                tracing::error!(log, %fault, "a log was not opened again");
            }
        }
        Err(error) => tracing::error!(%error, "the logs were not opened again"),
    }
}
