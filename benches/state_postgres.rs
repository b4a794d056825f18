//! Decisions in PostgreSQL, with one gateway and with three, beside SQLite and beside a bare loop of the same transactions; PSUs and the
//! sizes of the tables.
//!
//! The engines are measured in turn, several times, so that other load on the machine affects all of them. Without a server
//! (`.ci/postgres.sh`) this part is left out. `STATE_PSUS` and `STATE_KEYS` are the numbers of PSUs and of rows of a table.

use super::{
    NOW, TPP,
    database::{self, connect},
    env, fill, hash, look_up, micros, resident, settings, tpp,
};
use portvakt::{
    interface::headers::PsuId,
    state::{Known, PostgresSettings, PsuRef, QuotaHash, StateSettings, StateStore},
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use tokio_postgres::{Client, Config, Statement};
use uuid::Uuid;

/// The callers, and the decisions of a measurement.
const ROUNDS: [(u64, u64); 3] = [(1, 1_000), (64, 19_200), (1_000, 96_000)];

/// The measurements of each engine.
const REPEATS: u64 = 5;

/// The gateways that share the database.
const GATEWAYS: u64 = 3;

/// The connections of a gateway that write; the bare loop has as many.
const POOL: u64 = PostgresSettings::POOL as u64;

/// A call an hour ago: housekeeping keeps the row.
const EARLIER: u64 = NOW - 3_600;

/// One measurement.
struct Measured {
    per_second: f64,
    /// The decisions of a transaction.
    batch: f64,
    /// The waits of the callers, sorted.
    waits: Vec<Duration>,
}

/// Everything that is measured.
pub(crate) async fn all(folder: &Path) {
    if std::env::var_os("PORTVAKT_BENCH_POSTGRES").is_none() {
        println!("PostgreSQL: left out; .ci/postgres.sh starts a server for a command");
        return;
    }
    decisions(folder).await;
    psus(folder, env("STATE_PSUS", 100_000)).await;
    sizes(env("STATE_KEYS", 100_000)).await;
}

async fn decisions(folder: &Path) {
    let config = database::schema().await.unwrap();
    let in_postgres = with_postgres(folder, &config);
    let gateways: Vec<_> = (0..GATEWAYS)
        .map(|_| Arc::new(StateStore::open(&in_postgres).unwrap()))
        .collect();
    let decided: u64 = ROUNDS.iter().map(|(_, decisions)| decisions).sum();
    let keys = 5 * REPEATS * decided;
    fill_quotas(&config, keys).await;
    let in_file = settings(folder, "beside.db");
    drop(StateStore::open(&in_file).unwrap());
    let mut hashes: Vec<QuotaHash> = (0..keys).map(hash).collect();
    hashes.sort_unstable();
    fill(&in_file.file, &hashes, |sql, hash| {
        sql.prepare_cached("INSERT INTO quota VALUES (?1, ?2, NULL, NULL, NULL)")
            .unwrap()
            .execute((hash.stored_bytes(), EARLIER as i64))
            .unwrap();
    });
    let sqlite = [Arc::new(StateStore::open(&in_file).unwrap())];
    let mut links = Vec::new();
    for _ in 0..GATEWAYS * POOL {
        links.push(Arc::new(Bare::open(&config).await));
    }
    let keys = Arc::new(AtomicU64::new(0));
    for (callers, decisions) in ROUNDS {
        let mut measured: [Vec<Measured>; 5] = Default::default();
        for _ in 0..REPEATS {
            let of_three = callers.max(GATEWAYS);
            let one = &links[..callers.min(POOL) as usize];
            let three = &links[..of_three.min(GATEWAYS * POOL) as usize];
            let next = [
                together(&sqlite, &keys, callers, decisions).await,
                bare(one, &keys, callers, decisions).await,
                together(&gateways[..1], &keys, callers, decisions).await,
                bare(three, &keys, of_three, decisions).await,
                together(&gateways, &keys, of_three, decisions).await,
            ];
            for (all, next) in measured.iter_mut().zip(next) {
                all.push(next);
            }
        }
        let [sqlite, of_one, one, of_three, three] = measured;
        println!("{callers} callers:");
        report("SQLite", &sqlite, None);
        report("the bare loop, as one gateway", &of_one, None);
        report("one gateway", &one, Some(&of_one));
        report("the bare loop, as three gateways", &of_three, None);
        report("three gateways", &three, Some(&of_three));
    }
}

/// Prints the median of each figure, and that of the quotients of measurements that followed each other.
fn report(name: &str, measured: &[Measured], beside: Option<&[Measured]>) {
    let wait = |part: usize| {
        let waits = measured
            .iter()
            .map(|one| micros(one.waits[one.waits.len() * part / 100]));
        median(waits.collect())
    };
    let rate = median(measured.iter().map(|one| one.per_second).collect());
    let share = beside.map_or_else(String::new, |beside| {
        let pairs = measured.iter().zip(beside);
        let shares: Vec<f64> = pairs
            .map(|(one, bare)| one.per_second / bare.per_second)
            .collect();
        format!("; {:.2} of the bare loop", median(shares))
    });
    println!(
        "  {name}: {rate:.0} decisions a second, {:.0} a transaction; wait p50 {:.0} µs, p99 {:.0} µs{share}",
        median(measured.iter().map(|one| one.batch).collect()),
        wait(50),
        wait(99),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Concurrent callers of some gateways, in turn.
async fn together(
    stores: &[Arc<StateStore>],
    keys: &Arc<AtomicU64>,
    callers: u64,
    decisions: u64,
) -> Measured {
    let batches = || {
        stores
            .iter()
            .map(|store| store.counters().batches())
            .sum::<u64>()
    };
    let before = batches();
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for (_, store) in (0..callers).zip(stores.iter().cycle()) {
        let (store, keys) = (Arc::clone(store), Arc::clone(keys));
        tasks.spawn(async move {
            let mut waits = Vec::new();
            for _ in 0..decisions / callers {
                let (began, key) = (Instant::now(), keys.fetch_add(1, Ordering::Relaxed));
                let _ = store.commit(super::asked(key)).await.unwrap();
                waits.push(began.elapsed());
            }
            waits
        });
    }
    Measured::of(began, tasks, || batches() - before).await
}

/// The same decisions by as many transactions at once as there are connections.
async fn bare(
    links: &[Arc<Bare>],
    keys: &Arc<AtomicU64>,
    callers: u64,
    decisions: u64,
) -> Measured {
    let batch = callers / links.len() as u64;
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for link in links {
        let (link, keys) = (Arc::clone(link), Arc::clone(keys));
        tasks.spawn(async move {
            let mut waits = Vec::new();
            for _ in 0..decisions / callers {
                let began = Instant::now();
                let from = keys.fetch_add(batch, Ordering::Relaxed);
                link.commit(from, batch).await;
                waits.extend((0..batch).map(|_| began.elapsed()));
            }
            waits
        });
    }
    Measured::of(began, tasks, || decisions / batch).await
}

impl Measured {
    async fn of(
        began: Instant,
        tasks: JoinSet<Vec<Duration>>,
        transactions: impl Fn() -> u64,
    ) -> Self {
        let mut waits = tasks.join_all().await.concat();
        let per_second = waits.len() as f64 / began.elapsed().as_secs_f64();
        let batch = waits.len() as f64 / transactions() as f64;
        waits.sort_unstable();
        Self {
            per_second,
            batch,
            waits,
        }
    }
}

/// The statements of a transaction, without anything that decides or waits for callers.
struct Bare {
    client: Client,
    load: Statement,
    set: Statement,
    attempt: Statement,
}

impl Bare {
    async fn open(config: &Config) -> Self {
        let client = connect(config).await;
        let load = "SELECT key, a, b, c, d FROM quota WHERE key = ANY($1) ORDER BY key FOR UPDATE";
        let set = "UPDATE quota SET a = n.a, b = n.b, c = n.c, d = n.d
            FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS n (key, a, b, c, d)
            WHERE quota.key = n.key";
        let attempt = "INSERT INTO attempt (id, committed) VALUES ($1, true)";
        Self {
            load: client.prepare(load).await.unwrap(),
            set: client.prepare(set).await.unwrap(),
            attempt: client.prepare(attempt).await.unwrap(),
            client,
        }
    }

    async fn commit(&self, from: u64, batch: u64) {
        let mut keys: Vec<Uuid> = (from..from + batch).map(id).collect();
        keys.sort_unstable();
        let column = |call: Option<u64>| vec![call.map(|call| call as i64); keys.len()];
        let [a, b, c, d] = [Some(EARLIER), Some(NOW), None, None].map(column);
        let attempt = Uuid::new_v4();
        let client = &self.client;
        let load = async { client.query(&self.load, &[&keys]).await };
        let (_, found) = tokio::try_join!(biased; client.batch_execute("BEGIN"), load).unwrap();
        assert_eq!(found.len(), keys.len());
        let set = async { client.execute(&self.set, &[&keys, &a, &b, &c, &d]).await };
        let attempt = async { client.execute(&self.attempt, &[&attempt]).await };
        let commit = client.batch_execute("COMMIT");
        tokio::try_join!(biased; set, attempt, commit).unwrap();
    }
}

fn with_postgres(folder: &Path, config: &Config) -> StateSettings {
    let mut settings = settings(folder, "unused.db");
    // A key for each schema.
    settings.hash_key = folder.join(format!("{}.key", Uuid::new_v4()));
    settings.engine = PostgresSettings::new(config.clone()).into();
    settings
}

async fn fill_quotas(config: &Config, count: u64) {
    let statement = "INSERT INTO quota (key, a) SELECT key, $2 FROM unnest($1::uuid[]) AS key";
    let client = filler(config).await;
    for from in (0..count).step_by(10_000) {
        let keys: Vec<Uuid> = (from..count.min(from + 10_000)).map(id).collect();
        client
            .execute(statement, &[&keys, &(EARLIER as i64)])
            .await
            .unwrap();
    }
    for statement in ["VACUUM ANALYZE quota", "CHECKPOINT"] {
        client.batch_execute(statement).await.unwrap();
    }
}

/// A connection that writes many rows, without waiting for the standby.
async fn filler(config: &Config) -> Client {
    let client = connect(config).await;
    client
        .batch_execute("SET synchronous_commit = off")
        .await
        .unwrap();
    client
}

fn id(number: u64) -> Uuid {
    let key: QuotaHash = hash(number);
    Uuid::from_bytes(*key.stored_bytes())
}

/// Ten PSUs and many: the cost of one in memory, and the memory of a gateway through which more PSUs pass than it keeps.
async fn psus(folder: &Path, many: u64) {
    let mut stores = Vec::new();
    for known in [10, many] {
        let config = database::schema().await.unwrap();
        let store = Arc::new(StateStore::open(&with_postgres(folder, &config)).unwrap());
        fill_psus(&config, &store, known).await;
        stores.push((known, store));
    }
    let mut warm = [Vec::new(), Vec::new()];
    for round in 0..42 {
        for ((known, store), warm) in stores.iter().zip(&mut warm) {
            let took = look_up(store, *known, 50_000, true).await;
            if round > 1 {
                warm.push(micros(took));
            }
        }
    }
    let warm = warm.map(median);
    println!(
        "a PSU in memory: {:.2} µs with ten PSUs, {:.2} µs with {many}; from the database {:?}",
        warm[0],
        warm[1],
        look_up(&stores[1].1, many, 2_000, false).await,
    );
    let (before, began) = (resident(), Instant::now());
    let passing = (5 * StateSettings::PSUS).min(many);
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        let store = Arc::clone(&stores[1].1);
        tasks.spawn(async move {
            let tpp = tpp();
            for number in (task..passing).step_by(64) {
                let psu = Known::by_bank(PsuId::from_bits((number * (many / passing)).into()));
                let found = store.psu(PsuRef { tpp: &tpp, psu }).await;
                assert!(found.unwrap().is_some());
            }
        });
    }
    tasks.join_all().await;
    println!(
        "{passing} of {many} PSUs passed through a gateway that keeps {}: {:.0} a second, {} KiB of memory more",
        StateSettings::PSUS,
        passing as f64 / began.elapsed().as_secs_f64(),
        resident().saturating_sub(before),
    );
}

async fn fill_psus(config: &Config, store: &StateStore, count: u64) {
    let client = filler(config).await;
    let psus = "INSERT INTO psu SELECT key, $2, false, $3, key, $3 FROM unnest($1::uuid[]) AS key";
    let contexts =
        "INSERT INTO context SELECT key, '', $2, $2, NULL FROM unnest($1::uuid[]) AS key";
    let psus = client.prepare(psus).await.unwrap();
    let contexts = client.prepare(contexts).await.unwrap();
    for from in (0..count).step_by(10_000) {
        let hashes = (from..count.min(from + 10_000)).map(|psu| {
            store
                .keys()
                .psu(Known::by_bank(PsuId::from_bits(psu.into())))
        });
        let keys: Vec<Uuid> = hashes
            .map(|hash| Uuid::from_bytes(*hash.stored_bytes()))
            .collect();
        let now = NOW as i64;
        client.execute(&psus, &[&keys, &TPP, &now]).await.unwrap();
        client.execute(&contexts, &[&keys, &now]).await.unwrap();
    }
    client.batch_execute("VACUUM ANALYZE").await.unwrap();
    print_sizes(&client, &["psu", "context"]).await;
}

/// The size of each table, whose keys come in random order.
async fn sizes(rows: u64) {
    let config = database::schema().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    drop(StateStore::open(&with_postgres(folder.path(), &config)).unwrap());
    let client = filler(&config).await;
    let tables = [
        ("quota", "0, 0, 0, 0"),
        ("page", "0, 0"),
        ("request", "0"),
        ("token", "gen_random_uuid(), 0"),
    ];
    for (table, columns) in tables {
        let fill = format!(
            "INSERT INTO {table} SELECT gen_random_uuid(), {columns} FROM generate_series(1, {rows})"
        );
        client.batch_execute(&fill).await.unwrap();
        print_sizes(&client, &[table]).await;
    }
}

async fn print_sizes(client: &Client, tables: &[&str]) {
    for table in tables {
        let size = format!("SELECT pg_total_relation_size('{table}'), count(*) FROM {table}");
        let row = client.query_one(&size, &[]).await.unwrap();
        let (bytes, rows): (i64, i64) = (row.get(0), row.get(1));
        let each = bytes as f64 / rows as f64;
        println!(
            "table {table}, {rows} rows: {each:.0} bytes a row with its index; 72 million rows: {:.1} GB",
            each * 72e6 / 1e9
        );
    }
}
