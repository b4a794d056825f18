//! `portvakt report` with files of the bank, and the status page, as a bank runs it.

use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The example of docs/operations.md.
const OWN: &str = "date,availability_percent,mean_ms,requests,errors\n\
                   2026-10-01,99.95,182.5,48210,12\n\
                   2026-10-02,100,175,51004,3\n";

const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// A folder with an access log of 1 October 2026.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let line = json!({
        "time": "2026-10-01T10:00:00Z", "kind": "access", "service": "ais", "tpp": "PSDNO-FSA-1",
        "outcome": "forwarded", "status": 200, "whole_us": 12_000,
    });
    fs::write(folder.path().join("access.log"), line.to_string()).unwrap();
    folder
}

/// Runs the program in a folder.
fn report(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    let program = program.arg("report").args(arguments).arg("access.log");
    program.current_dir(folder).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The report of a period, with a file that lacks a day, in the form of docs/operations.md.
#[test]
fn both_channels_stand_side_by_side() {
    for line in OWN.lines() {
        assert!(OPERATIONS.contains(&format!("\n    {line}\n")), "{line}");
    }
    let folder = folder();
    fs::write(folder.path().join("own.csv"), OWN).unwrap();
    let output = report(
        folder.path(),
        &["--own-channel", "own.csv", "--to", "2026-10-03"],
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(errors(&output), "own.csv has no figures of 2026-10-03\n");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<_> = text.lines().collect();
    assert_eq!(rows.len(), 4);
    assert!(rows[1].ends_with(",0.0000,99.950,182.5,48210,12,0.0249"));
    assert!(rows[3].ends_with(",0.0000,,,,,"));
}

/// SCAs come from an answer of Prometheus (docs/operations.md); the codes of failures and consents are in no metric.
#[test]
fn scas_are_those_of_prometheus() {
    let folder = folder();
    let series = ["started", "completed", "failed"]
        .map(|event| json!({"metric": {"event": event}, "values": [[1_790_899_200, "7"]]}));
    let answer = json!({"status": "success", "data": {"resultType": "matrix", "result": series}});
    fs::write(folder.path().join("sca.json"), answer.to_string()).unwrap();
    let output = report(folder.path(), &["--sca", "sca.json", "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["sca_started", "sca_completed", "sca_failed"] {
        assert_eq!(rows[0][name], 7);
    }
    // An answer about something else.
    let other = answer.to_string().replace("event", "job");
    fs::write(folder.path().join("sca.json"), other).unwrap();
    let output = report(folder.path(), &["--sca", "sca.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = errors(&output);
    assert!(
        said.contains("sca.json, data.result[0].metric: there is no label event"),
        "{said}"
    );
}

#[test]
fn a_wrong_file_is_named_with_line_and_column() {
    let folder = folder();
    let wrong = OWN.replace("175,51004", "-175,51\u{1b}004");
    fs::write(folder.path().join("own.csv"), wrong).unwrap();
    let output = report(folder.path(), &["--own-channel", "own.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = errors(&output);
    let lines: Vec<_> = said.lines().collect();
    let [mean, requests, end] = lines[..] else {
        panic!("{said}");
    };
    assert!(
        mean.starts_with("own.csv, line 3, mean_ms: write"),
        "{said}"
    );
    assert!(
        requests.starts_with("own.csv, line 3, requests: write"),
        "{said}"
    );
    assert_eq!(
        end,
        "portvakt: own.csv is refused: correct the faults above, there is no report"
    );
}

/// The names in the folder of the page, in their order.
fn names(page: &Path) -> Vec<String> {
    let entries = fs::read_dir(page).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn a_page_is_written_and_replaced_and_no_other_file() {
    let folder = folder();
    fs::write(folder.path().join("own.csv"), OWN).unwrap();
    let page: PathBuf = folder.path().join("page");
    let arguments = [
        "--own-channel",
        "own.csv",
        "--page",
        "page",
        "--bank",
        "A & B",
    ];
    for to in ["2026-10-01", "2026-10-02"] {
        let output = report(folder.path(), &[&arguments[..], &["--to", to]].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(output.stdout.is_empty());
        assert_eq!(names(&page), ["index.html", "status.json"]);
        let html = fs::read_to_string(page.join("index.html")).unwrap();
        assert!(html.contains("<h1>Availability of the PSD2 interface of A &amp; B</h1>"));
        assert_eq!(
            html.contains("<th scope=\"row\">2026-10-02</th>"),
            to == "2026-10-02"
        );
        let status = fs::read(page.join("status.json")).unwrap();
        let status: Value = serde_json::from_slice(&status).unwrap();
        assert_eq!(status["to"], to);
        assert_eq!(status["days"][0]["own_channel"]["errors"], 12);
    }
    // The bank's own page in its place stays, and so does the other file.
    let before = fs::read(page.join("status.json")).unwrap();
    fs::write(page.join("index.html"), "<!DOCTYPE html>ours").unwrap();
    let output = report(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    let said = errors(&output);
    assert!(
        said.contains("page/index.html was not written by `portvakt report --page`"),
        "{said}"
    );
    assert_eq!(names(&page), ["index.html", "status.json"]);
    assert_eq!(
        fs::read_to_string(page.join("index.html")).unwrap(),
        "<!DOCTYPE html>ours"
    );
    assert_eq!(fs::read(page.join("status.json")).unwrap(), before);
}

/// A log that is given twice, a copy of it and one that goes on in it count once: nothing is reported.
#[test]
fn a_log_that_is_given_twice_is_refused() {
    let folder = folder();
    let log = fs::read_to_string(folder.path().join("access.log")).unwrap();
    let later = log.replace("T10:", "T11:");
    for (name, text) in [
        ("copy.log", log.clone()),
        ("longer.log", format!("{later}\n{log}\n")),
        ("later.log", later),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("access.log", folder.path().join("link.log")).unwrap();
    for other in ["access.log", "copy.log", "link.log", "longer.log"] {
        let output = report(folder.path(), &[other]);
        assert_eq!(output.status.code(), Some(2), "{other}");
        assert!(output.stdout.is_empty());
        let said = errors(&output);
        assert!(
            said.contains("have a line in common") && said.contains(other),
            "{said}"
        );
    }
    assert!(report(folder.path(), &["later.log"]).status.success());
}

/// A line of any length neither counts nor fills the memory: the other lines count, and the report says so.
#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let folder = folder();
    let log = folder.path().join("access.log");
    let line = fs::read_to_string(&log).unwrap();
    let long = line.replace('}', &format!(",\"x\":\"{}\"}}", "x".repeat(1 << 20)));
    serde_json::from_str::<Value>(&long).unwrap();
    for (text, other, too_long) in [
        (format!("{long}\n{line}\nother\n"), 3, 1),
        (format!("other\n{line}\n{long}"), 1, 3),
    ] {
        fs::write(&log, text).unwrap();
        let output = report(folder.path(), &["--format", "json"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            errors(&output),
            format!(
                "access log: lines that are no JSON, such as a text of another program or a part of a line; not counted: 1 (access.log line {other})\n\
                 access log: lines that are longer than 1048576 bytes, which no line is; not counted: 1 (access.log line {too_long})\n"
            )
        );
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(rows[0]["requests"], 1);
    }
}

/// A page has no other form and no SCAs, and a bank's name stands on a page only.
#[test]
fn arguments_that_do_not_fit_are_refused() {
    let folder = folder();
    for arguments in [
        ["--page", "page", "--format", "json"],
        ["--page", "page", "--sca", "sca.json"],
        ["--bank", "A & B", "--format", "json"],
        ["--bank", "A & B", "--sca", "sca.json"],
        ["--page", "page", "--bank", " "],
        ["--page", "page", "--bank", "A\nB"],
        ["--page", "page", "--bank", "A\u{202e}B"],
    ] {
        let output = report(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!folder.path().join("page").exists());
    }
}
