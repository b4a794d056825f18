//! Rows 10 and 11: lines in the log by connections that speak no TLS, and the control listener under slow connections.

use crate::{
    arena::{Arena, Attacked, figure},
    honest::ready,
    table::{Better, Line, Metric},
    wire::{ATTACKER, tcp},
};
use std::{
    fs,
    time::{Duration, Instant},
};
use tokio::{io::AsyncWriteExt, time::sleep};

/// Connections without TLS.
const PLAIN: usize = 1_000;

/// Slow connections of the control listener.
const SLOW: [usize; 2] = [300, 2_000];

/// Probes beside them.
const PROBES: usize = 20;

/// Row 10.
pub fn noise(arena: &Arena) -> Vec<Line> {
    let lines = Metric {
        name: "log",
        unit: " lines/s",
        digits: 0,
        better: Better::Lower,
        bar: Some(10.0),
        slack: None,
    };
    let what = format!("{PLAIN} connections without TLS");
    let mut line = Line::new("10", what, vec![lines]);
    for attacked in arena.each() {
        line.values[attacked.column] = vec![Some(logged(arena, &attacked))];
    }
    vec![line]
}

/// The lines of the log for each second of the attack.
fn logged(arena: &Arena, attacked: &Attacked) -> f64 {
    let name = ["portvakt", "nginx", "haproxy"][attacked.column];
    let count = || {
        let files = ["log", "err"].map(|end| arena.stage.folder().join(format!("{name}.{end}")));
        let lines = files.map(|file| fs::read_to_string(file).unwrap_or_default().lines().count());
        lines.iter().sum::<usize>()
    };
    let (before, begun) = (count(), Instant::now());
    let port = attacked.running.port;
    arena.attackers.block_on(async {
        for _ in 0..PLAIN {
            if let Ok(mut stream) = tcp(ATTACKER, port).await {
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                crate::wire::drain(&mut stream).await;
            }
        }
        // A log may be written late.
        sleep(Duration::from_secs(1)).await;
    });
    figure(count() - before) / begun.elapsed().as_secs_f64()
}

/// Row 11; the peers have no such listener.
pub fn probes(arena: &Arena) -> Vec<Line> {
    let longest = Metric {
        name: "/readyz",
        unit: " ms",
        digits: 1,
        better: Better::Lower,
        bar: Some(100.0),
        slack: None,
    };
    let Some(attacked) = arena.start(0, None) else {
        return Vec::new();
    };
    let control = attacked.running.control.unwrap();
    let lines = SLOW.map(|count| {
        let what = format!("{count} slow connections to the control listener");
        let mut line = Line::new("11", what, vec![longest]);
        let longest = arena.attackers.block_on(async {
            let mut held = Vec::new();
            for _ in 0..count {
                if let Ok(mut stream) = tcp(ATTACKER, control).await {
                    let _ = stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: ").await;
                    held.push(stream);
                }
            }
            let mut longest = 0.0_f64;
            for _ in 0..PROBES {
                longest = longest.max(ready(control).await);
                held.extend(tcp(ATTACKER, control).await);
            }
            longest
        });
        line.values[attacked.column] = vec![Some(longest)];
        line
    });
    lines.into()
}
