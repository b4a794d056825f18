//! What is known of one PSU, whom completed SCAs, the bank and the core name at several gateways with caches (SCA-3, SCA-6, SCA-12, SCA-13,
//! SCA-18, SCA-19).

mod gateway;
mod state;
mod told;
mod words;

use super::{
    store::Tables,
    tests::{explore, finds},
    was_seen,
};
use state::{Fault, Gateway, Knowledge, State, Step};
use stateright::{Model, Property};
use told::Expected;
use words::{Op, Tpp};

impl Model for Knowledge {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            tables: Tables::default(),
            gateways: vec![Gateway::default(); self.gateways],
            unsaid: self.words.to_vec(),
            expected: Expected::default(),
            version: 0,
            crashes: self.crashes,
            losses: self.losses,
            is_wrong: false,
            was_told_wrongly: false,
            served_stale: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (number, gateway) in state.gateways.iter().enumerate() {
            self.actions_at(state, number, gateway, steps);
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut state = before.clone();
        self.take(&mut state, step);
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(
                "what is known follows from what was said",
                |_, it: &State| !it.is_wrong,
            ),
            Property::always("what was answered is so", |_, it: &State| {
                !it.was_told_wrongly
            }),
            Property::always("the cache serves nothing withdrawn", |_, it: &State| {
                !it.served_stale
            }),
            Property::always(
                "there is one session at most, and it was completed",
                |_, it: &State| {
                    let session = it.psu().and_then(|row| row.0.psu.session);
                    session.is_none() || it.expected.session.is_some()
                },
            ),
            Property::sometimes("two changes share a commit", |_, _| {
                was_seen("shared_commit")
            }),
        ];
        let says = |op: fn(&Op) -> bool| self.words.iter().any(op);
        if says(|op| {
            matches!(
                op,
                Op::Complete {
                    tpp: Tpp::A,
                    said: 1,
                    ..
                }
            )
        }) {
            properties.extend([
                Property::sometimes("a session replaces another", |_, _| {
                    was_seen("replaced_session")
                }),
                Property::sometimes("a report is repeated", |_, _| was_seen("repeated")),
            ]);
        }
        if says(|op| matches!(op, Op::Learn(_))) {
            properties.extend([
                Property::sometimes("a PSU is learned", |_, _| was_seen("learned")),
                Property::sometimes("the core's word is late", |_, _| {
                    was_seen("learned_too_late")
                }),
                Property::sometimes("the bank takes a PSU over", |_, _| was_seen("taken_over")),
            ]);
        }
        if self.looks_up {
            properties.extend([
                Property::sometimes("the cache serves", |_, _| was_seen("served")),
                Property::sometimes("what is old is not cached", |_, _| was_seen("not_cached")),
                Property::sometimes("an unclear commit was done", |_, _| {
                    was_seen("asked_and_done")
                }),
            ]);
        }
        properties
    }
}

const fn complete(tpp: Tpp, token: usize, said: u8) -> Op {
    Op::Complete { tpp, token, said }
}

/// Two completions, one of which is reported again, and a report that contradicts it.
const SESSIONS_OF_A: Knowledge = Knowledge {
    gateways: 2,
    words: &[
        complete(Tpp::A, 0, 0),
        complete(Tpp::A, 0, 0),
        complete(Tpp::A, 0, 2),
        complete(Tpp::A, 1, 1),
        Op::EndSession(Tpp::A),
    ],
    looks_up: false,
    crashes: 1,
    losses: 0,
    fault: None,
};

/// The core's word for one TPP, the bank's for both, and what the bank takes back.
const LEARNED: Knowledge = Knowledge {
    words: &[
        Op::Learn(Tpp::B),
        Op::Learn(Tpp::B),
        Op::Bind(Tpp::A),
        Op::WithdrawConsents(Tpp::B),
        Op::Unbind(Tpp::B),
    ],
    crashes: 0,
    ..SESSIONS_OF_A
};

const ERASED: Knowledge = Knowledge {
    words: &[
        Op::Learn(Tpp::B),
        complete(Tpp::A, 0, 0),
        complete(Tpp::B, 1, 1),
        complete(Tpp::B, 1, 1),
        Op::Erase,
    ],
    ..LEARNED
};

const CACHED: Knowledge = Knowledge {
    words: &[
        complete(Tpp::A, 0, 0),
        Op::WithdrawConsents(Tpp::A),
        Op::Unbind(Tpp::A),
    ],
    looks_up: true,
    crashes: 0,
    losses: 1,
    ..SESSIONS_OF_A
};

//= SCA-6 accepted
//= SCA-12 accepted
//= SCA-12 refused
#[test]
fn the_sessions_of_a_psu() {
    explore("sessions", SESSIONS_OF_A);
}

mod systems {
    use super::*;

    //= SCA-19 accepted
    //= SCA-19 refused
    #[test]
    #[ignore = "make test-systems"]
    fn the_core_names_a_psu_and_the_bank_takes_it_back() {
        explore("learning", LEARNED);
        explore("erasure", ERASED);
    }

    //= SCA-13 accepted
    //= SCA-13 refused
    #[test]
    #[ignore = "make test-systems"]
    fn caches_of_two_gateways() {
        explore("caches", CACHED);
    }

    #[test]
    #[ignore = "make test-systems"]
    fn each_planted_fault_is_found() {
        for (fault, model) in [
            (Fault::DecidesOnSharedRows, SESSIONS_OF_A),
            (Fault::ReadsTheMarkLate, LEARNED),
            (Fault::ReadsNoLog, CACHED),
            (Fault::KeepsItsOwnChange, CACHED),
            (Fault::KeepsWhatIsUnclear, CACHED),
            (Fault::CachesWhatIsOld, CACHED),
            (Fault::TakesUnclearForCommitted, CACHED),
        ] {
            let fault = Some(fault);
            finds(fault, Knowledge { fault, ..model });
        }
    }
}
