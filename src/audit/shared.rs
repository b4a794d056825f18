//! The counts and failures that the thread that writes shares with those who send records.

use super::event::Class;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// A record is not durable, and the audit is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit cannot be written")]
pub struct AuditUnavailable;

/// The numbers of records by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// Written, and durable.
    pub written: u64,
    /// Lost, because the queue was full, or too many waited for a disk that refused them.
    pub dropped: u64,
    /// Refused by the disk at the first attempt; those that nobody waits for are tried again, and may be written or dropped later.
    pub failed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    is_failing: AtomicBool,
    /// The class whose last batch could not be written, and why.
    faults: Mutex<BTreeMap<Class, String>>,
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

    /// Whether the last batch of any class could not be written.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Notes the result of a batch, and says so when it differs from the one before.
    pub(super) fn note(&self, class: Class, fault: Option<String>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let had = faults.contains_key(&class);
        match fault {
            Some(fault) => {
                if !had {
                    tracing::error!(fault, "the audit cannot be written");
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

    /// Why the last batch could not be written.
    pub(super) fn fault(&self) -> Option<String> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.values().next().cloned()
    }
}
