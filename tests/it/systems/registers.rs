//! A register of the EBA's real size is replaced by reload while requests come (CRT-8, CRT-14).
//!
//! It asserts that no request fails and that the new register holds, and prints the latencies beside those before: a figure for the notes,
//! no bound.

use crate::{
    harness::{Call, Connection, Gate, accepted, let_pass, refused},
    reload::End,
};
use portvakt::clock::{Clock, Stopwatch};
use serde_json::json;
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// As many as the EBA's register has, and the institutions among them; the rest are agents.
const ENTITIES: usize = 258_000;
const INSTITUTIONS: usize = 6_000;

const CLIENTS: usize = 4;

/// A moment of a bank's day: each client calls twenty-five times a second at most.
const PAUSE: Duration = Duration::from_millis(40);

/// The requests that are measured before the first reload.
const BEFORE: usize = 1_000;

const RELOADS: usize = 4;

/// Writes the register in which the world's TPP has these services.
fn write(path: &Path, services: &[&str]) {
    let version: String = Clock::System.now().to_string();
    let version: String = version.chars().filter(char::is_ascii_digit).collect();
    let name = "x".repeat(300);
    let new = path.with_extension("new");
    let mut out = BufWriter::new(File::create(&new).unwrap());
    write!(out, "[[],[").unwrap();
    for index in 0..ENTITIES {
        let (id, services) = match index {
            0 => ("123456".to_owned(), services),
            _ => (format!("{index:09}"), &["PS_080"][..]),
        };
        let kind = if index < INSTITUTIONS {
            "PSD_AISP"
        } else {
            "PSD_AG"
        };
        let entity = json!({
            "CA_OwnerID": "NO_FSA", "EntityCode": format!("NO_FSA!7{id}"), "EntityType": kind,
            "Properties": [{"ENT_NAT_REF_COD": id}, {"ENT_NAM": name}, {"ENT_AUT": ["2019-01-01"]}],
            "Services": [{"NO": services}], "__EBA_EntityVersion": format!("{version}000"),
        });
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}{entity}").unwrap();
    }
    write!(out, "]]").unwrap();
    out.into_inner().unwrap().sync_all().unwrap();
    fs::rename(new, path).unwrap();
}

/// The latency that this share of requests does not exceed.
fn quantile(of: &mut [Duration], share: f64) -> Duration {
    of.sort_unstable();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index of a few thousand"
    )]
    let index = (of.len() as f64 * share) as usize;
    of[index.min(of.len() - 1)]
}

//= CRT-8 accepted
//= CRT-14 accepted
//= CRT-14 refused
#[test]
#[ignore = "make test-systems"]
fn a_register_of_the_real_size_is_replaced_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let register = folder.path().join("eba.json");
    write(&register, &["PS_070", "PS_080"]);
    let gate = Gate::builder()
        .with_a_file()
        .line(&format!("registers: {{check: on, eba: '{}'}}", register.display()))
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
        .start();
    accepted(&gate, &Call::accounts());
    let (over, took) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let (mut before, mut during) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut connection = Connection::open(&gate);
                while !over.load(Ordering::Relaxed) {
                    let sealed = gate.seal(&Call::accounts());
                    let mut watch = Stopwatch::start();
                    let status = connection.exchange(&sealed).unwrap().status;
                    took.lock().unwrap().push(watch.lap());
                    assert_eq!(status, 200);
                    // The pace of the clients, who would otherwise take all that the reload needs.
                    let_pass(PAUSE);
                }
            });
        }
        let _end = End(&over);
        while took.lock().unwrap().len() < BEFORE {
            let_pass(PAUSE);
        }
        std::mem::swap(&mut before, &mut *took.lock().unwrap());
        for _ in 0..RELOADS {
            assert_eq!(gate.tell("/reload", &json!({})).status, 200);
        }
        std::mem::swap(&mut during, &mut *took.lock().unwrap());
    });
    let [old, new] = [&mut before, &mut during].map(|of| quantile(of, 0.99));
    println!(
        "{} requests before, {} during {RELOADS} reloads, none failed; p99 {old:?} and {new:?}, {:.2} times as long",
        before.len(),
        during.len(),
        new.as_secs_f64() / old.as_secs_f64()
    );
    // The next register takes a role from the TPP.
    write(&register, &["PS_080"]);
    assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    accepted(&gate, &Call::accounts());
    refused(
        &gate,
        &Call::payment(),
        403,
        "FORBIDDEN",
        "tpp-not-registered",
    );
}
