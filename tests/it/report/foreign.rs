//! Lines that are repeated, of other programs, of other versions, and of other times: each is told.

use super::{report_of, run};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn line(changes: &Value) -> String {
    let mut line = json!({
        "time": "2026-10-01T10:00:00.007Z", "kind": "access", "service": "ais", "tpp": "PSDNO-FSA-1",
        "outcome": "forwarded", "status": 200, "whole_us": 12_000, "span_id": "00f067aa0ba902b7",
    });
    let members = line.as_object_mut().unwrap();
    members.extend(changes.as_object().unwrap().clone());
    line.to_string()
}

/// The line of another request.
fn of(number: u32) -> String {
    line(&json!({"span_id": format!("{number:016x}")}))
}

fn write(folder: &Path, name: &str, lines: &[String]) {
    fs::write(folder.join(name), lines.join("\n")).unwrap();
}

/// The requests of the first day, and the notes.
fn requests(folder: &Path, arguments: &[&str]) -> (u64, String) {
    let arguments = [arguments, &["--format", "json"]].concat();
    let (text, notes) = report_of(folder, &arguments);
    let rows: Value = serde_json::from_str(&text).unwrap();
    (rows[0]["requests"].as_u64().unwrap(), notes)
}

#[test]
fn a_repeated_line_counts_once_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.log", &[of(1), of(2), of(1), of(3), of(2), of(1)]);
    let (counted, notes) = requests(folder, &["a.log"]);
    assert_eq!(counted, 3);
    assert_eq!(
        notes,
        "access log: lines that are the same as an earlier line; counted once: 3 \
         (a.log line 3, a.log line 5, a.log line 6)\n"
    );
    // Two rotated logs that overlap in lines that are the first of neither.
    write(folder, "b.log", &[of(4), of(3), of(5)]);
    let (counted, notes) = requests(folder, &["a.log", "b.log"]);
    assert_eq!(counted, 5);
    assert!(notes.contains(": 4 (a.log line 3, a.log line 5, a.log line 6, b.log line 2)"));
}

#[test]
fn foreign_lines_are_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let secret = "01010112345";
    let lines = [
        of(1),
        format!("Oct 01 systemd[1]: Started {secret}."),
        json!({"kind": "event", "message": secret}).to_string(),
        json!({"level": "info", "msg": secret}).to_string(),
        line(&json!({"colour": secret, "span_id": "2"})),
        line(&json!({"outcome": secret, "span_id": "3"})),
        line(&json!({"whole_us": -1})),
        line(&json!({"sample": 1e300})),
        line(&json!({"tpp": {"name": secret}})),
        line(&json!({"time": "1969-01-01T00:00:00Z"})),
        line(&json!({"status": 200})).replace("\"whole_us\"", "\"whole_ms\""),
        of(1)[..50].to_owned(),
    ];
    write(folder, "a.log", &lines);
    let (counted, notes) = requests(folder, &["a.log"]);
    assert_eq!(counted, 3);
    assert!(!notes.contains(secret), "{notes}");
    for (kind, lines) in [
        ("no JSON", "2 (a.log line 2, a.log line 12)"),
        ("events", "1 (a.log line 3)"),
        ("JSON of another program", "1 (a.log line 4)"),
        ("with a member that", "1 (a.log line 5)"),
        ("with a value that", "1 (a.log line 6)"),
        (
            "with a number or time",
            "3 (a.log line 7, a.log line 8, a.log line 10)",
        ),
        ("with a member of another type", "1 (a.log line 9)"),
        ("without a member", "1 (a.log line 11)"),
    ] {
        let told = notes.lines().find(|told| told.contains(kind));
        assert!(told.is_some_and(|told| told.ends_with(lines)), "{notes}");
    }
    assert_eq!(notes.lines().count(), 8, "{notes}");
}

#[test]
fn times_outside_of_the_period_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let at = |time: &str| line(&json!({"time": time}));
    let lines = [
        of(1),
        at("2026-09-30T10:00:00Z"),
        at("2001-01-01T00:00:00Z"),
        at("2099-01-01T00:00:00Z"),
    ];
    write(folder, "a.log", &lines);
    let period = ["--from", "2026-10-01", "--to", "2026-10-01", "a.log"];
    let (counted, notes) = requests(folder, &period);
    assert_eq!(counted, 1);
    assert_eq!(
        notes,
        "access log: lines that are more than 366 days before or after the period; not counted: 2 (a.log line 3, a.log line 4)\n\
         access log: lines that are of days before or after the period; not counted in any day: 1 (a.log line 2)\n"
    );
    // Without a period, the report would have a hundred years.
    let output = run(folder, &["a.log"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    for place in ["2001-01-01 (a.log line 3)", "2099-01-01 (a.log line 4)"] {
        assert!(said.contains(place), "{said}");
    }
    assert!(said.contains("is not a period of at most ten years"));
}
