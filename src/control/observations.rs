//! What this gateway observes of TPPs, on its way into the stream of events (CTL-3).
//!
//! Invariants: nobody who observes waits for the state; an observation stays here until the state has it, within a bound. Two gateways that
//! observe the same make one event: the state knows it by its kind and subject.

use crate::{
    clock::Clock,
    state::{NewEvent, StateStore},
    telemetry::Telemetry,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// The most observations that wait: a truncated register takes the roles of all TPPs at once.
const MOST: usize = 10_000;

/// The time between two tries while the state is unavailable.
const AGAIN: Duration = Duration::from_secs(1);

/// The observations that the state does not have yet.
#[derive(Debug)]
pub struct Observations {
    clock: Clock,
    telemetry: Arc<Telemetry>,
    waiting: Mutex<VecDeque<NewEvent>>,
    more: Notify,
}

impl Observations {
    /// None, with the clock that dates them, and the metrics that count those that are lost.
    pub fn new(clock: Clock, telemetry: Arc<Telemetry>) -> Self {
        Self {
            clock,
            telemetry,
            waiting: Mutex::default(),
            more: Notify::new(),
        }
    }

    /// Adds an observation. Beyond the bound it is lost: the log says so, and a metric counts it.
    pub fn push(&self, event: NewEvent) {
        let mut waiting = self.lock();
        if waiting.len() >= MOST {
            self.telemetry.consumers.lost();
            tracing::error!(
                kind = event.kind().name(),
                "an event of a TPP is lost: too many wait for the state"
            );
            return;
        }
        waiting.push_back(event);
        drop(waiting);
        self.more.notify_one();
    }

    /// Writes each observation as soon as the state takes it.
    pub(super) async fn write_all(&self, store: &StateStore) {
        loop {
            if self.write_waiting(store).await {
                self.more.notified().await;
            } else {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Writes those that wait, a last time within `within`.
    pub fn write_last(&self, store: &StateStore, within: Duration) {
        if self.lock().is_empty() {
            return;
        }
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build();
        let is_done = runtime.is_ok_and(|runtime| {
            let writing = self.write_waiting(store);
            let writing = async { tokio::time::timeout(within, writing).await };
            runtime.block_on(writing).is_ok_and(|is_done| is_done)
        });
        if !is_done {
            let lost = self.lock().len();
            tracing::error!(lost, "events of TPPs could not be written before the stop");
        }
    }

    /// Returns whether the state has them all.
    async fn write_waiting(&self, store: &StateStore) -> bool {
        loop {
            let Some(event) = self.lock().front().cloned() else {
                return true;
            };
            if let Err(error) = store.note_event(event, self.clock.now()).await {
                tracing::warn!(%error, "an event of a TPP waits for the state");
                return false;
            }
            self.lock().pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<NewEvent>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::TppId;

    //= CTL-3 accepted
    #[test]
    fn what_is_lost_is_counted() {
        let telemetry = Arc::new(Telemetry::new(None));
        let observations = Observations::new(Clock::System, Arc::clone(&telemetry));
        let tpp = TppId::parse("PSDNO-FSA-123456").unwrap();
        for number in 0..MOST + 2 {
            let lost = number.saturating_sub(MOST);
            assert_eq!(
                telemetry.consumers.lost_so_far(),
                u64::try_from(lost).unwrap()
            );
            observations.push(NewEvent::TppSeen { tpp: tpp.clone() });
        }
        assert_eq!(telemetry.consumers.lost_so_far(), 2);
        assert_eq!(observations.lock().len(), MOST);
    }
}
