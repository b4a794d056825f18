//! Rows 1 and 2: many slow connections from one address, while the honest client calls from another.

use crate::{
    arena::{Arena, Attacked, CALLS, honest_metrics, honest_values},
    honest::Served,
    slow::Slow,
    table::{Line, PEERS},
    wire::{ATTACKER, one_of},
};
use std::{net::Ipv4Addr, time::Duration};
use tokio::time::{Instant, sleep_until};

/// The interval of the honest client's calls.
const EVERY: Duration = Duration::from_millis(27);

/// How many connections are opened at once, and the time in which all are opened if the peer keeps up.
const OPENING: usize = 64;
const WITHIN: Duration = Duration::from_secs(6);

/// Silent connections beyond the soft limit on descriptors.
const DESCRIPTORS: u64 = 1_024;
const SILENT: usize = 1_100;

/// Row 1: each kind, on a peer that was started anew.
pub fn slow(arena: &Arena) -> Vec<Line> {
    let one_address = Slow::ALL.map(|slow| {
        let what = format!("{} × {} from one address", arena.crowd, slow.name());
        let mut line = Line::new("1", what, honest_metrics());
        for attacked in arena.each() {
            let (served, quiet) = besiege(arena, &attacked, slow, arena.crowd, |_| ATTACKER);
            line.values[attacked.column] = honest_values(&served, &quiet);
        }
        eprint!("{}", line.markdown());
        line
    });
    one_address.into()
}

/// Row 2: a soft limit of 1024 descriptors, and more silent connections than that, from many addresses.
pub fn descriptors(arena: &Arena) -> Vec<Line> {
    let what = format!("{SILENT} silent connections, nofile {DESCRIPTORS}");
    let mut line = Line::new("2", what, honest_metrics());
    for column in 0..PEERS {
        if let Some(attacked) = arena.start(column, Some(DESCRIPTORS)) {
            let (served, quiet) = besiege(arena, &attacked, Slow::Silent, SILENT, one_of);
            line.values[column] = honest_values(&served, &quiet);
        }
    }
    vec![line]
}

/// The honest client's calls while slow connections are opened and held, and before.
fn besiege(
    arena: &Arena,
    attacked: &Attacked,
    slow: Slow,
    count: usize,
    from: fn(usize) -> Ipv4Addr,
) -> (Served, Served) {
    let quiet = arena.quiet(attacked);
    let (port, begun) = (attacked.running.port, Instant::now());
    let every = WITHIN / u32::try_from(count).unwrap();
    let mut crowd = tokio::task::JoinSet::new();
    for first in 0..OPENING {
        let dialer = arena.dialer.clone();
        let opener = async move {
            let mut held = tokio::task::JoinSet::new();
            for number in (first..count).step_by(OPENING) {
                sleep_until(begun + every * u32::try_from(number).unwrap()).await;
                let dialer = dialer.clone();
                let (opened, is_open) = tokio::sync::oneshot::channel();
                held.spawn(async move {
                    let held = slow.hold(&dialer, from(number), port, Some(opened));
                    let _ = held.await;
                });
                // The next one follows when this one is open or has failed.
                let _ = is_open.await;
            }
            while held.join_next().await.is_some() {}
        };
        crowd.spawn_on(opener, arena.attackers.handle());
    }
    let served = arena.honest(attacked, CALLS, EVERY).join().unwrap();
    crowd.abort_all();
    arena
        .attackers
        .block_on(async { while crowd.join_next().await.is_some() {} });
    (served, quiet)
}
