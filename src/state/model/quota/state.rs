//! The states of the model of a quota.

use crate::{
    QuotaHash,
    model::{
        BEGIN, DAY,
        store::{Tables, Written},
    },
};

pub(super) const KEY: QuotaHash = QuotaHash::from_bytes([1; 16]);

/// The seconds at which something happens.
pub(super) const MOMENTS: [u64; 5] = [0, 1, DAY - 1, DAY, DAY + 1];

/// What is wrong between the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Callers are answered before the commit.
    AnswersBeforeCommit,
    /// Two transactions decide on the same rows.
    DecidesOnSharedRows,
    /// A call is given back once more where the answer of the store came late.
    GivesBackTwice,
    /// A gateway that starts gives back what the one before it had under way.
    GivesBackAtStart,
    /// Rows are removed by the time of a gateway that is far ahead.
    SweepsByAnyClock,
    /// A caller says what time it is.
    TakesAnyTime,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    pub(super) gateways: usize,
    pub(super) calls: u8,
    pub(super) returns: u8,
    pub(super) crashes: u8,
    /// The number of steps of clocks, and the steps, in seconds beside the true time.
    pub(super) steps: u8,
    pub(super) clocks: &'static [i64],
    pub(super) fault: Option<Fault>,
}

/// A call that the gateway was told that it may forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Forwarded {
    /// The true time, and that of the gateway's clock.
    pub(super) at: u64,
    pub(super) stamp: u64,
    pub(super) replaced: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Job {
    Claim { at: u64, stamp: u64 },
    GiveBack(Forwarded),
}

/// A decided job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Done {
    Held(Forwarded),
    Refused,
    GivenBack(Forwarded),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) written: Written,
    pub(super) done: Vec<Done>,
    pub(super) is_committed: bool,
    pub(super) is_answered: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gateway {
    pub(super) clock: i64,
    pub(super) waiting: Vec<Job>,
    pub(super) batch: Option<Batch>,
    /// Calls that the core has, and has not answered.
    pub(super) under_way: Vec<Forwarded>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) moment: usize,
    pub(super) tables: Tables,
    pub(super) gateways: Vec<Gateway>,
    /// Calls that the core got, without those that it failed.
    pub(super) core: Vec<Forwarded>,
    pub(super) left: (u8, u8, u8, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wait,
    SetClock(usize, i64),
    Call(usize),
    /// The core did not answer, or answered that it counts for nothing.
    Fail(usize, usize),
    Decide(usize),
    Commit(usize),
    Answer(usize),
    Crash(usize),
    Sweep(usize),
}

impl Gateway {
    pub(super) fn order(&self) -> impl Ord {
        let batch = self.batch.as_ref();
        let batch = batch.map(|it| (it.done.clone(), it.is_committed, it.is_answered));
        (
            self.clock,
            self.waiting.clone(),
            batch,
            self.under_way.clone(),
        )
    }
}

impl State {
    pub(super) fn now(&self) -> u64 {
        BEGIN + MOMENTS[self.moment]
    }

    pub(super) fn clock(&self, gateway: usize) -> u64 {
        self.now()
            .saturating_add_signed(self.gateways[gateway].clock)
    }

    /// Whether another gateway's transaction holds the row.
    pub(super) fn is_locked(&self, by_other_than: usize) -> bool {
        let mut others = self.gateways.iter().enumerate();
        others.any(|(number, gateway)| {
            let batch = gateway.batch.as_ref();
            number != by_other_than && batch.is_some_and(|batch| !batch.is_committed)
        })
    }

    pub(super) fn is_quiet(&self) -> bool {
        let mut gateways = self.gateways.iter();
        gateways.all(|it| it.waiting.is_empty() && it.batch.is_none())
    }
}

impl Quota {
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}
