//! Rows that end with the process: the smallest engine, which shows what the rules require of an engine. For tests.
//!
//! Deliberately not here: durability, and an operator's acceptance of the clock.

use super::{
    Block, BlockHash, Counters, CustomerHash, Dated, Event, Keys, ListHash, Move, MoveHash,
    PsuHash, QuotaHash, RequestHash, StateSettings, TokenHash, Unavailable,
    blocks::Standing,
    change::{Change, undecided},
    clock::ClockRow,
    engine::Engine,
    freshness::{AsOf, Freshness, Reads},
    hash::{Hash, HashKind},
    lock::lock,
    outbox::Outbox,
    process::Process,
    rows::{BoundPsu, ListRow, Loaded, RowKey, Rows, TokenRow},
    rules::{self, Calls, Expiry, Table},
    sweep::Step,
};
use portvakt_base::clock::Timestamp;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

/// Tables that several stores of this process share, as processes share a file.
#[derive(Clone)]
pub struct VolatileTables {
    secret: [u8; 32],
    tables: Arc<Mutex<Tables>>,
}

#[derive(Default)]
struct Tables {
    quotas: BTreeMap<QuotaHash, Calls>,
    lists: BTreeMap<ListHash, ListRow>,
    requests: BTreeMap<RequestHash, Timestamp>,
    tokens: BTreeMap<TokenHash, TokenRow>,
    psus: BTreeMap<PsuHash, BoundPsu>,
    blocks: BTreeMap<BlockHash, Block>,
    moves: BTreeMap<MoveHash, Move>,
    /// CTL-3.
    events: VecDeque<Event>,
    stream: u64,
    last_event: u64,
    pruned: u64,
    clock: ClockRow,
    /// Every open store: all of them apply a change.
    open: Vec<Weak<Process>>,
}

/// One store's view of the tables.
pub(super) struct Volatile {
    tables: Arc<Mutex<Tables>>,
    process: Arc<Process>,
    customer_key: Option<String>,
    counters: Mutex<Counters>,
}

impl VolatileTables {
    /// Empty tables, under a hash key from 32 secret bytes.
    pub fn new(secret: [u8; 32]) -> Self {
        let mut stream = [0; 8];
        // Without random bytes all streams have one id, which only a test could notice.
        let _ = aws_lc_rs::rand::fill(&mut stream);
        let tables = Tables {
            stream: u64::from_be_bytes(stream),
            ..Tables::default()
        };
        Self {
            secret,
            tables: Arc::new(Mutex::new(tables)),
        }
    }

    pub(super) fn keys(&self) -> Keys {
        Keys::new(&self.secret)
    }

    /// A store whose state has recorded this check value of the key for customers.
    pub(super) fn open(
        &self,
        settings: &StateSettings,
        customer_key: Option<String>,
    ) -> (Volatile, Arc<Process>) {
        let mut tables = lock(&self.tables);
        tables.keep_clock();
        let freshness = Arc::new(Freshness::new(Reads::Own, false));
        let process = Arc::new(Process::new(settings, tables.clock, freshness));
        let reading = process.blocks.reading();
        process.blocks.replace(reading, tables.standing());
        tables.open.retain(|open| open.strong_count() > 0);
        tables.open.push(Arc::downgrade(&process));
        let volatile = Volatile {
            tables: Arc::clone(&self.tables),
            process: Arc::clone(&process),
            customer_key,
            counters: Mutex::default(),
        };
        (volatile, process)
    }
}

/// There is no other state.
const fn own<T>(fact: T) -> Dated<T> {
    let as_of = AsOf::ANY_TIME;
    Dated { fact, as_of }
}

impl Engine for Volatile {
    async fn psu(&self, psu: PsuHash) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        let cache = &self.process.cache;
        let reading = cache.reading(psu);
        let bound = lock(&self.tables).psus.get(&psu).cloned();
        cache.put(psu, reading, bound.as_ref());
        Ok(own(bound))
    }

    async fn psus_of(
        &self,
        customer: CustomerHash,
        after: Option<PsuHash>,
        most: u32,
    ) -> Result<Vec<(PsuHash, BoundPsu)>, Unavailable> {
        let tables = lock(&self.tables);
        let psus = tables.psus.iter();
        let psus = psus.filter(|(psu, bound)| {
            after.is_none_or(|after| **psu > after) && bound.psu.customer == Some(customer)
        });
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let psus = psus.take(most);
        Ok(psus.map(|(psu, bound)| (*psu, bound.clone())).collect())
    }

    async fn standing(&self) -> Result<Dated<Standing>, Unavailable> {
        Ok(own(lock(&self.tables).standing()))
    }

    async fn events(&self, after: u64, most: u32) -> Result<Outbox, Unavailable> {
        let tables = lock(&self.tables);
        let events = tables.events.iter().filter(|event| event.sequence > after);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(Outbox {
            stream: tables.stream,
            last: tables.last_event,
            pruned: tables.pruned,
            events: events.take(most).cloned().collect(),
        })
    }

    async fn commit<C: Change>(&self, change: C) -> Result<C::Outcome, Unavailable> {
        let mut tables = lock(&self.tables);
        let mut keys = Vec::new();
        change.keys(&mut keys);
        let mut rows = Rows {
            customer_key: self.customer_key.clone(),
            ..Rows::default()
        };
        tables.load(&keys, &mut rows);
        let outcome = change.decide(&mut rows);
        if !rows.is_complete() {
            return Err(undecided());
        }
        tables.write(&rows, self.process.clock.latest());
        tables.keep_clock();
        let mut counters = lock(&self.counters);
        counters.count(1, Duration::ZERO);
        Ok(outcome)
    }

    async fn sweep(
        &self,
        table: Table,
        now: Timestamp,
        _is_first: bool,
    ) -> Result<Step, Unavailable> {
        let mut tables = lock(&self.tables);
        if table == Table::Psu {
            tables.tidy_events(&self.process, now);
        }
        let (before, after) = tables.tidy(table, now);
        *lock(&self.counters).rows.of(table) = Some(after);
        tables.keep_clock();
        Ok(Step {
            removed: before - after,
            around: true,
        })
    }

    fn health(&self) -> Result<(), Unavailable> {
        lock(&self.tables).keep_clock();
        Ok(())
    }

    /// Memory takes every write.
    fn has_written(&self) -> bool {
        true
    }

    fn counters(&self) -> Counters {
        lock(&self.counters).clone()
    }
}

impl Tables {
    fn standing(&self) -> Standing {
        let blocks = self.blocks.iter();
        let moves = self.moves.iter();
        Standing {
            blocks: blocks.map(|(key, block)| (*key, block.clone())).collect(),
            moves: moves.map(|(key, moved)| (*key, moved.clone())).collect(),
        }
    }

    fn load(&self, keys: &[RowKey], rows: &mut Rows) {
        for key in keys {
            match key {
                RowKey::Quota(key) => load(&self.quotas, *key, &mut rows.quotas),
                RowKey::List(key) => load(&self.lists, *key, &mut rows.lists),
                RowKey::Request(key) => load(&self.requests, *key, &mut rows.requests),
                RowKey::Token(key) => load(&self.tokens, *key, &mut rows.tokens),
                RowKey::Psu(key) => load(&self.psus, *key, &mut rows.psus),
                RowKey::Block(key) => load(&self.blocks, *key, &mut rows.blocks),
                RowKey::Move(key) => load(&self.moves, *key, &mut rows.moves),
                RowKey::AllMoves => {
                    let keys = self.moves.keys();
                    keys.for_each(|key| load(&self.moves, *key, &mut rows.moves));
                    rows.has_all_moves = true;
                }
            }
        }
    }

    /// Writes the rows that differ; every open store drops its cached copies.
    fn write(&mut self, rows: &Rows, at: Timestamp) {
        let events = rules::events(rows, at);
        let wakes = !events.is_empty();
        for event in events {
            self.last_event += 1;
            let sequence = self.last_event;
            self.events.push_back(Event { sequence, ..event });
        }
        write(&mut self.quotas, &rows.quotas);
        write(&mut self.lists, &rows.lists);
        write(&mut self.requests, &rows.requests);
        write(&mut self.tokens, &rows.tokens);
        write(&mut self.psus, &rows.psus);
        write(&mut self.blocks, &rows.blocks);
        write(&mut self.moves, &rows.moves);
        for process in self.open.iter().filter_map(Weak::upgrade) {
            if wakes {
                process.wake_events();
            }
            for decided in &rows.used_up {
                process.cache.heed(*decided);
            }
            for psu in rows.psus.changed() {
                process.cache.psu_changed(psu.key);
            }
            process
                .blocks
                .apply(rows.changed_blocks(), rows.changed_moves());
        }
    }

    /// Notes the consents that have ended, and removes old events.
    fn tidy_events(&mut self, process: &Process, now: Timestamp) {
        if let Some(through) = rules::ended_through(now) {
            let psus = self.psus.keys().copied().collect();
            let expiry = Expiry { psus, through };
            let (mut keys, mut rows) = (Vec::new(), Rows::default());
            expiry.keys(&mut keys);
            self.load(&keys, &mut rows);
            expiry.decide(&mut rows);
            self.write(&rows, now);
        }
        let (through, number) = process.events_removed_through(now, self.last_event);
        while let Some(event) = self.events.front()
            && (event.at.unix() <= through || event.sequence <= number)
        {
            self.pruned = event.sequence;
            self.events.pop_front();
        }
    }

    /// Merges the clocks of the stores, and passes the result to each of them.
    fn keep_clock(&mut self) {
        for process in self.open.iter().filter_map(Weak::upgrade) {
            self.clock = process.heed_clock(self.clock);
        }
    }

    /// Removes due rows; returns the number of rows before and after.
    fn tidy(&mut self, table: Table, now: Timestamp) -> (u64, u64) {
        let Some(through) = table.removed_through(now) else {
            let psus = count(&self.psus);
            return (psus, psus);
        };
        match table {
            Table::Quota => retain(&mut self.quotas, |calls| calls.last() > Some(through)),
            Table::List => retain(&mut self.lists, |list| list.call > through),
            Table::Request => retain(&mut self.requests, |until| *until > through),
            Table::Token => retain(&mut self.tokens, |spent| spent.expires > through),
            Table::Block => retain(&mut self.blocks, |block| {
                block.until.is_none_or(|until| until > through)
            }),
            Table::Psu => retain(&mut self.psus, |_| true),
        }
    }
}

fn load<K, R>(table: &BTreeMap<Hash<K>, R>, key: Hash<K>, rows: &mut Loaded<K, R>)
where
    K: HashKind,
    R: Clone + PartialEq,
{
    rows.load(key, table.get(&key).cloned());
}

fn write<K, R>(table: &mut BTreeMap<Hash<K>, R>, rows: &Loaded<K, R>)
where
    K: HashKind,
    R: Clone + PartialEq,
{
    for changed in rows.changed() {
        match changed.row {
            Some(row) => table.insert(changed.key, row.clone()),
            None => table.remove(&changed.key),
        };
    }
}

fn retain<K: HashKind, R>(
    table: &mut BTreeMap<Hash<K>, R>,
    stays: impl Fn(&R) -> bool,
) -> (u64, u64) {
    let before = count(table);
    table.retain(|_, row| stays(row));
    (before, count(table))
}

fn count<K, R>(table: &BTreeMap<Hash<K>, R>) -> u64 {
    u64::try_from(table.len()).unwrap_or(u64::MAX)
}
