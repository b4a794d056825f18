//! ERR-4, QUO-5, REP-1: a disk that is full or cannot be written, and requests that need no disk.

use crate::harness::{
    Call, Connection, Gate, Protocol, accepted, check_error, eventually, refused, skipped,
};
use portvakt::clock::{Clock, Stopwatch};
use serde_json::json;
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// The account list with the PSU present. The PSU stays in memory after the first request.
fn warm() -> Call {
    Call::accounts().present()
}

/// Whether the gateway is ready, and the faults that it reports.
fn readiness(gate: &Gate) -> (u16, String) {
    let answer = gate.control("/readyz");
    (answer.status, answer.json()["notWell"].to_string())
}

/// Waits for a given readiness.
fn becomes(gate: &Gate, status: u16) -> String {
    eventually(&format!("/readyz says {status}"), || {
        let (found, not_well) = readiness(gate);
        if found == status {
            Ok(not_well)
        } else {
            Err((found, not_well))
        }
    })
}

/// While the disk is full, requests that need a write are refused and others succeed; the refused ones have claimed nothing.
fn fails_closed(gate: &Gate, take_away: impl FnOnce(), give_back: impl FnOnce()) {
    let balances = Call::balances().only(Protocol::Http1);
    accepted(gate, &warm());
    accepted(gate, &Call::payment());
    accepted(gate, &balances);
    assert_eq!(readiness(gate), (200, "[]".into()));
    take_away();
    // Fills the space that the file has already allocated: a small commit may still fit where a large one did not.
    let mut refusals = 0;
    eventually("ten payments in a row are refused", || {
        let refused = gate.send(&Call::payment(), Protocol::Http1).status == 503;
        refusals = if refused { refusals + 1 } else { 0 };
        (refusals == 10).then_some(()).ok_or(refusals)
    });
    becomes(gate, 503);
    for _ in 0..3 {
        for call in [&Call::payment(), &balances] {
            let answer = refused(gate, call, 503, "SYSTEM_ERROR", "state-unavailable");
            assert!(answer.header("retry-after").is_some());
        }
        accepted(gate, &warm());
    }
    let said = becomes(gate, 503);
    assert!(said.contains("state: "), "{said}");
    println!("readyz: {said}");
    // A file is this replica's own.
    assert_eq!(gate.control("/readyz?local=1").status, 503);
    let who = json!({
        "tpp": gate.world().both.id(), "psu_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "last_sca": gate.now().to_string(),
    });
    let answer = gate.tell("/psu/bind", &who);
    check_error("bind", &answer, 503, "SYSTEM_ERROR", "state-unavailable");
    give_back();
    becomes(gate, 200);
    accepted(gate, &Call::payment());
    for _ in 0..3 {
        accepted(gate, &balances);
    }
    refused(gate, &balances, 429, "ACCESS_EXCEEDED", "quota-exceeded");
    assert_eq!(gate.tell("/psu/bind", &who).status, 200);
}

/// Runs a command in a new mount namespace with a file system of this size in MiB at a path.
pub(crate) fn with_small_disk(mebibytes: u32, place: &Path, command: &Command) -> Command {
    let mut inside = Command::new("unshare");
    let script =
        format!("mount -t tmpfs -o size={mebibytes}m,mode=0700 tmpfs \"$0\" && exec \"$@\"");
    inside.args(["--map-root-user", "--mount", "sh", "-c", &script]);
    inside.arg(place);
    inside.arg(command.get_program()).args(command.get_args());
    inside
}

//= ERR-4 refused
#[test]
fn a_disk_that_is_full_fails_closed_and_recovers() {
    let tried = with_small_disk(2, TempDir::new().unwrap().path(), &Command::new("true")).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        skipped(&format!("a file system cannot be mounted here: {tried:?}"));
        return;
    }
    let gate = Gate::builder().for_program();
    let state = gate.folder().join("state");
    fs::create_dir(&state).unwrap();
    let mut program = with_small_disk(2, &state, &gate.program());
    let program = gate.run(program.stdout(Stdio::null()).stderr(Stdio::null()));
    // The path in the program's mount namespace: outside, the folder is empty.
    let seen = PathBuf::from(format!("/proc/{}/root", program.0.id()));
    let filler = seen.join(state.strip_prefix("/").unwrap()).join("filler");
    let fill = || {
        let mut file = File::create(&filler).unwrap();
        let block = [0_u8; 4096];
        while file.write_all(&block).is_ok() {}
    };
    fails_closed(&gate, fill, || fs::remove_file(&filler).unwrap());
}

/// A file that reaches the limit of its size is like a full disk: SIGXFSZ must not end the process.
//= ERR-4 refused
#[test]
fn a_limit_of_file_sizes_fails_closed_and_recovers() {
    let gate = Gate::builder().for_program();
    let mut program = gate.program();
    let program = gate.run(program.stdout(Stdio::null()).stderr(Stdio::null()));
    let limit = |size: &str| {
        let mut prlimit = Command::new("prlimit");
        prlimit.arg(format!("--pid={}", program.0.id()));
        let set = prlimit.arg(format!("--fsize={size}:unlimited")).status();
        assert!(set.unwrap().success());
    };
    fails_closed(&gate, || limit("65536"), || limit("unlimited"));
}

/// A file that is immutable, even for its owner, until this is dropped.
struct Immutable(PathBuf);

impl Immutable {
    fn make(path: PathBuf) -> Option<Self> {
        let changed = Command::new("chattr").arg("+i").arg(&path).output();
        let changed = changed.is_ok_and(|output| output.status.success());
        changed.then_some(Self(path))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

/// Whether the kernel lets this process make an open file immutable.
fn can_be_read_only(folder: &Path) -> bool {
    let path = folder.join("tried");
    let mut file = File::create(&path).unwrap();
    let made = Immutable::make(path);
    made.is_some() && file.write_all(b"x").is_err()
}

//= ERR-4 refused
#[test]
fn a_file_that_cannot_be_written_fails_closed_and_recovers() {
    let gate = Gate::start();
    if !can_be_read_only(gate.folder()) {
        skipped("a file cannot be made immutable here (chattr +i)");
        return;
    }
    let files = ["portvakt.db", "portvakt.db-wal"];
    let files = files.map(|name| gate.folder().join("state").join(name));
    let made = std::cell::RefCell::new(Vec::new());
    fails_closed(
        &gate,
        || {
            let immutable = files.map(|file| Immutable::make(file).unwrap());
            made.borrow_mut().extend(immutable);
        },
        || made.borrow_mut().clear(),
    );
}

/// Without a usable file, any read or write would fail: the requests succeed, so they need neither.
#[test]
fn a_signed_get_with_the_psu_present_touches_no_disk() {
    // The day of the last use is written once a day: midnight must not come meanwhile.
    let clock = Clock::standing(Clock::System.now());
    let gate = Gate::builder().clock(&clock).start();
    accepted(&gate, &warm());
    let state = gate.folder().join("state");
    let log = || {
        let found = fs::metadata(state.join("portvakt.db-wal")).unwrap();
        (found.len(), found.modified().unwrap())
    };
    let changes = || gate.metric_now("portvakt_state_batch_changes_sum", &[]);
    // Housekeeping, which runs once a second and counts, may write because of earlier requests.
    let mut rests = (log(), changes());
    eventually("housekeeping writes nothing any more", || {
        let now = (log(), changes());
        if now.0 != rests.0 {
            rests = now;
        }
        (now.1 >= rests.1 + 2.0).then_some(()).ok_or(now.1)
    });
    let (began, before) = (Stopwatch::start(), (log(), changes()));
    fifty_are_answered(&gate);
    assert_eq!(log(), before.0, "the log was written");
    let counted = changes() - before.1;
    let own = began.elapsed().as_secs_f64() + 1.0;
    assert!(counted <= own, "{counted} {own}");

    let (file, away) = (state.join("portvakt.db"), state.join("away"));
    // What is known of a PSU counts for a second after the gateway last heard of changes, which it cannot without the file.
    let mut answered = 0;
    eventually("fifty are answered without the file", || {
        fs::rename(&file, &away).unwrap();
        let mut connection = Connection::open(&gate);
        let sent = (answered..50).map(|_| connection.exchange(&gate.seal(&warm())).unwrap());
        answered += sent.take_while(|answer| answer.status == 200).count();
        fs::rename(&away, &file).unwrap();
        becomes(&gate, 200);
        (answered == 50).then_some(()).ok_or(answered)
    });
    fs::rename(&file, &away).unwrap();
    let payment = Call::payment();
    refused(&gate, &payment, 503, "SYSTEM_ERROR", "state-unavailable");
    fs::rename(&away, &file).unwrap();
    accepted(&gate, &payment);
}

fn fifty_are_answered(gate: &Gate) {
    gate.upstream().take();
    let mut connection = Connection::open(gate);
    for _ in 0..50 {
        let answer = connection.exchange(&gate.seal(&warm())).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.reason());
    }
    assert_eq!(gate.upstream().take().len(), 50);
}
