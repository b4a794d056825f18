//! The rotation of the hash key: every hash of the state moves from its level to the next, by itself.
//!
//! A table lists the columns with hashes, and an engine rewrites their rows in one transaction, together with the check value. Invariants:
//! the keys stay in this process; a column of bytes that is no hash is listed too, so that a test finds a column that nobody thought of.
//! Deliberately not here: reading and writing rows.

use super::{
    BlockScope, Hash, OpenFault, PsuHash, StateSettings,
    hash_key::{self, MOST_KEYS},
    keys::{Keys, NextLevel},
};
use portvakt_interface::ForbiddenTpp;

/// A column with hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// One hash, or NULL.
    Hash,
    /// One hash, or no byte: the agreement of a private context.
    HashOrEmpty,
    /// Hashes side by side, or NULL.
    Hashes,
    /// The key of a block, which is computed from its TPP, its scope and its PSU.
    Block,
}

/// A table with hashes.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The columns with hashes; those of the key first.
    pub(super) columns: &'static [(&'static str, Column)],
    /// The key, by which rows are sorted.
    pub(super) key: &'static str,
}

/// The tables whose rows are rewritten, in the order in which a gateway locks them.
pub(super) const TABLES: [Table; 8] = [
    table("quota", "key", &[("key", Column::Hash)]),
    table("page", "key", &[("key", Column::Hash)]),
    table("request", "key", &[("key", Column::Hash)]),
    table(
        "token",
        "key",
        &[("key", Column::Hash), ("said", Column::Hash)],
    ),
    table(
        "psu",
        "psu",
        &[
            ("psu", Column::Hash),
            ("session", Column::Hash),
            ("customer", Column::Hash),
        ],
    ),
    table(
        "context",
        "psu, corporate",
        &[
            ("psu", Column::Hash),
            ("corporate", Column::HashOrEmpty),
            ("accounts", Column::Hashes),
        ],
    ),
    table(
        "block",
        "key",
        &[("key", Column::Block), ("psu", Column::Hash)],
    ),
    table("moved", "key", &[("key", Column::Hash)]),
];

/// Columns of bytes that are no hash under the hash key, each with what it holds; and `change`, which a rotation empties, because what it
/// tells other processes is of the level before.
pub const NO_HASHES: [(&str, &str, &str); 5] = [
    (
        "psu",
        "pseudonym",
        "the customer under the bank's own key (CTL-3)",
    ),
    (
        "event",
        "customer",
        "the customer under the bank's own key (CTL-3)",
    ),
    ("attempt", "id", "random"),
    ("heartbeat", "id", "random"),
    ("change", "key", "emptied"),
];

const fn table(
    name: &'static str,
    key: &'static str,
    columns: &'static [(&'static str, Column)],
) -> Table {
    Table { name, columns, key }
}

/// Whether a column of a state is known to this file: a rotation rewrites it, or it is no hash.
pub fn is_known(table: &str, column: &str) -> bool {
    let mut moved = TABLES
        .iter()
        .flat_map(|of| of.columns.iter().map(move |(name, _)| (of.name, *name)));
    let mut others = NO_HASHES.iter().map(|(table, column, _)| (*table, *column));
    moved.any(|known| known == (table, column)) || others.any(|known| known == (table, column))
}

/// The level of a state, and the number of keys in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The level of the state: the number of keys that its hashes have gone through.
    pub state: usize,
    /// The number of keys in the file, at least the level.
    pub keys: usize,
}

/// A rotation that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The level before.
    pub from: usize,
    /// The level now.
    pub to: usize,
    /// The number of rows that were rewritten, by table.
    pub rows: Vec<(&'static str, u64)>,
    /// Whether nothing of the level before is left in SQLite's log. PostgreSQL keeps its log, and the answer is true.
    pub log_is_empty: bool,
    /// Whether PostgreSQL warned at the commit: the standby may lack the rotation.
    pub may_lack_standby: bool,
}

/// Adds a key for the next level to the file, durably, unless the file has one.
///
/// # Errors
/// The file has as many keys as it can, or cannot be replaced: it is as before.
pub fn prepare(settings: &StateSettings, levels: Levels) -> Result<(), OpenFault> {
    match has_next(settings, levels)? {
        true => Ok(()),
        false => hash_key::add(&settings.hash_key, levels.keys),
    }
}

/// Whether the file has a key for the next level already.
///
/// # Errors
/// It has none, and as many keys as it can.
pub fn has_next(settings: &StateSettings, levels: Levels) -> Result<bool, OpenFault> {
    let has_next = levels.keys > levels.state;
    if !has_next && levels.keys >= MOST_KEYS {
        return Err(OpenFault::KeysFull(settings.hash_key.clone()));
    }
    Ok(has_next)
}

/// The step of a state to its next level.
pub(super) fn next_level(keys: &Keys, settings: &StateSettings) -> Result<NextLevel, OpenFault> {
    let next = keys.next_level();
    next.ok_or_else(|| OpenFault::NoNextKey(settings.hash_key.clone()))
}

/// The bytes of the next level in place of those of a column. `None` if no version wrote such bytes.
fn moved(next: &NextLevel, column: Column, bytes: &[u8]) -> Option<Vec<u8>> {
    let one = |bytes: &[u8; 16]| *next.of(Hash::<()>::from_bytes(*bytes)).as_bytes();
    let (hashes, rest) = bytes.as_chunks::<16>();
    let fits = match column {
        Column::Hash | Column::Block => hashes.len() == 1,
        Column::HashOrEmpty => hashes.len() <= 1,
        Column::Hashes => true,
    };
    (fits && rest.is_empty()).then(|| hashes.iter().flat_map(one).collect())
}

/// A row of an engine, by the names of its columns.
pub(super) trait MovedRow {
    /// The bytes of a column; `None` for NULL.
    fn bytes(&self, column: &str) -> Option<Vec<u8>>;
    /// The text of a column; `None` for NULL.
    fn text(&self, column: &str) -> Option<String>;
    /// Replaces the bytes of a column.
    fn set(&mut self, column: &str, bytes: Vec<u8>);
}

impl Table {
    /// Moves the hashes of a row to the next level.
    ///
    /// # Errors
    /// A column holds what no version wrote.
    pub(super) fn advance(
        &self,
        next: &NextLevel,
        row: &mut impl MovedRow,
    ) -> Result<(), OpenFault> {
        let odd = || OpenFault::OddRow(self.name);
        for (name, column) in self.columns {
            if let Some(bytes) = row.bytes(name) {
                row.set(name, moved(next, *column, &bytes).ok_or_else(odd)?);
            }
        }
        for (name, _) in self
            .columns
            .iter()
            .filter(|(_, column)| *column == Column::Block)
        {
            let key = block_key(next, row).ok_or_else(odd)?;
            row.set(name, key);
        }
        Ok(())
    }
}

/// The key of a block of the next level, whose PSU has moved already.
fn block_key(next: &NextLevel, row: &impl MovedRow) -> Option<Vec<u8>> {
    let tpp = ForbiddenTpp::stored(&row.text("tpp")?)?;
    let psu = match row.bytes("psu") {
        None => None,
        Some(bytes) => Some(PsuHash::from_bytes(bytes.try_into().ok()?)),
    };
    let scope = BlockScope::stored(&row.text("scope")?, psu)?;
    Some(next.keys.block(&tpp, scope).as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Cells(BTreeMap<&'static str, Vec<u8>>);

    impl MovedRow for Cells {
        fn bytes(&self, column: &str) -> Option<Vec<u8>> {
            self.0.get(column).cloned()
        }

        fn text(&self, column: &str) -> Option<String> {
            String::from_utf8(self.bytes(column)?).ok()
        }

        fn set(&mut self, column: &str, bytes: Vec<u8>) {
            *self.0.get_mut(column).unwrap() = bytes;
        }
    }

    fn table_of(name: &str) -> &'static Table {
        TABLES.iter().find(|table| table.name == name).unwrap()
    }

    #[test]
    fn a_row_moves_and_what_no_version_wrote_is_refused() {
        let next = Keys::of_level(&[1; 32], &[], &[[2; 32]])
            .next_level()
            .unwrap();
        let hash = |byte| *next.of(Hash::<()>::from_bytes([byte; 16])).as_bytes();
        let context = |corporate: &[u8], accounts: &[u8]| {
            let mut row = Cells(BTreeMap::from([
                ("psu", vec![1; 16]),
                ("corporate", corporate.to_vec()),
                ("accounts", accounts.to_vec()),
            ]));
            let done = table_of("context").advance(&next, &mut row);
            done.map(|()| row.0)
        };
        let moved = context(&[], &[[2; 16], [3; 16]].concat()).unwrap();
        assert_eq!(moved["psu"], hash(1));
        assert!(moved["corporate"].is_empty());
        assert_eq!(moved["accounts"], [hash(2), hash(3)].concat());
        assert_eq!(context(&[4; 16], &[]).unwrap()["corporate"], hash(4));
        for (corporate, accounts) in [(&[4; 15][..], &[][..]), (&[4; 32], &[]), (&[], &[1; 17])] {
            let fault = context(corporate, accounts).unwrap_err().to_string();
            assert!(fault.contains("table context has a row"), "{fault}");
        }
        let mut none = Cells::default();
        table_of("psu").advance(&next, &mut none).unwrap();
    }

    #[test]
    fn the_key_of_a_block_is_computed_from_its_row() {
        let keys = Keys::of_level(&[1; 32], &[], &[[2; 32]]);
        let next = keys.next_level().unwrap();
        let tpp = ForbiddenTpp::stored("PSDNO-FSA-1").unwrap();
        let psu = PsuHash::from_bytes([5; 16]);
        for scope in [BlockScope::All, BlockScope::Payments, BlockScope::Psu(psu)] {
            let mut row = Cells(BTreeMap::from([
                ("key", keys.block(&tpp, scope).as_bytes().to_vec()),
                ("tpp", tpp.as_str().as_bytes().to_vec()),
                ("scope", scope.name().as_bytes().to_vec()),
            ]));
            if let Some(psu) = scope.psu() {
                row.0.insert("psu", psu.as_bytes().to_vec());
            }
            table_of("block").advance(&next, &mut row).unwrap();
            let after = match scope {
                BlockScope::Psu(psu) => BlockScope::Psu(next.of(psu)),
                other => other,
            };
            assert_eq!(row.0["key"], next.keys.block(&tpp, after).as_bytes());
        }
        let mut odd = Cells(BTreeMap::from([("key", vec![0; 16])]));
        assert!(table_of("block").advance(&next, &mut odd).is_err());
    }
}
