//! Rows 1 and 4: the time after which slow connections are gone, and the requests that a closed window holds at the core.

use crate::{
    arena::{Arena, figure},
    core_server::Core,
    honest::{get, signed},
    peers::{pool::Pool, stage::OTHER_PSU},
    slow::Slow,
    table::{Better, Line, Metric},
    wire::{ATTACKER, Dialer, END_HEADERS, END_STREAM, NO_WINDOW, block, drain, frame},
};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::AsyncWriteExt,
    time::{sleep, timeout},
};

/// The longest that a connection is watched.
const WATCHED: Duration = Duration::from_secs(75);

/// Connections with a closed window, and the requests on each: as many as every peer allows.
const CONNECTIONS: usize = 12;
const STREAMS: usize = 64;

const GONE: Metric = Metric {
    name: "gone after",
    unit: " s",
    digits: 1,
    better: Better::Lower,
    bar: None,
    slack: Some(1.0),
};

/// All peers and all kinds at once.
pub fn run(arena: &Arena) -> Vec<Line> {
    let call = get("/v1/accounts/1/transactions", OTHER_PSU);
    let pool = signed(&arena.stage.other, &call, CONNECTIONS * STREAMS);
    let pool = Arc::new(pool);
    let mut lines: Vec<_> = Slow::ALL
        .iter()
        .map(|slow| {
            let bar = Some(slow.bar());
            Line::new("1", slow.name(), vec![Metric { bar, ..GONE }])
        })
        .collect();
    lines.push(zero_window());
    let peers: Vec<_> = arena.each().collect();
    let watched: Vec<_> = peers
        .iter()
        .map(|attacked| {
            let (dialer, core) = (arena.dialer.clone(), attacked.core.clone());
            let watching = watch(dialer, attacked.running.port, Arc::clone(&pool), core);
            arena.attackers.spawn(watching)
        })
        .collect();
    for (attacked, watched) in peers.iter().zip(watched) {
        let values = arena.attackers.block_on(watched).unwrap();
        for (line, values) in lines.iter_mut().zip(values) {
            line.values[attacked.column] = values;
        }
    }
    lines
}

fn zero_window() -> Line {
    let held = Metric {
        name: "held at the core",
        unit: "",
        digits: 0,
        better: Better::Lower,
        bar: Some(64.0),
        slack: None,
    };
    let gone = Metric {
        bar: Some(17.0),
        ..GONE
    };
    let what = format!("window of zero, {} answers of 1 MiB", CONNECTIONS * STREAMS);
    Line::new("4", what, vec![held, gone])
}

/// The values of one peer for each line.
async fn watch(dialer: Dialer, port: u16, pool: Arc<Pool>, core: Core) -> Vec<Vec<Option<f64>>> {
    let slow = Slow::ALL.map(|slow| {
        let dialer = dialer.clone();
        tokio::spawn(async move {
            until(async move {
                let _ = slow.hold(&dialer, ATTACKER, port, None).await;
            })
            .await
        })
    });
    let held = hold(&dialer, port, &pool, &core).await;
    let mut values = Vec::new();
    for slow in slow {
        values.push(vec![Some(slow.await.unwrap())]);
    }
    values.push(held);
    values
}

/// The seconds until a future ends; infinite if it takes longer than is watched.
async fn until(future: impl Future<Output = ()>) -> f64 {
    let begun = Instant::now();
    match timeout(WATCHED, future).await {
        Ok(()) => begun.elapsed().as_secs_f64(),
        Err(_) => f64::INFINITY,
    }
}

/// Asks for large answers with a window of zero: the requests that the core has after three seconds, and the time until it has none.
async fn hold(dialer: &Dialer, port: u16, pool: &Pool, core: &Core) -> Vec<Option<f64>> {
    let mut holding = Vec::new();
    for connection in 0..CONNECTIONS {
        let asked = ask(dialer, port, pool, connection * STREAMS).await;
        if let Ok(mut tls) = asked {
            holding.push(tokio::spawn(async move { drain(&mut tls).await }));
        }
    }
    let begun = Instant::now();
    sleep(Duration::from_secs(3)).await;
    let held = core.now();
    let emptied = until(async {
        while core.now() > 0 {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let seconds = match emptied.is_finite() && held > 0 {
        true => begun.elapsed().as_secs_f64(),
        false => emptied,
    };
    holding.iter().for_each(tokio::task::JoinHandle::abort);
    vec![Some(figure(held)), Some(seconds)]
}

/// A connection with a window of zero and many requests.
async fn ask(
    dialer: &Dialer,
    port: u16,
    pool: &Pool,
    first: usize,
) -> io::Result<crate::wire::Tls> {
    let mut tls = dialer.http2(ATTACKER, port, NO_WINDOW).await?;
    for number in 0..STREAMS {
        let (method, path, headers, _) = pool.request(first + number);
        let stream = u32::try_from(2 * number + 1).unwrap();
        let block = block(method, path, &headers);
        tls.write_all(&frame(1, END_STREAM | END_HEADERS, stream, &block))
            .await?;
    }
    tls.flush().await?;
    Ok(tls)
}
