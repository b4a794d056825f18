//! An upgrade to a version with another schema of the state. `packages::debian::the_life` does it from an older version.

use super::Family;
use crate::{
    harness::{Call, Gate, Protocol, Reply, eventually, signal_to},
    state::way_back,
};
use rusqlite::Connection;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Command,
    thread,
};

/// The schema of this version.
const SCHEMA: i64 = 6;

/// A running gateway, and its state.
struct Before {
    family: Family,
    state: PathBuf,
    sql: Connection,
}

impl Before {
    fn start() -> Self {
        Self::of(Family::start(
            Gate::builder().upstream("read_timeout: 300s"),
        ))
    }

    fn of(family: Family) -> Self {
        let state = family.gate.folder().join("state");
        let sql = Connection::open(state.join("portvakt.db")).unwrap();
        Self { family, state, sql }
    }

    fn schema(&self) -> i64 {
        let schema = self
            .sql
            .query_row("PRAGMA user_version", [], |row| row.get(0));
        schema.unwrap()
    }

    /// Waits for the new process to serve, which has migrated the state before. Until then, the one before may answer.
    fn eventually_migrated(&self) {
        let gate = &self.family.gate;
        gate.eventually_metric("portvakt_upgrades_total", &["taken_over"], 1.0);
        assert_eq!(self.schema(), SCHEMA);
    }

    /// Leaves the state as the version before this one would.
    fn make_earlier(&self) {
        let earlier = way_back("DROP VIEW events", "PRAGMA user_version = 5");
        self.sql.execute_batch(&earlier).unwrap();
    }

    /// Upgrades across a change of the schema during a call, which ends after `then`.
    fn upgrade_during_a_call(&self, then: impl FnOnce()) {
        let gate = &self.family.gate;
        let (reply, latch) = Reply::json(200, "{}").held();
        gate.upstream().reply(reply);
        let call = gate.seal(&Call::plain());
        thread::scope(|scope| {
            let call = scope.spawn(|| gate.send_sealed(&call, Protocol::Http1));
            latch.arrived(1);
            self.make_earlier();
            self.family.upgrade();
            then();
            assert_eq!(self.schema(), SCHEMA - 1, "a call is under way");
            assert!(self.copies().is_empty(), "{:?}", self.copies());
            latch.release();
            assert_eq!(call.join().unwrap().unwrap().status, 200);
        });
    }

    /// The copies beside the state.
    fn copies(&self) -> Vec<String> {
        let files = fs::read_dir(&self.state).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.contains("rehearsal") || name.contains("schema"))
            .collect()
    }
}

/// Where the schema cannot be migrated, the process before goes on. No tool migrates it.
#[test]
fn a_schema_that_cannot_be_migrated_leaves_the_process_before() {
    let before = Before::start();
    let gate = &before.family.gate;
    // The tables of the last step are there already, so that the step fails.
    let set = |schema: i64| {
        before
            .sql
            .pragma_update(None, "user_version", schema)
            .unwrap()
    };
    set(SCHEMA - 1);
    // As a process that was killed leaves them.
    for left in ["", "-journal", ".schema-5"] {
        let left = format!("portvakt.db.rehearsal{left}");
        fs::write(before.state.join(left), "left").unwrap();
    }
    let first = before.family.processes();
    before.family.signal("-USR2");
    gate.eventually_metric("portvakt_upgrades_total", &["failed"], 1.0);
    assert_eq!(before.family.processes(), first);
    let events = before.family.events();
    assert!(
        events.contains("to migrate a copy of it failed"),
        "{events}"
    );
    assert!(before.copies().is_empty(), "{:?}", before.copies());
    let psu = gate.folder().join("psu");
    fs::write(&psu, "1e2b3c4d-0001-4000-8000-000000000001").unwrap();
    let mut tool = Command::new(gate.program().get_program());
    tool.args(["psu", "erase", "--config"])
        .arg(gate.folder().join("gateway.yaml"))
        .arg(&psu);
    let tool = tool.output().unwrap();
    let said = String::from_utf8_lossy(&tool.stderr);
    assert!(said.contains("has an earlier schema"), "{said}");
    assert_eq!(before.schema(), SCHEMA - 1);
    assert_eq!(gate.send(&Call::payment(), Protocol::Http2).status, 200);
    set(SCHEMA);
    before.family.upgrade();
}

/// The schema is migrated once the requests of the process before have ended; who calls meanwhile is answered.
//= FWD-4 accepted
#[test]
fn a_new_schema_waits_for_the_process_before() {
    let before = Before::start();
    let gate = &before.family.gate;
    let first = before.family.processes()[0];
    let late = gate.seal(&Call::plain());
    thread::scope(|scope| {
        let mut answer = None;
        before.upgrade_during_a_call(|| {
            answer = Some(scope.spawn(|| gate.send_sealed(&late, Protocol::Http1)));
        });
        assert_eq!(answer.unwrap().join().unwrap().unwrap().status, 200);
    });
    eventually("the end of the old process", || {
        before.family.processes().len() == 1
    });
    assert_ne!(before.family.processes()[0], first);
    before.eventually_migrated();
    assert_eq!(before.copies(), ["portvakt.db.schema-5"]);
    let copy = before.state.join("portvakt.db.schema-5");
    assert_eq!(
        fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let copy = Connection::open(&copy).unwrap();
    let schema = copy.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    assert_eq!(schema.unwrap(), SCHEMA - 1);
    eventually("it is ready", || gate.control("/readyz").status == 200);
    let lines = before.family.stop();
    assert_eq!(lines.len(), 2);
}

/// The process before is not the parent of the new one, and its own parent does not learn of its end.
#[test]
fn a_script_may_start_the_new_process() {
    let gate = Gate::builder().for_program();
    let program = gate.folder().join("portvakt");
    let real = gate.program().get_program().to_owned();
    symlink(&real, &program).unwrap();
    let mut command = Command::new(&program);
    let config = gate.folder().join("gateway.yaml");
    command.args(["serve", "--config"]).arg(&config);
    let before = Before::of(Family::of(gate, command));
    fs::remove_file(&program).unwrap();
    fs::write(
        &program,
        format!("#!/bin/sh\n'{}' \"$@\"\n", real.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    before.make_earlier();
    before.family.upgrade();
    let gate = &before.family.gate;
    before.eventually_migrated();
    assert_eq!(gate.send(&Call::payment(), Protocol::Http2).status, 200);
}

/// A stop while the new process waits ends both, and the state is as it was. A service manager sends it to both.
#[test]
fn a_stop_before_the_migration_ends_both() {
    let before = Before::start();
    before.upgrade_during_a_call(|| {
        let processes = before.family.processes();
        for process in &processes {
            signal_to(*process, "-TERM");
        }
        eventually("the end of the new process", || {
            before.family.processes() == processes[..1]
        });
        let events = before.family.events();
        assert!(events.contains("told to stop before"), "{events}");
    });
    eventually("the end of the old process", || {
        before.family.processes().is_empty()
    });
    assert_eq!(before.schema(), SCHEMA - 1);
    assert!(before.copies().is_empty(), "{:?}", before.copies());
}

/// A tool that has the file when the process before has ended is waited for.
#[test]
fn a_tool_that_has_the_file_is_waited_for() {
    let before = Before::start();
    before.upgrade_during_a_call(|| before.sql.execute_batch("BEGIN IMMEDIATE").unwrap());
    let waits = "another process has the state, whose migration waits for it";
    eventually("an attempt", || before.family.events().contains(waits));
    assert_eq!(before.schema(), SCHEMA - 1);
    before.sql.execute_batch("ROLLBACK").unwrap();
    let gate = &before.family.gate;
    before.eventually_migrated();
    assert_eq!(gate.send(&Call::plain(), Protocol::Http2).status, 200);
}
