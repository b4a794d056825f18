//! The corpus of tests/edge through the deployed program to nginx, Apache, HAProxy, Node, hyper and Python: none sees a request that the
//! gateway did not admit, and each case gets its stated answer.
//!
//! A request is admitted if the access log says so. Each server logs the method, the target and the X-Request-ID of each request that
//! it sees, also of those that it refuses.

/// The servers.
mod servers;

use crate::{
    corpus::{self, Case},
    harness::{Program, ended, eventually, happens, let_pass},
};
use serde_json::Value;
use servers::Server;
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::Duration,
};

/// The time within which logs are written.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
#[ignore = "make test-systems"]
fn nginx_sees_only_what_was_admitted() {
    only_what_was_admitted(Server::nginx());
}

#[test]
#[ignore = "make test-systems"]
fn apache_sees_only_what_was_admitted() {
    only_what_was_admitted(Server::apache());
}

#[test]
#[ignore = "make test-systems"]
fn haproxy_sees_only_what_was_admitted() {
    only_what_was_admitted(Server::haproxy());
}

#[test]
#[ignore = "make test-systems"]
fn node_sees_only_what_was_admitted() {
    only_what_was_admitted(Server::node());
}

#[test]
#[ignore = "make test-systems"]
fn hyper_sees_only_what_was_admitted() {
    only_what_was_admitted(Server::hyper());
}

#[test]
#[ignore = "make test-systems"]
fn python_sees_only_what_was_admitted() {
    only_what_was_admitted(Server::python());
}

fn only_what_was_admitted(server: Server) {
    a_refused_request_is_seen(&server);
    let cases = corpus::cases();
    let gate = corpus::gate().core(server.address()).for_program();
    let log = gate.folder().join("access.log");
    let mut program = gate.program();
    let program = program.stdout(File::create(&log).unwrap());
    let mut program = Program(program.spawn().unwrap());
    assert!(gate.is_up(&mut program.0), "it does not start");

    let before = server.seen().len();
    let outcomes = corpus::run(&gate, &cases);
    let id = program.0.id().to_string();
    let stopped = Command::new("kill").args(["-TERM", &id]).status();
    assert!(stopped.unwrap().success());
    ended(&mut program.0);

    let (forwarded, ended) = admitted(&fs::read_to_string(&log).unwrap());
    let seen = || server.seen().split_off(before);
    let ids = |seen: &[_]| -> BTreeSet<String> {
        let ids = seen
            .iter()
            .map(|(_, _, id): &(String, String, String)| id.clone());
        ids.collect()
    };
    // Those that do not come are faults below.
    happens(PATIENCE, || forwarded.is_subset(&ids(&seen())));
    // Time for lines that must not come.
    let_pass(Duration::from_millis(300));
    let seen = seen();
    let mut faults = corpus::faults(&cases, &outcomes, &seen);
    let seen = ids(&seen);
    let strangers = seen
        .iter()
        .filter(|id| !forwarded.contains(*id) && !ended.contains(*id));
    faults.extend(strangers.map(|id| format!("{id}: seen, and not admitted by the access log")));
    let missing = forwarded.difference(&seen);
    faults.extend(missing.map(|id| format!("{id}: admitted by the access log, and not seen")));
    println!(
        "{}: {} cases, {} requests seen, {} admitted",
        server.name(),
        cases.len(),
        seen.len(),
        forwarded.len()
    );
    assert!(
        faults.is_empty(),
        "{}: {} faults:\n{}",
        server.name(),
        faults.len(),
        faults.join("\n")
    );
    assert!(seen.len() > cases_with_an_answer(&cases), "{}", seen.len());
}

/// At least this number of requests must be seen: a server that logs nothing shows nothing.
fn cases_with_an_answer(cases: &[Case]) -> usize {
    cases.len() / 10
}

/// The ids of the requests that the access log calls forwarded, and of those that ended before their answer did.
fn admitted(log: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut forwarded, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let id = line["request_id"].as_str().unwrap_or_default().to_owned();
        match line["outcome"].as_str() {
            Some("forwarded" | "failed") => {
                forwarded.insert(id);
            }
            Some("abandoned" | "cut") if line["checks_us"]["claim"].is_number() => {
                ended.insert(id);
            }
            _ => {}
        }
    }
    (forwarded, ended)
}

/// The server logs a request that it refuses too; otherwise it would show too little.
fn a_refused_request_is_seen(server: &Server) {
    let before = server.seen().len();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(b"GET /v1 HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\nX y: z\r\n\r\n");
    let _ = stream.read(&mut [0; 64]);
    drop(stream);
    let what = format!("{} logs what it refuses", server.name());
    eventually(&what, || server.seen().len() > before);
}
