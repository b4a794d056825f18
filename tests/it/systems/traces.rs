//! Spans, read by the messages that OpenTelemetry publishes for Python: its names of fields, not ours.

use crate::{
    harness::{Call, Gate, Program, Protocol, received},
    signers::python_with,
};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
    sync::mpsc::{Receiver, channel},
};

/// Starts the collector. Returns its process, its port and its lines.
fn collector() -> (Program, String, Receiver<Value>) {
    let packages = ["opentelemetry-proto==1.45.2"];
    let python = python_with(
        "opentelemetry",
        "opentelemetry.proto, google.protobuf",
        &packages,
    );
    let mut collector = python.expect("opentelemetry-proto comes from PyPI");
    collector.arg("tests/it/systems/traces/collector.py");
    let mut collector = collector.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(collector.stdout.take().unwrap()).lines();
    let port = lines.next().unwrap().unwrap();
    let (pushes, pushed) = channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = pushes.send(serde_json::from_str(&line).unwrap());
        }
    });
    (Program(collector), port, pushed)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The value of an attribute.
fn attribute<'a>(of: &'a Value, key: &str) -> &'a str {
    let attributes = of["attributes"].as_array();
    let found = attributes.and_then(|all| all.iter().find(|one| one["key"] == key));
    found.map_or("", |found| text(&found["value"]["stringValue"]))
}

#[test]
#[ignore = "make test-systems"]
fn a_collector_reads_the_spans() {
    let (_collector, port, pushed) = collector();
    let line = format!("traces: {{endpoint: 'http://127.0.0.1:{port}/v1/traces', ratio: 1}}");
    let gate = Gate::builder().line(&line).for_program();
    let program = gate.run_with_logs(&mut gate.program());
    let call = Call::accounts().present();
    assert_eq!(gate.send(&call, Protocol::Http1).status, 200);
    program.stop();

    let push = received("a push", &pushed);
    let [resource] = push["resourceSpans"].as_array().unwrap().as_slice() else {
        panic!("{push}");
    };
    assert_eq!(attribute(&resource["resource"], "service.name"), "portvakt");
    let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<_> = spans.iter().map(|span| text(&span["name"])).collect();
    assert_eq!(names, ["request", "checks", "claim", "upstream"]);
    let request = &spans[0];
    assert_eq!(request["kind"], "SPAN_KIND_SERVER");
    assert!(request["parentSpanId"].is_null(), "{request}");
    assert_eq!(attribute(request, "http.request.method"), "GET");
    assert_eq!(attribute(request, "portvakt.operation"), "account-list");
    assert_eq!(attribute(request, "portvakt.status_class"), "2xx");
    let time = |span: &Value, key: &str| text(&span[key]).parse::<u64>().unwrap();
    for part in &spans[1..] {
        assert_eq!(part["traceId"], request["traceId"]);
        assert_eq!(part["parentSpanId"], request["spanId"]);
        let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"];
        assert!(time(part, start) >= time(request, start) && time(part, end) <= time(request, end));
    }
    let core = &spans[3];
    assert_eq!(core["kind"], "SPAN_KIND_CLIENT");
    let endpoint = gate.upstream().address().to_string();
    assert_eq!(attribute(core, "portvakt.endpoint"), endpoint);

    // The line of the access log names the same trace.
    let logged = fs::read_to_string(gate.folder().join("gateway.log")).unwrap();
    let logged: Value = serde_json::from_str(logged.lines().next().unwrap()).unwrap();
    let trace = openssl::base64::decode_block(text(&request["traceId"])).unwrap();
    assert_eq!(logged["trace_id"], portvakt::hex::encode(&trace));
}
