//! Changes of the state, and their form in an engine's queue: many changes share one transaction.
//!
//! An engine takes the queued changes, loads the rows that they name, lets each change decide in its order of arrival, writes the rows that
//! differ, commits, and only then answers. Invariant: an answered change is durable.

use super::{
    Unavailable,
    rows::{RowKey, Rows},
};
use tokio::sync::oneshot;

/// The maximum number of changes in one transaction.
pub(super) const BATCH: usize = 1_000;

/// A change: the rows that it depends on, and its decision about them.
pub(super) trait Change: Send + 'static {
    /// The answer to the caller.
    type Outcome: Send + 'static;

    /// Adds the keys of all rows that the decision reads or writes.
    fn keys(&self, keys: &mut Vec<RowKey>);

    /// Decides about rows that hold these keys. No I/O, no clock.
    fn decide(&self, rows: &mut Rows) -> Self::Outcome;

    /// Whether the change may be lost with the server that answered it. An engine need not wait for a standby then.
    fn may_be_lost(&self) -> bool {
        false
    }
}

/// A change in an engine's queue.
pub(super) trait QueuedChange: Send {
    /// Whether the caller no longer waits. Then the change is not decided.
    fn is_abandoned(&self) -> bool;

    /// See [`Change::keys`].
    fn keys(&self, keys: &mut Vec<RowKey>);

    /// See [`Change::decide`]. The outcome is kept here until it is sent.
    fn decide(&mut self, rows: &mut Rows);

    /// See [`Change::may_be_lost`].
    fn may_be_lost(&self) -> bool;

    /// Sends the outcome, or the failure of the commit.
    fn answer(self: Box<Self>, committed: Result<(), Unavailable>);
}

/// Receives the outcome of a queued change.
pub(super) type Outcome<T> = oneshot::Receiver<Result<T, Unavailable>>;

/// Wraps a change for a queue; returns it with the receiver of its outcome.
pub(super) fn queued<C: Change>(change: C) -> (Box<dyn QueuedChange>, Outcome<C::Outcome>) {
    let (reply, outcome) = oneshot::channel();
    let queued = Queued {
        change,
        outcome: None,
        reply,
    };
    (Box::new(queued), outcome)
}

struct Queued<C: Change> {
    change: C,
    outcome: Option<C::Outcome>,
    reply: oneshot::Sender<Result<C::Outcome, Unavailable>>,
}

impl<C: Change> QueuedChange for Queued<C> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn keys(&self, keys: &mut Vec<RowKey>) {
        self.change.keys(keys);
    }

    fn decide(&mut self, rows: &mut Rows) {
        self.outcome = Some(self.change.decide(rows));
    }

    fn may_be_lost(&self) -> bool {
        self.change.may_be_lost()
    }

    fn answer(self: Box<Self>, committed: Result<(), Unavailable>) {
        let Self { outcome, reply, .. } = *self;
        let outcome = committed.and_then(|()| outcome.ok_or_else(undecided));
        let _ = reply.send(outcome);
    }
}

/// The fault of a batch that decided nothing, or read a row that was not loaded: a bug, and nothing is written.
pub(super) fn undecided() -> Unavailable {
    Unavailable("a change was not decided on all of its rows: nothing was written".to_owned())
}
