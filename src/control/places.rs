//! The places of the control listener's connections: a caller that says nothing does not keep another one waiting.
//!
//! Invariant: a new connection has a place at once. Where all are taken, the connection gives way that has been open for longest
//! without a request that is being answered; where all of the older half have one, the oldest. Probes are so answered at once, whoever else
//! connects and waits.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;

/// The connections that are open, the oldest first.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: Mutex<VecDeque<Arc<Place>>>,
}

/// The place of one connection.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Requests that are being answered.
    answering: AtomicUsize,
    leave: Notify,
}

impl Places {
    /// So many.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// A place for another connection.
    pub(super) fn take(self: &Arc<Self>) -> TakenPlace {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= self.most {
            // The newer half has had no time to be heard yet.
            let older = taken.iter().take(self.most / 2);
            let silent = older.into_iter().position(|place| place.is_silent());
            if let Some(place) = taken.remove(silent.unwrap_or_default()) {
                place.leave.notify_one();
            }
        }
        let place = Arc::<Place>::default();
        taken.push_back(Arc::clone(&place));
        drop(taken);
        TakenPlace {
            places: Arc::clone(self),
            place,
        }
    }

    fn give_back(&self, place: &Arc<Place>) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|other| !Arc::ptr_eq(other, place));
    }
}

impl Place {
    fn is_silent(&self) -> bool {
        self.answering.load(Ordering::Acquire) == 0
    }

    /// A request is being answered, until this is dropped.
    pub(super) fn answer(self: &Arc<Self>) -> Answering {
        self.answering.fetch_add(1, Ordering::AcqRel);
        Answering(Arc::clone(self))
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering(Arc<Place>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A place that a connection has until this is dropped.
#[derive(Debug)]
pub(super) struct TakenPlace {
    places: Arc<Places>,
    place: Arc<Place>,
}

impl TakenPlace {
    /// The place, for the requests of the connection.
    pub(super) const fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// Returns when the connection has to give way.
    pub(super) async fn given_up(&self) {
        self.place.leave.notified().await;
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.places.give_back(&self.place);
    }
}
