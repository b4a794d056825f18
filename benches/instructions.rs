//! Serves one request a number of times, for an instrument to count: `.ci/instructions.sh` runs it under callgrind.
//!
//! `instructions get|post|verify` serves the GET, serves the POST, or verifies the signature of the GET, [`ROUNDS`] times
//! within [`counted`], which the instrument knows by its name; the name of a kind of refused request refuses it as often.
//! What is made before and given back after is not counted.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement fails by panicking"
)]

mod warm;

use portvakt::admission::Admitted;

/// How often it is counted: more than the turns it takes a hash map to grow.
const ROUNDS: usize = 200;

fn main() {
    let [get, post] = warm::requests();
    let asked = std::env::args().nth(1).unwrap_or_default();
    let stranger = warm::Stranger::of(&get, &asked, 2 * ROUNDS);
    let work: Box<dyn Fn() -> Option<Admitted> + '_> = match asked.as_str() {
        "get" => Box::new(|| get.serve()),
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
            // What `cargo test --benches` and `cargo bench` ask for.
            None => return,
        },
    };
    let again = |admitted: Option<Admitted>| get.give_back(admitted.as_ref());
    for _ in 0..ROUNDS {
        again(work());
    }
    for _ in 0..ROUNDS {
        again(counted(work.as_ref()));
    }
    println!("{ROUNDS}");
}

/// What is counted.
#[inline(never)]
fn counted(work: &dyn Fn() -> Option<Admitted>) -> Option<Admitted> {
    let done = work();
    // Something after the call: were it the last, the compiler could leave this function before it is done.
    std::hint::black_box(done)
}
