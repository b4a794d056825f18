//! `GET /events`: the stream of events, for the bank's services (CTL-3). docs/events.md is the manual.
//!
//! Invariants: an event is answered again until its consumer sends a later cursor; the number of calls that wait is bounded, and a stop ends
//! them at once; one answer is made at a time, so that other calls wait for one at most. The audit has no record of a poll.

use super::{
    context::ControlContext,
    fault::{self, ApiFault},
    guard::{self, Arrival, ClientNames},
    listen::StopSignal,
    members,
};
use crate::{
    in_use::InUse,
    state::{Cursor, Event, EventsAnswer},
    telemetry::PollResult,
};
use axum::{
    Extension,
    extract::{RawQuery, Request, State},
    http::Method,
    response::Response,
};
use serde_json::{Map, Value, json};
use std::{ops::RangeInclusive, str::FromStr, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most calls that wait for an event.
const MOST_WAITING: usize = 16;

/// The most events of an answer, and their number without `limit`.
const MOST: usize = 1_000;
const USUAL: usize = 100;

/// The longest wait, in seconds.
const LONGEST: u64 = 60;

/// The time after which a call that waits looks at the clock and at the configuration.
const TICK: Duration = Duration::from_secs(1);

/// The time in which each consumer is looked for whether it lags.
const LOOK: Duration = Duration::from_secs(15);

const LIMIT_TEXT: &str = "limit must be a number from 1 to 1000.";
const WAIT_TEXT: &str = "wait must be a number of seconds from 0 to 60.";

/// What a call needs beside the configuration.
#[derive(Clone, Debug)]
pub(super) struct Polling {
    closing: StopSignal,
    context: Arc<ControlContext>,
    room: Arc<Semaphore>,
    /// The call that reads events and makes an answer of them has it.
    turn: Arc<Semaphore>,
}

/// An answer, and the turn in which it was made, which lasts until the answer is text; an answer without events needs none.
type Answered = Result<(Value, Option<OwnedSemaphorePermit>), ApiFault>;

/// What a call asks for.
struct Asked {
    after: Option<Cursor>,
    limit: usize,
    wait: Duration,
}

impl Polling {
    pub(super) fn new(closing: StopSignal, context: Arc<ControlContext>) -> Self {
        Self {
            closing,
            context,
            room: Arc::new(Semaphore::new(MOST_WAITING)),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// The events after the cursor, as soon as there is one, and none at the end of the wait. A cursor of this stream is the place of the
    /// consumer; a call that is no poll has none.
    async fn answer(
        mut self,
        asked: &Asked,
        in_use: &Arc<InUse>,
        mut consumer: Option<&str>,
    ) -> Answered {
        let mut end = std::pin::pin!(tokio::time::sleep(asked.wait));
        let mut is_over = asked.wait.is_zero();
        let mut changes = self.context.store.events_changed();
        let mut place = None;
        self.note_time();
        loop {
            let turn = Arc::clone(&self.turn).acquire_owned().await;
            let turn = turn.map_err(|_| ApiFault::Unavailable)?;
            changes.borrow_and_update();
            let found = self.context.store.events(asked.after, asked.limit).await?;
            let (events, next) = match found {
                EventsAnswer::Events { events, next, .. } => (events, next),
                EventsAnswer::TooOld { oldest } => {
                    return Err(ApiFault::CursorTooOld {
                        oldest: oldest.to_string(),
                    });
                }
                EventsAnswer::Restored { oldest } => {
                    return Err(ApiFault::StreamRestored {
                        oldest: oldest.to_string(),
                    });
                }
                EventsAnswer::Unknown => return Err(ApiFault::CursorUnknown),
            };
            if let Some(consumer) = consumer.take() {
                let consumers = &self.context.telemetry.consumers;
                consumers.note(consumer, asked.after);
            }
            let answer = |events: &[Event], turn| {
                let events: Vec<Value> = events.iter().map(shown).collect();
                Ok((json!({ "events": events, "next": next.to_string() }), turn))
            };
            if !events.is_empty() || is_over {
                return answer(&events, Some(turn));
            }
            drop(turn);
            if place.is_none() {
                let taken = Arc::clone(&self.room).try_acquire_owned();
                place = Some(taken.map_err(|_| ApiFault::TooManyWait)?);
            }
            loop {
                tokio::select! {
                    changed = changes.changed() => match changed {
                        Ok(()) => break,
                        Err(_) => return Err(ApiFault::Unavailable),
                    },
                    () = &mut end => is_over = true,
                    _ = self.closing.wait_for(|closes| *closes) => is_over = true,
                    () = tokio::time::sleep(TICK) => {}
                }
                self.note_time();
                // Events cannot come from a state that is away: the next reading says so.
                let is_away = self.context.store.health(self.context.clock.now()).is_err();
                if is_over || is_away || self.is_replaced(in_use) {
                    break;
                }
            }
            // A reload may have taken the role from the caller: the next call is judged anew.
            if self.is_replaced(in_use) {
                return answer(&[], None);
            }
        }
    }

    /// A consent that has ended by now gets its event, also while nobody but consumers calls.
    fn note_time(&self) {
        self.context.store.note_time(self.context.clock.now());
    }

    fn is_replaced(&self, in_use: &Arc<InUse>) -> bool {
        !Arc::ptr_eq(in_use, &self.context.current.load_full())
    }
}

/// `GET /events`. HEAD is answered as for the other calls; it reads no event, so that it is no poll.
pub(super) async fn poll(
    State(polling): State<Polling>,
    Extension(in_use): Extension<Arc<InUse>>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let context = Arc::clone(&polling.context);
    let is_poll = request.method() != Method::HEAD;
    let extensions = request.extensions();
    let consumer = guard::consumer(
        &in_use.control,
        extensions.get::<Arrival>(),
        extensions.get::<ClientNames>(),
    );
    let answered: Answered = match read_query(query.as_deref().unwrap_or_default()) {
        Ok(asked) => {
            let consumer = is_poll.then_some(consumer);
            polling.answer(&asked, &in_use, consumer).await
        }
        Err(fault) => Err(fault),
    };
    if is_poll {
        context.telemetry.consumers.count(result_of(&answered));
    }
    match answered {
        Ok((answer, _turn)) => fault::json(200, &answer),
        Err(fault) => fault.answer(&context),
    }
}

fn result_of(answered: &Answered) -> PollResult {
    match answered {
        Ok((answer, _)) if answer["events"] == json!([]) => PollResult::Empty,
        Ok(_) => PollResult::Events,
        Err(ApiFault::CursorTooOld { .. }) => PollResult::TooOld,
        Err(ApiFault::StreamRestored { .. }) => PollResult::Restored,
        Err(ApiFault::TooManyWait) => PollResult::TooMany,
        Err(ApiFault::Unavailable) => PollResult::Failed,
        Err(_) => PollResult::Invalid,
    }
}

/// Reads `after`, `limit` and `wait`, each at most once.
fn read_query(query: &str) -> Result<Asked, ApiFault> {
    let (mut after, mut limit, mut wait) = (None, None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let member = match name {
            "after" => &mut after,
            "limit" => &mut limit,
            "wait" => &mut wait,
            _ => {
                return Err(ApiFault::EventsQuery(
                    "/events takes after, limit and wait only.",
                ));
            }
        };
        if member.replace(value).is_some() {
            return Err(ApiFault::EventsQuery(
                "A parameter of the query stands more than once.",
            ));
        }
    }
    let limit = limit.map_or(Some(USUAL), |text| number(text, 1..=MOST));
    let wait = wait.map_or(Some(0), |text| number(text, 0..=LONGEST));
    let after = after.map(|text| Cursor::parse(text).ok_or(ApiFault::CursorUnknown));
    Ok(Asked {
        after: after.transpose()?,
        limit: limit.ok_or(ApiFault::EventsQuery(LIMIT_TEXT))?,
        wait: Duration::from_secs(wait.ok_or(ApiFault::EventsQuery(WAIT_TEXT))?),
    })
}

/// A number in decimal digits, without a sign and without zeros before it.
fn number<N>(text: &str, range: RangeInclusive<N>) -> Option<N>
where
    N: FromStr + ToString + PartialOrd,
{
    let number = text.parse().ok().filter(|number| range.contains(number))?;
    // Each number has one text.
    (number.to_string() == text).then_some(number)
}

/// An event as JSON. Members that a kind does not have are left out.
fn shown(event: &Event) -> Value {
    let mut shown = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown.insert(name.to_owned(), value);
        }
    };
    add("sequence", Some(json!(event.sequence)));
    add("at", members::shown(event.at).map(Value::from));
    add("kind", Some(json!(event.kind.name())));
    add("tpp", Some(json!(event.tpp.as_str())));
    let customer = event.customer.map(|customer| customer.to_string());
    add("customer", customer.map(Value::from));
    let corporate = event.kind.is_of_consent().then_some(event.corporate);
    add("corporate", corporate.map(Value::from));
    add("accounts", event.accounts.map(Value::from));
    add("detail", event.detail.clone().map(Value::from));
    add(
        "until",
        event.until.and_then(members::shown).map(Value::from),
    );
    Value::Object(shown)
}

/// Asks for the oldest event that each consumer has not taken, for the metric of those that lag.
pub(super) async fn watch_consumers(context: &ControlContext) {
    loop {
        tokio::time::sleep(LOOK).await;
        for (name, after) in context.telemetry.consumers.positions() {
            let found = context.store.events(after, 1).await;
            let Ok(EventsAnswer::Events { events, .. }) = found else {
                continue;
            };
            let since = events.first().map(|event| event.at);
            context.telemetry.consumers.waits(&name, after, since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= CTL-3 refused
    #[test]
    fn each_kind_of_refusal_is_counted_by_itself() {
        let oldest = || "x".to_owned();
        let refused = |fault| result_of(&Err(fault)).name();
        assert_eq!(
            [
                refused(ApiFault::CursorTooOld { oldest: oldest() }),
                refused(ApiFault::StreamRestored { oldest: oldest() }),
                refused(ApiFault::TooManyWait),
                refused(ApiFault::Unavailable),
                refused(ApiFault::CursorUnknown),
            ],
            ["too_old", "restored", "too_many", "failed", "invalid"]
        );
    }
}
