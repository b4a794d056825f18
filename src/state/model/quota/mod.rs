//! Calls of one quota at several gateways whose clocks differ and step, with returns, shared commits and crashes (QUO-1, QUO-5, QUO-7).

mod gateway;
mod state;

use super::{
    DAY, at,
    store::Tables,
    tests::{explore, finds},
    was_seen,
};
use crate::{rows::RowKey, rules::Table};
use state::{Fault, Gateway, Job, KEY, MOMENTS, Quota, State, Step};
use stateright::{Model, Property};

/// Whether no five of these times lie within this number of seconds.
fn are_apart(times: impl Iterator<Item = u64>, seconds: u64) -> bool {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times.windows(5).all(|five| five[4] - five[0] >= seconds)
}

/// By the gateways' clocks.
fn by_clocks(_: &Quota, state: &State) -> bool {
    are_apart(state.core.iter().map(|call| call.stamp), DAY)
}

/// By the true time: earlier by as much as the clocks differ.
fn by_true_time(model: &Quota, state: &State) -> bool {
    let clocks = model.clocks.iter();
    let differ = clocks.clone().max().zip(clocks.min());
    let differ = differ.map_or(0, |(most, least)| most.abs_diff(*least));
    are_apart(state.core.iter().map(|call| call.at), DAY - differ)
}

/// Every call that the core got in the last day is in the store, as often.
///
/// The day ends at the last time that a gateway's clock showed: a clock that steps back does not bring back what a later call replaced.
fn is_counted(_: &Quota, state: &State) -> bool {
    let mut cells = state.tables.quota(KEY);
    let clocks = (0..state.gateways.len()).map(|number| state.clock(number));
    let stamps = state.core.iter().map(|call| call.stamp);
    let stored = cells.iter().flatten().copied();
    let last = clocks.chain(stamps).chain(stored).max();
    let mut live = state.core.iter().map(|call| call.stamp);
    live.all(|stamp| {
        let found = cells.iter_mut().find(|cell| **cell == Some(stamp));
        last >= Some(stamp + DAY) || found.map(|cell| *cell = None).is_some()
    })
}

impl Model for Quota {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            moment: 0,
            tables: Tables::default(),
            gateways: vec![Gateway::default(); self.gateways],
            core: Vec::new(),
            left: (self.calls, self.returns, self.crashes, self.steps),
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let (calls, returns, crashes, clocks) = state.left;
        let next = MOMENTS.get(state.moment + 1);
        // No request is under way for a day.
        if next.is_some_and(|next| next - MOMENTS[state.moment] == 1 || state.is_quiet()) {
            steps.push(Step::Wait);
        }
        for (number, gateway) in state.gateways.iter().enumerate() {
            let is_full = gateway.waiting.len() + gateway.under_way.len() >= 2;
            if calls > 0 && !is_full {
                steps.push(Step::Call(number));
            }
            if clocks > 0 {
                let others = self.clocks.iter().filter(|it| **it != gateway.clock);
                steps.extend(others.map(|clock| Step::SetClock(number, *clock)));
            }
            if returns > 0 {
                let mut calls = gateway.under_way.clone();
                calls.dedup();
                steps.extend((0..calls.len()).map(|index| Step::Fail(number, index)));
            }
            match &gateway.batch {
                None => {
                    let is_free = !state.is_locked(number) || self.has(Fault::DecidesOnSharedRows);
                    if is_free && !gateway.waiting.is_empty() {
                        steps.push(Step::Decide(number));
                    }
                }
                Some(batch) => {
                    if !batch.is_committed {
                        steps.push(Step::Commit(number));
                    }
                    let early = self.has(Fault::AnswersBeforeCommit);
                    if batch.is_committed || early && !batch.is_answered {
                        steps.push(Step::Answer(number));
                    }
                }
            }
            let is_busy = gateway.batch.is_some() || !gateway.under_way.is_empty();
            if crashes > 0 && is_busy {
                steps.push(Step::Crash(number));
            }
            if state.tables.get(RowKey::Quota(KEY)).is_some() && !state.is_locked(usize::MAX) {
                steps.push(Step::Sweep(number));
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut state = before.clone();
        match step {
            Step::Wait => {
                state.moment += 1;
                let passed = MOMENTS[state.moment] - MOMENTS[before.moment];
                for gateway in state.gateways.iter_mut().filter(|_| passed > 1) {
                    gateway.under_way.clear();
                }
            }
            Step::SetClock(number, clock) => {
                state.left.3 -= 1;
                state.gateways[number].clock = clock;
            }
            Step::Call(number) => {
                state.left.0 -= 1;
                let (at, mut stamp) = (state.now(), state.clock(number));
                if self.has(Fault::TakesAnyTime) {
                    stamp += DAY * u64::from(state.left.0 % 2);
                }
                state.gateways[number]
                    .waiting
                    .push(Job::Claim { at, stamp });
            }
            Step::Fail(number, index) => {
                state.left.1 -= 1;
                let mut calls = state.gateways[number].under_way.clone();
                calls.dedup();
                let call = calls[index];
                let gateway = &mut state.gateways[number];
                let index = gateway.under_way.iter().position(|it| *it == call)?;
                gateway.under_way.remove(index);
                gateway.waiting.push(Job::GiveBack(call));
                let index = state.core.iter().position(|it| *it == call)?;
                state.core.remove(index);
            }
            Step::Decide(number) => self.decide(&mut state, number),
            Step::Commit(number) => Self::commit(&mut state, number),
            Step::Answer(number) => self.answer(&mut state, number),
            Step::Crash(number) => {
                state.left.2 -= 1;
                self.crash(&mut state, number);
            }
            Step::Sweep(number) => {
                let ahead = if self.has(Fault::SweepsByAnyClock) {
                    DAY
                } else {
                    0
                };
                let now = at(state.clock(number) + ahead);
                state.tables.sweep(Table::Quota, now);
            }
        }
        // What is under way is of no matter where nothing is given back any more.
        if state.left.1 == 0 && self.fault.is_none() {
            state
                .gateways
                .iter_mut()
                .for_each(|it| it.under_way.clear());
        }
        // Nothing of a gateway outlives it, so that their order says nothing.
        state
            .gateways
            .sort_by(|one, two| one.order().cmp(&two.order()));
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "the core gets four calls in 24 hours, by the clocks",
                by_clocks,
            ),
            Property::always("the core gets four calls in 24 hours", by_true_time),
            Property::always("what the core got is counted", is_counted),
            Property::sometimes("four calls are taken", |_, state: &State| {
                state.tables.quota(KEY).iter().all(Option::is_some)
            }),
            Property::sometimes("the fifth call is refused", |_, _| was_seen("was_refused")),
            Property::sometimes("a fifth call a day later is taken", |_, state: &State| {
                state.core.len() > 4
            }),
            Property::sometimes("two calls share a commit", |_, _| {
                was_seen("has_shared_commit")
            }),
            Property::sometimes("a gateway crashes between commit and answer", |_, _| {
                was_seen("has_crashed_after_commit")
            }),
        ]
    }
}

const SMALL: Quota = Quota {
    gateways: 2,
    calls: 5,
    returns: 0,
    crashes: 1,
    steps: 0,
    clocks: &[0, -1],
    fault: None,
};

/// One gateway, with more calls.
const ALONE: Quota = Quota {
    gateways: 1,
    calls: 7,
    returns: 2,
    steps: 2,
    ..SMALL
};

//= QUO-1 accepted
//= QUO-1 refused
//= QUO-5 accepted
//= QUO-7 accepted
#[test]
fn two_gateways() {
    explore("quota", SMALL);
}

#[test]
#[ignore = "make exhaust"]
fn one_gateway_whose_clock_steps() {
    explore("quota, one gateway", ALONE);
}

#[test]
#[ignore = "make exhaust"]
fn each_planted_fault_is_found() {
    for fault in [
        Fault::AnswersBeforeCommit,
        Fault::DecidesOnSharedRows,
        Fault::GivesBackTwice,
        Fault::GivesBackAtStart,
        Fault::SweepsByAnyClock,
        Fault::TakesAnyTime,
    ] {
        let fault = Some(fault);
        let (returns, steps) = (1, 1);
        finds(
            fault,
            Quota {
                returns,
                steps,
                fault,
                ..SMALL
            },
        );
    }
}

#[test]
#[ignore = "make exhaust"]
fn three_gateways() {
    explore(
        "quota, three gateways",
        Quota {
            gateways: 3,
            ..SMALL
        },
    );
}
