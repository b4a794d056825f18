//! The only way in which a test waits: until a condition holds, with a limit that a slow and busy machine keeps too.
//!
//! A fixed pause guesses how fast a machine is, and a loop without an end hides what it waits for. Where a wait ends without success,
//! the message begins with [`RAN_OUT`] and shows the last value. `.ci/test.sh` runs such a test again, alone: another failure is
//! never tried again, since a race may pass alone.

use portvakt::clock::Stopwatch;
use std::{
    fmt::Debug,
    process::{Child, ExitStatus},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

/// The limit of every wait, far above what an idle machine needs.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The first words of the failure of a wait. `.ci/test.sh` knows them.
pub(crate) const RAN_OUT: &str = "a wait ran out";

/// The pauses between two probes: they grow, so that many waiting tests leave the processor to the programs that they wait for.
const PAUSES: [u64; 5] = [1, 2, 5, 10, 25];

/// What a probe returns: a condition, a value that may be there, or a value and why it is not there.
pub(crate) trait Probed {
    /// The value of a probe with success.
    type Value;

    /// The value, or the text that a failed wait shows.
    fn value(self) -> Result<Self::Value, String>;
}

impl Probed for bool {
    type Value = ();

    fn value(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(|| "false".into())
    }
}

impl<T> Probed for Option<T> {
    type Value = T;

    fn value(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".into())
    }
}

impl<T, E: Debug> Probed for Result<T, E> {
    type Value = T;

    fn value(self) -> Result<T, String> {
        self.map_err(|error| format!("{error:?}"))
    }
}

/// Repeats a probe until it succeeds, and returns its value.
#[track_caller]
pub(crate) fn eventually<P: Probed>(what: &str, probe: impl FnMut() -> P) -> P::Value {
    eventually_within(LIMIT, what, probe)
}

/// The same with another limit, for what takes more than a minute.
#[track_caller]
pub(crate) fn eventually_within<P: Probed>(
    limit: Duration,
    what: &str,
    mut probe: impl FnMut() -> P,
) -> P::Value {
    let since = Stopwatch::start();
    for pause in pauses() {
        match probe().value() {
            Ok(value) => return value,
            Err(last) => assert!(
                since.elapsed() < limit,
                "{RAN_OUT}: {what}; the last value was {last}"
            ),
        }
        thread::sleep(pause);
    }
    unreachable!("there is always another pause")
}

/// Whether a condition holds before the limit, for a test that reports itself what is missing.
pub(crate) fn happens(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let since = Stopwatch::start();
    for pause in pauses() {
        if holds() {
            return true;
        }
        if since.elapsed() >= limit {
            return false;
        }
        thread::sleep(pause);
    }
    unreachable!("there is always another pause")
}

/// Repeats a reading until it has this value.
#[track_caller]
pub(crate) fn eventually_is<T: PartialEq + Debug>(
    what: &str,
    expected: T,
    mut read: impl FnMut() -> T,
) {
    eventually(&format!("{what} is {expected:?}"), || {
        let value = read();
        (value == expected).then_some(()).ok_or(value)
    });
}

/// The same as [`eventually`] for a probe that awaits.
pub(crate) async fn eventually_async<P: Probed>(
    what: &str,
    mut probe: impl AsyncFnMut() -> P,
) -> P::Value {
    let since = Stopwatch::start();
    for pause in pauses() {
        match probe().await.value() {
            Ok(value) => return value,
            Err(last) => assert!(
                since.elapsed() < LIMIT,
                "{RAN_OUT}: {what}; the last value was {last}"
            ),
        }
        tokio::time::sleep(pause).await;
    }
    unreachable!("there is always another pause")
}

/// Waits until a process has ended.
#[track_caller]
pub(crate) fn ended(process: &mut Child) -> ExitStatus {
    let id = process.id();
    eventually(&format!("process {id} has ended"), || {
        process.try_wait().unwrap()
    })
}

/// Sets a flag when it is dropped, so that threads that run until then end with their test, also where that fails.
pub(crate) struct Over<'a>(pub(crate) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The next message of another thread; the thread's panic is no wait that ran out.
#[track_caller]
pub(crate) fn received<T>(what: &str, messages: &Receiver<T>) -> T {
    match messages.recv_timeout(LIMIT) {
        Ok(message) => message,
        Err(RecvTimeoutError::Timeout) => panic!("{RAN_OUT}: {what}"),
        Err(RecvTimeoutError::Disconnected) => panic!("{what}: the other thread has ended"),
    }
}

/// The outcome of a task.
pub(crate) async fn outcome<T>(what: &str, task: tokio::task::JoinHandle<T>) -> T {
    let finished = tokio::time::timeout(LIMIT, task).await;
    let finished = finished.unwrap_or_else(|_| panic!("{RAN_OUT}: {what}"));
    finished.unwrap_or_else(|fault| panic!("{what}: {fault}"))
}

/// Lets real time pass, where the test needs that a deadline of the program has passed, and only a lower bound decides.
/// tests/it/architecture/pauses.rs counts the callers.
pub(crate) fn let_pass(time: Duration) {
    thread::sleep(time);
}

/// The same in a task.
pub(crate) async fn let_pass_async(time: Duration) {
    tokio::time::sleep(time).await;
}

fn pauses() -> impl Iterator<Item = Duration> {
    let last = PAUSES[PAUSES.len() - 1];
    let growing = PAUSES.into_iter().chain(std::iter::repeat(last));
    growing.map(Duration::from_millis)
}
