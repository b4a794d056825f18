//! Upper bounds on times, which hold only on a machine that does nothing else: `make test-systems` runs these tests one after the other.

use super::{
    FAULTS, Stage, server, shown,
    token::{Hsm, key, set_certificate, set_listener_key},
};
use crate::harness::{Gate, Tls, eventually, pki::Key};
use openssl::ssl::SslVersion;
use portvakt::clock::Stopwatch;
use std::{thread, time::Duration};

/// The callers at the same time, and the handshakes of each.
const CALLERS: usize = 64;
const HANDSHAKES: usize = 20;

/// The service is back soon after the server's return: two seconds on a machine that has time (docs/hsm.md), and never more than ten.
#[test]
#[ignore = "a bound on a time: make test-systems"]
fn the_service_is_back_soon() {
    let mut stage = Stage::start();
    let connector = Tls::default().connector(stage.gate.world());
    for fault in &FAULTS {
        eventually("the service", || stage.serves(&connector));
        (fault.begin)(&mut stage.hsm);
        eventually(fault.name, || {
            stage.not_well().contains("the HSM is unavailable: ")
        });
        (fault.end)(&mut stage.hsm);
        let took = stage.back();
        println!("{}: service back after {took:?}", fault.name);
        assert!(took < Duration::from_secs(10), "{}: {took:?}", fault.name);
    }
}

/// The 99th percentile of handshakes of 64 callers, with the key in a file and in SoftHSM. It is printed: what it is in a bank is the HSM's.
#[test]
#[ignore = "a bound on a time: make test-systems"]
fn handshakes_beside_those_with_a_key_in_a_file() {
    let hsm = Hsm::start();
    for (id, kind) in [(1, Key::EcP256), (2, Key::Rsa2048)] {
        let issued = server(&kind);
        let label = format!("key-{id}");
        hsm.import(&label, &issued.key_pem, id);
        let algorithms = match kind {
            Key::EcP256 => "ECDSA+SHA256",
            _ => "RSA-PSS+SHA256",
        };
        for (place, key) in [
            ("a file", "server.key"),
            (
                "SoftHSM",
                key(&label, ", sessions: 64, timeout: 10s").as_str(),
            ),
        ] {
            let gate = Gate::builder()
                .threads(2)
                .listener("max_connections_per_address: off")
                .private_file("server.key", issued.key_pem.as_str())
                .for_program();
            set_certificate(&gate, &issued);
            set_listener_key(&gate, key);
            let _program = hsm.run(&gate);
            let mut took = handshakes(&gate, algorithms);
            took.sort();
            // Where the machine is so slow that the library takes longer than its timeout, handshakes fail, and are not counted.
            assert!(!took.is_empty(), "{place}: no handshake succeeded");
            let [p50, p99] = [50, 99].map(|percent| took[took.len() * percent / 100]);
            println!(
                "{algorithms}, key in {place}: {} handshakes, p50 {p50:?}, p99 {p99:?}",
                took.len()
            );
        }
    }
}

/// The times of the handshakes of all callers that succeeded.
fn handshakes(gate: &Gate, algorithms: &str) -> Vec<Duration> {
    let shake = || {
        let times = (0..HANDSHAKES).map(|_| {
            let since = Stopwatch::start();
            let shaken = shown(gate.address(), SslVersion::TLS1_3, algorithms);
            shaken.is_ok().then(|| since.elapsed())
        });
        times.flatten().collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(shake)).collect();
        let times = callers.into_iter().map(|caller| caller.join().unwrap());
        times.flatten().collect()
    })
}
