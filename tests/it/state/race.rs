//! Many concurrent tasks on one key: exactly four calls are claimed, and a request id once, with any task and any process.
//!
//! `STATE_ROUNDS` is the number of rounds; use 10 000 for a long run.

use super::{
    BEGIN, DAY, Data, PostgresSchema, RETENTIONS, SqliteFolder, TPP, call, env, finish, held,
    request, who,
};
use crate::harness::{Lines, ended, eventually_async, postgres};
use portvakt::state::{
    ClaimRequest, Decision, PostgresSettings, Retention, StateStore, Unavailable, Withdraw,
    Withdrawn,
};
use std::{
    io::{BufRead, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

on_every_engine!(
    of_64_tasks_four_hold,
    of_64_tasks_over_two_stores_four_hold,
    what_one_process_changes_the_other_soon_knows,
    safe_and_unsafe_requests_of_one_id_at_once,
);

/// The number of claims of 64 tasks, spread over the stores.
async fn holders(stores: &[Arc<StateStore>], claim: ClaimRequest) -> usize {
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let store = Arc::clone(&stores[task % stores.len()]);
            tokio::spawn(async move { store.commit(claim).await.unwrap() })
        })
        .collect();
    let mut held = 0;
    for task in tasks {
        if matches!(task.await.unwrap(), Decision::Held(_)) {
            held += 1;
        }
    }
    held
}

async fn of_64_tasks_four_hold<D: Data>() {
    let data = D::new();
    let one = [Arc::new(data.open())];
    for round in 0..env("STATE_ROUNDS", 100) {
        assert_eq!(
            holders(&one, call(round, BEGIN + round)).await,
            4,
            "{round}"
        );
        let retention = RETENTIONS[round as usize % 3];
        assert_eq!(
            holders(&one, request(round, retention, BEGIN + round)).await,
            1
        );
    }
}

async fn of_64_tasks_over_two_stores_four_hold<D: Data>() {
    let data = D::new();
    let two = [Arc::new(data.open()), Arc::new(data.open())];
    for round in 0..env("STATE_ROUNDS", 100) {
        assert_eq!(
            holders(&two, call(round, BEGIN + round)).await,
            4,
            "{round}"
        );
        assert_eq!(
            holders(&two, request(round, Retention::Day, BEGIN + round)).await,
            1
        );
    }
}

/// The second process of [`two_processes_hold_four_together`]: this test binary, running only this test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_process() {
    let Ok(folder) = std::env::var("STATE_OTHER_PROCESS") else {
        return;
    };
    let path = Path::new(&folder);
    let mut settings = portvakt::state::StateSettings::new(
        path.join("state/portvakt.db"),
        path.join("state/hash.key"),
    );
    if let Ok(database) = std::env::var("STATE_OTHER_DATABASE") {
        settings.engine = PostgresSettings::new(database.parse().unwrap()).into();
    }
    let store = [Arc::new(StateStore::open(&settings).unwrap())];
    println!("\nready");
    for line in std::io::stdin().lock().lines() {
        let round: u64 = line.unwrap().parse().unwrap();
        println!(
            "\nheld {}",
            holders(&store, call(round, BEGIN + round)).await
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_hold_four_together() {
    let place = SqliteFolder::new();
    four_over_two_processes(place.open(), place.0.path(), None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_hold_four_together_in_postgres() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let (user, host) = (data.user(), server.folder().display());
    let database = format!("host={host} user={user} dbname=postgres");
    four_over_two_processes(data.open(), data.1.path(), Some(&database)).await;
}

/// With a second process on the same file, or the same database.
async fn four_over_two_processes(store: StateStore, folder: &Path, database: Option<&str>) {
    let store = [Arc::new(store)];
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "state::race::other_process", "--nocapture"])
        .env("STATE_OTHER_PROCESS", folder)
        .envs(database.map(|database| ("STATE_OTHER_DATABASE", database)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut asked = other.stdin.take().unwrap();
    let said = Lines::of(other.stdout.take().unwrap());
    let answer = move |start: &str| {
        let line = said.find(start, |line| line.starts_with(start)).unwrap();
        line[start.len()..].trim().to_owned()
    };
    answer("ready");
    for round in 0..env("STATE_ROUNDS", 100) {
        writeln!(asked, "{round}").unwrap();
        let here = holders(&store, call(round, BEGIN + round)).await;
        let there: usize = answer("held ").parse().unwrap();
        assert_eq!(here + there, 4, "{round}: {here} and {there}");
    }
    drop(asked);
    assert!(ended(&mut other).success());
}

async fn what_one_process_changes_the_other_soon_knows<D: Data>() {
    let data = D::new();
    let (here, there) = (data.open(), data.open());
    here.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    assert!(there.psu(who(1)).await.unwrap().unwrap().session.is_some());
    // A withdrawal takes effect at once in this process, and a moment later in the other one.
    let ended = here.withdraw(who(1), Withdraw::Session).await.unwrap();
    assert!(matches!(ended, Withdrawn::Done { .. }), "{ended:?}");
    assert!(here.psu(who(1)).await.unwrap().unwrap().session.is_none());
    assert!(
        there
            .psu_now(who(1))
            .await
            .unwrap()
            .unwrap()
            .session
            .is_none()
    );
    here.finish(finish(2, 1, "t", BEGIN + 1)).await.unwrap();
    eventually_async("the new session is known there", async || {
        let psu = there.psu(who(1)).await.unwrap().unwrap();
        psu.session.is_some_and(|session| {
            session.id == there.keys().session(&TPP, &super::session_id("t"))
        })
    })
    .await;
    // Giving a call back here ends the cached refusal there.
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.push(held(here.commit(call(1, BEGIN)).await.unwrap()));
    }
    assert!(matches!(
        there.commit(call(1, BEGIN)).await.unwrap(),
        Decision::NextAt(_)
    ));
    here.give_back(&taken[0], true).await.unwrap();
    eventually_async("a call is free there", async || {
        matches!(
            there.commit(call(1, BEGIN)).await.unwrap(),
            Decision::Held(_)
        )
    })
    .await;
}

/// More changes than the change log keeps, while the other process did not read it.
#[tokio::test]
async fn a_change_log_that_ran_over_drops_everything() {
    let place = SqliteFolder::new();
    let (here, there) = (Arc::new(place.open()), place.open());
    here.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    assert!(there.psu(who(1)).await.unwrap().unwrap().session.is_some());
    here.withdraw(who(1), Withdraw::Session).await.unwrap();
    let more: Vec<_> = (2..6_000)
        .map(|psu| {
            let here = Arc::clone(&here);
            tokio::spawn(async move { here.finish(finish(psu, u128::from(psu), "s", BEGIN)).await })
        })
        .collect();
    for task in more {
        task.await.unwrap().unwrap();
    }
    eventually_async("the withdrawal is known there", async || {
        there.psu(who(1)).await.unwrap().unwrap().session.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_cached_refusal_writes_nothing() {
    let place = SqliteFolder::new();
    let store = place.open();
    for _ in 0..4 {
        let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    }
    assert!(matches!(
        store.commit(call(1, BEGIN)).await.unwrap(),
        Decision::NextAt(_)
    ));
    let wal = place.0.path().join("state/portvakt.db-wal");
    let before = std::fs::metadata(&wal).unwrap().len();
    for _ in 0..1_000 {
        let decision: Result<_, Unavailable> = store.commit(call(1, BEGIN + 5)).await;
        assert!(matches!(decision.unwrap(), Decision::NextAt(_)));
    }
    assert_eq!(std::fs::metadata(&wal).unwrap().len(), before);
    // No caller's thread did the work: the writer got five decisions and the housekeeping.
    assert!(store.counters().changes < 100);
    assert!(matches!(
        store.commit(call(1, BEGIN + DAY)).await.unwrap(),
        Decision::Held(_)
    ));
}

//= REP-1 refused
async fn safe_and_unsafe_requests_of_one_id_at_once<D: Data>() {
    let data = D::new();
    let store = Arc::new(data.open());
    for id in 0..200 {
        let tasks = [Retention::Memory, Retention::Day].repeat(4).into_iter();
        let tasks = tasks.map(|retention| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.commit(request(id, retention, BEGIN)).await.unwrap() })
        });
        let mut passed = 0;
        for task in tasks.collect::<Vec<_>>() {
            passed += u32::from(matches!(task.await.unwrap(), Decision::Held(_)));
        }
        assert_eq!(passed, 1);
    }
}
