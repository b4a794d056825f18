//! Fuzzing of Portvakt's listener from outside: random bytes on TCP, TLS records, HTTP/1.1 and HTTP/2 frames inside TLS.
//!
//! It passes if the process is alive, its log tells of no panic, the honest client is served, and memory is back at its level.

mod make;

use crate::{
    arena::{Arena, Attacked, CALLS},
    core_server::find,
    honest::{get, signed},
    peers::stage::PSU,
    wire::{
        Dialer, END_HEADERS, END_STREAM, Offer, PREFACE, Tls, block, drain, frame, frame as encode,
        one_of, tcp,
    },
};
use make::Dice;
use rustls::ClientConnection;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time::{sleep, timeout},
};

/// Concurrent connections.
const CONNECTIONS: usize = 16;

/// The longest wait for the gateway's end of a connection. A connection that it keeps is left to its deadlines.
const PATIENCE: Duration = Duration::from_millis(20);

/// Frames or records of one connection.
const MOST: usize = 24;

/// Memory is back at its start if it is not higher than by this share, and this number of KiB.
const SHARE: f64 = 0.1;
const KIB: f64 = 8.0 * 1024.0;

/// Valid bytes that are mutated.
struct Valid {
    hello: Vec<u8>,
    http1: Vec<u8>,
    block: Vec<u8>,
    http2: Vec<Vec<u8>>,
}

/// What was sent.
#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    parts: AtomicU64,
    records: AtomicU64,
    frames: AtomicU64,
}

/// Fuzzes for this time; whether every bar was reached.
pub fn run(arena: &Arena, minutes: f64, seed: u64) -> bool {
    let mut attacked = arena.start(0, None).unwrap();
    let quiet = arena.quiet(&attacked);
    let fresh = attacked.running.resident();
    println!(
        "seed {seed}; {fresh} KiB at the start; the honest client's p99 is {:.1} ms",
        quiet.p99
    );
    let counts = Arc::new(Counts::default());
    let whole = Duration::from_secs_f64(minutes * 60.0);
    // The first requests of each kind take memory that the allocator keeps.
    fuzz(arena, &attacked, &counts, seed, whole / 20);
    let warm = settle(arena, &attacked);
    println!("{warm} KiB after a twentieth of the time");
    let lost = fuzz(arena, &attacked, &counts, seed, whole - whole / 20);
    let end = settle(arena, &attacked);
    let served = arena.honest(&attacked, CALLS, Duration::from_millis(10));
    let served = served.join().unwrap();
    let shed = attacked.running.metric("portvakt_shed_total").unwrap();
    let log = fs::read(arena.stage.folder().join("portvakt.log")).unwrap();
    let panicked = find(&log, b"panicked").is_some();
    let has_ended = attacked.running.has_ended();
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{} connections: {} parts on TCP and over HTTP/1.1, {} TLS records, {} HTTP/2 frames, in {minutes} minutes",
        count(&counts.connections),
        count(&counts.parts),
        count(&counts.records),
        count(&counts.frames),
    );
    println!(
        "alive: {}; panics in the log: {panicked}; the honest client: {lost} calls lost during, {} of {CALLS} answered after, p99 {:.1} ms; strangers refused because of overload: {shed}; {end} KiB at the end",
        !has_ended, served.answered, served.p99
    );
    let is_back = f64::from(u32::try_from(end).unwrap())
        <= f64::from(u32::try_from(warm).unwrap()) * (1.0 + SHARE) + KIB;
    let passed = !has_ended && !panicked && is_back && lost == 0 && served.answered == CALLS;
    println!("{}", if passed { "passed" } else { "**failed**" });
    passed
}

/// The lowest memory within 20 s, in which deadlines end the last connections and calls let the allocator return memory.
fn settle(arena: &Arena, attacked: &Attacked) -> u64 {
    let mut lowest = u64::MAX;
    for _ in 0..10 {
        let calls = arena.honest(attacked, 20, Duration::from_millis(100));
        calls.join().unwrap();
        lowest = lowest.min(attacked.running.resident());
    }
    lowest
}

/// Sends random connections for this time; the number of calls of the honest client without an answer.
fn fuzz(
    arena: &Arena,
    attacked: &Attacked,
    counts: &Arc<Counts>,
    seed: u64,
    time: Duration,
) -> usize {
    let over = Arc::new(AtomicBool::new(false));
    let port = attacked.running.port;
    let begun = Instant::now();
    let mut lost = 0;
    let mut valid = Arc::new(valid(arena));
    while begun.elapsed() < time {
        over.store(false, Ordering::Relaxed);
        let fuzzing: Vec<_> = (0..CONNECTIONS)
            .map(|task| {
                let (dialer, counts) = (arena.dialer.clone(), Arc::clone(counts));
                let (valid, over) = (Arc::clone(&valid), Arc::clone(&over));
                arena.attackers.spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        let number = counts.connections.fetch_add(1, Ordering::Relaxed);
                        let fuzzer = Fuzzer {
                            dialer: &dialer,
                            port,
                            valid: &valid,
                            counts: &counts,
                            dice: Dice::new(seed, number),
                        };
                        fuzzer.run(task).await;
                    }
                })
            })
            .collect();
        let left = (time - begun.elapsed().min(time)).min(Duration::from_secs(30));
        let every = left / u32::try_from(CALLS).unwrap();
        let served = arena.honest(attacked, CALLS, every.max(Duration::from_millis(20)));
        let served = served.join().unwrap();
        over.store(true, Ordering::Relaxed);
        lost += served.of - served.answered;
        arena.attackers.block_on(async {
            for fuzzing in fuzzing {
                let _ = fuzzing.await;
            }
        });
        eprintln!(
            "{:.0} s: {} frames, {} records, {} KiB, p99 {:.1} ms",
            begun.elapsed().as_secs_f64(),
            counts.frames.load(Ordering::Relaxed),
            counts.records.load(Ordering::Relaxed),
            attacked.running.resident(),
            served.p99
        );
        // Signatures become too old.
        valid = Arc::new(self::valid(arena));
    }
    lost
}

/// Valid requests, now signed.
fn valid(arena: &Arena) -> Valid {
    let pool = signed(&arena.stage.signer, &get("/v1/accounts", PSU), 1);
    let (method, path, headers, _) = pool.request(0);
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let name = "localhost".try_into().unwrap();
    let mut tls = ClientConnection::new(arena.dialer.config(Offer::Http2), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    let block = block(method, path, &headers);
    let (some, rest) = block.split_at(block.len() / 2);
    let http2 = vec![
        PREFACE.to_vec(),
        frame(4, 0, 0, &[0, 3, 0, 0, 0, 9]),
        frame(4, 1, 0, &[]),
        frame(8, 0, 0, &[0, 0, 64, 0]),
        frame(1, END_STREAM | END_HEADERS, 1, &block),
        frame(1, END_STREAM, 3, some),
        frame(9, END_HEADERS, 3, rest),
        frame(6, 0, 0, &[7; 8]),
        frame(1, END_HEADERS, 5, &block),
        frame(0, 0, 5, b"{"),
        frame(0, END_STREAM, 5, b"}"),
        frame(2, 0, 5, &[0, 0, 0, 1, 9]),
        frame(3, 0, 3, &[0, 0, 0, 8]),
        frame(7, 0, 0, &[0; 8]),
    ];
    Valid {
        hello,
        http1: format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").into_bytes(),
        block,
        http2,
    }
}

/// One connection.
struct Fuzzer<'a> {
    dialer: &'a Dialer,
    port: u16,
    valid: &'a Valid,
    counts: &'a Counts,
    dice: Dice,
}

impl Fuzzer<'_> {
    async fn run(mut self, task: usize) {
        let (from, kind) = (one_of(task), self.dice.below(10));
        match kind {
            // Without TLS: bytes, or records.
            0 | 1 => {
                let Ok(stream) = tcp(from, self.port).await else {
                    return;
                };
                let is_record = kind == 1;
                let parts = self.parts(|dice, valid| match is_record {
                    true => make::record(dice, &valid.hello),
                    false => dice.bytes(300),
                });
                let counts = self.counts;
                send(
                    stream,
                    &parts,
                    if is_record {
                        &counts.records
                    } else {
                        &counts.parts
                    },
                )
                .await;
            }
            // Records that do not decrypt, after a valid handshake.
            2 => {
                let Ok(tls) = self.dialer.tls(from, self.port, Offer::Http2).await else {
                    return;
                };
                let parts = self.parts(|dice, valid| make::record(dice, &valid.hello));
                send(tls.into_inner().0, &parts, &self.counts.records).await;
            }
            3 | 4 => {
                let Some(tls) = self.open(from, Offer::Http1).await else {
                    return;
                };
                let parts = self.parts(|dice, valid| {
                    let mut bytes = valid.http1.clone();
                    match dice.one_in(6) {
                        true => bytes = dice.bytes(300),
                        false => make::mutate(dice, &mut bytes),
                    }
                    bytes
                });
                send(tls, &parts, &self.counts.parts).await;
            }
            5..8 => {
                let Some(tls) = self.open(from, Offer::Http2).await else {
                    return;
                };
                let mut parts = self.parts(|dice, valid| make::frame(dice, &valid.block));
                parts.insert(0, [PREFACE, &frame(4, 0, 0, &[])].concat());
                send(tls, &parts, &self.counts.frames).await;
            }
            _ => {
                let Some(tls) = self.open(from, Offer::Http2).await else {
                    return;
                };
                let mut frames = self.valid.http2.clone();
                make::shuffle(&mut self.dice, &mut frames);
                send(tls, &frames, &self.counts.frames).await;
            }
        }
    }

    async fn open(&self, from: std::net::Ipv4Addr, offer: Offer) -> Option<Tls> {
        self.dialer.tls(from, self.port, offer).await.ok()
    }

    fn parts(&mut self, make: impl Fn(&mut Dice, &Valid) -> Vec<u8>) -> Vec<Vec<u8>> {
        let count = self.dice.below(MOST) + 1;
        (0..count)
            .map(|_| make(&mut self.dice, self.valid))
            .collect()
    }
}

/// Sends the parts, each in one write, until the gateway ends the connection. Only parts before the end are counted.
async fn send(stream: impl AsyncRead + AsyncWrite + Unpin, parts: &[Vec<u8>], sent: &AtomicU64) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sending = async {
        for part in parts {
            if writer.write_all(part).await.is_err() || writer.flush().await.is_err() {
                return;
            }
            sent.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
        sleep(PATIENCE).await;
    };
    let ended = drain(&mut reader);
    tokio::pin!(ended);
    let _ = timeout(PATIENCE * 10, async {
        tokio::select! {
            () = &mut ended => {}
            () = sending => {}
        }
    })
    .await;
}
