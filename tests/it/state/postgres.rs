//! PostgreSQL: commits whose outcome is unknown, a database that is not heard, other databases, and moving from a file.

/// Servers that fail in other ways than by a lost connection.
mod failures;
/// Two gateways, end to end.
mod gateways;
/// Behind a pool of connections.
mod pooled;
/// A state that is restored or replaced.
mod replaced;
/// Standbys, races and lost connections.
mod standby;

use super::{
    BEGIN, DAY, Data, OTHER, PostgresSchema, TPP, WITHOUT_CUSTOMERS, at, call, database, finish,
    held, request, user, who,
};
use crate::harness::{
    Call, Gate, LIMIT, Lines, Lost, Postgres, Protocol, Proxy, accepted, ended, eventually,
    eventually_async, outcome, postgres, refused, write_private,
};
use portvakt::interface::{headers::CorporateId, operations::Environment};
use portvakt::state::{
    ClaimRequest, CustomerKey, Decision, Known, OpenFault, PlantedFault, PostgresSettings,
    Retention, StaleReads, StateSettings, StateStore, Withdraw,
};
use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// A schema behind a proxy.
struct Behind {
    settings: StateSettings,
    proxy: Proxy,
    _folder: TempDir,
}

impl Behind {
    /// `None` where PostgreSQL is not installed.
    fn new() -> Option<Self> {
        let server = postgres()?;
        let proxy = Proxy::start(&server.socket());
        let user = server.schema().get_user().unwrap().to_owned();
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(proxy.address().port())
            .user(user)
            .dbname("postgres");
        let folder = tempfile::tempdir().unwrap();
        let mut settings = StateSettings::new("unused.db", folder.path().join("hash.key"));
        settings.engine = PostgresSettings::new(config).into();
        Some(Self {
            settings,
            proxy,
            _folder: folder,
        })
    }

    fn user(&self) -> &str {
        user(&self.settings)
    }

    fn postgres(&mut self) -> &mut PostgresSettings {
        database(&mut self.settings)
    }

    fn open(&self) -> StateStore {
        StateStore::open(&self.settings).unwrap()
    }
}

/// The decision, asked for again where the connection ended before anything was written.
async fn decide(store: &StateStore, asked: ClaimRequest) -> Decision {
    eventually_async("the state decides", async || store.commit(asked).await).await
}

/// The calls that are left after one more.
async fn left(store: &StateStore, asked: ClaimRequest) -> u8 {
    held(decide(store, asked).await).left().unwrap().calls
}

/// Calls and request ids whose commits are lost count exactly once. Returns the first difference.
async fn count_lost_commits(behind: &Behind) -> Result<(), String> {
    let store = behind.open();
    for (key, lost) in (0..).zip([Lost::Answer, Lost::Commit].repeat(4)) {
        behind.proxy.lose(lost);
        for expected in [3, 2] {
            let found = left(&store, call(key, BEGIN)).await;
            if found != expected {
                return Err(format!("{lost:?}: {found} calls left, not {expected}"));
            }
        }
        behind.proxy.lose(lost);
        let asked = request(key, Retention::Day, BEGIN);
        let decision = decide(&store, asked).await;
        if !matches!(decision, Decision::Held(_)) {
            return Err(format!("{lost:?}: a new id: {decision:?}"));
        }
    }
    // Another gateway knows all of it.
    let other = behind.open();
    for key in 0..8 {
        let decision = other
            .commit(request(key, Retention::Day, BEGIN))
            .await
            .unwrap();
        if !matches!(decision, Decision::Replayed) {
            return Err(format!("a used id: {decision:?}"));
        }
        let found = left(&other, call(key, BEGIN)).await;
        if found != 1 {
            return Err(format!("{found} calls left at another gateway, not 1"));
        }
    }
    if store.counters().unclear == 0 {
        return Err("no commit was lost".to_owned());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_lost_counts_once() {
    let Some(behind) = Behind::new() else { return };
    count_lost_commits(&behind).await.unwrap();
}

/// The check above fails where the gateway answers before the commit, and where it decides again without asking.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_faults_of_commits_are_found() {
    for fault in [PlantedFault::AnswerBeforeCommit, PlantedFault::BlindRetry] {
        let Some(mut behind) = Behind::new() else {
            return;
        };
        behind.postgres().planted = Some(fault);
        let found = count_lost_commits(&behind).await;
        println!("{fault:?}: {found:?}");
        assert!(found.is_err(), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_heard_ends_answers_from_memory() {
    for (reads, answers) in [(StaleReads::Refuse, false), (StaleReads::Allow, true)] {
        let Some(mut behind) = Behind::new() else {
            return;
        };
        behind.postgres().reads = reads;
        let store = behind.open();
        store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
        store.finish(finish(2, 2, "s", BEGIN)).await.unwrap();
        assert!(has_session(&store, 2).await.unwrap());
        // The store drops the row once more when it reads its own change in the log, where this later one follows.
        let other = behind.open();
        other.withdraw(who(2), Withdraw::Session).await.unwrap();
        drop(other);
        eventually_async("the log is read", async || {
            !has_session(&store, 2).await.unwrap()
        })
        .await;
        assert!(store.psu(who(1)).await.unwrap().is_some());
        behind.proxy.freeze(true);
        eventually_async("the database is not heard", async || {
            store.health(super::at(BEGIN)).is_err()
        })
        .await;
        assert_eq!(store.psu(who(1)).await.is_ok(), answers, "{reads:?}");
        // What would need the database is refused, and claims nothing.
        assert!(store.commit(call(1, BEGIN)).await.is_err());
        behind.proxy.freeze(false);
        eventually_async("it is heard", async || store.health(super::at(BEGIN))).await;
        eventually_async("a PSU is found", async || store.psu(who(1)).await).await;
    }
}

/// Whether a PSU has a session, as this store knows.
async fn has_session(store: &StateStore, psu: u128) -> Result<bool, String> {
    let psu = store
        .psu(who(psu))
        .await
        .map_err(|fault| fault.to_string())?;
    Ok(psu.ok_or("no PSU")?.session.is_some())
}

/// Waits until a store knows that a PSU has a session, or none.
async fn knows_session(store: &StateStore, is_there: bool) {
    let what = format!("a session that is there: {is_there}");
    eventually_async(&what, async || match has_session(store, 1).await {
        Ok(found) if found == is_there => Ok(()),
        other => Err(other),
    })
    .await;
}

/// Connections that end are opened again; a change that another gateway made meanwhile is known then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_after_a_lost_connection() {
    let Some(behind) = Behind::new() else { return };
    let here = behind.open();
    let mut direct = behind.settings.clone();
    let mut server = postgres().unwrap().config();
    server.user(behind.user());
    direct.engine = PostgresSettings::new(server).into();
    let there = StateStore::open(&direct).unwrap();
    for round in 1..4 {
        there
            .finish(finish(round, 1, "s", BEGIN + round))
            .await
            .unwrap();
        knows_session(&here, true).await;
        behind.proxy.freeze(true);
        behind.proxy.cut();
        there.withdraw(who(1), Withdraw::Session).await.unwrap();
        behind.proxy.freeze(false);
        knows_session(&here, false).await;
        let _ = held(decide(&here, call(round, BEGIN)).await);
    }
}

/// The processes of the server whose commit waits for a standby.
const WAITING: &str = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// The standbys that commits wait for from now on, or soon.
fn set_standbys(server: &Postgres, names: &str) {
    server.sql(&format!(
        "ALTER SYSTEM SET synchronous_standby_names = '{names}'"
    ));
    server.reload();
}

/// Two gateways on a server of their own, whose standby is lost.
struct Alone {
    server: Postgres,
    gateways: [Arc<StateStore>; 2],
    _folder: TempDir,
}

impl Alone {
    /// `None` where PostgreSQL is not installed.
    async fn start() -> Option<Self> {
        let server = Postgres::start(5432, "listen_addresses = ''", |_| {})?;
        let folder = tempfile::tempdir().unwrap();
        let mut settings = StateSettings::new("unused.db", folder.path().join("hash.key"));
        let mut postgres = PostgresSettings::new(server.schema());
        // A payment waits for the standby until the test says so, however long that takes.
        postgres.patience = 2 * LIMIT;
        settings.engine = postgres.into();
        let alone = Self {
            gateways: [(); 2].map(|()| Arc::new(StateStore::open(&settings).unwrap())),
            server,
            _folder: folder,
        };
        alone.wait_for("lost").await;
        Some(alone)
    }

    /// From now on commits wait for this standby; "" for none.
    async fn wait_for(&self, standby: &str) {
        set_standbys(&self.server, standby);
        if standby.is_empty() {
            return;
        }
        // The checkpointer decides whether commits wait, and reads the settings in its own time: until one waits.
        let mut probe = None;
        eventually_async("a commit waits for the standby", async || {
            if probe
                .as_ref()
                .is_none_or(|it: &JoinHandle<_>| it.is_finished())
            {
                let config = self.server.config();
                let write = "SELECT pg_logical_emit_message(true, 'probe', '')";
                probe = Some(tokio::task::spawn_blocking(move || {
                    Postgres::sql_on(&config, write).unwrap();
                }));
            }
            !self.server.sql(WAITING).is_empty()
        })
        .await;
        // The one that waited may have been a gateway's: the probe is cancelled whenever it waits, until it ends.
        let probe = probe.unwrap();
        let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%''probe''%'";
        eventually_async("the probe ends", async || {
            self.server.sql(cancel);
            probe.is_finished()
        })
        .await;
        outcome("the probe", probe).await;
    }

    /// A payment, whose commit waits for the standby.
    async fn payment(&self) -> JoinHandle<bool> {
        let gateway = Arc::clone(&self.gateways[0]);
        let payment = tokio::spawn(async move {
            let decision = gateway.commit(request(1, Retention::Day, BEGIN)).await;
            decision.is_ok_and(|decision| matches!(decision, Decision::Held(_)))
        });
        eventually_async("the payment waits for the standby", async || {
            !self.server.sql(WAITING).is_empty()
        })
        .await;
        payment
    }
}

/// REP-1: with `replay.scope: all` the id of a GET is known to all gateways, and does not wait for the standby as the id of a payment does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_of_a_safe_request_does_not_wait_for_the_standby() {
    let Some(alone) = Alone::start().await else {
        return;
    };
    let payment = alone.payment().await;
    for id in 2..20 {
        let safe = request(id, Retention::Date, BEGIN);
        let _ = held(alone.gateways[0].commit(safe).await.unwrap());
        for gateway in &alone.gateways {
            let again = gateway.commit(safe).await.unwrap();
            assert!(matches!(again, Decision::Replayed));
        }
    }
    assert!(!payment.is_finished());
    alone.wait_for("").await;
    assert!(outcome("the payment", payment).await);
}

/// A wait for the standby that is cancelled ends with a warning (01000), and the row is committed here alone: nobody is told so before
/// the standby has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_wait_for_the_standby_is_no_commit() {
    let Some(alone) = Alone::start().await else {
        return;
    };
    let payment = alone.payment().await;
    for _ in 0..5 {
        let cancel = format!("SELECT pg_cancel_backend(pid) FROM ({WAITING}) AS waiting");
        eventually_async("a wait is cancelled", async || {
            !alone.server.sql(&cancel).is_empty()
        })
        .await;
    }
    eventually_async("the gateway is not sure", async || {
        alone.gateways[0].counters().unclear > 0
    })
    .await;
    assert!(!payment.is_finished());
    alone.wait_for("").await;
    assert!(outcome("the payment", payment).await);
    let again = alone.gateways[1].commit(request(1, Retention::Day, BEGIN));
    assert!(matches!(again.await.unwrap(), Decision::Replayed));
}

/// All later tables and columns are added to a database of schema 1, and nothing else changes. A database of another key is left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_schema_is_brought_up_to_date() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let user = data.user();
    let store = data.open();
    let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    server.sql(&format!(
        "SET search_path = {user}; {WITHOUT_CUSTOMERS}
        DROP VIEW {user}.tpp_blocks, {user}.psu_consents; DROP TABLE {user}.block; ALTER TABLE {user}.context DROP COLUMN origin;
        UPDATE {user}.meta SET value = '1' WHERE name = 'schema'"
    ));
    let mut other = data.0.clone();
    other.hash_key = data.0.hash_key.with_file_name("other.key");
    assert!(StateStore::open(&other).is_err());
    // A trial migrates nothing, and succeeds.
    StateStore::try_open(&data.0).unwrap();
    // Gateways of the version before use it: neither a tool, nor a process that takes over, nor a start on another machine migrates it.
    for open in [StateStore::open, StateStore::open_and_migrate] {
        let refused = open(&data.0).unwrap_err();
        assert!(matches!(refused, OpenFault::PostgresEarlier), "{refused}");
    }
    drop(store);
    let refused = StateStore::open(&data.0).unwrap_err();
    assert!(matches!(refused, OpenFault::PostgresEarlier), "{refused}");
    let schema = server.sql(&format!(
        "SELECT value FROM {user}.meta WHERE name = 'schema'"
    ));
    assert_eq!(schema, ["1"]);
    let store = data.open();
    assert_eq!(left(&store, call(1, BEGIN + 1)).await, 2);
    assert!(store.list_blocks().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_schema_or_key_is_refused() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let user = data.user();
    drop(data.open());
    let fault = |settings: &StateSettings| StateStore::open(settings).unwrap_err().to_string();
    let mut other = data.0.clone();
    other.hash_key = data.0.hash_key.with_file_name("other.key");
    assert!(
        fault(&other).contains("copy the key of the other gateways"),
        "{}",
        fault(&other)
    );
    assert!(!other.hash_key.exists());
    std::fs::copy(&data.0.hash_key, &other.hash_key).unwrap();
    let key = std::fs::read(&other.hash_key).unwrap();
    std::fs::write(
        &other.hash_key,
        key.iter().map(|byte| !byte).collect::<Vec<_>>(),
    )
    .unwrap();
    assert!(
        fault(&other).contains("is not the hash key"),
        "{}",
        fault(&other)
    );
    server.sql(&format!(
        "UPDATE {user}.meta SET value = '99' WHERE name = 'schema'"
    ));
    assert!(
        fault(&data.0).contains("has schema 99"),
        "{}",
        fault(&data.0)
    );
    let read_only = PostgresSchema::new();
    let owner = read_only.user();
    server.sql(&format!(
        "ALTER ROLE {owner} SET default_transaction_read_only = on"
    ));
    assert!(fault(&read_only.0).contains("the database is read-only"));
    let mut strict = PostgresSchema::new();
    database(&mut strict.0).require_sync = true;
    // `portvakt check` finds it too.
    let tried = StateStore::try_open(&strict.0).unwrap_err().to_string();
    for refused in [fault(&strict.0), tried] {
        assert!(
            refused.contains("require_sync: synchronous_standby_names is empty"),
            "{refused}"
        );
    }
    let mut missing = PostgresSchema::new();
    database(&mut missing.0).server.user("nobody-knows");
    assert!(
        fault(&missing.0).contains("does not exist"),
        "{}",
        fault(&missing.0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_copied_into_the_database() {
    if postgres().is_none() {
        return;
    }
    let database = PostgresSchema::new();
    let user = database.user();
    let host = postgres().unwrap().folder().display();
    let gate = Gate::builder()
        .state(&format!(
            "postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}"
        ))
        .for_program();
    let file = |name: &str| gate.folder().join("state").join(name);
    let store = StateStore::open(&StateSettings::new(file("portvakt.db"), file("hash.key")));
    let store = store.unwrap();
    let customer = CustomerKey::parse("0042").unwrap();
    for key in 0..20 {
        let _ = held(store.commit(call(key, BEGIN + key)).await.unwrap());
        let _ = held(
            store
                .commit(request(key, Retention::Day, BEGIN))
                .await
                .unwrap(),
        );
        let mut finished = finish(key, u128::from(key), "s", BEGIN + key);
        finished.completion.as_mut().unwrap().customer = Some(&customer);
        store.finish(finished).await.unwrap();
        let psu = who(u128::from(key)).psu;
        store.note_use(psu, None, at(BEGIN + key)).await.unwrap();
    }
    let run = |command: &str| {
        Command::new(env!("CARGO_BIN_EXE_portvakt"))
            .args(["state", command, "--config"])
            .arg(gate.folder().join("gateway.yaml"))
            .output()
            .unwrap()
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let refused = run("copy");
    assert!(text(&refused.stderr).contains("is in use"), "{refused:?}");
    let stream = store.events(None, 1_000).await.unwrap();
    drop(store);
    // An empty database, as one with a wrong name: only `copy` makes tables, and only with the key of the file.
    let is_empty = || {
        let tables = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{user}'");
        postgres().unwrap().sql(&tables) == ["0"]
    };
    let refuses = |command: &str, part: &str| {
        let refused = run(command);
        assert!(!refused.status.success(), "{refused:?}");
        assert!(text(&refused.stderr).contains(part), "{refused:?}");
        assert!(is_empty(), "{command}: {part}");
    };
    refuses("accept-clock", "has no tables of Portvakt");
    let key = std::fs::read(file("hash.key")).unwrap();
    let other: Vec<u8> = key.iter().map(|byte| !byte).collect();
    std::fs::write(file("hash.key"), &other).unwrap();
    refuses("copy", "is not the key that");
    std::fs::remove_file(file("hash.key")).unwrap();
    for (command, part) in [
        ("copy", "is missing, and"),
        ("accept-clock", "has no tables of Portvakt"),
    ] {
        refuses(command, part);
        assert!(!file("hash.key").exists());
    }
    write_private(&file("hash.key"), &key);
    let mut settings = database.0.clone();
    settings.hash_key = file("hash.key");
    let gateway = StateStore::open(&settings).unwrap();
    let refused = run("copy");
    let said = text(&refused.stderr);
    assert!(said.contains("a gateway uses the database"), "{refused:?}");
    drop(gateway);
    let copied = run("copy");
    let said = text(&copied.stdout);
    assert!(copied.status.success(), "{copied:?}");
    for table in ["psu", "context", "quota", "request", "token", "event"] {
        let line = said.lines().find(|line| line.starts_with(table)).unwrap();
        assert!(line.contains(" 20 rows, SHA-256 "), "{line}");
    }
    let again = run("copy");
    assert!(text(&again.stderr).contains("has rows"), "{again:?}");
    // The database is the file.
    let store = StateStore::open(&settings).unwrap();
    // CTL-3: the stream goes on, with its cursors.
    assert_eq!(store.events(None, 1_000).await.unwrap(), stream);
    for key in 0..20 {
        assert_eq!(left(&store, call(key, BEGIN + 30)).await, 2);
        let decision = store
            .commit(request(key, Retention::Day, BEGIN))
            .await
            .unwrap();
        assert!(matches!(decision, Decision::Replayed));
        let psu = store.psu(who(u128::from(key))).await.unwrap().unwrap();
        let session = psu.session.unwrap();
        assert_eq!(
            session.id,
            store.keys().session(&TPP, &super::session_id("s"))
        );
        assert_eq!(psu.contexts[0].used, Some(at(BEGIN)));
    }
    let found = store.accesses_of(&customer).await.unwrap();
    assert_eq!(found.accesses.len(), 20);
    // A clock that stepped back is accepted in the database too.
    let back = BEGIN - 2 * DAY;
    assert!(store.commit(call(1, back)).await.is_err());
    eventually_async(
        "the database says that the clock stepped back",
        async || {
            let stepped_back = format!("SELECT stepped_back FROM {user}.clock");
            postgres().unwrap().sql(&stepped_back) == ["t"]
        },
    )
    .await;
    assert!(store.counters().clock_stepped_back);
    // SCA-13: times ahead move back, and what is missing stays so: no consent and no session comes of it.
    let sql = |query: &str| postgres().unwrap().sql(query);
    sql(&format!(
        "UPDATE {user}.context SET last_sca = 4000000000, consent = NULL, accounts = NULL;
         UPDATE {user}.psu SET last_sca = 4000000000, session = NULL, completed = NULL"
    ));
    let accepted = run("accept-clock");
    assert!(
        text(&accepted.stdout).contains("is taken for right"),
        "{accepted:?}"
    );
    for (what, rows) in [
        ("context WHERE consent IS NOT NULL", "0"),
        ("psu WHERE completed IS NOT NULL", "0"),
        ("context WHERE last_sca < 4000000000", "20"),
        ("psu WHERE last_sca < 4000000000", "20"),
    ] {
        let query = format!("SELECT count(*) FROM {user}.{what}");
        assert_eq!(sql(&query), [rows], "{what}");
    }
    eventually_async("the gateway knows", async || {
        !store.counters().clock_stepped_back
    })
    .await;
}

/// SCA-18: an operator deletes a PSU without its contexts. Another TPP that is bound to it later does not get the consent, and the same
/// context can be written again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_without_a_psu_count_no_more() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let user = data.user();
    let store = data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    drop(store);
    for (token, corporate) in [
        (2, None),
        (3, Some(Known::by_bank(CorporateId::from_bits(7)))),
    ] {
        server.sql(&format!("DELETE FROM {user}.psu"));
        assert_eq!(
            server.sql(&format!("SELECT count(*) FROM {user}.context")),
            ["1"]
        );
        let store = data.open();
        let mut theirs = finish(token, 1, "t", BEGIN + 1);
        let completion = theirs.completion.as_mut().unwrap();
        completion.who.tpp = &OTHER;
        completion.corporate = corporate;
        store.finish(theirs).await.unwrap();
        let mut who = who(1);
        who.tpp = &OTHER;
        let psu = store.psu_now(who).await.unwrap().unwrap();
        let of = psu.contexts.iter().map(|context| context.corporate);
        let expected = corporate.map(|corporate| store.keys().corporate(corporate));
        assert_eq!(of.collect::<Vec<_>>(), [expected]);
    }
}

/// The changes that the log has in [`a_long_change_log_is_not_read_again_and_again`].
const LOGGED: u32 = 300_000;

/// A long log, and a transaction that does not end: the log is not read again and again, and a change is known meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_change_log_is_not_read_again_and_again() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let user = data.user();
    let [here, there] = [(); 2].map(|()| data.open());
    let endless = server.begin("SELECT pg_current_xact_id()");
    server.sql(&format!(
        "INSERT INTO {user}.change (kind, key) SELECT 0, gen_random_uuid() FROM generate_series(1, {LOGGED})"
    ));
    let read = || -> u64 {
        let read = server.sql(&format!(
            "SELECT coalesce(idx_tup_fetch, 0) FROM pg_stat_all_tables WHERE relname = 'change' AND schemaname = '{user}'"
        ));
        read[0].parse().unwrap()
    };
    eventually_async("it is heard", async || here.health(super::at(BEGIN))).await;
    // Each gateway reads the log with each of its proofs.
    let proofs = || {
        let of_both =
            format!("SELECT id || ' ' || at FROM {user}.heartbeat ORDER BY at DESC LIMIT 2");
        server.sql(&of_both)
    };
    let reads_again = async || {
        let before = proofs();
        eventually_async("both gateways read the log again", async || {
            proofs().iter().all(|proof| !before.contains(proof))
        })
        .await;
    };
    for round in 1..4 {
        let now = BEGIN + round;
        here.finish(finish(round, 1, "s", now)).await.unwrap();
        knows_session(&there, true).await;
        here.withdraw(who(1), Withdraw::Session).await.unwrap();
        knows_session(&there, false).await;
        for _ in 0..3 {
            reads_again().await;
        }
        assert!(there.health(super::at(now)).is_ok());
    }
    // A connection reports its statistics once a second at most: the last second, which is not the first, may be missing.
    drop(endless);
    // Once by each gateway, whatever plan the server chooses.
    println!("{} rows of the log were read", read());
    assert!(read() < 3 * u64::from(LOGGED));
}

/// The rows of the file that is copied in [`an_interrupted_copy_changes_nothing`].
const COPIED: u32 = 250_000;

/// A copy that is killed, or that loses its database, leaves the database empty and the file as it was, and can be started again.
#[test]
fn an_interrupted_copy_changes_nothing() {
    let Some(behind) = Behind::new() else { return };
    let (user, port) = (behind.user(), behind.proxy.address().port());
    let gate = Gate::builder()
        .state(&format!(
            "postgres: {{url: 'postgres://{user}@127.0.0.1:{port}/postgres'}}"
        ))
        .for_program();
    let file = |name: &str| gate.folder().join("state").join(name);
    drop(StateStore::open(&StateSettings::new(file("portvakt.db"), file("hash.key"))).unwrap());
    let sql = rusqlite::Connection::open(file("portvakt.db")).unwrap();
    sql.execute_batch(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {COPIED})
         INSERT INTO request SELECT randomblob(16), {BEGIN} FROM n"
    ))
    .unwrap();
    drop(sql);
    let before = std::fs::read(file("portvakt.db")).unwrap();
    let copy = || {
        let mut copy = Command::new(env!("CARGO_BIN_EXE_portvakt"));
        copy.args(["state", "copy", "--config"])
            .arg(gate.folder().join("gateway.yaml"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        copy
    };
    let rows = || {
        postgres()
            .unwrap()
            .sql(&format!("SELECT count(*) FROM {user}.request"))
    };
    for (step, is_killed) in [("written", true), ("read back", true), ("written", false)] {
        let mut copying = copy().spawn().unwrap();
        let lines = Lines::of(copying.stdout.take().unwrap());
        let progress = lines.find(step, |line| line.contains(step));
        println!("{progress:?}");
        assert!(progress.is_some());
        if is_killed {
            copying.kill().unwrap();
        } else {
            behind.proxy.cut();
        }
        assert!(!ended(&mut copying).success());
        let told = copying.wait_with_output().unwrap();
        assert_eq!(is_killed, told.stderr.is_empty(), "{told:?}");
        let committed = lines.find("of a commit", |line| line.contains("committed"));
        assert_eq!(committed, None);
        assert_eq!(rows(), ["0"]);
        assert!(std::fs::read(file("portvakt.db")).unwrap() == before);
    }
    let copied = copy().output().unwrap();
    assert!(copied.status.success(), "{copied:?}");
    assert_eq!(rows(), [COPIED.to_string()]);
}

/// A gateway in front of a database that fails: its answers, `/readyz` and the metric.
#[test]
fn a_gateway_says_that_its_database_fails() {
    let Some(behind) = Behind::new() else { return };
    let (user, port) = (behind.user(), behind.proxy.address().port());
    let gate = Gate::builder()
        .state(&format!(
            "postgres: {{url: 'postgres://{user}@127.0.0.1:{port}/postgres'}}"
        ))
        .start();
    let payment = Call::payment().only(Protocol::Http1);
    let warm = Call::accounts().present().only(Protocol::Http1);
    accepted(&gate, &payment);
    accepted(&gate, &warm);
    // The server commits, and the connection is lost: the payment is forwarded once.
    behind.proxy.lose(Lost::Answer);
    accepted(&gate, &payment);
    gate.eventually_metric("portvakt_state_commits_unclear_total", &[], 1.0);
    // A slow server: answers come later, and nothing is refused.
    behind.proxy.delay(Duration::from_millis(200));
    for call in [&payment, &warm] {
        accepted(&gate, call);
    }
    assert_eq!(gate.control("/readyz").status, 200);
    behind.proxy.cut();
    passes_again(&gate, &payment);
    behind.proxy.delay(Duration::ZERO);
    behind.proxy.freeze(true);
    // Nothing is committed, or the connection is being opened again since the cut.
    readiness(&gate, 503, "state: ");
    for call in [&payment, &warm] {
        refused(&gate, call, 503, "SYSTEM_ERROR", "state-unavailable");
    }
    // The other gateways have the same fault, so a balancer that removed each would have none.
    let local = gate.control("/readyz?local=1");
    assert_eq!(local.status, 200, "{}", local.json());
    assert_eq!(local.json()["shared"]["ready"], false);
    behind.proxy.freeze(false);
    passes_again(&gate, &payment);
    accepted(&gate, &payment);
    accepted(&gate, &warm);
}

/// Waits until a gateway is ready and a call passes. While connections are opened again, what is known of a PSU may be older than a
/// second: then requests are refused (SCA-13).
fn passes_again(gate: &Gate, call: &Call) {
    readiness(gate, 200, "");
    eventually("a call passes again", || {
        let answer = gate.send(call, Protocol::Http1);
        assert!([200, 503].contains(&answer.status), "{}", answer.json());
        (answer.status == 200).then_some(()).ok_or(answer.reason())
    });
}

/// Waits for a status of `/readyz` with a part of a reason, and returns the reasons.
fn readiness(gate: &Gate, status: u16, part: &str) -> String {
    eventually(&format!("/readyz says {status} {part}"), || {
        let answer = gate.control("/readyz");
        let not_well = answer.json()["notWell"].to_string();
        let is_so = answer.status == status && not_well.contains(part);
        is_so.then_some(not_well).ok_or(answer)
    })
}

/// CRT-9: each environment has a database of its own.
//= CRT-9 accepted
//= CRT-9 refused
#[test]
fn a_database_is_that_of_one_environment() {
    let mut data = PostgresSchema::new();
    for (environment, is_taken) in [
        (None, true),
        (Some(Environment::Production), true),
        (Some(Environment::Sandbox), false),
        (Some(Environment::Production), true),
        (None, true),
    ] {
        data.0.environment = environment;
        let tried = StateStore::try_open(&data.0).is_ok();
        let opened = StateStore::open(&data.0).map(drop);
        assert_eq!((tried, opened.is_ok()), (is_taken, is_taken));
        if let Err(fault) = opened {
            let text = fault.to_string();
            assert!(text.contains("of the environment production"), "{text}");
        }
    }
}
