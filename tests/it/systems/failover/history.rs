//! What callers were told, and whether the store agrees with it afterwards.

use portvakt::state::{Decision, Unavailable};
use std::collections::BTreeMap;

/// The answers about one key.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    held: u32,
    refused: u32,
    /// Neither: the change may have taken effect.
    unknown: u32,
}

/// The answers of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    quotas: BTreeMap<u64, Told>,
    requests: BTreeMap<u64, Told>,
    /// Completed SCAs that were acknowledged, by PSU.
    completed: Vec<u64>,
}

/// What the store says at the end.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Further calls of a quota that it granted before it refused.
    pub(super) more_calls: BTreeMap<u64, u32>,
    /// The request ids that it granted once more.
    pub(super) granted_again: Vec<u64>,
    /// The PSUs without a session.
    pub(super) without_session: Vec<u64>,
}

impl Told {
    fn add(&mut self, answer: &Result<Decision, Unavailable>) {
        match answer {
            Ok(Decision::Held(_)) => self.held += 1,
            Ok(Decision::Replayed | Decision::NextAt(_)) => self.refused += 1,
            Err(_) => self.unknown += 1,
        }
    }
}

impl History {
    pub(super) fn quota(&mut self, key: u64, answer: &Result<Decision, Unavailable>) {
        self.quotas.entry(key).or_default().add(answer);
    }

    pub(super) fn request(&mut self, id: u64, answer: &Result<Decision, Unavailable>) {
        self.requests.entry(id).or_default().add(answer);
    }

    pub(super) fn completed(&mut self, psu: u64) {
        self.completed.push(psu);
    }

    pub(super) fn quotas(&self) -> Vec<u64> {
        self.quotas.keys().copied().collect()
    }

    pub(super) fn requests(&self) -> Vec<u64> {
        self.requests.keys().copied().collect()
    }

    pub(super) fn psus(&self) -> &[u64] {
        &self.completed
    }

    /// The numbers of answers: granted, refused, unknown.
    pub(super) fn counts(&self) -> [u32; 3] {
        let all = self.quotas.values().chain(self.requests.values());
        all.fold([0; 3], |[held, refused, unknown], told| {
            [
                held + told.held,
                refused + told.refused,
                unknown + told.unknown,
            ]
        })
    }

    /// Everything that the model does not permit.
    pub(super) fn faults(&self, found: &Found) -> Vec<String> {
        let mut faults = Vec::new();
        for (key, told) in &self.quotas {
            let more = found.more_calls.get(key).copied().unwrap_or(0);
            if told.held + more > 4 {
                faults.push(format!("quota {key}: a fifth call: {told:?}, {more} more"));
            }
            if told.held + told.unknown + more < 4 {
                faults.push(format!(
                    "quota {key}: a call was counted twice: {told:?}, {more} more"
                ));
            }
        }
        for (id, told) in &self.requests {
            if told.held > 1 {
                faults.push(format!("request {id}: a replay: {told:?}"));
            }
            let again = found.granted_again.contains(id);
            if again && told.held > 0 {
                faults.push(format!("request {id}: it was forgotten: {told:?}"));
            }
            if told.refused > 0 && told.held + told.unknown == 0 {
                faults.push(format!("request {id}: refused without a use: {told:?}"));
            }
        }
        for psu in &found.without_session {
            faults.push(format!("PSU {psu}: a completed SCA was lost"));
        }
        faults
    }
}
