//! REP-1: a clock that steps back allows no replay, and one that steps back by more than 24 hours is not trusted.

use super::{
    BEGIN, DAY, Data, HOUR, PostgresSchema, RETENTIONS, SqliteFolder, at, call, dated, finish,
    hash, held, request, who,
};
use crate::harness::eventually_async;
use portvakt::clock::Timestamp;
use portvakt::state::{ClaimRequest, Decision, Finished, Retention, StateStore, Unavailable};
use std::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
};

on_every_engine!(
    a_step_back_of_a_day_or_less_opens_no_request_id,
    a_step_back_of_a_minute_refuses_nothing,
    a_step_back_of_hours_refuses_what_was_forgotten_until_the_clock_is_there_again,
    a_step_back_of_more_than_a_day_is_not_believed,
    a_clock_that_stepped_back_while_the_gateway_was_down_is_not_believed,
    a_step_back_of_a_day_or_less_opens_no_spent_token,
    a_step_back_behind_a_restart_opens_no_request_id,
    a_restart_refuses_nothing,
    clocks_that_differ_by_30_seconds_open_nothing,
    a_step_back_of_more_than_a_day_ends_no_sca,
);

/// Claims the request id and the quota of a request; any decision but `Held` fails the test.
async fn take(store: &StateStore, asked: ClaimRequest) {
    let _ = held(store.commit(asked).await.unwrap());
}

/// Advances the time, with calls, so that the store removes expired entries.
async fn go_on(store: &StateStore, from: u64, to: u64) {
    for (index, now) in [
        to.saturating_sub(400).max(from),
        to.saturating_sub(200).max(from),
        to,
    ]
    .into_iter()
    .enumerate()
    {
        for id in 0..600 {
            let id = 1_000_000 * (index as u64 + 1) + id;
            let _ = store
                .commit(request(id, Retention::Memory, now))
                .await
                .unwrap();
        }
        let _ = store
            .commit(request(to, Retention::Day, now))
            .await
            .unwrap();
    }
    store.tidy(at(to)).await.unwrap();
}

//= REP-1 refused
async fn a_step_back_of_a_day_or_less_opens_no_request_id<D: Data>() {
    for forward in [
        61,
        62,
        180,
        241,
        300,
        1_000,
        HOUR,
        DAY - 60,
        DAY - 1,
        DAY,
        DAY + 61,
        DAY + 90,
        DAY + 120,
    ] {
        for date in [BEGIN - 60, BEGIN, BEGIN + 60] {
            let data = D::new();
            let store = data.open();
            for (id, retention) in (0..).zip(RETENTIONS) {
                let asked = dated(id, retention, date, BEGIN);
                take(&store, asked).await;
            }
            go_on(&store, BEGIN, BEGIN + forward).await;
            // Wherever the Date is valid, as long as the clock is trusted.
            let last = (BEGIN + forward).saturating_sub(DAY);
            for now in [date - 60, date, BEGIN, last, date + 59, date + 60] {
                if now + DAY < BEGIN + forward || now.abs_diff(date) > 60 {
                    continue;
                }
                for (id, retention) in (0..).zip(RETENTIONS) {
                    let decision = store.commit(dated(id, retention, date, now)).await;
                    assert!(
                        !matches!(decision, Ok(Decision::Held(_))),
                        "{forward} s, {retention:?}, Date {} s, now {} s",
                        date as i64 - BEGIN as i64,
                        now as i64 - BEGIN as i64
                    );
                }
            }
        }
    }
}

//= REP-1 accepted
async fn a_step_back_of_a_minute_refuses_nothing<D: Data>() {
    let data = D::new();
    let store = data.open();
    for step in 0..400_u64 {
        let now = BEGIN + 5 * step - if step % 3 == 0 { 60 } else { 0 };
        for retention in RETENTIONS {
            let id = 3 * step + retention as u64;
            take(&store, request(id, retention, now)).await;
        }
        assert!(store.health(at(now)).is_ok());
    }
    assert!(!store.counters().clock_stepped_back);
}

//= REP-1 refused
async fn a_step_back_of_hours_refuses_what_was_forgotten_until_the_clock_is_there_again<D: Data>() {
    let data = D::new();
    let store = data.open();
    take(&store, request(1, Retention::Memory, BEGIN)).await;
    let later = BEGIN + 3 * HOUR;
    go_on(&store, BEGIN, later).await;
    let now = later - 2 * HOUR;
    for retention in [Retention::Memory, Retention::Date] {
        let fault = store
            .commit(request(2, retention, now))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            fault.starts_with("the clock stepped back from 2026-01-01T03:00:00Z: "),
            "{fault}"
        );
    }
    // Unsafe requests go on, and count as before.
    take(&store, request(3, Retention::Day, now)).await;
    take(&store, call(1, now)).await;
    assert!(store.counters().clock_stepped_back);
    let fault = store.health(at(now)).unwrap_err().to_string();
    assert!(fault.contains("portvakt state accept-clock"), "{fault}");
    for retention in [Retention::Memory, Retention::Date] {
        let id = 10 + retention as u64;
        take(&store, request(id, retention, later)).await;
    }
    assert!(store.health(at(later)).is_ok());
    assert!(!store.counters().clock_stepped_back);
}

//= REP-1 refused
async fn a_step_back_of_more_than_a_day_is_not_believed<D: Data>() {
    let data = D::new();
    let store = data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    take(&store, request(1, Retention::Day, BEGIN)).await;
    take(&store, call(1, BEGIN)).await;
    take(&store, call(1, BEGIN - DAY)).await;
    assert!(store.health(at(BEGIN - DAY)).is_ok());

    let back = BEGIN - DAY - 1;
    let refuses = async |store: &StateStore, now: u64| {
        for retention in RETENTIONS {
            let fault = store
                .commit(request(7, retention, now))
                .await
                .unwrap_err()
                .to_string();
            assert!(
                fault.starts_with("the clock stepped back by more than 24 hours from "),
                "{fault}"
            );
        }
        assert!(store.commit(call(2, now)).await.is_err());
        let fault = store.health(at(now)).unwrap_err().to_string();
        assert!(fault.contains("portvakt state accept-clock"), "{fault}");
        assert!(store.counters().clock_stepped_back);
        // Requests without a claim go on.
        assert!(store.psu_now(who(1)).await.unwrap().is_some());
    };
    refuses(&store, back).await;
    // Also if the clock is corrected without a restart, and after a restart.
    refuses(&store, BEGIN + 5).await;
    // The time is stored soon.
    eventually_async("the time is stored", async || {
        data.open().health(at(BEGIN + 5)).is_err()
    })
    .await;
    drop(store);
    refuses(&data.open(), BEGIN + 10).await;
}

//= REP-1 refused
async fn a_clock_that_stepped_back_while_the_gateway_was_down_is_not_believed<D: Data>() {
    let data = D::new();
    take(&data.open(), request(1, Retention::Day, BEGIN)).await;
    let store = data.open();
    let back = BEGIN - DAY - 1;
    assert!(store.health(at(back)).is_err());
    assert!(
        store
            .commit(request(2, Retention::Day, back))
            .await
            .is_err()
    );
    // Another process on the file gets the change.
    let other = data.open();
    eventually_async("the other process knows", async || {
        other.health(at(BEGIN)).is_err()
    })
    .await;
}

//= SCA-12 refused
async fn a_step_back_of_a_day_or_less_opens_no_spent_token<D: Data>() {
    for forward in [20 * 60, 900 + 61, HOUR, DAY - 1, DAY] {
        let data = D::new();
        let store = data.open();
        store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
        store.tidy(at(BEGIN + forward)).await.unwrap();
        for now in [BEGIN, BEGIN + 899] {
            let mut again = finish(1, 1, "s", BEGIN);
            again.now = at(now);
            assert_eq!(store.finish(again).await.unwrap(), Finished::Again);
            let mut other = finish(1, 2, "s", BEGIN);
            other.said = hash(2);
            other.now = at(now);
            let finished = store.finish(other).await.unwrap();
            assert_eq!(finished, Finished::Otherwise, "{forward} s");
        }
    }
}

//= REP-1 refused
async fn a_step_back_behind_a_restart_opens_no_request_id<D: Data>() {
    for (stepped, restarted) in [
        (600, 600),
        (600, 0),
        (DAY, DAY as i64),
        (DAY, 0),
        (3_000, -120),
    ] {
        let data = D::new();
        let moved = BEGIN.saturating_add_signed(restarted);
        let store = data.open();
        take(&store, request(1, Retention::Memory, BEGIN)).await;
        let ahead = BEGIN + stepped;
        for retention in RETENTIONS {
            let id = 10 + retention as u64;
            take(&store, request(id, retention, ahead)).await;
        }
        drop(store);
        let store = data.open();
        assert_eq!(store.health(at(moved)).is_ok(), moved == ahead);
        for now in [BEGIN, BEGIN + 60] {
            let again = store.commit(dated(1, Retention::Memory, BEGIN, now)).await;
            assert!(
                again.is_err(),
                "{stepped} s, restart at {restarted} s: {again:?}"
            );
        }
        if moved != ahead {
            let again = dated(10, Retention::Memory, ahead, ahead - 60);
            assert!(store.commit(again).await.is_err());
        }
        let asked = request(2, Retention::Memory, ahead + 61);
        take(&store, asked).await;
    }
}

/// A restart with a clock that is correct, or slightly behind, causes no refusal.
//= REP-1 accepted
async fn a_restart_refuses_nothing<D: Data>() {
    for back in [0, 1, 60] {
        let data = D::new();
        take(&data.open(), request(1, Retention::Day, BEGIN)).await;
        let store = data.open();
        let asked = dated(2, Retention::Memory, BEGIN - back, BEGIN - back);
        take(&store, asked).await;
        let asked = dated(3, Retention::Memory, BEGIN - back - 60, BEGIN - back);
        take(&store, asked).await;
    }
}

/// Two processes whose clocks differ: calls are counted together, and an id that the later clock let expire is not used again by the
/// earlier one, for which its Date is still valid.
//= QUO-1 refused
//= REP-1 refused
async fn clocks_that_differ_by_30_seconds_open_nothing<D: Data>() {
    const APART: u64 = 30;
    let data = D::new();
    let ahead = (&data.open(), BEGIN + APART);
    let behind = (&data.open(), BEGIN);
    for (store, now) in [ahead, behind, ahead, behind] {
        take(store, call(1, now)).await;
    }
    for (store, now) in [ahead, behind] {
        let decision = store.commit(call(1, now)).await.unwrap();
        assert!(matches!(decision, Decision::NextAt(_)), "{decision:?}");
    }
    for (id, retention) in (2..).zip([Retention::Date, Retention::Day]) {
        for (id, first, second) in [(id, ahead, behind), (10 + id, behind, ahead)] {
            take(first.0, dated(id, retention, BEGIN, first.1)).await;
            // DAT-2: a Date is valid for 60 s.
            for seconds in (0..=BEGIN + 60 - second.1).step_by(5) {
                for (store, now) in [first, second] {
                    store.tidy(at(now + seconds)).await.unwrap();
                }
                let again = dated(id, retention, BEGIN, second.1 + seconds);
                let decision = second.0.commit(again).await;
                assert!(
                    !matches!(decision, Ok(Decision::Held(_))),
                    "{retention:?} {seconds}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_step_forward_while_a_change_waits_for_a_file() {
    a_step_forward_while_a_change_waits::<SqliteFolder>().await;
}

#[tokio::test]
async fn a_step_forward_while_a_change_waits_for_a_database() {
    a_step_forward_while_a_change_waits::<PostgresSchema>().await;
}

/// A claim by an id and a time.
type Asked = fn(u64, u64) -> ClaimRequest;

/// What waits for the state when the clock goes on by more than a minute is not granted: the rows that refuse it may be gone.
//= REP-1 refused
//= SCA-12 refused
async fn a_step_forward_while_a_change_waits<D: Data>() {
    let data = D::new();
    let store = data.open();
    let commit = async |first, seconds, asked: Asked| {
        let change = |id, now| store.commit(asked(id, now));
        meanwhile(&store, first, seconds, change).await
    };
    let (_, _, decided) = commit(1, 60, |id, now| request(id, Retention::Day, now)).await;
    let _ = held(decided.unwrap());
    let asked: [(u64, Asked); 3] = [
        (1, |id, now| request(id, Retention::Date, now)),
        (2, |id, now| request(id, Retention::Day, now)),
        (3, call),
    ];
    for (kind, asked) in asked {
        let (id, now, refused) = commit(1000 * kind, 61, asked).await;
        let refused = refused.unwrap_err();
        assert!(refused.0.contains("while the state decided"), "{refused:?}");
        if asked(id, now).request.is_some() {
            // It is not free again.
            let again = store.commit(asked(id, now)).await;
            assert!(matches!(again, Ok(Decision::Replayed)), "{again:?}");
        }
    }
    let end = |id, now| store.finish(finish(id, 1, "s", now));
    let (id, now, refused) = meanwhile(&store, 4000, 61, end).await;
    let refused = refused.unwrap_err();
    assert!(refused.0.contains("while the state decided"), "{refused:?}");
    let again = store.finish(finish(id, 1, "s", now)).await.unwrap();
    assert_eq!(again, Finished::Again);
}

/// Lets the clock go on by some seconds while a change waits for the state; returns the id and the time of the change, and its outcome. Where
/// the state decided before that, it asks with the next id: `first` and 1000 from there.
async fn meanwhile<T, C: Future<Output = Result<T, Unavailable>>>(
    store: &StateStore,
    first: u64,
    seconds: u64,
    change: impl Fn(u64, u64) -> C,
) -> (u64, u64, Result<T, Unavailable>) {
    for id in first..first + 1000 {
        let now = store.counters().latest.map_or(BEGIN, Timestamp::unix);
        let mut change = pin!(change(id, now));
        let mut once = |context: &mut Context<'_>| Poll::Ready(change.as_mut().poll(context));
        if poll_fn(&mut once).await.is_pending() {
            store.note_time(at(now + seconds));
            return (id, now, change.await);
        }
    }
    panic!("no change waited");
}

/// More than a day back, no SCA ends either: its token may have been spent, and forgotten.
//= SCA-12 refused
async fn a_step_back_of_more_than_a_day_ends_no_sca<D: Data>() {
    let data = D::new();
    let store = data.open();
    let ended = store.finish(finish(1, 1, "s", BEGIN + DAY + 1)).await;
    assert_eq!(ended.unwrap(), Finished::Done);
    let refused = store.finish(finish(2, 1, "s", BEGIN)).await.unwrap_err();
    assert!(refused.0.contains("the clock stepped back"), "{refused:?}");
}
