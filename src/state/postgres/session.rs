//! One connection to one server, before the tables are checked.

use super::{fence::PrimaryIdentity, standby, tls::Tls};
use crate::OpenFault;
use portvakt_base::causes;
use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket, error::SqlState};
use uuid::Uuid;

/// The session's settings. A frozen gateway must not hold locks; no time limit of the database may end the wait for the standby.
const SESSION: &str = "SET lock_timeout = '3s'; SET idle_in_transaction_session_timeout = '3s'; SET statement_timeout = 0;
    SET idle_session_timeout = 0; SET client_min_messages = warning; SET default_transaction_isolation = 'read committed'";

/// The constraint by which the database refuses what a session of another level of the hash key writes.
pub(super) const OF_LEVEL: &str = "hash_key_check";

/// A setting that only this session has.
const NAME: &str = "SELECT current_setting('portvakt.session', true)";

const POOLED: &str = "settings of the session do not last: the URL leads to a pool that gives each transaction another connection, such as PgBouncer with pool_mode = transaction; name the database itself, or set pool_mode = session";

/// The identity of the server. The name of the current log file begins with the timeline, also right after a promotion.
const ORIGIN: &str = "SELECT system_identifier::text,
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
    current_setting('transaction_read_only') = 'on', current_setting('synchronous_commit'), pg_conf_load_time()::text
    FROM pg_control_system()";

/// The settings that decide whether commits wait for a standby.
const STANDBYS: &str =
    "SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names')";

/// A connection that is not yet checked against schema and key.
pub(super) struct Session {
    pub(super) client: Client,
    /// Its value of `portvakt.session`.
    name: String,
    pub(super) origin: PrimaryIdentity,
    /// Why its commits do not wait for a standby; `None` if they do where there is one.
    pub(super) weak_commits: Option<String>,
    /// The time at which the server's process read its settings.
    pub(super) settings_of: String,
    pub(super) warned: Arc<AtomicBool>,
    pub(super) notified: Arc<Notify>,
    pub(super) driver: Driver,
}

impl Session {
    /// Refuses a pool that gives each transaction another connection of the server (PgBouncer, `pool_mode = transaction`): there the
    /// time-outs above end with their transaction, and no notification arrives. `other` is a second session of the same pool: where the
    /// two share a server's connection, this one finds the other's name, or none.
    ///
    /// # Errors
    /// [`OpenFault::Postgres`]
    pub(super) async fn require_own_server(&self, other: &Self) -> Result<(), OpenFault> {
        for session in [self, other, self] {
            let row = session.client.query_one(NAME, &[]).await;
            let found = row.and_then(|row| row.try_get::<_, Option<String>>(0));
            let found = found.map_err(|error| OpenFault::Postgres(text(&error)))?;
            if found.as_deref() != Some(session.name.as_str()) {
                return Err(OpenFault::Postgres(POOLED.to_owned()));
            }
        }
        Ok(())
    }

    /// Refuses a server whose commits do not wait for a standby.
    ///
    /// # Errors
    /// [`OpenFault::Postgres`], with the setting that is too weak.
    pub(super) async fn require_standby(&self) -> Result<(), OpenFault> {
        let fault = |error: tokio_postgres::Error| OpenFault::Postgres(text(&error));
        let row = self.client.query_one(STANDBYS, &[]).await;
        let row = row.map_err(fault)?;
        let commit = row.try_get(0).map_err(fault)?;
        let standbys = row.try_get(1).map_err(fault)?;
        match standby::unsafe_commits(commit, standbys) {
            None => Ok(()),
            Some(reason) => Err(OpenFault::Postgres(standby::refusal(&reason))),
        }
    }
}

/// The task that reads and writes a connection; it ends with its handle.
pub(super) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connects to a server.
///
/// # Errors
/// The reason for the operator.
pub(super) async fn connect(
    config: &Config,
    tls: Tls,
    warned: &Arc<AtomicBool>,
    notified: &Arc<Notify>,
) -> Result<(Client, Driver), String> {
    let (client, connection) = config.connect(tls).await.map_err(|error| text(&error))?;
    let driver = drive(connection, Arc::clone(warned), Arc::clone(notified));
    Ok((client, Driver(tokio::spawn(driver))))
}

/// Connects to a server that accepts writes.
///
/// # Errors
/// The reason for the operator.
pub(super) async fn open(config: &Config, tls: Tls) -> Result<Session, String> {
    let fault = |error: tokio_postgres::Error| text(&error);
    let (warned, notified) = (Arc::default(), Arc::default());
    let (client, driver) = connect(config, tls, &warned, &notified).await?;
    let name = Uuid::new_v4().simple().to_string();
    let settings = format!("{SESSION}; SET portvakt.session = '{name}'");
    // A standby refuses the second: it writes no log.
    let asking = async {
        tokio::try_join!(
            biased;
            client.batch_execute(&settings),
            client.query_one(ORIGIN, &[]),
        )
    };
    let ((), row) = asking.await.map_err(fault)?;
    if row.try_get(2).map_err(fault)? {
        return Err("the database is read-only".to_owned());
    }
    let origin = PrimaryIdentity {
        system: row.try_get(0).map_err(fault)?,
        timeline: row.try_get(1).map_err(fault)?,
    };
    Ok(Session {
        client,
        name,
        origin,
        weak_commits: standby::weak_commits(row.try_get(3).map_err(fault)?),
        settings_of: row.try_get(4).map_err(fault)?,
        warned,
        notified,
        driver,
    })
}

/// Reads and writes a connection. A warning is recorded before the response to the statement that caused it is delivered.
async fn drive<S>(
    mut connection: Connection<Socket, S>,
    warned: Arc<AtomicBool>,
    notified: Arc<Notify>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                // 01000: the wait for the standby was cancelled. 57P01: the server is shut down during it.
                if [SqlState::WARNING, SqlState::ADMIN_SHUTDOWN].contains(notice.code()) {
                    warned.store(true, Ordering::Release);
                }
                tracing::warn!(warning = notice.message(), "PostgreSQL warns");
            }
            Some(Ok(AsyncMessage::Notification(_))) => notified.notify_one(),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = text(&error), "a connection to PostgreSQL ended");
                return;
            }
            None => return,
        }
    }
}

/// An error for the operator, with its causes. Rows and parameters are never part of it.
pub(super) fn text(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        if error.constraint() == Some(OF_LEVEL) {
            return "the hash key of the state was rotated: restart the gateway".to_owned();
        }
        return format!("{} ({})", error.message(), error.code().code());
    }
    causes::describe(error)
}
