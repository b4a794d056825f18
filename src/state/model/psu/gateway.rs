//! What one gateway does: its changes are decided by the rules, and its cache is the real one.

use super::{
    state::{Batch, CACHE, Fault, Gateway, Knowledge, Phase, State, Step, Waiting},
    told::Told,
    words::{KEYS, Op, PSU, Tpp, session_id},
};
use crate::{
    Bind, Completion, ConsentAccounts, Finish, Learned, LearnedContext, ReportHash, TokenHash,
    Withdraw,
    cache::Reading,
    change::{Outcome, QueuedChange},
    model::{
        BEGIN, at, see,
        store::{PsuRow, Row, Written, queue, told},
    },
    moves::Moves,
    rules::{Erasure, LastRemoval, NewBinding, Removal, ScaEnd, Withdrawal},
};

impl Knowledge {
    pub(super) fn actions_at(
        &self,
        state: &State,
        number: usize,
        gateway: &Gateway,
        steps: &mut Vec<Step>,
    ) {
        for (index, op) in state.unsaid.iter().enumerate() {
            let is_first = state.unsaid.iter().position(|it| it == op) == Some(index);
            let may_say = match op {
                Op::Learn(_) => gateway.asked.is_some(),
                _ => true,
            };
            if is_first && may_say && gateway.waiting.len() < 2 {
                steps.push(Step::Say(number, index));
            }
        }
        let is_locked = self.is_locked(state, number);
        let learns = state.unsaid.iter().any(|op| matches!(op, Op::Learn(_)));
        if learns && gateway.asked.is_none() && !is_locked {
            steps.push(Step::AskCore(number));
        }
        match gateway.batch.as_ref().map(|batch| batch.phase) {
            None if !gateway.waiting.is_empty() && !is_locked => steps.push(Step::Decide(number)),
            None => {}
            Some(Phase::Decided) => {
                steps.push(Step::Commit(number));
                if state.losses > 0 {
                    steps.push(Step::Lose(number));
                }
            }
            Some(Phase::Committed(_) | Phase::Asked(_)) => steps.push(Step::Answer(number)),
            Some(Phase::Unclear(done)) => {
                steps.push(Step::Ask(number));
                if done.is_none() {
                    steps.push(Step::TakeEffect(number));
                }
            }
        }
        if self.looks_up {
            steps.push(match gateway.read {
                None => Step::Read(number),
                Some(_) => Step::Cache(number),
            });
            if gateway.cached.is_some() {
                steps.push(Step::Serve(number));
            }
            steps.push(Step::Follow(number));
        }
        if state.crashes > 0 {
            steps.push(Step::Crash(number));
        }
    }

    /// Whether a transaction of another gateway holds the rows.
    fn is_locked(&self, state: &State, by_other_than: usize) -> bool {
        let mut others = state.gateways.iter().enumerate();
        let holds = |phase| matches!(phase, Phase::Decided | Phase::Unclear(None));
        self.fault != Some(Fault::DecidesOnSharedRows)
            && others.any(|(number, other)| {
                number != by_other_than && other.batch.as_ref().is_some_and(|it| holds(it.phase))
            })
    }

    pub(super) fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Say(number, index) => {
                let op = state.unsaid.remove(index);
                let gateway = &mut state.gateways[number];
                let since = match op {
                    Op::Learn(_) if self.fault == Some(Fault::ReadsTheMarkLate) => {
                        let asked = gateway.asked.take();
                        let last = last_removal(state);
                        asked.map(|(_, removals)| (last, removals))
                    }
                    Op::Learn(_) => gateway.asked.take(),
                    _ => None,
                };
                state.gateways[number].waiting.push((op, since));
            }
            Step::AskCore(number) => {
                let asked = (last_removal(state), state.expected.removals);
                state.gateways[number].asked = Some(asked);
            }
            Step::Decide(number) => self.decide(state, number),
            Step::Commit(number) | Step::TakeEffect(number) => Self::commit(state, number),
            Step::Lose(number) => {
                state.losses -= 1;
                let gateway = &mut state.gateways[number];
                if let Some(batch) = &mut gateway.batch {
                    batch.phase = Phase::Unclear(None);
                }
                // It may have taken effect.
                gateway.drop_changed();
            }
            Step::Ask(number) => self.ask(state, number),
            Step::Answer(number) => self.answer(state, number),
            Step::Read(number) => {
                let row = state.psu().cloned();
                state.gateways[number].read = Some((row, state.version, false));
            }
            Step::Cache(number) => self.cache(state, number),
            Step::Serve(number) => {
                let gateway = &state.gateways[number];
                let is_fresh = |cached: &(PsuRow, u8)| cached.1 >= gateway.heard;
                state.served_stale |= !gateway.cached.as_ref().is_none_or(is_fresh);
                see("served");
            }
            Step::Follow(number) => {
                let gateway = &mut state.gateways[number];
                if gateway.heard < state.version && self.fault != Some(Fault::ReadsNoLog) {
                    gateway.drop_changed();
                }
                gateway.heard = state.version;
            }
            Step::Crash(number) => {
                state.crashes -= 1;
                state.gateways[number] = Gateway {
                    heard: state.version,
                    ..Gateway::default()
                };
            }
        }
    }

    fn decide(&self, state: &mut State, number: usize) {
        let waiting = std::mem::take(&mut state.gateways[number].waiting);
        let (told, mut written) = decided(state, &waiting);
        // Marks are random: they are numbered here, unless two are the same.
        let (_, again) = decided(state, &waiting);
        let mut rows = written.0.iter_mut().zip(again.0.values());
        rows.by_ref().for_each(|((_, row), again)| {
            if let (Some(Row::Token(said, _)), Some(Row::Token(other, _))) = (row, again)
                && said != other
            {
                *said = ReportHash::from_bytes([state.expected.removals + 100; 16]);
            }
        });
        if waiting.len() > 1 {
            see("shared_commit");
        }
        state.gateways[number].batch = Some(Batch {
            words: waiting.into_iter().zip(told).collect(),
            written,
            phase: Phase::Decided,
        });
    }

    fn commit(state: &mut State, number: usize) {
        let Some(batch) = &mut state.gateways[number].batch else {
            return;
        };
        state.tables.commit(&batch.written);
        state.version += u8::from(batch.written.psu().is_some());
        batch.phase = match batch.phase {
            Phase::Unclear(_) => Phase::Unclear(Some(state.version)),
            _ => Phase::Committed(state.version),
        };
        for ((op, since), told) in batch.words.clone() {
            let before = state.expected;
            let removals = since.map_or(0, |(_, removals)| removals);
            let expected = state.expected.hear(op, removals);
            state.is_wrong |= expected != told;
            let is_late = matches!(op, Op::Learn(_)) && removals != before.removals;
            if before.session.is_some()
                && state.expected.session.is_some()
                && before.session != state.expected.session
            {
                see("replaced_session");
            }
            if told == Told::Again {
                see("repeated");
            }
            if matches!((op, told), (Op::Learn(_), Told::Done)) {
                see("learned");
            }
            if is_late {
                see("learned_too_late");
            }
            if before.owner == Some((Tpp::B, true))
                && matches!(state.expected.owner, Some((_, false)))
            {
                see("taken_over");
            }
        }
        state.is_wrong |= !state.expected.is(state.psu());
    }

    fn ask(&self, state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let Some(batch) = &mut gateway.batch else {
            return;
        };
        let Phase::Unclear(done) = batch.phase else {
            return;
        };
        match done {
            Some(version) => {
                batch.phase = Phase::Asked(version);
                see("asked_and_done");
            }
            None if self.fault == Some(Fault::TakesUnclearForCommitted) => {
                state.was_told_wrongly = true;
            }
            None => {
                let words = std::mem::take(&mut batch.words).into_iter();
                let mut again: Vec<Waiting> = words.map(|(waiting, _)| waiting).collect();
                again.append(&mut gateway.waiting);
                gateway.waiting = again;
                gateway.batch = None;
            }
        }
        if self.fault != Some(Fault::KeepsWhatIsUnclear) {
            state.gateways[number].drop_changed();
        }
    }

    fn answer(&self, state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let Some(batch) = gateway.batch.take() else {
            return;
        };
        let (version, was_asked) = match batch.phase {
            Phase::Committed(version) => (version, false),
            Phase::Asked(version) => (version, true),
            Phase::Decided | Phase::Unclear(_) => return,
        };
        if batch.written.psu().is_some() {
            if !was_asked && self.fault != Some(Fault::KeepsItsOwnChange) {
                gateway.drop_changed();
            }
            gateway.heard = gateway.heard.max(version);
        }
    }

    fn cache(&self, state: &mut State, number: usize) {
        let gateway = &mut state.gateways[number];
        let Some((row, version, is_old)) = gateway.read.clone() else {
            return;
        };
        let changes = u64::from(is_old);
        let takes_any = self.fault == Some(Fault::CachesWhatIsOld);
        let reading = Reading(if takes_any { changes } else { 0 });
        let bound = row.as_ref().map(|row| &row.0);
        // In an empty cache, where it shows whether it is taken.
        let taken = CACHE.with(|cache| {
            cache.keep(*PSU, None, changes);
            cache.put(*PSU, reading, bound);
            cache.psu(*PSU)
        });
        match taken {
            Some(bound) => gateway.cached = Some((PsuRow(bound), version)),
            None if row.is_none() => gateway.with_cache(|cache| cache.put(*PSU, reading, None)),
            None => see("not_cached"),
        }
        gateway.read = None;
    }
}

/// Reads the last removal, as a request does before it goes to the core.
fn last_removal(state: &State) -> Removal {
    let mut batch = Vec::new();
    let outcome = queue(&mut batch, LastRemoval(*PSU));
    state.tables.decide(&mut batch);
    batch.into_iter().for_each(|change| change.answer(Ok(())));
    told(outcome)
}

/// Lets the rules decide about words in one transaction.
fn decided(state: &State, waiting: &[Waiting]) -> (Vec<Told>, Written) {
    let mut batch = Vec::new();
    let outcomes: Vec<_> = waiting
        .iter()
        .map(|(op, since)| queued(&mut batch, *op, since.map(|since| since.0)))
        .collect();
    let written = state.tables.decide(&mut batch);
    batch.into_iter().for_each(|change| change.answer(Ok(())));
    (outcomes.into_iter().map(|read| read()).collect(), written)
}

/// Reads the outcome of a change.
type Reads = Box<dyn FnOnce() -> Told>;

fn reads<T: Into<Told> + 'static>(outcome: Outcome<T>) -> Reads {
    Box::new(move || told(outcome).into())
}

/// Queues the change of a word.
fn queued(batch: &mut Vec<Box<dyn QueuedChange>>, op: Op, since: Option<Removal>) -> Reads {
    let (keys, moves) = (&*KEYS, Moves::default());
    let withdrawal =
        |tpp: Tpp, what| Withdrawal::new(keys, &moves, tpp.psu(), what, at(BEGIN)).unwrap();
    match op {
        Op::WithdrawConsents(tpp) => reads(queue(batch, withdrawal(tpp, Withdraw::Consents))),
        Op::EndSession(tpp) => reads(queue(batch, withdrawal(tpp, Withdraw::Session))),
        Op::Unbind(tpp) => reads(queue(batch, withdrawal(tpp, Withdraw::Binding))),
        Op::Erase => {
            let outcome = queue(batch, Erasure::new(*PSU, at(BEGIN)).unwrap());
            Box::new(|| told(outcome).map_or(Told::Nothing, |_| Told::Done))
        }
        Op::Complete { tpp, token, said } => {
            reads(queue(batch, completion(&moves, tpp, token, said)))
        }
        Op::Learn(tpp) => {
            let context = LearnedContext {
                corporate: None,
                consent: Some((at(BEGIN), &ConsentAccounts::All)),
            };
            let learned = Learned {
                who: tpp.psu(),
                context: Some(context),
                last_sca: None,
            };
            let since = since.unwrap();
            reads(queue(
                batch,
                NewBinding::learned(keys, &moves, &learned, since),
            ))
        }
        Op::Bind(tpp) => {
            let bind = Bind {
                who: tpp.psu(),
                corporate: None,
                imported: false,
                last_sca: at(BEGIN),
                consent: None,
                customer: None,
            };
            reads(queue(batch, NewBinding::by_bank(keys, &moves, &bind)))
        }
    }
}

fn completion(moves: &Moves, tpp: Tpp, token: usize, said: u8) -> ScaEnd {
    let number = u8::try_from(token).unwrap();
    let finish = Finish {
        token: TokenHash::from_bytes([number; 16]),
        expires: at(BEGIN + 900),
        said: ReportHash::from_bytes([said; 16]),
        completion: Some(Completion {
            who: tpp.psu(),
            corporate: None,
            session: session_id(said),
            consent: Some(&ConsentAccounts::All),
            customer: None,
        }),
        now: at(BEGIN),
    };
    ScaEnd::new(&KEYS, moves, finish)
}
