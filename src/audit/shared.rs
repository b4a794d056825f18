//! The counts and failures that the thread that writes shares with those who send records.

use super::{event::Class, places::Places};
use crate::{
    clock::Stopwatch,
    write_fault::{WriteCause, WriteFault},
};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// The time that a caller waits until its record is durable. A disk that takes longer is a failing one.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The fault of a disk that neither writes nor refuses.
const HANGING: &str = "the disk does not answer";

/// A record is not durable, and the audit is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit cannot be written")]
pub struct AuditUnavailable;

/// The numbers of records by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// Written, and durable.
    pub written: u64,
    /// Lost, because too many of their share waited for the disk: never records of forwarded requests.
    pub dropped: u64,
    /// Refused by the disk at the first attempt; those that nobody waits for are tried again, and may be written or dropped later.
    pub failed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    /// The places of records that are not written yet.
    pub(super) places: Places,
    is_failing: AtomicBool,
    /// The class whose last batch could not be written, and why.
    faults: Mutex<BTreeMap<Class, WriteFault>>,
    busy: Busy,
    /// Whether the log of events says that the disk hangs.
    hang_is_logged: AtomicBool,
}

/// The time for which the thread that writes has made no progress, which it cannot tell itself while the disk hangs.
#[derive(Debug)]
struct Busy {
    start: Stopwatch,
    /// When the work began, in milliseconds since `start`, at least 1; 0 while the thread waits for records.
    since: AtomicU64,
}

impl Default for Busy {
    fn default() -> Self {
        Self {
            start: Stopwatch::start(),
            since: AtomicU64::new(0),
        }
    }
}

impl Busy {
    fn now(&self) -> u64 {
        let elapsed = self.start.elapsed().as_millis();
        u64::try_from(elapsed).unwrap_or(u64::MAX).max(1)
    }

    /// Whether the work takes too long. The clock is read only while there is work: every request asks.
    fn is_hanging(&self) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        since != 0 && Duration::from_millis(self.now().saturating_sub(since)) >= PATIENCE
    }
}

impl Shared {
    pub(super) fn counts(&self) -> AuditCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AuditCounts {
            written: of(&self.written),
            dropped: of(&self.dropped),
            failed: of(&self.failed),
        }
    }

    pub(super) fn count_written(&self) {
        self.written.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the last batch of any class could not be written, or the disk hangs.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed) || self.busy.is_hanging()
    }

    /// Notes that the thread has work, for which it may wait for the disk, or that the work goes on.
    pub(super) fn begin_work(&self) {
        self.busy.since.store(self.busy.now(), Ordering::Relaxed);
    }

    /// Notes that the thread waits for records.
    pub(super) fn end_work(&self) {
        self.busy.since.store(0, Ordering::Relaxed);
        if self.hang_is_logged.swap(false, Ordering::Relaxed) {
            tracing::info!("the disk of the audit answers again");
        }
    }

    /// Notes the result of a batch, and says so when it differs from the one before.
    pub(super) fn note(&self, class: Class, fault: Option<WriteFault>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let had = faults.contains_key(&class);
        match fault {
            Some(fault) => {
                if !had {
                    tracing::error!(%fault, "the audit cannot be written");
                }
                faults.insert(class, fault);
            }
            None => {
                if had {
                    tracing::info!(class = class.name(), "the audit is written again");
                }
                faults.remove(&class);
            }
        }
        self.is_failing.store(!faults.is_empty(), Ordering::Relaxed);
    }

    /// The classes whose last batch could not be written.
    pub(super) fn failed_classes(&self) -> Vec<Class> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.keys().copied().collect()
    }

    /// Writes to the log of events, once, that the disk hangs. The thread that writes cannot.
    pub(super) fn log_hang(&self) {
        if self.busy.is_hanging() && !self.hang_is_logged.swap(true, Ordering::Relaxed) {
            tracing::error!(fault = HANGING, "the audit cannot be written");
        }
    }

    /// Why the last batch could not be written, or that the disk hangs.
    pub(super) fn fault(&self) -> Option<WriteFault> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = faults.values().next() {
            return Some(fault.clone());
        }
        if !self.busy.is_hanging() {
            return None;
        }
        self.log_hang();
        Some(WriteFault {
            cause: WriteCause::NoAnswer,
            text: HANGING.to_owned(),
        })
    }
}
