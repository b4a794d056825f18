//! ERR-8: answers that the gateway cut, or whose caller left, are not reported as delivered.

use super::acknowledged::{open, request};
use crate::harness::{
    Call, Connection, Frames, Gate, Program, Reply, eventually, let_pass, render,
};
use serde_json::Value;
use std::{fs, process::Command, time::Duration};

/// Larger than the buffers between the two sides, in bytes; and small enough that the HTTP/2 library takes the whole answer.
const LARGE: usize = 40 << 20;
/// More than a record of TLS.
const SMALL: usize = 20_000;

/// Until the buffers on the way are full, which nothing tells: no metric counts what the HTTP/2 library holds.
const FILLS: Duration = Duration::from_millis(500);

/// The window of a client that changes nothing, in bytes.
const WINDOW: usize = 65_535;

fn json(length: usize) -> Reply {
    Reply::json(200, &format!("\"{}\"", "x".repeat(length - 2)))
}

fn start(limits: &str) -> (Gate, Program) {
    let gate = Gate::builder()
        .listener(limits)
        .upstream("max_answer_size: 64MiB")
        .for_program();
    let program = gate.run_with_logs(&mut gate.program());
    (gate, program)
}

/// Waits until the core has so many requests.
fn at_core(gate: &Gate, count: usize) {
    let mut seen = 0;
    eventually(&format!("{count} requests at the core"), || {
        seen += gate.upstream().take().len();
        (seen >= count).then_some(()).ok_or(seen)
    });
}

/// The lines of the access log, as soon as there are so many.
fn lines(gate: &Gate, count: usize) -> Vec<Value> {
    let lines = eventually(&format!("{count} lines"), || {
        let lines = lines_now(gate);
        (lines.len() >= count).then_some(lines.clone()).ok_or(lines)
    });
    assert_eq!(lines.len(), count, "{lines:#?}");
    lines
}

/// The lines of the access log that are written.
fn lines_now(gate: &Gate) -> Vec<Value> {
    let text = fs::read_to_string(gate.folder().join("gateway.log")).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

/// A client that reads nothing: a large answer fills all buffers, and four small ones wait in the library behind it.
fn stuck(gate: &Gate) -> Frames {
    let mut frames = open(gate);
    gate.upstream().reply(json(LARGE));
    request(gate, &mut frames, 1, &Call::plain());
    at_core(gate, 1);
    let_pass(FILLS);
    gate.upstream().reply(json(SMALL));
    for stream in [3, 5, 7, 9] {
        request(gate, &mut frames, stream, &Call::plain());
    }
    at_core(gate, 4);
    let_pass(FILLS);
    frames
}

/// Checks the five lines of a client that was stuck.
fn check_stuck(gate: &Gate, outcome: &str, operator: Option<&str>) {
    let mut sent: Vec<_> = lines(gate, 5)
        .iter()
        .map(|line| {
            assert_eq!(line["outcome"], outcome, "{line}");
            assert_eq!(line["operator"].as_str(), operator, "{line}");
            assert_eq!(line["status"], 200, "{line}");
            line["sent_bytes"].as_u64().unwrap()
        })
        .collect();
    sent.sort_unstable();
    // Parts of two may have been passed to TLS, which cannot write them: as many as one record can hold.
    assert_eq!(sent[..2], [0; 2], "{sent:?}");
    assert!(sent[4] > 0 && sent[4] < LARGE as u64, "{sent:?}");
    let label = format!("outcome=\"{outcome}\"");
    let labels = [&*label, "fault=\"caller\""];
    gate.eventually_metric("portvakt_requests_total", &labels, 5.0);
    let forwarded = ["outcome=\"forwarded\""];
    assert_eq!(gate.metric_now("portvakt_requests_total", &forwarded), 0.0);
}

//= ERR-8 accepted
#[test]
fn an_answer_that_is_delivered() {
    let (gate, _program) = start("write_timeout: 300s");
    gate.upstream().reply(json(SMALL));
    let mut frames = open(&gate);
    request(&gate, &mut frames, 1, &Call::plain());
    assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
    let mut connection = Connection::open(&gate);
    let sealed = gate.seal(&Call::plain());
    assert_eq!(connection.exchange(&sealed).unwrap().status, 200);
    for line in lines(&gate, 2) {
        assert_eq!(line["outcome"], "forwarded");
        assert_eq!(line["sent_bytes"], SMALL);
        assert_eq!(line["operator"], Value::Null);
    }
}

//= ERR-8 refused
#[test]
fn a_flood_cuts_answers() {
    let (gate, _program) = start("write_timeout: 300s");
    let mut frames = stuck(&gate);
    for _ in 0..1_000 {
        // PRIORITY, which needs no answer: the gateway cannot write.
        if frames.send(2, 0, 11, &[0, 0, 0, 0, 1]).is_err() {
            break;
        }
    }
    check_stuck(&gate, "cut", Some("frame_flood"));
    gate.eventually_metric("portvakt_cut_total", &["cause=\"frame_flood\""], 1.0);
}

//= ERR-8 refused
#[test]
fn answers_that_are_not_taken_in_time() {
    let (gate, _program) = start("write_timeout: 10s");
    let _frames = stuck(&gate);
    check_stuck(&gate, "cut", Some("blocked_write"));

    let (gate, _program) = start("write_timeout: 1s");
    gate.upstream().reply(json(LARGE));
    let mut connection = Connection::open(&gate);
    connection
        .send(&render(&gate.seal(&Call::plain())))
        .unwrap();
    let line = &lines(&gate, 1)[0];
    assert_eq!(line["outcome"], "cut", "{line}");
    assert_eq!(line["operator"], "blocked_write", "{line}");
    assert!(
        line["sent_bytes"].as_u64().unwrap() < LARGE as u64,
        "{line}"
    );
}

/// Nobody cuts these: the caller closes its connection.
//= ERR-8 refused
#[test]
fn answers_whose_caller_leaves() {
    let (gate, _program) = start("write_timeout: 300s");
    drop(stuck(&gate));
    check_stuck(&gate, "abandoned", None);
}

/// Waits until every thread of a process has stopped: the signal is on its way when kill(1) ends.
fn stopped(program: &Program) {
    let threads = format!("/proc/{}/task", program.0.id());
    let is_stopped = |thread: std::io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(thread.unwrap().path().join("stat"));
        stat.is_ok_and(|stat| stat.rsplit(") ").next().unwrap().starts_with('T'))
    };
    eventually("the process has stopped", || {
        fs::read_dir(&threads).unwrap().all(is_stopped)
    });
}

/// Whoever sends a request and leaves is not a failure of the gateway, also where it answers itself: nobody can wake the operator so.
//= ERR-8 refused
#[test]
fn the_gateways_own_answers_whose_caller_leaves() {
    let (gate, program) = start("description: on");
    let request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut connection = Connection::open(&gate);
    connection.send(request).unwrap();
    // The handshake has ended on both sides, or the reset would break it.
    assert_eq!(connection.answer("GET").unwrap().status, 200);
    // The answer cannot be faster than the reset.
    program.signal("-STOP");
    stopped(&program);
    connection.send(request).unwrap();
    connection.reset();
    program.signal("-CONT");
    let [answered, abandoned] = &lines(&gate, 2)[..] else {
        unreachable!()
    };
    assert_eq!(answered["outcome"], "answered", "{answered}");
    assert_eq!(abandoned["outcome"], "abandoned", "{abandoned}");
    assert_eq!(abandoned["status"], 200, "{abandoned}");
    let of_gateway = gate.metric_at_rest("portvakt_answers_total", &["fault=\"gateway\""]);
    assert_eq!(of_gateway, 0.0);
    assert!(gate.upstream().saw_nothing());
}

/// The line tells what the core owed, and for how long; `portvakt report` reads it.
//= ERR-8 accepted
//= FWD-4 accepted
#[test]
fn a_caller_who_leaves_because_the_core_hangs() {
    let (gate, _program) = start("write_timeout: 300s");
    gate.upstream().reply(Reply::Silence);
    let mut calls = 0;
    // Calls, lets time pass, leaves, and returns the line: whose fault it is follows from how long the core had the request.
    let mut leave_after = |time: Duration| {
        let mut connection = Connection::open(&gate);
        connection
            .send(&render(&gate.seal(&Call::plain())))
            .unwrap();
        at_core(&gate, 1);
        let_pass(time);
        drop(connection);
        calls += 1;
        let line = lines(&gate, calls).pop().unwrap();
        assert_eq!(line["outcome"], "abandoned", "{line}");
        for member in ["status", "upstream_status", "reason"] {
            assert_eq!(line[member], Value::Null, "{line}");
        }
        let is_owed = line["upstream_us"].as_u64().unwrap() >= 900_000;
        let fault = if is_owed { "core" } else { "caller" };
        assert_eq!(line["fault"], fault, "{line}");
        is_owed
    };
    assert!(leave_after(Duration::from_millis(1_500)));
    // On a busy machine, the gateway may notice late that the caller has left.
    eventually("the core had a request for less than a second", || {
        !leave_after(Duration::ZERO)
    });
    let command = Command::new(gate.program().get_program())
        .args(["report", "--format", "json"])
        .arg(gate.folder().join("gateway.log"))
        .output();
    let report: Value = serde_json::from_slice(&command.unwrap().stdout).unwrap();
    assert_eq!(
        (&report[0]["requests"], &report[0]["errors"]),
        (&calls.into(), &0.into()),
        "who leaves within half a minute is no failure of the bank"
    );
}

/// A client that has read the whole window of a large answer.
fn one_window(gate: &Gate) -> Frames {
    let mut frames = Frames::silent(gate);
    frames.preface();
    frames.send(4, 0, 0, &[]).unwrap();
    gate.upstream().reply(json(LARGE));
    request(gate, &mut frames, 1, &Call::plain());
    let mut read = 0;
    while read < WINDOW {
        let frame = frames.next().unwrap();
        read += if frame.kind == 0 {
            frame.payload.len()
        } else {
            0
        };
    }
    frames
}

/// The bytes that were written before the stream ended count.
//= ERR-8 refused
#[test]
fn a_stream_that_is_reset_within_its_answer() {
    let (gate, _program) = start("write_timeout: 300s");
    let mut frames = one_window(&gate);
    frames.send(3, 0, 1, &[0, 0, 0, 8]).unwrap();
    let line = &lines(&gate, 1)[0];
    assert_eq!(line["outcome"], "abandoned", "{line}");
    assert_eq!(line["sent_bytes"], WINDOW, "{line}");
}

/// The HTTP/2 library ends the connection.
//= ERR-8 refused
#[test]
fn a_malformed_frame_within_an_answer() {
    for (kind, payload) in [(8, &[0; 4][..]), (6, &[0; 7]), (4, &[0; 5])] {
        let (gate, _program) = start("write_timeout: 300s");
        let mut frames = one_window(&gate);
        frames.send(kind, 0, 0, payload).unwrap();
        // One line for the frame, and one for the request.
        let lines = lines(&gate, 2);
        let line = lines.iter().find(|line| line["status"] == 200).unwrap();
        assert_eq!(line["outcome"], "cut", "{line}");
        assert_eq!(line["operator"], "malformed_frame", "{line}");
        assert_eq!(line["sent_bytes"], WINDOW, "{line}");
    }
}
