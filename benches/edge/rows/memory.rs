//! Rows 5 and 6: the memory that connections take before a signature on them has been verified.

use super::records::endless_head;
use crate::{
    arena::{Arena, Attacked, figure},
    table::{Better, Line, Metric},
    wire::{
        Dialer, END_HEADERS, NEWEST, NO_WINDOW, Offer, Tls, field, frame, indexed, one_of, unsigned,
    },
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

/// Streams of a connection, and the bytes that are sent on each.
const STREAMS: u32 = 64;
const PART: [u8; 1_000] = [b'x'; 1_000];

/// The longest that a connection waits for the peer to read.
const PATIENCE: Duration = Duration::from_millis(500);

/// The highest number of KiB that a connection may take.
const BAR: f64 = 256.0;

/// The contents of a connection.
#[derive(Clone, Copy)]
enum Load {
    /// Half of a head of this many KiB over HTTP/1.1.
    HalfHead(usize),
    /// Requests over HTTP/2 whose bodies do not end.
    OpenPosts,
    /// Requests with many tiny fields, each sent in one byte, and a window of zero.
    TinyFields,
    /// Requests with as many large fields as a head may have, each sent in one byte, and a window of zero.
    LargeFields,
}

/// Each load, on a peer that was started anew.
pub fn run(arena: &Arena) -> Vec<Line> {
    let loads = [
        ("5", Load::HalfHead(14), 1_000, "half heads of 14 KiB"),
        ("5", Load::HalfHead(31), 1_000, "half heads of 31 KiB"),
        (
            "6",
            Load::OpenPosts,
            1_000,
            "HTTP/2 connections × 64 open POSTs",
        ),
        (
            "6",
            Load::TinyFields,
            250,
            "HTTP/2 connections × 64 heads of 90 tiny fields, window of zero",
        ),
        (
            "6",
            Load::LargeFields,
            250,
            "HTTP/2 connections × 64 heads of 28 KiB in 4 KiB, window of zero",
        ),
    ];
    let lines = loads.map(|(row, load, count, what)| {
        let memory = Metric {
            name: "each",
            unit: " KiB",
            digits: 0,
            better: Better::Lower,
            bar: Some(BAR),
            slack: Some(8.0),
        };
        let mut line = Line::new(row, format!("{count} {what}"), vec![memory]);
        for attacked in arena.each() {
            line.values[attacked.column] = grow(arena, &attacked, load, count);
        }
        eprint!("{}", line.markdown());
        line
    });
    lines.into()
}

/// The growth of the peer's memory by each connection; `None` if the peer has ended most of them, because it takes no such load, or if
/// the peer itself has ended.
fn grow(arena: &Arena, attacked: &Attacked, load: Load, count: usize) -> Vec<Option<f64>> {
    arena.warm(attacked);
    let port = attacked.running.port;
    let before = attacked.running.resident();
    let mut most = before;
    let mut held = arena.attackers.block_on(async {
        let mut held = Vec::new();
        let mut opening = tokio::task::JoinSet::new();
        for first in 0..16 {
            let dialer = arena.dialer.clone();
            opening.spawn(async move {
                let mut held = Vec::new();
                for number in (first..count).step_by(16) {
                    held.extend(load.open(&dialer, port, number).await.ok());
                }
                held
            });
        }
        while let Some(some) = opening.join_next().await {
            held.extend(some.unwrap());
        }
        held
    });
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(100));
        most = most.max(attacked.running.resident());
    }
    let ended = arena.attackers.block_on(async {
        let mut ended = count - held.len();
        for tls in &mut held {
            ended += usize::from(has_ended(tls).await);
        }
        ended
    });
    if 2 * ended > count {
        eprintln!("{ended} of {count} connections were ended");
        return vec![None];
    }
    // The memory of a process that has ended reads 0.
    if before == 0 || attacked.running.resident() == 0 {
        eprintln!("the peer has ended");
        return vec![None];
    }
    drop(held);
    let grown = f64::from(u32::try_from(most - before).unwrap());
    vec![Some(grown / figure(count))]
}

/// Whether the peer has ended a connection. What it sent before is discarded.
async fn has_ended(tls: &mut Tls) -> bool {
    let mut some = [0; 4_096];
    while let Ok(read) = timeout(Duration::from_millis(1), tls.read(&mut some)).await {
        if !matches!(read, Ok(1..)) {
            return true;
        }
    }
    false
}

impl Load {
    /// Opens a connection and sends the load.
    async fn open(self, dialer: &Dialer, port: u16, number: usize) -> io::Result<Tls> {
        let from = one_of(number);
        let mut tls = match self {
            Self::HalfHead(_) => dialer.tls(from, port, Offer::Http1).await?,
            Self::OpenPosts => dialer.http2(from, port, &[]).await?,
            Self::TinyFields | Self::LargeFields => dialer.http2(from, port, NO_WINDOW).await?,
        };
        let bytes = match self {
            Self::HalfHead(size) => endless_head(size * 1024),
            _ => (0..STREAMS)
                .flat_map(|number| self.stream(2 * number + 1, number == 0))
                .collect(),
        };
        let sending = async {
            tls.write_all(&bytes).await?;
            tls.flush().await
        };
        // A peer may read no more, or have ended the connection: then it holds what it has read.
        let _ = timeout(PATIENCE, sending).await;
        Ok(tls)
    }

    /// The frames of one stream.
    fn stream(self, stream: u32, is_first: bool) -> Vec<u8> {
        let repeated = |entry: &[u8], again: usize| {
            // The entry stays in the receiver's table for the other streams.
            let entry = if is_first { entry } else { &[] };
            let block = [&unsigned("POST")[..], entry, &vec![NEWEST; again]].concat();
            frame(1, END_HEADERS, stream, &block)
        };
        match self {
            Self::HalfHead(_) => Vec::new(),
            Self::OpenPosts => {
                let block = [unsigned("POST"), field("content-type", "application/json")].concat();
                [
                    frame(1, END_HEADERS, stream, &block),
                    frame(0, 0, stream, &PART),
                ]
                .concat()
            }
            Self::TinyFields => repeated(&indexed("x", ""), 90),
            Self::LargeFields => repeated(&indexed("x", &"x".repeat(3_900)), 7),
        }
    }
}
