//! Reading and writing the rows of a batch in SQL.
//!
//! Each table is one statement with arrays, and all statements of a phase are sent at once. Deliberately not here: any decision.

pub(super) use super::parted::{RowFault, hash, id};

use super::{
    blocks,
    commands::Command,
    connect::{Connector, Link},
    moves,
    parted::{Parted, column, keys},
    statements::Statements,
};
use crate::{
    Consent, Context, ContextOrigin, CustomerPseudonym, Psu, PsuHash, Session,
    hash::HashKind,
    moves::WrittenAs,
    rows::{BoundPsu, ListRow, Loaded, RowKey, Rows, TokenRow},
    rules::Calls,
    stored::{accounts, accounts_bytes, corporate, corporate_bytes, seconds, timestamp},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;
use std::{collections::HashMap, sync::Arc};
use tokio_postgres::{Error, Row, Statement};
use uuid::Uuid;

/// The keys of a batch by table, sorted, each once.
#[derive(Default)]
pub(super) struct BatchKeys {
    quotas: Vec<Uuid>,
    lists: Vec<Uuid>,
    requests: Vec<Uuid>,
    tokens: Vec<Uuid>,
    psus: Vec<Uuid>,
    blocks: Vec<Uuid>,
    moves: Vec<Uuid>,
    all_moves: bool,
}

impl BatchKeys {
    pub(super) fn new(keys: &[RowKey]) -> Self {
        let mut sorted = Self::default();
        for key in keys {
            match *key {
                RowKey::Quota(key) => sorted.quotas.push(id(key)),
                RowKey::List(key) => sorted.lists.push(id(key)),
                RowKey::Request(key) => sorted.requests.push(id(key)),
                RowKey::Token(key) => sorted.tokens.push(id(key)),
                RowKey::Psu(key) => sorted.psus.push(id(key)),
                RowKey::Block(key) => sorted.blocks.push(id(key)),
                RowKey::Move(key) => sorted.moves.push(id(key)),
                RowKey::AllMoves => sorted.all_moves = true,
            }
        }
        for keys in [
            &mut sorted.quotas,
            &mut sorted.lists,
            &mut sorted.requests,
            &mut sorted.tokens,
            &mut sorted.psus,
            &mut sorted.blocks,
            &mut sorted.moves,
        ] {
            keys.sort_unstable();
            keys.dedup();
        }
        sorted
    }
}

/// Begins a transaction and locks and loads its rows, in one round trip. The rows are refused if the database has another level of the hash
/// key: some of them would not be found.
pub(super) async fn load(
    link: &Link,
    keys: &BatchKeys,
    connector: &Connector,
) -> Result<Rows, RowFault> {
    let statements = &link.statements;
    let (_, quotas, lists, requests, tokens, psus, contexts, blocked, moved, all, checks) = tokio::try_join!(
        biased;
        link.client.batch_execute("BEGIN"),
        select(link, &statements.load_quotas, &keys.quotas),
        select(link, &statements.load_lists, &keys.lists),
        select(link, &statements.load_requests, &keys.requests),
        select(link, &statements.load_tokens, &keys.tokens),
        select(link, &statements.load_psus, &keys.psus),
        select(link, &statements.load_contexts, &keys.psus),
        select(link, &statements.load_blocks, &keys.blocks),
        select(link, &statements.load_moves, &keys.moves),
        all_moves(link, keys.all_moves),
        link.client.query_one(&statements.key_checks, &[]),
    )?;
    let level = connector.judge_level(checks.try_get(0)?);
    level.map_err(RowFault::Level)?;
    let mut rows = Rows {
        customer_key: checks.try_get(1)?,
        ..Rows::default()
    };
    fill(&mut rows.quotas, &keys.quotas, &quotas, calls)?;
    fill(&mut rows.lists, &keys.lists, &lists, list)?;
    fill(&mut rows.requests, &keys.requests, &requests, |row| {
        Ok(timestamp(row.try_get(1)?))
    })?;
    fill(&mut rows.tokens, &keys.tokens, &tokens, token)?;
    let mut by_psu: HashMap<Uuid, Vec<Context>> = HashMap::new();
    for row in &contexts {
        let of = by_psu.entry(row.try_get(0)?).or_default();
        of.push(context(row, 1)?);
    }
    fill(&mut rows.psus, &keys.psus, &psus, |row| {
        bound(row, by_psu.remove(&row.try_get(0)?).unwrap_or_default())
    })?;
    fill(&mut rows.blocks, &keys.blocks, &blocked, blocks::read)?;
    fill(&mut rows.moves, &keys.moves, &moved, moves::read)?;
    // Read behind the lock, so these are newer than those above.
    for (key, moved) in moves::all(&all)? {
        rows.moves.load(key, Some(moved));
    }
    rows.has_all_moves = keys.all_moves;
    Ok(rows)
}

async fn select(link: &Link, statement: &Statement, keys: &[Uuid]) -> Result<Vec<Row>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    link.client.query(statement, &[&keys]).await
}

/// Every move, if they are sought, while no other transaction can add or remove one.
async fn all_moves(link: &Link, are_sought: bool) -> Result<Vec<Row>, Error> {
    if !are_sought {
        return Ok(Vec::new());
    }
    let (_, all) = tokio::try_join!(
        biased;
        link.client.execute(&link.statements.lock_moves, &[]),
        link.client.query(&link.statements.moves, &[]),
    )?;
    Ok(all)
}

/// Adds the rows that were found, and the absence of the others.
fn fill<K: HashKind, R: Clone + PartialEq>(
    loaded: &mut Loaded<K, R>,
    keys: &[Uuid],
    found: &[Row],
    mut read: impl FnMut(&Row) -> Result<R, RowFault>,
) -> Result<(), RowFault> {
    for key in keys {
        loaded.load(hash(*key), None);
    }
    for row in found {
        loaded.load(hash(row.try_get(0)?), Some(read(row)?));
    }
    Ok(())
}

/// The PSUs of a joined result: one row for each context, or one without, those of a PSU side by side.
pub(super) fn joined_psus(rows: &[Row]) -> Result<Vec<(PsuHash, BoundPsu)>, RowFault> {
    let mut psus: Vec<(Uuid, &Row, Vec<Context>)> = Vec::new();
    for row in rows {
        let key: Uuid = row.try_get(0)?;
        if psus.last().is_none_or(|(last, ..)| *last != key) {
            psus.push((key, row, Vec::new()));
        }
        if let Some((.., contexts)) = psus.last_mut()
            && row.try_get::<_, Option<Vec<u8>>>(9)?.is_some()
        {
            contexts.push(context(row, 9)?);
        }
    }
    let psus = psus.into_iter();
    psus.map(|(key, row, contexts)| Ok((hash(key), bound(row, contexts)?)))
        .collect()
}

fn calls(row: &Row) -> Result<Calls, RowFault> {
    let mut cells = [None; 4];
    for (cell, column) in cells.iter_mut().zip(1..) {
        let at: Option<i64> = row.try_get(column)?;
        *cell = at.map(|at| timestamp(at).unix());
    }
    Ok(Calls(cells))
}

fn list(row: &Row) -> Result<ListRow, RowFault> {
    Ok(ListRow {
        call: timestamp(row.try_get(1)?),
        last: row.try_get(2)?,
    })
}

fn token(row: &Row) -> Result<TokenRow, RowFault> {
    Ok(TokenRow {
        said: hash(row.try_get(1)?),
        expires: timestamp(row.try_get(2)?),
    })
}

fn bound(row: &Row, contexts: Vec<Context>) -> Result<BoundPsu, RowFault> {
    let tpp: &str = row.try_get(1)?;
    let session: Option<Uuid> = row.try_get(4)?;
    let completed: Option<i64> = row.try_get(5)?;
    let customer: Option<Uuid> = row.try_get(6)?;
    let pseudonym: Option<&[u8]> = row.try_get(7)?;
    let pseudonym = pseudonym.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    Ok(BoundPsu {
        written: WrittenAs::new(TppId::parse(tpp).ok_or(RowFault::Tpp)?),
        psu: Arc::new(Psu {
            learned: row.try_get(2)?,
            last_sca: time(row, 3)?,
            session: session.zip(completed).map(|(session, completed)| Session {
                id: hash(session),
                completed: timestamp(completed),
            }),
            contexts,
            customer: customer.map(hash),
            pseudonym: pseudonym.map(CustomerPseudonym::from_bytes),
            consents_ended: time(row, 8)?,
        }),
    })
}

/// A context, whose columns begin at this one.
fn context(row: &Row, first: usize) -> Result<Context, RowFault> {
    let agreement: &[u8] = row.try_get(first)?;
    let given = time(row, first + 2)?;
    let named: Option<&[u8]> = row.try_get(first + 3)?;
    Ok(Context {
        corporate: corporate(agreement),
        origin: ContextOrigin::stored(row.try_get(first + 4)?),
        last_sca: time(row, first + 1)?,
        consent: given.map(|given| Consent {
            given,
            accounts: accounts(named),
        }),
        used: time(row, first + 5)?,
    })
}

fn time(row: &Row, column: usize) -> Result<Option<Timestamp>, Error> {
    let at: Option<i64> = row.try_get(column)?;
    Ok(at.map(timestamp))
}

/// The commands that write the rows that differ, in the order in which tables are locked.
pub(super) fn write<'s>(statements: &'s Statements, rows: &Rows) -> Vec<Command<'s>> {
    let s = statements;
    let mut commands = Vec::new();
    Parted::new(&rows.quotas).write(
        &mut commands,
        [&s.add_quotas, &s.set_quotas, &s.remove_quotas],
        |rows| {
            let mut columns = vec![keys(rows)];
            columns.extend((0..4).map(|cell| {
                column(rows, |calls: &Calls| {
                    let at = calls.0.get(cell).copied().flatten();
                    at.map(|at| seconds(Timestamp::from_unix(at)))
                })
            }));
            columns
        },
    );
    Parted::new(&rows.lists).write(
        &mut commands,
        [&s.add_lists, &s.set_lists, &s.remove_lists],
        |rows| {
            vec![
                keys(rows),
                column(rows, |list: &ListRow| seconds(list.call)),
                column(rows, |list: &ListRow| list.last),
            ]
        },
    );
    Parted::new(&rows.requests).write(
        &mut commands,
        [&s.add_requests, &s.set_requests, &s.remove_requests],
        |rows| vec![keys(rows), column(rows, |until| seconds(*until))],
    );
    Parted::new(&rows.tokens).write(
        &mut commands,
        [&s.add_tokens, &s.set_tokens, &s.remove_tokens],
        |rows| {
            vec![
                keys(rows),
                column(rows, |spent: &TokenRow| id(spent.said)),
                column(rows, |spent: &TokenRow| seconds(spent.expires)),
            ]
        },
    );
    write_psus(statements, rows, &mut commands);
    blocks::write(statements, rows, &mut commands);
    moves::write(statements, rows, &mut commands);
    commands
}

/// PSUs, and all contexts of those that differ.
fn write_psus<'s>(s: &'s Statements, rows: &Rows, commands: &mut Vec<Command<'s>>) {
    let parted = Parted::new(&rows.psus);
    let written = parted.added.iter().chain(&parted.replaced);
    let written = written.map(|(key, _)| *key);
    // Also of those that are added: an operator may have deleted a PSU without its contexts.
    let all: Vec<Uuid> = written.chain(parted.removed.iter().copied()).collect();
    if !all.is_empty() {
        commands.push(Command::new(&s.remove_contexts, [all]));
    }
    let mut contexts: Vec<(Uuid, &Context)> = Vec::new();
    for (key, bound) in parted.added.iter().chain(&parted.replaced) {
        contexts.extend(bound.psu.contexts.iter().map(|context| (*key, context)));
    }
    parted.write(
        commands,
        [&s.add_psus, &s.set_psus, &s.remove_psus],
        |rows| {
            vec![
                keys(rows),
                column(rows, |bound: &BoundPsu| {
                    bound.written.as_stored().as_str().to_owned()
                }),
                column(rows, |bound: &BoundPsu| bound.psu.learned),
                column(rows, |bound: &BoundPsu| bound.psu.last_sca.map(seconds)),
                column(rows, |bound: &BoundPsu| {
                    bound.psu.session.map(|it| id(it.id))
                }),
                column(rows, |bound: &BoundPsu| {
                    bound.psu.session.map(|it| seconds(it.completed))
                }),
                column(rows, |bound: &BoundPsu| bound.psu.customer.map(id)),
                column(rows, |bound: &BoundPsu| {
                    bound.psu.pseudonym.map(|it| it.as_bytes().to_vec())
                }),
                column(rows, |bound: &BoundPsu| {
                    bound.psu.consents_ended.map(seconds)
                }),
            ]
        },
    );
    if !contexts.is_empty() {
        let given = |context: &Context| context.consent.as_ref().map(|it| seconds(it.given));
        let columns = vec![
            keys(&contexts),
            column(&contexts, |context: &Context| {
                corporate_bytes(context.corporate)
            }),
            column(&contexts, |context: &Context| context.last_sca.map(seconds)),
            column(&contexts, given),
            column(&contexts, |context: &Context| {
                let consent = context.consent.as_ref();
                consent.and_then(|consent| accounts_bytes(&consent.accounts))
            }),
            column(&contexts, |context: &Context| context.origin.number()),
            column(&contexts, |context: &Context| context.used.map(seconds)),
        ];
        commands.push(Command::of(&s.add_contexts, columns));
    }
}
