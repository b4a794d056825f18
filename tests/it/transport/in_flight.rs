//! The limits on requests in flight to the core, and on file descriptors of the process: ERR-4, HTTP-9.

use crate::harness::{Call, Frames, Gate, Protocol, Reply, block, check_error, string};
use portvakt::clock::Stopwatch;
use std::{
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// The delay of the core.
const THINKS: Duration = Duration::from_millis(1_500);

fn busy(limits: &str) -> Gate {
    let gate = Gate::builder().upstream(limits).start();
    gate.upstream().reply(Reply::json(200, "{}").after(THINKS));
    gate
}

//= ERR-4 refused
#[test]
fn a_core_that_has_enough_gets_no_more() {
    for limits in ["max_in_flight_per_tpp: 2", "max_in_flight: 2"] {
        let gate = busy(limits);
        let third = gate.seal(&Call::payment());
        thread::scope(|scope| {
            let first: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| gate.send(&Call::payment(), Protocol::Http1).status))
                .collect();
            while gate.metric("portvakt_upstream_in_flight", &[]) < 2.0 {
                thread::sleep(Duration::from_millis(5));
            }
            let answer = gate.send_sealed(&third, Protocol::Http2).unwrap();
            check_error(limits, &answer, 503, "SYSTEM_ERROR", "overloaded");
            assert_eq!(answer.header("retry-after"), Some("1"));
            for first in first {
                assert_eq!(first.join().unwrap(), 200);
            }
        });
        assert_eq!(gate.upstream().take().len(), 2, "{limits}");
        // A request counts until its connection returns to the pool, a moment after the caller gets the answer.
        let in_flight = || gate.metric("portvakt_upstream_in_flight", &[]);
        for _ in 0..200 {
            if in_flight() == 0.0 {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(in_flight(), 0.0);
        // The request id was not used: the same request passes once there is room.
        let again = gate.send_sealed(&third, Protocol::Http1).unwrap();
        assert_eq!(again.status, 200, "{}", again.reason());
    }
}

/// A payment whose caller resets the stream still counts: the core is still working on it.
//= ERR-4 refused
#[test]
fn a_request_that_is_reset_counts() {
    let gate = busy("max_in_flight_per_tpp: 3");
    let mut frames = Frames::open(&gate);
    for request in 0..8 {
        let stream = 2 * request + 1;
        let sealed = gate.seal(&Call::payment());
        let body = sealed.request.body.clone().unwrap();
        let mut head = block(
            &sealed,
            &[&[0x04][..], &string(sealed.request.target.as_bytes())].concat(),
        );
        head.extend(crate::harness::field(
            "content-length",
            body.len().to_string().as_bytes(),
        ));
        frames.send(1, 0x4, stream, &head).unwrap();
        frames.send(0, 0x1, stream, &body).unwrap();
        thread::sleep(Duration::from_millis(60));
        let _ = frames.send(3, 0, stream, &[0, 0, 0, 8]);
    }
    thread::sleep(THINKS);
    assert_eq!(gate.upstream().take().len(), 3);
}

/// A probe is answered at once, even while other clients hold idle connections to the control listener.
//= ERR-4 accepted
#[test]
fn probes_do_not_wait_for_silent_callers() {
    let gate = Gate::start();
    let half: [&[u8]; 3] = [
        b"",
        b"GET /readyz HTTP/1.1\r\nHost: ",
        b"POST /psu/read HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ];
    for sent in half {
        let connect = || {
            let mut stream = TcpStream::connect(gate.control_address()).unwrap();
            stream.write_all(sent).unwrap();
            stream
        };
        let count = if sent.is_empty() { 2_000 } else { 300 };
        let mut silent: Vec<_> = (0..count).map(|_| connect()).collect();
        let mut took = Vec::new();
        for _ in 0..5 {
            let watch = Stopwatch::start();
            assert_eq!(gate.control("/readyz").status, 200);
            took.push(watch.elapsed());
            silent.push(connect());
        }
        took.sort();
        println!("probes beside {count} connections took {took:?}");
        // On a loaded machine, a probe may be delayed.
        let (median, longest) = (took[2], took[4]);
        assert!(median < Duration::from_millis(100), "{took:?}");
        assert!(longest < Duration::from_secs(1), "{took:?}");
        if !sent.starts_with(b"POST") {
            // The oldest connection was closed.
            let mut first = silent.remove(0);
            let patience = Some(Duration::from_secs(5));
            first.set_read_timeout(patience).unwrap();
            assert!(matches!(first.read(&mut [0]), Ok(0) | Err(_)));
        }
    }
}

/// A process with too low a descriptor limit does not start, and reports the required number.
//= ERR-4 refused
#[test]
fn too_few_descriptors() {
    let gate = Gate::builder()
        .listener("max_connections: 1000")
        .for_program();
    let start = |limit: u32| {
        let program = gate.program();
        let arguments: Vec<_> = program.get_args().collect();
        Command::new("sh")
            .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")])
            .arg(program.get_program())
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let refused = start(1_500).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(
        text.contains("1832 file descriptors are needed") && text.contains("may have 1500"),
        "{text}"
    );
    let mut started = crate::harness::Program(start(1_900));
    assert!(gate.is_up(&mut started.0));
}
