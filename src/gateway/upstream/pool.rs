//! The pool of idle connections to the core.
//!
//! The most recently used connection is taken first, so that unneeded ones expire. Invariant: a connection that has expired, that
//! the core has closed, or on which it has sent unrequested bytes is never returned (FWD-3). Idle connections are not watched:
//! expired ones are closed when a connection is next taken or returned, a few at a time, so that no request is delayed by the
//! connections of an earlier burst.

use super::connection::CoreConnection;
use crate::{clock::Stopwatch, telemetry::Telemetry};
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The most idle connections.
const MOST: usize = 1_024;

/// The most expired connections that one call closes. Each is a system call.
const CLOSED_AT_ONCE: usize = 4;

/// The idle connections, the oldest in front.
pub(super) struct Pool {
    waiting: Mutex<VecDeque<(Box<CoreConnection>, Stopwatch)>>,
    lasts: Duration,
    telemetry: Arc<Telemetry>,
}

impl Pool {
    /// Creates an empty pool, whose connections may be idle for `lasts`.
    pub(super) fn new(lasts: Duration, telemetry: Arc<Telemetry>) -> Self {
        Self {
            waiting: Mutex::default(),
            lasts,
            telemetry,
        }
    }

    /// Returns a usable connection, for a request that is sent next: the core's bytes from now on are its answer.
    pub(super) fn take(&self) -> Option<Box<CoreConnection>> {
        for _ in 0..CLOSED_AT_ONCE {
            let connection = self.pop()?;
            if connection.is_quiet() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose answer was read to its end.
    pub(super) fn put(&self, mut connection: Box<CoreConnection>) {
        connection.begin_request();
        let mut waiting = self.tidied();
        if waiting.len() < MOST {
            waiting.push_back((connection, Stopwatch::start()));
        }
        self.telemetry.upstream_idle(waiting.len());
    }

    /// The most recently used connection. The kernel is asked about it after the lock is released.
    fn pop(&self) -> Option<Box<CoreConnection>> {
        let mut waiting = self.tidied();
        let last = waiting.pop_back_if(|(_, since)| !self.is_over(since));
        self.telemetry.upstream_idle(waiting.len());
        last.map(|(connection, _)| connection)
    }

    /// The idle connections, after closing a few of the expired ones.
    fn tidied(&self) -> MutexGuard<'_, VecDeque<(Box<CoreConnection>, Stopwatch)>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..CLOSED_AT_ONCE {
            if waiting
                .pop_front_if(|(_, since)| self.is_over(since))
                .is_none()
            {
                break;
            }
        }
        waiting
    }

    fn is_over(&self, since: &Stopwatch) -> bool {
        since.elapsed() > self.lasts
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
        let pool = Pool::new(lasts, Arc::new(Telemetry::new(false)));
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

    #[tokio::test]
    async fn old_ones_are_closed_a_few_at_a_time_and_never_handed_out() {
        let (mut pool, _cores) = pool_of(10, Duration::MAX).await;
        pool.lasts = Duration::ZERO;
        for left in [6, 2, 0, 0] {
            assert!(pool.take().is_none());
            assert_eq!(waiting(&pool), left);
        }
    }

    #[tokio::test]
    async fn a_core_that_starts_again_costs_no_request_all_connections() {
        let (pool, cores) = pool_of(10, Duration::MAX).await;
        drop(cores);
        tokio::time::sleep(Duration::from_millis(50)).await;
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
