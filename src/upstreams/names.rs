//! The addresses of endpoints that are names: resolved ahead, and again when their TTL ends. No request waits for DNS.
//!
//! Invariant: the last good answer is kept while no newer one can be had. Deliberately not here: the queries ([`super::dns`]), and which
//! addresses an endpoint may have.

use super::dns;
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError, Weak, mpsc},
    time::Duration,
};
use tokio::{runtime::Handle, sync::watch, task::AbortHandle, time::sleep};

/// The shortest and the longest time for which an answer is used, whatever its TTL says.
const TTL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));

/// The first and the longest time before a failed query is repeated.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long a start or a reload waits for the first answers.
const FIRST_WITHIN: Duration = Duration::from_secs(5);

/// The most addresses of a name that are used.
const MOST_ADDRESSES: usize = 16;

/// The names that are followed.
#[derive(Debug)]
pub(super) struct Names {
    runtime: Handle,
    known: Mutex<HashMap<Question, Weak<Name>>>,
}

/// A name, and the servers that are asked; none for the system's.
type Question = (String, Vec<SocketAddr>);

/// The addresses of a name; `None` before the first answer.
type Latest = Option<Vec<IpAddr>>;

/// The addresses of a name, and their changes.
pub(super) type Addresses = watch::Receiver<Latest>;

/// A name that is followed until it is dropped.
#[derive(Debug)]
pub(super) struct Name {
    latest: Addresses,
    task: AbortHandle,
}

impl Names {
    /// No names yet.
    pub(super) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            known: Mutex::default(),
        }
    }

    /// Follows a name, unless it is followed already, and waits for its first answer for a moment: not for a thread that serves
    /// requests. Asks these servers, or the system's if there are none.
    pub(super) fn follow(&self, name: &str, servers: &[SocketAddr]) -> Arc<Name> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, name| name.strong_count() > 0);
        let key = (name.to_owned(), servers.to_vec());
        if let Some(name) = known.get(&key).and_then(Weak::upgrade) {
            return name;
        }
        let (first, answered) = mpsc::channel();
        let (sender, latest) = watch::channel(None);
        let following = follow(key.0.clone(), key.1.clone(), sender, first);
        let task = self.runtime.spawn(following).abort_handle();
        // The end of the wait is the same with an answer, a failure, and none of both.
        let _ = answered.recv_timeout(FIRST_WITHIN);
        let name = Arc::new(Name { latest, task });
        known.insert(key, Arc::downgrade(&name));
        name
    }
}

impl Name {
    /// The addresses at this time; none if the name was never resolved.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.latest.borrow().clone().unwrap_or_default()
    }

    /// The changes of the addresses from now on.
    pub(super) fn changes(&self) -> Addresses {
        let mut latest = self.latest.clone();
        latest.mark_unchanged();
        latest
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Resolves a name for as long as the gateway runs. `first` is told when the first query has ended.
async fn follow(
    name: String,
    servers: Vec<SocketAddr>,
    latest: watch::Sender<Latest>,
    first: mpsc::Sender<()>,
) {
    let mut again = AGAIN.0;
    let mut first = Some(first);
    loop {
        let wait = match dns::resolve(&name, &servers).await {
            Ok(answer) => {
                again = AGAIN.0;
                take(&name, answer.addresses, &latest);
                answer.ttl.clamp(TTL.0, TTL.1)
            }
            Err(fault) => {
                let known = latest.borrow().as_ref().map_or(0, Vec::len);
                tracing::warn!(name, %fault, known, "a name of an endpoint cannot be resolved; known addresses stay");
                let wait = again;
                again = again.saturating_mul(2).min(AGAIN.1);
                wait
            }
        };
        // A start that no longer waits is no fault.
        if let Some(first) = first.take() {
            let _ = first.send(());
        }
        sleep(wait).await;
    }
}

/// Publishes the addresses, if they differ from those before.
fn take(name: &str, mut addresses: Vec<IpAddr>, latest: &watch::Sender<Latest>) {
    let found = addresses.len();
    addresses.truncate(MOST_ADDRESSES);
    latest.send_if_modified(|before| {
        if before.as_ref() == Some(&addresses) {
            return false;
        }
        tracing::info!(name, ?addresses, "the addresses of a name of an endpoint");
        if found > MOST_ADDRESSES {
            tracing::warn!(
                name,
                found,
                used = MOST_ADDRESSES,
                "a name of an endpoint has more addresses than are used"
            );
        }
        *before = Some(addresses);
        true
    });
}

#[cfg(test)]
impl Names {
    /// Follows a name by a channel in place of DNS, as long as it is held.
    pub(super) fn follow_channel(&self, name: &str, latest: Addresses) -> Arc<Name> {
        let task = self.runtime.spawn(async {}).abort_handle();
        let followed = Arc::new(Name { latest, task });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((name.to_owned(), Vec::new()), Arc::downgrade(&followed));
        followed
    }
}
