//! The states of the model of a PSU.

use super::{
    told::{Expected, Told},
    words::{Op, PSU},
};
use crate::{
    StateSettings,
    cache::RowCache,
    model::store::{PsuRow, Row, Tables, Written},
    rows::RowKey,
    rules::Removal,
};

/// What is wrong between the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    DecidesOnSharedRows,
    /// The last removal is read when the core has answered.
    ReadsTheMarkLate,
    /// The change log is not read.
    ReadsNoLog,
    /// A gateway's own change leaves its cache as it is.
    KeepsItsOwnChange,
    /// So does one whose outcome was unknown.
    KeepsWhatIsUnclear,
    /// A row that was read before a change is cached after it.
    CachesWhatIsOld,
    /// A change is taken for committed whose outcome is unknown.
    TakesUnclearForCommitted,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Knowledge {
    pub(super) gateways: usize,
    pub(super) words: &'static [Op],
    /// Whether PSUs are looked up.
    pub(super) looks_up: bool,
    pub(super) crashes: u8,
    pub(super) losses: u8,
    pub(super) fault: Option<Fault>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) tables: Tables,
    pub(super) gateways: Vec<Gateway>,
    /// The words that were not said yet.
    pub(super) unsaid: Vec<Op>,
    pub(super) expected: Expected,
    /// The number of commits that changed the PSU.
    pub(super) version: u8,
    pub(super) crashes: u8,
    pub(super) losses: u8,
    /// What went wrong: a decision, a withdrawal that was not done, an answer of the cache.
    pub(super) is_wrong: bool,
    pub(super) was_told_wrongly: bool,
    pub(super) served_stale: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Say(usize, usize),
    /// A request that may teach goes to the core.
    AskCore(usize),
    Decide(usize),
    Commit(usize),
    /// The connection is lost at the commit, which may still take effect.
    Lose(usize),
    TakeEffect(usize),
    /// The gateway asks whether it did, which it cannot do later then.
    Ask(usize),
    Answer(usize),
    Read(usize),
    Cache(usize),
    Serve(usize),
    /// The change log is read.
    Follow(usize),
    Crash(usize),
}

impl State {
    pub(super) fn psu(&self) -> Option<&PsuRow> {
        match self.tables.get(RowKey::Psu(*PSU)) {
            Some(Row::Psu(psu)) => Some(psu),
            _ => None,
        }
    }
}

/// A word that waits for a transaction: with the last removal before it, if it is the core's.
pub(super) type Waiting = (Op, Option<(Removal, u8)>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gateway {
    pub(super) waiting: Vec<Waiting>,
    pub(super) batch: Option<Batch>,
    /// The last removal, and the number of them, when a request that may teach went to the core.
    pub(super) asked: Option<(Removal, u8)>,
    /// The cached row, and the version as of which it was read.
    pub(super) cached: Option<(PsuRow, u8)>,
    /// A row that was read and is not cached yet, its version, and whether a change has come since.
    pub(super) read: Option<(Option<PsuRow>, u8, bool)>,
    /// The version of which nothing older is served.
    pub(super) heard: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) words: Vec<(Waiting, Told)>,
    pub(super) written: Written,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Decided,
    /// Committed as this version.
    Committed(u8),
    /// The same, by the answer to a question.
    Asked(u8),
    /// The connection was lost: committed as this version, or not yet.
    Unclear(Option<u8>),
}

thread_local! {
    pub(super) static CACHE: RowCache = RowCache::new(&StateSettings::new("", ""));
}

impl Gateway {
    /// Lets the cache act.
    pub(super) fn with_cache<T>(&mut self, act: impl FnOnce(&RowCache) -> T) -> T {
        CACHE.with(|cache| {
            let changes = self.read.as_ref().map_or(0, |read| u64::from(read.2));
            let row = self.cached.as_ref().map(|cached| &cached.0.0);
            cache.keep(*PSU, row, changes);
            let acted = act(cache);
            let (row, changes) = cache.kept(*PSU);
            if let Some(read) = &mut self.read {
                read.2 = changes > 0;
            }
            self.cached = self.cached.take().filter(|_| row.is_some());
            acted
        })
    }

    pub(super) fn drop_changed(&mut self) {
        self.with_cache(|cache| cache.psu_changed(*PSU));
    }
}
