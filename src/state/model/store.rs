//! The rows of a store, and a transaction that decides queued changes, as every engine does it.

use crate::{
    QuotaHash, ReportHash,
    change::{Change, Outcome, QueuedChange, queued},
    hash::{Hash, HashKind},
    rows::{BoundPsu, Loaded, RowKey, Rows, TokenRow},
    rules::{Calls, Table},
};
use portvakt_base::clock::Timestamp;
use std::{collections::BTreeMap, hash};

/// A table, and a key in it.
type Key = (u8, [u8; 16]);

/// A stored row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Row {
    Quota([Option<u64>; 4]),
    Request(Timestamp),
    Token(ReportHash, Timestamp),
    Psu(PsuRow),
}

/// A row of a PSU, whose hash is made of the facts that the models change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PsuRow(pub(crate) BoundPsu);

impl hash::Hash for PsuRow {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        let psu = &self.0.psu;
        (self.0.written.as_stored(), psu.learned, psu.last_sca).hash(state);
        psu.session.map(|it| (it.id, it.completed)).hash(state);
        for context in &psu.contexts {
            let given = context.consent.as_ref().map(|consent| consent.given);
            (context.origin.number(), context.last_sca, given).hash(state);
        }
    }
}

/// Committed rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tables(BTreeMap<Key, Row>);

/// What a transaction writes: `None` is a removed row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Written(pub(crate) BTreeMap<Key, Option<Row>>);

impl Tables {
    /// Lets the changes of a batch decide in their order, on rows of one moment. Nothing is committed yet.
    pub(crate) fn decide(&self, batch: &mut [Box<dyn QueuedChange>]) -> Written {
        let mut keys = Vec::new();
        batch.iter().for_each(|change| change.keys(&mut keys));
        let mut rows = self.load(&keys);
        batch.iter_mut().for_each(|change| change.decide(&mut rows));
        assert!(rows.is_complete(), "a decision read a row that is not its");
        written(&rows)
    }

    fn load(&self, keys: &[RowKey]) -> Rows {
        let mut rows = Rows::default();
        for key in keys {
            let row = key_of(*key).and_then(|key| self.0.get(&key));
            match (*key, row) {
                (RowKey::Quota(key), row) => rows.quotas.load(
                    key,
                    row.and_then(|row| match row {
                        Row::Quota(calls) => Some(Calls(*calls)),
                        _ => None,
                    }),
                ),
                (RowKey::Request(key), row) => rows.requests.load(
                    key,
                    row.and_then(|row| match row {
                        Row::Request(until) => Some(*until),
                        _ => None,
                    }),
                ),
                (RowKey::Token(key), row) => rows.tokens.load(
                    key,
                    row.and_then(|row| match *row {
                        Row::Token(said, expires) => Some(TokenRow { said, expires }),
                        _ => None,
                    }),
                ),
                (RowKey::Psu(key), row) => rows.psus.load(
                    key,
                    row.and_then(|row| match row {
                        Row::Psu(psu) => Some(psu.0.clone()),
                        _ => None,
                    }),
                ),
                (RowKey::Move(key), _) => rows.moves.load(key, None),
                (RowKey::List(_) | RowKey::Block(_) | RowKey::AllMoves, _) => {}
            }
        }
        rows
    }

    pub(crate) fn commit(&mut self, written: &Written) {
        for (key, row) in &written.0 {
            match row {
                Some(row) => self.0.insert(*key, row.clone()),
                None => self.0.remove(key),
            };
        }
    }

    pub(crate) fn get(&self, key: RowKey) -> Option<&Row> {
        self.0.get(&key_of(key)?)
    }

    pub(crate) fn quota(&self, key: QuotaHash) -> [Option<u64>; 4] {
        match self.get(RowKey::Quota(key)) {
            Some(Row::Quota(calls)) => *calls,
            _ => [None; 4],
        }
    }

    /// Housekeeping: removes the rows of a table that are due by a time.
    pub(crate) fn sweep(&mut self, table: Table, now: Timestamp) {
        let Some(through) = table.removed_through(now) else {
            return;
        };
        self.0.retain(|_, row| match (table, row) {
            (Table::Quota, Row::Quota(calls)) => {
                let last = calls.iter().flatten().max();
                last.is_some_and(|last| *last > through.unix())
            }
            (Table::Request, Row::Request(until)) => *until > through,
            (Table::Token, Row::Token(_, expires)) => *expires > through,
            _ => true,
        });
    }
}

impl Written {
    /// The PSU that is written, if any: `Some(None)` is a removed one.
    pub(crate) fn psu(&self) -> Option<Option<&PsuRow>> {
        self.0.iter().find_map(|((table, _), row)| match row {
            Some(Row::Psu(psu)) => Some(Some(psu)),
            None if *table == PSUS => Some(None),
            _ => None,
        })
    }
}

const PSUS: u8 = 3;

fn key_of(key: RowKey) -> Option<Key> {
    match key {
        RowKey::Quota(key) => Some((0, *key.as_bytes())),
        RowKey::Request(key) => Some((1, *key.as_bytes())),
        RowKey::Token(key) => Some((2, *key.as_bytes())),
        RowKey::Psu(key) => Some((PSUS, *key.as_bytes())),
        RowKey::List(_) | RowKey::Block(_) | RowKey::Move(_) | RowKey::AllMoves => None,
    }
}

/// The rows that differ.
fn written(rows: &Rows) -> Written {
    let mut written = BTreeMap::new();
    changed(&rows.quotas, 0, &mut written, |calls| Row::Quota(calls.0));
    changed(&rows.requests, 1, &mut written, |until| {
        Row::Request(*until)
    });
    changed(&rows.tokens, 2, &mut written, |token| {
        Row::Token(token.said, token.expires)
    });
    changed(&rows.psus, PSUS, &mut written, |psu| {
        Row::Psu(PsuRow(psu.clone()))
    });
    Written(written)
}

fn changed<K: HashKind, R: Clone + PartialEq>(
    rows: &Loaded<K, R>,
    table: u8,
    written: &mut BTreeMap<Key, Option<Row>>,
    row: impl Fn(&R) -> Row,
) {
    let changed = rows.changed();
    written.extend(changed.map(|it| ((table, bytes(it.key)), it.row.map(&row))));
}

fn bytes<K>(key: Hash<K>) -> [u8; 16] {
    *key.as_bytes()
}

/// The queued form of a change, and what its caller waits for.
pub(crate) fn queue<C: Change>(
    batch: &mut Vec<Box<dyn QueuedChange>>,
    change: C,
) -> Outcome<C::Outcome> {
    let (change, outcome) = queued(change);
    batch.push(change);
    outcome
}

/// What the caller is told once the batch is answered as committed.
pub(crate) fn told<T>(mut outcome: Outcome<T>) -> T {
    outcome.try_recv().unwrap().unwrap()
}
