//! Limits the number of open connections, in total and per address, and delays the handshakes of addresses that flood (ERR-4, HTTP-9).
//!
//! A connection counts from when it is accepted until it is closed, including the handshake. Deliberately not here: the use of a
//! connection, and the rates of requests (QUO-12).

use crate::{
    clock::Stopwatch,
    interface::Reason,
    network::Network,
    telemetry::{Connected, Telemetry},
};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The maximum number of open excess connections, each of which gets a refusal. Further ones are closed without an answer, so that
/// the resources of excess connections stay bounded.
pub(in crate::gateway) const MAX_EXCESS: usize = 64;

/// The time after a flood in which handshakes of its address wait: without it, a client that floods and connects again at once would
/// cost as many handshakes as it can begin. Short, because others may share the address.
const FLOOD_PAUSE: Duration = Duration::from_millis(500);

/// The number of open connections.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    total: usize,
    per_address: Option<usize>,
    open: AtomicUsize,
    excess: AtomicUsize,
    by_network: Mutex<HashMap<Network, Counted>>,
    telemetry: Arc<Telemetry>,
}

/// The open connections of a network, and the time since the last one that flooded.
#[derive(Debug, Default)]
struct Counted {
    open: usize,
    flooded: Option<Stopwatch>,
}

impl Counted {
    /// The time that the next handshake waits.
    fn pause(&self) -> Option<Duration> {
        let left = FLOOD_PAUSE.checked_sub(self.flooded.as_ref()?.elapsed())?;
        (!left.is_zero()).then_some(left)
    }

    fn is_needed(&self) -> bool {
        self.open > 0 || self.pause().is_some()
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
            excess: AtomicUsize::new(0),
            by_network: Mutex::default(),
            telemetry,
        })
    }

    /// A permit for a connection, counted in total: within the limit, or as an excess connection that gets a refusal, or `None`.
    pub(super) fn permit(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let is_excess = !take(&self.open, self.total);
        let taken = !is_excess || take(&self.excess, MAX_EXCESS);
        taken.then(|| {
            self.telemetry.connection_opened();
            ConnectionPermit {
                limit: Arc::clone(self),
                network: None,
                excess: is_excess.then_some(Reason::Overloaded),
                number: None,
            }
        })
    }

    /// Counts a connection of this network, if the limit allows it.
    fn take_network(&self, network: Network) -> bool {
        let Some(most) = self.per_address else {
            return true;
        };
        self.by_network.lock().is_ok_and(|mut by_network| {
            let counted = by_network.entry(network).or_default();
            let is_within = counted.open < most;
            if is_within {
                counted.open = counted.open.saturating_add(1);
            }
            is_within
        })
    }

    fn give_back_network(&self, network: Network) {
        if self.per_address.is_none() {
            return;
        }
        if let Ok(mut by_network) = self.by_network.lock()
            && let Some(counted) = by_network.get_mut(&network)
        {
            counted.open = counted.open.saturating_sub(1);
            if !counted.is_needed() {
                by_network.remove(&network);
            }
        }
    }

    /// Removes networks without connections whose floods are over.
    pub(super) fn forget_floods(&self) {
        if let Ok(mut by_network) = self.by_network.lock() {
            by_network.retain(|_, counted| counted.is_needed());
        }
    }
}

/// Increments the count if the limit allows it.
fn take(count: &AtomicUsize, most: usize) -> bool {
    let more = |count: usize| (count < most).then(|| count.saturating_add(1));
    let updated = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    updated.is_ok()
}

/// A connection's permit; dropping it frees the permit.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limit: Arc<ConnectionLimit>,
    /// The network that the connection is counted by; `None` if it is counted only in total.
    network: Option<Network>,
    excess: Option<Reason>,
    /// The number of the connection, once its handshake is completed.
    number: Option<u64>,
}

impl ConnectionPermit {
    /// Notes the connection as open after its handshake.
    pub(super) fn connected(&mut self, connection: Weak<dyn Connected>) {
        self.number = Some(self.limit.telemetry.connected(connection));
    }

    /// Counts the connection by its client's address too, which a proxy may name later. Beyond the limit it becomes an excess
    /// connection. `None` if there are too many of these.
    pub(super) fn of_client(mut self, address: IpAddr) -> Option<Self> {
        if self.is_excess() {
            return Some(self);
        }
        let network = Network::of_client(address);
        if self.limit.take_network(network) {
            self.network = Some(network);
            return Some(self);
        }
        let is_taken = take(&self.limit.excess, MAX_EXCESS);
        if is_taken {
            self.excess = Some(Reason::TooManyAtOnce);
            self.limit.open.fetch_sub(1, Ordering::Relaxed);
        }
        is_taken.then_some(self)
    }

    /// The connection was cut because it flooded: the next handshakes of its network wait. Nothing if there is no limit per address.
    pub(super) fn flooded(&self) {
        if let Ok(mut by_network) = self.limit.by_network.lock()
            && let Some(counted) = self.network.and_then(|key| by_network.get_mut(&key))
        {
            counted.flooded = Some(Stopwatch::start());
        }
    }

    /// The time that the connection's handshake waits, because another one of its network flooded.
    pub(super) fn pause(&self) -> Option<Duration> {
        let by_network = self.limit.by_network.lock().ok()?;
        by_network.get(&self.network?)?.pause()
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

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limit.telemetry.connection_closed(self.number);
        let counted = if self.is_excess() {
            &self.limit.excess
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

    fn permit(limit: &Arc<ConnectionLimit>, address: &str) -> Option<ConnectionPermit> {
        limit.permit()?.of_client(address.parse().unwrap())
    }

    #[test]
    fn places() {
        let limit = limit(3, Some(2));
        let one = permit(&limit, "192.0.2.1").unwrap();
        let two = permit(&limit, "::ffff:192.0.2.1").unwrap();
        assert!(!one.is_excess() && !two.is_excess());
        // This address has its two connections, others do not.
        let excess = |address| permit(&limit, address).unwrap().excess();
        assert_eq!(excess("192.0.2.1"), Some(Reason::TooManyAtOnce));
        let other = permit(&limit, "2001:db8::1").unwrap();
        assert!(!other.is_excess());
        // All three places are taken, so any address is refused.
        assert_eq!(excess("198.51.100.1"), Some(Reason::Overloaded));
        drop(one);
        let again = permit(&limit, "192.0.2.1").unwrap();
        assert!(!again.is_excess());
        drop((two, other, again));
        let counts = [&limit.open, &limit.excess];
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [0, 0]);
        assert!(limit.by_network.lock().unwrap().is_empty());
    }

    /// A proxy's connections count only in total until the client is known.
    #[test]
    fn connections_without_a_client() {
        let limit = limit(3, Some(1));
        let proxied: Vec<_> = (0..3).map(|_| limit.permit().unwrap()).collect();
        assert!(limit.permit().unwrap().is_excess());
        let client =
            |permit: ConnectionPermit| permit.of_client("192.0.2.1".parse().unwrap()).unwrap();
        let places: Vec<_> = proxied.into_iter().map(client).collect();
        let are_excess: Vec<_> = places.iter().map(ConnectionPermit::is_excess).collect();
        assert_eq!(are_excess, [false, true, true]);
        assert!(!limit.permit().unwrap().is_excess(), "two were given back");
    }

    #[test]
    fn a_customer_has_a_whole_64() {
        let limit = limit(9, Some(1));
        let _one = permit(&limit, "2001:db8:0:1::1").unwrap();
        let same = permit(&limit, "2001:db8:0:1:ffff::2").unwrap();
        let next = permit(&limit, "2001:db8:0:2::1").unwrap();
        assert!(same.is_excess() && !next.is_excess());
    }

    /// HTTP-9: the next handshakes of a network that flooded wait, those of others do not, and nothing of it stays.
    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn a_flood_delays_its_own_network() {
        let limit = limit(9, Some(5));
        let flooding = permit(&limit, "192.0.2.1").unwrap();
        assert_eq!(flooding.pause(), None);
        flooding.flooded();
        drop(flooding);
        let next = permit(&limit, "192.0.2.1").unwrap();
        assert_eq!(next.pause(), Some(FLOOD_PAUSE));
        assert_eq!(permit(&limit, "192.0.2.2").unwrap().pause(), None);
        drop(next);
        tokio::time::advance(FLOOD_PAUSE - Duration::from_millis(1)).await;
        let next = permit(&limit, "192.0.2.1").unwrap();
        assert_eq!(next.pause(), Some(Duration::from_millis(1)));
        drop(next);
        limit.forget_floods();
        assert_eq!(limit.by_network.lock().unwrap().len(), 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(permit(&limit, "192.0.2.1").unwrap().pause(), None);
        limit.forget_floods();
        assert!(limit.by_network.lock().unwrap().is_empty());
        // Without a limit per address nothing is counted by address, as behind a balancer that does not name its clients.
        let limit = self::limit(9, None);
        let flooding = permit(&limit, "192.0.2.1").unwrap();
        flooding.flooded();
        assert_eq!(permit(&limit, "192.0.2.1").unwrap().pause(), None);
    }

    #[test]
    fn further_excess_connections_get_no_answer() {
        let limit = limit(0, None);
        let places: Vec<_> = (0..=MAX_EXCESS)
            .map(|_| permit(&limit, "192.0.2.1"))
            .collect();
        assert_eq!(places.iter().flatten().count(), MAX_EXCESS);
        drop(places);
        assert!(permit(&limit, "192.0.2.1").is_some());
    }
}
