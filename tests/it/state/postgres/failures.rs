//! A database that a gateway cannot use: each failure is refused, and named at the start, in `/readyz` and by the metric.

use super::readiness;
use crate::harness::{
    Call, Gate, Postgres, Protocol, accepted, eventually, eventually_is, free_address, let_pass,
    refused, server_pki, write_of_owner, write_private,
};
use portvakt::state::{PostgresSettings, PostgresTls, StateSettings, StateStore};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// Two users with a schema each: of the gateway that refuses answers from memory, and of the one that gives them.
const USERS: [&str; 2] = ["fresh", "memory"];

const PASSWORD: &str = "correct-horse";

/// A server that accepts TLS with a password only, and its certificates.
struct Database {
    server: Postgres,
    port: u16,
    data: PathBuf,
    pki: TempDir,
}

impl Database {
    /// `None` where PostgreSQL is not installed.
    fn start() -> Option<Self> {
        let pki = server_pki();
        let port = free_address().port();
        let settings = "listen_addresses = '127.0.0.1'\nssl = on";
        let mut data = PathBuf::new();
        let server = Postgres::start(port, settings, |folder| {
            data = folder.to_owned();
            let hosts = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
            write_of_owner(&folder.join("pg_hba.conf"), hosts);
            install(pki.path(), folder, "server");
        })?;
        for user in USERS {
            server.sql(&format!(
                "CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'; CREATE SCHEMA {user} AUTHORIZATION {user}"
            ));
        }
        write_private(&pki.path().join("password"), format!("{PASSWORD}\n"));
        Some(Self {
            server,
            port,
            data,
            pki,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.pki.path().join(name)
    }

    /// A gateway whose answers from memory its user names.
    fn gate(&self, user: &str) -> Gate {
        let (port, password, ca) = (self.port, self.file("password"), self.file("ca.pem"));
        let (password, ca) = (password.display(), ca.display());
        Gate::builder()
            .state(&format!(
                "postgres: {{url: 'postgres://{user}@localhost:{port}/postgres', password_file: {password}, \
                 tls: {{ca: {ca}}}, reads: {user}}}"
            ))
            .start()
    }

    /// The fault with which a gateway does not start.
    fn fault_at_start(&self, gate: &Gate, user: &str) -> String {
        let mut config = tokio_postgres::Config::new();
        config
            .host("localhost")
            .port(self.port)
            .user(user)
            .dbname("postgres");
        let mut postgres = PostgresSettings::new(config);
        postgres.password = Some(self.file("password"));
        postgres.tls = Some(PostgresTls {
            ca: self.file("ca.pem"),
            identity: None,
        });
        let key = gate.folder().join("state/hash.key");
        let mut settings = StateSettings::new("unused.db", key);
        settings.engine = postgres.into();
        StateStore::open(&settings).unwrap_err().to_string()
    }

    /// Statements for each user, `USER`.
    fn sql(&self, statements: &str) {
        for user in USERS {
            self.server.sql(&statements.replace("USER", user));
        }
    }

    /// Another certificate of the server.
    fn install(&self, name: &str) {
        install(self.pki.path(), &self.data, name);
    }

    /// The server reads its settings again, and ends the gateways' connections.
    fn reload(&self) {
        self.server.reload();
        self.server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> 'portvakt'",
        );
    }

    /// The disk is full for the table to which every transaction adds a row: the file of the table is a device that is full.
    fn fill_disk(&self) {
        // Without gateways meanwhile: no server process has the table's new file open.
        self.sql("ALTER ROLE USER NOLOGIN");
        self.reload();
        self.sql("TRUNCATE USER.attempt");
        for user in USERS {
            let table = self.table(user);
            fs::remove_file(&table).unwrap();
            symlink("/dev/full", &table).unwrap();
        }
        self.sql("ALTER ROLE USER LOGIN");
    }

    /// There is room again.
    fn empty_disk(&self) {
        for user in USERS {
            let table = self.table(user);
            fs::remove_file(&table).unwrap();
            write_of_owner(&table, "");
        }
    }

    fn table(&self, user: &str) -> PathBuf {
        let path = format!("SELECT pg_relation_filepath('{user}.attempt')");
        self.data.join(&self.server.sql(&path)[0])
    }
}

fn install(pki: &Path, data: &Path, name: &str) {
    for (file, to) in [("pem", "server.crt"), ("key", "server.key")] {
        let text = fs::read_to_string(pki.join(format!("{name}.{file}"))).unwrap();
        write_of_owner(&data.join(to), &text);
    }
}

/// A failure of the database.
struct Failure {
    name: &'static str,
    begin: fn(&Database),
    end: fn(&Database),
    /// The part of the fault that names it.
    fault: &'static str,
}

/// Any certificate but the right one.
const fn certificate(name: &'static str, begin: fn(&Database), fault: &'static str) -> Failure {
    Failure {
        name,
        begin,
        end: |database| database.install("server"),
        fault,
    }
}

const FAILURES: &[Failure] = &[
    certificate(
        "an expired certificate",
        |database| database.install("expired"),
        "certificate expired",
    ),
    certificate(
        "a certificate of another CA",
        |database| database.install("stranger"),
        "UnknownIssuer",
    ),
    certificate(
        "a certificate for another name",
        |database| database.install("nameless"),
        "not valid for name",
    ),
    Failure {
        name: "no TLS",
        begin: |database| {
            database.server.sql("ALTER SYSTEM SET ssl = off");
        },
        end: |database| {
            database.server.sql("ALTER SYSTEM SET ssl = on");
        },
        fault: "server does not support TLS",
    },
    Failure {
        name: "another password",
        begin: |database| database.sql("ALTER ROLE USER PASSWORD 'battery-staple'"),
        end: |database| database.sql(&format!("ALTER ROLE USER PASSWORD '{PASSWORD}'")),
        fault: "password authentication failed",
    },
    Failure {
        name: "no connection left",
        begin: |database| database.sql("ALTER ROLE USER CONNECTION LIMIT 0"),
        end: |database| database.sql("ALTER ROLE USER CONNECTION LIMIT -1"),
        fault: "too many connections",
    },
    Failure {
        name: "another schema",
        begin: |database| database.sql("UPDATE USER.meta SET value = '99' WHERE name = 'schema'"),
        end: |database| database.sql("UPDATE USER.meta SET value = '5' WHERE name = 'schema'"),
        fault: "the database has schema 99",
    },
    Failure {
        name: "read-only",
        begin: |database| database.sql("ALTER ROLE USER SET default_transaction_read_only = on"),
        end: |database| database.sql("ALTER ROLE USER RESET default_transaction_read_only"),
        fault: "the database is read-only",
    },
    Failure {
        name: "a full disk",
        begin: Database::fill_disk,
        end: Database::empty_disk,
        fault: "No space left on device",
    },
];

/// The gateway is ready with the first worker that has a connection again; the others find out one by one.
fn recovers(gate: &Gate) {
    readiness(gate, 200, "");
    let payment = Call::payment().only(Protocol::Http1);
    eventually_is("the status of a payment", 200, || {
        gate.send(&payment, Protocol::Http1).status
    });
}

/// REP-1, QUO-1, SCA-4: without its database a gateway forwards nothing, but for PSUs in memory where that is configured.
#[test]
fn each_failure_of_the_database_is_refused_and_named() {
    let Some(database) = Database::start() else {
        return;
    };
    let [fresh, memory] = USERS.map(|user| database.gate(user));
    let encrypted = database.server.sql(
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND usename = 'fresh'",
    );
    assert_ne!(encrypted, ["0"], "no connection has TLS");
    let payment = Call::payment().only(Protocol::Http1);
    let warm = Call::accounts().present().only(Protocol::Http1);
    for failure in FAILURES {
        for gate in [&fresh, &memory] {
            accepted(gate, &payment);
        }
        // A row that was read before the gateway read the log of its last change is dropped: no change is new by then.
        let_pass(Duration::from_secs(1));
        for gate in [&fresh, &memory] {
            accepted(gate, &warm);
        }
        (failure.begin)(&database);
        database.reload();
        for (gate, user) in [(&fresh, "fresh"), (&memory, "memory")] {
            let not_well = readiness(gate, 503, failure.fault);
            let at_start = database.fault_at_start(gate, user);
            println!("{}: {not_well}", failure.name);
            assert!(
                at_start.contains(failure.fault),
                "{}: {at_start}",
                failure.name
            );
            for text in [&not_well, &at_start] {
                assert!(!text.contains(PASSWORD), "{text}");
            }
            refused(gate, &payment, 503, "SYSTEM_ERROR", "state-unavailable");
            assert_eq!(gate.metric_now("portvakt_ready", &[]), 0.0);
        }
        // The last proof may be less than a second old.
        eventually("the last proof is too old", || {
            fresh.send(&warm, Protocol::Http1).status == 503
        });
        fresh.upstream().take();
        refused(&fresh, &warm, 503, "SYSTEM_ERROR", "state-unavailable");
        accepted(&memory, &warm);
        (failure.end)(&database);
        database.reload();
        for gate in [&fresh, &memory] {
            recovers(gate);
        }
    }
    for gate in [&fresh, &memory] {
        accepted(gate, &payment);
        accepted(gate, &warm);
    }
}

/// The server has connections for those that hear it and look PSUs up, and for one that writes, or for none.
#[test]
fn a_gateway_goes_on_with_fewer_connections_and_is_not_ready_without_one_that_writes() {
    let Some(database) = Database::start() else {
        return;
    };
    let gate = database.gate("fresh");
    let payment = Call::payment().only(Protocol::Http1);
    let limit = |connections: i32| {
        let limit = format!("ALTER ROLE USER CONNECTION LIMIT {connections}");
        database.sql(&limit);
        database.reload();
    };
    let together = |calls: usize| {
        std::thread::scope(|scope| {
            let sent: Vec<_> = (0..calls)
                .map(|_| scope.spawn(|| gate.send(&payment, Protocol::Http1).status))
                .collect();
            let answers = sent.into_iter().map(|sent| sent.join().unwrap());
            answers.collect::<Vec<_>>()
        })
    };
    accepted(&gate, &payment);
    limit(3);
    readiness(&gate, 200, "");
    // Each worker finds out once whether there is a connection for it.
    let_pass(Duration::from_secs(2));
    together(64);
    let mut refused_in_all = 0;
    for _ in 0..20 {
        refused_in_all += together(32).iter().filter(|status| **status != 200).count();
        // The one that writes may have to ask for its connection once more.
        readiness(&gate, 200, "");
        // The workers ask for their connections again meanwhile.
        let_pass(Duration::from_millis(50));
    }
    // A worker may still find out; one that went on to take requests would refuse some in each round.
    assert!(refused_in_all <= 32, "{refused_in_all} of 640");
    limit(2);
    readiness(&gate, 503, "too many connections");
    // It asks for connections again and again meanwhile.
    for _ in 0..100 {
        assert_eq!(gate.control("/readyz").status, 503);
        let_pass(Duration::from_millis(20));
    }
    refused(&gate, &payment, 503, "SYSTEM_ERROR", "state-unavailable");
    limit(-1);
    recovers(&gate);
    eventually_is("the answers", [200; 32].to_vec(), || together(32));
    accepted(&gate, &payment);
}

/// The server has no connection left to look PSUs up, while the others go on.
#[test]
fn a_gateway_that_cannot_look_psus_up_is_not_ready() {
    let Some(database) = Database::start() else {
        return;
    };
    let gate = database.gate("fresh");
    let warm = Call::accounts().present().only(Protocol::Http1);
    accepted(&gate, &warm);
    database.sql("ALTER ROLE USER CONNECTION LIMIT 0");
    let ended = database.server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE usename = 'fresh' AND query LIKE '%name = ''key_check''%'",
    );
    assert_eq!(ended, ["t"]);
    // A writer that connects only now has the same fault, until another one has written.
    let not_well = readiness(&gate, 503, "look-ups");
    assert!(not_well.contains("too many connections"), "{not_well}");
    database.sql("ALTER ROLE USER CONNECTION LIMIT -1");
    recovers(&gate);
    accepted(&gate, &warm);
}
