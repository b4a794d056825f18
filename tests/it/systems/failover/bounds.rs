//! Upper bounds on times, which hold only on a machine that does nothing else: `make test-systems` runs these tests one after the other.

use super::{Run, TPP, cluster::Cluster, hash, lose_primaries, sca, who, writes_at};
use crate::harness::{LIMIT, RAN_OUT, let_pass_async};
use portvakt::{
    clock::Stopwatch,
    interface::headers::SessionId,
    state::{PlantedFault, StateStore, Withdraw},
};
use std::time::Duration;

/// docs/scaling.md: a new primary is found within two seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a bound on a time: make test-systems"]
async fn the_service_is_back_soon() {
    let mut times = lose_primaries(5).await;
    times.sort();
    println!("service back after {times:?}");
    assert!(times[times.len() / 2] < Duration::from_secs(2));
}

/// A running gateway asks the other host for a newer primary often enough that it leaves a former one within six seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a bound on a time: make test-systems"]
async fn a_primary_that_goes_on_is_left_soon() {
    let mut cluster = tokio::task::block_in_place(|| Cluster::start(false));
    let run = Run::start(cluster.config(), None);
    run.back().await;
    tokio::task::block_in_place(|| cluster.promote());
    let began = Stopwatch::start();
    let started = StateStore::open(&run.settings).unwrap();
    for store in &run.stores {
        while !writes_at(store, &started).await {
            assert!(began.elapsed() < LIMIT, "{RAN_OUT}: it is left");
            let_pass_async(Duration::from_millis(10)).await;
        }
    }
    println!("left after {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(6));
}

/// The rounds of [`delays`], with three changes each.
const CHANGES: u64 = 15;

/// The times until another gateway knows a new session, a session in its place, and its withdrawal; sorted.
async fn delays(planted: Option<PlantedFault>) -> Vec<Duration> {
    let cluster = tokio::task::block_in_place(|| Cluster::start(true));
    let run = Run::start(cluster.config(), planted);
    let [here, there] = [&run.stores[0], &run.stores[1]];
    let known = async || {
        let psu = there.psu(who(1)).await.unwrap();
        psu.and_then(|psu| psu.session.map(|session| session.id))
    };
    let mut delays = Vec::new();
    for round in 0..CHANGES {
        for (step, text) in (0..).zip([Some("first"), Some("second"), None]) {
            let session = text.map(|text| SessionId::from_text(text).unwrap());
            // At any moment between two proofs.
            let_pass_async(Duration::from_millis(300 + 17 * (3 * round + step))).await;
            // The row before the change is in the other gateway's memory.
            known().await;
            if let Some(session) = &session {
                let mut end = sca(1);
                end.token = hash(3, 3 * round + step);
                end.completion.as_mut().unwrap().session = session.clone();
                here.finish(end).await.unwrap();
            } else {
                here.withdraw(who(1), Withdraw::Session).await.unwrap();
            }
            let expected = session.map(|session| here.keys().session(&TPP, &session));
            let began = Stopwatch::start();
            while known().await != expected {
                assert!(began.elapsed() < LIMIT, "{RAN_OUT}: the change is known");
                let_pass_async(Duration::from_millis(1)).await;
            }
            delays.push(began.elapsed());
        }
    }
    delays.sort();
    delays
}

/// SCA-4, SCA-13, SCA-16: a new session at one gateway ends the old one at another within 100 ms, and so does a withdrawal. Without
/// notifications it would take up to 250 ms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a bound on a time: make test-systems"]
async fn a_change_of_a_session_is_known_to_the_other_gateways() {
    let slow = |delays: &[Duration]| {
        let (median, longest) = (delays[delays.len() / 2], delays[delays.len() - 1]);
        println!(
            "{} changes: median {median:?}, longest {longest:?}",
            delays.len()
        );
        let slow = delays
            .iter()
            .filter(|delay| **delay > Duration::from_millis(100));
        slow.count()
    };
    let found = slow(&delays(None).await);
    assert!(
        found <= 9,
        "{found} were slower: a busy machine is slow now and then, not often"
    );
    let found = slow(&delays(Some(PlantedFault::LostNotify)).await);
    assert!(found > 12, "lost notifications are not found: {found}");
}
