//! Clients that call all the time over HTTP/1.1 and HTTP/2, on connections that they keep. Any failed call fails the test.
//!
//! They behave as RFC 9112, section 9.6, and RFC 9113, section 6.8, tell them: after `Connection: close` or GOAWAY, the next request is
//! sent on a new connection. They repeat a request only if GOAWAY says that it was not processed. If it had been, the gateway would refuse
//! its X-Request-ID.

use crate::harness::{
    Answer, Call, Connection, Gate, LIMIT, Manner, Protocol, RAN_OUT, Sealed, Tls, World,
    connect_h2, converse, h2_connector, let_pass,
};
use portvakt::clock::{Clock, Stopwatch};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A gateway that stops ends connections that were idle for 2 s, as a client on a busy machine can be, also just when it sends a request.
const IDLE: Duration = Duration::from_secs(1);

/// The number of clients.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Connections of HTTP/1.1. Some pause between two requests.
    pub(crate) http1: u64,
    /// Connections of HTTP/2, and the concurrent requests on each.
    pub(crate) http2: usize,
    pub(crate) streams: usize,
}

/// Running clients.
pub(crate) struct Load {
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

#[derive(Clone)]
struct Client {
    address: SocketAddr,
    world: &'static World,
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Load {
    /// Starts the clients of a gate.
    pub(crate) fn start(gate: &Gate) -> Self {
        let size = Size {
            http1: 3,
            http2: 1,
            streams: 4,
        };
        Self::at(gate, gate.address(), size)
    }

    /// Starts clients that reach the gate at another address, such as that of a balancer.
    pub(crate) fn at(gate: &Gate, address: SocketAddr, size: Size) -> Self {
        // Reports the PSU of payments to the gate.
        gate.seal(&Call::payment());
        let client = Client {
            address,
            world: gate.world(),
            over: Arc::default(),
            answered: Arc::default(),
        };
        let mut clients = Vec::new();
        for number in 0..size.http1 {
            let client = client.clone();
            let pause = Duration::from_millis(number % 3 * 20);
            clients.push(thread::spawn(move || client.call_over_http1(pause)));
        }
        for _ in 0..size.http2 {
            let client = client.clone();
            clients.push(thread::spawn(move || client.call_over_http2(size.streams)));
        }
        Self {
            over: client.over,
            answered: client.answered,
            clients,
        }
    }

    /// The number of answers so far. A client that failed has said why, and the test ends at once.
    pub(crate) fn answered(&self) -> usize {
        assert!(!self.clients.iter().any(JoinHandle::is_finished));
        self.answered.load(Ordering::Relaxed)
    }

    /// Stops the clients, and returns the ids of all their requests, each of which was answered with 200.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        let clients = std::mem::take(&mut self.clients);
        let ids = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        ids.collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Client {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The next request: reads and payments in turn.
    fn seal(&self, number: usize) -> (String, Sealed) {
        let call = match number % 3 {
            0 => Call::payment(),
            _ => Call::plain(),
        };
        let sealed = call.seal(Clock::System.now());
        let id = sealed.request.header("x-request-id").unwrap().to_owned();
        (id, sealed)
    }

    fn note(&self, protocol: Protocol, answer: &Answer) {
        let said = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, 200, "{protocol:?}: {said}");
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    fn call_over_http1(&self, pause: Duration) -> Vec<String> {
        let connector = Tls::default().connector(self.world);
        let connect = || Connection::over(self.address, &connector).unwrap();
        let (mut connection, mut ids) = (connect(), Vec::new());
        let mut idle = Stopwatch::start();
        while !self.is_over() {
            let (id, sealed) = self.seal(ids.len());
            if !ids.is_empty() && connection.has_ended() {
                connection = connect();
            }
            let was_idle = idle.elapsed() > IDLE;
            let mut answer = connection.exchange(&sealed);
            if answer.is_err() && was_idle {
                // If the gateway had processed the request, it would refuse its X-Request-ID now.
                connection = connect();
                answer = connection.exchange(&sealed);
            }
            let answer =
                answer.unwrap_or_else(|fault| panic!("HTTP/1.1, request {}: {fault}", ids.len()));
            self.note(Protocol::Http1, &answer);
            idle = Stopwatch::start();
            ids.push(id);
            if answer.header("connection") == Some("close") {
                connection = connect();
            }
            let_pass(pause);
        }
        ids
    }

    fn call_over_http2(&self, streams: usize) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let tls = h2_connector(self.world);
            let (mut ids, mut running) = (Vec::new(), tokio::task::JoinSet::new());
            let mut unprocessed: Vec<(String, Sealed)> = Vec::new();
            let mut connection = connect_h2(self.address, tls.clone()).await.unwrap();
            while !self.is_over() || !running.is_empty() || !unprocessed.is_empty() {
                let may_call = !self.is_over() || !unprocessed.is_empty();
                if running.len() >= streams || !may_call {
                    let ended: (String, Sealed, Result<Answer, String>) =
                        running.join_next().await.unwrap().unwrap();
                    let (id, sealed, answer) = ended;
                    let answer = match answer {
                        Ok(answer) => answer,
                        // h2 ends a stream with the GOAWAY's NO_ERROR only if the stream is above its last one, or was never sent. A
                        // lost stream that the gateway took ends otherwise.
                        Err(fault) if fault.ends_with(": not a result of an error") => {
                            unprocessed.push((id, sealed));
                            continue;
                        }
                        Err(fault) => panic!("HTTP/2: {fault}"),
                    };
                    self.note(Protocol::Http2, &answer);
                    ids.push(id);
                    continue;
                }
                // After GOAWAY no stream can be opened.
                let ready = tokio::time::timeout(LIMIT, connection.0.clone().ready());
                let ready = ready.await;
                let sender = match ready.unwrap_or_else(|_| panic!("{RAN_OUT}: a free stream")) {
                    Ok(sender) => sender,
                    Err(_) => {
                        connection = connect_h2(self.address, tls.clone()).await.unwrap();
                        continue;
                    }
                };
                let next = unprocessed.pop();
                let (id, sealed) = next.unwrap_or_else(|| self.seal(ids.len() + running.len()));
                running.spawn(async move {
                    let answer = converse(sender, &sealed, Manner::default());
                    let answer = tokio::time::timeout(LIMIT, answer).await;
                    let answer = answer.unwrap_or_else(|_| Err(format!("{RAN_OUT}: an answer")));
                    (id, sealed, answer)
                });
                // Signing takes long: the connection must be read meanwhile.
                tokio::task::yield_now().await;
            }
            ids
        })
    }
}
