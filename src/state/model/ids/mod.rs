//! The id of one request at gateways that crash, whose clocks step and whose commits are lost on the way (REP-1). The caller repeats the
//! request at any time, at any gateway, and sends its body late.

mod gateway;
mod state;

use super::{
    DAY,
    store::{Tables, Written},
    tests::{explore, finds},
    was_seen,
};
use crate::{Retention, clock::ClockRow};
use state::{ANY, Fault, Gateway, Ids, LONGER, Memory, Request, SHORT, State, Step, TIMES, VALID};
use stateright::{Model, Property};

impl Model for Ids {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let gateway = Gateway {
            clock: self.times[0],
            memory: Memory::begun(ClockRow::default()),
            requests: Vec::new(),
            written: Written::default(),
        };
        vec![State {
            tables: Tables::default(),
            clock: ClockRow::default(),
            gateways: vec![gateway; self.gateways],
            latest: self.times[0],
            granted: 0,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (number, gateway) in state.gateways.iter().enumerate() {
            let times = self.times.iter().filter(|time| **time != gateway.clock);
            let times = times.filter(|time| self.may_show(state, **time));
            steps.extend(times.map(|time| Step::SetClock(number, *time)));
            if self.is_dated(gateway.clock) && gateway.requests.len() < self.requests {
                steps.push(Step::Arrive(number));
            }
            if self.retention == Retention::Memory {
                steps.push(Step::Other(number));
            }
            for (index, request) in gateway.requests.iter().enumerate() {
                match request {
                    Request::Admitted => steps.push(Step::Begin(number, index)),
                    Request::Begun { .. } => {
                        steps.push(Step::GiveUp(number, index));
                        if !self.is_locked(state) {
                            steps.push(Step::Decide(number, index));
                        }
                    }
                    Request::Decided { .. } => steps.extend([
                        Step::Commit(number, index),
                        Step::Lose(number, index),
                        Step::GiveUp(number, index),
                    ]),
                    Request::Unclear { is_done, .. } => {
                        steps.extend([Step::Ask(number, index), Step::GiveUp(number, index)]);
                        if !is_done {
                            steps.push(Step::TakeEffect(number, index));
                        }
                    }
                    Request::Committed { .. } => steps.push(Step::Answer(number, index)),
                    Request::Held { .. } => {
                        steps.extend([Step::Forward(number, index), Step::Fail(number, index)]);
                    }
                    Request::GivingBack { .. } if !self.is_locked(state) => {
                        steps.push(Step::GiveBack(number, index));
                    }
                    Request::GivingBack { .. } => {}
                }
            }
            if gateway.has_orphan() {
                steps.extend([Step::End(number, true), Step::End(number, false)]);
            }
            if !self.is_locked(state) && self.retention != Retention::Memory {
                steps.push(Step::Sweep(number));
            }
            steps.extend([Step::Follow(number), Step::Crash(number)]);
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut state = before.clone();
        self.take(&mut state, step);
        for gateway in &mut state.gateways {
            gateway.requests.sort_unstable();
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![Property::always(
            "the core gets the request once",
            |_, state: &State| state.granted < 2,
        )];
        if self.retention != Retention::Date {
            properties.push(Property::sometimes(
                "a replay is refused by memory",
                |_, _| was_seen("refused_by_memory"),
            ));
        }
        if self.retention != Retention::Memory {
            properties.extend([
                Property::sometimes("a replay is refused by the store", |_, _| {
                    was_seen("refused_by_store")
                }),
                Property::sometimes("a commit was unclear, and done", |_, _| {
                    was_seen("asked_and_done")
                }),
                Property::sometimes("a commit was unclear, and not done", |_, _| {
                    was_seen("asked_and_not_done")
                }),
                Property::sometimes("a crash after the commit", |_, _| {
                    was_seen("crashed_after_commit")
                }),
                Property::sometimes("an id is given back", |_, _| was_seen("given_back")),
            ]);
        }
        if self.retention != Retention::Memory && self.times.len() > 2 {
            properties.push(Property::sometimes("a row is removed", |_, _| {
                was_seen("swept")
            }));
        }
        if self.apart == ANY && self.times.len() > 2 {
            properties.push(Property::sometimes("a clock is refused", |_, _| {
                was_seen("refused_by_clock")
            }));
        }
        properties
    }
}

impl Ids {
    fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::SetClock(number, time) => {
                state.latest = state.latest.max(time);
                state.gateways[number].clock = time;
            }
            Step::Arrive(number) => state.gateways[number].requests.push(Request::Admitted),
            Step::Other(number) => Self::other(state, number),
            Step::Begin(number, index) => self.begin(state, number, index),
            Step::Decide(number, index) => self.decide(state, number, index),
            Step::Commit(number, index) | Step::TakeEffect(number, index) => {
                self.commit(state, number);
                let request = &mut state.gateways[number].requests[index];
                match *request {
                    Request::Decided {
                        now,
                        judged,
                        is_held,
                    } => {
                        *request = Request::Committed {
                            now,
                            judged,
                            is_held,
                        };
                    }
                    Request::Unclear { now, judged, .. } => {
                        let is_done = true;
                        *request = Request::Unclear {
                            now,
                            judged,
                            is_done,
                        };
                    }
                    _ => {}
                }
            }
            Step::End(number, is_done) => {
                if is_done {
                    self.commit(state, number);
                }
                state.gateways[number].written = Written::default();
            }
            Step::Lose(number, index) => {
                let request = &mut state.gateways[number].requests[index];
                if let Request::Decided { now, judged, .. } = *request {
                    let is_done = false;
                    *request = Request::Unclear {
                        now,
                        judged,
                        is_done,
                    };
                }
            }
            Step::Ask(number, index) => self.ask(state, number, index),
            Step::GiveUp(number, index) => {
                state.gateways[number].requests.remove(index);
                self.undo(state, number);
            }
            Step::Answer(number, index) => self.answer(state, number, index),
            Step::Forward(number, index) => self.forward(state, number, index),
            Step::Fail(number, index) => self.fail(state, number, index),
            Step::GiveBack(number, index) => self.give_back(state, number, index),
            Step::Sweep(number) => self.sweep(state, number),
            Step::Follow(number) => Self::follow(state, number),
            Step::Crash(number) => self.crash(state, number),
        }
    }
}

/// While the Date is valid.
const PAYMENT: Ids = Ids {
    gateways: 2,
    requests: 1,
    retention: Retention::Day,
    times: &VALID,
    apart: DAY,
    fault: None,
};

/// One gateway, at which the same request is under way twice.
const ALONE: Ids = Ids {
    gateways: 1,
    requests: 2,
    times: &TIMES,
    apart: ANY,
    ..PAYMENT
};

const SAFE: Ids = Ids {
    retention: Retention::Date,
    times: &SHORT,
    apart: 240,
    ..PAYMENT
};

const IN_MEMORY: Ids = Ids {
    retention: Retention::Memory,
    requests: 1,
    times: &LONGER,
    ..ALONE
};

mod systems {
    use super::*;

    //= REP-1 accepted
    //= REP-1 refused
    #[test]
    #[ignore = "make test-systems"]
    fn a_payment_twice_at_one_gateway_under_any_clock() {
        explore("payment, one gateway, any clock", ALONE);
    }

    #[test]
    #[ignore = "make test-systems"]
    fn a_safe_request_whose_ids_are_stored_under_any_clock() {
        let (gateways, requests, apart) = (1, 2, ANY);
        let alone = Ids {
            gateways,
            requests,
            apart,
            ..SAFE
        };
        explore("safe request, stored, one gateway, any clock", alone);
    }

    #[test]
    #[ignore = "make test-systems"]
    fn a_safe_request_whose_ids_are_in_memory() {
        explore("safe request, in memory", IN_MEMORY);
        let (requests, times) = (2, &VALID);
        let twice = Ids {
            requests,
            times,
            ..IN_MEMORY
        };
        explore("safe request, in memory, twice", twice);
    }

    #[test]
    #[ignore = "make test-systems"]
    fn each_planted_fault_is_found() {
        for (fault, model) in [
            (Fault::AnswersBeforeCommit, PAYMENT),
            (Fault::TakesUnclearForCommitted, PAYMENT),
            (Fault::GivesBackWhatIsRefused, IN_MEMORY),
            (Fault::GivesBackWhatTheCoreHas, PAYMENT),
            (Fault::DecidesOnSharedRows, PAYMENT),
            (Fault::JudgesTheDateOnce, IN_MEMORY),
            (Fault::ForgetsIdsAtRestart, PAYMENT),
        ] {
            let fault = Some(fault);
            finds(fault, Ids { fault, ..model });
        }
    }

    #[test]
    #[ignore = "make test-systems"]
    fn each_planted_fault_of_the_clock_is_found() {
        for fault in [
            Fault::ForgetsTheClock,
            Fault::SweepsWithoutTheClock,
            Fault::WaitsAnyTime,
        ] {
            let fault = Some(fault);
            finds(fault, Ids { fault, ..ALONE });
        }
    }

    //= REP-1 accepted
    //= REP-1 refused
    #[test]
    #[ignore = "make test-systems"]
    fn a_payment_at_two_gateways() {
        explore("payment", PAYMENT);
    }

    #[test]
    #[ignore = "make test-systems"]
    fn a_safe_request_whose_ids_are_stored() {
        explore("safe request, stored", SAFE);
    }

    /// Where clocks differ by more than a day, a gateway does not know before it hears the others.
    #[test]
    #[ignore = "make test-systems"]
    fn clocks_that_differ_by_more_than_a_day_are_refused_too_late() {
        let (times, apart) = (&[TIMES[0], TIMES[3]], ANY);
        finds(
            "clocks that differ by more than a day",
            Ids {
                times,
                apart,
                ..PAYMENT
            },
        );
    }
}

#[test]
#[ignore = "make exhaust"]
fn a_payment_at_two_gateways_for_a_day() {
    let times = &TIMES;
    explore("payment, for a day", Ids { times, ..PAYMENT });
}
