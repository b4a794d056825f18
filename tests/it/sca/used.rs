//! CTL-1: the day on which a TPP last used a context of a PSU.

use super::{OTHER, PSU, accounts, complete};
use crate::harness::{Call, Gate, Protocol, Reply, accepted, eventually, needs_sca};
use portvakt::{
    clock::{Clock, Timestamp},
    interface::{TppId, headers::PsuId},
    state::{Known, PsuRef, StateSettings, StateStore},
};
use tokio::runtime::Runtime;

const DAY: u64 = 86_400;
const THEN: u64 = 1_790_000_000;

/// The state of a gate, as another process reads it.
struct State {
    runtime: Runtime,
    store: StateStore,
    tpp: TppId,
}

impl State {
    fn of(gate: &Gate) -> Self {
        let folder = gate.folder().join("state");
        let settings = StateSettings::new(folder.join("portvakt.db"), folder.join("hash.key"));
        let runtime = Runtime::new().unwrap();
        let store = runtime.block_on(async { StateStore::open(&settings).unwrap() });
        let tpp = TppId::parse(&gate.world().both.id().unwrap()).unwrap();
        Self {
            runtime,
            store,
            tpp,
        }
    }

    /// The day of the last use of a PSU's private context.
    fn used(&self, psu: &str) -> Option<Timestamp> {
        let who = PsuRef {
            tpp: &self.tpp,
            psu: Known::by_bank(PsuId::parse(psu.as_bytes()).unwrap()),
        };
        let known = self.runtime.block_on(self.store.psu_now(who));
        let known = known.unwrap().unwrap();
        known.context(None).unwrap().used
    }

    fn eventually_used(&self, psu: &str, day: Timestamp) {
        eventually("the day of use is written", || {
            let used = self.used(psu);
            (used == Some(day)).then_some(()).ok_or(used)
        });
    }
}

/// A use by another PSU, which is written, follows what must not be written.
//= CTL-1 accepted
#[test]
fn a_day_of_use_is_that_of_a_request_that_the_core_executed() {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder().strangers().clock(&clock).start();
    for psu in [PSU, OTHER] {
        let answer = needs_sca(&gate, &accounts());
        complete(&gate, &answer, psu);
    }
    let state = State::of(&gate);
    let list = |psu: &str| accounts().with("PSU-ID", psu);
    let [today, tomorrow] = [THEN, THEN + DAY].map(|at| Timestamp::from_unix(at - at % DAY));
    // The gateway refuses, and then the core.
    needs_sca(&gate, &list(PSU).with("TPP-Session-ID", "T"));
    let refusal = r#"{"code":"SERVICE_BLOCKED"}"#;
    gate.upstream().reply(Reply::json(403, refusal));
    let answer = gate.send(&list(PSU), Protocol::Http1);
    assert_eq!(answer.status, 403);
    gate.upstream().reply(Reply::json(200, "{}"));
    accepted(&gate, &list(OTHER));
    state.eventually_used(OTHER, today);
    assert_eq!(state.used(PSU), None);
    accepted(&gate, &list(PSU));
    state.eventually_used(PSU, today);
    // On the next day the session is too old for account information.
    clock.set(Timestamp::from_unix(THEN + DAY));
    needs_sca(&gate, &list(PSU));
    accepted(&gate, &list(OTHER).without("TPP-Session-ID"));
    state.eventually_used(OTHER, tomorrow);
    assert_eq!(state.used(PSU), Some(today));
    // A payment is a use too.
    accepted(&gate, &Call::payment().with("PSU-ID", PSU));
    state.eventually_used(PSU, tomorrow);
}
