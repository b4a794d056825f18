//! docs/logs.md: a disk that fails under the logs of a program.

use super::audit::FailingDisk;
use crate::harness::{Call, Gate, Protocol, accepted, eventually};
use serde_json::Value;
use std::fs;

/// EIO at the writing of lines: they are counted, /readyz names the log, requests are served, and the lines after them are whole.
#[test]
#[ignore = "make test-systems"]
fn an_error_of_the_disk_is_counted_and_said() {
    for (file, log, metric) in [
        ("access.log", "access log", "portvakt_access_lines_total"),
        ("events.log", "event log", "portvakt_event_lines_total"),
    ] {
        let gate = Gate::builder()
            .line("  access_file: access.log\n  events_file: events.log")
            .for_program();
        let path = gate.folder().join(file);
        let disk = FailingDisk::of(&gate, "write", &path);
        let count = |result: &str| gate.metric_now(metric, &[&format!("result=\"{result}\"")]);
        // A line in the access log, and one in that of events.
        let call = Call::accounts().present().only(Protocol::Http1);
        let cause = || {
            accepted(&gate, &call);
            disk.program.signal("-USR1");
        };
        cause();
        eventually("the line is counted", || count("failed") >= 1.0);
        let degraded = || gate.control("/readyz").json()["degraded"].to_string();
        assert_eq!(gate.control("/readyz").status, 200);
        assert!(degraded().contains(log), "{log}");
        disk.mend();
        eventually("lines are written again", || {
            cause();
            !degraded().contains(log)
        });
        disk.program.stop();
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(serde_json::from_str::<Value>);
        assert!(lines.map(Result::unwrap).count() >= 1);
    }
}
