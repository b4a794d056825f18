//! The connections of callers that are open, for an operator who looks at them (`GET /connections`).
//!
//! Invariant: nothing here keeps a connection open, and a look costs nothing on the path of a request: the facts are those that the listener
//! keeps anyway. Deliberately not here: the limits of connections, which the listener has.

use crate::{clock::Stopwatch, interface::TppId, network::Network};
use std::{
    cmp::Reverse,
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// It waits for a request.
    Idle,
    /// A part of a request's head has arrived.
    HeadArrives,
    /// A request was read and its answer is not finished.
    UnderWay,
}

impl ConnectionState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Idle, Self::HeadArrives, Self::UnderWay];

    /// The name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::HeadArrives => "headArrives",
            Self::UnderWay => "underWay",
        }
    }
}

/// The facts of a connection, which its listener keeps.
pub trait Connected: Send + Sync {
    /// What it does.
    fn state(&self) -> ConnectionState;
    /// The requests that have begun on it.
    fn requests(&self) -> u32;
    /// The address that it comes from.
    fn caller(&self) -> IpAddr;
    /// The TPP whose signature has verified on it; `None` for a connection of a proxy, which many share.
    fn tpp(&self) -> Option<TppId>;
}

/// The open connections after their handshakes.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Open>);

#[derive(Default)]
struct Open {
    last: u64,
    by_number: HashMap<u64, (Stopwatch, Weak<dyn Connected>)>,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Open").finish_non_exhaustive()
    }
}

/// One connection as it was seen.
#[derive(Clone, Debug)]
pub struct SeenConnection {
    /// The time since its handshake.
    pub age: Duration,
    /// What it does.
    pub state: ConnectionState,
    /// The requests that have begun on it.
    pub requests: u32,
    /// The network that it comes from.
    pub network: Network,
    /// The TPP whose signature has verified on it.
    pub tpp: Option<TppId>,
}

/// The connections as they were seen.
#[derive(Debug)]
pub struct SeenConnections {
    /// How many are in each state, in the order of [`ConnectionState::ALL`].
    pub states: [usize; 3],
    /// The oldest.
    pub oldest: Vec<SeenConnection>,
    /// Those with the most requests.
    pub busiest: Vec<SeenConnection>,
}

impl Connections {
    /// Notes a connection after its handshake; returns its number.
    pub(super) fn open(&self, connection: Weak<dyn Connected>) -> u64 {
        let mut open = self.lock();
        open.last = open.last.wrapping_add(1);
        let number = open.last;
        let entry = (Stopwatch::start(), connection);
        open.by_number.insert(number, entry);
        number
    }

    /// Forgets a connection that is closed.
    pub(super) fn close(&self, number: u64) {
        self.lock().by_number.remove(&number);
    }

    /// Looks at all connections; names the `most` oldest ones and the `most` busiest ones.
    pub(super) fn look(&self, most: usize) -> SeenConnections {
        let open = self.lock();
        let seen = open.by_number.values().filter_map(|(since, connection)| {
            let connection = connection.upgrade()?;
            Some(SeenConnection {
                age: since.elapsed(),
                state: connection.state(),
                requests: connection.requests(),
                network: Network::of_site(connection.caller()),
                tpp: connection.tpp(),
            })
        });
        let mut seen: Vec<_> = seen.collect();
        drop(open);
        let states = ConnectionState::ALL.map(|state| {
            let of = seen.iter().filter(|connection| connection.state == state);
            of.count()
        });
        seen.sort_by_key(|connection| Reverse(connection.age));
        let oldest = seen.iter().take(most).cloned().collect();
        seen.sort_by_key(|connection| Reverse(connection.requests));
        seen.truncate(most);
        SeenConnections {
            states,
            oldest,
            busiest: seen,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
