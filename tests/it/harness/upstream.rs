//! The upstream: a separate HTTP/1.1 server that records every connection, request and byte, and returns configured answers.

use super::{
    waiting::{LIMIT, eventually, eventually_is, let_pass},
    wire::{Wire, find, in_text},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use portvakt_sandbox::http1::Head;
use sha2::{Digest, Sha256, Sha512};
use socket2::SockRef;
use std::{
    fmt,
    fs::File,
    io::{self, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, LazyLock, Mutex},
    thread,
    time::Duration,
};

/// A request as the upstream received it.
#[derive(Clone)]
pub(crate) struct Seen {
    /// The method.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The headers in order.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// Whether the body is complete.
    pub(crate) whole: bool,
}

/// Prints no header values: a certificate is too long.
impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {:?} and {} bytes",
            self.method,
            self.target,
            self.names(),
            self.body.len()
        )
    }
}

impl Seen {
    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// PAY-15: compares Digest, which the signature covers, with the received bytes by an implementation other than the gateway's.
    /// Skips incomplete requests, requests without Digest, and those that the gateway says have another body (FWD-6).
    fn has_the_body_of_its_digest(&self) -> bool {
        let Some(digest) = self.header("digest").filter(|_| self.whole) else {
            return true;
        };
        let observed = self.header("gateway-observed").unwrap_or_default();
        if observed.contains("digest-mismatch") {
            return true;
        }
        let hashes = [
            (
                "sha-256",
                BASE64_STANDARD.encode(Sha256::digest(&self.body)),
            ),
            (
                "sha-512",
                BASE64_STANDARD.encode(Sha512::digest(&self.body)),
            ),
        ];
        let mut digests = digest
            .split(',')
            .filter_map(|one| one.trim().split_once('='));
        digests.any(|(name, hash)| {
            let mut hashes = hashes.iter();
            hashes.any(|(known, right)| name.eq_ignore_ascii_case(known) && hash == right)
        })
    }

    /// Appends the request to the file that PORTVAKT_ADMITTED names, if any: the test, and in Base64 target, public authority (FWD-2),
    /// body and Content-Type.
    fn keep(&self, test: &str) {
        let Some(file) = &*ADMITTED else { return };
        let forwarded = self.header("forwarded").unwrap_or_default();
        let host = forwarded.split(";host=").nth(1);
        let host = host.and_then(|host| host.split(";proto").next());
        let host = host.unwrap_or_default().trim_matches('"');
        let content_type = self.header("content-type").unwrap_or_default();
        let parts = [
            self.target.as_bytes(),
            host.as_bytes(),
            &self.body,
            content_type.as_bytes(),
        ];
        let line = parts.map(|part| BASE64_STANDARD.encode(part)).join("\t");
        writeln!(file.lock().unwrap(), "{test}\t{line}").unwrap();
    }

    /// The names of all headers, in lower case.
    pub(crate) fn names(&self) -> Vec<String> {
        self.headers
            .iter()
            .map(|(name, _)| name.to_ascii_lowercase())
            .collect()
    }
}

/// The file of admitted requests, for systems::oracle.
static ADMITTED: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
    let path = std::env::var_os("PORTVAKT_ADMITTED")?;
    let file = File::options().create(true).append(true).open(path);
    Some(Mutex::new(file.unwrap()))
});

/// The answer of the upstream.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Status, headers and a body with Content-Length.
    Answer(u16, Vec<(String, String)>, Vec<u8>),
    /// Closes the connection without an answer.
    Close,
    /// Sends nothing until the upstream stops.
    Silence,
    /// Sends these bytes and closes the connection.
    Raw(Vec<u8>),
    /// An answer that depends on the request.
    Suited(fn(&Seen) -> Reply),
    /// The same after a delay.
    Late(Duration, Box<Reply>),
    /// The same once the latch is released.
    Held(Arc<Barrier>, Box<Reply>),
    /// Arbitrary behaviour on the connection.
    Played(Play),
}

type Acted = dyn Fn(&Seen, &mut TcpStream) -> bool + Send + Sync;

/// A test's own core: it gets the connection, and returns whether the connection continues.
#[derive(Clone)]
pub(crate) struct Play(Arc<Acted>);

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Play")
    }
}

impl Reply {
    /// A JSON answer.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::Answer(
            status,
            vec![("Content-Type".into(), "application/json".into())],
            body.into(),
        )
    }

    /// The same answer after a delay.
    pub(crate) fn after(self, time: Duration) -> Self {
        Self::Late(time, Box::new(self))
    }

    /// The same answer, but the core holds it back until the test releases the latch.
    pub(crate) fn held(self) -> (Self, Latch) {
        let barrier = Arc::new(Barrier::default());
        (
            Self::Held(Arc::clone(&barrier), Box::new(self)),
            Latch(barrier),
        )
    }

    /// Arbitrary behaviour; the function returns false if the connection ends.
    pub(crate) fn play(
        act: impl Fn(&Seen, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::Played(Play(Arc::new(act)))
    }

    /// The same answer with an additional header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer(_, headers, _) = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }
}

/// What a core that holds its answers back shares with its test.
#[derive(Default)]
pub(crate) struct Barrier {
    state: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    /// The requests that have reached the core.
    arrived: usize,
    /// Whether the core may send its answers.
    released: bool,
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Barrier")
    }
}

impl Barrier {
    /// Holds one answer back until it is released; false if that does not happen in time.
    fn pass(&self) -> bool {
        let mut held = self.state.lock().unwrap();
        held.arrived += 1;
        self.changed.notify_all();
        let (_held, timeout) = self
            .changed
            .wait_timeout_while(held, 2 * LIMIT, |held| !held.released)
            .unwrap();
        !timeout.timed_out()
    }
}

/// Answers that a core holds back. Dropping the latch releases them all.
pub(crate) struct Latch(Arc<Barrier>);

impl Latch {
    /// Waits until this many requests have reached the core since the latch was made.
    #[track_caller]
    pub(crate) fn arrived(&self, count: usize) {
        let arrived = || self.0.state.lock().unwrap().arrived;
        eventually(&format!("{count} requests reach the core"), || {
            let arrived = arrived();
            (arrived >= count).then_some(()).ok_or(arrived)
        });
    }

    /// The requests that have reached the core.
    pub(crate) fn count(&self) -> usize {
        self.0.state.lock().unwrap().arrived
    }

    /// Releases the answers, also later ones.
    pub(crate) fn release(&self) {
        self.0.state.lock().unwrap().released = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        self.release();
    }
}

/// The running server. It stops when it is dropped.
pub(crate) struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// The name of the thread that started it, which libtest gives to the test.
    test: String,
    state: Mutex<State>,
    stopped: Condvar,
}

struct State {
    reply: Reply,
    greeting: Vec<u8>,
    stop: bool,
    /// By number, so that ended connections can be removed.
    open: Vec<(usize, TcpStream)>,
    connections: usize,
    seen: Vec<Seen>,
}

impl Upstream {
    /// Starts an upstream that answers `200 {}` to everything.
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    /// The same at an address.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let listener = listen(address).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            reply: Reply::json(200, "{}"),
            greeting: Vec::new(),
            stop: false,
            open: Vec::new(),
            connections: 0,
            seen: Vec::new(),
        };
        let shared = Arc::new(Shared {
            test: thread::current().name().unwrap_or_default().to_owned(),
            state: Mutex::new(state),
            stopped: Condvar::new(),
        });
        let upstream = Self { address, shared };
        upstream.accept_on(listener);
        upstream
    }

    fn accept_on(&self, listener: TcpListener) {
        let accepting = Arc::clone(&self.shared);
        thread::spawn(move || accept(&listener, &accepting));
    }

    /// Is unavailable while `meanwhile` runs, then listens at the same address again.
    pub(crate) fn away(&self, meanwhile: impl FnOnce()) {
        self.stop();
        meanwhile();
        // A child that another thread starts has a copy of the former socket until it executes its program.
        let listener = eventually("the address is free", || listen(self.address));
        self.shared.state.lock().unwrap().stop = false;
        self.accept_on(listener);
    }

    /// The listening address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer of all later requests.
    pub(crate) fn reply(&self, reply: Reply) {
        self.shared.state.lock().unwrap().reply = reply;
    }

    /// Sets the bytes that are sent on each new connection before any request.
    pub(crate) fn greet(&self, greeting: &[u8]) {
        self.shared.state.lock().unwrap().greeting = greeting.into();
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.state.lock().unwrap().connections
    }

    /// The requests since the last call of this function. Checks in every test that each has the signed body.
    pub(crate) fn take(&self) -> Vec<Seen> {
        let seen = std::mem::take(&mut self.shared.state.lock().unwrap().seen);
        for seen in &seen {
            assert!(seen.has_the_body_of_its_digest(), "PAY-15: {seen:?}");
        }
        seen
    }

    /// Whether no connection was opened so far.
    pub(crate) fn saw_nothing(&self) -> bool {
        let state = self.shared.state.lock().unwrap();
        state.connections == 0 && state.seen.is_empty()
    }

    /// Waits until every connection has ended, with all that was sent on it recorded.
    #[track_caller]
    pub(crate) fn eventually_idle(&self) {
        let open = || self.shared.state.lock().unwrap().open.len();
        eventually_is("the number of the core's connections", 0, open);
    }

    /// Closes the port and every connection.
    pub(crate) fn stop(&self) {
        let open = {
            let mut state = self.shared.state.lock().unwrap();
            state.stop = true;
            std::mem::take(&mut state.open)
        };
        self.shared.stopped.notify_all();
        for (_, connection) in open {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // The accepting thread checks `stop` only after a connection.
        let _ = TcpStream::connect(self.address);
        eventually("the core's port is closed", || {
            TcpStream::connect(self.address).is_err()
        });
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A listener whose queue holds what a gateway under load connects at once. That of std holds 128 connections; the kernel drops the first
/// segment of any other, and its peer sends that again after a second.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    SockRef::from(&listener).listen(4_096)?;
    Ok(listener)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        let Ok(mut connection) = connection else {
            continue;
        };
        let mut state = shared.state.lock().unwrap();
        if state.stop {
            return;
        }
        let _ = connection.write_all(&state.greeting);
        state.connections += 1;
        let number = state.connections;
        state.open.push((number, connection.try_clone().unwrap()));
        drop(state);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            serve(connection, &shared);
            let mut state = shared.state.lock().unwrap();
            state.open.retain(|(open, _)| *open != number);
        });
    }
}

fn serve(connection: TcpStream, shared: &Shared) {
    let mut wire = Wire::new(connection);
    while let Ok(Some(head)) = wire.head() {
        // Records malformed and incomplete requests too: no test may take one for none.
        let head = Head::parse(&head);
        let body = head.as_ref().ok().and_then(|head| wire.body(head).ok());
        let head = head.unwrap_or_default();
        let mut parts = head.line.split(' ').map(str::to_owned);
        let whole = body.is_some();
        let seen = Seen {
            method: parts.next().unwrap_or_default(),
            target: parts.next().unwrap_or_default(),
            headers: in_text(&head),
            body: body.unwrap_or_default(),
            whole,
        };
        let reply = {
            seen.keep(&shared.test);
            let mut state = shared.state.lock().unwrap();
            let reply = match &state.reply {
                Reply::Suited(suit) => suit(&seen),
                reply => reply.clone(),
            };
            state.seen.push(seen.clone());
            reply
        };
        if !whole || !answer(&mut wire.reader.stream, &reply, &seen, shared) {
            break;
        }
    }
    let _ = wire.reader.stream.shutdown(Shutdown::Both);
}

/// Returns `false` if the connection ends.
fn answer(stream: &mut TcpStream, reply: &Reply, seen: &Seen, shared: &Shared) -> bool {
    match reply {
        Reply::Played(Play(act)) => act(seen, stream),
        Reply::Answer(status, headers, body) => {
            let mut bytes = format!("HTTP/1.1 {status} Answer\r\n");
            for (name, value) in headers {
                bytes.push_str(&format!("{name}: {value}\r\n"));
            }
            bytes.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
            stream.write_all(&[bytes.as_bytes(), body].concat()).is_ok()
        }
        Reply::Raw(bytes) => {
            let _ = stream.write_all(bytes);
            false
        }
        Reply::Late(wait, reply) => {
            let_pass(*wait);
            answer(stream, reply, seen, shared)
        }
        Reply::Held(barrier, reply) => barrier.pass() && answer(stream, reply, seen, shared),
        Reply::Close | Reply::Suited(_) => false,
        Reply::Silence => {
            let state = shared.state.lock().unwrap();
            drop(shared.stopped.wait_while(state, |state| !state.stop));
            false
        }
    }
}
