//! The primary that this gateway follows. A former primary, which another server replaced, is refused: it may not know what the gateways
//! have decided since.
//!
//! A promotion begins a new timeline. The gateway keeps the highest one that it saw; a server of a lower one, or of another cluster, is
//! not used.
//!
//! A restored state knows less than the gateway was told. So the gateway keeps its last proof, a row that it committed, and every
//! connection must find that row. Where the row is missing, no connection is used any more until the gateway is started again. A new
//! timeline may lack it only if the proof did not wait for a standby.

use crate::lock::lock;
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::watch;
use uuid::Uuid;

/// The identity of a running primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrimaryIdentity {
    /// The cluster's system identifier.
    pub(super) system: String,
    /// The timeline; a promotion raises it.
    pub(super) timeline: i64,
}

/// A row of `heartbeat` that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) id: Uuid,
    /// Microseconds since 1970, by the database's clock. It only grows.
    pub(super) at: i64,
    pub(super) timeline: i64,
    /// Whether the commit waited for a standby.
    pub(super) is_safe: bool,
}

/// The highest timeline, and the last proof.
pub(super) struct Fence {
    seen: Mutex<Option<PrimaryIdentity>>,
    timeline: watch::Sender<i64>,
    proof: Mutex<Option<Proof>>,
    is_replaced: AtomicBool,
}

impl Fence {
    pub(super) fn new() -> Self {
        Self {
            seen: Mutex::default(),
            timeline: watch::Sender::new(0),
            proof: Mutex::default(),
            is_replaced: AtomicBool::new(false),
        }
    }

    /// Keeps the last proof.
    pub(super) fn keep(&self, proof: Proof) {
        *lock(&self.proof) = Some(proof);
    }

    /// Drops the last proof, which the new primary may lack.
    pub(super) fn forget(&self) {
        *lock(&self.proof) = None;
    }

    /// The last proof.
    pub(super) fn proof(&self) -> Option<Proof> {
        *lock(&self.proof)
    }

    /// Notes that a server does not have a proof.
    ///
    /// # Errors
    /// The state is another or an older one.
    pub(super) fn miss(&self, proof: Proof, origin: &PrimaryIdentity) -> Result<(), String> {
        if proof.is_safe || proof.timeline == origin.timeline {
            self.is_replaced.store(true, Ordering::Release);
        }
        self.check_state()
    }

    /// Whether the state is the one that was used before.
    ///
    /// # Errors
    /// It is another or an older one.
    pub(super) fn check_state(&self) -> Result<(), String> {
        if self.is_replaced() {
            return Err(
                "the database lacks what this gateway committed: the state was restored or replaced, or a standby without it was \
                 promoted; stop all gateways, make sure that the state is the right one, and start them again"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Compares a server with those that were seen.
    ///
    /// # Errors
    /// The server must not be used.
    pub(super) fn admit(&self, origin: &PrimaryIdentity) -> Result<(), String> {
        let mut seen = lock(&self.seen);
        match &*seen {
            Some(known) if known.system != origin.system => Err(format!(
                "the server belongs to another cluster (system identifier {}, not {}): restart the gateway to use it",
                origin.system, known.system
            )),
            Some(known) if known.timeline > origin.timeline => Err(format!(
                "the server is a former primary (timeline {}; timeline {} was seen)",
                origin.timeline, known.timeline
            )),
            _ => {
                *seen = Some(origin.clone());
                self.timeline.send_if_modified(|timeline| {
                    let is_newer = *timeline < origin.timeline;
                    *timeline = origin.timeline;
                    is_newer
                });
                Ok(())
            }
        }
    }

    fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Acquire)
    }

    /// Whether no newer primary was seen, and the state was not replaced.
    pub(super) fn is_current(&self, origin: &PrimaryIdentity) -> bool {
        *self.timeline.borrow() <= origin.timeline && !self.is_replaced()
    }

    /// Ends when a newer primary is seen.
    pub(super) async fn passed(&self, origin: &PrimaryIdentity) {
        let mut timeline = self.timeline.subscribe();
        let newer = timeline.wait_for(|timeline| *timeline > origin.timeline);
        if newer.await.is_err() {
            // Unreachable: this value holds the sender.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(system: &str, timeline: i64) -> PrimaryIdentity {
        PrimaryIdentity {
            system: system.to_owned(),
            timeline,
        }
    }

    #[test]
    fn a_former_primary_and_another_cluster_are_refused() {
        let fence = Fence::new();
        fence.admit(&origin("1", 3)).unwrap();
        fence.admit(&origin("1", 3)).unwrap();
        assert!(fence.is_current(&origin("1", 3)));
        fence.admit(&origin("1", 5)).unwrap();
        assert!(!fence.is_current(&origin("1", 3)));
        let former = fence.admit(&origin("1", 4)).unwrap_err();
        assert!(former.contains("former primary"), "{former}");
        let other = fence.admit(&origin("2", 9)).unwrap_err();
        assert!(other.contains("another cluster"), "{other}");
        assert!(fence.is_current(&origin("1", 5)));
    }

    #[test]
    fn a_state_without_the_last_proof_is_refused_until_the_next_start() {
        // Timelines of the proof and of the server, and whether the proof waited for a standby.
        for (proven, found, is_safe, is_refused) in [
            (3, 3, false, true),
            (3, 3, true, true),
            (3, 4, true, true),
            (3, 4, false, false),
        ] {
            let fence = Fence::new();
            let proof = Proof {
                id: Uuid::nil(),
                at: 1,
                timeline: proven,
                is_safe,
            };
            fence.keep(proof);
            let server = origin("1", found);
            assert_eq!(fence.miss(proof, &server).is_err(), is_refused);
            assert_eq!(fence.is_current(&server), !is_refused);
            assert_eq!(fence.check_state().is_err(), is_refused);
        }
    }
}
