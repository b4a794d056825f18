//! The peers and the requests of the comparison of speed (benches/peers), which this program also starts and sends.

#[path = "../peers/peer.rs"]
#[allow(dead_code, reason = "the comparison of speed uses the rest")]
pub mod peer;
#[path = "../peers/pool.rs"]
#[allow(dead_code, reason = "the comparison of speed uses the rest")]
pub mod pool;
#[path = "../peers/running.rs"]
#[allow(dead_code, reason = "the comparison of speed uses the rest")]
pub mod running;
#[path = "../peers/stage.rs"]
#[allow(
    dead_code,
    clippy::too_many_lines,
    reason = "the comparison of speed uses the rest"
)]
pub mod stage;
