//! `require_sync` with a standby that is lost while commits wait for it, and transactions that lose a race or a connection.

use super::{BEGIN, WAITING, call, held, left, request, set_standbys};
use crate::harness::{
    Postgres, eventually, eventually_async, outcome, postgres_command, postgres_programs,
};
use portvakt::state::{Decision, PostgresSettings, Retention, StateSettings, StateStore};
use std::{
    fs,
    process::{Child, Stdio},
    sync::Arc,
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
    settings.engine = postgres.into();
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
    eventually_async("a payment waits for the standby", async || {
        !server.sql(WAITING).is_empty()
    })
    .await;
    assert!(payments.iter().all(|payment| !payment.is_finished()));
    set_standbys(&server, "");
    for payment in payments {
        let granted = outcome("the payment", payment).await;
        assert!(!granted, "a commit that no standby has");
    }
    let health = || store.health(super::super::at(BEGIN));
    eventually_async("the store has no standby", async || health().is_err()).await;
    let _standby = Receiver::start(&server);
    set_standbys(&server, "*");
    eventually_async("the store has a standby", async || health()).await;
    eventually_async("a payment is granted", async || {
        is_granted(&store, 20).await
    })
    .await;
}

/// The processes that wait for a lock of a row or a transaction.
fn waits(user: &str) -> String {
    format!(
        "SELECT pid FROM pg_stat_activity WHERE usename = '{user}' AND wait_event_type = 'Lock'"
    )
}

fn waits_for_a_lock(server: &Postgres, user: &str) {
    eventually("a transaction waits for the other one", || {
        !server.sql(&waits(user)).is_empty()
    });
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
    settings.engine = PostgresSettings::new(config).into();
    let [here, there] = [(); 2].map(|()| StateStore::open(&settings).unwrap());
    assert!(is_granted(&here, 1).await);
    let column = |name| {
        server
            .sql(&format!("SELECT {name} FROM {user}.request"))
            .remove(0)
    };
    let (key, until) = (column("key"), column("until"));
    server.sql(&format!("DELETE FROM {user}.request"));
    let insert = format!("INSERT INTO {user}.request VALUES ('{key}', {until})");
    let other = server.begin(&insert);
    let again = request(1, Retention::Day, BEGIN);
    let first = tokio::spawn(async move { there.commit(again).await });
    waits_for_a_lock(&server, &user);
    other.commit();
    // It is decided again.
    let decision = outcome("the decision", first).await;
    assert!(matches!(decision, Ok(Decision::Replayed)));
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
    settings.engine = PostgresSettings::new(config).into();
    let store = Arc::new(StateStore::open(&settings).unwrap());
    let taken = held(store.commit(call(1, BEGIN)).await.unwrap());
    // The row is locked, so that the transaction waits for it.
    let other = server.begin(&format!("SELECT 1 FROM {user}.quota FOR UPDATE"));
    let giver = Arc::clone(&store);
    let giving_back = tokio::spawn(async move { giver.give_back(&taken, true).await });
    waits_for_a_lock(&server, &user);
    let waits = waits(&user);
    let end = format!("SELECT pg_terminate_backend(pid) FROM ({waits}) AS waits");
    assert_eq!(server.sql(&end), ["t"]);
    other.commit();
    let given_back = outcome("the call is given back", giving_back).await;
    assert_eq!(given_back.unwrap().unwrap().calls, 4);
    assert_eq!(left(&store, call(1, BEGIN)).await, 3);
}
