//! The row "goodput": signed GETs of known TPPs on kept connections, as many as the peer answers, and then three times as many.
//!
//! No load generator sends three times what a peer answers on a whole core, so here a peer gets about a tenth of its core: it has a
//! lower priority (nice 10) than a program that never rests.

use crate::{
    arena::{Arena, Attacked, figure},
    peers::{
        pool::{AHEAD, Pool},
        stage::KnownTpp,
    },
    table::{Better, Line, Metric},
    wire::{Dialer, Offer, Tls, one_of},
};
use std::{
    io,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{sleep, sleep_until, timeout},
};

/// Kept connections for the peak.
const AT_PEAK: usize = 64;

/// Kept connections for three times as much. With more of them, waiting for each other's answers would take a part of [`IN_TIME`] that the
/// peer cannot change, and a TPP could have more requests under way than `max_in_flight_per_tpp`.
const CONNECTIONS: usize = 3 * AT_PEAK;

/// The load, as a multiple of the peak.
const TIMES: f64 = 3.0;

/// The time of each part, and the most requests of the first one.
const TIME: Duration = Duration::from_secs(4);
const MOST_AT_PEAK: usize = 40_000;

/// A request counts if it is answered with 200 within this time after it was due.
const IN_TIME: Duration = Duration::from_secs(1);

/// The longest time of opening the connections.
const OPENING: Duration = Duration::from_secs(10);

/// A client gives a request up if none of its connections is free for this time.
const PATIENCE: Duration = Duration::from_millis(100);

/// The goodput at three times the peak, in per cent of it.
pub fn run(arena: &Arena) -> Vec<Line> {
    let informational = |name, unit| Metric {
        name,
        unit,
        digits: 0,
        better: Better::Higher,
        bar: None,
        slack: None,
    };
    let metrics = vec![
        informational("peak", "/s"),
        informational("offered", " %"),
        Metric {
            bar: Some(90.0),
            slack: Some(10.0),
            ..informational("goodput", " %")
        },
        informational("refused", "/s"),
        // Independent of how much of the core the peer gets. More connections than at the peak cost each peer more, so this has no bar but
        // that of the better peer.
        Metric {
            digits: 2,
            better: Better::Lower,
            slack: Some(0.0),
            ..informational("CPU for each answer of 200 against the peak", " ×")
        },
    ];
    let what = "signed GETs on kept connections, three times as many as at the peak";
    let mut line = Line::new("goodput", what, metrics);
    for attacked in arena.each() {
        line.values[attacked.column] = measure(arena, &attacked);
    }
    eprint!("{}", line.markdown());
    vec![line]
}

fn measure(arena: &Arena, attacked: &Attacked) -> Vec<Option<f64>> {
    let _starved = Starved::begin(attacked);
    let port = attacked.running.port;
    let load = |requests: Vec<Vec<u8>>, connections, rate| {
        let opening = open(arena.dialer.clone(), port, signed(arena, connections));
        let opened = arena.attackers.block_on(opening);
        let load = Load {
            requests,
            next: AtomicUsize::new(0),
            rate,
            counts: Default::default(),
        };
        // Handshakes and the first request of each connection do not count.
        let before = attacked.running.cpu();
        let rates = arena.attackers.block_on(Arc::new(load).run(opened));
        let cpu = attacked.running.cpu() - before;
        (rates, cpu.as_secs_f64() / TIME.as_secs_f64())
    };
    let (peak, cpu_at_peak) = load(signed(arena, MOST_AT_PEAK), AT_PEAK, None);
    let rate = TIMES * peak.good;
    // The last request is due at the end.
    let count = (rate * TIME.as_secs_f64()).floor();
    let count = (0..)
        .take_while(|number| f64::from(*number) < count)
        .count();
    let (loaded, cpu) = load(signed(arena, count), CONNECTIONS, Some(rate));
    vec![
        Some(peak.good),
        Some(100.0 * loaded.sent / peak.good),
        Some(100.0 * loaded.good / peak.good),
        Some(loaded.refused),
        Some((cpu / loaded.good) / (cpu_at_peak / peak.good)),
    ]
}

/// Requests of eight TPPs in turn, signed now. So many that none of them has more requests under way than `max_in_flight_per_tpp`: the
/// row is about a gateway that has too much to do, and not about a TPP that asks too much.
fn signed(arena: &Arena, count: usize) -> Vec<Vec<u8>> {
    let ahead = SystemTime::now() + AHEAD;
    let tpps = &arena.stage.crowd;
    let sign = |known: &KnownTpp| {
        let call = crate::honest::get("/v1/accounts", &known.psu);
        Pool::sign(&known.signer, &call, count.div_ceil(tpps.len()), ahead)
    };
    let pools: Vec<_> = tpps.iter().map(sign).collect();
    let head = |number| crate::honest::head(&pools[number % tpps.len()], number / tpps.len());
    (0..count).map(head).collect()
}

/// Opens a connection for each of these requests, again where the peer closes it because it is overloaded, and sends the request: its
/// TPP is then known on the connection.
async fn open(dialer: Dialer, port: u16, requests: Vec<Vec<u8>>) -> Vec<Tls> {
    let mut opening = tokio::task::JoinSet::new();
    for (number, request) in requests.into_iter().enumerate() {
        let dialer = dialer.clone();
        opening.spawn(async move {
            let begun = Instant::now();
            while begun.elapsed() < OPENING {
                if let Ok(mut tls) = dialer.tls(one_of(number), port, Offer::Http1).await
                    && exchange(&mut tls, &request).await.is_ok()
                {
                    return Some(tls);
                }
                sleep(Duration::from_millis(100)).await;
            }
            None
        });
    }
    opening.join_all().await.into_iter().flatten().collect()
}

/// Requests that are due one after the other, and are sent by the first free connection.
struct Load {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
    /// The requests in a second; `None` if a connection sends the next one as soon as it has its answer.
    rate: Option<f64>,
    /// Sent requests, answers of 200 in time, and other answers.
    counts: [AtomicUsize; 3],
}

/// The rates of a load, in a second.
struct Rates {
    sent: f64,
    good: f64,
    refused: f64,
}

impl Load {
    async fn run(self: Arc<Self>, connections: Vec<Tls>) -> Rates {
        let begun = Instant::now();
        let mut sending = tokio::task::JoinSet::new();
        for tls in connections {
            sending.spawn(Arc::clone(&self).send(tls, begun));
        }
        sending.join_all().await;
        let seconds = begun.elapsed().min(TIME).as_secs_f64();
        let [sent, good, refused] = [0, 1, 2].map(|at: usize| {
            let count = self.counts[at].load(Ordering::Relaxed);
            figure(count) / seconds
        });
        Rates {
            sent,
            good,
            refused,
        }
    }

    /// Sends requests on one connection until the end.
    async fn send(self: Arc<Self>, mut tls: Tls, begun: Instant) {
        while begun.elapsed() < TIME {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = self.requests.get(number) else {
                return;
            };
            let due = match self.rate {
                Some(rate) => begun + Duration::from_secs_f64(figure(number) / rate),
                None => Instant::now(),
            };
            sleep_until(due.into()).await;
            if due.elapsed() > PATIENCE {
                continue;
            }
            self.counts[0].fetch_add(1, Ordering::Relaxed);
            match timeout(IN_TIME, exchange(&mut tls, request)).await {
                Ok(Ok(true)) if due.elapsed() <= IN_TIME => {
                    self.counts[1].fetch_add(1, Ordering::Relaxed);
                }
                Ok(Ok(_)) => {
                    self.counts[2].fetch_add(1, Ordering::Relaxed);
                }
                // The answer, if it still comes, is not that of the next request.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

/// Sends a request and reads its answer to the end; returns whether it is 200.
async fn exchange(tls: &mut Tls, request: &[u8]) -> io::Result<bool> {
    tls.write_all(request).await?;
    tls.flush().await?;
    let mut answer = Vec::with_capacity(2_048);
    loop {
        if tls.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if crate::honest::is_whole(&answer) {
            return Ok(answer.starts_with(b"HTTP/1.1 200"));
        }
    }
}

/// A peer that gets little of its core, until this is dropped.
struct Starved(Child);

impl Starved {
    fn begin(attacked: &Attacked) -> Self {
        attacked.running.lower_priority();
        let busy = Command::new("taskset")
            .args(["--cpu-list", "0", "sh", "-c", "while :; do :; done"])
            .stdout(Stdio::null())
            .spawn();
        Self(busy.unwrap())
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
