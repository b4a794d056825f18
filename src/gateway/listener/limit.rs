//! Limits the number of open connections, in total and per address (ERR-4, HTTP-9).
//!
//! A connection counts from when it is accepted until it is closed, including the handshake. Deliberately not here: the use of a
//! connection, and the rates of requests (QUO-12).

use crate::{interface::Reason, telemetry::Telemetry};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The number of excess connections that get a refusal before they are closed. Further ones are closed without an answer, so the
/// resources of excess connections stay bounded.
pub(in crate::gateway) const TOLD: usize = 64;

/// The number of open connections.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    total: usize,
    per_address: Option<usize>,
    open: AtomicUsize,
    told: AtomicUsize,
    by_network: Mutex<HashMap<Network, usize>>,
    telemetry: Arc<Telemetry>,
}

/// The key that a connection is counted by: an IPv4 address, or the /64 of an IPv6 address, all of which belongs to one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    V4(u32),
    V6(u64),
}

impl Network {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => {
                Self::V6(u64::try_from(address.to_bits() >> 64).unwrap_or_default())
            }
        }
    }
}

impl ConnectionLimit {
    /// Creates the limits: in total, and per address.
    pub(super) fn new(
        total: usize,
        per_address: Option<usize>,
        telemetry: Arc<Telemetry>,
    ) -> Arc<Self> {
        Arc::new(Self {
            total,
            per_address,
            open: AtomicUsize::new(0),
            told: AtomicUsize::new(0),
            by_network: Mutex::default(),
            telemetry,
        })
    }

    /// A place for a connection, counted in total: within the limit, or as an excess connection that gets a refusal, or `None`.
    pub(super) fn place(self: &Arc<Self>) -> Option<Place> {
        let is_excess = !take(&self.open, self.total);
        let taken = !is_excess || take(&self.told, TOLD);
        taken.then(|| {
            self.telemetry.connection_opened();
            Place {
                limit: Arc::clone(self),
                network: None,
                excess: is_excess.then_some(Reason::Overloaded),
            }
        })
    }

    /// Counts a connection of this network, if the limit allows it.
    fn take_network(&self, network: Network) -> bool {
        let Some(most) = self.per_address else {
            return true;
        };
        self.by_network.lock().is_ok_and(|mut by_network| {
            let count = by_network.entry(network).or_default();
            let is_within = *count < most;
            if is_within {
                *count = count.saturating_add(1);
            }
            is_within
        })
    }

    fn give_back_network(&self, network: Network) {
        if self.per_address.is_none() {
            return;
        }
        if let Ok(mut by_network) = self.by_network.lock()
            && let Some(count) = by_network.get_mut(&network)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                by_network.remove(&network);
            }
        }
    }
}

/// Increments the count if the limit allows it.
fn take(count: &AtomicUsize, most: usize) -> bool {
    let more = |count: usize| (count < most).then(|| count.saturating_add(1));
    let updated = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    updated.is_ok()
}

/// A connection's place; dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    limit: Arc<ConnectionLimit>,
    /// The network that the connection is counted by; `None` if it is counted only in total.
    network: Option<Network>,
    excess: Option<Reason>,
}

impl Place {
    /// Counts the connection by its client's address too, which a proxy may name later. Beyond the limit it becomes an excess
    /// connection. `None` if there are too many of these.
    pub(super) fn of_client(mut self, address: IpAddr) -> Option<Self> {
        if self.is_excess() {
            return Some(self);
        }
        let network = Network::of(address);
        if self.limit.take_network(network) {
            self.network = Some(network);
            return Some(self);
        }
        let is_told = take(&self.limit.told, TOLD);
        if is_told {
            self.excess = Some(Reason::TooManyAtOnce);
            self.limit.open.fetch_sub(1, Ordering::Relaxed);
        }
        is_told.then_some(self)
    }

    /// Whether the connection exceeds a limit, and only gets a refusal.
    pub(super) const fn is_excess(&self) -> bool {
        self.excess.is_some()
    }

    /// The reason of that refusal: the limit in total, or that of the address.
    pub(super) const fn excess(&self) -> Option<Reason> {
        self.excess
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.limit.telemetry.connection_closed();
        let counted = if self.is_excess() {
            &self.limit.told
        } else {
            &self.limit.open
        };
        counted.fetch_sub(1, Ordering::Relaxed);
        if let Some(network) = self.network {
            self.limit.give_back_network(network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(total: usize, per_address: Option<usize>) -> Arc<ConnectionLimit> {
        ConnectionLimit::new(total, per_address, Arc::new(Telemetry::new(None)))
    }

    fn place(limit: &Arc<ConnectionLimit>, address: &str) -> Option<Place> {
        limit.place()?.of_client(address.parse().unwrap())
    }

    #[test]
    fn places() {
        let limit = limit(3, Some(2));
        let one = place(&limit, "192.0.2.1").unwrap();
        let two = place(&limit, "::ffff:192.0.2.1").unwrap();
        assert!(!one.is_excess() && !two.is_excess());
        // This address has its two connections, others do not.
        let excess = |address| place(&limit, address).unwrap().excess();
        assert_eq!(excess("192.0.2.1"), Some(Reason::TooManyAtOnce));
        let other = place(&limit, "2001:db8::1").unwrap();
        assert!(!other.is_excess());
        // All three places are taken, so any address is refused.
        assert_eq!(excess("198.51.100.1"), Some(Reason::Overloaded));
        drop(one);
        let again = place(&limit, "192.0.2.1").unwrap();
        assert!(!again.is_excess());
        drop((two, other, again));
        let [open, told] = [&limit.open, &limit.told].map(|count| count.load(Ordering::Relaxed));
        assert_eq!((open, told), (0, 0));
        assert!(limit.by_network.lock().unwrap().is_empty());
    }

    /// A proxy's connections count only in total until the client is known.
    #[test]
    fn connections_without_a_client() {
        let limit = limit(3, Some(1));
        let proxied: Vec<_> = (0..3).map(|_| limit.place().unwrap()).collect();
        assert!(limit.place().unwrap().is_excess());
        let client = |place: Place| place.of_client("192.0.2.1".parse().unwrap()).unwrap();
        let places: Vec<_> = proxied.into_iter().map(client).collect();
        let are_excess: Vec<_> = places.iter().map(Place::is_excess).collect();
        assert_eq!(are_excess, [false, true, true]);
        assert!(!limit.place().unwrap().is_excess(), "two were given back");
    }

    #[test]
    fn a_customer_has_a_whole_64() {
        let limit = limit(9, Some(1));
        let _one = place(&limit, "2001:db8:0:1::1").unwrap();
        let same = place(&limit, "2001:db8:0:1:ffff::2").unwrap();
        let next = place(&limit, "2001:db8:0:2::1").unwrap();
        assert!(same.is_excess() && !next.is_excess());
    }

    #[test]
    fn so_many_are_told() {
        let limit = limit(0, None);
        let told: Vec<_> = (0..=TOLD).map(|_| place(&limit, "192.0.2.1")).collect();
        assert_eq!(told.iter().flatten().count(), TOLD);
        drop(told);
        assert!(place(&limit, "192.0.2.1").is_some());
    }
}
