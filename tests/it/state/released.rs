//! State files of released schemas, as SQL: each is migrated, and everything in it counts.
//!
//! A file is made once, by the version that has its schema, and never changes: PORTVAKT_BLESS=1 writes that of the current schema where it
//! is missing. A new schema needs its file before the release.

use super::{BEGIN, Data, SqliteFolder, call, finish, held, next, request, who};
use portvakt::state::{ContextOrigin, Decision, Retention, StateStore};
use rusqlite::Connection;
use std::{
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The first schema that marks the origin of each context.
const MARKED: i64 = 4;

/// The key of all files.
const KEY: [u8; 32] = [7; 32];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/state/released")
}

/// A folder with the key, and without a state.
fn place() -> SqliteFolder {
    let place = SqliteFolder::new();
    let key = place.settings().hash_key;
    let mut maker = fs::DirBuilder::new();
    maker.mode(0o700).create(key.parent().unwrap()).unwrap();
    write(&key, &KEY);
    place
}

fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn schema_of(connection: &Connection) -> i64 {
    let pragma = "PRAGMA user_version";
    connection.query_row(pragma, [], |row| row.get(0)).unwrap()
}

/// Four calls, a request id, and a PSU with a session.
async fn fill(store: &StateStore) {
    for _ in 0..4 {
        let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    }
    let id = request(2, Retention::Day, BEGIN);
    let _ = held(store.commit(id).await.unwrap());
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
}

async fn check(store: &StateStore, file: &str, origin: ContextOrigin) {
    let fifth = store.commit(call(1, BEGIN + 1)).await.unwrap();
    assert_eq!(next(&fifth), BEGIN + 86_400, "{file}");
    let again = request(2, Retention::Day, BEGIN + 1);
    let again = store.commit(again).await.unwrap();
    assert!(matches!(again, Decision::Replayed), "{file}");
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    assert!(psu.session.is_some() && !psu.learned, "{file}");
    assert_eq!(psu.contexts[0].origin, origin, "{file}");
    let new = request(3, Retention::Day, BEGIN + 1);
    let _ = held(store.commit(new).await.unwrap());
}

/// The tables and rows as SQL.
fn dump(connection: &Connection) -> String {
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let mut text = String::new();
    for made in texts("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid")
    {
        text.push_str(&format!("{made};\n"));
    }
    for table in
        texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    {
        let columns = texts(&format!(
            "SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')"
        ));
        let values = columns.join(" || ', ' || ");
        for row in texts(&format!("SELECT {values} FROM {table}")) {
            text.push_str(&format!("INSERT INTO {table} VALUES ({row});\n"));
        }
    }
    let application: i64 = connection
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .unwrap();
    text + &format!(
        "PRAGMA application_id = {application};\nPRAGMA user_version = {};\n",
        schema_of(connection)
    )
}

#[tokio::test]
async fn every_released_schema_is_migrated_with_its_content() {
    let current = place();
    fill(&current.open()).await;
    let sql = Connection::open(current.settings().file).unwrap();
    let newest = schema_of(&sql);
    let path = folder().join(format!("schema-{newest}.sql"));
    if std::env::var_os("PORTVAKT_BLESS").is_some() && !path.exists() {
        fs::write(path, dump(&sql)).unwrap();
    }
    for schema in 1..=newest {
        let file = format!("schema-{schema}.sql");
        let place = place();
        let state = place.settings().file;
        write(&state, b"");
        let stored = Connection::open(&state).unwrap();
        let text = fs::read_to_string(folder().join(&file)).unwrap();
        stored.execute_batch(&text).unwrap();
        assert_eq!(schema_of(&stored), schema);
        drop(stored);
        // A check migrates nothing.
        StateStore::try_open(&place.settings()).unwrap();
        let stored = Connection::open(&state).unwrap();
        assert_eq!(schema_of(&stored), schema);
        let origin = if schema < MARKED {
            ContextOrigin::Unknown
        } else {
            ContextOrigin::Bank
        };
        check(&place.open(), &file, origin).await;
        assert_eq!(schema_of(&stored), newest);
    }
}
