//! The rows that decisions are about, as every engine loads and writes them.
//!
//! Invariant: a row that a decision reads was loaded in the same transaction. If a decision reads another row, [`Rows::is_complete`] is
//! false, and the engine writes nothing.

use super::{
    Block, BlockHash, Event, ListHash, Move, MoveHash, Psu, PsuHash, QuotaHash, ReportHash,
    RequestHash, TokenHash,
    hash::{
        Hash, HashKind, HashMapByBits, OfBlock, OfList, OfMove, OfPsu, OfQuota, OfRequest, OfToken,
    },
    moves::{Moves, WrittenAs},
    rules::Calls,
};
use portvakt_base::clock::Timestamp;
use std::{cell::Cell, sync::Arc};

/// The key of a row, by its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowKey {
    Quota(QuotaHash),
    List(ListHash),
    Request(RequestHash),
    Token(TokenHash),
    Psu(PsuHash),
    Block(BlockHash),
    Move(MoveHash),
    /// Every move of a TPP. No other transaction adds or removes one before the end of this one.
    AllMoves,
}

impl RowKey {
    /// Whether only claims and their returns change such rows: they have no events (CTL-3).
    pub(super) const fn is_of_claims(&self) -> bool {
        matches!(self, Self::Quota(_) | Self::List(_) | Self::Request(_))
    }
}

/// QUO-13: a list that is read page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListRow {
    /// The call with which later pages are counted; no other call of the list has the same time.
    pub(super) call: Timestamp,
    /// The last entry that was requested.
    pub(super) last: i64,
}

/// SCA-12: a spent token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenRow {
    /// The hash of all reported facts about the end of the SCA.
    pub(super) said: ReportHash,
    /// The expiry of the token.
    pub(super) expires: Timestamp,
}

/// A PSU, and the identity under which it was bound to a TPP (SCA-3, CTL-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoundPsu {
    pub(super) written: WrittenAs,
    pub(super) psu: Arc<Psu>,
}

/// The rows of one batch.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) quotas: Loaded<OfQuota, Calls>,
    pub(super) lists: Loaded<OfList, ListRow>,
    /// REP-1: the last second in which an id counts as used.
    pub(super) requests: Loaded<OfRequest, Timestamp>,
    pub(super) tokens: Loaded<OfToken, TokenRow>,
    pub(super) psus: Loaded<OfPsu, BoundPsu>,
    /// CTL-2.
    pub(super) blocks: Loaded<OfBlock, Block>,
    /// CTL-4.
    pub(super) moves: Loaded<OfMove, Move>,
    /// Whether every move was loaded.
    pub(super) has_all_moves: bool,
    /// The effects on the cached used-up quotas, in the order of the decisions.
    pub(super) used_up: Vec<UsedUp>,
    /// CTL-3: events that are no difference of rows.
    pub(super) observed: Vec<Event>,
    /// CTL-3: the check value of the key for customers that the state has recorded.
    pub(super) customer_key: Option<String>,
}

/// The effect of a decision on a cached used-up quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsedUp {
    /// The quota is used up until this time.
    Until(QuotaHash, Timestamp),
    /// The quota is no longer used up, because a call was given back.
    NoLonger(QuotaHash),
}

/// The rows of one table, as loaded and as they will be written.
#[derive(Debug)]
pub(super) struct Loaded<K, R> {
    rows: HashMapByBits<K, Entry<R>>,
    /// What each decision replaced, in their order, if the rows have events.
    replaced: Vec<Replaced<R>>,
    /// Whether a decision read a row that was not loaded.
    has_missed: Cell<bool>,
}

/// A row before and after one decision.
#[derive(Debug)]
pub(super) struct Replaced<R> {
    pub(super) before: Option<R>,
    pub(super) after: Option<R>,
}

#[derive(Debug)]
struct Entry<R> {
    stored: Option<R>,
    row: Option<R>,
}

/// A row that differs from the stored one: it is written, or removed if it is `None`.
#[derive(Debug)]
pub(super) struct ChangedRow<'a, K, R> {
    pub(super) key: Hash<K>,
    pub(super) stored: Option<&'a R>,
    pub(super) row: Option<&'a R>,
}

impl<K: HashKind, R> Default for Loaded<K, R> {
    fn default() -> Self {
        Self {
            rows: HashMapByBits::default(),
            replaced: Vec::new(),
            has_missed: Cell::new(false),
        }
    }
}

impl<K: HashKind, R: Clone + PartialEq> Loaded<K, R> {
    /// Whether the row of a key was loaded already.
    pub(super) fn has(&self, key: Hash<K>) -> bool {
        self.rows.contains_key(&key)
    }

    /// Adds the stored row of a key, or its absence.
    pub(super) fn load(&mut self, key: Hash<K>, stored: Option<R>) {
        let row = stored.clone();
        self.rows.insert(key, Entry { stored, row });
    }

    /// The row of a key after the earlier decisions.
    pub(super) fn get(&self, key: Hash<K>) -> Option<&R> {
        let entry = self.rows.get(&key);
        if entry.is_none() {
            self.has_missed.set(true);
        }
        entry?.row.as_ref()
    }

    /// Puts a row under a key.
    pub(super) fn put(&mut self, key: Hash<K>, row: R) {
        self.set(key, Some(row));
    }

    /// Removes the row of a key.
    pub(super) fn remove(&mut self, key: Hash<K>) {
        self.set(key, None);
    }

    fn set(&mut self, key: Hash<K>, row: Option<R>) {
        match self.rows.get_mut(&key) {
            Some(entry) => {
                if K::HAS_EVENTS {
                    self.replaced.push(Replaced {
                        before: entry.row.clone(),
                        after: row.clone(),
                    });
                }
                entry.row = row;
            }
            None => self.has_missed.set(true),
        }
    }

    /// What each decision replaced (CTL-3).
    pub(super) fn replaced(&self) -> &[Replaced<R>] {
        &self.replaced
    }

    /// The rows that were loaded, after the earlier decisions.
    fn all(&self) -> impl Iterator<Item = &R> {
        self.rows.values().filter_map(|entry| entry.row.as_ref())
    }

    /// The rows to write.
    pub(super) fn changed(&self) -> impl Iterator<Item = ChangedRow<'_, K, R>> {
        let differs = self
            .rows
            .iter()
            .filter(|(_, entry)| entry.row != entry.stored);
        differs.map(|(key, entry)| ChangedRow {
            key: *key,
            stored: entry.stored.as_ref(),
            row: entry.row.as_ref(),
        })
    }
}

impl Rows {
    /// The blocks of TPPs that differ, as they will be; `None` stands for a removed one.
    pub(super) fn changed_blocks(&self) -> impl Iterator<Item = (BlockHash, Option<&Block>)> {
        let blocks = self.blocks.changed();
        blocks.map(|changed| (changed.key, changed.row))
    }

    /// The same of moves.
    pub(super) fn changed_moves(&self) -> impl Iterator<Item = (MoveHash, Option<&Move>)> {
        let moves = self.moves.changed();
        moves.map(|changed| (changed.key, changed.row))
    }

    /// Every move, after the earlier decisions.
    pub(super) fn all_moves(&self) -> Moves {
        if !self.has_all_moves {
            self.moves.has_missed.set(true);
        }
        Moves::new(self.moves.all())
    }

    /// Whether every row that was read had been loaded. If not, the decisions are invalid.
    pub(super) fn is_complete(&self) -> bool {
        let has_missed = [
            &self.quotas.has_missed,
            &self.lists.has_missed,
            &self.requests.has_missed,
            &self.tokens.has_missed,
            &self.psus.has_missed,
            &self.blocks.has_missed,
            &self.moves.has_missed,
        ];
        !has_missed.into_iter().any(Cell::get)
    }
}

impl BoundPsu {
    /// The facts to show for the TPP that has the PSU: no session that a former identity began before the move (CTL-4), whose ids only that
    /// identity could sign.
    pub(super) fn facts(&self, moves: &Moves) -> Arc<Psu> {
        let since = moves.owned_since(&self.written);
        match self.psu.session {
            Some(session) if Some(session.completed) < since => {
                self.with(|psu| psu.session = None).psu
            }
            Some(_) | None => Arc::clone(&self.psu),
        }
    }

    /// A copy of the PSU with the session, contexts or times changed.
    pub(super) fn with(&self, change: impl FnOnce(&mut Psu)) -> Self {
        let mut psu = Psu::clone(&self.psu);
        change(&mut psu);
        Self {
            written: self.written.clone(),
            psu: Arc::new(psu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: RequestHash = Hash::from_bytes([1; 16]);
    const OTHER: RequestHash = Hash::from_bytes([2; 16]);
    const TOKEN: TokenHash = Hash::from_bytes([1; 16]);
    const OTHER_TOKEN: TokenHash = Hash::from_bytes([2; 16]);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    #[test]
    fn only_rows_that_differ_are_written() {
        let mut rows = Rows::default();
        rows.requests.load(KEY, Some(at(1)));
        rows.requests.load(OTHER, None);
        rows.requests.put(KEY, at(2));
        rows.requests.put(KEY, at(1));
        rows.requests.put(OTHER, at(3));
        rows.requests.remove(OTHER);
        assert_eq!(rows.requests.changed().count(), 0);
        rows.requests.remove(KEY);
        let changed: Vec<_> = rows.requests.changed().collect();
        let [changed] = changed.as_slice() else {
            panic!("{changed:?}")
        };
        assert_eq!((changed.key, changed.row), (KEY, None));
        assert!(rows.is_complete());
    }

    #[test]
    fn a_decision_on_a_row_that_was_not_loaded_is_noticed() {
        let mut rows = Rows::default();
        rows.tokens.load(TOKEN, None);
        assert_eq!(rows.tokens.get(TOKEN), None);
        assert!(rows.is_complete());
        assert_eq!(rows.tokens.get(OTHER_TOKEN), None);
        assert!(!rows.is_complete());
        let mut rows = Rows::default();
        rows.requests.put(KEY, at(1));
        assert!(!rows.is_complete());
        assert_eq!(rows.requests.changed().count(), 0);
    }
}
