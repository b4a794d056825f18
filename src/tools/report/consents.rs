//! The live consents of each TPP, by the state of a gateway.
//!
//! A consent is live while the PSU's last SCA is recent enough (SCA-7, SCA-18). The state holds only what is, so the figures are those of
//! one moment, the run. What a former identity of a TPP was given counts for the TPP that has it now (CTL-4). Invariant: the state is
//! only read. Deliberately not here: blocks and lost registrations, which end no consent.

use super::fault::ReportFault;
use crate::{
    clock::Timestamp,
    config::Settings,
    interface::TppId,
    state::{
        EngineSettings, Move, Moves, OpenFault, SCA_LASTS, postgres::maintain::Maintenance,
        sqlite::file,
    },
    tools::state::StateFault,
};
use std::{collections::BTreeMap, path::Path};

/// The moves; a time is not needed.
const MOVES: &str = "SELECT tpp, now FROM moved";

/// The live consents of a moment.
#[derive(Debug)]
pub(super) struct Consents {
    /// The moment.
    pub(super) at: Timestamp,
    /// The number of each TPP that has any.
    pub(super) by_tpp: BTreeMap<String, u64>,
    /// The former identities of TPPs.
    pub(super) moves: Moves,
}

/// A row of the state: a TPP by the name under which it was written, and its consents.
type Counted = (String, i64);

/// Reads the state of a configuration.
pub(super) fn read(config: &Path, now: Timestamp) -> Result<Consents, ReportFault> {
    let settings = Settings::load(config).map_err(ReportFault::Config)?;
    let state = settings.fixed.state;
    // An unknown time is 0 in a file, and missing in a database.
    let since = now.unix().saturating_sub(SCA_LASTS).max(1);
    let (moves, counted) = match &state.engine {
        EngineSettings::Sqlite => in_file(&state.file, since)?,
        EngineSettings::Postgres(postgres) => {
            let database = Maintenance::open_to_read(&state, postgres).map_err(StateFault::from)?;
            in_database(&database, since)?
        }
    };
    let moves: Option<Vec<_>> = moves.into_iter().map(|names| moved(&names)).collect();
    let unreadable = || {
        let text = "a row of the table moved is none that this version writes: the consents cannot be counted";
        StateFault::from(OpenFault::Damaged(state.file.clone(), text.to_owned()))
    };
    let moves = Moves::new(moves.ok_or_else(unreadable)?.iter());
    let mut by_tpp = BTreeMap::new();
    for (tpp, count) in counted {
        let own = by_tpp.entry(owner(&moves, &tpp)).or_insert(0_u64);
        *own = own.saturating_add(u64::try_from(count).unwrap_or_default());
    }
    Ok(Consents {
        at: now,
        by_tpp,
        moves,
    })
}

/// The TPP that has everything of this identity now.
pub(super) fn owner(moves: &Moves, tpp: &str) -> String {
    let owner = TppId::parse(tpp).map(|tpp| moves.owner_of(&tpp).as_str().to_owned());
    owner.unwrap_or_else(|| tpp.to_owned())
}

fn moved([from, to]: &[String; 2]) -> Option<Move> {
    Some(Move {
        from: TppId::parse(from)?,
        to: TppId::parse(to)?,
        since: Timestamp::from_unix(0),
    })
}

/// The query, with what names a TPP, and the join that it needs.
fn query(name: &str, join: &str, since: u64) -> String {
    format!(
        "SELECT {name}, count(*) FROM context JOIN psu USING (psu) {join}
        WHERE consent IS NOT NULL AND psu.last_sca >= {since} GROUP BY {name}"
    )
}

fn in_file(path: &Path, since: u64) -> Result<(Vec<[String; 2]>, Vec<Counted>), StateFault> {
    file::must_be_ours(path)?;
    let sql = |error| StateFault::Sql(path.to_owned(), error);
    let connection = file::connect_reader(path).map_err(sql)?;
    if !file::is_current(&connection, path)? {
        return Err(crate::state::OpenFault::Earlier(path.to_owned()).into());
    }
    // Both by one snapshot.
    let reading = connection.unchecked_transaction().map_err(sql)?;
    let moves = || -> rusqlite::Result<Vec<_>> {
        let mut moves = reading.prepare(MOVES)?;
        let rows = moves.query_map([], |row| Ok([row.get(0)?, row.get(1)?]))?;
        rows.collect()
    };
    let counted = || -> rusqlite::Result<Vec<_>> {
        let join = "JOIN tpp ON tpp.id = psu.tpp";
        let mut counted = reading.prepare(&query("tpp.name", join, since))?;
        let rows = counted.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    Ok((moves().map_err(sql)?, counted().map_err(sql)?))
}

fn in_database(
    database: &Maintenance,
    since: u64,
) -> Result<(Vec<[String; 2]>, Vec<Counted>), StateFault> {
    let fault =
        |error: tokio_postgres::Error| StateFault::from(OpenFault::Postgres(error.to_string()));
    database.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
    let rows = database.query(MOVES, &[])?;
    let moves = rows
        .iter()
        .map(|row| Ok([row.try_get(0)?, row.try_get(1)?]));
    let moves: Result<_, _> = moves.collect();
    let rows = database.query(&query("psu.tpp", "", since), &[])?;
    let counted = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    let counted: Result<_, _> = counted.collect();
    database.run("COMMIT")?;
    Ok((moves.map_err(fault)?, counted.map_err(fault)?))
}
