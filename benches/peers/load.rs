//! Load generators and their results.

use crate::{
    peer::Peer,
    pool::{Call, Fault, Pool},
    running::Running,
};
use std::{
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// A load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// wrk: HTTP/1.1 with this number of persistent connections, each with one request in flight.
    Kept(usize),
    /// The same with a random pause between the requests of a connection: the peer runs at a third of its maximum rate.
    Resting(usize),
    /// HTTP/2 with this number of connections and of requests in flight on each.
    Http2(usize, usize),
    /// h2load: a connection for each request, with a full handshake, unsigned.
    Handshakes,
}

/// The result of one run of one peer.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The number of answered requests.
    pub done: u64,
    /// Answered requests per second.
    pub rate: f64,
    /// Microseconds of CPU time of the peer per request.
    pub cpu: f64,
    /// The median latency in milliseconds; 0 if it is not measured.
    pub p50: f64,
    /// The 99th percentile of the latency.
    pub p99: f64,
    /// Milliseconds per commit to disk; 0 without commits.
    pub commit: f64,
}

/// The expected answers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// All 2xx.
    Accepted,
    /// None 2xx, except the first of a replayed request.
    Refused,
    /// Any answer.
    Anything,
}

impl Expected {
    /// The expected answers of a peer to a call.
    pub fn of(peer: Peer, call: &Call, is_refused: bool) -> Self {
        match peer {
            Peer::Portvakt if is_refused || call.fault != Fault::None => Self::Refused,
            Peer::Nginx | Peer::Haproxy | Peer::Plain => Self::Accepted,
            _ if call.fault == Fault::None => Self::Accepted,
            _ => Self::Anything,
        }
    }
}

/// Sends a pool for this number of seconds. `fastest` is the highest rate of a peer per second.
///
/// # Panics
/// If an answer is not as expected, because the figures would measure something else.
pub fn run(
    name: &str,
    client: Client,
    peer: &Running,
    pool: &Pool,
    expected: Expected,
    seconds: u64,
    folder: &Path,
    cores: usize,
    fastest: usize,
) -> Sample {
    let commits = peer.commits();
    let before = peer.cpu();
    let counted = match client {
        Client::Kept(connections) => {
            pool.write(folder, 0);
            kept(connections, peer.port, seconds, folder, cores)
        }
        Client::Resting(connections) => {
            pool.write(folder, 3 * connections * 1_000 / fastest);
            kept(connections, peer.port, seconds, folder, cores)
        }
        Client::Http2(connections, streams) => {
            http2(connections, streams, peer.port, pool, seconds)
        }
        Client::Handshakes => handshakes(peer.port, seconds),
    };
    let cpu = (peer.cpu() - before).as_secs_f64() * 1e6;
    let [batches, spent] = {
        let [batches, spent] = peer.commits();
        [batches - commits[0], spent - commits[1]]
    };
    let Counted {
        done,
        refused,
        rate,
        p50,
        p99,
    } = counted;
    assert!(done > 0, "nothing was answered");
    match expected {
        Expected::Accepted => assert_eq!(
            refused,
            0,
            "{name}: {refused} of {done} were refused; the pool had {}",
            pool.len()
        ),
        Expected::Refused => assert!(
            refused + 1 >= done,
            "{name}: {} of {done} were accepted",
            done - refused
        ),
        Expected::Anything => {}
    }
    eprintln!("    {name}: {done} requests, p99 {p99:.2} ms");
    let count = f64::from(u32::try_from(done).unwrap());
    Sample {
        done,
        rate,
        cpu: cpu / count,
        p50,
        p99,
        commit: if batches > 0.0 {
            spent * 1e3 / batches
        } else {
            0.0
        },
    }
}

struct Counted {
    done: u64,
    /// The number of answers that are neither 2xx nor 3xx.
    refused: u64,
    rate: f64,
    p50: f64,
    p99: f64,
}

fn kept(connections: usize, port: u16, seconds: u64, folder: &Path, cores: usize) -> Counted {
    let script = folder.join("pool.lua");
    let mut command = Command::new("taskset");
    command.args([
        "-c",
        if cores == 1 { "1" } else { "0,1" },
        "wrk",
        "-t1",
        "--latency",
        "--timeout",
        "5s",
    ]);
    command
        .arg(format!("-c{connections}"))
        .arg(format!("-d{seconds}s"));
    command
        .arg("-s")
        .arg(script)
        .arg(format!("https://127.0.0.1:{port}/"));
    let text = said(command);
    let number = |before: &str, after: &str| -> Option<f64> {
        let line = text
            .lines()
            .find(|line| line.contains(before) && line.contains(after))?;
        let rest = &line[line.find(before)? + before.len()..];
        rest.trim()
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .next()?
            .parse()
            .ok()
    };
    let share = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        milliseconds(
            line.and_then(|line| line.split_whitespace().nth(1))
                .unwrap_or_default(),
        )
    };
    assert!(!text.contains("Socket errors"), "{text}");
    let done = text.lines().find_map(|line| {
        let (count, _) = line.split_once(" requests in ")?;
        count.trim().parse().ok()
    });
    let done: u64 = done.unwrap_or_else(|| panic!("{text}"));
    let rate = number("Requests/sec:", "").unwrap_or_else(|| panic!("{text}"));
    Counted {
        done,
        refused: number("Non-2xx or 3xx responses:", "")
            .map_or(0, |count| format!("{count:.0}").parse().unwrap()),
        rate,
        p50: share("50%"),
        p99: share("99%"),
    }
}

/// `1.23ms`, `850.00us` or `1.02s`.
fn milliseconds(text: &str) -> f64 {
    [("us", 1e-3), ("ms", 1.0), ("s", 1e3)]
        .iter()
        .find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
        .unwrap_or(f64::NAN)
}

fn per_second(done: u64, took: Duration) -> f64 {
    f64::from(u32::try_from(done).unwrap()) / took.as_secs_f64()
}

/// 600 concurrent connections, repeatedly, each for one request.
fn handshakes(port: u16, seconds: u64) -> Counted {
    let began = Instant::now();
    let (mut done, mut refused) = (0, 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        let mut command = Command::new("taskset");
        command.args(["-c", "1", "h2load", "-t1", "--h1", "-n", "600", "-c", "600"]);
        command.arg(format!("https://127.0.0.1:{port}/v1/accounts"));
        let text = said(command);
        let line = |name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .map(str::to_owned)
        };
        let (requests, codes) = (line("requests:").unwrap(), line("status codes:").unwrap());
        let count = |line: &str, unit: &str| -> u64 {
            let part = line.split([',', ':']).find(|part| part.contains(unit));
            part.and_then(|part| part.split_whitespace().next()?.parse().ok())
                .unwrap_or(0)
        };
        assert_eq!(
            count(&requests, "errored") + count(&requests, "timeout"),
            0,
            "{text}"
        );
        done += count(&requests, " done");
        refused += count(&codes, "4xx");
    }
    Counted {
        done,
        refused,
        rate: per_second(done, began.elapsed()),
        p50: 0.0,
        p99: 0.0,
    }
}

fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// h2load repeats one request, and these must differ, so this process sends them.
fn http2(connections: usize, streams: usize, port: u16, pool: &Pool, seconds: u64) -> Counted {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let next = Arc::new(AtomicUsize::new(0));
    let until = Duration::from_secs(seconds);
    let (mut times, refused, took) = runtime.block_on(async {
        let clients: Vec<_> = (0..connections)
            .map(|_| {
                reqwest::Client::builder()
                    .danger_accept_invalid_certs(true)
                    .http2_prior_knowledge()
                    .build()
                    .unwrap()
            })
            .collect();
        let mut senders = tokio::task::JoinSet::new();
        // Prepared in advance, so that the measured time contains only sending.
        let requests: Arc<Vec<_>> = Arc::new(
            (0..pool.len())
                .map(|number| ready(pool, number, port))
                .collect(),
        );
        let began_sending = Instant::now();
        for client in clients
            .iter()
            .flat_map(|client| std::iter::repeat_n(client, streams))
        {
            let (client, requests, next) =
                (client.clone(), Arc::clone(&requests), Arc::clone(&next));
            senders.spawn(async move {
                let (mut times, mut refused) = (Vec::new(), 0_u64);
                while began_sending.elapsed() < until {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(request) = requests.get(number) else {
                        break;
                    };
                    let request = request.try_clone().unwrap();
                    let sent = Instant::now();
                    let answer = client.execute(request).await.unwrap();
                    let is_accepted = answer.status().is_success();
                    let _ = answer.bytes().await.unwrap();
                    times.push(sent.elapsed());
                    refused += u64::from(!is_accepted);
                }
                (times, refused)
            });
        }
        let (mut times, mut refused) = (Vec::new(), 0);
        while let Some(sender) = senders.join_next().await {
            let (some, of_them) = sender.unwrap();
            times.extend(some);
            refused += of_them;
        }
        (times, refused, began_sending.elapsed())
    });
    times.sort_unstable();
    let at = |share: usize| {
        times
            .get(times.len() * share / 100)
            .map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    let done = u64::try_from(times.len()).unwrap();
    Counted {
        done,
        refused,
        rate: per_second(done, took),
        p50: at(50),
        p99: at(99),
    }
}

fn ready(pool: &Pool, number: usize, port: u16) -> reqwest::Request {
    let (method, path, headers, body) = pool.request(number);
    let url = format!("https://127.0.0.1:{port}{path}").parse().unwrap();
    let mut request = reqwest::Request::new(method.parse().unwrap(), url);
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    *request.body_mut() = body.map(|body| body.to_owned().into());
    request
}
