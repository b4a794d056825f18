//! Shares of the evidence (FWD-8): each subject has places of its own for records in every second or minute, and a few more that all share.
//!
//! Invariants: the noise of one subject takes no place of another; the memory is bounded; and a record that found no place is counted for
//! its subject, until one record a minute says how many there were. Deliberately not here: the records.

use super::subject::{Subject, TPPS};
use crate::clock::Stopwatch;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A subject says at most once in this time what was left out of it, and is forgotten when it was silent for as long.
pub(super) const SAID_EVERY: Duration = Duration::from_secs(60);

/// What was left out is looked for at most once in this time.
const LOOKED_EVERY: Duration = Duration::from_secs(1);

/// The places of each subject, and those that all subjects of the kind share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) own: u32,
    pub(super) common: u32,
    /// The time after which the places are free again.
    pub(super) within: Duration,
}

/// The records of one kind.
#[derive(Debug)]
pub(super) struct Shares {
    most: Most,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    of: HashMap<Subject, Share>,
    common: Window,
    looked: Stopwatch,
    /// Since when records wait too long for their place to be free again.
    crowded: Option<Stopwatch>,
}

#[derive(Debug)]
struct Share {
    window: Window,
    omitted: u64,
    /// Since the last record of what was left out, or since the first one that found no place.
    said: Stopwatch,
}

/// The places that are taken within a time.
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

    /// Takes one of `most` places, which are free again after `within`: in a crowd of this age only once.
    fn take(&mut self, most: u32, within: Duration, crowd: Option<Duration>) -> bool {
        let age = self.since.elapsed();
        if age >= within && crowd.is_none_or(|crowd| age > crowd) {
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
            crowded: None,
        };
        Self {
            most,
            held: Mutex::new(held),
        }
    }

    /// Takes a place for a record of this subject. False if it has none: then the record is counted as left out.
    pub(super) fn take(&self, subject: Subject) -> bool {
        self.take_in(false, subject)
    }

    /// Does so where so many records may wait for the disk that they are a crowd: until they are written, each subject has its places once
    /// more, and not in every second.
    pub(super) fn take_in(&self, is_crowd: bool, subject: Subject) -> bool {
        let mut held = self.held();
        let Held {
            of,
            common,
            crowded,
            ..
        } = &mut *held;
        let crowd = match is_crowd {
            true => Some(crowded.get_or_insert_with(Stopwatch::start).elapsed()),
            false => {
                *crowded = None;
                None
            }
        };
        let subject = match subject {
            Subject::Tpp(_) if !of.contains_key(&subject) && !has_room(of) => Subject::OtherTpps,
            subject => subject,
        };
        let share = share(of, subject);
        let Most {
            own,
            common: in_common,
            within,
        } = self.most;
        if share.window.take(own, within, crowd) || common.take(in_common, within, crowd) {
            return true;
        }
        if share.omitted == 0 && share.said.elapsed() >= SAID_EVERY {
            share.said = Stopwatch::start();
        }
        share.omitted = share.omitted.saturating_add(1);
        false
    }

    /// Frees all places: the records are written.
    pub(super) fn free(&self) {
        for share in self.held().of.values_mut() {
            share.window = Window::start();
        }
    }

    /// The subjects whose left-out records are to be said now, with their number; all of them at the end of the process. At most one look in a
    /// second costs more than a comparison.
    pub(super) fn due(&self, is_end: bool) -> Vec<(Subject, u64)> {
        let mut held = self.held();
        if !is_end && held.looked.elapsed() < LOOKED_EVERY {
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

    /// Counts these as left out again: they could not be said.
    pub(super) fn put_back(&self, subject: Subject, omitted: u64) {
        let mut held = self.held();
        let share = share(&mut held.of, subject);
        share.omitted = share.omitted.saturating_add(omitted);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn share(of: &mut HashMap<Subject, Share>, subject: Subject) -> &mut Share {
    of.entry(subject).or_insert_with(|| Share {
        window: Window::start(),
        omitted: 0,
        said: Stopwatch::start(),
    })
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
    use crate::{interface::TppId, telemetry::subject::NETWORKS};
    use std::net::IpAddr;

    const SECOND: Duration = Duration::from_secs(1);

    fn shares(own: u32, common: u32) -> Shares {
        Shares::new(Most {
            own,
            common,
            within: SECOND,
        })
    }

    fn tpp(number: usize) -> Subject {
        Subject::Tpp(TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap())
    }

    /// FWD-8: however much one asks for, another has its places, also when all common ones are taken; and what is left out is counted.
    #[test]
    fn the_noise_of_one_takes_no_place_of_another() {
        let shares = shares(4, 50);
        let mut kept = 0_u64;
        for _ in 0..2_000 {
            kept += u64::from(shares.take(tpp(1)));
        }
        assert!((0..4).all(|_| shares.take(tpp(2))));
        let left: HashMap<_, _> = shares.due(true).into_iter().collect();
        assert_eq!(left.get(&tpp(1)), Some(&(2_000 - kept)));
        assert_eq!(left.get(&tpp(2)), None);
        assert!(shares.due(true).is_empty(), "said once");
        shares.put_back(tpp(2), 3);
        assert_eq!(shares.due(true), [(tpp(2), 3)]);
        shares.free();
        assert!((0..4).all(|_| shares.take(tpp(1))));
    }

    /// FWD-8: while the disk takes nothing, the noise of one leaves each other one its places, also where it had used them before.
    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn a_crowd_leaves_each_its_places_once() {
        let shares = shares(2, 0);
        assert!(shares.take(tpp(2)) && shares.take(tpp(2)) && !shares.take(tpp(2)));
        tokio::time::advance(2 * SECOND).await;
        let of_noise = (0..100).filter(|_| shares.take_in(true, tpp(1))).count();
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(of_noise, 2);
        assert!(!shares.take_in(true, tpp(1)));
        let of_other = (0..9).filter(|_| shares.take_in(true, tpp(2))).count();
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(of_other, 2);
        assert!(!shares.take_in(true, tpp(2)));
        assert!(shares.take(tpp(1)) && shares.take(tpp(2)));
    }

    #[test]
    fn memory_is_bounded_and_the_last_have_a_share_together() {
        let shares = shares(1, 0);
        for number in 0..3 * TPPS {
            shares.take(tpp(number));
        }
        let address = |number: u32| Some(IpAddr::from(number.to_be_bytes()));
        for number in 0..10_000 {
            shares.take(Subject::network(address(number)));
        }
        let held = shares.held().of.len();
        assert_eq!(held, TPPS + 1 + NETWORKS);
    }
}
