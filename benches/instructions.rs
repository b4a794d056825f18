//! Serves one request several times for an instruction counter: `.ci/instructions.sh` runs this program under callgrind.
//!
//! `instructions get|get-logged|get-traced|post|verify` serves the GET, without an access log and an audit, with both, or with spans for
//! every request, serves the POST, or verifies the signature of the GET, [`rounds`] times within [`counted`], which callgrind finds by its
//! name. The name of a kind of refused request, or of another door, does that as often. `instructions key 4096` prints a key: RSA keys are
//! made by such a process of its own, because callgrind does not follow it. Setup and teardown are not counted. Beforehand, as many rounds
//! are not counted; their lines are in the access log too. Without callgrind, the median of the times on standard error is of use.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement fails by panicking"
)]

mod warm;

use openssl::rsa::Rsa;
use portvakt::{admission::Admitted, clock::Stopwatch};
use portvakt_development_pki::Key;
use std::process::Command;

/// The number of counted rounds of a kind: enough to average over the growth of a hash map. A signature by an RSA key of the gateway is
/// nearly all of what it is part of, up to 70 million instructions, and the same in each round.
fn rounds(kind: &str) -> usize {
    let signs = ["handshake-rsa", "signed-answer-rsa"];
    if signs.iter().any(|one| kind.starts_with(one)) {
        20
    } else {
        200
    }
}

fn main() {
    let asked = std::env::args().nth(1).unwrap_or_default();
    if asked == "key" {
        let bits = std::env::args().nth(2).unwrap().parse().unwrap();
        let pem = Rsa::generate(bits).unwrap().private_key_to_pem().unwrap();
        print!("{}", String::from_utf8(pem).unwrap());
        return;
    }
    let bits = asked.split_once("-rsa").map_or("2048", |(_, bits)| bits);
    let [key, ca] = [bits, "2048"].map(made_key);
    let rounds = rounds(&asked);
    if let Some(work) = warm::work(&asked, &key, &ca, 2 * rounds) {
        let work = || {
            work();
            None
        };
        return measure(rounds, &work, |_| {});
    }
    let [get, post] = warm::requests_with(key, ca);
    let get = match asked.as_str() {
        "get-logged" => get.logged(),
        "get-traced" => get.traced(),
        _ => get,
    };
    let stranger = warm::Stranger::of(&get, &asked, 2 * rounds);
    let work: Box<dyn Fn() -> Option<Box<Admitted>> + '_> = match asked.as_str() {
        "get" | "get-logged" | "get-traced" => Box::new(|| get.serve()),
        "post" => Box::new(|| post.serve()),
        "verify" => Box::new(|| {
            get.verify();
            None
        }),
        _ => match &stranger {
            Some(stranger) => Box::new(|| {
                stranger.call();
                None
            }),
            // The arguments of `cargo test --benches` and `cargo bench`.
            None => return,
        },
    };
    measure(rounds, work.as_ref(), |admitted| {
        get.give_back(admitted.as_deref())
    });
    get.flush();
}

/// A new RSA key with so many bits.
fn made_key(bits: &str) -> Key {
    let program = std::env::current_exe().unwrap();
    let made = Command::new(program).args(["key", bits]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    Key::RsaPem(String::from_utf8(made.stdout).unwrap())
}

fn measure(
    rounds: usize,
    work: &dyn Fn() -> Option<Box<Admitted>>,
    after: impl Fn(Option<Box<Admitted>>),
) {
    for _ in 0..rounds {
        after(work());
    }
    let mut took = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let watch = Stopwatch::start();
        let done = counted(work);
        took.push(watch.elapsed());
        after(done);
    }
    took.sort();
    println!("{rounds}");
    // For a run without callgrind: the figures of docs/sizing.md.
    eprintln!("median {:?}", took.get(rounds / 2).unwrap());
}

/// The counted function.
#[inline(never)]
fn counted(work: &dyn Fn() -> Option<Box<Admitted>>) -> Option<Box<Admitted>> {
    let done = work();
    // A statement after the call prevents a tail call, with which this function would return too early.
    std::hint::black_box(done)
}
