//! A database that is restored or replaced under running gateways: they refuse it until they are started again.

use super::{BEGIN, Behind, held, request};
use crate::harness::{
    eventually, eventually_async, let_pass, postgres, postgres_command, postgres_programs,
};
use portvakt::state::{Decision, Retention, StateStore};
use std::time::Duration;

async fn is_granted(store: &StateStore, id: u64) -> bool {
    let decision = store.commit(request(id, Retention::Day, BEGIN)).await;
    decision.is_ok_and(|decision| matches!(decision, Decision::Held(_)))
}

/// Refused for seconds, also while others use the state, and named.
async fn refuses(store: &StateStore, id: u64) {
    let health = || store.health(super::super::at(BEGIN));
    eventually_async("the fault is named", async || {
        health().is_err_and(|fault| fault.to_string().contains("was restored"))
    })
    .await;
    for _ in 0..20 {
        assert!(!is_granted(store, id).await);
        assert!(health().is_err());
        // The store proves its database four times a second, and must not believe it again.
        let_pass(Duration::from_millis(100));
    }
}

/// REP-1, QUO-1: an older dump, an empty schema, and rows that are replaced in place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_was_replaced_is_refused_until_the_next_start() {
    let Some(behind) = Behind::new() else { return };
    let (server, user) = (postgres().unwrap(), behind.user().to_owned());
    let dump = || {
        let dump = postgres_command(&postgres_programs().unwrap().join("pg_dump"))
            .args(["--inserts", "-U", "portvakt", "-n", &user, "-h"])
            .arg(server.folder())
            .arg("postgres")
            .output()
            .unwrap();
        assert!(dump.status.success(), "{dump:?}");
        let text = String::from_utf8(dump.stdout).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('\\'));
        lines.collect::<Vec<_>>().join("\n")
    };
    let drop_schema = format!("DROP SCHEMA {user} CASCADE");
    let store = behind.open();
    let older = dump();
    // A proof is missing in the dump.
    let proofs = || server.sql(&format!("SELECT id || ' ' || at FROM {user}.heartbeat"));
    let dumped = proofs();
    eventually("a later proof", || proofs() != dumped);
    let _ = held(
        store
            .commit(request(1, Retention::Day, BEGIN))
            .await
            .unwrap(),
    );
    // The older one.
    server.sql(&format!("{drop_schema};{older}"));
    behind.proxy.cut();
    refuses(&store, 1).await;
    // It is the operator's decision to use it.
    let store = behind.open();
    assert!(is_granted(&store, 1).await);
    // Another gateway makes the tables of an empty schema.
    server.sql(&format!(
        "{drop_schema}; CREATE SCHEMA {user} AUTHORIZATION {user}"
    ));
    let other = behind.open();
    refuses(&store, 1).await;
    assert!(is_granted(&other, 1).await);
    drop(store);
    // In place, without the end of a connection.
    server.sql(&format!(
        "DELETE FROM {user}.heartbeat; DELETE FROM {user}.request"
    ));
    refuses(&other, 1).await;
    assert!(is_granted(&behind.open(), 1).await);
}
