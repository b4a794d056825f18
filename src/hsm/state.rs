//! The state of a key's use: its idle sessions, and whether its token answers.

use cryptoki::{object::ObjectHandle, session::Session};
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
    mpsc::SyncSender,
};

/// A lock whose holder panicked holds whole values: no code here leaves half of one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session, and the key in it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) session: Session,
    pub(crate) key: ObjectHandle,
}

/// The state.
#[derive(Debug)]
pub(crate) struct State {
    idle: Mutex<Vec<Place>>,
    /// Why the key cannot be used; `None` while it can.
    fault: Mutex<Option<String>>,
    is_closed: AtomicBool,
    /// Ends the probe's pause.
    bell: SyncSender<()>,
}

impl State {
    pub(crate) fn new(bell: SyncSender<()>) -> Self {
        Self {
            idle: Mutex::default(),
            fault: Mutex::new(Some("it has not been tried yet".to_owned())),
            is_closed: AtomicBool::new(false),
            bell,
        }
    }

    pub(crate) fn take(&self) -> Option<Place> {
        lock(&self.idle).pop()
    }

    pub(crate) fn give_back(&self, place: Place) {
        lock(&self.idle).push(place);
    }

    /// Closes the idle sessions. Only within a call of the module, or while it is initialised again.
    pub(crate) fn close_sessions(&self) {
        lock(&self.idle).clear();
    }

    /// Why the key cannot be used now.
    pub(crate) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// Takes the result of a probe or a call; returns the one before.
    pub(crate) fn set_fault(&self, fault: Option<String>) -> Option<String> {
        std::mem::replace(&mut *lock(&self.fault), fault)
    }

    /// Lets the probe run at once.
    pub(crate) fn wake(&self) {
        // A full channel wakes it already.
        let _ = self.bell.try_send(());
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Relaxed);
        self.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }
}
