//! The certificates, as requests add them and the thread writes them.

use super::record::{SeenCertificate, SeenRecord, day_of};
use crate::{clock::Timestamp, interface::TppId, trust::VerifiedSignature};
use openssl::x509::X509;
use std::{
    collections::BTreeSet,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The certificates by which requests were signed within 30 days. A [`SeenKeeper`](super::SeenKeeper) writes them to a file.
#[derive(Debug, Default)]
pub struct SeenCertificates {
    shared: Mutex<Shared>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Shared {
    record: SeenRecord,
    /// The TPPs that requests added since the keeper last asked, and that were not in the record.
    new: BTreeSet<TppId>,
    /// Whether the record has what the file does not have.
    is_changed: bool,
    /// Whether the keeper is to write a last time.
    is_stopping: bool,
    /// Whether the keeper has written its last time.
    has_stopped: bool,
}

impl SeenCertificates {
    /// Notes the certificate of a verified signature, once a day.
    pub fn note(&self, verified: &VerifiedSignature, now: Timestamp) {
        let day = day_of(now);
        let Some(certificate) = verified.first_of_day(day) else {
            return;
        };
        // The chain was built with the pool that came first. A later request may have another one, by which a chain is found below other
        // anchors; nobody has read that one yet.
        let shown = [certificate.certificates(), verified.certificates()];
        for mut certificates in shown.into_iter().flatten() {
            certificates.pool.retain(|one| X509::from_der(one).is_ok());
            self.add(SeenCertificate {
                tpp: certificate.tpp_id().clone(),
                day,
                certificates: Arc::new(certificates),
            });
        }
    }

    /// The TPPs whose requests were signed within 30 days.
    pub fn tpps(&self, now: Timestamp) -> BTreeSet<TppId> {
        let today = day_of(now);
        let shared = self.lock();
        shared.record.tpps(today)
    }

    pub(super) fn add(&self, seen: SeenCertificate) {
        let mut shared = self.lock();
        if !shared.record.has(&seen.tpp) {
            shared.new.insert(seen.tpp.clone());
        }
        if shared.record.add(seen) {
            shared.is_changed = true;
            self.changed.notify_all();
        }
    }

    /// Adds what a file had.
    pub(super) fn restore(&self, found: Vec<SeenCertificate>) {
        let mut shared = self.lock();
        for seen in found {
            shared.new.remove(&seen.tpp);
            shared.record.add(seen);
        }
    }

    /// The TPPs that are new since the last call.
    pub(super) fn take_new(&self) -> BTreeSet<TppId> {
        std::mem::take(&mut self.lock().new)
    }

    /// Waits for a change or the stop. Returns the record if it has changed since the last call, and whether the keeper is to stop.
    pub(super) fn wait_for_change(&self) -> (Option<SeenRecord>, bool) {
        let waiting = self.changed.wait_while(self.lock(), |shared| {
            !shared.is_changed && !shared.is_stopping
        });
        let mut shared = waiting.unwrap_or_else(PoisonError::into_inner);
        let is_changed = std::mem::take(&mut shared.is_changed);
        let record = is_changed.then(|| shared.record.clone());
        (record, shared.is_stopping)
    }

    /// Forgets certificates that were not seen within 30 days.
    pub(super) fn forget(&self, today: u64) {
        self.lock().record.forget(today);
    }

    /// Marks the record as changed again: it could not be written.
    pub(super) fn mark_changed(&self) {
        self.lock().is_changed = true;
    }

    /// Waits this long, or until the stop.
    pub(super) fn pause(&self, time: Duration) {
        let waiting = self
            .changed
            .wait_timeout_while(self.lock(), time, |shared| !shared.is_stopping);
        drop(waiting);
    }

    /// Asks the keeper to write a last time; returns whether it did within this time.
    pub(super) fn stop(&self, within: Duration) -> bool {
        let mut shared = self.lock();
        shared.is_stopping = true;
        self.changed.notify_all();
        let waiting = self
            .changed
            .wait_timeout_while(shared, within, |shared| !shared.has_stopped);
        let (shared, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        shared.has_stopped
    }

    pub(super) fn mark_stopped(&self) {
        self.lock().has_stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
