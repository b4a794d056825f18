//! What one gateway does with its requests: its process is the real one.

use super::state::{Fault, Gateway, ID, Ids, Memory, Request, State, claim};
use crate::{
    ClaimRequest, Decision, RequestHash, RequestIdClaim, Retention,
    clock::ClockRow,
    model::{
        at, see,
        store::{Written, queue, told},
    },
    process::NotBegun,
    rules::{GiveBack, Table},
};

impl Ids {
    /// The whole body is there: the Date is judged once more, and the id is claimed in memory.
    pub(super) fn begin(&self, state: &mut State, number: usize, request: usize) {
        let gateway = &mut state.gateways[number];
        let now = gateway.clock;
        if !self.is_dated(now) && self.fault != Some(Fault::JudgesTheDateOnce) {
            gateway.requests.remove(request);
            return;
        }
        let begun = gateway.memory.act(|process| {
            let begun = process.begin(claim(self.retention, now));
            if begun.is_ok() {
                process.note(at(now));
            }
            // What happens when it is dropped is a step of its own.
            begun.map(|begun| {
                std::mem::forget(begun.in_memory);
                begun.judged
            })
        });
        match begun {
            Ok(_) if self.retention == Retention::Memory => {
                gateway.requests[request] = Request::Held { now };
            }
            Ok(judged) => gateway.requests[request] = Request::Begun { now, judged },
            Err(refused) => {
                gateway.requests.remove(request);
                match refused {
                    NotBegun::Replayed if self.fault == Some(Fault::GivesBackWhatIsRefused) => {
                        self.undo(state, number);
                    }
                    NotBegun::Replayed => see("refused_by_memory"),
                    NotBegun::Unavailable(_) => see("refused_by_clock"),
                }
            }
        }
    }

    /// A request of another id.
    pub(super) fn other(state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let now = at(gateway.clock);
        let other = RequestIdClaim {
            id: RequestHash::from_bytes([0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
            date: now,
            retention: Retention::Memory,
        };
        let claim = ClaimRequest {
            request: Some(other),
            quota: None,
            now,
        };
        gateway.memory.act(|process| {
            process
                .begin(claim)
                .map(|begun| std::mem::forget(begun.in_memory))
                .is_ok()
        });
    }

    /// A transaction takes the row, and decides.
    pub(super) fn decide(&self, state: &mut State, number: usize, request: usize) {
        let gateway = &mut state.gateways[number];
        let Request::Begun { now, judged } = gateway.requests[request] else {
            return;
        };
        let mut batch = Vec::new();
        let outcome = queue(&mut batch, claim(self.retention, now));
        let written = state.tables.decide(&mut batch);
        batch.into_iter().for_each(|change| change.answer(Ok(())));
        let is_held = matches!(told(outcome), Decision::Held(_));
        let is_early = self.fault == Some(Fault::AnswersBeforeCommit);
        gateway.requests[request] = match is_held {
            true if is_early => Request::Held { now },
            true => Request::Decided {
                now,
                judged,
                is_held,
            },
            // Nothing is written.
            false => Request::Committed {
                now,
                judged,
                is_held,
            },
        };
        if is_held {
            gateway.written = written;
        }
    }

    /// The transaction takes effect, and so does the gateway's clock.
    pub(super) fn commit(&self, state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let written = std::mem::take(&mut gateway.written);
        if self.fault != Some(Fault::ForgetsIdsAtRestart) {
            state.tables.commit(&written);
        }
        if self.retention == Retention::Day {
            state.clock.latest = state.clock.latest.max(gateway.memory.latest);
        }
    }

    /// The caller is told the outcome.
    pub(super) fn answer(&self, state: &mut State, number: usize, request: usize) {
        let gateway = &mut state.gateways[number];
        let Request::Committed {
            now,
            judged,
            is_held,
        } = gateway.requests[request]
        else {
            return;
        };
        let holds = gateway.memory.act(|process| process.holds(judged).is_ok());
        if is_held && (holds || self.fault == Some(Fault::WaitsAnyTime)) {
            gateway.requests[request] = Request::Held { now };
        } else {
            see(if is_held {
                "refused_by_clock"
            } else {
                "refused_by_store"
            });
            gateway.requests.remove(request);
            self.undo(state, number);
        }
    }

    /// The gateway asks on a new connection whether the transaction took effect, which it cannot do later then.
    pub(super) fn ask(&self, state: &mut State, number: usize, request: usize) {
        let gateway = &mut state.gateways[number];
        let Request::Unclear {
            now,
            judged,
            is_done,
        } = gateway.requests[request]
        else {
            return;
        };
        if is_done {
            see("asked_and_done");
        } else {
            see("asked_and_not_done");
        }
        let is_held = true;
        let blind = self.fault == Some(Fault::TakesUnclearForCommitted);
        gateway.written = Written::default();
        gateway.requests[request] = if is_done || blind {
            Request::Committed {
                now,
                judged,
                is_held,
            }
        } else {
            Request::Begun { now, judged }
        };
    }

    /// A claim in memory whose request was not granted is undone.
    pub(super) fn undo(&self, state: &mut State, number: usize) {
        let until = claim(self.retention, 0)
            .request
            .and_then(|it| it.in_memory_until());
        if let Some(until) = until {
            let memory = &mut state.gateways[number].memory;
            memory.act(|process| process.request_ids.forget(ID, until));
        }
    }

    /// The core gets the request.
    pub(super) fn forward(&self, state: &mut State, number: usize, request: usize) {
        let gateway = &mut state.gateways[number];
        let held = gateway.requests.remove(request);
        state.granted = (state.granted + 1).min(2);
        if self.fault == Some(Fault::GivesBackWhatTheCoreHas)
            && let Request::Held { now } = held
        {
            gateway.requests.push(Request::GivingBack { now });
            self.undo(state, number);
        }
    }

    /// The core was never connected: the id is given back, in memory first.
    pub(super) fn fail(&self, state: &mut State, number: usize, request: usize) {
        let requests = &mut state.gateways[number].requests;
        if let Request::Held { now } = requests.remove(request)
            && self.retention != Retention::Memory
        {
            requests.push(Request::GivingBack { now });
        }
        self.undo(state, number);
    }

    /// Gives the id back in the store.
    pub(super) fn give_back(&self, state: &mut State, number: usize, request: usize) {
        let Request::GivingBack { now } = state.gateways[number].requests.remove(request) else {
            return;
        };
        let mut batch = Vec::new();
        let give_back = GiveBack {
            claim: claim(self.retention, now),
            call: None,
            with_request: true,
        };
        queue(&mut batch, give_back);
        let written = state.tables.decide(&mut batch);
        state.tables.commit(&written);
        see("given_back");
    }

    /// Housekeeping: the store gets the time first.
    pub(super) fn sweep(&self, state: &mut State, number: usize) {
        let Gateway { clock, memory, .. } = &mut state.gateways[number];
        let noted = at(*clock);
        // As each request and each call of `/readyz` does.
        let now = memory.act(|process| {
            process.note(noted);
            process.housekeeping_time()
        });
        let Some(now) = now else {
            return;
        };
        if self.fault != Some(Fault::SweepsWithoutTheClock) {
            state.clock.latest = state.clock.latest.max(memory.latest);
        }
        let before = state.tables.clone();
        state.tables.sweep(Table::Request, now);
        if before != state.tables {
            see("swept");
        }
    }

    /// The gateway hears the clocks of the others.
    pub(super) fn follow(state: &mut State, number: usize) {
        let stored = state.clock;
        let merged = state.gateways[number]
            .memory
            .act(|process| process.heed_clock(stored));
        if stored.latest + 3_600 <= merged.latest || merged.stepped_back && !stored.stepped_back {
            state.clock.latest = merged.latest;
            state.clock.stepped_back |= merged.stepped_back;
        }
    }

    pub(super) fn crash(&self, state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let committed = gateway.requests.iter();
        if committed
            .into_iter()
            .any(|it| matches!(it, Request::Committed { is_held: true, .. }))
        {
            see("crashed_after_commit");
        }
        gateway.requests.clear();
        gateway.written = Written::default();
        let forgets = self.fault == Some(Fault::ForgetsTheClock);
        let stored = if forgets {
            ClockRow::default()
        } else {
            state.clock
        };
        gateway.memory = Memory::begun(stored);
        if self.retention == Retention::Memory {
            state.granted = 0;
        }
    }
}
