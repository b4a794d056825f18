//! The cost of the payload stage for a typical payment, compared with `serde_json::from_slice::<Value>` on the same bytes in the
//! same run; and a check that hostile bodies take at most linear time.
//!
//! `cargo bench --bench payload` runs it. Before criterion's figures it prints both on one line, with allocations.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, and prints what it found"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jiff::civil::{Date, date};
use portvakt::interface::{operations::Schema, payload};
use serde_json::Value;
use std::hint::black_box;

const KIB: usize = 1024;

/// A payment as TPPs send it, in which every rule has a member to check.
const PAYMENT: &str = concat!(
    r#"{"instructedAmount":{"amount":"150000.00","currency":"NOK"},"creditorName":"Werkzeugbau Müller GmbH","#,
    r#""creditorAgent":"COBADEFFXXX","creditorAccount":{"iban":"DE89370400440532013000","currency":"EUR"},"#,
    r#""creditorAddress":{"street":"Musterweg","buildingNumber":"1","postalCode":"10115","city":"Berlin","country":"DE"},"#,
    r#""debtorAccount":{"iban":"NO9386011117947","currency":"NOK"},"#,
    r#""remittanceInformationUnstructured":"Faktura 4711, kundenummer 12345, forfall 15. januar","purposeCode":"INVS","#,
    r#""requestedExecutionDate":"2026-01-15","regulatoryReportingCode":"14","regulatoryReportingInformation":"Machine tools"}"#,
);

fn today() -> Date {
    date(2026, 1, 15)
}

fn check(body: &[u8]) -> bool {
    payload::check(
        black_box(body),
        Schema::CrossBorderPayment,
        &[],
        today(),
        &payload::Ibans::default(),
    )
    .is_ok()
}

fn value(body: &[u8]) -> Value {
    serde_json::from_slice(black_box(body)).unwrap()
}

fn typical(criterion: &mut Criterion) {
    let body = PAYMENT.as_bytes();
    assert!(check(body));
    let ours = allocation_counter::measure(|| {
        black_box(check(body));
    });
    let theirs = allocation_counter::measure(|| drop(black_box(value(body))));
    println!(
        "{} bytes: {} allocations of {} bytes; serde_json::Value: {} of {}",
        body.len(),
        ours.count_total,
        ours.bytes_total,
        theirs.count_total,
        theirs.bytes_total
    );
    let mut group = criterion.benchmark_group("payload");
    group.bench_function("a payment, every rule", |bencher| {
        bencher.iter(|| check(body))
    });
    group.bench_function("serde_json::Value of the same bytes", |bencher| {
        bencher.iter(|| value(body));
    });
    group.finish();
}

/// A repeated piece, cut to a length, within a frame that makes it a body.
type Hostile = (&'static str, fn(usize) -> String);

const HOSTILE: &[Hostile] = &[
    ("brackets", |length| "[".repeat(length)),
    ("digits", |length| format!("[{}]", "9".repeat(length))),
    ("zeros in an array", |length| {
        format!("[{}0]", "0,".repeat(length / 2))
    }),
    ("escapes", |length| {
        format!("\"{}\"", "\\u00e6".repeat(length / 6))
    }),
    ("a name", |length| {
        format!("{{\"creditorName\":\"{}\"}}", "ø".repeat(length / 2))
    }),
    ("names that differ at their end", |length| {
        let names = (0..length / 24).map(|n| format!("\"xxxxxxxxxxxx{n:08}\":0"));
        format!("{{{}}}", names.collect::<Vec<_>>().join(","))
    }),
    ("payments of a basket", |length| {
        format!("{{\"paymentIds\":[{}\"\"]}}", "\"1\",".repeat(length / 4))
    }),
];

/// The figures are bytes per second: the rate at 64 KiB must not be below the rate at 1 KiB.
fn hostile(criterion: &mut Criterion) {
    let ibans = payload::Ibans::default();
    for (name, make) in HOSTILE {
        let mut group = criterion.benchmark_group(format!("hostile: {name}"));
        for size in [KIB, 16 * KIB, 64 * KIB] {
            let body = make(size);
            group.throughput(Throughput::Bytes(u64::try_from(body.len()).unwrap()));
            group.bench_function(format!("{} KiB", size / KIB), |bencher| {
                bencher.iter(|| {
                    let body = black_box(body.as_bytes());
                    for schema in [Schema::CrossBorderPayment, Schema::Basket] {
                        black_box(payload::check(body, schema, &[], today(), &ibans).is_ok());
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, typical, hostile);
criterion_main!(benches);
