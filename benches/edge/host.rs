//! The time of this machine's processors that its host gives to other machines: a call that waits for it tells nothing about a peer.

use std::{
    cell::RefCell,
    fs,
    rc::Rc,
    time::{Duration, Instant},
};

/// The interval of looking at the time that was given away.
const LOOK: Duration = Duration::from_millis(5);

/// The kernel counts that time at its next tick, and [`Given::watch`] sees it at its next look.
const LATE: Duration = Duration::from_millis(15);

/// The time of all processors since the start, and that of it which the host gave to other machines, in ticks of 10 ms.
pub fn ticks() -> [f64; 2] {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let all = text.lines().next().unwrap().split_whitespace().skip(1);
    // user, nice, system, idle, iowait, irq, softirq, steal.
    let all: Vec<f64> = all.take(8).map(|tick| tick.parse().unwrap()).collect();
    [all.iter().sum(), all[7]]
}

/// The moments at which the host was seen to have given time away.
#[derive(Clone, Default)]
pub struct Given(Rc<RefCell<Vec<Instant>>>);

impl Given {
    /// Looks again and again.
    pub async fn watch(self) {
        let [_, mut last] = ticks();
        loop {
            tokio::time::sleep(LOOK).await;
            let [_, now] = ticks();
            if now > last {
                self.0.borrow_mut().push(Instant::now());
            }
            last = now;
        }
    }

    /// Waits until what has been given away by now was seen.
    pub async fn settle() {
        tokio::time::sleep(LATE).await;
    }

    /// Whether time was given away meanwhile.
    pub fn is_within(&self, begun: Instant, took: Duration) -> bool {
        let seen = begun..=begun + took + LATE;
        self.0.borrow().iter().any(|at| seen.contains(at))
    }
}
