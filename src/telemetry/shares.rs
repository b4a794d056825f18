//! Shares of the evidence (FWD-8): each subject has places of its own for records in every second, and a few more that all share.
//!
//! Invariants: the noise of one subject takes no place of another; the memory is bounded; and a record that found no place is counted for
//! its subject, until one record a minute says how many there were. Deliberately not here: the records.

use crate::{clock::Stopwatch, interface::TppId};
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The most verified TPPs with a share of their own; more have one together.
const TPPS: usize = 1_024;

/// The shares of unverified callers, by a keyed hash of their network, so that nobody chooses whose share is his.
const NETWORKS: u64 = 256;

/// A subject says at most once in this time what was left out of it, and is forgotten when it was silent for as long.
const SAID_EVERY: Duration = Duration::from_secs(60);

const SECOND: Duration = Duration::from_secs(1);

/// Whose records are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// A TPP whose signature has verified.
    Tpp(TppId),
    /// The verified TPPs beyond those with a share of their own.
    OtherTpps,
    /// Callers from some networks.
    Network(u64),
}

/// The places of each subject in a second, and those that all subjects of the kind share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) own: u32,
    pub(super) common: u32,
}

/// The records of one kind.
#[derive(Debug)]
pub(super) struct Shares {
    most: Most,
    held: Mutex<Held>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Held {
    of: HashMap<Subject, Share>,
    common: Window,
    looked: Stopwatch,
}

#[derive(Debug)]
struct Share {
    window: Window,
    omitted: u64,
    /// Since the last record of what was left out, or since the first one that found no place.
    said: Stopwatch,
}

/// The places that are taken in a second.
#[derive(Debug)]
struct Window {
    since: Stopwatch,
    taken: u32,
}

impl Window {
    fn start() -> Self {
        Self {
            since: Stopwatch::start(),
            taken: 0,
        }
    }

    fn take(&mut self, most: u32) -> bool {
        if self.since.elapsed() >= SECOND {
            *self = Self::start();
        }
        let has_place = self.taken < most;
        self.taken = self.taken.saturating_add(u32::from(has_place));
        has_place
    }
}

impl Shares {
    pub(super) fn new(most: Most) -> Self {
        let held = Held {
            of: HashMap::new(),
            common: Window::start(),
            looked: Stopwatch::start(),
        };
        Self {
            most,
            held: Mutex::new(held),
            hasher: RandomState::new(),
        }
    }

    /// Takes a place for a record of an unverified caller.
    pub(super) fn take_of_network(&self, address: Option<IpAddr>) -> bool {
        self.take(self.network(address))
    }

    /// The subject of callers from this network: an IPv4 address, or a /64 of IPv6.
    fn network(&self, address: Option<IpAddr>) -> Subject {
        let network = address.map(|address| match address.to_canonical() {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits() >> 64 << 64,
        });
        Subject::Network(self.hasher.hash_one(network) % NETWORKS)
    }

    /// Takes a place for a record of this subject. False if it has none in this second: then the record is counted as left out.
    pub(super) fn take(&self, subject: Subject) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Held { of, common, .. } = &mut *held;
        let subject = match subject {
            Subject::Tpp(_) if !of.contains_key(&subject) && !has_room(of) => Subject::OtherTpps,
            subject => subject,
        };
        let share = of.entry(subject).or_insert_with(|| Share {
            window: Window::start(),
            omitted: 0,
            said: Stopwatch::start(),
        });
        if share.window.take(self.most.own) || common.take(self.most.common) {
            return true;
        }
        if share.omitted == 0 && share.said.elapsed() >= SAID_EVERY {
            share.said = Stopwatch::start();
        }
        share.omitted = share.omitted.saturating_add(1);
        false
    }

    /// The subjects whose left-out records are to be said now, with their number; all of them at the end of the process. At most one look in a
    /// second costs more than a comparison.
    pub(super) fn due(&self, is_end: bool) -> Vec<(Subject, u64)> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_end && held.looked.elapsed() < SECOND {
            return Vec::new();
        }
        held.looked = Stopwatch::start();
        let mut due = Vec::new();
        for (subject, share) in &mut held.of {
            if share.omitted > 0 && (is_end || share.said.elapsed() >= SAID_EVERY) {
                due.push((subject.clone(), std::mem::take(&mut share.omitted)));
                share.said = Stopwatch::start();
            }
        }
        due
    }
}

/// Whether another TPP can have a share: those that were silent are forgotten.
fn has_room(of: &mut HashMap<Subject, Share>) -> bool {
    let is_tpp = |subject: &Subject| matches!(subject, Subject::Tpp(_));
    if of.keys().filter(|subject| is_tpp(subject)).count() >= TPPS {
        let is_silent =
            |share: &Share| share.omitted == 0 && share.window.since.elapsed() >= SAID_EVERY;
        of.retain(|subject, share| !is_tpp(subject) || !is_silent(share));
    }
    of.keys().filter(|subject| is_tpp(subject)).count() < TPPS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tpp(number: usize) -> Subject {
        Subject::Tpp(TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap())
    }

    /// FWD-8: however much one asks for, another has its places, also when all common ones are taken; and what is left out is counted.
    #[test]
    fn the_noise_of_one_takes_no_place_of_another() {
        let shares = Shares::new(Most { own: 4, common: 50 });
        let mut kept = 0_u64;
        for _ in 0..2_000 {
            kept += u64::from(shares.take(tpp(1)));
        }
        assert!((0..4).all(|_| shares.take(tpp(2))));
        let left: HashMap<_, _> = shares.due(true).into_iter().collect();
        assert_eq!(left.get(&tpp(1)), Some(&(2_000 - kept)));
        assert_eq!(left.get(&tpp(2)), None);
        assert!(shares.due(true).is_empty(), "said once");
    }

    #[test]
    fn memory_is_bounded_and_the_last_have_a_share_together() {
        let shares = Shares::new(Most { own: 1, common: 0 });
        for number in 0..3 * TPPS {
            shares.take(tpp(number));
        }
        let address = |number: u32| Some(IpAddr::from(number.to_be_bytes()));
        for number in 0..10_000 {
            shares.take(shares.network(address(number)));
        }
        let held = shares.held.lock().unwrap().of.len();
        assert_eq!(held, TPPS + 1 + usize::try_from(NETWORKS).unwrap());
        let of = |text: &str| shares.network(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
