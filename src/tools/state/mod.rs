//! `portvakt state show | check | drop-unknown | export | vacuum | copy | rotate-hash-key | accept-clock | accept-customer-key`: maintains
//! the state of a gateway while it runs.
//!
//! Invariant: only the requested change is made: a missing state is not created, but for the tables that `copy` fills; the hash key is read
//! only to prove that it belongs to the state, and is never made; only `rotate-hash-key` adds one. Deliberately not here: importing PSUs,
//! and metrics of a running gateway.

// The `copy` command.
mod copy;
// The `rotate-hash-key` command.
mod rotate;
// The `show` command.
mod show;
// The `check` and `drop-unknown` commands.
mod tables;
mod unknown;
// The reasons why a command failed.
mod fault;

pub use fault::StateFault;

use crate::{
    clock::Timestamp,
    config::Settings,
    state::{
        AcceptedClock, EngineSettings, OpenFault, PostgresSettings, StateSettings,
        postgres::maintain::Maintenance,
        sqlite::{clock, copies, file},
    },
};
use rotate::Wanted;
use rusqlite::Connection;
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The maintenance commands.
#[derive(Debug, clap::Subcommand)]
pub enum StateCommand {
    /// Show the schema, the sizes, and the number and age of rows by table; and whether the clock stepped back.
    Show {
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Count the agreements of unknown origin by TPP: an earlier version wrote them, and may have learned them from a TPP's word alone.
    /// Exits with 0 if there is none, with 1 if there are some.
    Check {
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Drop the agreements that `check` counts, with their consents. Their PSUs authenticate anew. Without --yes, only show them. The
    /// gateway may run meanwhile.
    DropUnknown {
        /// Only those of PSUs that were learned, and that the bank has not bound since.
        #[arg(long)]
        learned_only: bool,
        /// Drop them.
        #[arg(long)]
        yes: bool,
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Write a consistent copy, while the gateway runs. The copy is usable only together with the hash key.
    Export {
        /// The copy; it must not exist yet.
        #[arg(value_name = "FILE")]
        copy: PathBuf,
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Return unused space to the disk. A running gateway answers 503 to requests that need a write
    /// meanwhile, some ten seconds for a gigabyte.
    Vacuum {
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Copy the state file into the PostgreSQL database of the configuration, which must be empty, while no gateway
    /// runs. Each table is proved by its number of rows and a hash of them before it is committed.
    Copy {
        /// The gateway's configuration, with state.file and state.postgres.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Rotate the hash key, after a leak or by a schedule: add a key to its file, and rewrite every hash of the state under it. Running
    /// gateways then refuse requests that need the state until they are restarted. Without --yes, only show what would be done. Run it
    /// again if it was interrupted.
    RotateHashKey {
        /// Only add the next key to the file, so that it can be copied to the machines of all gateways first.
        #[arg(long, conflicts_with = "yes")]
        prepare: bool,
        /// Rotate.
        #[arg(long)]
        yes: bool,
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Confirm that the machine's clock is right, after a gateway detected a step back and refuses requests. Set
    /// the clock right first. A running gateway resumes within a second.
    AcceptClock {
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Say that the bank changes the key for customers in events: from now on only gateways with the state.events.customer_key of this
    /// configuration start. Put the new file at every gateway first, and restart each of them afterwards.
    AcceptCustomerKey {
        /// The gateway's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// Runs a command, and writes its result to `out`.
///
/// # Errors
/// The reason of the failure; an incomplete copy is removed.
pub fn run(
    command: &StateCommand,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<ExitCode, StateFault> {
    let (StateCommand::Show { config }
    | StateCommand::Check { config }
    | StateCommand::DropUnknown { config, .. }
    | StateCommand::Export { config, .. }
    | StateCommand::Vacuum { config }
    | StateCommand::Copy { config }
    | StateCommand::RotateHashKey { config, .. }
    | StateCommand::AcceptClock { config }
    | StateCommand::AcceptCustomerKey { config }) = command;
    let state = Settings::load(config)
        .map_err(StateFault::Config)?
        .fixed
        .state;
    match &state.engine {
        EngineSettings::Sqlite => in_file(command, &state, now, out),
        EngineSettings::Postgres(postgres) => in_postgres(command, &state, postgres, now, out),
    }
}

/// The commands on a file.
fn in_file(
    command: &StateCommand,
    state: &StateSettings,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<ExitCode, StateFault> {
    let path = state.file.as_path();
    file::must_be_ours(path)?;
    let good = |said| (said, ExitCode::SUCCESS);
    let (said, code) = match command {
        StateCommand::Copy { .. } => return Err(StateFault::NoPostgres),
        StateCommand::Show { .. } => good(show::show(path)?),
        StateCommand::Check { .. } => unknown::check_file(path)?,
        StateCommand::DropUnknown {
            learned_only, yes, ..
        } => good(unknown::drop_in_file(path, *learned_only, *yes)?),
        StateCommand::Export { copy, .. } => good(export(path, copy)?),
        StateCommand::Vacuum { .. } => good(vacuum(path)?),
        StateCommand::RotateHashKey { prepare, yes, .. } => {
            good(rotate::run(state, Wanted::new(*prepare, *yes))?)
        }
        StateCommand::AcceptClock { .. } => good(accept_clock(path, now)?),
        StateCommand::AcceptCustomerKey { .. } => {
            let connection =
                file::connect(path).map_err(|error| StateFault::Sql(path.to_owned(), error))?;
            good(accepted_key(file::accept_customer_key(
                &connection,
                state,
            )?)?)
        }
    };
    match out.write_all(said.as_bytes()) {
        Ok(()) => Ok(code),
        Err(_) => Ok(ExitCode::FAILURE),
    }
}

/// The commands on a database.
fn in_postgres(
    command: &StateCommand,
    state: &StateSettings,
    postgres: &PostgresSettings,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<ExitCode, StateFault> {
    match command {
        StateCommand::Show { .. } => return Err(StateFault::InPostgres("psql")),
        StateCommand::Export { .. } => return Err(StateFault::InPostgres("pg_dump")),
        StateCommand::Vacuum { .. } => return Err(StateFault::InPostgres("VACUUM")),
        StateCommand::Copy { .. } => {
            file::must_be_ours(&state.file)?;
            copy::copy(state, postgres, out)?;
        }
        StateCommand::Check { .. } => {
            let database = Maintenance::open_existing(state, postgres)?;
            let (said, code) = unknown::check_database(&database)?;
            let written = out.write_all(said.as_bytes());
            return Ok(written.map_or(ExitCode::FAILURE, |()| code));
        }
        StateCommand::DropUnknown {
            learned_only, yes, ..
        } => {
            let database = Maintenance::open_existing(state, postgres)?;
            let said = unknown::drop_in_database(&database, *learned_only, *yes)?;
            // A closed output does not undo it.
            let _ = out.write_all(said.as_bytes());
        }
        StateCommand::RotateHashKey { prepare, yes, .. } => {
            let said = rotate::run(state, Wanted::new(*prepare, *yes))?;
            // A closed output does not undo it.
            let _ = out.write_all(said.as_bytes());
        }
        StateCommand::AcceptClock { .. } => {
            let accepted = Maintenance::open_existing(state, postgres)?.accept_clock(now)?;
            // A closed output does not undo it.
            let _ = out.write_all(accepted_clock(accepted, now).as_bytes());
        }
        StateCommand::AcceptCustomerKey { .. } => {
            let database = Maintenance::open_existing(state, postgres)?;
            let said = accepted_key(database.accept_customer_key(state)?)?;
            let _ = out.write_all(said.as_bytes());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn export(path: &Path, copy: &Path) -> Result<String, StateFault> {
    let connection =
        file::connect(path).map_err(|error| StateFault::Sql(path.to_owned(), error))?;
    copies::write(&connection, copy)?;
    let written = std::fs::metadata(copy);
    let written = written.map_err(|error| StateFault::File(copy.to_owned(), error))?;
    Ok(format!("{}: {} bytes\n", copy.display(), written.len()))
}

fn vacuum(path: &Path) -> Result<String, StateFault> {
    let sql = |error| StateFault::Sql(path.to_owned(), error);
    let size = || std::fs::metadata(path).map(|metadata| metadata.len());
    let before = size().map_err(|error| StateFault::File(path.to_owned(), error))?;
    let connection = file::connect(path).map_err(sql)?;
    connection
        .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        .map_err(sql)?;
    drop::<Connection>(connection);
    let after = size().map_err(|error| StateFault::File(path.to_owned(), error))?;
    Ok(format!("{}: {before} bytes, now {after}\n", path.display()))
}

fn accept_clock(path: &Path, now: Timestamp) -> Result<String, StateFault> {
    let sql = |error| StateFault::Sql(path.to_owned(), error);
    let mut connection = file::connect(path).map_err(sql)?;
    if !file::is_current(&connection, path)? {
        return Err(OpenFault::Earlier(path.to_owned()).into());
    }
    let accepted = clock::accept(&mut connection, now).map_err(sql)?;
    Ok(accepted_clock(accepted, now))
}

fn accepted_key(is_named: bool) -> Result<String, StateFault> {
    let said = "the state has the customer_key of this configuration: restart each gateway; until then it names no customer in events\n";
    is_named
        .then(|| said.to_owned())
        .ok_or(StateFault::NoCustomerKey)
}

fn accepted_clock(accepted: AcceptedClock, now: Timestamp) -> String {
    match accepted {
        AcceptedClock::Nothing => {
            format!("nothing to accept: no gateway saw a time later than {now}\n")
        }
        AcceptedClock::Now { latest, moved } => format!(
            "{now} is taken for right, after {latest} was seen; rows with times ahead of it, set back to it: {moved}\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Beside, ClaimRequest, QuotaClaim, QuotaHash, StateSettings, StateStore};
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    };

    async fn take(store: &StateStore, quota: u8) {
        let asked = ClaimRequest {
            request: None,
            quota: Some(QuotaClaim {
                key: QuotaHash::from_bytes([quota; 16]),
                beside: Beside::default(),
                page: None,
            }),
            now: Timestamp::from_unix(1_767_225_600),
        };
        let _ = store.commit(asked).await.unwrap();
    }

    #[test]
    fn a_missing_state_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("portvakt.db");
        assert!(file::must_be_ours(&path).is_err());
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_running_state_is_shown_copied_and_vacuumed() {
        let folder = tempfile::tempdir().unwrap();
        let [path, key] = ["portvakt.db", "hash.key"].map(|name| folder.path().join(name));
        // A name need not be UTF-8.
        let copy = folder.path().join(OsStr::from_bytes(b"copy-\xff.db"));
        let store = StateStore::open(&StateSettings::new(&path, &key)).unwrap();
        take(&store, 1).await;
        let shown = show::show(&path).unwrap();
        for expected in [
            "portvakt.db: schema 6\n",
            "1 2026-01-01T00:00:00Z to 2026-01-01T00:00:00Z\n",
            "latest time that was seen                2026-01-01T00:00:00Z\n",
            "good\n",
        ] {
            assert!(shown.contains(expected), "{shown}");
        }
        export(&path, &copy).unwrap();
        let mode = std::fs::metadata(&copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let before = std::fs::read(&copy).unwrap();
        assert!(export(&path, &copy).is_err(), "a copy is not written over");
        assert_eq!(std::fs::read(&copy).unwrap(), before);
        assert!(vacuum(&path).unwrap().contains("bytes, now"));
        take(&store, 2).await;
        // The copy is a complete state, with the same key.
        let restored = StateStore::open(&StateSettings::new(&copy, &key)).unwrap();
        restored
            .tidy(Timestamp::from_unix(1_767_225_600))
            .await
            .unwrap();
        assert_eq!(restored.counters().rows.quotas, Some(1));
    }
}
