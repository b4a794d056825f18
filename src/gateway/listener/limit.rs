//! Limits the number of open connections, in total and per address (ERR-4, HTTP-9).
//!
//! A connection counts from when it is accepted until it is closed, including the handshake. Deliberately not here: the use of a
//! connection, and the rates of requests (QUO-12).

use crate::telemetry::Telemetry;
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

    /// A place for a connection from this address: within the limits, or as an excess connection that gets a refusal, or `None`.
    pub(super) fn place(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let network = Network::of(address);
        let is_excess = !self.take(network);
        let taken = if is_excess {
            take(&self.told, TOLD)
        } else {
            true
        };
        taken.then(|| {
            self.telemetry.connection_opened();
            Place {
                limit: Arc::clone(self),
                network,
                is_excess,
            }
        })
    }

    fn take(&self, network: Network) -> bool {
        if !take(&self.open, self.total) {
            return false;
        }
        let Some(most) = self.per_address else {
            return true;
        };
        let is_within = self.by_network.lock().is_ok_and(|mut by_network| {
            let count = by_network.entry(network).or_default();
            let is_within = *count < most;
            if is_within {
                *count = count.saturating_add(1);
            }
            is_within
        });
        if !is_within {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        is_within
    }

    fn give_back(&self, network: Network) {
        self.open.fetch_sub(1, Ordering::Relaxed);
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
    network: Network,
    is_excess: bool,
}

impl Place {
    /// Whether the connection exceeds the limit, and only gets a refusal.
    pub(super) const fn is_excess(&self) -> bool {
        self.is_excess
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.limit.telemetry.connection_closed();
        if self.is_excess {
            self.limit.told.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.limit.give_back(self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(total: usize, per_address: Option<usize>) -> Arc<ConnectionLimit> {
        ConnectionLimit::new(total, per_address, Arc::new(Telemetry::new(false)))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places() {
        let limit = limit(3, Some(2));
        let one = limit.place(address("192.0.2.1")).unwrap();
        let two = limit.place(address("::ffff:192.0.2.1")).unwrap();
        assert!(!one.is_excess() && !two.is_excess());
        // This address has its two connections, others do not.
        assert!(limit.place(address("192.0.2.1")).unwrap().is_excess());
        let other = limit.place(address("2001:db8::1")).unwrap();
        assert!(!other.is_excess());
        // All three places are taken, so any address is refused.
        assert!(limit.place(address("198.51.100.1")).unwrap().is_excess());
        drop(one);
        let again = limit.place(address("192.0.2.1")).unwrap();
        assert!(!again.is_excess());
        drop((two, other, again));
        assert_eq!(limit.open.load(Ordering::Relaxed), 0);
        assert!(limit.by_network.lock().unwrap().is_empty());
    }

    #[test]
    fn a_customer_has_a_whole_64() {
        let limit = limit(9, Some(1));
        let _one = limit.place(address("2001:db8:0:1::1")).unwrap();
        let same = limit.place(address("2001:db8:0:1:ffff::2")).unwrap();
        let next = limit.place(address("2001:db8:0:2::1")).unwrap();
        assert!(same.is_excess() && !next.is_excess());
    }

    #[test]
    fn so_many_are_told() {
        let limit = limit(0, None);
        let told: Vec<_> = (0..=TOLD)
            .map(|_| limit.place(address("192.0.2.1")))
            .collect();
        assert_eq!(told.iter().flatten().count(), TOLD);
        drop(told);
        assert!(limit.place(address("192.0.2.1")).is_some());
    }
}
