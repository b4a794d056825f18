//! CTL-3: the stream of events in the state, with every engine.

use super::{
    BEGIN, DAY, Data, OTHER, PostgresSchema, SqliteFolder, TPP, at,
    customers::{bind, key},
    finish, learn_now, who,
};
use crate::harness::{Lines, eventually_async, postgres};
use portvakt::{
    interface::ForbiddenTpp,
    state::{
        AccessesOf, Block, BlockScope, ConsentAccounts, Cursor, EngineSettings, Event, EventKind,
        EventsAnswer, Finish, Learned, LearnedContext, NewEvent, PostgresSettings, StateSettings,
        StateStore, Withdraw, postgres::maintain::Maintenance, sqlite::file,
    },
};
use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};
use tokio::task::JoinSet;

on_every_engine!(
    each_verb_has_its_event,
    an_observation_of_two_gateways_is_one_event,
    a_consent_expires_once_for_all_gateways,
    a_consent_that_is_renewed_late_has_expired,
    events_are_read_in_order_while_two_gateways_write,
    a_waiting_reader_is_woken,
    a_restart_keeps_the_stream,
    an_old_cursor_is_refused,
    a_cursor_of_another_state_is_refused,
);

/// The most events of an answer.
const MOST: usize = 1_000;

/// The events after a cursor, and the next cursor.
async fn after(store: &StateStore, cursor: Option<Cursor>) -> (Vec<Event>, Cursor) {
    match store.events(cursor, MOST).await.unwrap() {
        EventsAnswer::Events { events, next, .. } => (events, next),
        other => panic!("{other:?}"),
    }
}

/// The kinds of all events.
async fn kinds(store: &StateStore) -> Vec<&'static str> {
    let (events, _) = after(store, None).await;
    events.iter().map(|event| event.kind.name()).collect()
}

fn block(scope: BlockScope) -> Block {
    Block {
        tpp: ForbiddenTpp::of(&TPP),
        scope,
        reason: "fraud".to_owned(),
        since: at(BEGIN),
        until: None,
    }
}

//= CTL-3 accepted
async fn each_verb_has_its_event<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let customer = key("0042");
    let two = ConsentAccounts::Named(vec!["1".to_owned(), "2".to_owned()]);
    let mut expected = Vec::new();
    let mut completed = finish(1, 1, "s", BEGIN);
    store.finish(completed.clone()).await.unwrap();
    expected.push("consent-given");
    // The same completion again is no event.
    store.finish(completed.clone()).await.unwrap();
    store.bind(bind(&TPP, 2, Some(&customer))).await.unwrap();
    expected.push("consent-given");
    let mut fewer = bind(&TPP, 2, None);
    fewer.consent = Some((at(BEGIN), &two));
    store.bind(fewer).await.unwrap();
    expected.push("consent-narrowed");
    let remaining = ["2".to_owned()];
    let of = AccessesOf {
        customer: &customer,
        tpp: None,
        agreement: None,
        remaining: Some(&remaining),
    };
    store.withdraw_accesses(of).await.unwrap();
    expected.push("consent-narrowed");
    let none = AccessesOf {
        remaining: None,
        ..of
    };
    store.withdraw_accesses(none).await.unwrap();
    expected.push("consent-withdrawn");
    let learned = Learned {
        who: who(3),
        context: Some(LearnedContext {
            corporate: None,
            consent: Some((at(BEGIN), &ConsentAccounts::All)),
        }),
        last_sca: Some(at(BEGIN)),
    };
    learn_now(store, learned).await;
    expected.push("consent-given");
    // The bank's word replaces what was learned of another TPP.
    store.bind(bind(&OTHER, 3, None)).await.unwrap();
    expected.extend(["consent-withdrawn", "consent-given"]);
    store.withdraw(who(1), Withdraw::Session).await.unwrap();
    store
        .withdraw(who(1), Withdraw::Consent(None))
        .await
        .unwrap();
    expected.push("consent-withdrawn");
    completed.token = super::hash(2);
    completed.now = at(BEGIN + 1);
    store.finish(completed).await.unwrap();
    expected.push("consent-given");
    store.erase(who(1).psu).await.unwrap();
    expected.push("consent-withdrawn");
    for _ in 0..2 {
        store.block(block(BlockScope::Payments)).await.unwrap();
    }
    expected.push("tpp-blocked");
    for _ in 0..2 {
        let tpp = ForbiddenTpp::of(&TPP);
        store.unblock(&tpp, BlockScope::Payments).await.unwrap();
    }
    expected.push("tpp-unblocked");
    assert_eq!(kinds(store).await, expected);
    let (events, _) = after(store, None).await;
    let numbers: Vec<_> = events.iter().map(|event| event.sequence).collect();
    let expected: Vec<_> = (1..).take(events.len()).collect();
    assert_eq!(numbers, expected);
    assert_eq!((events[2].accounts, events[3].accounts), (Some(2), Some(1)));
    assert!(events.iter().all(|event| event.customer.is_none()));
}

//= CTL-3 accepted
async fn an_observation_of_two_gateways_is_one_event<D: Data>() {
    let data = D::new();
    let two = [data.open(), data.open()];
    let (tpp, end) = (TPP.clone(), at(BEGIN + 20 * DAY));
    let seen = NewEvent::TppSeen { tpp: tpp.clone() };
    let changed = |lost: Option<&str>, left: &str| NewEvent::RolesChanged {
        tpp: TPP.clone(),
        lost: lost.map(str::to_owned),
        left: left.to_owned(),
    };
    let lost = changed(Some("PSP_AI"), "PSP_PI");
    let serial = "0A".to_owned();
    let ends = NewEvent::CertificateEnds { tpp, serial, end };
    for observed in [&seen, &lost, &ends] {
        let [one, other] = two
            .each_ref()
            .map(|store| store.note_event(observed.clone(), at(BEGIN)));
        let (one, other) = tokio::join!(one, other);
        assert!(one.unwrap() != other.unwrap(), "{observed:?}");
    }
    // A loss on a later day is another one; a TPP is seen first once.
    for (observed, is_new) in [(&lost, true), (&seen, false), (&ends, false)] {
        let noted = two[0].note_event(observed.clone(), at(BEGIN + 2 * DAY));
        assert_eq!(noted.await.unwrap(), is_new, "{observed:?}");
    }
    // So is one after the role came back, also at once.
    let back = changed(None, "PSP_PI,PSP_AI");
    let none = changed(Some("PSP_PI,PSP_AI"), "");
    for (observed, is_new) in [(&back, false), (&lost, true), (&lost, false), (&none, true)] {
        let noted = two[1].note_event(observed.clone(), at(BEGIN + 2 * DAY));
        assert_eq!(noted.await.unwrap(), is_new, "{observed:?}");
    }
    let all = [
        "tpp-seen",
        "role-lost",
        "certificate-ends",
        "role-lost",
        "role-lost",
        "registration-lost",
    ];
    assert_eq!(kinds(&two[1]).await, all);
}

//= CTL-3 accepted
async fn a_consent_expires_once_for_all_gateways<D: Data>() {
    let data = D::new();
    let two = [data.open(), data.open()];
    for psu in 0..3 {
        let number = u64::try_from(psu).unwrap();
        two[0]
            .finish(finish(number, psu, "s", BEGIN))
            .await
            .unwrap();
    }
    let later = BEGIN + 180 * DAY + 1;
    two[1].finish(finish(9, 9, "s", later)).await.unwrap();
    let expired = async || {
        let (events, _) = after(&two[0], None).await;
        let expired = events
            .iter()
            .filter(|it| it.kind == EventKind::ConsentExpired);
        expired.count()
    };
    eventually_async("three consents have expired", async || {
        for store in &two {
            store.tidy(at(later)).await.unwrap();
        }
        expired().await == 3
    })
    .await;
    // Once more by each of them: housekeeping takes its turn after a full sweep.
    for store in &two {
        store.tidy(at(later + 1)).await.unwrap();
    }
    assert_eq!(expired().await, 3);
}

//= CTL-3 accepted
async fn a_consent_that_is_renewed_late_has_expired<D: Data>() {
    let data = D::new();
    let store = &data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    // Housekeeping may remove this event from now on.
    let (_, cursor) = after(store, None).await;
    let kinds = async || {
        let (events, _) = after(store, Some(cursor)).await;
        let kinds = events.iter().map(|event| event.kind.name());
        kinds.collect::<Vec<_>>()
    };
    // Housekeeping notes the end before the SCA, or the SCA itself does.
    let renewed = finish(2, 1, "s", BEGIN + 180 * DAY + 1);
    store.finish(renewed).await.unwrap();
    assert_eq!(kinds().await, ["consent-expired", "consent-given"]);
    // Neither says it again, nor does an SCA within the time.
    store.tidy(at(BEGIN + 180 * DAY + 2)).await.unwrap();
    let again = finish(3, 1, "s", BEGIN + 200 * DAY);
    store.finish(again).await.unwrap();
    let expected = ["consent-expired", "consent-given", "consent-given"];
    assert_eq!(kinds().await, expected);
}

//= CTL-3 accepted
async fn events_are_read_in_order_while_two_gateways_write<D: Data>() {
    let data = D::new();
    let two = [Arc::new(data.open()), Arc::new(data.open())];
    let mut writing = JoinSet::new();
    for task in 0..8_u64 {
        let store = Arc::clone(&two[usize::try_from(task % 2).unwrap()]);
        writing.spawn(async move {
            for number in 0..20 {
                let token = task * 100 + number;
                let finish = finish(token, u128::from(token), "s", BEGIN);
                store.finish(finish).await.unwrap();
            }
        });
    }
    // Each answer goes on where the last one ended: a gap would be an event that nobody reads.
    let (mut cursor, mut read) = (None, 0);
    while read < 160 {
        let (events, next) = after(&two[0], cursor).await;
        for event in events {
            read += 1;
            assert_eq!(event.sequence, read);
        }
        cursor = Some(next);
        tokio::task::yield_now().await;
    }
    while let Some(written) = writing.join_next().await {
        written.unwrap();
    }
    assert_eq!(after(&two[1], cursor).await.0, []);
}

//= CTL-3 accepted
async fn a_waiting_reader_is_woken<D: Data>() {
    let data = D::new();
    let (here, there) = (data.open(), data.open());
    let mut changes = there.events_changed();
    changes.borrow_and_update();
    let (_, cursor) = after(&there, None).await;
    here.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    eventually_async("the other gateway has the event", async || {
        changes.changed().await.unwrap();
        let (events, _) = after(&there, Some(cursor)).await;
        events.len() == 1
    })
    .await;
}

//= CTL-3 accepted
async fn a_restart_keeps_the_stream<D: Data>() {
    let data = D::new();
    let store = data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let (_, cursor) = after(&store, None).await;
    store.finish(finish(2, 2, "s", BEGIN)).await.unwrap();
    let before = after(&store, Some(cursor)).await;
    drop(store);
    let store = data.open();
    assert_eq!(after(&store, Some(cursor)).await, before);
    assert_eq!(before.0.len(), 1);
}

//= CTL-3 refused
async fn an_old_cursor_is_refused<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let (_, begin) = after(store, None).await;
    for number in 0..3 {
        let finish = finish(number, u128::from(number), "s", BEGIN);
        store.finish(finish).await.unwrap();
    }
    let (events, end) = after(store, Some(begin)).await;
    assert_eq!(events.len(), 3);
    let oldest = eventually_async("old events are removed", async || {
        store.tidy(at(BEGIN + 31 * DAY)).await.unwrap();
        match store.events(Some(begin), MOST).await.unwrap() {
            EventsAnswer::TooOld { oldest } => Some(oldest),
            _ => None,
        }
    })
    .await;
    // The same place; an event that is removed has no time.
    assert!(end.to_string().starts_with(&format!("{oldest}-")));
    assert_eq!(after(store, Some(oldest)).await.0, []);
    let finish = finish(9, 9, "s", BEGIN + 31 * DAY);
    store.finish(finish).await.unwrap();
    for cursor in [None, Some(oldest)] {
        assert_eq!(after(store, cursor).await.0[0].sequence, 4);
    }
}

//= CTL-3 refused
async fn a_cursor_of_another_state_is_refused<D: Data>() {
    let (one, other) = (D::new(), D::new());
    let (one, other) = (one.open(), other.open());
    for store in [&one, &other] {
        store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    }
    let (_, cursor) = after(&one, None).await;
    let refused = other.events(Some(cursor), MOST).await.unwrap();
    assert_eq!(refused, EventsAnswer::Unknown);
    // Nor one of a later moment, as after a restored backup.
    let text = cursor.to_string();
    let (stream, _) = text.split_once('-').unwrap();
    for later in ["2", "1-9"] {
        let later = Cursor::parse(&format!("{stream}-{later}"));
        let refused = one.events(later, MOST).await.unwrap();
        assert!(
            matches!(refused, EventsAnswer::Restored { .. }),
            "{refused:?}"
        );
    }
}

//= CTL-3 refused
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_backup_is_told_also_after_further_events() {
    let (data, restored) = (SqliteFolder::new(), SqliteFolder::new());
    let store = data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let (_, kept) = after(&store, None).await;
    let (from, to) = (data.settings(), restored.settings());
    std::fs::create_dir(to.file.parent().unwrap()).unwrap();
    std::fs::copy(&from.hash_key, &to.hash_key).unwrap();
    let sql = rusqlite::Connection::open(&from.file).unwrap();
    sql.execute("VACUUM INTO ?1", [to.file.to_str().unwrap()])
        .unwrap();
    store.finish(finish(2, 2, "s", BEGIN + 1)).await.unwrap();
    let (_, lost) = after(&store, None).await;
    let store = restored.open();
    // First its number is not given yet, then it is that of another event.
    for number in 3..6 {
        let answer = store.events(Some(lost), MOST).await.unwrap();
        let EventsAnswer::Restored { oldest } = answer else {
            panic!("{answer:?}")
        };
        let (events, _) = after(&store, Some(oldest)).await;
        assert_eq!(events.len(), usize::try_from(number - 2).unwrap());
        let finish = finish(number, u128::from(number), "s", BEGIN + 9);
        store.finish(finish).await.unwrap();
    }
    // A cursor from before the backup goes on.
    assert_eq!(after(&store, Some(kept)).await.0.len(), 3);
}

/// CTL-3: each gateway of a state has the same key, until an operator says that it changes.
async fn one_customer_key(mut settings: StateSettings, accept: impl Fn(&StateSettings)) {
    let key_of = |settings: &mut StateSettings, name: &str, byte: u8| {
        let file = settings.hash_key.with_file_name(name);
        std::fs::write(&file, [byte; 32]).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        settings.events.customer_key = Some(file);
    };
    let judged = |settings: &StateSettings| {
        let tried = StateStore::try_open(settings).map_err(|fault| fault.to_string());
        let opened = StateStore::open(settings).map(drop);
        assert_eq!(opened.map_err(|fault| fault.to_string()), tried);
        tried
    };
    // A gateway without a key records none.
    assert_eq!(judged(&settings), Ok(()));
    key_of(&mut settings, "one.key", 1);
    let mut other = settings.clone();
    key_of(&mut other, "other.key", 2);
    assert_eq!(judged(&settings), Ok(()));
    let refused = judged(&other).unwrap_err();
    for part in ["other.key", "accept-customer-key"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert_eq!(judged(&settings), Ok(()));
    let running = StateStore::open(&settings).unwrap();
    accept(&other);
    assert_eq!(judged(&other), Ok(()));
    names_nobody(&running, StateStore::open(&other).unwrap()).await;
    drop(running);
    assert!(judged(&settings).unwrap_err().contains("one.key"));
    other.events.customer_key = None;
    assert_eq!(judged(&other), Ok(()));
}

/// CTL-3: a process that began with a former key makes no name of a customer under it, and keeps the name that another one has made.
async fn names_nobody(former: &StateStore, newer: StateStore) {
    let customer = key("customer 0042");
    let binding = |psu| bind(&TPP, psu, Some(&customer));
    former.bind(binding(1)).await.unwrap();
    newer.bind(binding(2)).await.unwrap();
    former.bind(binding(2)).await.unwrap();
    for psu in [1, 2] {
        former.withdraw(who(psu), Withdraw::Consents).await.unwrap();
    }
    let (events, _) = after(&newer, None).await;
    let named: Vec<bool> = events
        .iter()
        .map(|event| event.customer.is_some())
        .collect();
    assert_eq!(named, [false, true, false, true]);
    assert_eq!(events[1].customer, events[3].customer);
    eventually_async("the former key is noticed", async || {
        former.customer_key_fault().is_some()
    })
    .await;
    assert_eq!(newer.customer_key_fault(), None);
}

//= CTL-3 accepted
//= CTL-3 refused
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_with_two_customer_keys_are_refused() {
    let data = SqliteFolder::new();
    let accept = |settings: &StateSettings| {
        let sql = file::connect(&settings.file).unwrap();
        assert!(file::accept_customer_key(&sql, settings).unwrap());
    };
    one_customer_key(data.settings(), accept).await;
}

//= CTL-3 accepted
//= CTL-3 refused
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_with_two_customer_keys_are_refused_in_postgres() {
    let Some(_) = postgres() else { return };
    let data = PostgresSchema::new();
    let accept = |settings: &StateSettings| {
        let EngineSettings::Postgres(server) = settings.engine.clone() else {
            panic!("it is no database")
        };
        let settings = settings.clone();
        let accepting = std::thread::spawn(move || {
            let database = Maintenance::open_existing(&settings, &server).unwrap();
            assert!(database.accept_customer_key(&settings).unwrap());
        });
        accepting.join().unwrap();
    };
    one_customer_key(data.0.clone(), accept).await;
}

//= CTL-3 accepted
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_customer_is_an_hmac_under_the_key_of_the_bank() {
    let data = SqliteFolder::new();
    let mut settings = data.settings();
    let file = data.0.path().join("events.key");
    std::fs::write(&file, [7; 32]).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    settings.events.customer_key = Some(file);
    let store = StateStore::open(&settings).unwrap();
    let customer = key("customer 0042");
    store.bind(bind(&TPP, 1, Some(&customer))).await.unwrap();
    drop(store);
    // A gateway without the key keeps it, and it stands in the event of the end too.
    let store = data.open();
    store.bind(bind(&TPP, 1, Some(&customer))).await.unwrap();
    store.withdraw(who(1), Withdraw::Consents).await.unwrap();
    let (events, _) = after(&store, None).await;
    let hmac = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &[7; 32]);
    let tag = aws_lc_rs::hmac::sign(&hmac, b"customer 0042");
    let expected: String = tag
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(events.len(), 2);
    for event in events {
        assert_eq!(event.customer.unwrap().to_string(), expected);
    }
    store.forget_customer(&customer).await.unwrap();
    store.bind(bind(&TPP, 1, None)).await.unwrap();
    let (events, _) = after(&store, None).await;
    assert_eq!(events[2].customer, None);
}

//= CTL-3 refused
#[tokio::test]
async fn a_key_that_is_missing_is_refused() {
    let data = SqliteFolder::new();
    let mut settings = data.settings();
    settings.events.customer_key = Some(data.0.path().join("events.key"));
    let fault = StateStore::open(&settings).unwrap_err().to_string();
    assert!(fault.contains("events.key"), "{fault}");
    assert!(!settings.file.exists());
}

/// The most SCAs that the second process completes before it is killed.
const WRITTEN: u64 = 500;

/// An SCA of another PSU each time, a second after the last.
fn nth(number: u64) -> Finish<'static> {
    finish(number, u128::from(number), "s", BEGIN + number)
}

/// The second process of the tests below: this test binary, running only this test. It completes SCAs until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_process() {
    let Ok(folder) = std::env::var("STATE_EVENTS_PROCESS") else {
        return;
    };
    let from = std::env::var("STATE_EVENTS_FROM").unwrap().parse().unwrap();
    let path = Path::new(&folder);
    let mut settings =
        StateSettings::new(path.join("state/portvakt.db"), path.join("state/hash.key"));
    if let Ok(database) = std::env::var("STATE_EVENTS_DATABASE") {
        settings.engine = PostgresSettings::new(database.parse().unwrap()).into();
    }
    let store = StateStore::open(&settings).unwrap();
    for number in from..from + WRITTEN {
        store.finish(nth(number)).await.unwrap();
        println!("\ndone {number}");
    }
    std::future::pending::<()>().await;
}

/// Completes SCAs from this number on in a process that is killed. Returns the first that the state does not have.
async fn killed(store: &StateStore, from: u64, folder: &Path, database: Option<&str>) -> u64 {
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "state::events::writing_process", "--nocapture"])
        .env("STATE_EVENTS_PROCESS", folder)
        .env("STATE_EVENTS_FROM", from.to_string())
        .envs(database.map(|database| ("STATE_EVENTS_DATABASE", database)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = Lines::of(other.stdout.take().unwrap());
    let last = format!("done {}", from + 20);
    let done = said.find("a change", |line| line == last);
    other.kill().unwrap();
    other.wait().unwrap();
    done.unwrap();
    let mut number = from;
    while store.psu_now(who(number.into())).await.unwrap().is_some() {
        number += 1;
    }
    number
}

/// Kills a process between its changes, again and again, and reads on from the last cursor each time: each consent in the state has its
/// event, each event its consent, and they stand in the order of the changes. `PORTVAKT_SOAK` is the number of kills.
async fn nothing_is_lost(store: StateStore, folder: &Path, database: Option<&str>) {
    let kills = std::env::var("PORTVAKT_SOAK").map_or(1, |count| count.parse().unwrap());
    let (mut from, mut cursor) = (1, None);
    for _ in 0..kills {
        let unsure = killed(&store, from, folder, database).await;
        assert!(unsure > from + 20, "{unsure}");
        // A commit that was under way has ended when the next one of the same row has.
        store.finish(nth(unsure)).await.unwrap();
        let (events, next) = after(&store, cursor).await;
        let seen: Vec<u64> = events.iter().map(|event| event.at.unix()).collect();
        let changed: Vec<u64> = (from..=unsure).map(|number| BEGIN + number).collect();
        assert_eq!(seen, changed);
        assert!(events.iter().all(|it| it.kind == EventKind::ConsentGiven));
        (from, cursor) = (unsure + 1, Some(next));
    }
    println!("{kills} kills, {} events", from - 1);
}

//= CTL-3 accepted
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_no_event() {
    let place = SqliteFolder::new();
    nothing_is_lost(place.open(), place.0.path(), None).await;
}

//= CTL-3 accepted
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_no_event_in_postgres() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let (user, host) = (data.user(), server.folder().display());
    let database = format!("host={host} user={user} dbname=postgres");
    nothing_is_lost(data.open(), data.1.path(), Some(&database)).await;
}
