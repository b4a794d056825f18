//! docs/audit.md: the audit of a program that is killed again and again, and on a disk that fails.

use crate::{
    audit::{ON, audit_of, records},
    harness::{Call, Gate, Program, Protocol, accepted, eventually, refused, signal_to},
    soak::kill_under_load,
};
use portvakt::audit::verify;
use std::{fs, path::Path, process::Command};

/// No payment that the core received is missing in the audit.
#[test]
#[ignore = "make test-systems"]
fn two_hundred_kills_lose_no_audited_payment() {
    kill_under_load(200);
}

/// EIO from a disk for one file, from the start of a program until a test ends it: that something is degraded can be seen for as long as
/// a test looks. It does not begin at a later call: how many calls a program makes before depends on how busy the machine is.
pub(super) struct FailingDisk {
    /// The program whose calls fail.
    pub(super) program: Program,
}

impl FailingDisk {
    /// Starts a gate's program with a disk that fails at each such system call for a file.
    pub(super) fn of(gate: &Gate, call: &str, file: &Path) -> Self {
        let program = gate.program();
        let mut traced = Command::new("strace");
        // -D: the program is the child, and goes on without strace.
        traced.args(["-D", "-f", "-qq", "-o", "/dev/null"]);
        traced
            .args(["-e", &format!("trace={call}"), "-P"])
            .arg(file);
        traced.args(["-e", &format!("inject={call}:error=EIO")]);
        traced.arg(program.get_program()).args(program.get_args());
        Self {
            program: gate.run_silently(&mut traced),
        }
    }

    /// The disk works again.
    pub(super) fn mend(&self) {
        let status = format!("/proc/{}/status", self.program.0.id());
        let status = fs::read_to_string(status).unwrap();
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        let tracer = tracer.unwrap().trim().parse().unwrap();
        assert_ne!(tracer, 0, "the disk did not fail");
        signal_to(tracer, "-KILL");
    }
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
        let payment = Call::payment().only(Protocol::Http1);
        let read = Call::accounts().present().only(Protocol::Http1);
        let working = gate.run_silently(&mut gate.program());
        accepted(&gate, &payment);
        working.stop();
        let count = |kind: &str| {
            let records = records(&audit);
            records
                .iter()
                .filter(|record| record["kind"] == kind)
                .count()
        };
        assert_eq!([count("forwarding"), count("outcome")], [1, 1]);
        // The same file is written on.
        let disk = FailingDisk::of(&gate, "fdatasync", &first);
        accepted(&gate, &read);
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
        disk.mend();
        eventually("the audit is written again", || {
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
        disk.program.stop();
        assert_eq!(verify(&audit, &[]).unwrap().findings, []);
    }
}
