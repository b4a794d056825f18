//! Who sends most, and what it meets: the callers' networks, the TPPs, the operations and the reasons of the last minutes, for an operator
//! who looks for a cause (`GET /top`).
//!
//! Invariants: memory is fixed, whatever strangers send: of each kind, a minute keeps [`MOST`] keys, and a new key takes the place of the one
//! with the fewest counts and begins with that number (the space-saving algorithm of Metwally, Agrawal and El Abbadi), so that nobody who
//! sends much is missed, and a count is too high by at most `above`. No PSU and no path is a key.

use super::facts::Finished;
use crate::{
    admission::{Outcome, Stage},
    clock::Stopwatch,
    hex,
    interface::{Reason, TppId},
    network::Network,
};
use std::{
    borrow::Borrow,
    cmp::Reverse,
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    net::IpAddr,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

/// The keys of each kind in a minute.
const MOST: usize = 64;

/// The minutes that are kept, the current one among them.
pub const MINUTES: u64 = 5;

/// The key of the hash of networks, of this process.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A number for a network that is the same in all lines of this process, and of which nobody else finds the network.
pub fn keyed(network: Network) -> String {
    hex::encode(&KEY.hash_one(network).to_be_bytes())
}

/// The counts of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The requests that have ended, and for a network its new connections too.
    pub all: u64,
    /// How much of `all` may be that of other keys.
    pub above: u64,
    /// The new connections among them.
    pub connections: u64,
    /// The requests that were refused or that failed.
    pub refused: u64,
    /// The time of the requests, from the head to the end of the answer, in all and of the slowest.
    pub time: Duration,
    /// The slowest request.
    pub slowest: Duration,
}

impl Count {
    const fn add(&mut self, other: &Self) {
        self.all = self.all.saturating_add(other.all);
        self.above = self.above.saturating_add(other.above);
        self.connections = self.connections.saturating_add(other.connections);
        self.refused = self.refused.saturating_add(other.refused);
        self.time = self.time.saturating_add(other.time);
        if other.slowest.as_nanos() > self.slowest.as_nanos() {
            self.slowest = other.slowest;
        }
    }
}

/// The counts of the keys of one kind.
#[derive(Debug)]
struct Counts<K>(HashMap<K, Count>);

impl<K: Hash + Eq + Clone> Counts<K> {
    fn add<Q>(&mut self, key: &Q, count: &Count)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(known) = self.0.get_mut(key) {
            return known.add(count);
        }
        let above = if self.0.len() < MOST {
            0
        } else {
            self.take_least()
        };
        let mut new = Count {
            all: above,
            above,
            ..Count::default()
        };
        new.add(count);
        self.0.insert(key.to_owned(), new);
    }

    /// Removes the key with the fewest counts, and returns that number.
    fn take_least(&mut self) -> u64 {
        let least = self.0.iter().min_by_key(|(_, count)| count.all);
        let Some((key, all)) = least.map(|(key, count)| (key.clone(), count.all)) else {
            return 0;
        };
        self.0.remove(&key);
        all
    }
}

/// One minute.
#[derive(Debug)]
struct Minute {
    /// Its number since the start.
    number: u64,
    networks: Counts<Network>,
    tpps: Counts<TppId>,
    operations: Counts<String>,
    /// In the order of [`Reason::ALL`].
    reasons: Vec<Count>,
}

impl Minute {
    fn new(number: u64) -> Self {
        Self {
            number,
            networks: Counts(HashMap::new()),
            tpps: Counts(HashMap::new()),
            operations: Counts(HashMap::new()),
            reasons: vec![Count::default(); Reason::ALL.len()],
        }
    }
}

/// Who sends most.
#[derive(Debug)]
pub(super) struct Top {
    start: Stopwatch,
    minutes: Mutex<Vec<Minute>>,
}

/// The keys of each kind with their counts, those with the most first.
#[derive(Debug)]
pub struct TopCounts {
    /// The callers' networks.
    pub networks: Vec<(Network, Count)>,
    /// The TPPs whose signature verified.
    pub tpps: Vec<(TppId, Count)>,
    /// The operations.
    pub operations: Vec<(String, Count)>,
    /// The reasons of refusals and failures.
    pub reasons: Vec<(Reason, Count)>,
}

impl Top {
    pub(super) fn new() -> Self {
        Self {
            start: Stopwatch::start(),
            minutes: Mutex::default(),
        }
    }

    /// Counts a new connection, also one that is closed at once.
    pub(super) fn connected(&self, caller: IpAddr) {
        let count = Count {
            all: 1,
            connections: 1,
            ..Count::default()
        };
        self.now(|minute| minute.networks.add(&Network::of_site(caller), &count));
    }

    /// Counts a request that has ended.
    pub(super) fn ended(&self, finished: &Finished<'_>) {
        let reason = match finished.outcome {
            Outcome::Refused(reason) | Outcome::Failed(reason) => Some(reason),
            _ => None,
        };
        let took = finished.record.elapsed();
        let count = Count {
            all: 1,
            refused: u64::from(reason.is_some()),
            time: took,
            slowest: took,
            ..Count::default()
        };
        let record = finished.record;
        let tpp = record
            .shown_tpp()
            .filter(|_| record.holds(Stage::Signature));
        let operation = record.operation();
        self.now(|minute| {
            if let Some(caller) = finished.http.caller {
                minute.networks.add(&Network::of_site(caller), &count);
            }
            if let Some(tpp) = tpp {
                minute.tpps.add(tpp, &count);
            }
            if let Some(operation) = operation {
                minute.operations.add(operation.name.as_str(), &count);
            }
            let reasons = &mut minute.reasons;
            if let Some(known) = reason.and_then(|reason| reasons.get_mut(reason.index())) {
                known.add(&count);
            }
        });
    }

    /// The sums of the minutes that are kept: of each kind the `most` keys with the highest counts.
    pub(super) fn counts(&self, most: usize) -> TopCounts {
        self.now(|_| {});
        let minutes = self.minutes.lock().unwrap_or_else(PoisonError::into_inner);
        let first = self.number().saturating_sub(MINUTES - 1);
        let kept: Vec<_> = minutes
            .iter()
            .filter(|minute| minute.number >= first)
            .collect();
        TopCounts {
            networks: sums(kept.iter().flat_map(|minute| &minute.networks.0), most),
            tpps: sums(kept.iter().flat_map(|minute| &minute.tpps.0), most),
            operations: sums(kept.iter().flat_map(|minute| &minute.operations.0), most),
            reasons: sums(
                kept.iter()
                    .flat_map(|minute| Reason::ALL.iter().zip(&minute.reasons))
                    .filter(|(_, count)| count.all > 0),
                most,
            ),
        }
    }

    /// The current minute; one that is too old ends.
    fn now(&self, count: impl FnOnce(&mut Minute)) {
        let number = self.number();
        let mut minutes = self.minutes.lock().unwrap_or_else(PoisonError::into_inner);
        if minutes.last().is_none_or(|last| last.number != number) {
            minutes.retain(|minute| minute.number.saturating_add(MINUTES) > number);
            minutes.push(Minute::new(number));
        }
        if let Some(minute) = minutes.last_mut() {
            count(minute);
        }
    }

    fn number(&self) -> u64 {
        self.start.elapsed().as_secs() / 60
    }
}

fn sums<'a, K: Hash + Eq + Clone + 'a>(
    counts: impl Iterator<Item = (&'a K, &'a Count)>,
    most: usize,
) -> Vec<(K, Count)> {
    let mut sums: HashMap<K, Count> = HashMap::new();
    for (key, count) in counts {
        sums.entry(key.clone()).or_default().add(count);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| Reverse(count.all));
    sums.truncate(most);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn one() -> Count {
        Count {
            all: 1,
            ..Count::default()
        }
    }

    /// A flood from ten thousand networks does not hide the one that sends a tenth of it, and takes no more memory.
    #[test]
    fn whoever_sends_much_is_found() {
        let mut counts = Counts(HashMap::new());
        let loud = Network::of_site("192.0.2.7".parse().unwrap());
        for number in 0..10_000_u32 {
            let quiet = Network::of_site(IpAddr::V4(Ipv4Addr::from_bits(number << 8)));
            counts.add(&quiet, &one());
            if number % 10 == 0 {
                counts.add(&loud, &one());
            }
        }
        assert_eq!(counts.0.len(), MOST);
        let first = sums(counts.0.iter(), 1);
        assert_eq!(first[0].0, loud);
        let count = first[0].1;
        assert!(
            (count.all - count.above..=count.all).contains(&1_000),
            "{count:?}"
        );
    }

    #[test]
    fn a_network_has_one_key() {
        let keyed = |text: &str| keyed(Network::of_site(text.parse().unwrap()));
        assert_eq!(keyed("192.0.2.1"), keyed("192.0.2.9"));
        assert_ne!(keyed("192.0.2.1"), keyed("192.0.3.1"));
        assert_eq!(keyed("192.0.2.1").len(), 16);
    }

    #[test]
    fn times_add_up() {
        let mut count = Count::default();
        for seconds in [3, 5, 4] {
            let time = Duration::from_secs(seconds);
            count.add(&Count {
                all: 1,
                time,
                slowest: time,
                ..Count::default()
            });
        }
        assert_eq!((count.all, count.time.as_secs()), (3, 12));
        assert_eq!(count.slowest.as_secs(), 5);
    }
}
