//! What one gateway does with the calls that wait, by the rules.

use super::state::{Batch, Done, Fault, Forwarded, Job, KEY, Quota, State};
use crate::{
    Beside, ClaimRequest, Decision, QuotaClaim,
    model::{
        at, see,
        store::{queue, told},
    },
    rules::GiveBack,
    verbs::Call,
};

impl Quota {
    pub(super) fn decide(&self, state: &mut State, number: usize) {
        let mut batch = Vec::new();
        let jobs = std::mem::take(&mut state.gateways[number].waiting);
        let mut claims = Vec::new();
        let mut returns = Vec::new();
        for job in &jobs {
            match *job {
                Job::Claim { stamp, .. } => claims.push(queue(&mut batch, claim(stamp))),
                Job::GiveBack(call) => returns.push(queue(&mut batch, give_back(call))),
            }
        }
        let written = state.tables.decide(&mut batch);
        batch.into_iter().for_each(|change| change.answer(Ok(())));
        let (mut claims, mut returns) = (claims.into_iter(), returns.into_iter());
        let done = jobs.into_iter().map(|job| match job {
            Job::Claim { at, stamp } => match told(claims.next().unwrap()) {
                Decision::Held(taken) => Done::Held(Forwarded {
                    at,
                    stamp,
                    replaced: replaced(taken.call),
                }),
                Decision::NextAt(_) | Decision::Replayed => Done::Refused,
            },
            Job::GiveBack(call) => {
                told(returns.next().unwrap());
                Done::GivenBack(call)
            }
        });
        let done: Vec<Done> = done.collect();
        let held = done.iter().filter(|it| matches!(it, Done::Held(_)));
        if held.count() > 1 {
            see("has_shared_commit");
        }
        state.gateways[number].batch = Some(Batch {
            written,
            done,
            is_committed: false,
            is_answered: false,
        });
    }

    pub(super) fn commit(state: &mut State, number: usize) {
        let Some(batch) = &mut state.gateways[number].batch else {
            return;
        };
        state.tables.commit(&batch.written);
        batch.is_committed = true;
        if batch.is_answered {
            state.gateways[number].batch = None;
        }
    }

    pub(super) fn answer(&self, state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let Some(batch) = &mut gateway.batch else {
            return;
        };
        batch.is_answered = true;
        for done in &batch.done {
            match done {
                Done::Held(call) => {
                    state.core.push(*call);
                    gateway.under_way.push(*call);
                }
                Done::Refused => see("was_refused"),
                Done::GivenBack(call) if self.has(Fault::GivesBackTwice) => {
                    gateway.waiting.push(Job::GiveBack(*call));
                }
                Done::GivenBack(_) => {}
            }
        }
        if batch.is_committed {
            gateway.batch = None;
        }
        state.core.sort_unstable();
        gateway.under_way.sort_unstable();
    }

    pub(super) fn crash(&self, state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let batch = gateway.batch.take();
        if batch.is_some_and(|batch| batch.is_committed && !batch.is_answered) {
            see("has_crashed_after_commit");
        }
        gateway.waiting.clear();
        let under_way = std::mem::take(&mut gateway.under_way);
        if self.has(Fault::GivesBackAtStart) {
            gateway.waiting = under_way.into_iter().map(Job::GiveBack).collect();
        }
    }
}

fn claim(stamp: u64) -> ClaimRequest {
    ClaimRequest {
        request: None,
        quota: Some(QuotaClaim {
            key: KEY,
            beside: Beside::default(),
            page: None,
        }),
        now: at(stamp),
    }
}

fn give_back(call: Forwarded) -> GiveBack {
    GiveBack {
        claim: claim(call.stamp),
        call: Some(Call::Counted {
            replaced: call.replaced,
            list: None,
        }),
        with_request: false,
    }
}

fn replaced(call: Option<Call>) -> Option<u64> {
    match call {
        Some(Call::Counted { replaced, .. }) => replaced,
        Some(Call::Continued { .. }) | None => None,
    }
}
