//! docs/audit.md: the audit of a program that is killed again and again, and on a disk that fails.

use crate::{
    audit::{ON, audit_of, records},
    harness::{Call, Gate, Program, Protocol, accepted, ended, eventually, refused},
    soak::kill_under_load,
};
use portvakt::audit::verify;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// No payment that the core received is missing in the audit.
#[test]
#[ignore = "make test-systems"]
fn two_hundred_kills_lose_no_audited_payment() {
    kill_under_load(200, Gate::builder());
}

/// The calls of fdatasync for the file of payments that fail with EIO: after those for a payment and its outcome, a second apart.
const FAILING: &str = "inject=fdatasync:error=EIO:when=3..5";

/// Starts a gate's program whose system calls on this file fail as `inject` of strace says. Returns it with the file of its process id.
pub(super) fn traced(gate: &Gate, call: &str, inject: &str, file: &Path) -> (Program, PathBuf) {
    let (pid, program) = (gate.folder().join("pid"), gate.program());
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "--seccomp-bpf", "-o", "/dev/null"]);
    traced.args(["-e", &format!("trace={call}"), "-e", inject, "-P"]);
    traced.arg(file);
    traced.args(["sh", "-c", "echo $$ > \"$0\" && exec \"$@\""]);
    traced.arg(&pid);
    traced.arg(program.get_program()).args(program.get_args());
    (gate.run_silently(&mut traced), pid)
}

/// Sends a signal to the program that [`traced`] has started.
pub(super) fn signal(pid: &Path, name: &str) {
    let pid = fs::read_to_string(pid).unwrap();
    let sent = Command::new("kill").args([name, pid.trim()]).status();
    assert!(sent.unwrap().success());
}

/// EIO from the disk at the synchronisation of a record. With `required` the payment gets 503, the core sees nothing, and requests of every
/// kind are refused until the disk writes again; otherwise requests go on, and the record is written later.
#[test]
#[ignore = "make test-systems"]
fn an_error_of_the_disk_stops_requests_only_if_the_audit_is_required() {
    for required in [true, false] {
        let line = ON.replace('}', &format!(", required: {required}}}"));
        let gate = Gate::builder().line(&line).for_program();
        let audit = audit_of(&gate);
        let first = audit.join("1/payments-00000000000000000001.jsonl");
        let (mut traced, pid) = traced(&gate, "fdatasync", FAILING, &first);
        let payment = Call::payment().only(Protocol::Http1);
        let read = Call::accounts().present().only(Protocol::Http1);
        accepted(&gate, &read);
        accepted(&gate, &payment);
        let count = |kind: &str| {
            let records = records(&audit);
            records
                .iter()
                .filter(|record| record["kind"] == kind)
                .count()
        };
        eventually("the first outcome is written", || count("outcome") == 1);
        let readiness = || gate.control("/readyz");
        if required {
            for call in [&payment, &read] {
                refused(&gate, call, 503, "SYSTEM_ERROR", "state-unavailable");
            }
            assert_eq!(readiness().status, 503);
        } else {
            accepted(&gate, &payment);
            eventually("/readyz names the audit", || {
                readiness().json().to_string().contains("audit: ")
            });
            accepted(&gate, &read);
        }
        eventually("the disk writes again", || {
            let answer = readiness();
            answer.status == 200 && !answer.json().to_string().contains("audit: ")
        });
        accepted(&gate, &payment);
        // The payment that was refused has only an outcome: the disk has refused its forwarding for good.
        let forwarded = if required { 2 } else { 3 };
        eventually("every record is written once", || {
            [count("forwarding"), count("outcome")] == [forwarded, 3]
        });
        let failed = gate.metric_now("portvakt_audit_records_total", &["result=\"failed\""]);
        // Each once, also if it is written later.
        assert!(failed >= 1.0, "{failed}");
        signal(&pid, "-TERM");
        assert!(ended(&mut traced.0).success());
        assert_eq!(verify(&audit, &[]).unwrap().findings, []);
    }
}
