//! The bounded set of open connections of the control listener: an idle client cannot block another one.
//!
//! Invariant: a new connection gets a slot at once. If no slot is free, the oldest connection without a pending request gives
//! its slot up; if all connections of the older half have one, the oldest does. Probes are therefore answered at once, regardless of
//! idle clients.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;

/// The open connections, the oldest first.
#[derive(Debug)]
pub(super) struct Slots {
    most: usize,
    taken: Mutex<VecDeque<Arc<Slot>>>,
}

/// The slot of one connection.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The number of pending requests.
    answering: AtomicUsize,
    /// Whether the slot belongs to another connection now.
    is_lost: AtomicBool,
    leave: Notify,
}

impl Slots {
    /// Creates `most` slots.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// Takes a slot for a new connection.
    pub(super) fn take(self: &Arc<Self>) -> TakenSlot {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= self.most {
            // Connections of the newer half may not have sent a request yet.
            let older = taken.iter().take(self.most / 2);
            let silent = older.into_iter().position(|slot| slot.is_silent());
            if let Some(slot) = taken.remove(silent.unwrap_or_default()) {
                slot.is_lost.store(true, Ordering::Release);
                slot.leave.notify_one();
            }
        }
        let slot = Arc::<Slot>::default();
        taken.push_back(Arc::clone(&slot));
        drop(taken);
        TakenSlot {
            slots: Arc::clone(self),
            slot,
        }
    }

    fn give_back(&self, slot: &Arc<Slot>) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|other| !Arc::ptr_eq(other, slot));
    }
}

impl Slot {
    fn is_silent(&self) -> bool {
        self.answering.load(Ordering::Acquire) == 0
    }

    /// Whether the slot belongs to another connection now: no further request is served.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Marks a request as pending until the result is dropped.
    pub(super) fn answer(self: &Arc<Self>) -> Answering {
        self.answering.fetch_add(1, Ordering::AcqRel);
        Answering(Arc::clone(self))
    }
}

/// Marks a request as pending.
#[derive(Debug)]
pub(super) struct Answering(Arc<Slot>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A slot in use; dropping it frees the slot.
#[derive(Debug)]
pub(super) struct TakenSlot {
    slots: Arc<Slots>,
    slot: Arc<Slot>,
}

impl TakenSlot {
    /// The slot, for the requests of the connection.
    pub(super) const fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Returns when the slot belongs to another connection, and this one must close.
    pub(super) async fn given_up(&self) {
        self.slot.leave.notified().await;
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        self.slots.give_back(&self.slot);
    }
}
