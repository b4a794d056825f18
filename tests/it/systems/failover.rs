//! REP-1, QUO-1, SCA-4, SCA-12: three gateways on PostgreSQL, whose primary is lost under load again and again.
//!
//! `PORTVAKT_FAILOVERS` is the number of losses (`make failover COUNT=300`).

/// Upper bounds on times.
mod bounds;
/// Primary and standby.
mod cluster;
/// The answers, and their check.
mod history;
/// Three servers under Patroni and etcd.
mod patroni;

use crate::harness::{LIMIT, RAN_OUT, eventually_async, let_pass_async};
use cluster::{Cluster, Loss};
use history::{Found, History};
use portvakt::{
    clock::{Stopwatch, Timestamp},
    interface::{
        ForbiddenTpp, TppId,
        headers::{PsuId, SessionId},
    },
    state::{
        Beside, Block, BlockScope, ClaimRequest, Completion, ConsentAccounts, Decision, Finish,
        Finished, Hash, Known, PlantedFault, PostgresSettings, PsuRef, QuotaClaim, RequestIdClaim,
        Retention, StateSettings, StateStore,
    },
};
use std::{
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_postgres::Config;

static TPP: LazyLock<TppId> = LazyLock::new(|| TppId::parse("PSDNO-FSA-123456").unwrap());

/// 2026-01-01T00:00:00Z. The time stands, so that no call and no id expires.
const NOW: u64 = 1_767_225_600;

/// The concurrent callers of each gateway.
const CALLERS: usize = 6;

/// The losses of one cluster. Then a new one begins, so that the copies that replace lost servers stay small.
const LOSSES: usize = 30;

/// The questions to the store at once, after a run.
const QUESTIONS: usize = 200;

fn hash<K>(kind: u8, number: u64) -> Hash<K> {
    let mut bytes = [kind; 16];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes[8] = kind;
    Hash::from_bytes(bytes)
}

fn call(key: u64) -> ClaimRequest {
    ClaimRequest {
        request: None,
        quota: Some(QuotaClaim {
            key: hash(1, key),
            beside: Beside::default(),
            page: None,
        }),
        now: Timestamp::from_unix(NOW),
    }
}

fn payment(id: u64) -> ClaimRequest {
    ClaimRequest {
        request: Some(RequestIdClaim {
            id: hash(2, id),
            date: Timestamp::from_unix(NOW),
            retention: Retention::Day,
        }),
        quota: None,
        now: Timestamp::from_unix(NOW),
    }
}

fn who(psu: u64) -> PsuRef<'static> {
    PsuRef {
        tpp: &TPP,
        psu: Known::by_bank(PsuId::from_bits(u128::from(psu))),
    }
}

fn sca(psu: u64) -> Finish<'static> {
    Finish {
        token: hash(3, psu),
        expires: Timestamp::from_unix(NOW + 900),
        said: hash(4, psu),
        completion: Some(Completion {
            who: who(psu),
            corporate: None,
            session: SessionId::from_text("s").unwrap(),
            consent: Some(&ConsentAccounts::All),
            customer: None,
        }),
        now: Timestamp::from_unix(NOW),
    }
}

/// Gateways with their callers.
struct Run {
    stores: Vec<Arc<StateStore>>,
    history: Arc<Mutex<History>>,
    /// Selects the keys in use.
    round: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    settings: StateSettings,
    _folder: TempDir,
}

impl Run {
    /// Three gateways on a cluster, one after the other: the first makes the key.
    fn start(config: Config, planted: Option<PlantedFault>) -> Self {
        let mut postgres = PostgresSettings::new(config);
        postgres.planted = planted;
        Self::start_with(postgres)
    }

    fn start_with(postgres: PostgresSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = StateSettings::new("unused.db", folder.path().join("hash.key"));
        settings.engine = postgres.into();
        let stores = (0..3).map(|_| Arc::new(StateStore::open(&settings).unwrap()));
        Self {
            stores: stores.collect(),
            history: Arc::default(),
            round: Arc::default(),
            over: Arc::default(),
            settings,
            _folder: folder,
        }
    }

    fn call(&self) -> Vec<JoinHandle<()>> {
        let mut callers = Vec::new();
        for (gateway, store) in self.stores.iter().enumerate() {
            for caller in 0..CALLERS {
                let store = Arc::clone(store);
                let (history, round) = (Arc::clone(&self.history), Arc::clone(&self.round));
                let over = Arc::clone(&self.over);
                callers.push(tokio::spawn(async move {
                    let mut step = 0;
                    while !over.load(Ordering::Relaxed) {
                        let base = round.load(Ordering::Relaxed) * 1_000;
                        let key = base + (step * 7 + caller as u64) % 200;
                        match step % 3 {
                            0 => {
                                let answer = store.commit(call(key)).await;
                                history.lock().unwrap().quota(key, &answer);
                            }
                            1 => {
                                let answer = store.commit(payment(key)).await;
                                history.lock().unwrap().request(key, &answer);
                            }
                            _ => {
                                let psu =
                                    base * 1_000 + step * 100 + (gateway * CALLERS + caller) as u64;
                                if let Ok(Finished::Done) = store.finish(sca(psu)).await {
                                    history.lock().unwrap().completed(psu);
                                }
                            }
                        }
                        step += 1;
                        let_pass_async(Duration::from_millis(1)).await;
                    }
                }));
            }
        }
        callers
    }

    /// Waits until every gateway commits again; returns the time.
    async fn back(&self) -> Duration {
        static PROBE: AtomicU64 = AtomicU64::new(1 << 40);
        let began = Stopwatch::start();
        for store in &self.stores {
            eventually_async("there is service", async || {
                let probe = PROBE.fetch_add(1, Ordering::Relaxed);
                let answer = store.commit(payment(probe)).await;
                answer.map_err(|_| store.health(Timestamp::from_unix(NOW)).err())
            })
            .await;
        }
        began.elapsed()
    }

    /// Waits for the callers, and asks the store for everything that they were told.
    async fn check(&self, callers: Vec<JoinHandle<()>>) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
        let history = self.history.lock().unwrap().clone();
        let more_calls = self.ask(history.quotas(), |store, key| async move {
            let mut more = 0;
            while let Decision::Held(_) = store.commit(call(key)).await.unwrap() {
                more += 1;
            }
            more
        });
        let more_calls = more_calls.await;
        let granted = self.ask(history.requests(), |store, id| async move {
            matches!(store.commit(payment(id)).await.unwrap(), Decision::Held(_))
        });
        let granted = granted.await;
        let sessions = self.ask(history.psus().to_vec(), |store, psu| async move {
            // After a loss the connection for look-ups may be opened again just now.
            let began = Stopwatch::start();
            loop {
                match store.psu_now(who(psu)).await {
                    Ok(known) => return known.is_some_and(|psu| psu.session.is_some()),
                    Err(fault) => assert!(
                        began.elapsed() < LIMIT,
                        "{RAN_OUT}: a look-up; the last value was {fault}"
                    ),
                }
                let_pass_async(Duration::from_millis(100)).await;
            }
        });
        let sessions = sessions.await;
        let numbers = |answers: Vec<(u64, bool)>, wanted: bool| {
            let wanted = answers.into_iter().filter(|(_, answer)| *answer == wanted);
            wanted.map(|(number, _)| number).collect()
        };
        println!(
            "granted, refused, unknown: {:?}; {} completed SCAs",
            history.counts(),
            history.psus().len()
        );
        history.faults(&Found {
            more_calls: more_calls.into_iter().collect(),
            granted_again: numbers(granted, true),
            without_session: numbers(sessions, false),
        })
    }

    /// Asks the first gateway about each number, many at once.
    async fn ask<A, T>(
        &self,
        numbers: Vec<u64>,
        question: fn(Arc<StateStore>, u64) -> A,
    ) -> Vec<(u64, T)>
    where
        A: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let mut answers = Vec::new();
        for numbers in numbers.chunks(QUESTIONS) {
            let asked = numbers.iter().map(|number| {
                let store = Arc::clone(&self.stores[0]);
                (*number, tokio::spawn(question(store, *number)))
            });
            for (number, answer) in asked.collect::<Vec<_>>() {
                answers.push((number, answer.await.unwrap()));
            }
        }
        answers
    }
}

/// Loses the primary under load, and promotes the standby.
async fn fail_over(cluster: &mut Cluster, run: &Run, loss: Loss, holds: bool) -> Duration {
    let_pass_async(Duration::from_millis(300)).await;
    if holds {
        cluster.hold_replication();
        let_pass_async(Duration::from_millis(200)).await;
    }
    cluster.lose(loss);
    let_pass_async(Duration::from_millis(200)).await;
    tokio::task::block_in_place(|| cluster.promote());
    let back = run.back().await;
    if loss != Loss::Killed {
        cluster.resume_former();
        let_pass_async(Duration::from_millis(300)).await;
        run.back().await;
    }
    back
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn failovers_lose_and_repeat_nothing() {
    let count = std::env::var("PORTVAKT_FAILOVERS").map_or(6, |count| count.parse().unwrap());
    let mut times = Vec::new();
    while times.len() < count {
        times.extend(lose_primaries(LOSSES.min(count - times.len())).await);
        println!(
            "{} losses so far: nothing lost, nothing repeated",
            times.len()
        );
    }
    times.sort();
    println!(
        "service back after a median of {:?}, {:?} at most",
        times[times.len() / 2],
        times[times.len() - 1]
    );
}

/// Loses the primary of a new cluster again and again, and checks the answers of the run. Returns the times until service was back.
async fn lose_primaries(count: usize) -> Vec<Duration> {
    let mut cluster = tokio::task::block_in_place(|| Cluster::start(true));
    let run = Run::start(cluster.config(), None);
    let callers = run.call();
    let mut times = Vec::new();
    for failover in 0..count {
        run.round.store(failover as u64, Ordering::Relaxed);
        let loss = [Loss::Killed, Loss::Stopped, Loss::Cut][failover % 3];
        let back = fail_over(&mut cluster, &run, loss, failover % 2 > 0).await;
        println!("{failover}: {loss:?}, service back {back:?} after the promotion");
        times.push(back);
        tokio::task::block_in_place(|| cluster.replace_former());
    }
    assert_eq!(run.check(callers).await, [""; 0]);
    times
}

/// The check fails where a caller is answered before the commit, and where the standby is asynchronous.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn planted_faults_of_failovers_are_found() {
    for (is_synchronous, planted) in [
        (true, Some(PlantedFault::AnswerBeforeCommit)),
        (false, None),
    ] {
        let mut cluster = tokio::task::block_in_place(|| Cluster::start(is_synchronous));
        let run = Run::start(cluster.config(), planted);
        let callers = run.call();
        fail_over(&mut cluster, &run, Loss::Killed, true).await;
        let faults = run.check(callers).await;
        println!(
            "{planted:?}: {} faults, such as {:?}",
            faults.len(),
            faults.first()
        );
        assert!(
            !faults.is_empty(),
            "{planted:?}, synchronous: {is_synchronous}"
        );
    }
}

/// A former primary that is reachable again, without a standby to stop it, is not used by a gateway that saw the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn a_former_primary_is_refused() {
    for (planted, is_used) in [(None, false), (Some(PlantedFault::NoFencing), true)] {
        let mut cluster = tokio::task::block_in_place(|| Cluster::start(false));
        let run = Run::start(cluster.config(), planted);
        run.back().await;
        cluster.lose(Loss::Stopped);
        tokio::task::block_in_place(|| cluster.promote());
        run.back().await;
        // The new primary is lost as well, and the former one goes on.
        cluster.lose(Loss::Stopped);
        cluster.resume_former();
        let mut answers = Vec::new();
        for id in 0..20 {
            answers.push(run.stores[0].commit(payment(id)).await.is_ok());
            let_pass_async(Duration::from_millis(100)).await;
        }
        assert_eq!(answers.contains(&true), is_used, "{planted:?}");
        if !is_used {
            let fault = run.stores[0]
                .health(Timestamp::from_unix(NOW))
                .unwrap_err()
                .to_string();
            assert!(fault.contains("former primary"), "{fault}");
        }
    }
}

/// Whether a gateway writes where another one reads.
async fn writes_at(store: &StateStore, other: &StateStore) -> bool {
    static PROBE: AtomicU64 = AtomicU64::new(1 << 41);
    let probe = payment(PROBE.fetch_add(1, Ordering::Relaxed));
    store.commit(probe).await.is_ok() && matches!(other.commit(probe).await, Ok(Decision::Replayed))
}

/// A primary that another one replaced, and that goes on: a running gateway finds the new one by asking the other host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn a_primary_that_goes_on_is_left() {
    for (planted, is_left) in [(None, true), (Some(PlantedFault::NoFencing), false)] {
        let mut cluster = tokio::task::block_in_place(|| Cluster::start(false));
        let run = Run::start(cluster.config(), planted);
        run.back().await;
        tokio::task::block_in_place(|| cluster.promote());
        let started = StateStore::open(&run.settings).unwrap();
        if is_left {
            for store in &run.stores {
                let left = async || writes_at(store, &started).await;
                eventually_async("the former primary is left", left).await;
            }
        } else {
            // Far longer than a gateway takes to ask the other host.
            let_pass_async(Duration::from_secs(6)).await;
            for store in &run.stores {
                assert!(!writes_at(store, &started).await);
            }
        }
    }
}

/// The same where a standby of the former primary goes on to confirm its commits: the new primary lacks some of them, and is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn a_new_primary_without_confirmed_commits_is_refused() {
    let mut cluster = tokio::task::block_in_place(|| Cluster::start(true));
    let _other = tokio::task::block_in_place(|| cluster.receive());
    cluster.set_standbys("ANY 1 (*)");
    let run = Run::start(cluster.config(), None);
    run.back().await;
    // The standby misses proofs, however soon the gateway sees that it was promoted.
    cluster.hold_replication();
    let_pass_async(Duration::from_secs(1)).await;
    tokio::task::block_in_place(|| cluster.promote());
    let health = || run.stores[0].health(Timestamp::from_unix(NOW));
    eventually_async("the new primary is refused", async || match health() {
        Err(fault) if fault.to_string().contains("a standby without it") => Ok(()),
        other => Err(other.map_err(|fault| fault.to_string())),
    })
    .await;
    for id in 0..20 {
        assert!(run.stores[0].commit(payment(id)).await.is_err());
    }
    let started = StateStore::open(&run.settings).unwrap();
    assert!(started.commit(payment(1)).await.is_ok());
}

/// A gateway that starts uses the newest primary that it reaches, and none that only a lost standby could confirm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn a_gateway_starts_on_no_former_primary() {
    let mut cluster = tokio::task::block_in_place(|| Cluster::start(true));
    let run = Run::start(cluster.config(), None);
    let _ = run.stores[0].commit(payment(1)).await.unwrap();
    cluster.lose(Loss::Stopped);
    tokio::task::block_in_place(|| cluster.promote());
    run.back().await;
    let _ = run.stores[0].commit(payment(2)).await.unwrap();
    cluster.resume_former();
    let mut starts = 0;
    for _ in 0..20 {
        // On a busy machine the newest one may answer late, and the start fails.
        let Ok(started) = StateStore::open(&run.settings) else {
            continue;
        };
        starts += 1;
        for id in [1, 2] {
            let decision = started.commit(payment(id)).await.unwrap();
            assert!(matches!(decision, Decision::Replayed), "{id}");
        }
    }
    assert!(starts > 0);
    // The newest one is lost, and the former one accepts connections.
    cluster.lose(Loss::Stopped);
    for _ in 0..2 {
        let fault = StateStore::open(&run.settings).unwrap_err().to_string();
        println!("{fault}");
        assert!(fault.contains("no commit succeeded"), "{fault}");
    }
}

/// `require_sync`: where commits no longer wait for a standby, changes are refused and the gateway is not ready, until they do again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn commits_that_do_not_wait_for_a_standby_are_refused() {
    let cluster = tokio::task::block_in_place(|| Cluster::start(true));
    let mut settings = PostgresSettings::new(cluster.config());
    settings.require_sync = true;
    let run = Run::start_with(settings);
    let store = &run.stores[0];
    let health = || store.health(Timestamp::from_unix(NOW));
    for (id, standbys) in (0..).zip(["", "*", "", "*"]) {
        cluster.set_standbys(standbys);
        let is_safe = !standbys.is_empty();
        eventually_async("the standbys are known", async || {
            health().is_ok() == is_safe
        })
        .await;
        println!("{standbys:?} is known: {:?}", health());
        assert_eq!(store.commit(payment(id)).await.is_ok(), is_safe);
    }
    // A setting of the role applies to new connections. The one that hears the database is an older one.
    cluster.sql("ALTER ROLE gateway SET synchronous_commit = local");
    cluster.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE usename = 'gateway' AND query NOT LIKE 'SELECT seq%'",
    );
    for id in 10..20 {
        let refused = store.commit(payment(id)).await.unwrap_err().to_string();
        println!("{refused}");
    }
    assert!(health().is_err());
    cluster.sql("ALTER ROLE gateway RESET synchronous_commit");
    eventually_async("the role waits again", async || health().is_ok()).await;
    assert!(store.commit(payment(20)).await.is_ok());
}

/// CTL-2: a block that was answered holds through the loss of the primary, in every gateway, also while the database is unavailable and
/// for a gateway that starts after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn a_block_holds_through_a_failover() {
    for loss in [Loss::Killed, Loss::Stopped] {
        let mut cluster = tokio::task::block_in_place(|| Cluster::start(true));
        let run = Run::start(cluster.config(), None);
        let refuses = async |store: &StateStore| {
            let blocks = store.blocks_now().await?;
            let now = Timestamp::from_unix(NOW);
            Ok::<_, portvakt::state::Unavailable>(blocks.refuses(&TPP, false, Vec::new, now))
        };
        let block = Block {
            tpp: ForbiddenTpp::of(&TPP),
            scope: BlockScope::All,
            reason: "fraud".into(),
            since: Timestamp::from_unix(NOW),
            until: None,
        };
        run.stores[0].block(block).await.unwrap();
        for store in &run.stores {
            let known = async || refuses(store).await.is_ok_and(|refuses| refuses);
            eventually_async("the block is known", known).await;
        }
        cluster.lose(loss);
        // From memory for a second, and then not at all: never as if there were no block.
        for store in &run.stores {
            assert!(refuses(store).await.unwrap_or(true));
        }
        tokio::task::block_in_place(|| cluster.promote());
        run.back().await;
        let started = StateStore::open(&run.settings).unwrap();
        for store in run.stores.iter().map(|store| &**store).chain([&started]) {
            // On a busy machine a gateway may be without the database once more.
            let known = eventually_async("the store answers", async || refuses(store).await).await;
            assert!(known);
        }
    }
}

/// Three gateways, 64 clients on one key: exactly four calls, and each request id once. `STATE_ROUNDS` is the number of keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn three_gateways_grant_four_calls_and_a_payment_once() {
    let rounds = std::env::var("STATE_ROUNDS").map_or(500, |rounds| rounds.parse().unwrap());
    let cluster = tokio::task::block_in_place(|| Cluster::start(true));
    let run = Run::start(cluster.config(), None);
    for round in 0..rounds {
        for (asked, expected) in [(call(round), 4), (payment(round), 1)] {
            let clients: Vec<_> = (0..64)
                .map(|client| {
                    let store = Arc::clone(&run.stores[client % 3]);
                    tokio::spawn(async move { store.commit(asked).await.unwrap() })
                })
                .collect();
            let mut held = 0;
            for client in clients {
                held += u32::from(matches!(client.await.unwrap(), Decision::Held(_)));
            }
            assert_eq!(held, expected, "round {round}");
        }
    }
}
