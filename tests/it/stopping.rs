//! Signals to the program: requests in flight finish, nothing else delays the end, and no other signal ends the process.

/// Upper bounds on times: `make bounds`.
mod bounds;

use crate::harness::{
    Call, Connection, Frames, Gate, Latch, Manner, Program, Protocol, Reply, Sealed, block, ended,
    eventually, exchange_as, field, let_pass, render, render_head,
};
use portvakt::clock::Stopwatch;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::TcpStream,
    process::{ExitStatus, Stdio},
    thread,
    time::Duration,
};

/// No time-out of the core ends a request before its test ends, nor does the longest time to finish it.
const PATIENT: &str = "read_timeout: 300s";

/// The core holds back its answers to later requests.
fn hold(gate: &Gate, body: &str) -> Latch {
    let (reply, latch) = Reply::json(200, body).held();
    gate.upstream().reply(reply);
    latch
}

/// Waits until nobody listens at the public address: the program lets requests finish, and no step before that is left.
fn finishes(gate: &Gate) {
    eventually("the public listener closes", || {
        TcpStream::connect(gate.address()).is_err()
    });
}

/// A program during its stop.
struct Stopping {
    program: Program,
    since: Stopwatch,
}

impl Stopping {
    fn signal(&self, signal: &str) {
        self.program.signal(signal);
    }

    fn begin(program: std::process::Child) -> Self {
        Self::by("-TERM", program)
    }

    fn by(signal: &str, program: std::process::Child) -> Self {
        let stopping = Self {
            program: Program(program),
            since: Stopwatch::start(),
        };
        stopping.signal(signal);
        stopping
    }

    /// The exit status, the duration, and the lines of the access log by request id.
    fn end(mut self) -> (ExitStatus, Duration, BTreeMap<String, Value>) {
        // The output is small enough for the pipe's buffer.
        let status = ended(&mut self.program.0);
        let mut stdout = self.program.0.stdout.take().unwrap();
        let mut log = String::new();
        std::io::Read::read_to_string(&mut stdout, &mut log).unwrap();
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
        .listener("min_body_rate: off\n  body_timeout: 60s\n  head_timeout: 60s")
        .upstream(PATIENT)
        .start_program();
    let plain = || gate.seal(&Call::plain());
    // An idle connection between two requests, and one without any request.
    let mut idle = [Connection::open(&gate), Connection::open(&gate)];
    let answered = plain();
    assert_eq!(idle[0].exchange(&answered).unwrap().status, 200);
    gate.upstream().take();
    let latch = hold(&gate, r#"{"whole":true}"#);
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
        latch.arrived(many.len());
        // Those, and the two of which a part of the body has not come.
        let heads = (many.len() + 2) as f64;
        gate.eventually_metric_is(
            "portvakt_requests_in_flight",
            &[],
            "has every head",
            |count| count >= heads,
        );
        let stopping = Stopping::begin(program);

        heard.send(&bytes[100..]).unwrap();
        for idle in &mut idle {
            assert_eq!(idle.rest(), b"");
        }
        // The idle connections have ended, and those with a part of a request go on.
        half.send(&rest).unwrap();
        finishes(gate);
        assert_eq!(gate.control("/livez").status, 200);
        let ready = gate.control("/readyz");
        assert_eq!(ready.status, 503);
        assert_eq!(ready.json()["notWell"][0], "the gateway is stopping");
        // Those, and the request with half a body, an incomplete head and a slow body.
        latch.arrived(many.len() + 3);
        assert_eq!(gate.control("/livez").status, 200);
        latch.release();

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
        let (status, _, lines) = stopping.end();
        assert!(status.success(), "{status}");
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
    // All other time-outs end before 14 s, but that of a blocked write, which starts again with each write.
    let (gate, program) = Gate::builder()
        .listener("body_timeout: 1s\n  answer_timeout: 300s\n  write_timeout: 60s")
        .upstream("connect_timeout: 1s")
        .upstream("read_timeout: 2s")
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
    while stopping.since.elapsed() < Duration::from_secs(15) {
        taken.extend(slow.exactly(16 * 1024).unwrap());
        // This caller is slow on purpose.
        let_pass(Duration::from_millis(20));
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

/// The longest time to finish is three minutes, and this is not waited for.
#[test]
fn nothing_under_way_ends_it() {
    idle_until_the_end();
}

/// Stops a program with an idle connection, and returns how long its end took.
fn idle_until_the_end() -> Duration {
    let (gate, program) = Gate::builder().start_program();
    let mut idle = Connection::open(&gate);
    let sealed = gate.seal(&Call::plain());
    assert_eq!(idle.exchange(&sealed).unwrap().status, 200);
    let (status, took, lines) = Stopping::begin(program).end();
    assert!(status.success(), "{status}");
    assert_eq!(lines.len(), 1);
    took
}

#[test]
fn a_second_signal_cuts_what_is_under_way_and_says_so() {
    for second in ["-TERM", "-INT"] {
        let (gate, program) = Gate::builder().upstream(PATIENT).start_program();
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
            eventually("requests at the core", || {
                seen += gate.upstream().take().len();
                seen == 3
            });
            let stopping = Stopping::begin(program);
            finishes(&gate);
            stopping.signal(second);
            let (status, _, lines) = stopping.end();
            assert!(status.success(), "{status}");
            assert_eq!(lines.len(), 3);
            for (id, answer) in answers {
                assert!(answer.join().unwrap().is_err());
                let line = &lines[&id];
                assert_eq!(line["outcome"], "cut");
                assert_eq!(line["operator"], "the process ended");
                assert_eq!(line["fault"], "gateway");
            }
        });
    }
}

/// A balancer needs time to notice /readyz: until then, requests on new and on open connections are served as ever.
//= FWD-4 accepted
#[test]
fn a_lame_duck_still_serves() {
    for signal in ["-TERM", "-QUIT"] {
        let (gate, program) = Gate::builder()
            .line("shutdown: {lame_duck: 600s}")
            .upstream(PATIENT)
            .start_program();
        let plain = || gate.seal(&Call::plain());
        let mut idle = Connection::open(&gate);
        let first = plain();
        assert_eq!(idle.exchange(&first).unwrap().status, 200);
        assert_eq!(gate.control("/readyz").status, 200);
        let stopping = Stopping::by(signal, program);
        eventually("not ready", || gate.control("/readyz").status == 503);
        assert_eq!(
            gate.control("/readyz").json()["notWell"][0],
            "the gateway is stopping"
        );
        let local = gate.control("/readyz?local=1");
        assert_eq!(local.status, 503);
        assert_eq!(local.json()["local"]["notWell"], local.json()["notWell"]);
        gate.eventually_metric("portvakt_not_ready", &["cause=\"stopping\""], 1.0);
        let sealed = [plain(), plain(), plain()];
        let answers = [
            idle.exchange(&sealed[0]).unwrap(),
            gate.send_sealed(&sealed[1], Protocol::Http1).unwrap(),
            gate.send_sealed(&sealed[2], Protocol::Http2).unwrap(),
        ];
        for answer in answers {
            assert_eq!(answer.status, 200);
            assert_ne!(answer.header("connection"), Some("close"));
        }
        // A further signal ends this step only: the pending request is answered.
        let latch = hold(&gate, "{}");
        let pending = plain();
        let mut connection = Connection::open(&gate);
        connection.send(&render(&pending)).unwrap();
        latch.arrived(1);
        stopping.signal("-TERM");
        finishes(&gate);
        latch.release();
        let answer = connection.answer("GET").unwrap();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (200, Some("close"))
        );
        let (status, _, lines) = stopping.end();
        assert!(status.success(), "{status}");
        assert_eq!(lines.len(), 5);
        assert!(lines.values().all(|line| line["outcome"] == "forwarded"));
    }
}

/// Ctrl-C in a terminal: no balancer is waited for, and requests finish.
//= FWD-4 accepted
#[test]
fn sigint_waits_for_requests_and_not_for_balancers() {
    let (gate, program) = Gate::builder()
        .line("shutdown: {lame_duck: 600s}")
        .upstream(PATIENT)
        .start_program();
    let latch = hold(&gate, "{}");
    let sealed = gate.seal(&Call::plain());
    let mut pending = Connection::open(&gate);
    pending.send(&render(&sealed)).unwrap();
    latch.arrived(1);
    let mut idle = Frames::open(&gate);
    let stopping = Stopping::by("-INT", program);
    // NO_ERROR: the client learns that none of its requests is lost.
    assert_eq!(idle.goaway(), Some(0));
    latch.release();
    assert_eq!(pending.answer("GET").unwrap().status, 200);
    drop(idle);
    let (status, _, lines) = stopping.end();
    assert!(status.success(), "{status}");
    assert_eq!(lines[&request_id(&sealed)]["outcome"], "forwarded");
}

/// RFC 9113, section 6.8: a request on a stream up to the last one that GOAWAY names is answered, and no GOAWAY names a later stream
/// afterwards, also where a second signal cuts the connection. So a client knows which requests to repeat.
//= FWD-4 accepted
#[test]
fn goaway_names_the_last_stream_that_is_answered() {
    for is_cut in [false, true] {
        let (gate, program) = Gate::builder()
            .line("shutdown: {lame_duck: 0s}")
            .upstream(PATIENT)
            .start_program();
        let at_first = hold(&gate, "{}");
        let [first, second, third] = [(); 3].map(|()| gate.seal(&Call::plain()));
        let mut frames = Frames::open(&gate);
        let send = |frames: &mut Frames, stream: u32, sealed: &Sealed| {
            let head = block(sealed, &field(":path", sealed.request.target.as_bytes()));
            frames.send(1, 5, stream, &head).unwrap();
        };
        send(&mut frames, 1, &first);
        at_first.arrived(1);
        let at_second = hold(&gate, "{}");
        let stopping = Stopping::begin(program);
        let (mut named, mut answered) = (Vec::new(), Vec::new());
        while let Ok(frame) = frames.next() {
            match frame.kind {
                1 => {
                    answered.push((frame.stream, frame.status()));
                    match is_cut {
                        true => stopping.signal("-TERM"),
                        false => at_first.release(),
                    }
                }
                7 => {
                    assert_eq!(frame.code(), Some(0));
                    let stream: [u8; 4] = frame.payload[..4].try_into().unwrap();
                    named.push(u32::from_be_bytes(stream));
                    match named.len() {
                        // A request that was on its way is taken.
                        1 => send(&mut frames, 3, &second),
                        // This one is late.
                        2 => {
                            send(&mut frames, 5, &third);
                            at_second.arrived(1);
                            at_second.release();
                        }
                        _ => {}
                    }
                }
                // The answer to PING tells that the client has seen the first GOAWAY.
                6 => frames.send(6, 1, 0, &frame.payload).unwrap(),
                _ => {}
            }
        }
        assert_eq!(named[..2], [0x7fff_ffff, 3], "{named:?}");
        assert!(named[2..].iter().all(|last| *last == 3), "{named:?}");
        let expected = [(3, Some(200)), (1, Some(200))];
        assert_eq!(answered, expected[..if is_cut { 1 } else { 2 }]);
        let (status, _, lines) = stopping.end();
        assert!(status.success(), "{status}");
        assert_eq!(lines.len(), 2);
        assert!(!lines.contains_key(&request_id(&third)));
    }
}

/// Every signal of kill(1) that does not stop the process or ask for an upgrade, but those of a fault in the program itself.
const WITHOUT_END: [&str; 17] = [
    "-HUP", "-USR1", "-PIPE", "-ALRM", "-VTALRM", "-PROF", "-IO", "-PWR", "-STKFLT", "-XCPU",
    "-XFSZ", "-CHLD", "-CONT", "-URG", "-WINCH", "-34", "-64",
];

/// A deployment tool may send signals to a process that has just been started.
#[test]
fn no_other_signal_ends_it() {
    let gate = Gate::builder().for_program();
    for _ in 0..5 {
        let mut program = gate.program();
        let program = program.stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = Program(program.spawn().unwrap());
        let id = program.0.id();
        // The handlers stand before the configuration is read: mostly these signals come long before the gateway listens.
        eventually("handlers", || catches_hangup(id));
        for signal in WITHOUT_END {
            program.signal(signal);
        }
        assert!(gate.is_up(&mut program.0), "a signal ended it");
        for signal in WITHOUT_END {
            program.signal(signal);
        }
        assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, 200);
        assert!(program.0.try_wait().unwrap().is_none());
        // SIGHUP was kept: the configuration is read once more.
        gate.eventually_metric_is("portvakt_reloads_total", &["taken"], "is there", |count| {
            count > 0.5
        });
    }
}

/// Whether a process has a handler for SIGHUP, signal 1 (proc_pid_status(5)).
fn catches_hangup(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 == 1)
}
