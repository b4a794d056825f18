//! `require_sync` with a standby that is lost while commits wait for it, and transactions that lose a race or a connection.

use super::{BEGIN, call, held, left, request, soon};
use crate::harness::{Postgres, postgres_command, postgres_programs};
use portvakt::state::{Decision, PostgresSettings, Retention, StateSettings, StateStore};
use std::{
    fs,
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

/// A standby that confirms commits: it receives the log, and does nothing with it.
struct Receiver {
    process: Child,
    _folder: TempDir,
}

impl Receiver {
    fn start(server: &Postgres) -> Self {
        let folder = Postgres::folder_of_owner();
        let program = postgres_programs().unwrap().join("pg_receivewal");
        let process = postgres_command(&program)
            .args(["--synchronous", "-U", "portvakt", "-D"])
            .arg(folder.path())
            .arg("-h")
            .arg(server.folder())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            _folder: folder,
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn set_standbys(server: &Postgres, names: &str) {
    server.sql(&format!(
        "ALTER SYSTEM SET synchronous_standby_names = '{names}'"
    ));
    server.sql("SELECT pg_reload_conf()");
}

async fn is_granted(store: &StateStore, id: u64) -> bool {
    let decision = store.commit(request(id, Retention::Day, BEGIN)).await;
    decision.is_ok_and(|decision| matches!(decision, Decision::Held(_)))
}

/// REP-1: the standby is lost, payments wait for it, and `synchronous_standby_names` is emptied: the server confirms their commits, which
/// no standby has. Nobody is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_no_standby_has_is_refused() {
    let Some(server) = Postgres::start(5432, "listen_addresses = ''", |_| {}) else {
        return;
    };
    let standby = Receiver::start(&server);
    set_standbys(&server, "*");
    let folder = tempfile::tempdir().unwrap();
    let mut settings = StateSettings::new("unused.db", folder.path().join("hash.key"));
    let mut postgres = PostgresSettings::new(server.schema());
    postgres.require_sync = true;
    settings.postgres = Some(postgres);
    let store = Arc::new(StateStore::open(&settings).unwrap());
    assert!(is_granted(&store, 1).await);
    // Other settings that change nothing here do not end it.
    server.sql("SELECT pg_reload_conf()");
    for id in 2..10 {
        assert!(is_granted(&store, id).await, "{id}");
    }
    drop(standby);
    let payments: Vec<_> = (10..15)
        .map(|id| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { is_granted(&store, id).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(payments.iter().all(|payment| !payment.is_finished()));
    set_standbys(&server, "");
    for payment in payments {
        assert!(!payment.await.unwrap(), "a commit that no standby has");
    }
    soon(async || store.health(super::super::at(BEGIN)).is_err()).await;
    let _standby = Receiver::start(&server);
    set_standbys(&server, "*");
    soon(async || store.health(super::super::at(BEGIN)).is_ok()).await;
    soon(async || is_granted(&store, 20).await).await;
}

/// A request id that another transaction adds at the same time: one of them loses, which is no reason for a warning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_race_is_no_reason_for_a_warning() {
    let Some(server) = Postgres::start(5432, "listen_addresses = ''", |_| {}) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut settings = StateSettings::new("unused.db", folder.path().join("hash.key"));
    let config = server.schema();
    let user = config.get_user().unwrap().to_owned();
    settings.postgres = Some(PostgresSettings::new(config));
    let [here, there] = [(); 2].map(|()| StateStore::open(&settings).unwrap());
    assert!(is_granted(&here, 1).await);
    let column = |name| {
        server
            .sql(&format!("SELECT {name} FROM {user}.request"))
            .remove(0)
    };
    let (key, until) = (column("key"), column("until"));
    server.sql(&format!("DELETE FROM {user}.request"));
    let first = std::thread::scope(|scope| {
        scope.spawn(|| {
            server.sql(&format!(
                "BEGIN; INSERT INTO {user}.request VALUES ('{key}', {until}); SELECT pg_sleep(1); COMMIT"
            ))
        });
        std::thread::sleep(Duration::from_millis(300));
        tokio::spawn(async move { is_granted(&there, 1).await })
    });
    assert!(!first.await.unwrap());
    let log = fs::read_to_string(server.folder().join("log")).unwrap();
    assert!(log.contains("duplicate key"), "no race was lost: {log}");
    assert!(!log.contains("WARNING"), "{log}");
}

/// QUO-5: a connection that ends before COMMIT costs nothing: the change is decided again on another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_ends_before_commit_costs_nothing() {
    let Some(server) = Postgres::start(5432, "listen_addresses = ''", |_| {}) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut settings = StateSettings::new("unused.db", folder.path().join("hash.key"));
    let config = server.schema();
    let user = config.get_user().unwrap().to_owned();
    settings.postgres = Some(PostgresSettings::new(config));
    let store = Arc::new(StateStore::open(&settings).unwrap());
    let taken = held(store.commit(call(1, BEGIN)).await.unwrap());
    // The row is locked, so that the transaction waits for it.
    let waits = format!(
        "SELECT pid FROM pg_stat_activity WHERE usename = '{user}' AND wait_event_type = 'Lock'"
    );
    let given_back = std::thread::scope(|scope| {
        scope.spawn(|| {
            server.sql(&format!(
                "BEGIN; SELECT 1 FROM {user}.quota FOR UPDATE; SELECT pg_sleep(1.5); COMMIT"
            ))
        });
        std::thread::sleep(Duration::from_millis(300));
        let store = Arc::clone(&store);
        let giving_back = tokio::spawn(async move { store.give_back(&taken, true).await });
        for _ in 0..100 {
            if !server.sql(&waits).is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = format!("SELECT pg_terminate_backend(pid) FROM ({waits}) AS waits");
        assert_eq!(server.sql(&ended), ["t"]);
        giving_back
    });
    assert_eq!(given_back.await.unwrap().unwrap().unwrap().calls, 4);
    assert_eq!(left(&store, call(1, BEGIN)).await, 3);
}
