//! The state of a key's use: its idle sessions, and whether its token answers.

use cryptoki::{object::ObjectHandle, session::Session};
use portvakt_base::clock::Stopwatch;
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::SyncSender,
    },
    time::Duration,
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
    /// The probe that runs.
    probe: Mutex<Option<Stopwatch>>,
    timeout: Duration,
    is_closed: AtomicBool,
    /// Ends the probe's pause.
    bell: SyncSender<()>,
}

impl State {
    pub(crate) fn new(timeout: Duration, bell: SyncSender<()>) -> Self {
        Self {
            idle: Mutex::default(),
            fault: Mutex::new(Some("it has not been tried yet".to_owned())),
            probe: Mutex::default(),
            timeout,
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

    /// Why the key cannot be used now. A probe that gets no answer within the timeout is such a reason, too.
    pub(crate) fn fault(&self) -> Option<String> {
        let fault = lock(&self.fault).clone();
        fault.or_else(|| {
            let probe = *lock(&self.probe);
            let is_late = probe.is_some_and(|since| since.elapsed() >= self.timeout);
            is_late.then(|| "the token does not answer within the timeout".to_owned())
        })
    }

    /// Takes the result of a probe or a call; returns the one before.
    pub(crate) fn set_fault(&self, fault: Option<String>) -> Option<String> {
        std::mem::replace(&mut *lock(&self.fault), fault)
    }

    pub(crate) fn probe_begins(&self) {
        *lock(&self.probe) = Some(Stopwatch::start());
    }

    pub(crate) fn probe_ends(&self) {
        *lock(&self.probe) = None;
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
