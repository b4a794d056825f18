//! Serves one request several times for an instruction counter: `.ci/instructions.sh` runs this program under callgrind.
//!
//! `instructions get|get-logged|post|verify` serves the GET, without an access log and an audit or with both, serves the POST, or verifies
//! the signature of the GET, [`ROUNDS`] times within [`counted`], which callgrind finds by its name. The name of a kind of refused request
//! serves such requests as often. Setup and teardown are not counted. Beforehand, as many rounds are not counted; their lines are in the
//! access log too.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement fails by panicking"
)]

mod warm;

use portvakt::admission::Admitted;

/// The number of counted rounds: enough to average over the growth of a hash map.
const ROUNDS: usize = 200;

fn main() {
    let [get, post] = warm::requests();
    let asked = std::env::args().nth(1).unwrap_or_default();
    let get = if asked == "get-logged" {
        get.logged()
    } else {
        get
    };
    let stranger = warm::Stranger::of(&get, &asked, 2 * ROUNDS);
    let work: Box<dyn Fn() -> Option<Box<Admitted>> + '_> = match asked.as_str() {
        "get" | "get-logged" => Box::new(|| get.serve()),
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
    let again = |admitted: Option<Box<Admitted>>| get.give_back(admitted.as_deref());
    for _ in 0..ROUNDS {
        again(work());
    }
    for _ in 0..ROUNDS {
        again(counted(work.as_ref()));
    }
    println!("{ROUNDS}");
}

/// The counted function.
#[inline(never)]
fn counted(work: &dyn Fn() -> Option<Box<Admitted>>) -> Option<Box<Admitted>> {
    let done = work();
    // A statement after the call prevents a tail call, with which this function would return too early.
    std::hint::black_box(done)
}
