//! A primary, its standby, and the gateways that follow them through a promotion, a former primary that comes back, and a restored state
//! (docs/scaling.md). The fence is the real one, and so are the decisions; connections and servers are a few words each.

use super::fence::{Fence, PrimaryIdentity, Proof};
use crate::{
    ClaimRequest, Decision, RequestHash, RequestIdClaim, Retention,
    model::{
        BEGIN, at,
        store::{Tables, queue, told},
        tests::{explore, finds},
    },
};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use uuid::Uuid;

/// What is wrong between the fence and the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A connection is used whatever the fence says of its server.
    UsesAnyServer,
    /// An open connection is used after a newer primary was seen.
    KeepsOldConnections,
    /// A new connection is not asked for the last proof.
    AsksForNoProof,
    /// The standby is promoted without what it confirmed.
    PromotesWithoutCommits,
}

#[derive(Clone, Copy, Debug)]
struct Failover {
    gateways: usize,
    fault: Option<Fault>,
}

/// A server, and what is on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Server {
    timeline: i64,
    is_primary: bool,
    /// Whether somebody confirms its commits.
    confirms: bool,
    tables: Tables,
    proofs: BTreeSet<u8>,
}

/// What the fence of a gateway keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Gateway {
    seen: Option<i64>,
    /// The number of the last proof, and its timeline.
    proof: Option<(u8, i64)>,
    is_replaced: bool,
    /// The server, and its timeline when the connection was opened.
    link: Option<(usize, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    servers: [Server; 2],
    gateways: Vec<Gateway>,
    proofs: u8,
    /// The number of times that the request was granted.
    granted: u8,
    was_decided_on_a_former_primary: bool,
    was_decided_on_another_state: bool,
    has_replayed_after_promotion: bool,
    has_refused_former: bool,
    has_refused_restored: bool,
    was_promoted: bool,
    has_returned: bool,
    was_restored: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Connect(usize, usize),
    /// The question that a gateway asks every server each second.
    Look(usize, usize),
    /// A proof is committed.
    Beat(usize),
    Claim(usize),
    /// The standby becomes the primary; the other one still runs, and nobody confirms what it commits.
    Promote,
    /// The former primary gets a standby, once every gateway saw the new one.
    Return,
    /// The state of the primary is replaced by an earlier one, and every connection ends.
    Restore,
    Restart(usize),
}

fn origin(timeline: i64) -> PrimaryIdentity {
    PrimaryIdentity {
        system: "1".to_owned(),
        timeline,
    }
}

impl Gateway {
    fn proof(&self) -> Option<Proof> {
        self.proof.map(|(number, timeline)| Proof {
            id: Uuid::from_u128(number.into()),
            at: i64::from(number),
            timeline,
            is_safe: true,
        })
    }

    /// Lets the fence with this memory act.
    fn act<T>(&mut self, act: impl FnOnce(&Fence) -> T) -> T {
        let fence = Fence::new();
        if let Some(seen) = self.seen {
            fence.admit(&origin(seen)).unwrap();
        }
        if let Some(proof) = self.proof() {
            fence.keep(proof);
            if self.is_replaced {
                fence.miss(proof, &origin(proof.timeline)).unwrap_err();
            }
        }
        let acted = act(&fence);
        self.is_replaced = fence.check_state().is_err();
        acted
    }
}

impl Failover {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn connect(&self, state: &mut State, number: usize, server: usize) {
        let to = &state.servers[server];
        let gateway = &mut state.gateways[number];
        let at = origin(to.timeline);
        let last = gateway.proof();
        let has_last = gateway.proof.is_none_or(|it| to.proofs.contains(&it.0));
        let is_asked = !self.has(Fault::AsksForNoProof);
        let opened = gateway.act(|fence| {
            fence.check_state()?;
            fence.admit(&at)?;
            match last {
                Some(last) if !has_last && is_asked => fence.miss(last, &at),
                _ => Ok(()),
            }
        });
        let is_former = gateway.seen > Some(to.timeline);
        if opened.is_err() {
            state.has_refused_former |= is_former;
            state.has_refused_restored |= gateway.is_replaced;
        }
        if opened.is_ok() || self.has(Fault::UsesAnyServer) {
            gateway.link = Some((server, to.timeline));
        }
        if opened.is_ok() {
            gateway.seen = gateway.seen.max(Some(to.timeline));
        }
    }

    /// The server of a connection, if it can be used and commits there are confirmed.
    fn usable(&self, state: &mut State, number: usize) -> Option<usize> {
        let gateway = &mut state.gateways[number];
        let (server, timeline) = gateway.link?;
        let is_usable = gateway.act(|fence| fence.is_current(&origin(timeline)));
        let ignores = self.has(Fault::KeepsOldConnections) || self.has(Fault::UsesAnyServer);
        let confirms = state.servers[server].confirms;
        (confirms && (is_usable || ignores)).then_some(server)
    }

    /// The standby has what its primary committed.
    fn replicate(&self, state: &mut State, server: usize) {
        let [first, second] = &mut state.servers;
        if server == 0 && !second.is_primary && !self.has(Fault::PromotesWithoutCommits) {
            second.tables = first.tables.clone();
            second.proofs = first.proofs.clone();
        }
    }

    fn beat(&self, state: &mut State, number: usize) {
        let Some(server) = self.usable(state, number) else {
            return;
        };
        let to = &mut state.servers[server];
        let gateway = &mut state.gateways[number];
        if let Some(last) = gateway.proof()
            && !to.proofs.contains(&gateway.proof.map_or(0, |it| it.0))
        {
            let _ = gateway.act(|fence| fence.miss(last, &origin(to.timeline)));
            gateway.link = None;
            return;
        }
        if state.proofs == 4 {
            return;
        }
        state.proofs += 1;
        to.proofs.insert(state.proofs);
        gateway.proof = Some((state.proofs, to.timeline));
        self.replicate(state, server);
    }

    fn claim(&self, state: &mut State, number: usize) {
        let Some(server) = self.usable(state, number) else {
            return;
        };
        let gateway = &state.gateways[number];
        let to = &mut state.servers[server];
        state.was_decided_on_a_former_primary |= gateway.seen > Some(to.timeline);
        state.was_decided_on_another_state |= gateway
            .proof
            .is_some_and(|last| !to.proofs.contains(&last.0));
        let mut batch = Vec::new();
        let outcome = queue(&mut batch, payment());
        let written = to.tables.decide(&mut batch);
        batch.into_iter().for_each(|change| change.answer(Ok(())));
        to.tables.commit(&written);
        match told(outcome) {
            Decision::Held(_) => state.granted = (state.granted + 1).min(2),
            _ => state.has_replayed_after_promotion |= server == 1,
        }
        self.replicate(state, server);
    }
}

fn payment() -> ClaimRequest {
    ClaimRequest {
        request: Some(RequestIdClaim {
            id: RequestHash::from_bytes([0; 16]),
            date: at(BEGIN),
            retention: Retention::Day,
        }),
        quota: None,
        now: at(BEGIN),
    }
}

impl Model for Failover {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let server = |is_primary| Server {
            timeline: 1,
            is_primary,
            confirms: is_primary,
            tables: Tables::default(),
            proofs: BTreeSet::new(),
        };
        vec![State {
            servers: [server(true), server(false)],
            gateways: vec![Gateway::default(); self.gateways],
            proofs: 0,
            granted: 0,
            was_decided_on_a_former_primary: false,
            was_decided_on_another_state: false,
            has_replayed_after_promotion: false,
            has_refused_former: false,
            has_refused_restored: false,
            was_promoted: false,
            has_returned: false,
            was_restored: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for number in 0..state.gateways.len() {
            let primaries = (0..2).filter(|server| state.servers[*server].is_primary);
            steps
                .extend(primaries.flat_map(|server| {
                    [Step::Connect(number, server), Step::Look(number, server)]
                }));
            steps.extend([Step::Beat(number), Step::Claim(number)]);
            // One that starts and reaches no other server has seen none.
            if !state.has_returned && !state.was_restored {
                steps.push(Step::Restart(number));
            }
        }
        let mut gateways = state.gateways.iter();
        if !state.was_promoted {
            steps.push(Step::Promote);
        } else if !state.has_returned && gateways.clone().all(|it| it.seen == Some(2)) {
            steps.push(Step::Return);
        }
        if !state.was_restored && gateways.all(|it| it.proof.is_some()) {
            steps.push(Step::Restore);
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut state = before.clone();
        match step {
            Step::Connect(number, server) => self.connect(&mut state, number, server),
            Step::Look(number, server) => {
                let timeline = state.servers[server].timeline;
                let gateway = &mut state.gateways[number];
                if gateway.act(|fence| fence.admit(&origin(timeline))).is_ok() {
                    gateway.seen = gateway.seen.max(Some(timeline));
                }
            }
            Step::Beat(number) => self.beat(&mut state, number),
            Step::Claim(number) => self.claim(&mut state, number),
            Step::Promote => {
                state.was_promoted = true;
                let [former, primary] = &mut state.servers;
                former.confirms = false;
                primary.timeline = 2;
                (primary.is_primary, primary.confirms) = (true, true);
            }
            Step::Return => {
                state.has_returned = true;
                state.servers[0].confirms = true;
            }
            Step::Restore => {
                state.was_restored = true;
                let server = &mut state.servers[usize::from(state.was_promoted)];
                server.tables = Tables::default();
                server.proofs.clear();
                self.replicate(&mut state, 0);
                state.gateways.iter_mut().for_each(|it| it.link = None);
            }
            Step::Restart(number) => state.gateways[number] = Gateway::default(),
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is decided on a former primary", |_, it: &State| {
                !it.was_decided_on_a_former_primary
            }),
            Property::always("nothing is decided on another state", |_, it: &State| {
                !it.was_decided_on_another_state
            }),
            Property::always("a request is granted once", |_, it: &State| it.granted < 2),
            Property::sometimes("a replay is refused by the new primary", |_, it: &State| {
                it.has_replayed_after_promotion
            }),
            Property::sometimes("a former primary is refused", |_, it: &State| {
                it.has_refused_former
            }),
            Property::sometimes("a restored state is refused", |_, it: &State| {
                it.has_refused_restored
            }),
        ]
    }
}

const TWO: Failover = Failover {
    gateways: 2,
    fault: None,
};

#[test]
fn a_failover_with_two_gateways() {
    explore("failover", TWO);
}

#[test]
fn each_planted_fault_is_found() {
    for fault in [
        Fault::UsesAnyServer,
        Fault::KeepsOldConnections,
        Fault::AsksForNoProof,
        Fault::PromotesWithoutCommits,
    ] {
        let fault = Some(fault);
        finds(fault, Failover { fault, ..TWO });
    }
}
