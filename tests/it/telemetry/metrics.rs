//! Each metric moves by the event that it is about, at a real gateway.

use crate::harness::{Call, Gate, Program, Protocol, Reply, accepted, needs_sca, refused, world};
use portvakt::clock::{Clock, Stopwatch, Timestamp};
use serde_json::json;
use std::{collections::BTreeSet, fs, process::Stdio, time::Duration};

const THEN: u64 = 1_790_000_000;

/// Waits until a metric has this value: a request is counted when its answer has been sent.
fn is(gate: &Gate, name: &str, labels: &[&str], value: f64) {
    let begun = Stopwatch::start();
    loop {
        let found = gate.metric(name, labels);
        if (found - value).abs() < 0.01 {
            return;
        }
        let what = format!("{name} {labels:?} is {found}, not {value}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
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

#[test]
fn a_request_that_the_core_answers() {
    let gate = Gate::start();
    for _ in 0..2 {
        accepted(&gate, &plain());
    }
    requests(&gate, "forwarded", "2xx", "none", 2.0);
    let one = |name: &str, label: &str, value: f64| is(&gate, name, &[label], value);
    let two = |name: &str, label: &str| one(name, label, 2.0);
    two(
        "portvakt_request_seconds_count",
        "operation=\"tpp-contact-read\"",
    );
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
        assert!(gate.metric(&format!("process_{name}"), &[]) > 0.0, "{name}");
    }
    assert!(gate.metric("process_virtual_memory_bytes", &[]) > 1e6);
    assert!(gate.metric("process_start_time_seconds", &[]) > 1e9);
}

#[test]
fn requests_under_way() {
    let gate = Gate::builder().upstream("read_timeout: 2s").start();
    gate.upstream().reply(Reply::Silence);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(gate.send(&plain(), Protocol::Http1).status, 504));
        is(&gate, "portvakt_requests_in_flight", &[], 1.0);
        is(&gate, "portvakt_upstream_in_flight", &[], 1.0);
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
        gate.metric(
            "portvakt_caller_clock_skew_seconds_bucket",
            &["behind", bucket],
        )
    };
    is(
        &gate,
        "portvakt_refusals_total",
        &["date-skewed", "operation=\"tpp-contact-read\""],
        1.0,
    );
    assert!((skew("le=\"300\"") - skew("le=\"60\"") - 1.0).abs() < 0.01);
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
    let gate = Gate::builder().upstream("read_timeout: 300ms").start();
    let raw = |text: &str| Reply::Raw(text.into());
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let cases = [
        (Reply::Close, "reset", 502),
        (Reply::Silence, "timeout", 504),
        (raw("HTTP/1.1 200 OK\r\nContent-Le"), "truncated", 502),
        (raw("what is this?\r\n\r\n"), "garbage", 502),
        (
            Reply::Answer(500, vec![], b"<html>".to_vec()),
            "garbage",
            500,
        ),
    ];
    // A POST is never sent twice.
    let call = Call::payment().only(Protocol::Http1);
    let failures = |kind: &str| {
        gate.metric(
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
    gate.upstream().away(|| {
        assert_eq!(gate.send(&call, Protocol::Http1).status, 502);
        failed("refused", 0.0);
    });
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
    is(&gate, "portvakt_sessions", &[], 1.0);
    clock.set(Timestamp::from_unix(THEN + 3_600));
    assert_eq!(complete(&late), 410);
    events("started", 3.0);
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
    assert!(gate.metric("portvakt_last_reload_timestamp_seconds", &[]) > 1e9);

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

/// Standard output that refuses every line is a full disk, which /dev/full is.
#[test]
fn lines_of_the_access_log() {
    for (output, result) in [("/dev/null", "written"), ("/dev/full", "failed")] {
        let gate = Gate::builder().for_program();
        let output = fs::File::options().write(true).open(output).unwrap();
        let mut program = gate.program();
        let program = program.stdout(output).stderr(Stdio::null()).spawn();
        let mut program = Program(program.unwrap());
        assert!(gate.is_up(&mut program.0), "it does not start");
        accepted(&gate, &plain());
        is(&gate, "portvakt_access_lines_total", &[result], 1.0);
    }
}

/// Metrics of rare events, which a gateway without one does not show. Other tests show each of them.
const RARE: [&str; 9] = [
    "portvakt_crl_next_update_timestamp_seconds",
    "portvakt_inner_addresses_total",
    "portvakt_psu_present_without_session_total",
    "portvakt_register_age_seconds",
    "portvakt_register_as_of_timestamp_seconds",
    "portvakt_register_max_age_seconds",
    "portvakt_tpp_quota_exceeded_total",
    "portvakt_tpp_signature_failures_total",
    "portvakt_unsigned_target_total",
];

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
        .start();
    accepted(&gate, &plain());
    accepted(&gate, &Call::payment().only(Protocol::Http1));
    gate.send(&Call::plain().at("/v1/none"), Protocol::Http1);
    gate.send(
        &Call::accounts().without("PSU-ID").present(),
        Protocol::Http1,
    );
    // Housekeeping counts rows after a second.
    is(&gate, "portvakt_sessions", &[], 0.0);
    std::thread::sleep(Duration::from_secs(3));
    let text = String::from_utf8(gate.control("/metrics").body).unwrap();
    let shown: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    let page = fs::read_to_string(page).unwrap();
    let documented: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let missing: Vec<_> = shown.difference(&documented).collect();
    assert!(missing.is_empty(), "not in docs/metrics.md: {missing:?}");
    let absent: Vec<_> = documented.difference(&shown).copied().collect();
    let absent: Vec<_> = absent.iter().filter(|name| !RARE.contains(name)).collect();
    assert!(absent.is_empty(), "not on /metrics: {absent:?}");
}
