//! The cost of the state store: durable decisions alone and concurrent, refusals, look-ups of PSUs, opening, bytes on disk.
//!
//! `STATE_PSUS` and `STATE_KEYS` are the numbers of PSUs and quota keys in the large store; use 10 000 000 for a long run. The argument
//! `postgres` measures PostgreSQL alone.
#![allow(missing_docs, reason = "a benchmark has no interface")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark fails by panicking, prints what it found, and takes the time"
)]

/// The server of a measurement.
mod database;
/// The same in PostgreSQL.
mod state_postgres;

use portvakt::{
    clock::Timestamp,
    interface::{TppId, headers::PsuId},
    state::{
        ClaimRequest, Decision, Hash, Known, PsuHash, PsuRef, QuotaClaim, QuotaHash,
        RequestIdClaim, Retention, StateSettings, StateStore,
    },
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

const NOW: u64 = 1_767_225_600;
const TPP: &str = "PSDNO-FSA-123456";

fn tpp() -> TppId {
    TppId::parse(TPP).unwrap()
}

fn main() {
    // `cargo bench` passes `--bench`; test runs skip the benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    // One thread calls, like a gateway with one core, and the store has its own thread.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir_in(".").unwrap();
    if std::env::args().any(|argument| argument == "postgres") {
        return runtime.block_on(state_postgres::all(folder.path()));
    }
    // This runs first, because later runs would reuse freed memory.
    runtime.block_on(memory(folder.path()));
    runtime.block_on(decisions(folder.path()));
    let psus = env("STATE_PSUS", 100_000);
    runtime.block_on(look_ups(folder.path(), [10, psus]));
    runtime.block_on(opening(folder.path(), env("STATE_KEYS", 100_000)));
}

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

fn settings(folder: &Path, name: &str) -> StateSettings {
    StateSettings::new(folder.join(name), folder.join("hash.key"))
}

fn asked(key: u64) -> ClaimRequest {
    ClaimRequest {
        request: None,
        quota: Some(QuotaClaim {
            key: hash(key),
            beside: portvakt::state::Beside::default(),
            page: None,
        }),
        now: Timestamp::from_unix(NOW),
    }
}

/// Evenly distributed, like a keyed hash.
fn hash<K>(number: u64) -> Hash<K> {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^= z >> 27;
    Hash::from_bytes(((u128::from(z) << 64) | u128::from(number)).to_be_bytes())
}

/// Every key has a call from more than a day ago, as on any day but the first.
async fn decisions(folder: &Path) {
    let settings = settings(folder, "decisions.db");
    drop(StateStore::open(&settings).unwrap());
    let rounds = [(1, 5_000), (64, 5_000), (1_000, 300)];
    let calls: u64 = rounds.iter().map(|(tasks, each)| tasks * each).sum();
    let mut hashes: Vec<QuotaHash> = (0..calls).map(hash).collect();
    hashes.sort_unstable();
    fill(&settings.file, &hashes, |sql, hash| {
        sql.prepare_cached("INSERT INTO quota VALUES (?1, ?2, NULL, NULL, NULL)")
            .unwrap()
            .execute((hash.stored_bytes(), NOW as i64 - 90_000))
            .unwrap();
    });
    let store = Arc::new(StateStore::open(&settings).unwrap());
    let keys = Arc::new(AtomicU64::new(0));
    for (tasks, each) in rounds {
        together(&store, &keys, tasks, each).await;
    }
    for _ in 0..4 {
        let _ = store.commit(asked(0)).await.unwrap();
    }
    let rounds = 200_000_u32;
    let began = Instant::now();
    for _ in 0..rounds {
        let decision = store.commit(asked(0)).await.unwrap();
        assert!(matches!(decision, Decision::NextAt(_)));
    }
    println!("a cached refusal: {:?}", began.elapsed() / rounds);
    let began = Instant::now();
    for id in 0..rounds {
        let request = Some(RequestIdClaim {
            id: hash(u64::from(id)),
            date: Timestamp::from_unix(NOW),
            retention: Retention::Memory,
        });
        let asked = ClaimRequest {
            request,
            quota: None,
            now: Timestamp::from_unix(NOW),
        };
        let _ = store.commit(asked).await.unwrap();
    }
    println!("a safe request id: {:?}", began.elapsed() / rounds);
    drop(store);
    let used = keys.load(Ordering::Relaxed);
    let size = std::fs::metadata(&settings.file).unwrap().len();
    println!(
        "bytes per quota key, one call each, in random order: {:.1}",
        size as f64 / used as f64
    );
}

/// Concurrent callers, each with this number of sequential calls.
async fn together(store: &Arc<StateStore>, keys: &Arc<AtomicU64>, tasks: u64, each: u64) {
    let (began, before) = (Instant::now(), store.counters());
    let all: Vec<_> = (0..tasks)
        .map(|_| {
            let (store, keys) = (Arc::clone(store), Arc::clone(keys));
            tokio::spawn(async move {
                let (mut took, mut waited) = (Vec::new(), Vec::new());
                for _ in 0..each {
                    let (began, before) = (Instant::now(), store.counters().batches());
                    let key = keys.fetch_add(1, Ordering::Relaxed);
                    let _ = store.commit(asked(key)).await.unwrap();
                    took.push(began.elapsed());
                    waited.push(store.counters().batches() - before);
                }
                (took, waited)
            })
        })
        .collect();
    let (mut took, mut waited) = (Vec::new(), Vec::new());
    for task in all {
        let (of_task, commits) = task.await.unwrap();
        took.extend(of_task);
        waited.extend(commits);
    }
    let (spent, after) = (began.elapsed(), store.counters());
    took.sort_unstable();
    waited.sort_unstable();
    let batches = after.batches() - before.batches();
    println!(
        "durable decisions, {tasks:>5} at once: {:>8.1} µs each; wait p50 {:>7} µs, p99 {:>7} µs; {:.0} a batch, {:.0} µs a batch; \
         commits that end while one waits: p50 {}, p99 {}, most {}",
        micros(spent) / took.len() as f64,
        took[took.len() / 2].as_micros(),
        took[took.len() * 99 / 100].as_micros(),
        took.len() as f64 / batches as f64,
        micros(after.spent - before.spent) / batches as f64,
        waited[waited.len() / 2],
        waited[waited.len() * 99 / 100],
        waited[waited.len() - 1],
    );
}

/// The memory of one cached PSU.
async fn memory(folder: &Path) {
    let (cold, known) = (1_000, StateSettings::PSUS);
    let settings = settings(folder, "memory.db");
    fill_psus(&settings, known);
    let store = StateStore::open(&settings).unwrap();
    let tpp = tpp();
    let look_up = async |psus: std::ops::Range<u64>| {
        for psu in psus {
            let psu = Known::by_bank(PsuId::from_bits(psu.into()));
            assert!(
                store
                    .psu(PsuRef { tpp: &tpp, psu })
                    .await
                    .unwrap()
                    .is_some()
            );
        }
    };
    look_up(0..cold).await;
    let before = resident();
    look_up(cold..known).await;
    println!(
        "{known} warm PSUs: {:.0} bytes of memory each",
        (resident() - before) as f64 * 1024.0 / (known - cold) as f64
    );
}

/// The same ten PSUs, in a file without others and in one with many: the cost of a request must not depend on the number. Both files
/// are measured alternately, so that other load on the machine affects both.
async fn look_ups(folder: &Path, known: [u64; 2]) {
    let stores = known.map(|known| {
        let settings = settings(folder, &format!("psus-{known}.db"));
        let size = fill_psus(&settings, known);
        let began = Instant::now();
        let store = StateStore::open(&settings).unwrap();
        (known, store, began.elapsed(), size)
    });
    let mut warm = [Vec::new(), Vec::new()];
    for round in 0..42 {
        for ((known, store, ..), warm) in stores.iter().zip(&mut warm) {
            let took = look_up(store, *known, 50_000, true).await;
            // The first look-ups load the ten PSUs into memory.
            if round > 1 {
                warm.push(took);
            }
        }
    }
    for ((known, store, opened, size), warm) in stores.iter().zip(&mut warm) {
        warm.sort_unstable();
        println!(
            "{known:>9} PSUs: ten of them warm {:?} (least {:?}), from the file {:?}; opened in {opened:?}; {:.1} bytes each",
            warm[warm.len() / 2],
            warm[0],
            look_up(store, *known, 5_000, false).await,
            *size as f64 / *known as f64,
        );
    }
    let median = |warm: &[Duration]| micros(warm[warm.len() / 2]);
    println!(
        "a warm PSU of many costs {:.3} of one of few",
        median(&warm[1]) / median(&warm[0])
    );
}

/// The time of looking up one of ten PSUs, which are spread over all.
async fn look_up(store: &StateStore, known: u64, rounds: u32, warm: bool) -> Duration {
    let tpp = tpp();
    let began = Instant::now();
    for round in 0..rounds {
        let who = PsuRef {
            tpp: &tpp,
            psu: Known::by_bank(PsuId::from_bits(
                (u64::from(round % 10) * (known / 10)).into(),
            )),
        };
        let found = if warm {
            store.psu(who).await
        } else {
            store.psu_now(who).await
        };
        assert!(found.unwrap().is_some());
    }
    began.elapsed() / rounds
}

/// Makes a file with so many PSUs, each with a consent. Its size in bytes.
fn fill_psus(settings: &StateSettings, known: u64) -> u64 {
    let store = StateStore::open(settings).unwrap();
    let mut hashes: Vec<PsuHash> = (0..known)
        .map(|psu| {
            store
                .keys()
                .psu(Known::by_bank(PsuId::from_bits(psu.into())))
        })
        .collect();
    drop(store);
    hashes.sort_unstable();
    fill(&settings.file, &hashes, |sql, hash| {
        let key = hash.stored_bytes();
        sql.prepare_cached("INSERT INTO psu VALUES (?1, 1, ?2, ?1, ?2, 0)")
            .unwrap()
            .execute((key, NOW as i64))
            .unwrap();
        sql.prepare_cached("INSERT INTO context VALUES (?1, x'', ?2, ?2, NULL, 1)")
            .unwrap()
            .execute((key, NOW as i64))
            .unwrap();
    });
    std::fs::metadata(&settings.file).unwrap().len()
}

async fn opening(folder: &Path, keys: u64) {
    let settings = settings(folder, "keys.db");
    drop(StateStore::open(&settings).unwrap());
    let mut hashes: Vec<QuotaHash> = (0..keys).map(hash).collect();
    hashes.sort_unstable();
    fill(&settings.file, &hashes, |sql, hash| {
        sql.prepare_cached("INSERT INTO quota VALUES (?1, ?2, ?2, ?2, ?2)")
            .unwrap()
            .execute((hash.stored_bytes(), NOW as i64))
            .unwrap();
    });
    drop(hashes);
    let (before, began) = (resident(), Instant::now());
    let store = StateStore::open(&settings).unwrap();
    let opened = began.elapsed();
    let began = Instant::now();
    let decision = store.commit(asked(keys / 2)).await.unwrap();
    assert!(matches!(decision, Decision::NextAt(_)));
    let first = began.elapsed();
    let began = Instant::now();
    store.tidy(Timestamp::from_unix(NOW)).await.unwrap();
    println!(
        "{keys:>9} live keys of four calls: opened in {opened:?}, first decision {first:?}; memory {} KiB more; {:.1} bytes each, packed; a whole sweep {:?}",
        resident().saturating_sub(before),
        std::fs::metadata(&settings.file).unwrap().len() as f64 / keys as f64,
        began.elapsed(),
    );
}

fn fill<K>(file: &Path, hashes: &[Hash<K>], insert: impl Fn(&rusqlite::Connection, &Hash<K>)) {
    let sql = rusqlite::Connection::open(file).unwrap();
    sql.execute_batch(
        "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN;",
    )
    .unwrap();
    sql.execute("INSERT OR IGNORE INTO tpp VALUES (1, ?1)", [TPP])
        .unwrap();
    hashes.iter().for_each(|hash| insert(&sql, hash));
    sql.execute_batch("COMMIT").unwrap();
}

/// The memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
