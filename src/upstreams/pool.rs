//! The pool of idle connections to the core.
//!
//! The most recently used connection is taken first, so that unneeded ones expire. Invariant: a connection that has expired, that
//! the core has closed, or on which it has sent unrequested bytes is never returned (FWD-3). Such connections are closed every second
//! by [`Pool::tend`], outside of requests, so that no request is delayed by the connections of an earlier burst.

use super::connection::CoreConnection;
use crate::{clock::Stopwatch, telemetry::Telemetry};
use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The most idle connections.
const MOST: usize = 1_024;

/// The most unusable connections that a request closes. Each is a system call.
const CLOSED_AT_ONCE: usize = 4;

/// The most connections that are looked at while requests wait. Each is a system call.
const LOOKED_AT_ONCE: usize = 32;

/// The idle connections, the oldest in front.
pub struct Pool {
    waiting: Mutex<VecDeque<(Box<CoreConnection>, Stopwatch)>>,
    lasts: Duration,
    telemetry: Arc<Telemetry>,
}

impl Pool {
    /// Creates an empty pool, whose connections may be idle for `lasts`.
    pub fn new(lasts: Duration, telemetry: Arc<Telemetry>) -> Self {
        Self {
            waiting: Mutex::default(),
            lasts,
            telemetry,
        }
    }

    /// Returns a usable connection, for a request that is sent next: the core's bytes from now on are its answer.
    pub fn take(&self) -> Option<Box<CoreConnection>> {
        for _ in 0..CLOSED_AT_ONCE {
            let mut connection = self.pop()?;
            if connection.is_quiet() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose answer was read to its end.
    pub fn put(&self, mut connection: Box<CoreConnection>) {
        connection.begin_request();
        let mut waiting = self.waiting();
        if waiting.len() < MOST {
            waiting.push_back((connection, Stopwatch::start()));
            self.telemetry.upstream_idle(1);
        }
    }

    /// Closes the connections that have expired, that the core has closed, or on which it has sent bytes.
    pub fn tend(&self) {
        let mut end = usize::MAX;
        while end > 0 {
            let mut closed = Vec::new();
            let mut waiting = self.waiting();
            end = end.min(waiting.len());
            let begin = end.saturating_sub(LOOKED_AT_ONCE);
            for index in (begin..end).rev() {
                let unusable = waiting.get_mut(index).is_some_and(|(connection, since)| {
                    self.is_over(since) || !connection.is_quiet()
                });
                if unusable {
                    closed.extend(waiting.remove(index));
                    self.telemetry.upstream_idle(-1);
                }
            }
            end = begin;
        }
    }

    /// Closes all.
    pub(super) fn close(&self) {
        let closed = mem::take(&mut *self.waiting());
        self.telemetry
            .upstream_idle(-i64::try_from(closed.len()).unwrap_or_default());
    }

    /// The most recently used connection. The kernel is asked about it after the lock is released.
    fn pop(&self) -> Option<Box<CoreConnection>> {
        let mut waiting = self.waiting();
        let (last, _) = waiting.pop_back_if(|(_, since)| !self.is_over(since))?;
        self.telemetry.upstream_idle(-1);
        Some(last)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Box<CoreConnection>, Stopwatch)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self, since: &Stopwatch) -> bool {
        since.elapsed() > self.lasts
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let waiting = self.waiting.get_mut();
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner).len();
        self.telemetry
            .upstream_idle(-i64::try_from(waiting).unwrap_or_default());
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    /// Creates a pool of `count` connections, and their other ends.
    async fn pool_of(count: usize, lasts: Duration) -> (Pool, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pool = Pool::new(lasts, Arc::new(Telemetry::new(None)));
        let mut cores = Vec::new();
        for _ in 0..count {
            let stream = TcpStream::connect(address).await.unwrap();
            pool.put(Box::new(CoreConnection::of(stream)));
            cores.push(listener.accept().await.unwrap().0);
        }
        (pool, cores)
    }

    fn waiting(pool: &Pool) -> usize {
        pool.waiting.lock().unwrap().len()
    }

    /// The number of connections that are closed, or on which the core has sent bytes.
    fn loud(pool: &Pool) -> usize {
        let mut waiting = pool.waiting.lock().unwrap();
        let loud = waiting
            .iter_mut()
            .filter_map(|(it, _)| (!it.is_quiet()).then_some(()));
        loud.count()
    }

    /// Waits for what a core did: it takes a moment to come.
    async fn until(mut holds: impl FnMut() -> bool) {
        let waiting = async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "a wait ran out");
    }

    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn old_ones_are_closed_and_never_handed_out() {
        let lasts = Duration::from_secs(60);
        let (pool, _cores) = pool_of(LOOKED_AT_ONCE * 2 + 2, lasts).await;
        tokio::time::advance(lasts).await;
        pool.tend();
        assert_eq!(waiting(&pool), LOOKED_AT_ONCE * 2 + 2);
        // One that was used is as new.
        let used = pool.take().unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(pool.take().is_none());
        pool.put(used);
        pool.tend();
        assert_eq!(waiting(&pool), 1);
        tokio::time::advance(lasts).await;
        assert!(pool.take().is_some());
        pool.tend();
        assert_eq!(waiting(&pool), 0);
    }

    #[tokio::test]
    async fn those_that_the_core_has_closed_are_closed() {
        let (pool, mut cores) = pool_of(LOOKED_AT_ONCE * 2, Duration::MAX).await;
        pool.tend();
        assert_eq!(waiting(&pool), cores.len());
        for index in (0..cores.len()).rev().step_by(2) {
            drop(cores.remove(index));
        }
        // A look takes a byte, and leaves enough for the last.
        cores[0].write_all(&[b'?'; 60_000]).await.unwrap();
        let unusable = LOOKED_AT_ONCE + 1;
        until(|| loud(&pool) == unusable).await;
        pool.tend();
        assert_eq!(waiting(&pool), cores.len() - 1);
        assert!(pool.take().is_some());
    }

    #[tokio::test]
    async fn a_core_that_starts_again_costs_no_request_all_connections() {
        let (pool, cores) = pool_of(10, Duration::MAX).await;
        drop(cores);
        until(|| loud(&pool) == 10).await;
        for left in [6, 2, 0] {
            assert!(pool.take().is_none());
            assert_eq!(waiting(&pool), left);
        }
    }

    #[tokio::test]
    async fn the_one_that_was_used_last_is_used_next() {
        let (pool, mut cores) = pool_of(2, Duration::MAX).await;
        let mut taken = pool.take().unwrap();
        taken.write_all(b"?").await.unwrap();
        taken.flush().await.unwrap();
        let mut heard = [0; 1];
        cores[1].read_exact(&mut heard).await.unwrap();
        assert_eq!((heard, waiting(&pool)), (*b"?", 1));
    }
}
