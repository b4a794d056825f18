//! The honest client: signed requests at fixed times from an address of its own, and probes of /readyz beside them.
//!
//! Every second call opens a new connection; the others share one. A thread with a higher priority (if permitted) sends them, so that the
//! attackers' own load on their core does not count as the peer's latency.

use crate::{
    core_server::find,
    host::Given,
    peers::{
        pool::{Call, Fault, Pool, Signer},
        running::Running,
        stage::{PSU, Stage},
    },
    wire::{Dialer, HONEST, Offer, Tls},
};
use portvakt_sandbox::http1::Head;
use std::{
    io,
    net::Ipv4Addr,
    process::{Command, Stdio},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep_until, timeout},
};

/// The longest that the client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The interval of the probes.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// The result of some calls.
#[derive(Clone, Debug)]
pub struct Served {
    /// How many were sent.
    pub of: usize,
    /// How many were answered with 200.
    pub answered: usize,
    /// The 99th percentile of the latency in milliseconds, with the handshake where a call has one. An unanswered call counts as
    /// the longest wait. An answered one during which the host gave a processor to another machine does not count.
    pub p99: f64,
    /// How many calls did not count.
    pub left_out: usize,
    /// The longest probe of /readyz in milliseconds; `None` for a peer without one.
    pub ready: Option<f64>,
}

/// A GET with the PSU present, which no quota counts.
pub fn get(path: &str, psu: &str) -> Call {
    let headers = [
        ("Accept", "application/json"),
        ("TPP-Redirect-URI", "https://tpp.example/callback"),
        ("PSU-ID", psu),
        ("PSU-IP-Address", "192.0.2.10"),
        ("User-Agent", "tpp-client/4.2"),
    ];
    Call {
        method: "GET",
        path: path.into(),
        headers: headers.map(|(name, value)| (name, value.into())).into(),
        body: None,
        fault: Fault::None,
    }
}

/// Signed requests, now valid.
pub fn signed(signer: &Signer, call: &Call, count: usize) -> Pool {
    Pool::sign(signer, call, count, SystemTime::now())
}

/// Calls in the background until they have ended.
pub fn begin(
    stage: &Stage,
    dialer: &Dialer,
    peer: &Running,
    count: usize,
    every: Duration,
) -> JoinHandle<Served> {
    let pool = signed(&stage.signer, &get("/v1/accounts", PSU), count);
    let heads = (0..count).map(|number| Arc::from(head(&pool, number)));
    let calls = Calls {
        heads: heads.collect(),
        dialer: dialer.clone(),
        port: peer.port,
        control: peer.control,
        every,
    };
    std::thread::spawn(move || {
        prefer_this_thread();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, calls.run())
    })
}

/// The head of a request over HTTP/1.1.
pub fn head(pool: &Pool, number: usize) -> Vec<u8> {
    let (method, path, headers, _) = pool.request(number);
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").into_bytes()
}

/// Gives this thread priority over those of the attackers, if permitted.
pub fn prefer_this_thread() {
    let id = rustix::thread::gettid().as_raw_nonzero().to_string();
    let _ = Command::new("chrt")
        .args(["--fifo", "--pid", "1", &id])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// A call: its start, and the time until its answer.
type Timed = (Instant, Option<Duration>);

/// Calls at fixed times.
struct Calls {
    heads: Vec<Arc<[u8]>>,
    dialer: Dialer,
    port: u16,
    control: Option<u16>,
    every: Duration,
}

impl Calls {
    async fn run(self) -> Served {
        let given = Given::default();
        let watching = tokio::task::spawn_local(given.clone().watch());
        let begun = tokio::time::Instant::now();
        let of = self.heads.len();
        let at = |number: usize| begun + self.every * u32::try_from(number).unwrap();
        let mut fresh = tokio::task::JoinSet::new();
        for (number, head) in self
            .heads
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 2 == 0)
        {
            let (dialer, port, head, at) =
                (self.dialer.clone(), self.port, Arc::clone(head), at(number));
            fresh.spawn_local(async move {
                sleep_until(at).await;
                let begun = Instant::now();
                let answered = timeout(PATIENCE, alone(&dialer, port, &head)).await;
                (begun, took(begun, &answered))
            });
        }
        let end = at(of);
        let probing = tokio::task::spawn_local(probe(self.control, end));
        let mut times = Vec::new();
        let mut kept = None;
        for (number, head) in self
            .heads
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 2 == 1)
        {
            sleep_until(at(number)).await;
            // A peer that answers nothing must not hold up the measurement.
            if begun.elapsed() < self.every * u32::try_from(of).unwrap() + PATIENCE {
                times.push(self.on_kept(&mut kept, head).await);
            } else {
                times.push((Instant::now(), None));
            }
        }
        while let Some(time) = fresh.join_next().await {
            times.push(time.unwrap());
        }
        let ready = probing.await.unwrap();
        Given::settle().await;
        watching.abort();
        served(&times, &given, ready)
    }

    /// A call on the connection that the calls share, which is opened again after a failure.
    async fn on_kept(&self, kept: &mut Option<Tls>, head: &[u8]) -> Timed {
        let begun = Instant::now();
        let calling = async {
            let mut tls = match kept.take() {
                Some(tls) => tls,
                None => self.dialer.tls(HONEST, self.port, Offer::Http1).await?,
            };
            exchange(&mut tls, head).await?;
            *kept = Some(tls);
            io::Result::Ok(())
        };
        let answered = timeout(PATIENCE, calling).await;
        (begun, took(begun, &answered))
    }
}

/// The time of a call that was answered.
fn took<E>(begun: Instant, answered: &Result<io::Result<()>, E>) -> Option<Duration> {
    matches!(answered, Ok(Ok(()))).then(|| begun.elapsed())
}

/// A call on a connection of its own.
async fn alone(dialer: &Dialer, port: u16, head: &[u8]) -> io::Result<()> {
    let mut tls = dialer.tls(HONEST, port, Offer::Http1).await?;
    exchange(&mut tls, head).await
}

/// Sends a request and reads its answer, which must be 200.
async fn exchange(tls: &mut Tls, head: &[u8]) -> io::Result<()> {
    tls.write_all(head).await?;
    tls.flush().await?;
    let mut answer = Vec::new();
    loop {
        if tls.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !b"HTTP/1.1 200".starts_with(&answer[..answer.len().min(12)]) {
            let line = answer.split(|byte| *byte == b'\r').next();
            let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
            return Err(io::Error::other(line));
        }
        // The core's answers have 700 bytes.
        if find(&answer, b"\r\n\r\n").is_some_and(|end| answer.len() >= end + 4 + 700) {
            return Ok(());
        }
    }
}

/// Whether these bytes are a whole answer with Content-Length.
pub fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = find(answer, b"\r\n\r\n") else {
        return false;
    };
    Head::parse(&answer[..end + 4])
        .is_ok_and(|head| answer.len() >= head.size + head.length().unwrap_or(0))
}

/// The longest answer of /readyz until the end, in milliseconds.
async fn probe(control: Option<u16>, end: tokio::time::Instant) -> Option<f64> {
    let control = control?;
    let mut longest = 0.0_f64;
    let mut next = tokio::time::Instant::now();
    while next < end {
        sleep_until(next).await;
        longest = longest.max(ready(control).await);
        next += PROBE_EVERY;
    }
    Some(longest)
}

/// The time of one probe in milliseconds.
pub async fn ready(control: u16) -> f64 {
    let begun = Instant::now();
    let asking = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, control)).await?;
        let request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        io::Result::Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    match timeout(PATIENCE, asking).await {
        Ok(Ok(true)) => begun.elapsed(),
        _ => PATIENCE,
    }
    .as_secs_f64()
        * 1e3
}

fn served(times: &[Timed], given: &Given, ready: Option<f64>) -> Served {
    let counts = |(begun, took): &&Timed| took.is_none_or(|took| !given.is_within(*begun, took));
    let counted = times.iter().filter(counts);
    let counted: Vec<_> = counted.map(|(_, took)| took.unwrap_or(PATIENCE)).collect();
    let left_out = times.len() - counted.len();
    // With fewer, one call would be the percentile.
    let mut sorted = match counted.len() * 2 >= times.len() {
        true => counted,
        false => times
            .iter()
            .map(|(_, took)| took.unwrap_or(PATIENCE))
            .collect(),
    };
    sorted.sort_unstable();
    let at = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
    Served {
        of: times.len(),
        answered: times.iter().filter(|(_, took)| took.is_some()).count(),
        p99: sorted[at].as_secs_f64() * 1e3,
        left_out,
        ready,
    }
}
