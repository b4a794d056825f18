//! Nothing that the program has started outlives it.

use super::{Program, Verdict, script, signed};
use crate::second::program::Running;
use portvakt_base::clock::Stopwatch;
use std::{fs, path::Path, process::Command, thread, time::Duration};

/// How long a test waits for a process to start or to end.
const LONGEST: Duration = Duration::from_secs(60);

/// Starts a process that would run for ten minutes, and writes its number into a file beside the script.
const STARTS: &str = "sleep 600 &\necho $! > \"$0.child\"\n";

/// The number of the process in a file, once it is there.
fn started(path: &Path) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

/// Whether a process runs. One that was killed may have nobody who takes its status.
fn runs(process: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return false;
    };
    let (_, state) = text.rsplit_once(") ").unwrap();
    !state.starts_with(['Z', 'X'])
}

/// Waits for a condition.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Stopwatch::start();
    while !holds() {
        assert!(began.elapsed() < LONGEST, "a wait ran out: {what}");
        thread::yield_now();
    }
}

/// Also of a program that ends in time.
//= CRT-13 refused
#[test]
fn a_process_that_the_program_leaves_behind_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let path = script(folder.path(), "leaves", &format!("{STARTS}exit 1"));
    let program = Program::new(path.clone());
    let verdict = program.ask(document.source().as_bytes(), &pins[0]);
    let expected = Verdict::Refuses("exit status: 1".to_owned());
    assert_eq!(verdict.unwrap(), expected);
    let process = started(&path.with_extension("child")).unwrap();
    eventually("it has ended", || !runs(process));
}

//= CRT-13 refused
#[test]
fn what_the_program_has_started_is_stopped_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let path = script(folder.path(), "waits", &format!("{STARTS}wait"));
    // On a machine that is busy, it may not have started anything in the first second.
    let process = [1, 8, 64].into_iter().find_map(|seconds| {
        let program = Program {
            path: path.clone(),
            limit: Duration::from_secs(seconds),
        };
        let verdict = program.ask(document.source().as_bytes(), &pins[0]);
        assert_eq!(verdict.unwrap(), Verdict::TooSlow);
        started(&path.with_extension("child"))
    });
    let process = process.unwrap();
    eventually("it has ended", || !runs(process));
}

//= CRT-13 refused
#[test]
fn a_program_for_which_nobody_waits_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("started");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "sleep 600 &\necho $! > \"$1\"\nwait", "sh"])
        .arg(&path);
    let running = Running::start(&mut shell).unwrap();
    let mut process = None;
    eventually("it has started", || {
        process = started(&path);
        process.is_some()
    });
    let process = process.unwrap();
    assert!(runs(process));
    drop(running);
    eventually("it has ended", || !runs(process));
}
