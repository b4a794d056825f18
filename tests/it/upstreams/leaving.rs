//! Callers who leave: FWD-4.

use super::until;
use crate::harness::{Call, Connection, Gate, Program, Protocol, Reply, Sealed, render};
use portvakt::clock::Stopwatch;
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// Far beyond the moment after which a caller who left is noticed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends a request over HTTP/1.1 and leaves.
fn leave(gate: &Gate, sealed: &Sealed) {
    let mut connection = Connection::open(gate);
    connection.send(&render(sealed)).unwrap();
    thread::sleep(Duration::from_millis(300));
}

/// Whether the gateway closes the connection before the core would go on.
fn is_left(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    matches!(stream.read(&mut [0; 1]), Ok(0))
}

//= FWD-4 accepted
#[test]
fn a_safe_request_ends_with_its_caller() {
    let heads = [
        // Before the head of the answer, and within its body.
        "",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ];
    for head in heads {
        let gate = Gate::start();
        let left = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&left);
        gate.upstream().reply(Reply::play(move |_, stream| {
            stream.write_all(head.as_bytes()).unwrap();
            if is_left(stream) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            false
        }));
        let begun = Stopwatch::start();
        let sealed = gate.seal(&Call::accounts());
        leave(&gate, &sealed);
        until("over HTTP/1.1", || left.load(Ordering::Relaxed) == 1);
        // The client of HTTP/2 gives up before the core does.
        let sealed = gate.seal(&Call::accounts());
        let gives_up = crate::harness::exchange_within(&gate, &sealed, Duration::from_millis(300));
        assert!(gives_up.is_err());
        until("over HTTP/2", || left.load(Ordering::Relaxed) == 2);
        assert!(begun.elapsed() < PATIENCE, "the core was not waited for");
    }
}

//= FWD-4 accepted
//= FWD-4 refused
#[test]
fn an_unsafe_request_runs_to_its_end() {
    let gate = Gate::builder().for_program();
    let log = gate.folder().join("access.log");
    let mut program = gate.program();
    program.stdout(File::create(&log).unwrap());
    let mut program = Program(program.stderr(Stdio::null()).spawn().unwrap());
    assert!(gate.is_up(&mut program.0), "it does not start");
    let whole = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&whole);
    gate.upstream().reply(Reply::play(move |_, stream| {
        thread::sleep(Duration::from_secs(1));
        stream.set_nonblocking(true).unwrap();
        // Neither closed nor reset.
        let is_open = stream
            .read(&mut [0; 1])
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).unwrap();
        let answer =
            b"HTTP/1.1 201 C\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        if is_open && stream.write_all(answer).is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
        true
    }));
    let sealed = gate.seal(&Call::payment().only(Protocol::Http1));
    leave(&gate, &sealed);
    let sealed = gate.seal(&Call::payment());
    let gives_up = crate::harness::exchange_within(&gate, &sealed, Duration::from_millis(300));
    assert!(gives_up.is_err());
    until("both ran to their end", || {
        whole.load(Ordering::Relaxed) == 2
    });
    let answered = || gate.metric("portvakt_upstream_responses_total", &["status=\"2xx\""]);
    until("both are counted", || answered() > 1.9);
    let logged = || {
        let text = fs::read_to_string(&log).unwrap();
        let lines = text.lines().flat_map(serde_json::from_str::<Value>);
        lines.filter(|line| line["upstream_status"] == 201).count()
    };
    until("both outcomes are logged", || logged() == 2);
    assert_eq!(gate.upstream().take().len(), 2);
}
