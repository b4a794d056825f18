//! The database for the tools: an operator's acceptance of the clock, counts, and a copy of a state file.
//!
//! Each function connects by itself, and needs no runtime around it. Deliberately not here: reading the state file.

use super::{
    connect::{Connector, SCHEMA, SCHEMA_ROW, Session, text},
    migrate,
    settings::PostgresSettings,
};
use crate::{
    AcceptedClock, OpenFault, StateSettings,
    settings::{CUSTOMER_KEY_ROW, EarlierSchema},
    stored::seconds,
};
use portvakt_base::clock::Timestamp;
use tokio::runtime::Runtime;
use tokio_postgres::{Error, types::ToSql};

/// Moves times that are ahead of the accepted clock back to it: no session, consent or call ends later than if it had been made now.
/// Request ids are not changed, because their Dates will be valid again. What is not there stays so: `least` alone would take the accepted
/// time for a missing one, and give a consent that nobody gave.
const AHEAD: [&str; 7] = [
    "UPDATE psu SET last_sca = CASE WHEN last_sca > $1 THEN $1 ELSE last_sca END,
        completed = CASE WHEN completed > $1 THEN $1 ELSE completed END
     WHERE last_sca > $1 OR completed > $1",
    "UPDATE context SET last_sca = CASE WHEN last_sca > $1 THEN $1 ELSE last_sca END,
        consent = CASE WHEN consent > $1 THEN $1 ELSE consent END,
        used = CASE WHEN used > $1 THEN $1 - $1 % 86400 ELSE used END
     WHERE last_sca > $1 OR consent > $1 OR used > $1",
    "UPDATE quota SET a = $1 WHERE a > $1",
    "UPDATE quota SET b = $1 WHERE b > $1",
    "UPDATE quota SET c = $1 WHERE c > $1",
    "UPDATE quota SET d = $1 WHERE d > $1",
    "UPDATE page SET call = $1 WHERE call > $1",
];

/// A connection of a tool.
pub struct Maintenance {
    pub(super) runtime: Runtime,
    pub(super) session: Session,
}

impl Maintenance {
    /// Connects to the database of a configuration; the tables are made if there are none, with the level of the hash key whose check value
    /// is `level`.
    ///
    /// # Errors
    /// The database cannot be used, or belongs to another key.
    pub fn open(
        settings: &StateSettings,
        postgres: &PostgresSettings,
        level: &str,
    ) -> Result<Self, OpenFault> {
        Self::connect(settings, postgres, Some(level))
    }

    /// Connects to a database that has tables. Makes neither tables nor a key.
    ///
    /// # Errors
    /// The database has no tables, cannot be used, or belongs to another key.
    pub fn open_existing(
        settings: &StateSettings,
        postgres: &PostgresSettings,
    ) -> Result<Self, OpenFault> {
        Self::connect(settings, postgres, None)
    }

    /// Connects to a database that has the tables of this version, to read it: the server refuses every change of this connection.
    ///
    /// # Errors
    /// The database has no tables or those of another version, cannot be used, or belongs to another key.
    pub fn open_to_read(
        settings: &StateSettings,
        postgres: &PostgresSettings,
    ) -> Result<Self, OpenFault> {
        let runtime = runtime()?;
        let session = runtime.block_on(async {
            let connector = Connector::new(postgres.clone());
            let mut session = connector.connect().await.map_err(OpenFault::Postgres)?;
            migrate::must_exist(&mut session).await?;
            migrate::check(&mut session, &settings.hash_key).await?;
            Ok::<_, OpenFault>(session)
        })?;
        let database = Self { runtime, session };
        database.run("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")?;
        let schema = format!("SELECT value FROM meta WHERE name = '{SCHEMA_ROW}'");
        match database.column(&schema)?.first() {
            Some(found) if found == SCHEMA => Ok(database),
            _ => Err(OpenFault::PostgresEarlier),
        }
    }

    fn connect(
        settings: &StateSettings,
        postgres: &PostgresSettings,
        new: Option<&str>,
    ) -> Result<Self, OpenFault> {
        let runtime = runtime()?;
        let session = runtime.block_on(async {
            let connector = Connector::new(postgres.clone());
            let mut session = connector.connect().await.map_err(OpenFault::Postgres)?;
            if new.is_none() {
                migrate::must_exist(&mut session).await?;
            }
            migrate::prepare(
                &mut session,
                &settings.hash_key,
                new,
                EarlierSchema::Refused,
            )
            .await?;
            Ok::<_, OpenFault>(session)
        })?;
        Ok(Self { runtime, session })
    }

    /// Records that an operator accepts the clock, which shows `now`.
    ///
    /// # Errors
    /// It could not be written: nothing changed.
    pub fn accept_clock(&mut self, now: Timestamp) -> Result<AcceptedClock, OpenFault> {
        let Self { runtime, session } = self;
        runtime
            .block_on(accept(session, now))
            .map_err(|error| OpenFault::Postgres(text(&error)))
    }

    /// Records the key for customers of the settings in place of the one before (CTL-3). Returns whether the settings name one.
    ///
    /// # Errors
    /// The key cannot be used, or it could not be written: nothing changed.
    pub fn accept_customer_key(&self, settings: &StateSettings) -> Result<bool, OpenFault> {
        let Some(own) = settings.events.key_check()? else {
            return Ok(false);
        };
        // A transaction that has compared the key before ends first; one that comes later compares the new one.
        self.run("BEGIN; LOCK TABLE psu IN EXCLUSIVE MODE")?;
        let replace = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.query(replace, &[&CUSTOMER_KEY_ROW, &own])?;
        self.run("COMMIT")?;
        Ok(true)
    }

    /// Keeps gateways out until the transaction ends.
    ///
    /// # Errors
    /// A gateway uses the state.
    pub fn keep_gateways_out(&self) -> Result<(), OpenFault> {
        let number = migrate::LOCK;
        self.run(&format!(
            "SELECT pg_advisory_xact_lock({number}, 'meta'::regclass::oid::integer)"
        ))
    }

    /// The text of the first column of each row.
    ///
    /// # Errors
    /// The query failed.
    pub fn column(&self, query: &str) -> Result<Vec<String>, OpenFault> {
        let rows = self.runtime.block_on(self.session.client.query(query, &[]));
        let column = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        column.map_err(|error| OpenFault::Postgres(text(&error)))
    }

    /// Runs a statement without parameters, or several.
    ///
    /// # Errors
    /// A statement failed.
    pub fn run(&self, statements: &str) -> Result<(), OpenFault> {
        self.runtime
            .block_on(self.session.client.batch_execute(statements))
            .map_err(|error| OpenFault::Postgres(text(&error)))
    }

    /// Runs a statement with parameters; returns its rows.
    ///
    /// # Errors
    /// The statement failed.
    pub fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, OpenFault> {
        self.runtime
            .block_on(self.session.client.query(statement, parameters))
            .map_err(|error| OpenFault::Postgres(text(&error)))
    }
}

fn runtime() -> Result<Runtime, OpenFault> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(OpenFault::Thread)
}

async fn accept(session: &mut Session, now: Timestamp) -> Result<AcceptedClock, Error> {
    let transaction = session.client.transaction().await?;
    let row = transaction
        .query_one("SELECT latest, stepped_back FROM clock FOR UPDATE", &[])
        .await?;
    let latest = u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0);
    let stepped_back: bool = row.try_get(1)?;
    if !stepped_back && latest <= now.unix() {
        return Ok(AcceptedClock::Nothing);
    }
    let at = seconds(now);
    let mut moved = 0;
    for ahead in AHEAD {
        moved += transaction.execute(ahead, &[&at]).await?;
    }
    transaction
        .execute(
            "UPDATE clock SET latest = $1, stepped_back = false, accepted = accepted + 1",
            &[&at],
        )
        .await?;
    transaction.commit().await?;
    Ok(AcceptedClock::Now {
        latest: Timestamp::from_unix(latest),
        moved,
    })
}
