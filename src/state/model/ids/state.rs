//! The states of the model of an id.

use crate::{
    ClaimRequest, RequestHash, RequestIdClaim, Retention, StateSettings,
    clock::{Clock, ClockRow},
    freshness::{Freshness, Reads},
    model::{
        BEGIN, DAY, at,
        store::{Tables, Written},
    },
    process::{Judged, Process},
    request_ids::{KeptIds, RequestIds},
};
use std::{cell::RefCell, sync::Arc};

pub(super) const ID: RequestHash = RequestHash::from_bytes([0; 16]);

/// The request's Date is valid for a minute before and after it (DAT-2).
pub(super) const DATE: u64 = BEGIN + 60;

/// What clocks show: the Date is valid at the first two of them. At the fourth the row of an id that was claimed at the first is due, a day
/// before the third it is valid once more.
pub(super) const TIMES: [u64; 4] = [BEGIN, DATE + 60, DATE + 60 + DAY, BEGIN + DAY + 241];

/// The first and the last second in which the Date is valid.
pub(super) const VALID: [u64; 2] = [TIMES[0], TIMES[1]];

/// The same for ids that are kept until their Date.
pub(super) const SHORT: [u64; 4] = [BEGIN, DATE + 60, DATE + 181, DATE + 61 + 241];

/// More than any clock steps.
pub(super) const ANY: u64 = u64::MAX / 2;

/// The same for ids in memory, which are forgotten when the map of three minutes is replaced for the second time.
pub(super) const LONGER: [u64; 5] = [SHORT[0], SHORT[1], SHORT[2], SHORT[3], SHORT[3] + 180];

/// What is wrong between the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    AnswersBeforeCommit,
    TakesUnclearForCommitted,
    /// A request that is refused as a replay gives its id back.
    GivesBackWhatIsRefused,
    /// An id is given back although the core was connected.
    GivesBackWhatTheCoreHas,
    DecidesOnSharedRows,
    /// A late body is not judged by its Date again.
    JudgesTheDateOnce,
    /// Ids of payments are in memory alone.
    ForgetsIdsAtRestart,
    ForgetsTheClock,
    SweepsWithoutTheClock,
    /// Nobody asks how far the clock went while a claim waited.
    WaitsAnyTime,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ids {
    pub(super) gateways: usize,
    /// The number of requests that are under way at one gateway.
    pub(super) requests: usize,
    pub(super) retention: Retention,
    pub(super) times: &'static [u64],
    /// The seconds by which clocks differ and step back at most, and by which one is ahead of a claim that waits.
    pub(super) apart: u64,
    pub(super) fault: Option<Fault>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) tables: Tables,
    pub(super) clock: ClockRow,
    pub(super) gateways: Vec<Gateway>,
    /// The latest time that any clock showed.
    pub(super) latest: u64,
    /// The number of requests that the core got; for ids in memory, from one process.
    pub(super) granted: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    SetClock(usize, u64),
    Arrive(usize),
    /// Another request, which is read only and signed at this moment.
    Other(usize),
    Begin(usize, usize),
    Decide(usize, usize),
    Commit(usize, usize),
    /// The connection is lost at the commit, which may still take effect.
    Lose(usize, usize),
    TakeEffect(usize, usize),
    Ask(usize, usize),
    /// The caller no longer waits.
    GiveUp(usize, usize),
    Answer(usize, usize),
    Forward(usize, usize),
    /// The core cannot be connected.
    Fail(usize, usize),
    GiveBack(usize, usize),
    /// A transaction ends that nobody waits for.
    End(usize, bool),
    Sweep(usize),
    Follow(usize),
    Crash(usize),
}

pub(super) fn claim(retention: Retention, now: u64) -> ClaimRequest {
    ClaimRequest {
        request: Some(RequestIdClaim {
            id: ID,
            date: at(DATE),
            retention,
        }),
        quota: None,
        now: at(now),
    }
}

impl Ids {
    pub(super) fn is_dated(&self, now: u64) -> bool {
        now.abs_diff(DATE) <= 60
    }

    /// Whether a clock may show a time.
    pub(super) fn may_show(&self, state: &State, time: u64) -> bool {
        let mut others = state.gateways.iter();
        time + self.apart >= state.latest
            && others.all(|other| time <= other.clock.min(other.waits_since()) + self.apart)
    }

    /// Whether a transaction of another request holds the row.
    pub(super) fn is_locked(&self, state: &State) -> bool {
        let mut gateways = state.gateways.iter();
        gateways.any(|gateway| !gateway.written.0.is_empty())
            && self.fault != Some(Fault::DecidesOnSharedRows)
    }
}

/// What a process has in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    pub(super) latest: u64,
    stepped_back: bool,
    noted: u64,
    ids: KeptIds,
}

/// Where a request is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    /// Its Date was judged; its body is under way.
    Admitted,
    /// Its id is claimed in memory, and it waits for a transaction.
    Begun { now: u64, judged: Judged },
    /// The transaction has decided, and was sent.
    Decided {
        now: u64,
        judged: Judged,
        is_held: bool,
    },
    /// The connection was lost at the commit.
    Unclear {
        now: u64,
        judged: Judged,
        is_done: bool,
    },
    /// The transaction is committed.
    Committed {
        now: u64,
        judged: Judged,
        is_held: bool,
    },
    /// The caller was told that it may forward the request.
    Held { now: u64 },
    /// The core was never connected, and the id is given back.
    GivingBack { now: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Gateway {
    /// What its clock shows.
    pub(super) clock: u64,
    pub(super) memory: Memory,
    pub(super) requests: Vec<Request>,
    /// What the transaction of a request writes, until it ends.
    pub(super) written: Written,
}

thread_local! {
    /// A process, whose memory is replaced for each step.
    static PROCESS: RefCell<Process> = RefCell::new(process(ClockRow::default()));
}

fn process(stored: ClockRow) -> Process {
    let settings = StateSettings::new("", "");
    Process::new(
        &settings,
        stored,
        Arc::new(Freshness::new(Reads::Own, false)),
    )
}

impl Gateway {
    /// The time of the first claim that waits.
    fn waits_since(&self) -> u64 {
        let waiting = self.requests.iter().map(|it| match it {
            Request::Begun { now, .. }
            | Request::Decided { now, .. }
            | Request::Unclear { now, .. }
            | Request::Committed { now, .. } => *now,
            Request::Admitted | Request::Held { .. } | Request::GivingBack { .. } => ANY,
        });
        waiting.min().unwrap_or(ANY)
    }

    /// Whether it has a transaction that nobody waits for.
    pub(super) fn has_orphan(&self) -> bool {
        let mut requests = self.requests.iter();
        let is_of = |it: &Request| {
            matches!(
                it,
                Request::Decided { .. } | Request::Unclear { is_done: false, .. }
            )
        };
        !self.written.0.is_empty() && !requests.any(is_of)
    }
}

impl Memory {
    /// Of a process that starts.
    pub(super) fn begun(stored: ClockRow) -> Self {
        Self {
            latest: stored.latest,
            stepped_back: stored.stepped_back,
            noted: 0,
            ids: RequestIds::new(1_000_000, at(stored.latest)).kept(ID),
        }
    }

    /// Lets the process with this memory act.
    pub(super) fn act<T>(&mut self, act: impl FnOnce(&Process) -> T) -> T {
        PROCESS.with_borrow_mut(|process| {
            process.clock = Clock::default();
            process.clock.begin(ClockRow {
                latest: self.latest,
                stepped_back: self.stepped_back,
                accepted: 0,
            });
            process.request_ids = RequestIds::of_kept(ID, &self.ids);
            process.set_noted(self.noted);
            let acted = act(process);
            *self = Self {
                latest: process.clock.latest().unix(),
                stepped_back: process.clock.stepped_back(),
                noted: process.noted(),
                ids: process.request_ids.kept(ID),
            };
            acted
        })
    }
}
