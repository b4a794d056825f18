//! The hash key of the state is rotated under load, and both the rotation and the gateway are killed at random moments. Each rotation is
//! run again until it is done.
//!
//! `PORTVAKT_ROTATIONS` is the number of rotations on each engine.

use crate::{
    harness::{Dice, Gate, GateBuilder, Program, let_pass, postgres},
    soak::rotate_under_load,
};
use portvakt::clock::Stopwatch;
use std::{
    process::{Command, Stdio},
    time::Duration,
};

/// The rotations of one state: a key file holds 16 keys.
const OF_A_STATE: u64 = 12;

//= QUO-7 accepted
//= REP-1 refused
//= SCA-12 accepted
#[test]
#[ignore = "make test-systems"]
fn rotations_of_a_file_that_are_killed_lose_and_double_nothing() {
    rotate_many(Gate::builder);
}

#[test]
#[ignore = "make test-systems"]
fn rotations_of_a_database_that_are_killed_lose_and_double_nothing() {
    let Some(server) = postgres() else { return };
    rotate_many(|| {
        let (schema, host) = (server.schema(), server.folder().display());
        let user = schema.get_user().unwrap();
        Gate::builder().state(&format!(
            "postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}"
        ))
    });
}

fn rotate_many(builder: impl Fn() -> GateBuilder) {
    let count = std::env::var("PORTVAKT_ROTATIONS");
    let mut left: u64 = count.map_or(6, |count| count.parse().unwrap());
    while left > 0 {
        let now = left.min(OF_A_STATE);
        rotate_under_load(now, builder(), rotate);
        left -= now;
    }
}

/// Rotates once. The first attempt is killed, and sometimes the gateway with it.
fn rotate(gate: &Gate, program: &mut Program, dice: &mut Dice) {
    let before = level(gate);
    let began = Stopwatch::start();
    let mut first = Program(command(gate, &["--yes"]).spawn().unwrap());
    let_pass(Duration::from_millis(dice.below(150)));
    first.end();
    if dice.one_in(3) {
        program.end();
    }
    let mut attempts = 1;
    while level(gate) == before {
        attempts += 1;
        let again = command(gate, &["--yes"]).output().unwrap();
        // The lock of a killed command may last until the server notices.
        assert!(again.status.success() || attempts < 20, "{again:?}");
    }
    assert_eq!(level(gate), before + 1);
    println!(
        "level {} after {attempts} attempts in {:?}",
        before + 1,
        began.elapsed()
    );
}

/// The level of the state, as the command says it.
fn level(gate: &Gate) -> u64 {
    let output = command(gate, &[]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let level = said.strip_prefix("the state has level ");
    let level = level.and_then(|rest| rest.split(',').next());
    let level =
        level.unwrap_or_else(|| panic!("{said} {}", String::from_utf8_lossy(&output.stderr)));
    level.parse().unwrap()
}

fn command(gate: &Gate, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    command
        .args(["state", "rotate-hash-key", "--config"])
        .arg(gate.folder().join("gateway.yaml"))
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The time of a rotation, printed: `PORTVAKT_ROTATED_PSUS` is the number of PSUs, each with a context of one account, a quota and a
/// request id.
#[test]
#[ignore = "make test-systems"]
fn many_rows_are_rewritten() {
    let count = std::env::var("PORTVAKT_ROTATED_PSUS");
    let count: u64 = count.map_or(20_000, |count| count.parse().unwrap());
    let gate = Gate::builder().for_program();
    gate.run_silently(&mut gate.program()).stop();
    let file = gate.folder().join("state/portvakt.db");
    let sql = rusqlite::Connection::open(&file).unwrap();
    sql.execute_batch(&format!(
        "INSERT OR IGNORE INTO tpp (name) VALUES ('PSDNO-FSA-123456');
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
        INSERT INTO psu (psu, tpp, last_sca, session, completed)
            SELECT randomblob(16), 1, 1800000000, randomblob(16), 1800000000 FROM n ORDER BY 1;
        INSERT INTO context (psu, corporate, last_sca, consent, accounts)
            SELECT psu, x'', 1800000000, 1800000000, randomblob(16) FROM psu;
        INSERT INTO quota (key, a) SELECT psu, 1800000000 FROM psu;
        INSERT INTO request (key, until) SELECT psu, 1900000000 FROM psu"
    ))
    .unwrap();
    drop(sql);
    measure(&gate, count);
    let Some(server) = postgres() else { return };
    let (schema, host) = (server.schema(), server.folder().display());
    let user = schema.get_user().unwrap();
    let url = format!("postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}");
    let gate = Gate::builder().state(&url).for_program();
    gate.run_silently(&mut gate.program()).stop();
    server.sql(&format!(
        "SET search_path = {user};
        INSERT INTO psu (psu, tpp, learned, last_sca, session, completed)
            SELECT gen_random_uuid(), 'PSDNO-FSA-123456', false, 1800000000, gen_random_uuid(), 1800000000 FROM generate_series(1, {count});
        INSERT INTO context (psu, corporate, last_sca, consent, accounts)
            SELECT psu, '', 1800000000, 1800000000, uuid_send(gen_random_uuid()) FROM psu;
        INSERT INTO quota (key, a) SELECT psu, 1800000000 FROM psu;
        INSERT INTO request (key, until) SELECT psu, 1900000000 FROM psu"
    ));
    measure(&gate, count);
}

fn measure(gate: &Gate, count: u64) {
    let began = Stopwatch::start();
    let output = command(gate, &["--yes"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let rows = said.lines().find(|line| line.starts_with("psu"));
    assert!(rows.unwrap().contains(&format!("{count} rows")), "{said}");
    println!("{count} PSUs: {:?}\n{said}", began.elapsed());
}
