//! The access log and the metrics of the program: their content, and the absence of personal data.

/// Each metric, and the event that moves it.
mod metrics;
/// Spans, and the collector that gets them.
mod traces;

use crate::harness::{
    Call, Connection, Gate, LIMIT, Protocol, accepted, ended, eventually, signal_to, world,
};
use portvakt::clock::Stopwatch;
use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};

/// Personal or secret values of a request, which no log, metric or error may contain.
const PERSONAL: [&str; 5] = [
    "0192f0c1-5a5b-7def-8000-1234567890ab",
    "0192f0c1-5a5b-7def-8000-00000000c0c0",
    "01010112345",
    "NO9386011117947",
    "192.0.2.7",
];

fn personal() -> Call {
    Call::cross_border()
        .at("/v1/payments/norwegian-cross-border-credit-transfers?account=NO9386011117947")
        .with("PSU-Corporate-ID", PERSONAL[1])
        .with("X-PSU-IDENTITY", PERSONAL[2])
}

/// At this level, libraries would log whole headers.
#[test]
fn nothing_personal_is_logged_at_any_level() {
    let gate = Gate::builder().line("  level: trace").for_program();
    let program = gate.run_with_logs(&mut gate.program());
    for protocol in Protocol::ALL {
        for (call, status) in [
            (personal(), 200),
            (personal().with("PSU-ID", "01010112345"), 400),
            (personal().off_by(-61), 400),
            (
                Call::accounts()
                    .present()
                    .at("/v1/accounts/NO9386011117947/balances"),
                200,
            ),
        ] {
            let answer = gate.send(&call, protocol);
            assert_eq!(answer.status, status, "{}", answer.reason());
        }
    }
    program.stop();
    let said = ["gateway.log", "gateway.events"];
    let said = said.map(|file| fs::read_to_string(gate.folder().join(file)).unwrap());
    assert_eq!(said[0].lines().count(), 8);
    assert!(
        said[1].contains("starting"),
        "the gateway's own events are there"
    );
    let psu = world().both.psu();
    for value in PERSONAL.into_iter().chain([psu.as_str()]) {
        let mut lines = said.iter().flat_map(|text| text.lines());
        let line = lines.find(|line| line.contains(value));
        assert_eq!(line, None, "{value} is repeated");
    }
}

#[test]
fn every_request_has_a_line_and_nothing_personal_is_in_it() {
    let (gate, mut program) = Gate::builder().start_program();
    let calls = [
        (personal(), 200),
        (personal().off_by(-61), 400),
        (personal().without("PSU-IP-Address"), 400),
        // The answer contains the signing string, with the target as the TPP sent it (SIG-13).
        (
            personal()
                .at("/v1/payments/norwegian-cross-border-credit-transfers")
                .altered(|request| request.set_header("PSU-ID", PERSONAL[1])),
            400,
        ),
        (
            personal().altered(|request| request.body = Some(b"{}".to_vec())),
            400,
        ),
        (personal().with("PSU-ID", "01010112345"), 400),
        (
            Call::accounts().at("/v1/accounts/NO9386011117947/cards"),
            404,
        ),
        (
            Call::accounts().at("/v1/accounts/NO9386011117947/balances"),
            200,
        ),
    ];
    let mut said = String::new();
    for (call, status) in &calls {
        let answer = gate.send(call, Protocol::Http1);
        assert_eq!(answer.status, *status, "{}", answer.reason());
        said += &String::from_utf8(answer.body).unwrap();
    }
    said += &String::from_utf8(gate.control("/metrics").body).unwrap();
    signal_to(program.id(), "-TERM");
    assert!(ended(&mut program).success(), "SIGTERM is a good end");
    let output = program.wait_with_output().unwrap();
    let log = String::from_utf8(output.stdout).unwrap();
    said += &log;
    said += &String::from_utf8(output.stderr).unwrap();
    for value in PERSONAL {
        assert!(!said.contains(value), "{value} is repeated");
    }

    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| line["reason"].as_str().unwrap_or("-"))
        .collect();
    let expected = [
        "-",
        "date-skewed",
        "header-missing",
        "signature-mismatch",
        "digest-mismatch",
        "header-malformed",
        "operation-unknown",
        "-",
    ];
    assert_eq!(told, expected);
    assert_eq!(lines[0]["operation"], "cross-border-payment-create");
    assert_eq!(
        (&lines[0]["outcome"], &lines[0]["status"]),
        (&Value::from("forwarded"), &Value::from(200))
    );
    assert_eq!(
        [&lines[0]["method"], &lines[0]["http"], &lines[0]["tls"]],
        ["POST", "1.1", "1.3"]
    );
    assert_eq!(lines[0]["upstream_status"], 200);
    assert!(lines[0]["received_bytes"].as_u64() > Some(100));
    assert!(lines[0]["checks_us"]["signature"].is_u64() && lines[0]["upstream_us"].is_u64());
    // Both have the owner of the certificate; only a valid signature shows that the TPP itself sent the request.
    assert_eq!(lines[0]["tpp"], "PSDNO-FSA-123456");
    assert_eq!(
        (&lines[3]["tpp"], &lines[3]["shown_tpp"]),
        (&Value::Null, &Value::from("PSDNO-FSA-123456"))
    );
    // A request that is refused before its certificate is judged has the name too; one without an operation does not.
    assert_eq!(lines[1]["shown_tpp"], "PSDNO-FSA-123456");
    assert_eq!(lines[6]["shown_tpp"], Value::Null);
}

#[test]
fn what_the_store_does_is_measured() {
    let gate = Gate::start();
    let payment = Call::payment().only(Protocol::Http1);
    gate.seal(&payment);
    let state = |name: &str| gate.metric_now(&format!("portvakt_state_{name}"), &[]);
    let (changes, batches) = (state("batch_changes_sum"), state("batch_changes_count"));
    accepted(&gate, &payment);
    eventually("the change is counted", || {
        state("batch_changes_sum") > changes && state("batch_changes_count") > batches
    });
    assert!(state("batch_seconds_sum") > 0.0);
    assert!(state("batch_seconds_count") > 0.5);
    assert!(state("batches_failed_total").abs() < f64::EPSILON);
    // Housekeeping counts the rows.
    for table in ["psu", "request"] {
        let label = format!("table=\"{table}\"");
        gate.eventually_metric("portvakt_state_rows", &[&label], 1.0);
    }
}

/// Ten thousand clients that do not speak TLS write at most ten lines in a minute, and each is counted.
#[test]
fn probes_fill_no_log() {
    const CLIENTS: usize = 10_000;
    let gate = Gate::builder().for_program();
    let watch = Stopwatch::start();
    let mut program = gate.run_with_logs(&mut gate.program());
    let (name, outcome) = ("portvakt_handshakes_total", ["outcome=\"failed\""]);
    // The connections that waited for the start failed too. They were accepted before this one.
    drop(Connection::open(&gate));
    gate.eventually_metric("portvakt_open_connections", &[], 0.0);
    let before = gate.metric_now(name, &outcome);
    for _ in 0..CLIENTS {
        let mut client = TcpStream::connect(gate.address()).unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    }
    gate.eventually_metric(name, &outcome, before + CLIENTS as f64);
    program.end();
    let minutes = 1 + usize::try_from(watch.elapsed().as_secs() / 60).unwrap();
    let lines = fs::read_to_string(gate.folder().join("gateway.events")).unwrap();
    let lines = lines.lines().filter(|line| line.contains("handshake"));
    assert!((1..=10 * minutes).contains(&lines.count()));
}
