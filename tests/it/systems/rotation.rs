//! The hash key of the state is rotated under load, and both the rotation and the gateway are killed at random moments. Each rotation is run
//! again until it is done.
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
