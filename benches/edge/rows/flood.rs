//! Row 7: floods of frames and of handshakes. Was the connection cut, after how many frames, and how long does the honest client wait?

use crate::{
    arena::{Arena, Attacked, CALLS, honest_metrics, honest_values},
    table::{Better, Line, Metric},
    wire::{
        ATTACKER, Dialer, END_HEADERS, END_STREAM, NEWEST, NO_WINDOW, Offer, Tls, field, frame,
        indexed, unsigned,
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::{JoinSet, yield_now},
};

/// The interval of the honest client's calls.
const EVERY: Duration = Duration::from_millis(20);

/// The number of connections of a flood. Each is opened again when it is cut.
const CONNECTIONS: usize = 4;

/// A connection that takes this many frames, or that is still open after this time, is not cut.
const MOST: u32 = 50_000;
const LONGEST: Duration = Duration::from_secs(2);

/// Frames in one write.
const BATCH: u32 = 8;

/// A flood.
#[derive(Clone, Copy)]
struct Flood {
    name: &'static str,
    /// The client's settings.
    settings: &'static [u8],
    /// Frames before the flood.
    first: fn() -> Vec<u8>,
    /// The nth part of the flood.
    next: fn(u32) -> Vec<u8>,
    /// The number of frames in a part.
    frames: u32,
}

const WHOLE: u8 = END_STREAM | END_HEADERS;

/// The nth stream of a client.
const fn stream(number: u32) -> u32 {
    2 * number + 1
}

/// A flood without settings or first frames, whose parts are one frame each.
const fn simple(name: &'static str, next: fn(u32) -> Vec<u8>) -> Flood {
    Flood {
        name,
        settings: &[],
        first: Vec::new,
        next,
        frames: 1,
    }
}

/// A flood on one stream.
const fn on_stream(name: &'static str, first: fn() -> Vec<u8>, next: fn(u32) -> Vec<u8>) -> Flood {
    Flood {
        first,
        ..simple(name, next)
    }
}

/// A flood of streams that the peer must reset ("MadeYouReset"): HEADERS, and a frame that is a stream error.
const fn reset(name: &'static str, next: fn(u32) -> Vec<u8>) -> Flood {
    Flood {
        frames: 2,
        ..simple(name, next)
    }
}

/// HEADERS and another frame of the same stream.
fn two(number: u32, flags: u8, kind: u8, payload: &[u8]) -> Vec<u8> {
    let stream = stream(number);
    let head = frame(1, flags, stream, &unsigned("POST"));
    [head, frame(kind, 0, stream, payload)].concat()
}

fn floods() -> [Flood; 18] {
    let post = || frame(1, END_HEADERS, 1, &unsigned("POST"));
    let open_block = || frame(1, END_STREAM, 1, &unsigned("GET"));
    [
        simple("PING", |_| frame(6, 0, 0, &[0; 8])),
        simple("SETTINGS", |_| frame(4, 0, 0, &[])),
        simple("WINDOW_UPDATE", |_| frame(8, 0, 0, &[0, 0, 0, 1])),
        simple("PRIORITY", |_| frame(2, 0, 1, &[0, 0, 0, 3, 1])),
        simple("unknown frames", |_| frame(0xee, 0, 0, &[0; 5])),
        on_stream("empty DATA", post, |_| frame(0, 0, 1, &[])),
        simple("empty HEADERS", |number| {
            frame(1, WHOLE, stream(number), &[])
        }),
        on_stream("empty CONTINUATION", open_block, |_| frame(9, 0, 1, &[])),
        on_stream("CONTINUATION of 16 KB", open_block, |_| {
            frame(9, 0, 1, &field("x-long", &"x".repeat(16_000)))
        }),
        reset("RST_STREAM after HEADERS", |number| {
            two(number, WHOLE, 3, &[0, 0, 0, 8])
        }),
        reset("MadeYouReset: WINDOW_UPDATE of 0", |number| {
            two(number, END_HEADERS, 8, &[0; 4])
        }),
        reset("MadeYouReset: window too large", |number| {
            two(number, END_HEADERS, 8, &[0x7f, 0xff, 0xff, 0xff])
        }),
        reset("MadeYouReset: DATA after the end", |number| {
            two(number, WHOLE, 0, b"x")
        }),
        reset("MadeYouReset: PRIORITY of 4 bytes", |number| {
            two(number, END_HEADERS, 2, &[0; 4])
        }),
        simple("HPACK table churn", |number| {
            let entry = indexed(&format!("x-churn-{number}"), &"x".repeat(3_900));
            let block = [unsigned("GET"), entry].concat();
            frame(1, WHOLE, stream(number), &block)
        }),
        simple("header bomb", |number| {
            let entry = indexed("x-bomb", &"x".repeat(3_900));
            let block = [unsigned("GET"), entry, vec![NEWEST; 12_000]].concat();
            frame(1, WHOLE, stream(number), &block)
        }),
        Flood {
            settings: NO_WINDOW,
            ..simple("window of zero", |number| {
                frame(1, WHOLE, stream(number), &unsigned("GET"))
            })
        },
        Flood {
            frames: 0,
            ..simple("handshakes", |_| Vec::new())
        },
    ]
}

/// Every flood, on one process of each peer.
pub fn run(arena: &Arena) -> Vec<Line> {
    let floods = floods();
    let mut lines: Vec<_> = floods
        .iter()
        .map(|flood| Line::new("7", flood.name, metrics()))
        .collect();
    for attacked in arena.each() {
        let quiet = arena.quiet(&attacked);
        for (flood, line) in floods.iter().zip(&mut lines) {
            let (port, dialer) = (attacked.running.port, &arena.dialer);
            let cut = match flood.frames {
                0 => None,
                _ => {
                    let never = AtomicBool::new(false);
                    let cutting = flood.send(dialer, port, &never);
                    let (sent, is_cut) = arena.attackers.block_on(cutting);
                    Some(if is_cut {
                        f64::from(sent)
                    } else {
                        f64::INFINITY
                    })
                }
            };
            let served = under(arena, &attacked, *flood);
            let mut values = vec![cut];
            values.extend(honest_values(&served, &quiet));
            line.values[attacked.column] = values;
            // The peer finishes its work on the flood.
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    lines
}

fn metrics() -> Vec<Metric> {
    let mut metrics = vec![Metric {
        name: "cut after",
        unit: " frames",
        digits: 0,
        better: Better::Lower,
        bar: Some(f64::from(MOST)),
        slack: None,
    }];
    metrics.extend(honest_metrics());
    metrics
}

/// The honest client's calls during a flood.
fn under(arena: &Arena, attacked: &Attacked, flood: Flood) -> crate::honest::Served {
    let over = Arc::new(AtomicBool::new(false));
    let port = attacked.running.port;
    let mut attackers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (dialer, over) = (arena.dialer.clone(), Arc::clone(&over));
        let attacking = async move {
            while !over.load(Ordering::Relaxed) {
                match flood.frames {
                    0 => drop(dialer.tls(ATTACKER, port, Offer::Http2).await),
                    _ => {
                        flood.send(&dialer, port, &over).await;
                    }
                }
                yield_now().await;
            }
        };
        attackers.spawn_on(attacking, arena.attackers.handle());
    }
    let served = arena.honest(attacked, CALLS, EVERY).join().unwrap();
    over.store(true, Ordering::Relaxed);
    attackers.abort_all();
    arena
        .attackers
        .block_on(async { while attackers.join_next().await.is_some() {} });
    served
}

impl Flood {
    /// Sends the flood on one connection until it is cut, or until the measurement is over: the number of sent frames, and whether the
    /// peer ended the connection.
    async fn send(&self, dialer: &Dialer, port: u16, over: &AtomicBool) -> (u32, bool) {
        let Ok(tls) = dialer.http2(ATTACKER, port, self.settings).await else {
            return (0, true);
        };
        let (reader, mut writer) = tokio::io::split(tls);
        let reading = tokio::spawn(until_goaway(reader));
        let begun = Instant::now();
        let _ = writer.write_all(&(self.first)()).await;
        let (mut sent, mut parts) = (0, 0);
        while !over.load(Ordering::Relaxed) && sent < MOST && begun.elapsed() < LONGEST {
            let batch = (parts..parts + BATCH).flat_map(self.next);
            let batch: Vec<u8> = batch.collect();
            let written = tokio::time::timeout(LONGEST, async {
                writer.write_all(&batch).await?;
                writer.flush().await
            });
            // A peer that reads no more has stopped the flood as well as one that ends the connection.
            let is_written = matches!(written.await, Ok(Ok(())));
            if reading.is_finished() || !is_written {
                return (sent + BATCH * self.frames, true);
            }
            parts += BATCH;
            sent += BATCH * self.frames;
            yield_now().await;
        }
        // The peer's last bytes may be on their way.
        if sent >= MOST {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let is_cut = reading.is_finished();
        reading.abort();
        (sent, is_cut)
    }
}

/// Reads until GOAWAY, or the end.
async fn until_goaway(mut reader: tokio::io::ReadHalf<Tls>) {
    let mut read = Vec::new();
    loop {
        while let Some(length) = read.get(..3) {
            let length =
                usize::from(length[0]) << 16 | usize::from(length[1]) << 8 | usize::from(length[2]);
            if read.len() < 9 + length {
                break;
            }
            if read[3] == 7 {
                return;
            }
            read.drain(..9 + length);
        }
        if !matches!(reader.read_buf(&mut read).await, Ok(1..)) {
            return;
        }
    }
}
