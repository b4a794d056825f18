//! `portvakt report`: the quarterly figures of known traffic, from the access log of a gateway.

// Files of the bank, and the status page.
mod bank;
// SCAs that ended, by TPP. Lines that are told.
mod ends;
mod foreign;

use crate::harness::{Call, Connection, Gate, Protocol, Reply, eventually, render};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// Runs `portvakt report` in a folder.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    let program = program.arg("report").args(arguments).current_dir(folder);
    program.output().unwrap()
}

/// The report and the notes of a run that succeeds.
fn report_of(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{output:?}");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

fn report(log: &Path, format: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    let program = program.args(["report", "--format", format]).arg(log);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn lines(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The lines as those of requests one after the other on a fixed day, so that no midnight passes between them: each is sent a second after
/// the answer to the one before it.
fn on_a_fixed_day(lines: &[Value]) -> Vec<Value> {
    let mut at: jiff::Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
    let moved = lines.iter().map(|line| {
        let whole = i64::try_from(line["whole_us"].as_u64().unwrap()).unwrap();
        at += jiff::SignedDuration::from_millis(1_000 + whole / 1_000);
        let mut line = line.clone();
        line["time"] = format!("{at:.3}").into();
        line
    });
    moved.collect()
}

/// The time at which a request ended or, with `back`, began, in Unix milliseconds.
fn time(line: &Value, back: bool) -> i64 {
    let ended: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
    let whole = i64::try_from(line["whole_us"].as_u64().unwrap()).unwrap();
    ended.as_millisecond() - if back { whole / 1_000 } else { 0 }
}

fn ais() -> Call {
    Call::accounts().present().only(Protocol::Http1)
}

fn pis() -> Call {
    Call::payment().only(Protocol::Http1)
}

/// A TPP that has more requests at once than it may gets 503: its request is counted, and no error of the bank.
fn greedy(gate: &Gate) {
    let [mut first, mut second] = [(); 2].map(|()| Connection::open(gate));
    for connection in [&mut first, &mut second] {
        assert_eq!(connection.exchange(&gate.seal(&ais())).unwrap().status, 200);
    }
    let (held, latch) = Reply::json(200, "{}").held();
    gate.upstream().reply(held);
    first.send(&render(&gate.seal(&ais()))).unwrap();
    latch.arrived(1);
    let answer = second.exchange(&gate.seal(&ais())).unwrap();
    assert_eq!(
        (answer.status, answer.reason().as_str()),
        (503, "too-many-at-once")
    );
    latch.release();
    assert_eq!(first.answer("GET").unwrap().status, 200);
    gate.upstream().reply(Reply::json(200, "{}"));
}

#[test]
fn the_figures_of_known_traffic() {
    let gate = Gate::builder()
        .upstream("max_in_flight_per_tpp: 1")
        .line("  access_file: access.log")
        .for_program();
    let _program = gate.run_silently(&mut gate.program());
    let log = gate.folder().join("access.log");
    let send = |call: &Call, status: u16| {
        let answer = gate.send(call, Protocol::Http1);
        assert_eq!(answer.status, status, "{}", answer.reason());
    };
    // With those of the greedy TPP 8 of AIS, of which the core denies one and fails one; 4 of PIS, of which the gateway refuses one.
    for call in [ais(), ais(), pis(), pis(), pis()] {
        send(&call, 200);
    }
    send(
        &pis().altered(|request| request.body = Some(b"{}".to_vec())),
        400,
    );
    gate.upstream().reply(Reply::json(404, "{}"));
    send(&ais(), 404);
    gate.upstream().reply(Reply::json(500, "{}"));
    send(&ais(), 500);
    gate.upstream().reply(Reply::json(200, "{}"));
    greedy(&gate);
    // Not of a TPP: its signature does not verify.
    send(
        &ais()
            .altered(|request| request.set_header("TPP-Redirect-URI", "https://tpp.example/other")),
        400,
    );
    // Downtime: five without a reply of the core, a refusal between them, and the next reply.
    gate.upstream().away(|| {
        for call in [ais(), pis(), ais(), ais(), ais()] {
            send(&call, 502);
            send(&ais().off_by(-61), 400);
        }
    });
    send(&ais(), 200);
    // Besides, one without a valid signature, five that fail with five that are refused before the signature is verified, and the last.
    eventually("every line is written", || {
        lines(&log).len() == 8 + 4 + 1 + 10 + 1
    });

    let lines = on_a_fixed_day(&lines(&log));
    let text: Vec<_> = lines.iter().map(Value::to_string).collect();
    fs::write(&log, text.join("\n")).unwrap();
    let rows: Value = serde_json::from_str(&report(&log, "json")).unwrap();
    let rows = rows.as_array().unwrap();
    let [row] = &rows[..] else {
        panic!("{rows:?}");
    };
    assert_eq!(row["date"], "2026-01-31");
    let figures = ["requests", "requests_ais", "requests_pis", "errors"];
    assert_eq!(
        figures.map(|name| row[name].as_u64().unwrap()),
        [8 + 4 + 5 + 1, 8 + 4 + 1, 5, 6]
    );
    for (service, mean) in [("ais", "mean_ms_ais"), ("pis", "mean_ms_pis")] {
        let provided = lines
            .iter()
            .filter(|line| line["service"] == service && line["status"] == 200);
        let times: Vec<_> = provided
            .map(|line| line["whole_us"].as_u64().unwrap())
            .collect();
        let expected = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1_000.0;
        assert!(
            (row[mean].as_f64().unwrap() - expected).abs() < 0.001,
            "{row}"
        );
    }
    let rate = row["error_rate_percent"].as_f64().unwrap();
    assert!((rate - 600.0 / 18.0).abs() < 0.001, "{row}");
    // Its end is known to the 64th of a second.
    let available = row["availability_percent"].as_f64().unwrap();
    let down = ((100.0 - available) * 864_000.0).round();
    assert!((down - downtime(&lines)).abs() < 16.0, "{row}");
    assert_eq!(row["downtime_seconds"], (down / 1_000.0).ceil());
    // The other forms have the same figures.
    let csv = report(&log, "csv");
    let [header, values] = csv.lines().collect::<Vec<_>>()[..] else {
        panic!("{csv}");
    };
    for (name, value) in header.split(',').zip(values.split(',')) {
        match row[name].as_f64() {
            Some(figure) => assert!(
                (value.parse::<f64>().unwrap() - figure).abs() < 0.06,
                "{name}"
            ),
            None => assert_eq!(row[name], *value),
        }
    }
    let chart = report(&log, "svg");
    let date = row["date"].as_str().unwrap();
    for text in [
        "Availability, %",
        "Mean response time, ms",
        "Error rate, %",
        "PIS",
        date,
    ] {
        assert!(chart.contains(text), "{text}");
    }
}

/// From the beginning of the first request that the core did not get to the next answer of the core, in milliseconds.
fn downtime(lines: &[Value]) -> f64 {
    let first = lines.iter().position(|line| line["status"] == 502).unwrap();
    let next = lines[first..]
        .iter()
        .find(|line| line["status"] == 200)
        .unwrap();
    (time(next, false) - time(&lines[first], true)) as f64
}
