//! The samples of accepted requests in the access log: one of a number, counted for each subject (FWD-8).
//!
//! Invariants: the requests of one subject take no sample of another, and one line a minute says of each how many of its requests have
//! none. Deliberately not here: which requests always have a line.

use super::{
    shares::SAID_EVERY,
    subject::{NETWORKS, Subject, TPPS},
};
use crate::{clock::Stopwatch, interface::TppId};
use std::{
    collections::{HashMap, HashSet},
    num::NonZeroU32,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

/// The counts of accepted requests.
#[derive(Debug)]
pub(super) struct Sampling {
    tpps: RwLock<HashMap<TppId, Sampled>>,
    /// Of the TPPs beyond those with a count of their own, and of requests of nobody.
    others: Sampled,
    networks: Vec<Sampled>,
    said: Mutex<Stopwatch>,
}

#[derive(Debug, Default)]
struct Sampled {
    accepted: AtomicU32,
    /// The requests without a line since this was said.
    omitted: AtomicU64,
}

impl Sampled {
    /// Counts a request; true if it is one of `number`, as the first is.
    fn count(&self, number: NonZeroU32) -> bool {
        let before = self.accepted.fetch_add(1, Ordering::Relaxed);
        let has_line = before.is_multiple_of(number.get());
        if !has_line {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
        has_line
    }

    fn due(&self) -> Option<u64> {
        let omitted = self.omitted.swap(0, Ordering::Relaxed);
        (omitted > 0).then_some(omitted)
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            tpps: RwLock::default(),
            others: Sampled::default(),
            networks: (0..NETWORKS).map(|_| Sampled::default()).collect(),
            said: Mutex::new(Stopwatch::start()),
        }
    }
}

impl Sampling {
    /// Counts an accepted request of this subject; true if it has a line. It never waits for a request of a known subject.
    pub(super) fn count(&self, subject: &Subject, number: NonZeroU32) -> bool {
        let tpp = match subject {
            Subject::Tpp(tpp) => tpp,
            other => return self.other(other).count(number),
        };
        let tpps = self.tpps.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(sampled) = tpps.get(tpp) {
            return sampled.count(number);
        }
        let is_full = tpps.len() >= TPPS;
        drop(tpps);
        if is_full {
            return self.others.count(number);
        }
        let mut tpps = self.tpps.write().unwrap_or_else(PoisonError::into_inner);
        tpps.entry(tpp.clone()).or_default().count(number)
    }

    fn other(&self, subject: &Subject) -> &Sampled {
        let network = match subject {
            Subject::Network(share) => self.networks.get(*share),
            _ => None,
        };
        network.unwrap_or(&self.others)
    }

    /// The subjects with requests that have no line, and their number; nothing if this was said within a minute.
    pub(super) fn due(&self, is_end: bool) -> Vec<(Subject, u64)> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_end && said.elapsed() < SAID_EVERY {
            return Vec::new();
        }
        *said = Stopwatch::start();
        let mut tpps = self.tpps.write().unwrap_or_else(PoisonError::into_inner);
        let all = tpps.iter();
        let mut due: Vec<_> = all
            .filter_map(|(tpp, sampled)| Some((Subject::Tpp(tpp.clone()), sampled.due()?)))
            .collect();
        if tpps.len() >= TPPS {
            // The silent ones leave their places to others.
            let active: HashSet<_> = due.iter().map(|(subject, _)| subject.clone()).collect();
            tpps.retain(|tpp, _| active.contains(&Subject::Tpp(tpp.clone())));
        }
        drop(tpps);
        due.extend(
            self.others
                .due()
                .map(|omitted| (Subject::OtherTpps, omitted)),
        );
        let networks = self.networks.iter().enumerate();
        due.extend(
            networks.filter_map(|(share, sampled)| Some((Subject::Network(share), sampled.due()?))),
        );
        due
    }

    /// Counts these as without a line again: this could not be said.
    pub(super) fn put_back(&self, subject: &Subject, omitted: u64) {
        let tpps = self.tpps.read().unwrap_or_else(PoisonError::into_inner);
        let own = match subject {
            Subject::Tpp(tpp) => tpps.get(tpp),
            _ => None,
        };
        let sampled = own.unwrap_or_else(|| self.other(subject));
        sampled.omitted.fetch_add(omitted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tpp(number: usize) -> Subject {
        Subject::Tpp(TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap())
    }

    /// FWD-8: each subject has one of four of its own requests, however many another sends between them.
    #[test]
    fn the_requests_of_one_take_no_sample_of_another() {
        let sampling = Sampling::default();
        let four = NonZeroU32::new(4).unwrap();
        let (mut of_quiet, mut of_network) = (0, 0);
        for _ in 0..20 {
            // In the rhythm in which one count of all would give all samples to the noise.
            for _ in 0..3 {
                sampling.count(&tpp(1), four);
            }
            of_quiet += usize::from(sampling.count(&tpp(2), four));
            of_network += usize::from(sampling.count(&Subject::Network(7), four));
        }
        assert_eq!((of_quiet, of_network), (5, 5));
        assert_eq!(sampling.due(false), []);
        let mut due = sampling.due(true);
        due.sort_by_key(|(_, omitted)| std::cmp::Reverse(*omitted));
        assert_eq!(due.first(), Some(&(tpp(1), 45)));
        assert!(due.contains(&(tpp(2), 15)) && due.contains(&(Subject::Network(7), 15)));
        assert_eq!(sampling.due(true), []);
        sampling.put_back(&tpp(2), 3);
        assert_eq!(sampling.due(true), [(tpp(2), 3)]);
    }

    #[test]
    fn memory_is_bounded() {
        let sampling = Sampling::default();
        let two = NonZeroU32::new(2).unwrap();
        for number in 0..TPPS + 10 {
            sampling.count(&tpp(number), two);
            sampling.count(&tpp(number), two);
        }
        assert_eq!(sampling.tpps.read().unwrap().len(), TPPS);
        assert!(sampling.due(true).contains(&(Subject::OtherTpps, 10)));
        // All were silent since.
        sampling.due(true);
        assert_eq!(sampling.tpps.read().unwrap().len(), 0);
    }
}
