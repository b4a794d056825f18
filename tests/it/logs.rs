//! docs/logs.md: each answer is found by its id, failures of a log are counted and said, files are opened again, traces go on.

/// Every reason of a refusal.
mod reasons;

use crate::harness::{
    Answer, Call, Connection, Gate, Program, Protocol, Reply, Tls, accepted, ended, eventually,
    missing, render, render_head,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    net::Ipv4Addr,
    path::Path,
    process::{Command, Stdio},
};

fn signal(program: &Program, name: &str) {
    let id = program.0.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(sent.success());
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

/// Starts the program with its logs in files, and waits until it is up.
fn with_files(gate: &Gate) -> Program {
    gate.run_silently(&mut gate.program())
}

/// A line tells the operator in which way an answer of the core was wrong, also where the caller got a part of it.
#[test]
fn a_failed_request_says_what_was_wrong() {
    let gate = Gate::builder()
        .upstream("read_timeout: 3s")
        .line("  access_file: access.log")
        .for_program();
    let _program = with_files(&gate);
    let truncated =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let page = Reply::Answer(500, Vec::new(), b"<html>".to_vec());
    let replies = [
        (Reply::Raw(truncated.to_vec()), 200),
        (Reply::Raw(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()), 502),
        (page, 500),
        (Reply::Silence, 504),
    ];
    let file = gate.folder().join("access.log");
    for (index, (reply, status)) in replies.into_iter().enumerate() {
        gate.upstream().reply(reply);
        let sealed = gate.seal(&Call::accounts().present());
        // The truncated answer is an error of its reader.
        let _ = Connection::open(&gate).exchange(&sealed);
        eventually("a line", || lines(&file).len() == index + 1);
        let line = lines(&file).pop().unwrap();
        assert_eq!(
            (&line["outcome"], &line["status"]),
            (&"failed".into(), &status.into())
        );
        let operator = line["operator"].as_str();
        assert!(operator.is_some_and(|text| !text.is_empty()), "{line}");
    }
}

/// Refusals of every layer, by both protocols, and a request that is cut off: one line for each, and the `id` of each answer in one. Returns
/// the reasons.
fn of_http() -> BTreeSet<String> {
    let gate = Gate::builder()
        .listener("head_timeout: 500ms")
        .listener("body_timeout: 500ms")
        .upstream("read_timeout: 3s")
        .line("  access_file: access.log")
        .for_program();
    let mut program = with_files(&gate);
    let mut ids = Vec::new();
    let mut note = |answer: &Answer| ids.push(reasons::note(answer));
    let replayed = Call::payment().with("X-Request-ID", "twice-1");
    let calls = [
        Call::plain().at("/v1/nothing"),
        Call::bare("DELETE", "/v1/accounts"),
        Call::accounts().without("X-Request-ID"),
        Call::accounts().with("PSU-ID", "x"),
        Call::accounts().at("/v1/accounts?x=1;y=2"),
        Call::accounts().off_by(-61),
        Call::accounts().without("TPP-Signature-Certificate"),
        Call::accounts().with("TPP-Signature-Certificate", "x"),
        Call::accounts().altered(|request| request.set_header("PSU-IP-Address", "192.0.2.1")),
        Call::payment().altered(|request| request.body = Some(b"{}".to_vec())),
        Call::payment().altered(|request| request.set_header("X-Request-ID", "another")),
        Call::payment().json("{\"a\":"),
        replayed.clone(),
        Call::payment().with("Expect", "a-miracle"),
    ];
    gate.seal(&replayed);
    assert_eq!(gate.send(&replayed, Protocol::Http1).status, 200);
    for call in &calls {
        for protocol in call.protocols() {
            let answer = gate.send(call, *protocol);
            if answer.status >= 400 {
                note(&answer);
            }
        }
    }
    // The core: an error that is not JSON, too slow, disconnected, unreachable.
    let get = Call::accounts().present();
    for reply in [
        Reply::Answer(500, Vec::new(), b"<html>".to_vec()),
        Reply::Silence,
    ] {
        gate.upstream().reply(reply);
        note(&gate.send(&get, Protocol::Http1));
    }
    gate.upstream().reply(Reply::json(200, "{}"));
    gate.upstream()
        .away(|| note(&gate.send(&get, Protocol::Http2)));
    // HTTP itself: framing, a head that is too large, a head and a body that are too slow.
    for raw in [
        &b"GET /v1/accounts HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
        b"GET /v1/accounts HTTP/1.1\r\nHost : a\r\n\r\n",
        &[b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'a'; 40_000], b"\r\n\r\n"].concat(),
        b"GET /v1/accounts HTTP/1.1\r\nHost: a",
    ] {
        let mut connection = Connection::open(&gate);
        let _ = connection.send(raw);
        note(&connection.answer("GET").unwrap());
    }
    let mut slow = Connection::open(&gate);
    slow.send(&render_head(&gate.seal(&Call::payment())))
        .unwrap();
    note(&slow.answer("POST").unwrap());
    // The caller goes away while the core works, and the process is stopped at once while it does.
    let (held, core) = Reply::json(200, "{}").held();
    gate.upstream().reply(held);
    let cut = gate.seal(
        &Call::accounts()
            .present()
            .with("X-Request-ID", "cut-by-caller"),
    );
    let mut away = Connection::open(&gate);
    away.send(&render(&cut)).unwrap();
    core.arrived(1);
    drop(away);
    let path = gate.folder().join("access.log");
    eventually("the line of the request that its caller cut", || {
        lines(&path)
            .iter()
            .any(|line| line["request_id"] == "cut-by-caller")
    });
    let stopped = gate.seal(
        &Call::accounts()
            .present()
            .with("X-Request-ID", "cut-by-stop"),
    );
    let mut pending = Connection::open(&gate);
    pending.send(&render(&stopped)).unwrap();
    core.arrived(2);
    signal(&program, "-INT");
    assert!(ended(&mut program.0).success());

    let lines = lines(&path);
    let reasons = reasons::are_found(&ids, &lines);
    for cut in ["cut-by-caller", "cut-by-stop"] {
        let found: Vec<_> = lines
            .iter()
            .filter(|line| line["request_id"] == cut)
            .collect();
        assert_eq!(found.len(), 1, "{cut}");
        // The stop may come after the answer.
        let is_cut = found[0]["outcome"] == "abandoned";
        assert!(is_cut || cut == "cut-by-stop", "{cut}");
    }
    reasons
}

/// `traceparent` of a trusted proxy is continued, and no other is.
#[test]
fn a_trace_is_taken_from_a_trusted_proxy_only() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let header = format!("00-{TRACE}-00f067aa0ba902b7-00");
    let gate = Gate::builder()
        .listener("trusted_proxies: [127.0.0.1]")
        .listener("client_address: forwarded")
        .line("  access_file: access.log")
        .for_program();
    let program = with_files(&gate);
    let call = Call::accounts().present().with("traceparent", &header);
    let seen = |is_taken: bool| {
        let seen = gate.upstream().take();
        let told = seen[0].header("traceparent").unwrap().to_owned();
        assert_eq!(
            seen[0]
                .names()
                .iter()
                .filter(|name| *name == "traceparent")
                .count(),
            1
        );
        assert_eq!(told.contains(TRACE), is_taken, "{told}");
        assert!(!told.contains("00f067aa0ba902b7"));
        told
    };
    let mut told = Vec::new();
    for protocol in Protocol::ALL {
        assert_eq!(gate.send(&call, protocol).status, 200);
        told.push(seen(true));
    }
    let connector = Tls::default().connector(gate.world());
    let mut direct =
        Connection::from(Ipv4Addr::new(127, 0, 0, 7), gate.address(), &connector).unwrap();
    assert_eq!(direct.exchange(&gate.seal(&call)).unwrap().status, 200);
    told.push(seen(false));
    let malformed = Call::accounts().present().with("traceparent", "00-x-y-01");
    assert_eq!(gate.send(&malformed, Protocol::Http1).status, 200);
    told.push(seen(false));
    let path = gate.folder().join("access.log");
    eventually("four lines", || lines(&path).len() == 4);
    drop(program);
    for (line, told) in lines(&path).iter().zip(&told) {
        let ids = ["trace_id", "span_id"].map(|id| line[id].as_str().unwrap());
        assert!(
            told.starts_with(&format!("00-{}-{}-", ids[0], ids[1])),
            "{told}: {line}"
        );
        assert_eq!(line["parent_id"].is_string(), told.contains(TRACE));
    }
    match spans(&path) {
        Some(spans) => are_spans(&lines(&path), &spans),
        None => missing("jq is missing: the spans of docs/logs.md are not made"),
    }
}

/// What the program on docs/logs.md makes of an access log; `None` without jq.
fn spans(log: &Path) -> Option<Vec<Value>> {
    let page = include_str!("../../docs/logs.md");
    let (_, program) = page.split_once("```jq\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let output = Command::new("jq").args(["-c", program]).arg(log).output();
    let output = output.ok()?;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let spans = text.lines().map(|line| {
        let request: Value = serde_json::from_str(line).unwrap();
        request["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone()
    });
    Some(spans.collect())
}

/// Each line is a span of OTLP, with its ids and its times.
fn are_spans(lines: &[Value], spans: &[Value]) {
    assert_eq!(lines.len(), spans.len());
    for (line, span) in lines.iter().zip(spans) {
        for (member, attribute) in [
            ("traceId", "trace_id"),
            ("spanId", "span_id"),
            ("name", "operation"),
        ] {
            assert_eq!(span[member], line[attribute]);
        }
        let parent = line["parent_id"].as_str().unwrap_or_default();
        assert_eq!(span["parentSpanId"], parent);
        let micros = |name: &str| span[name].as_str().unwrap().parse::<i64>().unwrap() / 1_000;
        let (start, end) = (micros("startTimeUnixNano"), micros("endTimeUnixNano"));
        let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        // jq counts in floating point.
        assert!((end - time.as_microsecond()).abs() <= 1, "{span}");
        let whole = line["whole_us"].as_i64().unwrap();
        assert!((end - start - whole).abs() <= 1, "{span}");
    }
}

/// A TPP that connects through a proxy of the transport layer sends its own headers.
#[test]
fn a_tpps_own_trace_is_not_believed() {
    let gate = Gate::start();
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for passage in accepted(
        &gate,
        &Call::accounts().present().with("traceparent", header),
    ) {
        let told = passage.seen.header("traceparent").unwrap();
        assert!(!told.contains("4bf92f3577b34da6a3ce929d0e0e4736"), "{told}");
        assert_eq!(told.len(), 55);
    }
}

#[test]
fn files_are_opened_again_at_a_signal() {
    let gate = Gate::builder()
        .line("  access_file: access.log\n  events_file: events.log")
        .for_program();
    let program = with_files(&gate);
    let [access, events] = ["access.log", "events.log"].map(|name| gate.folder().join(name));
    let moved = |path: &Path| path.with_extension("1");
    accepted(&gate, &Call::accounts().present().only(Protocol::Http1));
    eventually("a line", || lines(&access).len() == 1);
    for path in [&access, &events] {
        fs::rename(path, moved(path)).unwrap();
    }
    signal(&program, "-USR1");
    eventually("new files", || access.exists() && events.exists());
    accepted(&gate, &Call::accounts().present().only(Protocol::Http1));
    eventually("a line in the new file", || lines(&access).len() == 1);
    eventually("an event in the new file", || {
        let events = lines(&events);
        events
            .iter()
            .any(|line| line["message"] == "the logs were opened again")
    });
    assert_eq!(lines(&moved(&access)).len(), 1);
    let first = &lines(&moved(&events))[0];
    assert_eq!(
        (&first["kind"], &first["message"]),
        (&"event".into(), &"starting".into())
    );
}

/// Where the new files cannot be made, the event says so, the files that were open take the lines, and /readyz names both logs until it works.
#[test]
fn files_that_cannot_be_opened_again_are_no_success() {
    let gate = Gate::builder()
        .line("  access_file: logs/access.log\n  events_file: logs/events.log")
        .file("logs/empty", "")
        .for_program();
    let program = with_files(&gate);
    let [logs, moved] = ["logs", "moved"].map(|name| gate.folder().join(name));
    let has = |folder: &Path, message: &str| {
        let events = lines(&folder.join("events.log"));
        events.iter().any(|line| line["message"] == message)
    };
    let degraded = || {
        let answer = gate.control("/readyz").json();
        answer["degraded"].as_array().map_or(0, Vec::len)
    };
    let without_folder = || gate.metric_now("portvakt_write_fault", &["why=\"no_folder\""]);
    eventually("it serves", || logs.join("events.log").exists());
    assert_eq!(without_folder(), 0.0);
    fs::rename(&logs, &moved).unwrap();
    signal(&program, "-USR1");
    eventually("an error", || has(&moved, "a log was not opened again"));
    assert!(!has(&moved, "the logs were opened again"));
    accepted(&gate, &Call::accounts().present().only(Protocol::Http1));
    eventually("a line", || lines(&moved.join("access.log")).len() == 1);
    assert_eq!((degraded(), without_folder()), (2, 2.0));
    fs::create_dir(&logs).unwrap();
    signal(&program, "-USR1");
    eventually("the event", || {
        logs.join("events.log").exists() && has(&logs, "the logs were opened again")
    });
    assert_eq!((degraded(), without_folder()), (0, 0.0));
}

/// A full disk on each log, and a closed pipe: lines are counted as failed, /readyz names the log, and requests are served.
#[test]
fn a_log_that_cannot_be_written_is_counted_and_said() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for (stdout, stderr, log, metric, why) in [
        (
            Stdio::from(full()),
            Stdio::null(),
            "access log",
            "portvakt_access_lines_total",
            "no_space",
        ),
        (
            Stdio::null(),
            Stdio::from(full()),
            "event log",
            "portvakt_event_lines_total",
            "no_space",
        ),
        (
            Stdio::piped(),
            Stdio::null(),
            "access log",
            "portvakt_access_lines_total",
            "no_reader",
        ),
        (
            Stdio::null(),
            Stdio::piped(),
            "event log",
            "portvakt_event_lines_total",
            "no_reader",
        ),
    ] {
        let gate = Gate::builder().for_program();
        let mut program = gate.program();
        let program = program.stdout(stdout).stderr(stderr).spawn();
        let mut program = Program(program.unwrap());
        // Closes the reading ends.
        drop((program.0.stdout.take(), program.0.stderr.take()));
        assert!(gate.is_up(&mut program.0), "it does not start");
        let call = Call::accounts().present().only(Protocol::Http1);
        accepted(&gate, &call);
        signal(&program, "-USR1");
        eventually("the line is counted", || {
            gate.metric_now(metric, &["result=\"failed\""]) >= 1.0
        });
        let readiness = gate.control("/readyz");
        assert_eq!(readiness.status, 200);
        assert!(
            readiness.json()["degraded"].to_string().contains(log),
            "{log}"
        );
        let why = format!("why=\"{why}\"");
        assert_eq!(gate.metric_now("portvakt_write_fault", &[&why]), 1.0);
        accepted(&gate, &call);
    }
}

/// The beginning of every marked value.
const MARK: &str = "MARKED7F3A";

/// A marked value in each header of the table, in unknown headers, in path, query and body, over both protocols; and in each part of the
/// core's answers. It is in no log, metric, trace, error or record, at any level.
#[test]
fn marked_values_are_nowhere() {
    for level in ["trace", "debug", "info", "warn", "error"] {
        let gate = Gate::builder()
            .line(&format!(
                "  level: {level}\n  access_file: access.log\n  events_file: events.log"
            ))
            .line("audit: {write: on, folder: state/audit}")
            .line("rates: {per_tpp: off, unsafe_per_tpp: off, per_address: off, chains_per_address: off, chains: off}")
            .for_program();
        let mut program = with_files(&gate);
        let mut calls: Vec<Call> = Vec::new();
        let mut number = 0;
        let mut mark = || {
            number += 1;
            format!("{MARK}-{number}")
        };
        for header in portvakt::interface::headers::TABLE {
            // The line has X-Request-ID as the TPP chose it.
            if !["X-Request-ID", "Host"].contains(&header.written) {
                calls.push(Call::cross_border().with(header.written, &mark()));
                calls.push(Call::accounts().present().with(header.written, &mark()));
            }
        }
        for name in [
            "Authorization",
            "Cookie",
            "X-Forwarded-For",
            "Forwarded",
            "Gateway-Tpp-Id",
            "X-Api-Key",
            "Expect",
        ] {
            calls.push(Call::accounts().present().with(name, &mark()));
        }
        for path in [
            format!("/v1/accounts/{}/balances", mark()),
            format!("/v1/{}", mark()),
            format!("/{}?{}", mark(), mark()),
            format!("/v1/accounts?withBalance={}", mark()),
            format!("/v1/accounts?other={}", mark()),
            format!(
                "/v1/accounts/1/transactions?bookingStatus={}&dateFrom={}",
                mark(),
                mark()
            ),
        ] {
            calls.push(Call::accounts().present().at(&path));
        }
        for body in [
            format!("{{\"debtorName\": \"{}\"}}", mark()),
            format!(
                "{{\"instructedAmount\": {{\"amount\": \"{}\", \"currency\": \"{}\"}}}}",
                mark(),
                mark()
            ),
            format!("{{\"creditorAccount\": {{\"iban\": \"{}\"}}", mark()),
            mark(),
        ] {
            calls.push(Call::payment().json(&body));
            calls.push(
                Call::payment()
                    .json(&body)
                    .altered(|request| request.set_header("Date", "x")),
            );
        }
        calls.push(Call::bare(MARK, "/v1/accounts"));
        let mut said = String::new();
        let mut send = |call: &Call| {
            for protocol in call.protocols() {
                let Ok(answer) = gate.send_sealed(&gate.seal(call), *protocol) else {
                    continue;
                };
                let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                // SIG-13 returns the signing string to the caller.
                if let Some(members) = body.as_object_mut() {
                    members.remove("signingString");
                }
                said += &body.to_string();
                said.push('\n');
            }
        };
        for call in &calls {
            send(call);
        }
        for seen in gate.upstream().take() {
            let trace = seen.header("traceparent").unwrap();
            assert!(!trace.contains(MARK) && trace.len() == 55, "{trace}");
        }
        // The core's answers: heads, bodies, and an error that is not JSON.
        for (status, kind) in [
            (200, "application/json"),
            (404, "application/json"),
            (500, "text/html"),
            (302, "application/json"),
        ] {
            let headers = [
                ("Content-Type", kind.to_owned()),
                ("Location", format!("https://10.0.0.1/{MARK}")),
                ("X-Core", MARK.to_owned()),
                ("Set-Cookie", MARK.to_owned()),
            ];
            let headers = headers.map(|(name, value)| (name.to_owned(), value));
            let body = format!("{{\"a\": \"{MARK} http://10.0.0.1/{MARK}\"}}");
            gate.upstream()
                .reply(Reply::Answer(status, headers.to_vec(), body.into_bytes()));
            let answer = gate.send(&Call::accounts().present(), Protocol::Http1);
            assert!(answer.status >= 200);
        }
        gate.upstream().reply(Reply::Raw(
            format!("HTTP/1.1 {MARK}\r\n{MARK}\r\n\r\n").into_bytes(),
        ));
        gate.send(&Call::accounts().present(), Protocol::Http1);
        // Bytes that are no request.
        for raw in [
            format!("{MARK} / HTTP/1.1\r\n\r\n"),
            format!("GET /{MARK} HTTP/9\r\nX: {MARK}\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{MARK}\r\n\r\n"),
        ] {
            let mut connection = Connection::open(&gate);
            let _ = connection.send(raw.as_bytes());
            said += &String::from_utf8_lossy(&connection.rest());
        }
        for body in [
            json!({"psu_id": MARK, "tpp": MARK}),
            json!({MARK: 1}),
            json!({"request": MARK}),
        ] {
            for call in [
                "/psu/bind",
                "/psu/withdraw",
                "/sca/complete",
                "/sca/fail",
                "/sca/read",
            ] {
                gate.tell(call, &body);
            }
        }
        gate.control(&format!("/{MARK}?{MARK}"));
        said += &String::from_utf8(gate.control("/metrics").body).unwrap();
        signal(&program, "-TERM");
        assert!(program.0.wait().unwrap().success());
        let mut files = vec![
            gate.folder().join("access.log"),
            gate.folder().join("events.log"),
        ];
        let audit = fs::read_dir(gate.folder().join("state/audit/1")).unwrap();
        files.extend(audit.map(|entry| entry.unwrap().path()));
        let access = lines(&files[0]).len();
        assert!(access > calls.len(), "{access}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let line = text.lines().find(|line| line.contains(MARK));
            assert_eq!(line, None, "{level}: {}", file.display());
        }
        let line = said.lines().find(|line| line.contains(MARK));
        assert_eq!(line, None, "{level}");
    }
}
