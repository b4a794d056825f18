//! Upper bounds on times, which hold only on a machine that does nothing else: `make test-systems` runs these tests one after the other.

use super::{
    NOW, Run, TPP,
    cluster::{Cluster, Loss},
    hash, lose_primaries, sca, who, writes_at,
};
use crate::harness::{LIMIT, RAN_OUT, eventually_async, let_pass_async};
use portvakt::{
    clock::{Stopwatch, Timestamp},
    interface::{ForbiddenTpp, TppId, headers::SessionId},
    state::{Block, BlockScope, PlantedFault, StateStore, Withdraw},
};
use std::{
    sync::{Arc, LazyLock, atomic::Ordering},
    time::Duration,
};

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
            // At any moment between two proofs, which come every 250 ms.
            let_pass_async(Duration::from_millis(300 + 17 * (3 * round + step) % 250)).await;
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

/// What the bank takes back: the session of a PSU, or a TPP's permission to call at all.
#[derive(Clone, Copy, Debug)]
enum TakenBack {
    Session(u64),
    Calls,
}

/// The TPP that is blocked.
static BLOCKED: LazyLock<TppId> = LazyLock::new(|| TppId::parse("PSDNO-FSA-654321").unwrap());

impl TakenBack {
    /// Gives it at a gateway, until another one serves it.
    async fn give(self, here: &StateStore, there: &StateStore) {
        eventually_async("it is given", async || match self {
            Self::Session(psu) => here.finish(sca(psu)).await.map(drop),
            Self::Calls => {
                let tpp = ForbiddenTpp::of(&BLOCKED);
                here.unblock(&tpp, BlockScope::All).await.map(drop)
            }
        })
        .await;
        eventually_async("it is served", async || self.is_served(there).await).await;
    }

    /// Takes it back at a gateway, again and again until that is answered.
    async fn take(self, store: &StateStore) {
        eventually_async("the bank is answered", async || match self {
            Self::Session(psu) => {
                let withdrawn = store.withdraw(who(psu), Withdraw::Session).await;
                withdrawn.map(drop)
            }
            Self::Calls => {
                let block = Block {
                    tpp: ForbiddenTpp::of(&BLOCKED),
                    scope: BlockScope::All,
                    reason: "fraud".into(),
                    since: Timestamp::from_unix(NOW),
                    until: None,
                };
                store.block(block).await.map(drop)
            }
        })
        .await;
    }

    /// Whether a gateway serves it, as it judges a request.
    async fn is_served(self, store: &StateStore) -> bool {
        match self {
            Self::Session(psu) => {
                let known = store.psu(who(psu)).await;
                matches!(known, Ok(Some(psu)) if psu.session.is_some())
            }
            Self::Calls => {
                let now = Timestamp::from_unix(NOW);
                let blocks = store.blocks_now().await;
                blocks.is_ok_and(|blocks| !blocks.refuses(&BLOCKED, false, Vec::new, now))
            }
        }
    }

    /// How long from now a gateway serves it; it is asked for `looked`.
    async fn served_for(self, store: &StateStore, looked: Duration) -> Duration {
        let (since, mut last) = (Stopwatch::start(), Duration::ZERO);
        loop {
            let asked = since.elapsed();
            if asked > looked {
                return last;
            }
            if self.is_served(store).await {
                last = asked;
            }
            let_pass_async(Duration::from_millis(2)).await;
        }
    }
}

/// CTL-1, CTL-2: what the bank took back at one gateway, another one serves for 100 ms at most under load, and for a second at most where
/// the primary is lost: as soon as the bank is answered, or before.
//= CTL-2 refused
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a bound on a time: make test-systems"]
async fn what_the_bank_takes_back_is_served_no_longer() {
    let mut cluster = tokio::task::block_in_place(|| Cluster::start(true));
    let run = Run::start(cluster.config(), None);
    let callers = run.call();
    let [here, there] = [&*run.stores[0], &*run.stores[1]];
    let psus = 1 << 50;
    let mut under_load = Vec::new();
    for round in 0..20 {
        for taken in [TakenBack::Session(psus + round), TakenBack::Calls] {
            taken.give(here, there).await;
            taken.take(here).await;
            under_load.push(taken.served_for(there, Duration::from_millis(500)).await);
        }
    }
    under_load.sort();
    println!(
        "under load: a median of {:?}, {:?} at most",
        under_load[20], under_load[39]
    );
    let mut lost = Vec::new();
    for round in 0..6 {
        for taken in [TakenBack::Session(psus + 100 + round), TakenBack::Calls] {
            let loss = [Loss::Killed, Loss::Stopped, Loss::Cut][round as usize % 3];
            taken.give(here, there).await;
            let is_before = round % 2 > 0;
            if is_before {
                cluster.lose(loss);
                tokio::task::block_in_place(|| cluster.promote());
                taken.take(here).await;
            } else {
                taken.take(here).await;
                cluster.lose(loss);
            }
            let store = Arc::clone(&run.stores[1]);
            let looked = Duration::from_secs(4);
            let served = tokio::spawn(async move { taken.served_for(&store, looked).await });
            if !is_before {
                let_pass_async(Duration::from_millis(200)).await;
                tokio::task::block_in_place(|| cluster.promote());
            }
            let served = served.await.unwrap();
            println!("{taken:?}, {loss:?} before: {is_before}: served for {served:?}");
            lost.push(served);
            if loss != Loss::Killed {
                cluster.resume_former();
            }
            run.back().await;
            tokio::task::block_in_place(|| cluster.replace_former());
        }
    }
    run.over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    let slow = |longest: Duration| move |served: &&Duration| **served > longest;
    let found = under_load.iter().filter(slow(Duration::from_millis(100)));
    let found = found.count();
    assert!(
        found <= 8,
        "{found} were slower: a busy machine is slow now and then, not often"
    );
    assert_eq!(lost.iter().find(slow(Duration::from_secs(1))), None);
}
