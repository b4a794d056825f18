//! The cost of certificate checks: for a warm request, for a new certificate, and for a flood of invalid ones.
//!
//! `cargo bench --features sandbox --bench trust` runs it. The flood is measured once, with the memory that remains in use.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, and prints what it found"
)]

use base64::{Engine, engine::general_purpose::STANDARD};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use openssl::{hash::MessageDigest, pkey::PKey, sign::Signer, x509::X509};
use portvakt::{
    clock::{Clock, Stopwatch, Timestamp},
    trust::{
        Anchors, CertificateSlot, Revocation, Trust,
        revocation::{RevocationSettings, RevocationStatus},
    },
};
use portvakt_development_pki as pki;
use std::{hint::black_box, sync::Arc, time::Duration};
use time::OffsetDateTime;

/// The time of all checks: 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

/// The number of invalid certificates in the flood.
const FLOOD: u32 = 100_000;

/// A root as the anchor, its issuing CA, and one CRL of each.
struct World {
    root: pki::Ca,
    issuing: pki::Ca,
    lists: Vec<Vec<u8>>,
}

impl World {
    fn new() -> Self {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let issuing = root.issue_ca(&pki::CaSpec::default()).unwrap();
        let at = |seconds: i64| OffsetDateTime::from_unix_timestamp(seconds).unwrap();
        let now = i64::try_from(NOW.unix()).unwrap();
        let revoked: Vec<_> = (0..10_000_u32)
            .map(|number| [&[0x70][..], &number.to_be_bytes()].concat())
            .collect();
        let list = |ca: &pki::Ca| ca.crl(&revoked, at(now - 60), at(now + 3_600)).unwrap();
        let lists = vec![list(&root), list(&issuing)];
        Self {
            root,
            issuing,
            lists,
        }
    }

    fn trust(&self, revocation: Option<&Arc<Revocation>>) -> Trust {
        let der = |ca: &pki::Ca| X509::from_der(ca.der()).unwrap();
        let anchors =
            Anchors::of_operator(vec![der(&self.root)], vec![der(&self.issuing)]).unwrap();
        Trust::new(anchors).with_revocation(revocation.cloned())
    }
}

fn bench(criterion: &mut Criterion) {
    let world = World::new();
    let settings = RevocationSettings {
        lists: world.lists.clone(),
        ..RevocationSettings::default()
    };
    let revocation = Arc::new(Revocation::new(settings).unwrap());
    revocation.start(&Clock::standing(NOW)).unwrap();
    let issued = world.issuing.issue(&pki::LeafSpec::default()).unwrap();
    let presented: Vec<u8> = STANDARD.encode(&issued.der).into();

    let mut group = criterion.benchmark_group("trust");
    let trust = world.trust(Some(&revocation));
    let slot = CertificateSlot::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    // Cached once a signature with the certificate has been verified.
    let identified = trust.identify(&presented, None, NOW).unwrap();
    let key = PKey::private_key_from_pem(issued.key_pem.as_bytes()).unwrap();
    let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
    let signature = signer.sign_oneshot_to_vec(b"message").unwrap();
    let verified = identified.verify(b"message", &signature).unwrap();
    trust.keep(&verified, Some(&slot));
    let warm = |slot: Option<&CertificateSlot>| {
        let identified = trust.identify(black_box(&presented), slot, NOW).unwrap();
        let judged = identified.certificate().standing(&revocation, NOW);
        assert_eq!(black_box(judged), RevocationStatus::Good);
    };
    runtime.block_on(async { warm(None) });
    group.bench_function("warm, in the connection's slot", |bencher| {
        bencher.iter(|| warm(Some(&slot)));
    });
    group.bench_function("warm, in the cache", |bencher| {
        bencher.iter(|| warm(None));
    });
    group.bench_function("revocation alone", |bencher| {
        bencher.iter(|| black_box(identified.certificate()).standing(&revocation, NOW));
    });
    group.bench_function("cold", |bencher| {
        bencher.iter_batched(
            || world.trust(Some(&revocation)),
            |trust| trust.identify(black_box(&presented), None, NOW).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
    flood(&world);
}

/// A certificate that a caller presents, different for each number.
type Presented<'a> = Box<dyn Fn(u32) -> Vec<u8> + 'a>;

/// Different certificates with one of three faults: forged, of another type, and not a certificate.
fn flood(world: &World) {
    let forged = world.issuing.issue(&pki::LeafSpec::default()).unwrap().der;
    let wrong_type = {
        let spec = pki::LeafSpec {
            qc_type: None,
            ..pki::LeafSpec::default()
        };
        world.issuing.issue(&spec).unwrap()
    };
    let kinds: [(&str, Presented<'_>); 3] = [
        (
            "a forged signature",
            Box::new(|number| {
                let mut der = forged.clone();
                let at = der.len() - 4;
                for (byte, other) in der.iter_mut().skip(at).zip(number.to_be_bytes()) {
                    *byte ^= other;
                }
                STANDARD.encode(der).into()
            }),
        ),
        (
            "of another type, in another PEM text each time",
            Box::new(|number| {
                STANDARD
                    .encode(format!("{number:08}\n{}", wrong_type.pem))
                    .into()
            }),
        ),
        (
            "no certificate",
            Box::new(|number| {
                STANDARD
                    .encode([[0x30; 1_000].as_slice(), &number.to_be_bytes()].concat())
                    .into()
            }),
        ),
    ];
    for (what, make) in kinds {
        let trust = world.trust(None);
        let before = resident();
        let (mut took, mut bad) = (Duration::ZERO, 0_u32);
        for number in 1..=FLOOD {
            let presented = make(number);
            let watch = Stopwatch::start();
            bad += u32::from(trust.identify(&presented, None, NOW).is_err());
            took += watch.elapsed();
        }
        println!(
            "{bad} certificates, {what}: {:.1} s, {:.1} µs each, {} KiB more resident",
            took.as_secs_f64(),
            took.as_secs_f64() * 1e6 / f64::from(FLOOD),
            resident().saturating_sub(before)
        );
    }
}

/// The memory of the process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or_default()
}

criterion_group!(benches, bench);
criterion_main!(benches);
