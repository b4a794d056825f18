//! The watchdog of the service manager (systemd's `WatchdogSec`), which starts a process again that does not serve any more.
//!
//! Invariant: only the loop that accepts callers answers for the process, so a listener that is stuck keeps nothing alive. Deliberately not
//! here: what readiness judges, since no restart mends a database.

use sd_notify::NotifyState;
use std::time::Duration;
use tokio::{sync::Notify, time::sleep};

/// A question to the public listener, and its answer.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    asked: Notify,
    answered: Notify,
}

impl Pulse {
    /// Waits until the listener is asked.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Answers that it accepts callers.
    pub(super) fn answer(&self) {
        self.answered.notify_one();
    }

    /// Returns as soon as the listener answers.
    async fn take(&self) {
        self.asked.notify_one();
        self.answered.notified().await;
    }
}

/// Tells the service manager three times in each period that this process serves, while the listener answers. Returns at once where the
/// service manager has no watchdog for this process.
pub(super) async fn keep_alive(pulse: &Pulse) {
    if let Some(period) = sd_notify::watchdog_enabled() {
        keep_telling(pulse, period, || {
            sd_notify::notify(&[NotifyState::Watchdog])
        })
        .await;
    }
}

async fn keep_telling(
    pulse: &Pulse,
    period: Duration,
    mut tell: impl FnMut() -> std::io::Result<()>,
) {
    loop {
        pulse.take().await;
        if let Err(error) = tell() {
            tracing::warn!(%error, "the service manager cannot be told that the gateway serves");
        }
        sleep(period / 3).await;
    }
}

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::time::timeout;

    const PERIOD: Duration = Duration::from_secs(30);

    /// How often the service manager is told within ten periods.
    async fn told(listener: impl Future<Output = ()>, pulse: &Pulse) -> u32 {
        let told = Cell::new(0);
        let tell = || {
            told.set(told.get() + 1);
            Ok(())
        };
        let telling = timeout(10 * PERIOD, keep_telling(pulse, PERIOD, tell));
        tokio::select! {
            _ = telling => {}
            () = listener => {}
        }
        told.get()
    }

    #[tokio::test(start_paused = true)]
    async fn the_service_manager_is_told_while_the_listener_answers() {
        let pulse = Pulse::default();
        let answers = async {
            loop {
                pulse.asked().await;
                pulse.answer();
            }
        };
        assert_eq!(told(answers, &pulse).await, 30);
        let pulse = Pulse::default();
        let stops_answering = async {
            for _ in 0..7 {
                pulse.asked().await;
                pulse.answer();
            }
            std::future::pending().await
        };
        assert_eq!(told(stops_answering, &pulse).await, 7);
        let pulse = Pulse::default();
        assert_eq!(told(std::future::pending(), &pulse).await, 0);
    }
}
