//! The certificates in memory, and their bounds.

use crate::{clock::Timestamp, interface::TppId, trust::decode::PresentedCertificates};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The most certificates: a country has a few hundred TPPs with some certificates each.
const MOST: usize = 10_000;

/// The most certificates of one TPP, so that one that has a certificate for each of its servers displaces no other TPP.
const MOST_OF_TPP: usize = 100;

/// The most bytes of all certificates, with those that came with them: 3 KiB for each.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The most certificates that are kept beside one: a header has at most eight, with the TPP's own.
const MOST_IN_POOL: usize = 7;

/// The most bytes of them: a header of 16 KiB has no more in base64. So a TPP that sends others each day takes no more of the room.
const MOST_BYTES_IN_POOL: usize = 12 * 1024;

/// A certificate is forgotten when no request was signed by it for more days than these.
const KEPT_DAYS: u64 = 30;

/// A certificate, and when a request was signed by it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenCertificate {
    /// The TPP that it identifies.
    pub(super) tpp: TppId,
    /// The last day, counted from 1970-01-01 in UTC.
    pub(super) day: u64,
    /// The certificate, and the pool that the TPP sent with it.
    pub(super) certificates: Arc<PresentedCertificates>,
}

impl SeenCertificate {
    /// Takes the later day of the same certificate, and those that came with it, of the later day first as far as there is room; returns
    /// whether that changed anything.
    fn join(&mut self, other: &Self) -> bool {
        let is_later = self.day < other.day;
        let (own, others) = (&self.certificates.pool, &other.certificates.pool);
        let has_all = others.iter().all(|one| own.contains(one));
        let pool = match self.day <= other.day {
            true => within_bounds(others, own),
            false => within_bounds(own, others),
        };
        let is_other = !has_all && pool != *own;
        if is_other {
            let leaf = self.certificates.leaf.clone();
            self.certificates = Arc::new(PresentedCertificates { leaf, pool });
        }
        self.day = self.day.max(other.day);
        is_later || is_other
    }
}

/// The certificates of two pools, each once, as far as there is room.
fn within_bounds(first: &[Vec<u8>], then: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut pool, mut bytes) = (Vec::<Vec<u8>>::new(), 0_usize);
    for one in first.iter().chain(then) {
        let together = bytes.saturating_add(one.len());
        let has_room = pool.len() < MOST_IN_POOL && together <= MOST_BYTES_IN_POOL;
        if has_room && !pool.contains(one) {
            bytes = together;
            pool.push(one.clone());
        }
    }
    pool
}

/// The SHA-256 of a certificate's DER.
type Fingerprint = [u8; 32];

pub(super) fn fingerprint_of(leaf: &[u8]) -> Fingerprint {
    Sha256::digest(leaf).into()
}

/// The bounded set of certificates. The bounds drop those whose last day is the oldest.
#[derive(Clone, Debug)]
pub(super) struct SeenRecord {
    by_tpp: BTreeMap<TppId, BTreeMap<Fingerprint, SeenCertificate>>,
    count: usize,
    bytes: usize,
    bounds: Bounds,
}

/// The bounds of a [`SeenRecord`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) certificates: usize,
    pub(super) of_tpp: usize,
    pub(super) bytes: usize,
}

impl Default for SeenRecord {
    fn default() -> Self {
        Self::within(Bounds {
            certificates: MOST,
            of_tpp: MOST_OF_TPP,
            bytes: MOST_BYTES,
        })
    }
}

impl SeenRecord {
    /// An empty record with these bounds.
    pub(super) const fn within(bounds: Bounds) -> Self {
        Self {
            by_tpp: BTreeMap::new(),
            count: 0,
            bytes: 0,
            bounds,
        }
    }

    /// Adds a certificate, or its later day and what came with it; returns whether that changed anything.
    pub(super) fn add(&mut self, seen: SeenCertificate) -> bool {
        let fingerprint = fingerprint_of(&seen.certificates.leaf);
        let tpp = seen.tpp.clone();
        let of_tpp = self.by_tpp.entry(tpp.clone()).or_default();
        if let Some(known) = of_tpp.get_mut(&fingerprint) {
            let before = size(known);
            let is_changed = known.join(&seen);
            let others = self.bytes.saturating_sub(before);
            self.bytes = others.saturating_add(size(known));
            self.drop_oldest();
            return is_changed;
        }
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size(&seen));
        of_tpp.insert(fingerprint, seen);
        if of_tpp.len() > self.bounds.of_tpp {
            let oldest = of_tpp.iter().min_by_key(|(_, seen)| seen.day);
            if let Some(oldest) = oldest.map(|(fingerprint, _)| *fingerprint) {
                self.remove(&tpp, &oldest);
            }
        }
        self.drop_oldest();
        true
    }

    /// Drops those whose last day is the oldest, until the rest is within the bounds of all.
    fn drop_oldest(&mut self) {
        while self.count > self.bounds.certificates || self.bytes > self.bounds.bytes {
            let all = self.by_tpp.iter();
            let all = all.flat_map(|(tpp, of_tpp)| of_tpp.iter().map(move |it| (tpp, it)));
            let oldest = all.min_by_key(|(_, (_, seen))| seen.day);
            let oldest = oldest.map(|(tpp, (fingerprint, _))| (tpp.clone(), *fingerprint));
            let Some((tpp, fingerprint)) = oldest else {
                break;
            };
            self.remove(&tpp, &fingerprint);
        }
    }

    /// Removes certificates that were not seen within 30 days of a day. A day that lies ahead by more counts too: the clock was wrong.
    pub(super) fn forget(&mut self, today: u64) {
        for of_tpp in self.by_tpp.values_mut() {
            of_tpp.retain(|_, seen| is_recent(seen, today));
        }
        self.by_tpp.retain(|_, of_tpp| !of_tpp.is_empty());
        self.count = self.all().count();
        self.bytes = self.all().map(size).fold(0, usize::saturating_add);
    }

    /// Each certificate, by TPP.
    pub(super) fn all(&self) -> impl Iterator<Item = &SeenCertificate> {
        self.by_tpp.values().flat_map(BTreeMap::values)
    }

    /// Whether there is a certificate of this TPP.
    pub(super) fn has(&self, tpp: &TppId) -> bool {
        self.by_tpp.contains_key(tpp)
    }

    /// The TPPs whose certificates were seen within 30 days.
    pub(super) fn tpps(&self, today: u64) -> BTreeSet<TppId> {
        let recent = self.all().filter(|seen| is_recent(seen, today));
        recent.map(|seen| seen.tpp.clone()).collect()
    }

    fn remove(&mut self, tpp: &TppId, fingerprint: &Fingerprint) {
        let Some(of_tpp) = self.by_tpp.get_mut(tpp) else {
            return;
        };
        if let Some(removed) = of_tpp.remove(fingerprint) {
            self.count = self.count.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(size(&removed));
        }
        if of_tpp.is_empty() {
            self.by_tpp.remove(tpp);
        }
    }
}

/// The day of a time in UTC, counted from 1970-01-01.
pub(super) const fn day_of(at: Timestamp) -> u64 {
    at.unix() / 86_400
}

const fn is_recent(seen: &SeenCertificate, today: u64) -> bool {
    seen.day.abs_diff(today) <= KEPT_DAYS
}

/// The bytes of a certificate and of those that came with it.
fn size(seen: &SeenCertificate) -> usize {
    let PresentedCertificates { leaf, pool } = &*seen.certificates;
    let pool = pool.iter().map(Vec::len);
    pool.fold(leaf.len(), usize::saturating_add)
}
