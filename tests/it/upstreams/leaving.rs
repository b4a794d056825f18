//! Callers who leave: FWD-4.

use crate::harness::{
    Call, Connection, Frames, Gate, LIMIT, Program, Protocol, RAN_OUT, Reply, Sealed, block,
    eventually, field, let_pass, render,
};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    time::Duration,
};

/// Sends a request, and leaves once the core has it.
fn leave(gate: &Gate, sealed: &Sealed, protocol: Protocol, is_at_core: impl FnMut() -> bool) {
    if protocol == Protocol::Http1 {
        let mut connection = Connection::open(gate);
        connection.send(&render(sealed)).unwrap();
        eventually("the request at the core", is_at_core);
        return;
    }
    let mut frames = Frames::open(gate);
    let mut head = block(sealed, &field(":path", sealed.request.target.as_bytes()));
    match &sealed.request.body {
        None => frames.send(1, 0x5, 1, &head).unwrap(),
        Some(body) => {
            head.extend(field("content-length", body.len().to_string().as_bytes()));
            frames.send(1, 0x4, 1, &head).unwrap();
            frames.send(0, 0x1, 1, body).unwrap();
        }
    }
    eventually("the request at the core", is_at_core);
}

/// Whether the gateway closes the connection.
fn is_left(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
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
        // No time-out of the gateway ends the request before the test gives up.
        let gate = Gate::builder().upstream("read_timeout: 300s").start();
        let left = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&left);
        gate.upstream().reply(Reply::play(move |_, stream| {
            stream.write_all(head.as_bytes()).unwrap();
            if is_left(stream) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            false
        }));
        for (number, protocol) in Protocol::ALL.into_iter().enumerate() {
            let sealed = gate.seal(&Call::accounts());
            leave(&gate, &sealed, protocol, || {
                !gate.upstream().take().is_empty()
            });
            eventually(&format!("the core is left over {protocol:?}"), || {
                left.load(Ordering::Relaxed) == number + 1
            });
        }
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
    let (go_on, told) = channel();
    let told = Mutex::new(told);
    let come = Arc::new(AtomicUsize::new(0));
    let coming = Arc::clone(&come);
    gate.upstream().reply(Reply::play(move |_, stream| {
        coming.fetch_add(1, Ordering::Relaxed);
        if told.lock().unwrap().recv_timeout(LIMIT).is_err() {
            panic!("{RAN_OUT}: the core goes on");
        }
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
    for (number, protocol) in (1..).zip(Protocol::ALL) {
        let sealed = gate.seal(&Call::payment());
        leave(&gate, &sealed, protocol, || {
            come.load(Ordering::Relaxed) == number
        });
        // A request that ended with its caller would do so within this time: nothing else would show it.
        let_pass(Duration::from_secs(1));
        go_on.send(()).unwrap();
        eventually(&format!("it runs to its end: {protocol:?}"), || {
            whole.load(Ordering::Relaxed) == number
        });
    }
    gate.eventually_metric(
        "portvakt_upstream_responses_total",
        &["status=\"2xx\""],
        2.0,
    );
    let logged = || {
        let text = fs::read_to_string(&log).unwrap();
        let lines = text.lines().flat_map(serde_json::from_str::<Value>);
        lines.filter(|line| line["upstream_status"] == 201).count()
    };
    eventually("both outcomes are logged", || logged() == 2);
    assert_eq!(gate.upstream().take().len(), 2);
}
