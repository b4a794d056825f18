//! The rotation of the hash key: everything that was stored is found at the next level, and nobody uses the level before.

use super::{
    BEGIN, Data, OTHER, PostgresSchema, SqliteFolder, TPP, at, held, next, session_id, who,
};
use crate::{
    audit::ON,
    harness::{Call, Gate, Protocol, accepted, eventually, eventually_async, postgres, refused},
};
use http::HeaderValue;
use portvakt::{
    interface::{
        ForbiddenTpp, TppId,
        headers::{CorporateId, PsuId, RequestId},
    },
    state::{
        Beside, Block, BlockScope, Blocked, ClaimRequest, Completion, ConsentAccounts, CustomerKey,
        Decision, EngineSettings, Finish, Finished, Keys, Known, Move, Moved, Named, NewEvent,
        OpenFault, Page, QuotaClaim, QuotaKey, RequestIdClaim, Retention, StateSettings,
        StateStore,
        postgres::maintain::Maintenance,
        rotation::{self, Levels, Rotated},
        sqlite::rotate,
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Output, Stdio},
};

/// The data of an engine that keeps rows.
trait Kept: Data {
    fn state(&self) -> StateSettings;
}

impl Kept for SqliteFolder {
    fn state(&self) -> StateSettings {
        self.settings()
    }
}

impl Kept for PostgresSchema {
    fn state(&self) -> StateSettings {
        self.0.clone()
    }
}

/// Work outside of this test's runtime, as a command does it.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn levels(state: &StateSettings) -> Levels {
    apart(|| match &state.engine {
        EngineSettings::Sqlite => rotate::levels(state).unwrap(),
        EngineSettings::Postgres(server) => {
            let database = Maintenance::open_existing(state, server).unwrap();
            database.levels(state).unwrap()
        }
    })
}

fn rotate_from(state: &StateSettings, from: Levels) -> Result<Rotated, OpenFault> {
    apart(|| match &state.engine {
        EngineSettings::Sqlite => rotate::rotate(state, from),
        EngineSettings::Postgres(server) => {
            Maintenance::open_existing(state, server)?.rotate(state, from)
        }
    })
}

/// The whole command.
fn rotated(state: &StateSettings) -> Rotated {
    let levels = levels(state);
    rotation::prepare(state, levels).unwrap();
    rotate_from(state, levels).unwrap()
}

fn psu(number: u128) -> Known<PsuId> {
    Known::by_bank(PsuId::from_bits(number))
}

fn quota(keys: &Keys) -> QuotaKey {
    keys.quota(&TPP, psu(1), None, "transaction-list", &["a"])
}

fn call_of(key: QuotaKey, page: Option<Page>, now: u64) -> ClaimRequest {
    ClaimRequest {
        request: None,
        quota: Some(QuotaClaim {
            key: key.hash(),
            beside: Beside::default(),
            page,
        }),
        now: at(now),
    }
}

fn payment(keys: &Keys, now: u64) -> ClaimRequest {
    let id = RequestId::parse(&HeaderValue::from_static("used")).unwrap();
    ClaimRequest {
        request: Some(RequestIdClaim {
            id: keys.request(&TPP, &id),
            date: at(now),
            retention: Retention::Day,
        }),
        quota: None,
        now: at(now),
    }
}

fn page(keys: &Keys, offset: u32) -> Option<Page> {
    Some(Page {
        list: keys.list(quota(keys), "dateFrom=2026-01-01"),
        offset,
        limit: 100,
    })
}

fn agreement() -> Option<Known<CorporateId>> {
    Some(Known::by_bank(CorporateId::from_bits(9)))
}

fn customer() -> CustomerKey {
    CustomerKey::parse("0042").unwrap()
}

/// Completes the SCA of PSU 1 for an agreement and the account `a`, and says so by these parts.
async fn complete(store: &StateStore, part: &[u8]) -> Finished {
    let accounts = ConsentAccounts::Named(vec!["a".to_owned()]);
    let finish = Finish {
        token: store.keys().token([3; 16]),
        expires: at(BEGIN + 900),
        said: store.keys().completed(&[part], Some("0042")),
        completion: Some(Completion {
            who: who(1),
            corporate: agreement(),
            session: session_id("s"),
            consent: Some(&accounts),
            customer: Some(&customer()),
        }),
        now: at(BEGIN),
    };
    store.finish(finish).await.unwrap()
}

async fn note(store: &StateStore) -> [bool; 3] {
    let noted = [
        NewEvent::TppSeen { tpp: TPP.clone() },
        NewEvent::RolesChanged {
            tpp: TPP.clone(),
            lost: Some("PSP_PI".to_owned()),
            left: "PSP_AI".to_owned(),
        },
        NewEvent::CertificateEnds {
            tpp: TPP.clone(),
            serial: "1".to_owned(),
            end: at(BEGIN + 900),
        },
    ];
    let mut new = [false; 3];
    for (new, event) in new.iter_mut().zip(noted) {
        *new = store.note_event(event, at(BEGIN)).await.unwrap();
    }
    new
}

fn former() -> TppId {
    TppId::parse("PSDNO-FSA-111111").unwrap()
}

fn block(keys: &Keys) -> Block {
    Block {
        tpp: ForbiddenTpp::of(&OTHER),
        scope: BlockScope::Psu(keys.psu(psu(5))),
        reason: "reported".to_owned(),
        since: at(BEGIN),
        until: None,
    }
}

/// One row of each kind.
async fn fill(store: &StateStore) {
    let keys = store.keys();
    for (number, with) in [(0, page(keys, 0)), (1, None), (2, None)] {
        let claim = call_of(quota(keys), with, BEGIN + number);
        let _ = held(store.commit(claim).await.unwrap());
    }
    let of_account = keys.quota_of_account(&TPP, "balance-list", &["a"]);
    for number in 0..4 {
        let claim = call_of(of_account, None, BEGIN + number);
        let _ = held(store.commit(claim).await.unwrap());
    }
    let _ = held(store.commit(payment(keys, BEGIN)).await.unwrap());
    assert_eq!(complete(store, b"told").await, Finished::Done);
    assert_eq!(note(store).await, [true; 3]);
    assert_eq!(store.block(block(keys)).await.unwrap(), Blocked::New);
    let moved = Move {
        from: former(),
        to: TPP.clone(),
        since: at(BEGIN),
    };
    assert_eq!(store.move_tpp(moved).await.unwrap(), Moved::Done);
}

/// Everything is there, and nothing is there twice.
async fn is_whole(store: &StateStore) {
    let keys = store.keys();
    // A later page belongs to the first call, and three of four calls are used.
    let later = call_of(quota(keys), page(keys, 100), BEGIN + 10);
    assert!(!held(store.commit(later).await.unwrap()).is_call());
    let fourth = call_of(quota(keys), None, BEGIN + 11);
    assert!(held(store.commit(fourth).await.unwrap()).is_call());
    let fifth = call_of(quota(keys), None, BEGIN + 12);
    assert_eq!(next(&store.commit(fifth).await.unwrap()), BEGIN + 86_400);
    let of_account = keys.quota_of_account(&TPP, "balance-list", &["a"]);
    let claim = call_of(of_account, None, BEGIN + 12);
    assert_eq!(next(&store.commit(claim).await.unwrap()), BEGIN + 86_400);
    let again = store.commit(payment(keys, BEGIN + 12)).await.unwrap();
    assert!(matches!(again, Decision::Replayed));
    assert_eq!(complete(store, b"told").await, Finished::Again);
    assert_eq!(complete(store, b"another").await, Finished::Otherwise);
    assert_eq!(note(store).await, [false; 3]);
    let found = store.psu_now(who(1)).await.unwrap().unwrap();
    let session = found.session.unwrap();
    assert_eq!(session.id, keys.session(&TPP, &session_id("s")));
    let context = found.context(agreement().map(|id| keys.corporate(id)));
    let accounts = &context.unwrap().consent.as_ref().unwrap().accounts;
    assert!(accounts.include(keys.account("a")) && !accounts.include(keys.account("b")));
    let accesses = store.accesses_of(&customer()).await.unwrap().accesses;
    assert_eq!(accesses.len(), 1);
    assert_eq!(accesses[0].psu, keys.psu(psu(1)));
    assert_eq!(store.block(block(keys)).await.unwrap(), Blocked::Before);
    assert_eq!(store.list_blocks().await.unwrap().len(), 1);
    let sought = keys.sought(Named::Known(psu(5)));
    let blocks = store.blocks_now().await.unwrap();
    assert!(blocks.refuses(&OTHER, false, || vec![sought], at(BEGIN + 12)));
    assert!(store.is_former(&former()).await.unwrap());
    let ended = store.end_move(&former(), &TPP).await.unwrap();
    assert_eq!(format!("{ended:?}"), "Done");
}

/// A store of the level before decides nothing and says what to do.
async fn is_refused(store: &StateStore, part: &str) {
    let keys = store.keys();
    let said = |fault: portvakt::state::Unavailable| {
        let said = fault.to_string();
        assert!(
            said.contains("the hash key of the state was rotated"),
            "{said}"
        );
    };
    eventually_async("the store notices the rotation", async || {
        store
            .health(at(BEGIN + 1))
            .is_err_and(|fault| fault.to_string().contains(part))
    })
    .await;
    said(store.commit(payment(keys, BEGIN + 1)).await.unwrap_err());
    let claim = call_of(quota(keys), None, BEGIN + 1);
    said(store.commit(claim).await.unwrap_err());
    said(store.psu_now(who(1)).await.unwrap_err());
    said(store.last_removal(Named::Known(psu(1))).await.unwrap_err());
    said(store.psu(who(7)).await.unwrap_err());
}

const RESTART: &str = "the hash key of the state was rotated: restart the gateway";

async fn what_was_stored_is_found<D: Kept>() {
    let data = D::new();
    let state = data.state();
    let old = data.open();
    fill(&old).await;
    let at_level = |state: usize, keys: usize| Levels { state, keys };
    assert_eq!(levels(&state), at_level(1, 1));
    let one_key = fs::read(&state.hash_key).unwrap();
    // A key that is only prepared changes nothing, for this process and for the next.
    rotation::prepare(&state, levels(&state)).unwrap();
    assert_eq!(levels(&state), at_level(1, 2));
    let _ = held(
        old.commit(call_of(other_quota(old.keys()), None, BEGIN))
            .await
            .unwrap(),
    );
    drop(old);
    let (old, beside) = (data.open(), data.open());
    assert!(old.psu_now(who(1)).await.unwrap().is_some());
    // Its writer knows the level.
    let again = old.commit(payment(old.keys(), BEGIN)).await.unwrap();
    assert!(matches!(again, Decision::Replayed));
    let done = rotated(&state);
    assert_eq!((done.from, done.to), (1, 2));
    let rows: Vec<_> = done
        .rows
        .iter()
        .map(|(table, rows)| (*table, *rows))
        .collect();
    let expected = [
        ("quota", 3),
        ("page", 1),
        ("request", 1),
        ("token", 4),
        ("psu", 1),
        ("context", 1),
        ("block", 1),
        ("moved", 1),
    ];
    assert_eq!(rows, expected);
    assert_eq!(levels(&state), at_level(2, 2));
    // Also in the second before the process hears of it.
    let next = old.commit(payment(old.keys(), BEGIN + 1)).await;
    let said = next.unwrap_err().to_string();
    assert!(said.contains("the hash key of the state was rotated"));
    is_refused(&old, RESTART).await;
    // One that lacks the new key says so, and does not start.
    let two_keys = fs::read(&state.hash_key).unwrap();
    assert_eq!(two_keys[..32], one_key);
    fs::write(&state.hash_key, &one_key).unwrap();
    is_refused(&beside, "lacks the new key").await;
    for fault in [
        StateStore::open(&state).unwrap_err(),
        StateStore::try_open(&state).unwrap_err(),
    ] {
        let said = fault.to_string();
        assert!(
            said.contains("was rotated to level 2") && said.contains("lacks the last key"),
            "{said}"
        );
    }
    fs::write(&state.hash_key, &two_keys).unwrap();
    drop((old, beside));
    // What was planned by the level before changes nothing.
    let late = rotate_from(&state, at_level(1, 2)).unwrap_err();
    assert!(late.to_string().contains("nothing changed"), "{late}");
    // And once more.
    let done = rotated(&state);
    assert_eq!((done.from, done.to), (2, 3));
    let store = data.open();
    is_whole(&store).await;
    drop(store);
    assert_eq!(levels(&state), at_level(3, 3));
}

fn other_quota(keys: &Keys) -> QuotaKey {
    keys.quota(&TPP, psu(2), None, "balance-list", &["b"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_stored_is_found_in_a_file() {
    what_was_stored_is_found::<SqliteFolder>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_stored_is_found_in_a_database() {
    if postgres().is_some() {
        what_was_stored_is_found::<PostgresSchema>().await;
    }
}

/// A backup from before a rotation is a state of the level before; it is rotated again, by the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_from_before_is_used_and_rotated_again() {
    let data = SqliteFolder::new();
    let state = data.state();
    let store = data.open();
    fill(&store).await;
    drop(store);
    let copy = state.file.with_file_name("copy.db");
    fs::copy(&state.file, &copy).unwrap();
    rotated(&state);
    let keys = fs::read(&state.hash_key).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let mut path = state.file.clone().into_os_string();
        path.push(suffix);
        let _ = fs::remove_file(path);
    }
    fs::rename(&copy, &state.file).unwrap();
    assert_eq!(levels(&state), Levels { state: 1, keys: 2 });
    let store = data.open();
    assert_eq!(complete(&store, b"told").await, Finished::Again);
    drop(store);
    assert_eq!(rotated(&state).to, 2);
    assert_eq!(fs::read(&state.hash_key).unwrap(), keys);
    is_whole(&data.open()).await;
}

/// No hash of the level before is left in the file or in its log.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_holds_no_hash_of_the_level_before() {
    let data = SqliteFolder::new();
    let state = data.state();
    let store = data.open();
    fill(&store).await;
    let before = [
        *store.keys().psu(psu(1)).stored_bytes(),
        *store.keys().account("a").stored_bytes(),
        *quota(store.keys()).hash().stored_bytes(),
    ];
    drop(store);
    assert!(rotated(&state).log_is_empty);
    let bytes = fs::read(&state.file).unwrap();
    for hash in before {
        assert!(!bytes.windows(16).any(|window| window == hash));
    }
}

/// A column of bytes that a later schema adds is moved, or named as none with hashes.
#[test]
fn every_column_of_bytes_of_the_database_is_known() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    apart(|| data_open(&data));
    let columns = server.sql(&format!(
        "SELECT col.table_name || '.' || col.column_name FROM information_schema.columns AS col
        JOIN information_schema.tables AS of USING (table_schema, table_name)
        WHERE table_schema = '{}' AND of.table_type = 'BASE TABLE' AND col.data_type IN ('uuid', 'bytea')",
        data.user()
    ));
    assert_eq!(columns.len(), 19, "{columns:?}");
    for column in columns {
        let (table, column) = column.split_once('.').unwrap();
        assert!(rotation::is_known(table, column), "{table}.{column}");
    }
}

fn data_open(data: &PostgresSchema) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    drop(data.open());
}

/// A gateway of a version before rotation holds one lock alone. No key is rotated under it.
#[test]
fn a_gateway_of_an_earlier_version_keeps_its_level() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    apart(|| data_open(&data));
    let user = data.user();
    let earlier = server.begin(&format!(
        "SELECT pg_advisory_xact_lock_shared(1349938036, '{user}.meta'::regclass::oid::integer)"
    ));
    let state = data.state();
    let found = levels(&state);
    rotation::prepare(&state, found).unwrap();
    let fault = rotate_from(&state, found).unwrap_err().to_string();
    assert!(fault.contains("upgrade every gateway first"), "{fault}");
    earlier.commit();
    assert_eq!(rotate_from(&state, found).unwrap().to, 2);
    // What a session without the level writes is refused by the database itself.
    let sql =
        format!("INSERT INTO {user}.attempt (id, committed) VALUES (gen_random_uuid(), true)");
    let refused = apart(|| std::panic::catch_unwind(|| server.sql(&sql)));
    assert!(refused.is_err());
}

/// What the server says at the end of a rotation is told: a warning as at a cancelled wait for the standby, and a connection that ends.
#[test]
fn the_end_of_a_rotation_of_a_database_is_told_as_it_is() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    apart(|| data_open(&data));
    let (user, state) = (data.user(), data.state());
    let at_commit = |statement: &str| {
        server.sql(&format!(
            "CREATE OR REPLACE FUNCTION {user}.at_commit() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN {statement}; RETURN NULL; END $$;
            DROP TRIGGER IF EXISTS at_commit ON {user}.meta;
            CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT OR UPDATE ON {user}.meta
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {user}.at_commit()"
        ));
    };
    at_commit("RAISE WARNING 'the wait is cancelled'");
    let done = rotated(&state);
    assert!(done.may_lack_standby && done.to == 2);
    at_commit("PERFORM pg_terminate_backend(pg_backend_pid())");
    let from = levels(&state);
    rotation::prepare(&state, from).unwrap();
    let fault = rotate_from(&state, from).unwrap_err().to_string();
    for part in ["it is not known whether", "without --yes", "has level 3"] {
        assert!(fault.contains(part), "{fault}");
    }
    at_commit("NULL");
    let done = rotated(&state);
    assert!(!done.may_lack_standby && done.to == 3);
}

/// A file with a key that is only prepared is copied with its level; a database of another level is named with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_is_copied_with_its_level() {
    if postgres().is_none() {
        return;
    }
    for makes_database in [false, true] {
        let data = PostgresSchema::new();
        let (user, host) = (data.user(), postgres().unwrap().folder().display());
        let url = format!("postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}");
        let gate = Gate::builder().state(&url).for_program();
        let own = |name: &str| gate.folder().join("state").join(name);
        let file = StateSettings::new(own("portvakt.db"), own("hash.key"));
        let store = StateStore::open(&file).unwrap();
        fill(&store).await;
        drop(store);
        rotation::prepare(&file, levels(&file)).unwrap();
        let mut database = data.state();
        database.hash_key = own("hash.key");
        if makes_database {
            drop(StateStore::open(&database).unwrap());
        }
        let copied = command(&gate, &["state", "copy"]);
        if makes_database {
            let said = String::from_utf8(copied.stderr).unwrap();
            assert!(
                said.contains("the file has level 1") && said.contains("the database level 2"),
                "{said}"
            );
        } else {
            assert!(copied.status.success(), "{copied:?}");
            assert_eq!(levels(&database), Levels { state: 1, keys: 2 });
        }
    }
}

fn command(gate: &Gate, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .args(arguments)
        .arg("--config")
        .arg(gate.folder().join("gateway.yaml"))
        .current_dir(gate.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn says(gate: &Gate, arguments: &[&str]) -> String {
    let output = command(gate, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const BLOCKED: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3302";
const ID: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3303";

fn over1(call: Call) -> Call {
    call.only(Protocol::Http1)
}

fn of_psu(call: Call) -> Call {
    over1(call).with("PSU-ID", PSU)
}

fn replayed(gate: &Gate) {
    let again = over1(Call::payment().with("X-Request-ID", ID));
    refused(gate, &again, 409, "CONFLICT", "request-replayed");
}

/// A real gateway: what it refused it refuses after a rotation, and what it admitted it admits.
fn a_gateway_goes_on(builder: crate::harness::GateBuilder) {
    let gate = builder.line(ON).for_program();
    let mut program = gate.run_with_logs(&mut gate.program());
    let tpp = gate.world().both.id().to_owned();
    let who = json!({ "tpp": tpp, "psu_id": PSU });
    gate.introduce(who.clone());
    for _ in 0..3 {
        accepted(&gate, &of_psu(Call::balances()));
    }
    accepted(&gate, &over1(Call::payment().with("X-Request-ID", ID)));
    let blocked = json!({ "tpp": tpp, "psu_id": BLOCKED, "reason": "reported" });
    assert_eq!(gate.tell("/tpp/block", &blocked).status, 200);
    let by_blocked = || over1(Call::accounts()).with("PSU-ID", BLOCKED).present();
    refused(&gate, &by_blocked(), 403, "FORBIDDEN", "tpp-blocked");
    let read = || gate.tell("/psu/read", &who).json();
    let before = read();
    let plan = says(&gate, &["state", "rotate-hash-key"]);
    assert!(plan.contains("Nothing changed"), "{plan}");
    let prepared = says(&gate, &["state", "rotate-hash-key", "--prepare"]);
    assert!(prepared.contains("added the next key"), "{prepared}");
    accepted(&gate, &over1(Call::accounts()).present());
    let done = says(&gate, &["state", "rotate-hash-key", "--yes"]);
    assert!(done.contains("had level 1, and has level 2 now"), "{done}");
    assert!(done.contains("has the next key already"), "{done}");
    // No key is shown.
    assert!(!done.contains("psu-"), "{done}");
    eventually("the gateway says what to do", || {
        let answer = gate.control("/readyz");
        answer.status == 503 && answer.json().to_string().contains(RESTART)
    });
    // Only its own restart helps.
    eventually("it is its own fault", || {
        gate.control("/readyz?local=1").status == 503
    });
    for call in [of_psu(Call::balances()), over1(Call::payment())] {
        refused(&gate, &call, 503, "SYSTEM_ERROR", "state-unavailable");
    }
    program.end();
    program = gate.run_with_logs(&mut gate.program());
    assert_eq!(read(), before);
    replayed(&gate);
    refused(&gate, &by_blocked(), 403, "FORBIDDEN", "tpp-blocked");
    accepted(&gate, &of_psu(Call::balances()));
    let fifth = of_psu(Call::balances());
    refused(&gate, &fifth, 429, "ACCESS_EXCEEDED", "quota-exceeded");
    let lifted = json!({ "tpp": tpp, "psu_id": BLOCKED });
    assert_eq!(gate.tell("/tpp/unblock", &lifted).status, 200);
    // A record of the new level.
    gate.introduce(who);
    program.end();
    of_both_levels(&gate);
}

/// Records of the PSU from both levels are found, and lose their way from the PSU-ID.
fn of_both_levels(gate: &Gate) {
    let audit = gate.folder().join("state/audit");
    let file = gate.folder().join("psu.txt");
    fs::write(&file, PSU).unwrap();
    let (audit, file) = (audit.to_str().unwrap(), file.to_str().unwrap());
    let find = || {
        let found = command(gate, &["audit", "find", audit, "--json", "--psu", file]);
        String::from_utf8(found.stdout).unwrap()
    };
    let found = find();
    let records = found
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let bound = records.filter(|record: &Value| record["kind"] == "bound");
    let pseudonyms: BTreeSet<String> = bound.map(|record| record["psu"].to_string()).collect();
    assert_eq!(pseudonyms.len(), 2, "{found}");
    let erased = says_of(gate, &["psu", "erase", file]);
    assert!(erased.contains("state: erased"), "{erased}");
    assert_eq!(erased.matches("audit: erased").count(), 2, "{erased}");
    assert!(find().contains("no records of this PSU"));
}

fn says_of(gate: &Gate, arguments: &[&str]) -> String {
    let output = command(gate, arguments);
    assert!(output.status.success(), "{output:?}");
    let mut text = String::from_utf8(output.stdout).unwrap();
    text += &String::from_utf8(output.stderr).unwrap();
    text
}

//= QUO-1 refused
//= REP-1 refused
//= SCA-3 accepted
//= CTL-2 refused
#[test]
fn a_gateway_on_a_file_goes_on() {
    a_gateway_goes_on(Gate::builder());
}

//= QUO-1 refused
//= REP-1 refused
//= SCA-3 accepted
//= CTL-2 refused
#[test]
fn a_gateway_on_a_database_goes_on() {
    let Some(server) = postgres() else { return };
    let (schema, host) = (server.schema(), server.folder().display());
    let user = schema.get_user().unwrap();
    a_gateway_goes_on(Gate::builder().state(&format!(
        "postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}"
    )));
}
