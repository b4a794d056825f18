//! The parts that reading and writing rows in SQL share: ids, columns, and the rows to add, to replace and to remove.

use super::commands::{Command, Parameter};
use crate::{
    Hash,
    hash::HashKind,
    rows::{ChangedRow, Loaded},
};
use tokio_postgres::{Error, Statement};
use uuid::Uuid;

/// A stored row that this program did not write.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowFault {
    #[error(transparent)]
    Sql(#[from] Error),
    #[error("table psu: the TPP of a row is not a TPP's identity")]
    Tpp,
    #[error("table block: a row has no TPP's identity, or no scope")]
    Block,
    #[error("table moved: a row has no TPP's identity")]
    Move,
    #[error("table event or outbox: a row that no version wrote")]
    Event,
    #[error("{0}")]
    Level(String),
}

/// The rows of one table to add, to replace and to remove, sorted by their keys.
pub(super) struct Parted<'a, R> {
    pub(super) added: Vec<(Uuid, &'a R)>,
    pub(super) replaced: Vec<(Uuid, &'a R)>,
    pub(super) removed: Vec<Uuid>,
}

impl<'a, R: Clone + PartialEq> Parted<'a, R> {
    pub(super) fn new<K: HashKind>(rows: &'a Loaded<K, R>) -> Self {
        let mut changed: Vec<ChangedRow<'a, K, R>> = rows.changed().collect();
        changed.sort_unstable_by_key(|changed| changed.key);
        let mut parted = Self {
            added: Vec::new(),
            replaced: Vec::new(),
            removed: Vec::new(),
        };
        for changed in changed {
            let key = id(changed.key);
            match (changed.stored, changed.row) {
                (None, Some(row)) => parted.added.push((key, row)),
                (Some(_), Some(row)) => parted.replaced.push((key, row)),
                (_, None) => parted.removed.push(key),
            }
        }
        parted
    }

    pub(super) fn write<'s>(
        &self,
        commands: &mut Vec<Command<'s>>,
        [add, set, remove]: [&'s Statement; 3],
        columns: impl Fn(&[(Uuid, &'a R)]) -> Vec<Parameter>,
    ) {
        for (statement, rows) in [(add, &self.added), (set, &self.replaced)] {
            if !rows.is_empty() {
                commands.push(Command::of(statement, columns(rows)));
            }
        }
        if !self.removed.is_empty() {
            commands.push(Command::new(remove, [self.removed.clone()]));
        }
    }
}

/// The column of the keys.
pub(super) fn keys<R>(rows: &[(Uuid, &R)]) -> Parameter {
    let keys: Vec<Uuid> = rows.iter().map(|(key, _)| *key).collect();
    Box::new(keys)
}

/// One column of some rows.
pub(super) fn column<'a, R, T>(rows: &[(Uuid, &'a R)], value: impl Fn(&'a R) -> T) -> Parameter
where
    T: tokio_postgres::types::ToSql + Sync + Send + 'static,
{
    let values: Vec<T> = rows.iter().map(|(_, row)| value(row)).collect();
    Box::new(values)
}

/// A hash in the form of the tables.
pub(super) fn id<K>(hash: Hash<K>) -> Uuid {
    Uuid::from_bytes(*hash.as_bytes())
}

/// A stored hash.
pub(super) fn hash<K>(id: Uuid) -> Hash<K> {
    Hash::from_bytes(id.into_bytes())
}
