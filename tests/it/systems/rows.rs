//! The size of a row in PostgreSQL, as docs/scaling.md states it. `PORTVAKT_ROWS` is the number of rows.

use crate::harness::{Postgres, postgres};
use portvakt::state::{PostgresSettings, StateSettings, StateStore};

/// The rows of each table, all in use: a quota has four calls, and its row was updated for each.
const FILL: [(&str, &[&str]); 6] = [
    ("request", &["INSERT INTO request SELECT h(n), 1767225600"]),
    (
        "page",
        &["INSERT INTO page SELECT h(n), 1767225600, 1767225600"],
    ),
    (
        "token",
        &["INSERT INTO token SELECT h(n), h(-n), 1767225600"],
    ),
    (
        "quota",
        &[
            "INSERT INTO quota (key, a) SELECT h(n), 1767225600",
            "UPDATE quota SET b = 1767225601",
            "UPDATE quota SET c = 1767225602",
            "UPDATE quota SET d = 1767225603",
        ],
    ),
    (
        "psu",
        &["INSERT INTO psu SELECT h(n), 'PSDNO-FSA-123456', false, 1767225600, h(-n), 1767225600"],
    ),
    (
        "context",
        &["INSERT INTO context SELECT h(n), '', 1767225600, 1767225600, NULL"],
    ),
];

/// The bytes of a row of a table, with its index, by the page.
fn documented(table: &str) -> f64 {
    let page = include_str!("../../../docs/scaling.md");
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| `{table}` |")));
    let cell = row.unwrap().split('|').nth(2).unwrap();
    cell.trim().parse().unwrap()
}

#[test]
#[ignore = "make test-systems"]
fn rows_have_the_size_that_the_page_states() {
    let rows: u32 = std::env::var("PORTVAKT_ROWS").map_or(300_000, |rows| rows.parse().unwrap());
    let server = postgres().expect("apt-get install postgresql-15");
    let folder = tempfile::tempdir().unwrap();
    let config = server.schema();
    let mut settings = StateSettings::new("unused.db", folder.path().join("hash.key"));
    settings.engine = PostgresSettings::new(config.clone()).into();
    // It makes the tables.
    drop(StateStore::open(&settings).unwrap());
    let sql = |statement: &str| Postgres::sql_on(&config, statement).unwrap();
    sql(
        "CREATE FUNCTION h(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS 'SELECT md5(n::text)::uuid'",
    );
    for (table, statements) in FILL {
        for statement in statements {
            // As in use: the order of keys is random, and space is given back between changes.
            let from = if statement.starts_with("INSERT") {
                format!(" FROM generate_series(1, {rows}) AS n")
            } else {
                String::new()
            };
            sql(&format!("{statement}{from}"));
            sql(&format!("VACUUM {table}"));
        }
        let size: f64 = sql(&format!("SELECT pg_total_relation_size('{table}')"))[0]
            .parse()
            .unwrap();
        let bytes = size / f64::from(rows);
        println!("{table}: {bytes:.1} bytes a row");
        let documented = documented(table);
        assert!(
            (bytes / documented - 1.0).abs() < 0.1,
            "{table}: {bytes:.1} bytes a row, and the page states {documented}"
        );
    }
}
