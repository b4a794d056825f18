//! Each metric moves by the event that it is about, at a real gateway.

use crate::harness::{
    Call, Connection, Gate, Protocol, Reply, accepted, eventually, let_pass, needs_sca, received,
    refused, render, world,
};
use portvakt::clock::{Clock, Timestamp};
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read, Write},
    process::Stdio,
    sync::{Mutex, mpsc::channel},
    time::Duration,
};

const THEN: u64 = 1_790_000_000;

/// Waits until a metric has this value: a request is counted when its answer has been sent.
fn is(gate: &Gate, name: &str, labels: &[&str], value: f64) {
    gate.eventually_metric(name, labels, value);
}

/// A call without a PSU.
fn plain() -> Call {
    Call::plain().only(Protocol::Http1)
}

fn requests(gate: &Gate, outcome: &str, status: &str, fault: &str, count: f64) {
    let labels = [("outcome", outcome), ("status", status), ("fault", fault)];
    let labels = labels.map(|(name, value)| format!("{name}=\"{value}\""));
    let labels = labels.each_ref().map(String::as_str);
    is(gate, "portvakt_requests_total", &labels, count);
}

/// The disks that grow with traffic, as far as this gateway writes to them.
#[test]
fn the_place_that_is_left() {
    let bytes = |gate: &Gate, what: &str| {
        let metrics = gate.control("/metrics");
        let text = String::from_utf8(metrics.body).unwrap();
        let metric = format!("portvakt_disk_{what}_bytes{{folder=\"");
        let lines = text.lines().filter_map(|line| {
            let (folder, bytes) = line.strip_prefix(&metric)?.split_once("\"} ")?;
            Some((folder.to_owned(), bytes.parse::<f64>().unwrap()))
        });
        lines.collect::<Vec<_>>()
    };
    let gate = Gate::start();
    let folders = |found: &[(String, f64)]| {
        let names = found.iter().map(|(folder, _)| folder.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(folders(&bytes(&gate, "free")), ["state"]);
    let gate = Gate::builder()
        .line("  access_file: access.log")
        .line("audit: {write: on, folder: audit}")
        .for_program();
    let _program = gate.run_silently(&mut gate.program());
    let (found, sizes) = (bytes(&gate, "free"), bytes(&gate, "size"));
    assert_eq!(folders(&found), ["state", "audit", "logs"]);
    let disk = rustix::fs::statvfs(gate.folder()).unwrap();
    let size = (disk.f_blocks * disk.f_frsize) as f64;
    assert_eq!(folders(&sizes), ["state", "audit", "logs"]);
    for ((folder, free), (_, of)) in found.into_iter().zip(sizes) {
        assert!(free > 0.0 && free <= size, "{folder}: {free} of {size}");
        assert!((of - size).abs() < 1.0, "{folder}: {of} of {size}");
    }
}

#[test]
fn a_request_that_the_core_answers() {
    let gate = Gate::start();
    for _ in 0..2 {
        accepted(&gate, &plain());
    }
    requests(&gate, "forwarded", "2xx", "none", 2.0);
    let one = |name: &str, label: &str, value: f64| is(&gate, name, &[label], value);
    let two = |name: &str, label: &str| one(name, label, 2.0);
    two("portvakt_request_seconds_count", "group=\"tpp\"");
    two("portvakt_request_seconds_bucket", "le=\"+Inf\"");
    two("portvakt_check_seconds_count", "check=\"signature\"");
    two("portvakt_upstream_seconds_count", "group=\"tpp\"");
    two("portvakt_upstream_responses_total", "status=\"2xx\"");
    two("portvakt_tpp_requests_total", "tpp=\"PSDNO-FSA-123456\"");
    one("portvakt_upstream_connections_total", "new", 1.0);
    one("portvakt_upstream_connections_total", "reused", 1.0);
    one("portvakt_upstream_idle_connections", "", 1.0);
    one("portvakt_certificate_lookups_total", "cache=\"none\"", 1.0);
    one(
        "portvakt_certificate_lookups_total",
        "cache=\"header_value\"",
        1.0,
    );
    one("portvakt_certificates_cached", "", 1.0);
    two(
        "portvakt_caller_clock_skew_seconds_count",
        "direction=\"behind\"",
    );
    two("portvakt_handshakes_total", "version=\"1.3\"");
    one("portvakt_ready", "", 1.0);
    one("portvakt_environment_info", "sandbox", 1.0);
    one("portvakt_build_info", env!("CARGO_PKG_VERSION"), 1.0);
    for name in [
        "cpu_seconds_total",
        "open_fds",
        "max_fds",
        "threads",
        "resident_memory_bytes",
    ] {
        assert!(
            gate.metric_now(&format!("process_{name}"), &[]) > 0.0,
            "{name}"
        );
    }
    assert!(gate.metric_now("process_virtual_memory_bytes", &[]) > 1e6);
    assert!(gate.metric_now("process_start_time_seconds", &[]) > 1e9);
}

/// Prometheus does not see the increase to a series' first value, so a first burst of failures would count nowhere.
#[test]
fn availability_is_counted_from_the_first_failure_on() {
    let gate = Gate::start();
    let text = String::from_utf8(gate.control("/metrics").body).unwrap();
    let begins = |name: &str, labels: [&str; 2]| {
        let mut own = text.lines().filter(|line| {
            line.starts_with(name) && labels.iter().all(|label| line.contains(label))
        });
        let first = own.next().unwrap_or_else(|| panic!("{name} {labels:?}"));
        assert!(first.ends_with(" 0") && own.next().is_none(), "{first}");
    };
    for group in ["accounts", "payments", "none"] {
        let group = format!("group=\"{group}\"");
        for fault in ["none", "caller", "gateway", "core"] {
            begins(
                "portvakt_answers_total{",
                [&group, &format!("fault=\"{fault}\"")],
            );
        }
    }
    begins("portvakt_upstream_seconds_count", ["\"accounts\"", ""]);
    for class in ["2xx", "3xx", "4xx", "5xx"] {
        begins("portvakt_upstream_responses_total", ["\"accounts\"", class]);
    }
    let answers = |group: &str, fault: &str, count: f64| {
        let labels = [format!("group=\"{group}\""), format!("fault=\"{fault}\"")];
        let labels = labels.each_ref().map(String::as_str);
        is(&gate, "portvakt_answers_total", &labels, count);
    };
    accepted(&gate, &plain());
    answers("tpp", "none", 1.0);
    gate.upstream().away(|| {
        assert_eq!(gate.send(&plain(), Protocol::Http1).status, 502);
    });
    answers("tpp", "core", 1.0);
    assert_eq!(gate.send(&plain().off_by(90), Protocol::Http1).status, 400);
    answers("tpp", "caller", 1.0);
    answers("tpp", "gateway", 0.0);
}

#[test]
fn requests_under_way() {
    let gate = Gate::builder().upstream("read_timeout: 300s").start();
    let (held, latch) = Reply::json(200, "{}").held();
    gate.upstream().reply(held);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(gate.send(&plain(), Protocol::Http1).status, 200));
        latch.arrived(1);
        is(&gate, "portvakt_requests_in_flight", &[], 1.0);
        is(&gate, "portvakt_upstream_in_flight", &[], 1.0);
        latch.release();
    });
    is(&gate, "portvakt_requests_in_flight", &[], 0.0);
    is(&gate, "portvakt_upstream_in_flight", &[], 0.0);
}

#[test]
fn requests_at_fault() {
    let gate = Gate::start();
    // The signature of a TPP that never signed a request could be anybody's.
    let unknown = Call::plain().by(&world().aisp).only(Protocol::Http1);
    let altered = |call: Call| {
        call.altered(|request| {
            request.set_header("X-Request-ID", "2f2e7d2e-5e3c-4b9b-8a76-2e37d0c3c001")
        })
    };
    accepted(&gate, &plain());
    for call in [unknown, plain()] {
        refused(
            &gate,
            &altered(call),
            400,
            "FORMAT_ERROR",
            "signature-mismatch",
        );
    }
    for tpp in ["other", "PSDNO-FSA-123456"] {
        let label = format!("tpp=\"{tpp}\"");
        is(
            &gate,
            "portvakt_tpp_signature_failures_total",
            &[&label],
            1.0,
        );
    }
    is(
        &gate,
        "portvakt_refusals_total",
        &["signature-mismatch", "fault=\"caller\""],
        2.0,
    );

    refused(
        &gate,
        &plain().off_by(-70),
        400,
        "FORMAT_ERROR",
        "date-skewed",
    );
    let skew = |bucket: &str| {
        gate.metric_now(
            "portvakt_caller_clock_skew_seconds_bucket",
            &["behind", bucket],
        )
    };
    is(
        &gate,
        "portvakt_operation_refusals_total",
        &["date-skewed", "operation=\"tpp-contact-read\""],
        1.0,
    );
    eventually("the skew is counted", || {
        let skewed = skew("le=\"300\"") - skew("le=\"60\"");
        ((skewed - 1.0).abs() < 0.01).then_some(()).ok_or(skewed)
    });
    requests(&gate, "refused", "4xx", "caller", 3.0);

    // The core's own answers: an error is the core's, a 404 the caller's.
    gate.upstream().reply(Reply::json(500, "{}"));
    assert_eq!(gate.send(&plain(), Protocol::Http1).status, 500);
    requests(&gate, "forwarded", "5xx", "core", 1.0);
    is(
        &gate,
        "portvakt_upstream_responses_total",
        &["status=\"5xx\""],
        1.0,
    );
    gate.upstream().reply(Reply::json(404, "{}"));
    assert_eq!(gate.send(&plain(), Protocol::Http1).status, 404);
    requests(&gate, "forwarded", "4xx", "caller", 1.0);
}

#[test]
fn failures_of_the_core() {
    let slow = Gate::builder().upstream("read_timeout: 300ms").start();
    let gate = Gate::start();
    let raw = |text: &str| Reply::Raw(text.into());
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let cases = [
        (Reply::Close, "reset", 504),
        (raw("HTTP/1.1 200 OK\r\nContent-Le"), "truncated", 504),
        (raw("what is this?\r\n\r\n"), "garbage", 504),
        (
            Reply::Answer(500, vec![], b"<html>".to_vec()),
            "garbage",
            500,
        ),
    ];
    // A POST is never sent twice.
    let call = Call::payment().only(Protocol::Http1);
    slow.upstream().reply(Reply::Silence);
    assert_eq!(slow.send(&call, Protocol::Http1).status, 504);
    is(
        &slow,
        "portvakt_upstream_failures_total",
        &["\"timeout\""],
        1.0,
    );
    requests(&slow, "failed", "5xx", "core", 1.0);
    let failures = |kind: &str| {
        gate.metric_now(
            "portvakt_upstream_failures_total",
            &[&format!("\"{kind}\"")],
        )
    };
    let failed = |kind: &str, before: f64| {
        is(
            &gate,
            "portvakt_upstream_failures_total",
            &[&format!("\"{kind}\"")],
            before + 1.0,
        );
    };
    for (number, (reply, kind, status)) in (1_u8..).zip(cases) {
        let before = failures(kind);
        gate.upstream().reply(reply);
        assert_eq!(gate.send(&call, Protocol::Http1).status, status, "{kind}");
        failed(kind, before);
        is(
            &gate,
            "portvakt_requests_total",
            &["failed", "fault=\"core\""],
            number.into(),
        );
    }
    let before = failures("truncated");
    gate.upstream()
        .reply(raw(&format!("{json}Content-Length: 10\r\n\r\n{{}}")));
    let sealed = gate.seal(&call);
    assert!(
        gate.send_sealed(&sealed, Protocol::Http1).is_err(),
        "it is whole"
    );
    failed("truncated", before);
    // A status was sent, but no whole answer.
    requests(&gate, "failed", "none", "core", 1.0);
    requests(&gate, "failed", "2xx", "core", 0.0);
    gate.upstream().away(|| {
        assert_eq!(gate.send(&call, Protocol::Http1).status, 502);
        failed("refused", 0.0);
    });
}

/// The core is at fault if it had owed the answer, or the next part of it, for about a second. A caller that leaves sooner tells nothing.
#[test]
fn callers_who_leave_while_the_core_owes_the_answer() {
    let part = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    let error = part.replace("200 OK", "404 Not Found");
    for sent in ["", part, &error] {
        let gate = Gate::start();
        let sent = sent.to_owned();
        let (begun, has_begun) = channel();
        let begun = Mutex::new(begun);
        gate.upstream().reply(Reply::play(move |_, stream| {
            stream.write_all(sent.as_bytes()).unwrap();
            let _ = begun.lock().unwrap().send(());
            // Until the gateway ends its side.
            let _ = stream.read(&mut [0; 1]);
            false
        }));
        let leave_after = |time: Duration| {
            let mut connection = Connection::open(&gate);
            connection.send(&render(&gate.seal(&plain()))).unwrap();
            received("the core has the request", &has_begun);
            let_pass(time);
        };
        let count = |name: &str, label: &str, value: f64| is(&gate, name, &[label], value);
        // A slow machine may notice after a second that the caller has left: then another one shows it.
        let mut late = -1.0;
        eventually("a caller who leaves at once is at fault", || {
            late += 1.0;
            // The gateway begins to watch its caller after 100 ms.
            leave_after(Duration::from_millis(300));
            count(
                "portvakt_requests_total",
                "outcome=\"abandoned\"",
                late + 1.0,
            );
            gate.metric_now("portvakt_requests_total", &["fault=\"caller\""]) > 0.0
        });
        requests(&gate, "abandoned", "none", "caller", 1.0);
        count(
            "portvakt_answers_total",
            "fault=\"caller\",group=\"tpp\"",
            1.0,
        );
        count("portvakt_upstream_endpoint_failures_total", "", late);
        leave_after(Duration::from_millis(1_500));
        requests(&gate, "abandoned", "none", "core", late + 1.0);
        requests(&gate, "abandoned", "none", "caller", 1.0);
        count(
            "portvakt_answers_total",
            "fault=\"core\",group=\"tpp\"",
            late + 1.0,
        );
        let all = late + 2.0;
        // Where the gateway did not watch yet, it meets the end as it sends: that is no failure on the way to the core.
        let abandoned = &["\"abandoned\""];
        gate.eventually_metric_is("portvakt_upstream_failures_total", abandoned, "", |count| {
            count > late + 0.5 && count < all + 0.5
        });
        count("portvakt_upstream_endpoint_failures_total", "", late + 1.0);
        count("portvakt_upstream_seconds_count", "group=\"tpp\"", all);
        count("portvakt_upstream_ejections_total", "", 0.0);
    }
}

/// A Date of the year 9999 does not make the sum overflow.
#[test]
fn a_date_far_away_counts_as_a_day() {
    let gate = Gate::start();
    for _ in 0..3 {
        let far = plain().altered(|request| {
            request.set_header("Date", "Fri, 31 Dec 9999 23:59:59 GMT");
        });
        assert_eq!(gate.send(&far, Protocol::Http1).status, 400);
    }
    let skew = |name: &str, value: f64| {
        let name = format!("portvakt_caller_clock_skew_seconds_{name}");
        is(&gate, &name, &["direction=\"ahead\""], value);
    };
    skew("count", 3.0);
    skew("sum", 3.0 * 86_400.0);
}

#[test]
fn quotas() {
    let gate = Gate::start();
    let call = Call::balances().only(Protocol::Http1);
    let calls = |event: &str, count: f64| is(&gate, "portvakt_quota_calls_total", &[event], count);
    gate.seal(&call);
    gate.upstream().reply(Reply::json(404, "{}"));
    assert_eq!(gate.send(&call, Protocol::Http1).status, 404);
    calls("taken", 1.0);
    calls("given_back", 1.0);
    gate.upstream().reply(Reply::json(200, "{}"));
    for _ in 0..4 {
        accepted(&gate, &call);
    }
    refused(&gate, &call, 429, "ACCESS_EXCEEDED", "quota-exceeded");
    calls("taken", 5.0);
    calls("refused", 1.0);
    for name in ["refusals", "quota_exceeded"] {
        let name = format!("portvakt_tpp_{name}_total");
        is(&gate, &name, &["tpp=\"PSDNO-FSA-123456\""], 1.0);
    }
}

#[test]
fn scas_and_sessions() {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder().strangers().clock(&clock).start();
    let call = Call::accounts()
        .without("PSU-ID")
        .with("TPP-Session-ID", "S")
        .present()
        .only(Protocol::Http1);
    let token = || {
        let answer = needs_sca(&gate, &call).json();
        let href = answer["_links"]["scaRedirect"]["href"].as_str().unwrap();
        href.rsplit_once("request=").unwrap().1.to_owned()
    };
    let events = |event: &str, count: f64| is(&gate, "portvakt_sca_total", &[event], count);
    let psu = world().both.psu();
    let complete = |token: &str| {
        let said = json!({ "request": token, "psu_id": psu, "context": "PRIVATE" });
        gate.tell("/sca/complete", &said).status
    };
    let first = token();
    // A repeated report changes nothing.
    assert_eq!([complete(&first), complete(&first)], [200, 200]);
    let fail = json!({
        "request": token(), "system": "bank", "status": 400, "code": "SCA_INVALID", "message": "no"
    });
    assert_eq!(gate.tell("/sca/fail", &fail).status, 200);
    let late = token();
    events("started", 0.0);
    let read = || gate.tell("/sca/read", &json!({ "request": late })).status;
    assert_eq!([read(), read()], [200, 200]);
    is(&gate, "portvakt_sessions", &[], 1.0);
    clock.set(Timestamp::from_unix(THEN + 3_600));
    assert_eq!(complete(&late), 410);
    events("link", 3.0);
    events("started", 1.0);
    events("completed", 1.0);
    events("failed", 1.0);
    events("expired", 1.0);
    is(&gate, "portvakt_sessions", &[], 0.0);
}

#[test]
fn the_gateways_own_clock() {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder().clock(&clock).start();
    accepted(&gate, &plain());
    is(&gate, "portvakt_clock_behind_seconds", &[], 0.0);
    for (step, behind) in [(-1, 1.0), (-10, 10.0), (-20, 20.0), (5, 0.0), (-5, 10.0)] {
        clock.set(Timestamp::from_unix(THEN.checked_add_signed(step).unwrap()));
        is(&gate, "portvakt_clock_behind_seconds", &[], behind);
    }
    // One second is the jitter of threads, and the third step is a part of the second.
    is(&gate, "portvakt_clock_backward_steps_total", &[], 2.0);
}

#[test]
fn reloads_and_readiness() {
    let gate = Gate::builder().with_a_file().start();
    is(&gate, "portvakt_last_reload_successful", &[], 1.0);
    let configure = |yaml: &str| fs::write(gate.folder().join("gateway.yaml"), yaml).unwrap();
    configure("colour: red\n");
    assert_eq!(gate.tell("/reload", &json!({})).status, 422);
    is(&gate, "portvakt_last_reload_successful", &[], 0.0);
    configure(&format!("{}system: other\n", gate.yaml()));
    assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    is(&gate, "portvakt_last_reload_successful", &[], 1.0);
    is(&gate, "portvakt_pending_restart", &[], 1.0);
    assert!(gate.metric_now("portvakt_last_reload_timestamp_seconds", &[]) > 1e9);

    let state = gate.folder().join("state");
    let (file, away) = (state.join("portvakt.db"), state.join("away"));
    let call = Call::payment().only(Protocol::Http1);
    accepted(&gate, &call);
    fs::rename(&file, &away).unwrap();
    refused(&gate, &call, 503, "SYSTEM_ERROR", "state-unavailable");
    is(&gate, "portvakt_not_ready", &["cause=\"state\""], 1.0);
    is(&gate, "portvakt_ready", &[], 0.0);
    requests(&gate, "refused", "5xx", "gateway", 1.0);
    fs::rename(&away, &file).unwrap();
    is(&gate, "portvakt_ready", &[], 1.0);
    is(&gate, "portvakt_not_ready", &[], 0.0);
}

/// A log that refuses every line is on a full disk, which /dev/full is.
#[test]
fn lines_of_the_logs() {
    for (output, result) in [("/dev/null", "written"), ("/dev/full", "failed")] {
        let gate = Gate::builder().for_program();
        let output = fs::File::options().write(true).open(output).unwrap();
        let events = output.try_clone().unwrap();
        let mut program = gate.program();
        let _program = gate.run(program.stdout(output).stderr(events));
        accepted(&gate, &plain());
        is(&gate, "portvakt_access_lines_total", &[result], 1.0);
        assert!(gate.metric_now("portvakt_event_lines_total", &[result]) >= 1.0);
    }
}

/// A log that nobody reads delays no request. Its lines are dropped and counted, and each line is counted once.
#[test]
fn lines_that_nobody_takes() {
    let gate = Gate::builder()
        .line("rates: {per_address: off}")
        .for_program();
    let (unread, output) = io::pipe().unwrap();
    // The command goes at once, and with it the pipe's end for writing.
    let program = gate.run(gate.program().stdout(output).stderr(Stdio::null()));
    let lines = |result: &str| {
        gate.metric_now(
            "portvakt_access_lines_total",
            &[&format!("result=\"{result}\"")],
        )
    };
    let mut connection = Connection::open(&gate);
    let mut sent = 0;
    while lines("dropped") < 100.0 {
        for _ in 0..1_000 {
            connection
                .send(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .unwrap();
            assert_eq!(connection.answer("GET").unwrap().status, 404);
            sent += 1;
        }
        assert!(sent < 60_000, "no line was dropped");
    }
    let reader = std::thread::spawn(move || io::copy(&mut &unread, &mut io::sink()));
    is(&gate, "portvakt_access_lines_total", &[], f64::from(sent));
    assert!(lines("dropped") >= 100.0 && lines("written") > 0.0);
    drop(program);
    reader.join().unwrap().unwrap();
}

/// Metrics of rare events, which a gateway without one does not show. Other tests show each of them.
const RARE: [&str; 9] = [
    "portvakt_bundle_imported_timestamp_seconds",
    "portvakt_bundle_next_update_timestamp_seconds",
    "portvakt_crl_next_update_timestamp_seconds",
    "portvakt_event_consumer_waiting_seconds",
    "portvakt_inner_addresses_total",
    "portvakt_observed_total",
    "portvakt_register_age_seconds",
    "portvakt_register_as_of_timestamp_seconds",
    "portvakt_register_max_age_seconds",
];

/// The names of metrics in what /metrics says.
fn shown(text: &str) -> BTreeSet<&str> {
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    names.filter_map(|name| name.split(' ').next()).collect()
}

/// docs/metrics.md has every metric, and no other.
#[test]
fn the_document_and_the_gateway_agree() {
    let gate = Gate::builder()
        .line("revocation: {check: on, unreachable: open}")
        .line("registers: {check: on, local: tpps.yaml}")
        .file(
            "tpps.yaml",
            "allow: [{tpp: PSDNO-FSA-123456, roles: [PSP_AI, PSP_PI]}]\n",
        )
        .with_a_file()
        .start();
    accepted(&gate, &plain());
    accepted(&gate, &Call::payment().only(Protocol::Http1));
    gate.send(&Call::plain().at("/v1/none"), Protocol::Http1);
    gate.send(
        &Call::accounts().without("PSU-ID").present(),
        Protocol::Http1,
    );
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    let page = fs::read_to_string(page).unwrap();
    let documented: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    // Housekeeping counts rows after a second, and sources of revocation are asked in the background.
    let text = eventually("every documented metric is on /metrics", || {
        let text = String::from_utf8(gate.control("/metrics").body).unwrap();
        let shown = shown(&text);
        let absent = documented.iter().filter(|name| !shown.contains(**name));
        let absent = absent.filter(|name| !RARE.contains(name));
        let absent: Vec<_> = absent.map(|name| (*name).to_owned()).collect();
        if absent.is_empty() {
            Ok(text)
        } else {
            Err(absent)
        }
    });
    let shown = shown(&text);
    let missing: Vec<_> = shown.difference(&documented).collect();
    assert!(missing.is_empty(), "not in docs/metrics.md: {missing:?}");
}
