//! Four calls in any 24 hours (QUO-1) over every order of a few calls at the seconds around the limit, beside a count that is written here
//! anew: a list of times, of which those younger than 24 hours count.
//!
//! With `PORTVAKT_EXHAUST=all` (`make exhaust`) the orders have one step more.

use super::{Calls, GiveBack};
use crate::{
    Beside, CallsLeft, ClaimRequest, Decision, QuotaClaim, QuotaHash, change::Change, rows::Rows,
    verbs::Call,
};
use portvakt_base::clock::Timestamp;

/// 24 hours, in seconds.
const DAY: u64 = 86_400;

/// The first second of every order.
const BEGIN: u64 = 1_790_000_000;

/// Seconds beside each other, one day later and two days later: two of them are apart by every number of seconds from two below the limit
/// to two above it.
const EDGES: [u64; 11] = [
    0,
    1,
    2,
    DAY - 1,
    DAY,
    DAY + 1,
    DAY + 2,
    2 * DAY - 1,
    2 * DAY,
    2 * DAY + 1,
    2 * DAY + 2,
];

/// The key of a known PSU, and the one beside it.
const KEYS: [QuotaHash; 2] = [
    QuotaHash::from_bytes([1; 16]),
    QuotaHash::from_bytes([2; 16]),
];

fn more_steps() -> usize {
    usize::from(std::env::var("PORTVAKT_EXHAUST").as_deref() == Ok("all"))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix(seconds)
}

/// The calls that count at a time, the oldest first. A call of a later time counts as well.
fn live(log: &[u64], now: u64) -> Vec<u64> {
    let young = |call: &u64| now < call + DAY;
    let mut live: Vec<u64> = log.iter().copied().filter(young).collect();
    live.sort_unstable();
    live
}

/// The decision by the count.
fn counted(log: &[u64], now: u64) -> Result<(), Timestamp> {
    match live(log, now).as_slice() {
        [.., fourth_last, _, _, _] => Err(at(fourth_last + DAY)),
        _ => Ok(()),
    }
}

/// The rest by the count.
fn left(log: &[u64], now: u64) -> CallsLeft {
    let live = live(log, now);
    let used = &live[live.len().saturating_sub(4)..];
    CallsLeft {
        calls: 4 - u8::try_from(used.len()).unwrap(),
        next: at(used.first().map_or(now, |oldest| oldest + DAY)),
    }
}

/// Whether no five calls lie within 24 hours.
fn are_apart(log: &[u64]) -> bool {
    let mut log = log.to_vec();
    log.sort_unstable();
    log.windows(5).all(|five| five[4] - five[0] >= DAY)
}

/// Every further call at every time, also at an earlier one than the last.
fn in_any_order(calls: Calls, log: &mut Vec<u64>, steps: usize) {
    for now in EDGES.map(|edge| BEGIN + edge) {
        let mut after = calls;
        let taken = after.take(at(now)).map(drop);
        assert_eq!(taken, counted(log, now), "{now} after {log:?}");
        if taken.is_ok() {
            log.push(now);
            assert!(are_apart(log), "{log:?}");
        } else {
            assert_eq!(after, calls);
        }
        if steps > 1 {
            in_any_order(after, log, steps - 1);
        }
        if taken.is_ok() {
            log.pop();
        }
    }
}

//= QUO-1 accepted
//= QUO-1 refused
#[test]
fn calls_in_any_order_of_their_times() {
    in_any_order(Calls::default(), &mut Vec::new(), 6 + more_steps());
}

/// A call, and the one that it replaced.
type Logged = (u64, Option<u64>);

/// The times of the calls.
fn times(log: &[Logged]) -> Vec<u64> {
    log.iter().map(|(call, _)| *call).collect()
}

/// Every further call from the last time on, and every return of a call.
fn with_returns(calls: Calls, log: &mut Vec<Logged>, last: u64, steps: usize) {
    let edges = EDGES.map(|edge| BEGIN + edge);
    for now in edges.into_iter().filter(|now| *now >= last) {
        let mut after = calls;
        let taken = after.take(at(now));
        assert_eq!(
            taken.map(drop),
            counted(&times(log), now),
            "{now} after {log:?}"
        );
        if let Ok(replaced) = taken {
            log.push((now, replaced));
        }
        assert!(are_apart(&times(log)), "{log:?}");
        assert_eq!(after.left(at(now)), left(&times(log), now), "{log:?}");
        if steps > 1 {
            with_returns(after, log, now, steps - 1);
        }
        if taken.is_ok() {
            log.pop();
        }
    }
    for index in 0..log.len() {
        let (call, replaced) = log.remove(index);
        let mut after = calls;
        // Only a call of a day ago may have been replaced by another one.
        assert!(
            after.give_back(at(call), replaced) || call + DAY <= last,
            "{call}"
        );
        assert_eq!(after.left(at(last)), left(&times(log), last), "{log:?}");
        if steps > 1 {
            with_returns(after, log, last, steps - 1);
        }
        log.insert(index, (call, replaced));
    }
}

//= QUO-5 accepted
//= QUO-5 refused
#[test]
fn calls_and_returns_in_the_order_of_time() {
    with_returns(Calls::default(), &mut Vec::new(), BEGIN, 7 + more_steps());
}

/// Every further call at every time, and every return of a call. The calls that were not given back are never five in 24 hours.
///
/// A call brings back the one that it had replaced, and not one that another call has replaced since. The decisions may then differ from the
/// count, if the clock is behind a call of which that other one is a day old.
fn with_steps_back(calls: Calls, log: &mut Vec<Logged>, steps: usize) {
    for now in [0, 1, DAY - 1, DAY, DAY + 1].map(|edge| BEGIN + edge) {
        let mut after = calls;
        let taken = after.take(at(now));
        let before = times(log);
        let is_ahead = before.iter().all(|call| *call <= now);
        let expected = counted(&before, now);
        assert!(
            !is_ahead || taken.map(drop) == expected,
            "{now} after {log:?}"
        );
        if let Ok(replaced) = taken {
            log.push((now, replaced));
            assert!(are_apart(&times(log)), "{log:?}");
        }
        if steps > 1 {
            with_steps_back(after, log, steps - 1);
        }
        if taken.is_ok() {
            log.pop();
        }
    }
    for index in 0..log.len() {
        let (call, replaced) = log.remove(index);
        let mut after = calls;
        // A call that another one has replaced is a day old: no request lasts so long.
        if after.give_back(at(call), replaced) && steps > 1 {
            with_steps_back(after, log, steps - 1);
        }
        log.insert(index, (call, replaced));
    }
}

//= QUO-5 accepted
//= QUO-5 refused
#[test]
fn calls_and_returns_under_a_clock_that_steps_back() {
    with_steps_back(Calls::default(), &mut Vec::new(), 7 + more_steps());
}

/// A claim of the first key, beside which the second counts, or of the second key alone.
fn claim(key: usize, now: u64) -> ClaimRequest {
    ClaimRequest {
        request: None,
        quota: Some(QuotaClaim {
            key: KEYS[key],
            beside: Beside::all((key == 0).then_some(KEYS[1])).unwrap(),
            page: None,
        }),
        now: at(now),
    }
}

/// Lets a change decide on the rows of both keys.
fn decide<C: Change>(change: &C, calls: [Calls; 2]) -> (C::Outcome, [Calls; 2]) {
    let mut rows = Rows::default();
    for (key, calls) in KEYS.into_iter().zip(calls) {
        rows.quotas.load(key, (!calls.is_empty()).then_some(calls));
    }
    let outcome = change.decide(&mut rows);
    assert!(rows.is_complete());
    let after = KEYS.map(|key| rows.quotas.get(key).copied().unwrap_or_default());
    (outcome, after)
}

/// Every further claim of both keys from the last time on, and every return. The log has each call with its key and how it was counted.
fn of_two_keys(calls: [Calls; 2], log: &mut Vec<(usize, u64, Call)>, last: u64, steps: usize) {
    let edges = [0, 1, DAY - 1, DAY, DAY + 1, 2 * DAY];
    let times = edges.map(|edge| BEGIN + edge).into_iter();
    let claims = times.flat_map(|now| [(0, now), (1, now)]);
    for (key, now) in claims.filter(|(_, now)| *now >= last) {
        let counting = log.iter().filter(|(of, ..)| *of >= key);
        let mut counting: Vec<u64> = counting.map(|(_, call, _)| *call).collect();
        let (decision, after) = decide(&claim(key, now), calls);
        let held = match (decision, counted(&counting, now)) {
            (Decision::Held(taken), Ok(())) => {
                counting.push(now);
                assert_eq!(taken.left(), Some(left(&counting, now)), "{log:?}");
                taken.call
            }
            (Decision::NextAt(next), Err(expected)) => {
                assert_eq!((next, after), (expected, calls), "{now} after {log:?}");
                None
            }
            (decision, expected) => panic!("{now} after {log:?}: {decision:?}, not {expected:?}"),
        };
        if let Some(counted) = held {
            log.push((key, now, counted));
        }
        if steps > 1 {
            of_two_keys(after, log, now, steps - 1);
        }
        if held.is_some() {
            log.pop();
        }
    }
    for index in 0..log.len() {
        let (key, call, counted) = log.remove(index);
        let returned = GiveBack {
            claim: claim(key, call),
            call: Some(counted),
            with_request: false,
        };
        let (rest, after) = decide(&returned, calls);
        assert!(rest.is_some() || call + DAY <= last, "{call}");
        if steps > 1 {
            of_two_keys(after, log, last, steps - 1);
        }
        log.insert(index, (key, call, counted));
    }
}

//= QUO-1 accepted
//= QUO-1 refused
#[test]
fn calls_and_returns_of_two_keys_that_count_together() {
    of_two_keys(
        [Calls::default(); 2],
        &mut Vec::new(),
        BEGIN,
        6 + more_steps(),
    );
}
