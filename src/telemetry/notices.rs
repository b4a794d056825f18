//! The events and lines that callers cause below HTTP, and others that could come with every request: of one cause few in a minute.
//!
//! Invariant: each cause has shares of its own ([`super::shares`]), so the probes of one caller hide nothing of another (FWD-8). Deliberately
//! not here: the counts of them, which metrics have in full.

use super::{
    shares::{Most, Shares},
    subject::Subject,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Of one cause in a minute: with 1 024 TPPs and 256 shares of networks, at most 6 410 of all subjects.
const OF_CAUSE: Most = Most {
    own: 5,
    common: 0,
    within: Duration::from_secs(60),
};

/// An event that a caller causes below HTTP and that is written.
#[derive(Debug)]
#[must_use = "the event counts as written"]
pub struct CallerEvent {
    /// The caller's network, keyed as [`super::keyed`] does; `None` of a connection without an address.
    pub network: Option<String>,
}

/// What was left out of one subject: its cause, the subject, and how many.
pub(super) type Due = (&'static str, Subject, u64);

/// Counts by cause.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<HashMap<&'static str, Arc<Shares>>>);

impl Notices {
    /// Takes a place. False if this subject has had enough of this cause: it is counted as left out.
    pub(super) fn take(&self, cause: &'static str, subject: Subject) -> bool {
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shares = causes
            .entry(cause)
            .or_insert_with(|| Arc::new(Shares::new(OF_CAUSE)));
        let shares = Arc::clone(shares);
        drop(causes);
        shares.take(subject)
    }

    /// What is to be said now.
    pub(super) fn due(&self, is_end: bool) -> Vec<Due> {
        let causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = causes.iter().flat_map(|(cause, shares)| {
            let due = shares.due(is_end).into_iter();
            due.map(|(subject, omitted)| (*cause, subject, omitted))
        });
        due.collect()
    }

    /// Counts these as left out again: they could not be said.
    pub(super) fn put_back(&self, (cause, subject, omitted): Due) {
        let causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shares) = causes.get(cause) {
            shares.put_back(subject, omitted);
        }
    }
}

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn ten_thousand_probes_of_one_cause_few_lines_and_hide_no_other() {
        let notices = Notices::default();
        let probe = |cause, network, count: usize| {
            let written = (0..count).filter(|_| notices.take(cause, Subject::Network(network)));
            written.count()
        };
        assert_eq!(probe("handshake", 1, 5_000), 5);
        assert_eq!(probe("handshake", 2, 4), 4);
        assert_eq!(probe("slow_head", 1, 4), 4);
        assert_eq!(notices.due(false), []);
        advance(OF_CAUSE.within).await;
        assert_eq!(
            notices.due(false),
            [("handshake", Subject::Network(1), 4_995)]
        );
        assert_eq!(probe("handshake", 1, 5_000), 5);
        assert_eq!(
            notices.due(true),
            [("handshake", Subject::Network(1), 4_995)]
        );
    }
}
