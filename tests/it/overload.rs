//! Overload: known TPPs keep their answers while strangers are refused (ERR-4).
//!
//! Strangers are of two kinds: half a TLS handshake, which costs the gateway a key exchange and a signature, and requests without a
//! signature on connections that stay open. The short version takes CPU time from the gateway instead of sending more than it can take,
//! because that depends on the machine. `make flood` runs the long version, which prints the figures.

use crate::harness::{
    Call, Connection, Gate, GateBuilder, Program, Protocol, Sealed, Tls, eventually,
    eventually_within, let_pass, let_pass_async,
    pki::{Key, LeafSpec},
    rsa_key, world,
};
use portvakt::clock::Stopwatch;
use rustix::process::{Pid, Signal, kill_process};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use std::{
    net::SocketAddr,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

/// The connections of each kind of stranger in the long version.
const STRANGERS: usize = 128;

/// The pause of a stranger between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

fn client() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let anchor = world().tls_ca.der().to_vec();
    roots.add(CertificateDer::from(anchor)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Arc::new(config)
}

/// Strangers, until they are dropped.
struct Flood {
    over: Arc<AtomicBool>,
    /// Half handshakes that the gateway answered, and requests by their status: 503, and others.
    counts: Arc<[AtomicU64; 3]>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// So many connections on which handshakes begin, and so many with requests.
    fn begin(address: SocketAddr, greeting: usize, asking: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let counts: Arc<[AtomicU64; 3]> = Arc::default();
        let (stop, count) = (Arc::clone(&over), Arc::clone(&counts));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = client();
                let greeting = (0..greeting).map(|_| {
                    let hello = client_hello(&client);
                    tokio::spawn(greet(address, hello, Arc::clone(&count)))
                });
                let asking = (0..asking)
                    .map(|_| tokio::spawn(ask(address, Arc::clone(&client), Arc::clone(&count))));
                let tasks: Vec<_> = greeting.chain(asking).collect();
                while !stop.load(Ordering::Relaxed) {
                    let_pass_async(Duration::from_millis(10)).await;
                }
                tasks.iter().for_each(|task| task.abort());
            });
        });
        Self {
            over,
            counts,
            thread: Some(thread),
        }
    }

    fn counts(&self) -> [u64; 3] {
        [0, 1, 2].map(|index: usize| self.counts[index].load(Ordering::Relaxed))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// A program that gets a seventh of a core: it is stopped for 30 ms, runs for 5 ms, and so on, until this is dropped.
struct Starved {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Starved {
    fn begin(program: &Program) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let pid = Pid::from_child(&program.0);
        let stop = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for (signal, time) in [(Signal::STOP, 30), (Signal::CONT, 5)] {
                    kill_process(pid, signal).unwrap();
                    let_pass(Duration::from_millis(time));
                }
            }
        });
        Self {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn client_hello(client: &Arc<ClientConfig>) -> Vec<u8> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut hello = Vec::new();
    session.write_tls(&mut hello).unwrap();
    hello
}

/// Begins handshakes, one after another.
async fn greet(address: SocketAddr, hello: Vec<u8>, counts: Arc<[AtomicU64; 3]>) {
    loop {
        let Ok(mut stream) = TcpStream::connect(address).await else {
            continue;
        };
        let mut answer = [0; 1_024];
        if stream.write_all(&hello).await.is_ok()
            && matches!(stream.read(&mut answer).await, Ok(1..))
        {
            counts[0].fetch_add(1, Ordering::Relaxed);
        }
        let_pass_async(PAUSE).await;
    }
}

/// Sends requests without a signature, on connections that stay open where the gateway keeps them open.
async fn ask(address: SocketAddr, client: Arc<ClientConfig>, counts: Arc<[AtomicU64; 3]>) {
    let connector = TlsConnector::from(client);
    let name = ServerName::try_from("localhost").unwrap();
    let request = b"GET /v1/accounts HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: 7\r\n\r\n";
    loop {
        let_pass_async(PAUSE).await;
        let Ok(stream) = TcpStream::connect(address).await else {
            continue;
        };
        let Ok(mut stream) = connector.connect(name.clone(), stream).await else {
            continue;
        };
        let mut answer = [0; 8_192];
        while stream.write_all(request).await.is_ok() {
            let Ok(length @ 1..) = stream.read(&mut answer).await else {
                break;
            };
            let is_refused = answer[..length].starts_with(b"HTTP/1.1 503");
            counts[if is_refused { 1 } else { 2 }].fetch_add(1, Ordering::Relaxed);
            let_pass_async(PAUSE).await;
        }
    }
}

fn known() -> Call {
    Call::plain().only(Protocol::Http1)
}

fn gate() -> GateBuilder {
    Gate::builder()
        .listener("max_connections_per_address: off")
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off}")
}

/// A warm connection of a known TPP.
fn warm(gate: &Gate) -> Connection {
    let mut connection = Connection::open(gate);
    let answer = connection.exchange(&gate.seal(&known())).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.reason());
    connection
}

//= ERR-4 accepted
//= ERR-4 refused
#[test]
fn strangers_are_refused_and_known_tpps_are_served() {
    let gate = gate().listener("overload_delay: 5ms").for_program();
    let program = gate.run(gate.program().stdout(Stdio::null()));
    let shed = |who: &str| gate.metric_now("portvakt_shed_total", &[&format!("who=\"{who}\"")]);
    let mut connection = warm(&gate);
    let flood = Flood::begin(gate.address(), 8, 8);
    let starved = Starved::begin(&program);
    eventually("strangers are refused", || {
        let counts = [shed("connection"), shed("request")];
        let is_refusing = !counts.contains(&0.0);
        is_refusing.then_some(()).ok_or((counts, flood.counts()))
    });
    gate.upstream().take();
    for _ in 0..50 {
        let answer = connection.exchange(&gate.seal(&known())).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.reason());
    }
    assert_eq!(gate.upstream().take().len(), 50, "nothing of strangers");
    // A TPP with a new connection gets in after some attempts.
    let mut attempts = 0;
    eventually_within(Duration::from_secs(240), "a new connection", || {
        attempts += 1;
        let connection = Connection::shake(gate.address(), gate.world(), Tls::default());
        let Ok(mut connection) = connection else {
            return false;
        };
        let answer = connection.exchange(&gate.seal(&known()));
        answer.is_ok_and(|answer| answer.status == 200)
    });
    println!(
        "attempts for a new connection: {attempts}; {:?}",
        flood.counts()
    );
    assert!(flood.counts()[1] > 0, "strangers get 503");
    drop((flood, starved));
    let refused = || [shed("connection"), shed("request")];
    eventually("it ends with the flood", || {
        let before = refused();
        for _ in 0..4 {
            let _ = Connection::shake(gate.address(), gate.world(), Tls::default());
        }
        before == refused()
    });
}

/// Known TPPs with warm connections, and requests that were signed before.
struct Known(Vec<(Connection, Vec<Sealed>)>);

impl Known {
    fn prepare(gate: &Gate, callers: usize) -> Self {
        let one = |_| {
            let sealed = (0..100).map(|_| gate.seal(&known())).collect();
            (warm(gate), sealed)
        };
        Self((0..callers).map(one).collect())
    }

    /// Sends all requests; returns the answers per second.
    fn rate(self) -> f64 {
        let begun = Stopwatch::start();
        let count: usize = self.0.iter().map(|(_, sealed)| sealed.len()).sum();
        std::thread::scope(|scope| {
            for (mut connection, sealed) in self.0 {
                scope.spawn(move || {
                    for sealed in &sealed {
                        let answer = connection.exchange(sealed).unwrap();
                        assert_eq!(answer.status, 200, "{}", answer.reason());
                    }
                });
            }
        });
        count as f64 / begun.elapsed().as_secs_f64()
    }
}

/// The rate of known TPPs, of three times as many, and while strangers flood; and the CPU time that a stranger costs.
#[test]
#[ignore = "make flood"]
fn the_rate_that_known_tpps_keep() {
    for limit in ["off", "20ms", "5ms"] {
        let gate = gate()
            .listener(&format!("overload_delay: {limit}"))
            .for_program();
        let program = gate.run(gate.program().stdout(Stdio::null()));
        let alone = Known::prepare(&gate, 16).rate();
        let tripled = Known::prepare(&gate, 48).rate() / alone;
        let known = Known::prepare(&gate, 16);
        let shed = || gate.metric_now("portvakt_shed_total", &["who=\"connection\""]);
        let used = program.cpu_time();
        let flood = Flood::begin(gate.address(), STRANGERS, STRANGERS);
        // The time over which this measures.
        let_pass(Duration::from_secs(5));
        let used = program.cpu_time() - used;
        let ([greeted, refused, served], closed) = (flood.counts(), shed());
        let each = used as f64 / (closed + (greeted + refused + served) as f64);
        let flooded = known.rate() / alone;
        println!(
            "{limit:>4}: {alone:.0} a second; with three times as many {tripled:.2} of that, with strangers {flooded:.2}. Strangers in 5 s: {greeted} half handshakes, {closed} closed; {served} requests, {refused} refused; {used} us of CPU time, {each:.0} for each"
        );
    }
}

/// What a known TPP waits beside 64 connections of strangers: without signed answers, and with those of two keys. Each is measured three
/// times in turn, and what is printed is of all three together.
#[test]
#[ignore = "make flood"]
fn strangers_buy_no_signatures() {
    let kinds = [None, Some(2048), Some(4096)];
    let mut waited: [Vec<Duration>; 3] = Default::default();
    for _ in 0..3 {
        for (bits, waited) in kinds.iter().zip(&mut waited) {
            waited.extend(beside_strangers(*bits));
        }
    }
    let quantiles = waited.map(|mut waited| {
        waited.sort();
        [50, 99].map(|percent| waited[waited.len() * percent / 100])
    });
    for (bits, [median, p99]) in kinds.iter().zip(quantiles) {
        let times = p99.as_secs_f64() / quantiles[0][1].as_secs_f64();
        println!("{bits:?}: median {median:?}, p99 {p99:?}, {times:.2} times that of no signature");
    }
}

/// What each of 3 000 signed requests waits beside 64 connections of strangers, where answers are signed by an RSA key of so many bits.
fn beside_strangers(bits: Option<u32>) -> Vec<Duration> {
    let gate = match bits {
        None => gate(),
        Some(bits) => {
            let spec = LeafSpec {
                key: Key::RsaPem(rsa_key(bits)),
                ..LeafSpec::default()
            };
            let bank = world().issuing.issue(&spec).unwrap();
            gate()
                .line("response_signing: {certificate: bank.pem, key: bank.key}")
                .file("bank.pem", bank.pem)
                .private_file("bank.key", bank.key_pem)
        }
    };
    let gate = gate.for_program();
    let _program = gate.run(gate.program().stdout(Stdio::null()));
    let mut connection = warm(&gate);
    let sealed: Vec<_> = (0..3_000).map(|_| gate.seal(&known())).collect();
    let flood = Flood::begin(gate.address(), 0, 64);
    // Until they are all there.
    let_pass(Duration::from_secs(1));
    let waited = sealed.iter().map(|sealed| {
        let begun = Stopwatch::start();
        let answer = connection.exchange(sealed).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.reason());
        assert_eq!(answer.header("signature").is_some(), bits.is_some());
        begun.elapsed()
    });
    let waited = waited.collect();
    let [_, shed, refused] = flood.counts();
    println!("{bits:?}: strangers: {refused} refusals, {shed} shed");
    waited
}
