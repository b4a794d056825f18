//! The SQLite file itself.

use super::{
    BEGIN, Data, SqliteFolder, TPP, WITHOUT_CUSTOMERS, at, call, finish, held, next, request, who,
};
use crate::harness::eventually_async;
use portvakt::interface::{headers::CorporateId, operations::Environment};
use portvakt::state::{
    ConsentAccounts, ContextOrigin, Decision, Known, OpenFault, Psu, PsuRef, Retention, StateStore,
};
use std::{
    fs::{self, Permissions},
    io::Read,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::Arc,
};

impl SqliteFolder {
    fn file(&self) -> PathBuf {
        self.settings().file
    }

    fn key(&self) -> PathBuf {
        self.settings().hash_key
    }

    /// The reason of the refusal. The existing files must stay unchanged.
    fn refused(&self) -> String {
        let before = fs::read(self.file()).ok();
        let key = fs::read(self.key()).ok();
        assert!(StateStore::try_open(&self.settings()).is_err());
        let fault = StateStore::open(&self.settings()).unwrap_err().to_string();
        assert_eq!(fs::read(self.file()).ok(), before);
        assert_eq!(fs::read(self.key()).ok(), key);
        fault.replace(&format!("{}/", self.0.path().display()), "")
    }

    async fn with_a_session(&self) {
        let store = self.open();
        store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    }

    pub(super) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn everything_outlives_a_restart() {
    let place = SqliteFolder::new();
    let store = place.open();
    for _ in 0..4 {
        let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    }
    let _ = held(
        store
            .commit(request(2, Retention::Day, BEGIN))
            .await
            .unwrap(),
    );
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let psu = store.psu_now(who(1)).await.unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(
        next(&store.commit(call(1, BEGIN + 1)).await.unwrap()),
        BEGIN + 86_400
    );
    assert!(matches!(
        store
            .commit(request(2, Retention::Day, BEGIN + 1))
            .await
            .unwrap(),
        Decision::Replayed
    ));
    assert_eq!(store.psu(who(1)).await.unwrap(), psu);
}

#[tokio::test]
async fn only_the_owner_reads_the_files() {
    let place = SqliteFolder::new();
    let store = place.open();
    let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    assert_eq!(mode(&place.0.path().join("state")), 0o700);
    let mut files: Vec<_> = fs::read_dir(place.0.path().join("state"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let names: Vec<_> = files
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "hash.key",
            "portvakt.db",
            "portvakt.db-shm",
            "portvakt.db-wal"
        ]
    );
    assert!(files.iter().all(|path| mode(path) == 0o600));
    assert_eq!(fs::metadata(place.key()).unwrap().len(), 32);
}

#[tokio::test]
async fn nothing_personal_stands_in_clear() {
    let place = SqliteFolder::new();
    let psu = 0x1234_5678_9abc_def0_1122_3344_5566_7788_u128;
    let store = place.open();
    let mut finish = finish(1, psu, "a-session-id", BEGIN);
    let accounts = ConsentAccounts::Named(vec!["NO9386011117947".to_owned()]);
    let completion = finish.completion.as_mut().unwrap();
    completion.corporate = Some(Known::by_bank(CorporateId::from_bits(psu + 1)));
    completion.consent = Some(&accounts);
    store.finish(finish).await.unwrap();
    let mut kept = fs::read(place.file()).unwrap();
    kept.extend(fs::read(place.0.path().join("state/portvakt.db-wal")).unwrap());
    let holds = |bytes: &[u8]| kept.windows(bytes.len()).any(|window| window == bytes);
    assert!(holds(TPP.as_bytes()));
    for secret in [
        &psu.to_be_bytes()[..],
        &psu.to_le_bytes(),
        &(psu + 1).to_be_bytes(),
        b"NO9386011117947",
        b"a-session-id",
    ] {
        assert!(!holds(secret));
    }
    let hyphenated = uuid::Uuid::from_u128(psu).to_string();
    assert!(!holds(hyphenated.as_bytes()));
}

#[test]
fn foreign_files_are_refused_and_left_alone() {
    let place = SqliteFolder::new();
    fs::create_dir(place.0.path().join("state")).unwrap();
    let foreign =
        "state/portvakt.db is not a state file of Portvakt; it is left as it is: name another file";
    for content in [
        &b"x"[..],
        &[0; 8_192],
        b"SQLite format 3\0",
        include_bytes!("file.rs"),
    ] {
        fs::write(place.file(), content).unwrap();
        assert_eq!(place.refused(), foreign);
    }
    fs::remove_file(place.file()).unwrap();
    place
        .sql()
        .execute_batch("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
        .unwrap();
    assert_eq!(place.refused(), foreign);
    assert!(!place.key().exists(), "no key is made for a foreign file");
    fs::remove_file(place.file()).unwrap();
    fs::create_dir(place.file()).unwrap();
    assert!(StateStore::open(&place.settings()).is_err());
}

#[tokio::test]
async fn a_later_schema_is_refused() {
    let place = SqliteFolder::new();
    place.with_a_session().await;
    place.sql().pragma_update(None, "user_version", 7).unwrap();
    assert_eq!(
        place.refused(),
        "state/portvakt.db has schema 7, and this version knows 6: run the version that wrote it, or a later one; to go back, restore the copy from before the upgrade (state export)"
    );
}

/// SCA-19: bindings of an earlier version count as made by the bank.
#[tokio::test]
async fn an_earlier_schema_is_brought_up_to_date() {
    let place = SqliteFolder::new();
    place.with_a_session().await;
    let before = place.open().psu(who(1)).await.unwrap().unwrap();
    let schema = include_str!("../../../src/state/sqlite/schema.sql");
    let views = schema.split("CREATE VIEW ").skip(1);
    let views = views.filter(|view| view.starts_with("psu_"));
    let views: String = views.map(|view| format!("CREATE VIEW {view}")).collect();
    let earlier = format!(
        "DROP VIEW tpp_blocks; DROP TABLE block; DROP VIEW psu_sessions; DROP VIEW psu_consents; ALTER TABLE psu DROP COLUMN learned;
         ALTER TABLE context DROP COLUMN origin; {WITHOUT_CUSTOMERS}
         {views} PRAGMA user_version = 1;"
    );
    place.sql().execute_batch(&earlier).unwrap();
    let store = place.open();
    let after = store.psu(who(1)).await.unwrap().unwrap();
    let mut unmarked = Psu::clone(&before);
    for context in &mut unmarked.contexts {
        context.origin = ContextOrigin::Unknown;
    }
    assert_eq!(*after, unmarked);
    assert!(!after.learned && after.session.is_some());
    let views = "SELECT bound_by || ' ' || last_sca FROM psu_sessions";
    let views: String = place.sql().query_row(views, [], |row| row.get(0)).unwrap();
    assert_eq!(views, "bank 2026-01-01T00:00:00Z");
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let place = SqliteFolder::new();
    place.with_a_session().await;
    let whole = fs::read(place.file()).unwrap();
    let mut scrambled = whole.clone();
    scrambled[100..whole.len()].fill(0xa5);
    for damaged in [&whole[..whole.len() / 2], &whole[..100], &scrambled] {
        fs::write(place.file(), damaged).unwrap();
        let fault = place.refused();
        assert!(
            fault.starts_with("state/portvakt.db cannot be used: "),
            "{fault}"
        );
        assert!(
            fault.ends_with("; it is left as it is: restore a backup, or name another file"),
            "{fault}"
        );
    }
    fs::write(place.file(), &whole).unwrap();
    assert!(place.open().psu(who(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn state_and_key_belong_together() {
    let place = SqliteFolder::new();
    place.with_a_session().await;
    let key = fs::read(place.key()).unwrap();
    let write = |bytes: &[u8], mode| {
        let _ = fs::remove_file(place.key());
        fs::write(place.key(), bytes).unwrap();
        fs::set_permissions(place.key(), Permissions::from_mode(mode)).unwrap();
    };
    fs::remove_file(place.key()).unwrap();
    assert_eq!(
        place.refused(),
        "state/hash.key is missing, and state/portvakt.db was made with it: restore the key; without it nothing in the file can be found again"
    );
    write(&[7; 32], 0o600);
    assert_eq!(
        place.refused(),
        "state/hash.key is not the key that state/portvakt.db was made with: restore the key that belongs to it"
    );
    for length in [0, 31, 33] {
        write(&vec![7; length], 0o600);
        assert_eq!(
            place.refused(),
            format!(
                "state/hash.key does not hold hash keys: its {length} bytes are not 32 random ones for each of at most 16 different keys; \
                 restore the file"
            )
        );
    }
    for bad in [0o640, 0o604, 0o644] {
        write(&key, bad);
        assert_eq!(
            place.refused(),
            format!("state/hash.key can be read by others (mode {bad:o}): chmod 600")
        );
    }
    write(&key, 0o400);
    assert!(
        place
            .open()
            .psu(PsuRef {
                tpp: &TPP,
                ..super::who(1)
            })
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_file_that_another_holds_is_refused() {
    let place = SqliteFolder::new();
    place.with_a_session().await;
    let other = place.sql();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(
        place.refused(),
        "state/portvakt.db is locked by another process: end that process, then start again"
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert!(place.open().psu(who(1)).await.unwrap().is_some());
}

#[test]
fn an_empty_file_is_a_new_one() {
    let place = SqliteFolder::new();
    fs::create_dir(place.0.path().join("state")).unwrap();
    fs::write(place.file(), b"").unwrap();
    drop(place.open());
    drop(place.open());
}

#[test]
fn many_may_open_at_once_for_the_first_time() {
    for _ in 0..20 {
        let place = SqliteFolder::new();
        let faults: Vec<OpenFault> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| StateStore::open(&place.settings())))
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap().err())
                .collect()
        });
        assert!(faults.is_empty(), "{faults:?}");
    }
}

/// Another process holds the write lock: the store answers that it is unavailable, and recovers when the lock is released.
#[tokio::test]
async fn a_store_that_cannot_be_written_says_so_and_comes_back() {
    let place = SqliteFolder::new();
    let store = place.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    assert!(store.health(at(BEGIN)).is_ok());
    let other = place.sql();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let fault = store.commit(call(1, BEGIN)).await.unwrap_err().to_string();
    assert!(fault.ends_with("database is locked"), "{fault}");
    assert_eq!(store.health(at(BEGIN)).unwrap_err().to_string(), fault);
    // Reads and memory-only operations go on.
    assert!(store.psu_now(who(1)).await.unwrap().is_some());
    let _ = held(
        store
            .commit(request(5, Retention::Memory, BEGIN))
            .await
            .unwrap(),
    );
    other.execute_batch("ROLLBACK").unwrap();
    // The store recovers without a request.
    eventually_async("it recovers", async || {
        store.health(at(BEGIN)).map_err(|fault| fault.to_string())
    })
    .await;
    let taken = held(store.commit(call(1, BEGIN)).await.unwrap());
    assert_eq!(taken.left().unwrap().calls, 3, "what failed took nothing");
    assert!(store.counters().failed >= 1);
}

#[tokio::test]
async fn a_file_that_is_gone_or_another_is_not_written_nor_read() {
    let place = SqliteFolder::new();
    let store = place.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let moved = place.0.path().join("elsewhere");
    fs::rename(place.file(), &moved).unwrap();
    let fault = store.commit(call(1, BEGIN)).await.unwrap_err().to_string();
    assert!(fault.contains("No such file"), "{fault}");
    assert!(store.psu_now(who(1)).await.is_err());
    assert!(store.health(at(BEGIN)).is_err());
    fs::copy(&moved, place.file()).unwrap();
    let fault = store.commit(call(1, BEGIN)).await.unwrap_err().to_string();
    assert!(
        fault.ends_with("was replaced by another file: restart the gateway to use it"),
        "{fault}"
    );
    fs::rename(&moved, place.file()).unwrap();
    let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    assert!(store.psu_now(who(1)).await.is_ok());
    assert!(store.health(at(BEGIN)).is_ok());
}

#[tokio::test]
async fn memory_that_is_full_refuses_rather_than_forgets() {
    let place = SqliteFolder::new();
    let mut settings = place.settings();
    settings.request_ids_in_memory = 128;
    settings.psus_in_memory = 0;
    settings.refusals_in_memory = 0;
    let store = StateStore::open(&settings).unwrap();
    let mut refused = 0;
    for id in 0..1_000 {
        match store.commit(request(id, Retention::Memory, BEGIN)).await {
            Ok(decision) => drop(held(decision)),
            Err(_) => refused += 1,
        }
    }
    assert!(refused >= 900, "{refused}");
    assert!(matches!(
        store
            .commit(request(0, Retention::Memory, BEGIN + 61))
            .await
            .unwrap(),
        Decision::Replayed
    ));
    // Results are the same without the caches in memory.
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    assert!(store.psu(who(1)).await.unwrap().is_some());
    for _ in 0..4 {
        let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    }
    next(&store.commit(call(1, BEGIN)).await.unwrap());
}

/// Housekeeping runs without a request, by the time that callers give.
#[tokio::test]
async fn what_expired_goes_by_itself() {
    let place = SqliteFolder::new();
    let store = place.open();
    for id in 0..50 {
        let _ = held(
            store
                .commit(request(id, Retention::Day, BEGIN))
                .await
                .unwrap(),
        );
    }
    let _ = held(
        store
            .commit(request(99, Retention::Day, BEGIN + 86_400 + 500))
            .await
            .unwrap(),
    );
    eventually_async("one row is left", async || {
        let rows = store.counters().rows.requests;
        (rows == Some(1)).then_some(()).ok_or(rows)
    })
    .await;
}

/// The write-ahead log is checkpointed during writes, and starts again; a process that is killed afterwards has lost
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_log_is_moved_into_the_file_while_it_is_written() {
    let place = SqliteFolder::new();
    let store = Arc::new(place.open());
    let log = place.file().with_extension("db-wal");
    // The first bytes of a log contain its checkpoint sequence number.
    let begun = || {
        let mut head = [0; 16];
        fs::File::open(&log).unwrap().read_exact(&mut head).unwrap();
        head[12..].to_vec()
    };
    let mut written = 0;
    let mut first = None;
    while first.is_none() || first == Some(begun()) {
        assert!(written < 500_000, "the log is not moved");
        let calls: Vec<_> = (written..written + 5_000)
            .map(|key| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { held(store.commit(call(key, BEGIN)).await.unwrap()) })
            })
            .collect();
        for call in calls {
            let _ = call.await.unwrap();
        }
        written += 5_000;
        first.get_or_insert_with(begun);
    }
    assert!(written > 65_536);
    // The state on disk, without the work of a store at its end.
    let copy = SqliteFolder::new();
    fs::create_dir(copy.0.path().join("state")).unwrap();
    for file in ["portvakt.db", "portvakt.db-wal", "hash.key"] {
        let [from, to] = [&place, &copy].map(|place| place.0.path().join("state").join(file));
        fs::copy(from, to).unwrap();
    }
    drop(copy.open());
    let kept: u32 = copy
        .sql()
        .query_row("SELECT count(*) FROM quota", [], |row| row.get(0))
        .unwrap();
    assert_eq!(u64::from(kept), written);
}

#[tokio::test]
async fn an_operator_can_read_the_views() {
    let place = SqliteFolder::new();
    let store = place.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    let _ = held(
        store
            .commit(request(1, Retention::Day, BEGIN))
            .await
            .unwrap(),
    );
    let sql = place.sql();
    let one = |query: &str| -> String { sql.query_row(query, [], |row| row.get(0)).unwrap() };
    assert_eq!(
        one(
            "SELECT tpp || ' ' || completed || ' ' || expires || ' ' || last_sca FROM psu_sessions"
        ),
        format!(
            "{} 2026-01-01T00:00:00Z 2026-01-01T01:00:00Z 2026-01-01T00:00:00Z",
            TPP.as_str()
        )
    );
    assert_eq!(
        one("SELECT context || ' ' || consent || ' ' || accounts FROM psu_consents"),
        "PRIVATE 2026-01-01T00:00:00Z all"
    );
    assert_eq!(
        one("SELECT call_a || ' ' || used FROM quota_used"),
        "2026-01-01T00:00:00Z 0"
    );
    assert_eq!(
        one("SELECT remembered_until FROM tokens_spent"),
        "2026-01-01T00:15:00Z"
    );
    assert_eq!(
        one("SELECT claimed_until FROM requests_claimed"),
        "2026-01-02T00:00:00Z"
    );
}

/// CRT-9: each environment has a state of its own.
//= CRT-9 accepted
//= CRT-9 refused
#[tokio::test]
async fn a_file_is_that_of_one_environment() {
    let place = SqliteFolder::new();
    let of = |environment| {
        let mut settings = place.settings();
        settings.environment = environment;
        let opened = StateStore::open(&settings).map(drop);
        let tried = StateStore::try_open(&settings);
        assert_eq!(opened.is_ok(), tried.is_ok());
        opened.map_err(|fault| fault.to_string())
    };
    // A file of before has none recorded, and a tool asks for none.
    place.with_a_session().await;
    assert_eq!(of(None), Ok(()));
    assert_eq!(of(Some(Environment::Sandbox)), Ok(()));
    let refused = of(Some(Environment::Production)).unwrap_err();
    assert!(
        refused.contains("that of the environment sandbox"),
        "{refused}"
    );
    assert_eq!(of(Some(Environment::Sandbox)), Ok(()));
    assert_eq!(of(None), Ok(()));
}
