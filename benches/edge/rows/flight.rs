//! Row 3: payments whose streams are reset at once, by one TPP, while another one calls.

use crate::{
    arena::{Arena, Attacked, CALLS, figure, honest_metrics, honest_values},
    honest::Served,
    peers::{
        pool::{Call, Pool, payment_body},
        stage::OTHER_PSU,
    },
    table::{Better, Line, Metric},
    wire::{ATTACKER, Dialer, END_HEADERS, END_STREAM, block, frame},
};
use std::{io, time::Duration};
use tokio::io::AsyncWriteExt;

/// Payments, and how many of them are sent on one connection.
const PAYMENTS: usize = 1_000;
const ON_ONE: usize = 50;

/// The interval of the honest client's calls.
const EVERY: Duration = Duration::from_millis(13);

/// The highest number of requests that the core has, and the honest client's calls.
pub fn run(arena: &Arena) -> Vec<Line> {
    let mut metrics = vec![Metric {
        name: "most at the core",
        unit: "",
        digits: 0,
        better: Better::Lower,
        // 64 of the attacker, and one of the honest client.
        bar: Some(65.0),
        slack: None,
    }];
    metrics.extend(honest_metrics());
    let mut line = Line::new(
        "3",
        format!("{PAYMENTS} POSTs, each reset at once"),
        metrics,
    );
    for attacked in arena.each() {
        let quiet = arena.quiet(&attacked);
        let served = attack(arena, &attacked);
        let mut values = vec![Some(figure(attacked.core.most()))];
        values.extend(honest_values(&served, &quiet));
        line.values[attacked.column] = values;
    }
    vec![line]
}

/// The honest client's calls during the attack.
fn attack(arena: &Arena, attacked: &Attacked) -> Served {
    let pool = crate::honest::signed(&arena.stage.other, &payment(), PAYMENTS);
    let (dialer, port) = (arena.dialer.clone(), attacked.running.port);
    let attacking = arena.attackers.spawn(async move {
        for first in (0..PAYMENTS).step_by(ON_ONE) {
            let _ = post_and_reset(&dialer, port, &pool, first).await;
        }
    });
    let served = arena.honest(attacked, CALLS, EVERY).join().unwrap();
    attacking.abort();
    served
}

fn payment() -> Call {
    let mut call = crate::honest::get(
        "/v1/payments/norwegian-cross-border-credit-transfers",
        OTHER_PSU,
    );
    call.method = "POST";
    call.body = Some(payment_body());
    let more = [
        ("Content-Type", "application/json"),
        ("x-accept-fix", "amount-as-string"),
        ("TPP-Session-ID", "5f0c3f8e-8d1b-4b6e-9a39-2f3d7f0f1a11"),
    ];
    call.headers
        .extend(more.map(|(name, value)| (name, value.to_owned())));
    call
}

/// Sends requests on one connection, each with its body, and resets each stream when the peer has had a moment to forward it.
async fn post_and_reset(dialer: &Dialer, port: u16, pool: &Pool, first: usize) -> io::Result<()> {
    let mut tls = dialer.http2(ATTACKER, port, &[]).await?;
    for number in 0..ON_ONE {
        let (method, path, mut headers, body) = pool.request(first + number);
        let body = body.unwrap_or_default();
        headers.push(("content-length".to_owned(), body.len().to_string()));
        let stream = u32::try_from(2 * number + 1).unwrap();
        let request = [
            frame(1, END_HEADERS, stream, &block(method, path, &headers)),
            frame(0, END_STREAM, stream, body.as_bytes()),
        ];
        tls.write_all(&request.concat()).await?;
        tls.flush().await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
        tls.write_all(&frame(3, 0, stream, &[0, 0, 0, 8])).await?;
        tls.flush().await?;
    }
    // Open streams end with the connection, which stays for a while.
    tokio::spawn(async move {
        let draining = crate::wire::drain(&mut tls);
        let _ = tokio::time::timeout(Duration::from_secs(5), draining).await;
    });
    Ok(())
}
