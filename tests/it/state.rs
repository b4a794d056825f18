//! CTL-1, CTL-3, QUO-*, REP-1, SCA-3 to SCA-7, SCA-12, SCA-13, SCA-16 to SCA-19: the state store, with every engine.

use crate::harness::postgres;
use portvakt::{
    clock::Timestamp,
    interface::{
        TppId,
        headers::{PsuId, SessionId},
    },
    state::{
        Beside, Bound, ClaimRequest, Completion, ConsentAccounts, Decision, EngineSettings, Finish,
        Hash, Known, Learned, Named, PostgresSettings, PsuRef, QuotaClaim, RequestIdClaim,
        Retention, StateSettings, StateStore, Taken, VolatileTables,
    },
};
use std::{fs, path::Path, sync::LazyLock};
use tempfile::TempDir;

/// A TPP, and another.
static TPP: LazyLock<TppId> = LazyLock::new(|| TppId::parse("PSDNO-FSA-123456").unwrap());
static OTHER: LazyLock<TppId> = LazyLock::new(|| TppId::parse("PSDSE-FINA-44059").unwrap());

/// The start time of every test: 2026-01-01T00:00:00Z.
const BEGIN: u64 = 1_767_225_600;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// Every retention of a request id.
const RETENTIONS: [Retention; 3] = [Retention::Memory, Retention::Date, Retention::Day];

/// Takes back the steps of the schema for CTL-3, CTL-1 and CTL-4, in a file or in a database: the tables are those of the schema before.
const WITHOUT_CUSTOMERS: &str = "DROP VIEW events; DROP TABLE event; DROP TABLE outbox; DROP INDEX psu_ending; \
    ALTER TABLE psu DROP COLUMN pseudonym; ALTER TABLE psu DROP COLUMN ended; \
    DROP INDEX psu_customer; ALTER TABLE psu DROP COLUMN customer; \
    ALTER TABLE context DROP COLUMN used; DROP VIEW tpp_moves; DROP TABLE moved;";

/// The way back to the schema before, as docs/operations.md shows it: the SQL that has both of these.
pub(crate) fn way_back(of: &str, to: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("## Back to the version before\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sql\n").skip(1);
    let mut blocks = blocks.map(|block| block.split("```").next().unwrap());
    let block = blocks.find(|block| block.contains(of) && block.contains(to));
    block.unwrap().to_owned()
}

/// An engine's data. Stores opened at the same time on the same data act like two processes; a store opened after another one was
/// dropped acts like a restart.
pub(crate) trait Data {
    /// Empty data.
    fn new() -> Self;

    /// Opens a store on the data.
    fn open(&self) -> StateStore;
}

/// SQLite: a folder with the file and its key.
struct SqliteFolder(TempDir);

/// PostgreSQL: a schema in the server of this process, and a folder with the key.
pub(crate) struct PostgresSchema(StateSettings, TempDir);

/// Tables in the memory of this process.
struct InMemory(VolatileTables);

/// A number from the environment: the length of a test.
fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

impl Data for SqliteFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> StateStore {
        StateStore::try_open(&self.settings()).unwrap();
        StateStore::open_and_migrate(&self.settings()).unwrap()
    }
}

impl SqliteFolder {
    fn settings(&self) -> StateSettings {
        StateSettings::new(
            self.0.path().join("state/portvakt.db"),
            self.0.path().join("state/hash.key"),
        )
    }
}

impl PostgresSchema {
    /// The owner of the schema, who has its name.
    pub(crate) fn user(&self) -> &str {
        user(&self.0)
    }
}

/// The user of the database of these settings.
fn user(settings: &StateSettings) -> &str {
    match &settings.engine {
        EngineSettings::Postgres(postgres) => postgres.server.get_user().unwrap(),
        EngineSettings::Sqlite => panic!("the state is in a file"),
    }
}

/// The database of these settings, to be changed.
fn database(settings: &mut StateSettings) -> &mut PostgresSettings {
    match &mut settings.engine {
        EngineSettings::Postgres(postgres) => postgres,
        EngineSettings::Sqlite => panic!("the state is in a file"),
    }
}

impl Data for PostgresSchema {
    fn new() -> Self {
        let server = postgres().unwrap().schema();
        let folder = tempfile::tempdir().unwrap();
        let mut settings = StateSettings::new("unused.db", folder.path().join("state/hash.key"));
        settings.engine = PostgresSettings::new(server).into();
        Self(settings, folder)
    }

    fn open(&self) -> StateStore {
        StateStore::try_open(&self.0).unwrap();
        StateStore::open_and_migrate(&self.0).unwrap()
    }
}

impl Data for InMemory {
    fn new() -> Self {
        Self(VolatileTables::new([7; 32]))
    }

    fn open(&self) -> StateStore {
        // This engine does not use the file names.
        let settings = StateSettings::new("portvakt.db", "hash.key");
        StateStore::open_volatile(&settings, &self.0)
    }
}

/// Makes a module of tests for each engine, from functions that are generic over its [`Data`].
macro_rules! on_every_engine {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name::<super::super::SqliteFolder>().await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                if crate::harness::postgres().is_some() {
                    super::$name::<super::super::PostgresSchema>().await;
                }
            })+
        }

        mod in_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name::<super::super::InMemory>().await;
            })+
        }
    };
}

/// The conformance suite: the behaviour of every engine.
mod conformance;

/// Random sequences, compared with a simple model in memory.
mod model;

/// Many concurrent tasks, and two processes, with one key.
mod race;

/// The SQLite file: open, refused, damaged, unavailable, available again.
mod file;

/// State files of earlier versions.
mod released;

/// Agreements of which nobody knows who stated them.
mod origin;

/// The live consents of each TPP in a report.
mod live_consents;

/// The bank's key for a customer, and the day of the last use.
mod customers;

/// The stream of events for the bank's services.
mod events;

/// A customer's accesses that the bank withdraws.
mod withdrawn_accesses;

/// Two gateways, and what the bank, the core and TPPs say at random.
mod last_word;

/// PostgreSQL: lost commits, lost connections, other databases, moving from a file.
mod postgres;

/// The rotation of the hash key.
mod rotation;

/// A clock that steps back.
mod clock;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix(seconds)
}

/// A distinct hash for each number.
fn hash<K>(number: u64) -> Hash<K> {
    let spread = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    Hash::from_bytes(spread.to_be_bytes())
}

fn who(psu: u128) -> PsuRef<'static> {
    let psu = Known::by_bank(PsuId::from_bits(psu));
    PsuRef { tpp: &TPP, psu }
}

/// A call of a quota.
fn call(key: u64, now: u64) -> ClaimRequest {
    ClaimRequest {
        request: None,
        quota: Some(QuotaClaim {
            key: hash(key),
            beside: Beside::default(),
            page: None,
        }),
        now: at(now),
    }
}

/// The first use of a request id, by a request that was signed at the time of sending.
fn request(id: u64, retention: Retention, now: u64) -> ClaimRequest {
    dated(id, retention, now, now)
}

/// The same, with another Date.
fn dated(id: u64, retention: Retention, date: u64, now: u64) -> ClaimRequest {
    ClaimRequest {
        request: Some(RequestIdClaim {
            id: hash(id),
            date: at(date),
            retention,
        }),
        quota: None,
        now: at(now),
    }
}

/// Returns the claim; any other decision fails the test.
fn held(decision: Decision) -> Taken {
    match decision {
        Decision::Held(taken) => taken,
        other => panic!("{other:?}"),
    }
}

/// Returns the time of the next possible call; any other decision fails the test.
fn next(decision: &Decision) -> u64 {
    match decision {
        Decision::NextAt(at) => at.unix(),
        other => panic!("{other:?}"),
    }
}

fn session_id(text: &str) -> SessionId {
    SessionId::from_text(text).unwrap()
}

/// Learns from an answer to a request that goes to the core now.
async fn learn_now(store: &StateStore, learned: Learned<'_>) -> Bound {
    let since = store.last_removal(Named::Known(learned.who.psu)).await;
    store.learn(learned, since.unwrap()).await.unwrap()
}

/// A successful SCA completion, for all accounts.
fn finish(token: u64, psu: u128, session: &str, now: u64) -> Finish<'static> {
    Finish {
        token: hash(token),
        expires: at(now + 900),
        said: hash(token),
        completion: Some(Completion {
            who: who(psu),
            corporate: None,
            session: session_id(session),
            consent: Some(&ConsentAccounts::All),
            customer: None,
        }),
        now: at(now),
    }
}
