//! SIGTERM to the program: requests in flight finish, and nothing else delays the end.

use crate::harness::{
    Call, Connection, Gate, Manner, Program, Protocol, Reply, Sealed, exchange_as, render,
    render_head,
};
use portvakt::clock::Stopwatch;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::TcpStream,
    process::{Command, ExitStatus},
    thread,
    time::Duration,
};

/// The delay of the core.
const CORE: Duration = Duration::from_secs(6);

/// The maximum time until the program ends after that.
const END_WITHIN: Duration = Duration::from_secs(4);

/// A program during its stop.
struct Stopping {
    program: Program,
    since: Stopwatch,
}

impl Stopping {
    fn signal(&self, signal: &str) {
        let id = self.program.0.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }

    fn begin(program: std::process::Child) -> Self {
        let stopping = Self {
            program: Program(program),
            since: Stopwatch::start(),
        };
        stopping.signal("-TERM");
        stopping
    }

    /// The exit status, the duration, and the lines of the access log by request id.
    fn end(mut self) -> (ExitStatus, Duration, BTreeMap<String, Value>) {
        let mut stdout = self.program.0.stdout.take().unwrap();
        // The output is small enough for the pipe's buffer.
        let mut log = String::new();
        std::io::Read::read_to_string(&mut stdout, &mut log).unwrap();
        let status = self.program.0.wait().unwrap();
        let took = self.since.elapsed();
        let lines = log.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["request_id"].as_str().unwrap().to_owned(), line)
        });
        (status, took, lines.collect())
    }
}

fn request_id(sealed: &Sealed) -> String {
    sealed.request.header("x-request-id").unwrap().to_owned()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Stopwatch::start();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A payment of which the head and half of the body were sent.
fn half_sent(gate: &Gate) -> (Connection, Sealed, Vec<u8>) {
    let sealed = gate.seal(&Call::payment());
    let head = render_head(&sealed).len();
    let mut bytes = render(&sealed);
    let rest = bytes.split_off(head + 10);
    let mut connection = Connection::open(gate);
    connection.send(&bytes).unwrap();
    (connection, sealed, rest)
}

//= FWD-4 accepted
#[test]
fn sigterm_lets_requests_under_way_finish() {
    let (gate, program) = Gate::builder()
        .listener("min_body_rate: off")
        .start_program();
    let plain = || gate.seal(&Call::plain());
    // An idle connection between two requests, and one without any request.
    let mut idle = [Connection::open(&gate), Connection::open(&gate)];
    let answered = plain();
    assert_eq!(idle[0].exchange(&answered).unwrap().status, 200);
    gate.upstream().take();
    gate.upstream()
        .reply(Reply::json(200, r#"{"whole":true}"#).after(CORE));
    let many: Vec<_> = (0..24).map(|_| plain()).collect();
    let slow_body = gate.seal(&Call::payment());
    let (mut half, sealed_half, rest) = half_sent(&gate);
    // An incomplete head.
    let part = plain();
    let bytes = render(&part);
    let mut heard = Connection::open(&gate);
    heard.send(&bytes[..100]).unwrap();

    thread::scope(|scope| {
        let gate = &gate;
        let mut answers = Vec::new();
        for (number, sealed) in many.iter().enumerate() {
            let protocol = Protocol::ALL[number % 2];
            answers.push(scope.spawn(move || gate.send_sealed(sealed, protocol)));
        }
        let manner = Manner {
            pause: Duration::from_secs(3),
            ..Manner::default()
        };
        let slow = &slow_body;
        answers.push(scope.spawn(move || exchange_as(gate, slow, manner)));
        let mut seen = 0;
        until("requests at the core", || {
            seen += gate.upstream().take().len();
            seen >= many.len()
        });
        thread::sleep(Duration::from_secs(1));
        let stopping = Stopping::begin(program);

        heard.send(&bytes[100..]).unwrap();
        for idle in &mut idle {
            assert_eq!(idle.rest(), b"");
        }
        assert!(stopping.since.elapsed() < Duration::from_secs(2));
        thread::sleep(Duration::from_secs(2));
        half.send(&rest).unwrap();
        assert!(TcpStream::connect(gate.address()).is_err());
        assert_eq!(gate.control("/livez").status, 200);
        let ready = gate.control("/readyz");
        assert_eq!(ready.status, 503);
        assert_eq!(ready.json()["notWell"][0], "the gateway is stopping");
        thread::sleep(Duration::from_secs(2));
        assert_eq!(gate.control("/livez").status, 200);

        for answer in answers {
            let answer = answer.join().unwrap().unwrap();
            assert_eq!(
                (answer.status, answer.json()["whole"].clone()),
                (200, true.into())
            );
        }
        for connection in [&mut half, &mut heard] {
            let answer = connection.answer("POST").unwrap();
            assert_eq!(
                (answer.status, answer.json()["whole"].clone()),
                (200, true.into())
            );
            assert_eq!(answer.header("connection"), Some("close"));
            assert_eq!(connection.rest(), b"");
        }
        let (status, took, lines) = stopping.end();
        assert!(status.success(), "{status}");
        // The last request also took the core's full delay.
        assert!(
            took < CORE + Duration::from_secs(2) + END_WITHIN,
            "{took:?}"
        );
        assert_eq!(lines.len(), many.len() + 4);
        let more = [&slow_body, &sealed_half, &part, &answered];
        for sealed in many.iter().chain(more) {
            let line = &lines[&request_id(sealed)];
            assert_eq!(
                (&line["outcome"], &line["status"]),
                (&"forwarded".into(), &200.into())
            );
        }
    });
}

/// An answer to a slow reader may take as long as `answer_timeout` allows.
//= FWD-4 accepted
//= HTTP-9 accepted
#[test]
fn sigterm_lets_a_slow_answer_finish() {
    // All other time-outs end before 11 s.
    let (gate, program) = Gate::builder()
        .listener("body_timeout: 200ms\n  answer_timeout: 60s")
        .upstream("connect_timeout: 200ms")
        .upstream("read_timeout: 500ms")
        .upstream("max_answer_size: 64MiB")
        .start_program();
    // More than the buffers between the two sides.
    let big = format!("\"{}\"", "x".repeat(40 << 20));
    gate.upstream().reply(Reply::json(200, &big));
    let sealed = gate.seal(&Call::plain());
    let mut slow = Connection::open(&gate);
    slow.send(&render(&sealed)).unwrap();
    let mut taken = slow.exactly(1024).unwrap();
    let stopping = Stopping::begin(program);
    while stopping.since.elapsed() < Duration::from_secs(13) {
        taken.extend(slow.exactly(16 * 1024).unwrap());
        thread::sleep(Duration::from_millis(20));
    }
    taken.extend(slow.rest());
    assert!(taken.starts_with(b"HTTP/1.1 200"));
    assert!(taken.ends_with(big.as_bytes()), "{} bytes", taken.len());
    let (status, took, lines) = stopping.end();
    assert!(status.success(), "{status}");
    println!("it ended {took:?} after SIGTERM");
    let line = &lines[&request_id(&sealed)];
    assert_eq!(
        (&line["outcome"], &line["status"]),
        (&"forwarded".into(), &200.into())
    );
}

#[test]
fn nothing_under_way_ends_it_at_once() {
    let (gate, program) = Gate::builder().start_program();
    let mut idle = Connection::open(&gate);
    let sealed = gate.seal(&Call::plain());
    assert_eq!(idle.exchange(&sealed).unwrap().status, 200);
    let (status, took, lines) = Stopping::begin(program).end();
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(lines.len(), 1);
}

#[test]
fn a_second_signal_cuts_what_is_under_way_and_says_so() {
    for second in ["-TERM", "-INT"] {
        let (gate, program) = Gate::builder().start_program();
        gate.upstream().reply(Reply::Silence);
        let sealed = gate.seal(&Call::plain());
        thread::scope(|scope| {
            let answers = Protocol::ALL.map(|protocol| {
                let (gate, sealed) = (&gate, gate.seal(&Call::plain()));
                let id = request_id(&sealed);
                (id, scope.spawn(move || gate.send_sealed(&sealed, protocol)))
            });
            let mut connection = Connection::open(&gate);
            connection.send(&render(&sealed)).unwrap();
            let mut seen = 0;
            until("requests at the core", || {
                seen += gate.upstream().take().len();
                seen == 3
            });
            let stopping = Stopping::begin(program);
            thread::sleep(Duration::from_millis(500));
            stopping.signal(second);
            let (status, took, lines) = stopping.end();
            assert!(status.success(), "{status}");
            assert!(took < END_WITHIN, "{took:?}");
            assert_eq!(lines.len(), 3);
            for (id, answer) in answers {
                assert!(answer.join().unwrap().is_err());
                assert_eq!(lines[&id]["outcome"], "abandoned");
            }
        });
    }
}
