//! Agreements of unknown origin: a state of an earlier schema, in which a TPP's word was kept, is moved forward, counted and cleaned
//! (SCA-17, SCA-22).

use super::{
    BEGIN, OTHER, PostgresSchema, TPP, WITHOUT_CUSTOMERS, at, finish, learn_now, way_back, who,
};
use crate::{
    harness::{Gate, eventually_async, postgres},
    state::Data,
};
use portvakt::{
    interface::{TppId, headers::CorporateId},
    state::{
        Bind, Bound, Changes, ConsentAccounts, ContextOrigin, Known, Learned, LearnedContext,
        PsuRef, StateSettings, StateStore,
    },
};
use rusqlite::Connection;
use std::{
    fs,
    process::{Command, Output},
};

/// The way back to a schema without the mark.
fn back(to: &str) -> String {
    format!("{WITHOUT_CUSTOMERS} {}", way_back("origin", to))
}

fn agreement(number: u128) -> Option<Known<CorporateId>> {
    Some(Known::by_bank(CorporateId::from_bits(number)))
}

fn learned(tpp: &TppId, psu: u128) -> Learned<'_> {
    Learned {
        who: PsuRef { tpp, ..who(psu) },
        context: Some(LearnedContext {
            corporate: agreement(psu),
            consent: Some((at(BEGIN), &ConsentAccounts::All)),
        }),
        last_sca: Some(at(BEGIN)),
    }
}

fn bind(psu: u128) -> Bind<'static> {
    Bind {
        who: who(psu),
        corporate: agreement(psu),
        imported: true,
        last_sca: at(BEGIN),
        consent: None,
        customer: None,
    }
}

/// Agreements of PSUs 1 and 3 by the core, one of PSU 2 by the bank, and a PSU without any.
async fn fill(store: &StateStore) {
    for (tpp, psu) in [(&*TPP, 1), (&*OTHER, 3)] {
        assert_eq!(learn_now(store, learned(tpp, psu)).await, Bound::New);
    }
    store.finish(finish(1, 2, "s", BEGIN)).await.unwrap();
    store.bind(bind(2)).await.unwrap();
    store.finish(finish(2, 4, "s", BEGIN)).await.unwrap();
}

/// The origins of the contexts of a PSU, the private one first.
async fn origins(store: &StateStore, tpp: &TppId, psu: u128) -> Vec<ContextOrigin> {
    let found = store.psu(PsuRef { tpp, ..who(psu) }).await.unwrap();
    let contexts = &found.unwrap().contexts;
    contexts.iter().map(|context| context.origin).collect()
}

fn run(gate: &Gate, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .arg("state")
        .args(arguments)
        .arg("--config")
        .arg(gate.folder().join("gateway.yaml"))
        .output()
        .unwrap()
}

/// The output of a command that ends with this code.
fn says(gate: &Gate, arguments: &[&str], code: i32) -> String {
    let output = run(gate, arguments);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What becomes of a state that a version before the mark left, while a gateway runs on it.
async fn clean(gate: &Gate, store: &StateStore) {
    use ContextOrigin::{Bank, Core, Import, Unknown};
    assert_eq!(origins(store, &TPP, 2).await, [Unknown, Unknown]);
    assert_eq!(origins(store, &OTHER, 3).await, [Unknown]);
    let of = |tpp: &TppId, all, learned, bound| {
        format!(
            "{}: {all} agreements of unknown origin, {learned} of PSUs that were learned, {bound} of PSUs that the bank bound\n",
            tpp.as_str()
        )
    };
    let (one, two) = (of(&TPP, 1, 1, 0), of(&TPP, 2, 1, 1));
    let other = of(&OTHER, 1, 1, 0);
    let checked = says(gate, &["check"], 1);
    assert!(
        checked.starts_with(&format!("{two}{other}in all: 3.")),
        "{checked}"
    );
    let some = says(gate, &["drop-unknown", "--learned-only"], 0);
    let would = "would be dropped: 2. Nothing changed: --yes drops them\n";
    assert_eq!(some, format!("{one}{other}{would}"));
    let all = says(gate, &["drop-unknown"], 0);
    assert!(all.contains("would be dropped: 3."), "{all}");
    assert_eq!(origins(store, &TPP, 1).await, [Unknown]);
    // The bank's own records confirm an agreement, and nothing else of it changes.
    let confirmed = Changes {
        context: true,
        ..Changes::default()
    };
    let bound = store.bind(bind(2)).await.unwrap();
    assert_eq!(bound, Bound::Changed(confirmed));
    assert_eq!(store.bind(bind(2)).await.unwrap(), Bound::Unchanged);
    assert_eq!(origins(store, &TPP, 2).await, [Unknown, Import]);
    let dropped = says(gate, &["drop-unknown", "--yes"], 0);
    assert_eq!(dropped, format!("{one}{other}dropped: 2\n"));
    // The gateway had these PSUs in memory.
    for (tpp, psu) in [(&*TPP, 1), (&*OTHER, 3)] {
        eventually_async("the agreement is gone", async || {
            origins(store, tpp, psu).await.is_empty()
        })
        .await;
    }
    assert_eq!(origins(store, &TPP, 2).await, [Unknown, Import]);
    let checked = says(gate, &["check"], 0);
    assert_eq!(checked, "the origin of every agreement is known\n");
    // The core may state an agreement again, and an SCA confirms the private context.
    learn_now(store, learned(&TPP, 1)).await;
    assert_eq!(origins(store, &TPP, 1).await, [Core]);
    store.finish(finish(3, 2, "t", BEGIN + 1)).await.unwrap();
    assert_eq!(origins(store, &TPP, 2).await, [Bank, Import]);
}

//= SCA-17 refused
//= SCA-22 refused
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_agreements_of_a_file_are_counted_and_dropped() {
    let gate = Gate::builder().for_program();
    let file = |name: &str| gate.folder().join("state").join(name);
    let settings = StateSettings::new(file("portvakt.db"), file("hash.key"));
    fill(&StateStore::open(&settings).unwrap()).await;
    let sql = Connection::open(&settings.file).unwrap();
    let number = |query: &str| sql.query_row(query, [], |row| row.get::<_, i64>(0));
    sql.execute_batch(&back("user_version = 3")).unwrap();
    assert_eq!(number("PRAGMA user_version").unwrap(), 3);
    assert!(number("SELECT count(origin) FROM context").is_err());
    sql.execute_batch("DROP VIEW tpp_blocks; DROP TABLE block; PRAGMA user_version = 2")
        .unwrap();
    let refused = run(&gate, &["drop-unknown", "--yes"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("has an earlier schema"), "{refused:?}");
    assert_eq!(number("SELECT count(*) FROM context").unwrap(), 5);
    clean(&gate, &StateStore::open_and_migrate(&settings).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_agreements_of_a_database_are_counted_and_dropped() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let user = data.user();
    fill(&data.open()).await;
    let gate = Gate::builder()
        .private_file("state/hash.key", fs::read(&data.0.hash_key).unwrap())
        .state(&format!(
            "postgres: {{url: 'postgres://{user}@/postgres?host={}'}}",
            server.folder().display()
        ))
        .for_program();
    let back = back("value = '2'");
    server.sql(&format!("SET search_path = {user}; {back}"));
    clean(&gate, &data.open()).await;
}
