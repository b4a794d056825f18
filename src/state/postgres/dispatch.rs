//! The queue of changes, and their distribution to the workers.
//!
//! A free worker takes all queued changes whose rows no other worker holds, up to 1 000, as one batch. Changes of the same row are decided
//! in the order of their arrival: in one batch, or one batch after the other. So transactions of one gateway never wait for each other.
//! Changes that may be lost with a server have batches of their own, which do not wait for the standby; so have claims, which never wait
//! for the events of other transactions (CTL-3). While other workers have large
//! batches, few changes wait a moment for more: many small transactions cost more than few large ones. A worker that could not connect,
//! for example because the server has no connections left, gets changes only if no other worker can take them, and tries again every second.

use super::job::{Job, Outcome, Work};
use crate::{
    Unavailable,
    change::{BATCH, QueuedChange},
    rows::RowKey,
};
use portvakt_base::clock::Stopwatch;
use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};
use tokio::{sync::mpsc, time::sleep};

/// The maximum number of queued jobs, and of changes that wait for a worker. One more is refused, because its client would time out.
pub(super) const QUEUE: usize = 16_384;

/// The maximum time for which changes wait for more while a worker is free: about that of a commit.
const MOMENT: Duration = Duration::from_millis(2);

/// The refusal of one change too many.
pub(super) fn full() -> Unavailable {
    Unavailable(format!("{QUEUE} changes wait to be written already"))
}

/// Distributes jobs until the queue is closed and empty.
pub(super) async fn run(
    mut jobs: mpsc::Receiver<Job>,
    workers: Vec<mpsc::Sender<Work>>,
    mut done: mpsc::UnboundedReceiver<Outcome>,
) {
    let mut dispatcher = Dispatcher {
        free: (0..workers.len()).collect(),
        sizes: vec![0; workers.len()],
        workers,
        ..Dispatcher::default()
    };
    let mut is_open = true;
    while is_open || !dispatcher.is_idle() {
        let waited = dispatcher.holding.map(|since| since.elapsed());
        let moment = MOMENT.saturating_sub(waited.unwrap_or_default());
        tokio::select! {
            biased;
            Some(outcome) = done.recv() => dispatcher.release(outcome),
            job = jobs.recv(), if is_open => match job {
                None => is_open = false,
                Some(job) => {
                    dispatcher.put(job);
                    while let Ok(job) = jobs.try_recv() {
                        dispatcher.put(job);
                    }
                }
            },
            () = sleep(moment), if waited.is_some() => {}
        }
        dispatcher.distribute();
    }
}

#[derive(Default)]
struct Dispatcher {
    workers: Vec<mpsc::Sender<Work>>,
    /// The workers without work.
    free: Vec<usize>,
    /// The number of changes that each worker has.
    sizes: Vec<usize>,
    /// The workers that could not connect.
    unconnected: HashSet<usize>,
    /// Whether they try again.
    reconnects: bool,
    /// The time since which changes wait for more while a worker is free.
    holding: Option<Stopwatch>,
    waiting: VecDeque<Box<dyn QueuedChange>>,
    /// Work without rows.
    other: VecDeque<Work>,
    /// The rows of the batches that are not finished.
    held: HashSet<RowKey>,
    /// The changes since the last housekeeping.
    changes: u32,
    /// The worker that keeps house: one at a time, because without the standby each waits for seconds.
    housekeeper: Option<usize>,
}

impl Dispatcher {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.other.is_empty() && self.free.len() == self.workers.len()
    }

    fn put(&mut self, job: Job) {
        match job {
            // The channel is emptied at once, so that its limit alone would not count.
            Job::Change(change) if self.waiting.len() >= QUEUE => change.answer(Err(full())),
            Job::Change(change) => {
                self.changes = self.changes.saturating_add(1);
                self.waiting.push_back(change);
            }
            Job::Sweep(sweep) => self.other.push_back(Work::Sweep(sweep)),
            Job::EverySecond => self.every_second(),
        }
    }

    fn every_second(&mut self) {
        self.reconnects = true;
        // Also while no worker is free.
        self.waiting.retain(|change| !change.is_abandoned());
        if self.other.is_empty() && self.housekeeper.is_none() {
            let changes = std::mem::take(&mut self.changes);
            self.other.push_back(Work::Housekeeping { changes });
        }
    }

    fn release(&mut self, outcome: Outcome) {
        for key in outcome.keys {
            self.held.remove(&key);
        }
        self.housekeeper = self.housekeeper.filter(|number| *number != outcome.number);
        if let Some(size) = self.sizes.get_mut(outcome.number) {
            *size = 0;
        }
        // The last one is taken first.
        if outcome.is_connected {
            self.unconnected.remove(&outcome.number);
            self.free.push(outcome.number);
        } else {
            self.unconnected.insert(outcome.number);
            self.free.insert(0, outcome.number);
        }
    }

    /// Lets workers connect again that could not, if others can take changes meanwhile.
    fn reconnect(&mut self) {
        if !std::mem::take(&mut self.reconnects) || self.unconnected.len() == self.workers.len() {
            return;
        }
        let (unconnected, free) =
            (self.free.iter().copied()).partition(|number| self.unconnected.contains(number));
        self.free = free;
        for number in unconnected {
            self.send(number, Work::Connect);
        }
    }

    fn distribute(&mut self) {
        self.reconnect();
        while let Some(number) = self.free.last().copied() {
            // Those with a connection are busy, and will be free soon.
            if self.unconnected.contains(&number) && self.unconnected.len() < self.workers.len() {
                return;
            }
            let work = match self.other.pop_front() {
                None if self.holds() => return,
                None => self.batch(),
                other => other,
            };
            let Some(work) = work else {
                return;
            };
            if let (Work::Batch { changes, .. }, Some(size)) = (&work, self.sizes.get_mut(number)) {
                *size = changes.len();
            }
            if matches!(work, Work::Housekeeping { .. }) {
                self.housekeeper = Some(number);
            }
            self.free.pop();
            self.send(number, work);
        }
    }

    fn send(&self, number: usize, work: Work) {
        // A free worker's channel is empty.
        let sent = self.workers.get(number).map(|it| it.try_send(work));
        if !matches!(sent, Some(Ok(()))) {
            tracing::error!("a worker of the store has ended");
        }
    }

    /// Whether the waiting changes wait for more: they are less than half of an equal share of all changes, and have not waited for long.
    fn holds(&mut self) -> bool {
        let waiting = self.waiting.len();
        let all = waiting + self.sizes.iter().sum::<usize>();
        let is_share = waiting == 0 || 2 * waiting * self.workers.len() >= all;
        if is_share || self.holding.is_some_and(|since| since.elapsed() >= MOMENT) {
            self.holding = None;
            return false;
        }
        self.holding.get_or_insert_with(Stopwatch::start);
        true
    }

    /// Takes the changes whose rows are free.
    fn batch(&mut self) -> Option<Work> {
        let mut changes: Vec<Box<dyn QueuedChange>> = Vec::new();
        let mut keys = Vec::new();
        let mut left = VecDeque::new();
        // The rows of the changes that stay: later changes of the same rows must not overtake them.
        let mut blocked = HashSet::new();
        let mut kind = None;
        while let Some(change) = self.waiting.pop_front() {
            if change.is_abandoned() {
                continue;
            }
            if changes.len() >= BATCH {
                left.push_back(change);
                break;
            }
            let mut own = Vec::new();
            change.keys(&mut own);
            let is_held = |key: &RowKey| self.held.contains(key) || blocked.contains(key);
            let own_kind = (change.may_be_lost(), own.iter().all(RowKey::is_of_claims));
            let is_other = kind.is_some_and(|batch| batch != own_kind);
            if is_other || own.iter().any(is_held) {
                blocked.extend(own);
                left.push_back(change);
            } else {
                keys.extend(own);
                kind = Some(own_kind);
                changes.push(change);
            }
        }
        left.append(&mut self.waiting);
        self.waiting = left;
        if changes.is_empty() {
            return None;
        }
        self.held.extend(keys.iter().copied());
        Some(Work::Batch { changes, keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hash, change, rows::Rows};

    /// A change of no row.
    struct Idle;

    impl change::Change for Idle {
        type Outcome = ();

        fn keys(&self, _: &mut Vec<RowKey>) {}

        fn decide(&self, _: &mut Rows) {}
    }

    /// Four workers, of which the first has this number of changes.
    fn dispatcher(busy: usize, waiting: usize) -> Dispatcher {
        Dispatcher {
            workers: (0..4).map(|_| mpsc::channel(1).0).collect(),
            sizes: vec![busy, 0, 0, 0],
            waiting: (0..waiting).map(|_| change::queued(Idle).0).collect(),
            ..Dispatcher::default()
        }
    }

    #[test]
    fn few_changes_wait_a_moment_beside_a_large_batch() {
        for (busy, waiting, holds) in [
            (0, 1, false),
            (7, 1, false),
            (8, 1, true),
            (700, 99, true),
            (700, 100, false),
            (700, 0, false),
        ] {
            let mut dispatcher = dispatcher(busy, waiting);
            assert_eq!(dispatcher.holds(), holds, "{waiting} beside {busy}");
            std::thread::sleep(MOMENT);
            assert!(!dispatcher.holds(), "{waiting} beside {busy}, later");
        }
    }

    /// Without a free worker, for example while all wait for a standby.
    #[test]
    fn the_waiting_changes_have_a_limit_and_leave_with_their_callers() {
        let mut dispatcher = Dispatcher::default();
        let mut put = || {
            let (change, outcome) = change::queued(Idle);
            dispatcher.put(Job::Change(change));
            outcome
        };
        let mut callers: Vec<_> = (0..QUEUE).map(|_| put()).collect();
        let mut refused = put();
        let answer = refused.try_recv().unwrap();
        assert!(answer.unwrap_err().0.contains("changes wait"));
        assert!(callers.iter_mut().all(|caller| caller.try_recv().is_err()));
        assert_eq!(dispatcher.waiting.len(), QUEUE);
        callers.truncate(7);
        dispatcher.put(Job::EverySecond);
        assert_eq!(dispatcher.waiting.len(), 7);
    }

    /// A change of one row.
    struct Of(RowKey);

    impl change::Change for Of {
        type Outcome = ();

        fn keys(&self, keys: &mut Vec<RowKey>) {
            keys.push(self.0);
        }

        fn decide(&self, _: &mut Rows) {}
    }

    /// CTL-3: a claim never waits for the events of other transactions.
    #[test]
    fn claims_have_batches_of_their_own() {
        let claim = |number| RowKey::Quota(Hash::from_bytes([number; 16]));
        let psu = |number| RowKey::Psu(Hash::from_bytes([number; 16]));
        let keys = [claim(1), psu(1), claim(2), psu(2)];
        let (waiting, callers): (VecDeque<_>, Vec<_>) =
            keys.into_iter().map(|key| change::queued(Of(key))).unzip();
        let waiting = waiting.into_iter();
        let mut dispatcher = Dispatcher {
            waiting: waiting.collect(),
            ..Dispatcher::default()
        };
        for expected in [[claim(1), claim(2)], [psu(1), psu(2)]] {
            match dispatcher.batch() {
                Some(Work::Batch { keys, .. }) => assert_eq!(keys, expected),
                _ => panic!("there is no batch"),
            }
        }
        drop(callers);
    }
}
