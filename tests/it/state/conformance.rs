//! The behaviour of every engine. Each function opens stores on its own, empty data.
//!
//! The suite is generic over the engine's data: an engine is correct if the suite passes. The suite covers quota, pages, request ids,
//! tokens, sessions, consents, bindings, housekeeping, restarts, and two processes on one state. The same macro runs `clock.rs` (a clock
//! that steps back), `model.rs` (random sequences) and `race.rs` (many concurrent callers).

use super::{
    BEGIN, DAY, Data, HOUR, OTHER, RETENTIONS, TPP, at, call, dated, finish, hash, held, learn_now,
    next, request, who,
};
use crate::harness::eventually_async;
use portvakt::interface::{ForbiddenTpp, headers::CorporateId};
use portvakt::state::{
    Accounts, Beside, Bind, Block, BlockScope, Blocked, Bound, Changes, ClaimRequest, Completion,
    ConsentAccounts, ConsentChange, Decision, Ended, Finish, Finished, Known, Learned,
    LearnedContext, Lifted, Named, Page, PsuRef, QuotaClaim, Retention, StateStore, Withdraw,
    Withdrawn,
};

on_every_engine!(
    four_calls_in_24_hours_to_the_second,
    keys_are_counted_apart,
    a_call_is_given_back,
    what_is_refused_takes_nothing,
    a_used_request_id_wins_over_a_used_up_quota,
    request_ids_are_remembered_to_the_second,
    a_date_that_is_off_moves_the_end,
    a_request_id_is_given_back_where_nobody_was_connected,
    later_pages_are_counted_with_their_call,
    a_page_begins_behind_the_last_one,
    a_page_that_is_given_back_late_opens_nothing,
    pages_end_after_15_minutes,
    pages_of_a_call_that_was_given_back_are_counted,
    a_call_with_which_a_page_was_counted_stays_counted,
    an_id_passes_once_whatever_the_method,
    a_page_that_was_given_back_is_asked_for_again,
    an_sca_makes_a_session,
    the_last_session_wins,
    a_token_is_spent_once,
    a_failed_sca_spends_its_token_and_gives_nothing,
    a_psu_belongs_to_one_tpp,
    consent_is_apart_from_sca,
    contexts_are_apart,
    binding_moves_forward_only,
    what_was_learned_gives_way_to_the_bank,
    agreements_are_learned_of_learned_psus_only,
    what_was_taken_back_is_not_learned_from_an_earlier_answer,
    calls_of_an_unknown_psu_count_on,
    withdrawal_keeps_the_binding,
    a_withdrawal_says_what_ended,
    housekeeping_removes_what_expired_and_nothing_else,
    a_block_holds_in_every_store_and_after_a_restart,
    blocks_that_ended_are_removed,
);

async fn four_calls_in_24_hours_to_the_second<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for second in 0..4 {
        let taken = held(store.commit(call(1, BEGIN + second)).await.unwrap());
        let left = taken.left().unwrap();
        assert_eq!(u64::from(left.calls), 3 - second);
        assert_eq!(left.next, at(BEGIN + DAY));
    }
    for (now, until) in [(BEGIN + 4, BEGIN + DAY), (BEGIN + DAY - 1, BEGIN + DAY)] {
        assert_eq!(next(&store.commit(call(1, now)).await.unwrap()), until);
    }
    let taken = held(store.commit(call(1, BEGIN + DAY)).await.unwrap());
    assert_eq!(taken.left().unwrap().calls, 0);
    let decision = store.commit(call(1, BEGIN + DAY)).await.unwrap();
    assert_eq!(next(&decision), BEGIN + DAY + 1);
}

async fn keys_are_counted_apart<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for _ in 0..4 {
        let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    }
    next(&store.commit(call(1, BEGIN)).await.unwrap());
    let _ = held(store.commit(call(2, BEGIN)).await.unwrap());
}

async fn a_call_is_given_back<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let mut taken = Vec::new();
    for second in [0, 0, 5, 9] {
        taken.push(held(store.commit(call(1, BEGIN + second)).await.unwrap()));
    }
    next(&store.commit(call(1, BEGIN + 10)).await.unwrap());
    store.give_back(&taken[2], true).await.unwrap();
    let again = held(store.commit(call(1, BEGIN + 10)).await.unwrap());
    assert_eq!(again.left().unwrap().next, at(BEGIN + DAY));
    next(&store.commit(call(1, BEGIN + 11)).await.unwrap());
    for taken in [&taken[0], &taken[1], &taken[3], &again] {
        store.give_back(taken, false).await.unwrap();
    }
    let taken = held(store.commit(call(1, BEGIN + 12)).await.unwrap());
    assert_eq!(taken.left().unwrap().calls, 3);
    assert_eq!(taken.left().unwrap().next, at(BEGIN + 12 + DAY));
}

/// The request id and the call of a request for balances without the PSU.
fn both(id: u64, retention: Retention, key: u64, now: u64) -> ClaimRequest {
    ClaimRequest {
        quota: call(key, now).quota,
        ..request(id, retention, now)
    }
}

async fn what_is_refused_takes_nothing<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for _ in 0..4 {
        let _ = held(store.commit(call(1, BEGIN)).await.unwrap());
    }
    for retention in RETENTIONS {
        // The quota refuses: the request id stays unused.
        next(&store.commit(both(7, retention, 1, BEGIN)).await.unwrap());
        let taken = held(store.commit(request(7, retention, BEGIN)).await.unwrap());
        // The request id is refused: the quota is unchanged.
        for _ in 0..9 {
            let decision = store.commit(both(7, retention, 2, BEGIN)).await.unwrap();
            assert!(matches!(decision, Decision::Replayed));
        }
        store.give_back(&taken, false).await.unwrap();
    }
    let taken = held(store.commit(call(2, BEGIN)).await.unwrap());
    assert_eq!(taken.left().unwrap().calls, 3);
}

async fn a_used_request_id_wins_over_a_used_up_quota<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for retention in RETENTIONS {
        let key = number(retention);
        let _ = held(
            store
                .commit(both(10 + key, retention, key, BEGIN))
                .await
                .unwrap(),
        );
        for _ in 0..3 {
            let _ = held(store.commit(call(key, BEGIN)).await.unwrap());
        }
        for _ in 0..2 {
            let decision = store
                .commit(both(10 + key, retention, key, BEGIN))
                .await
                .unwrap();
            assert!(matches!(decision, Decision::Replayed), "{decision:?}");
            next(
                &store
                    .commit(both(20 + key, retention, key, BEGIN))
                    .await
                    .unwrap(),
            );
        }
    }
}

async fn request_ids_are_remembered_to_the_second<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for retention in RETENTIONS {
        let id = number(retention);
        let _ = held(store.commit(request(id, retention, BEGIN)).await.unwrap());
        let last = match retention {
            Retention::Memory | Retention::Date => 61,
            Retention::Day => DAY,
        };
        for later in [0, 1, 60, 61, 62, 120, DAY - 1, DAY] {
            if later <= last {
                let again = request(id, retention, BEGIN + later);
                let decision = store.commit(again).await.unwrap();
                assert!(matches!(decision, Decision::Replayed), "{later}");
            }
        }
        for later in [last + 1, 2 * last + 2] {
            let again = request(id, retention, BEGIN + later);
            let _ = held(store.commit(again).await.unwrap());
            let again = request(id, retention, BEGIN + later + 1);
            let decision = store.commit(again).await.unwrap();
            assert!(matches!(decision, Decision::Replayed));
        }
    }
}

/// Only the Date determines how long the id of a safe request is remembered.
async fn a_date_that_is_off_moves_the_end<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for retention in [Retention::Memory, Retention::Date] {
        for off in [0, 1, 59, 60, 61, 112, 120] {
            let (id, date) = (1_000 * number(retention) + off, BEGIN + off);
            let now = BEGIN + 60;
            let asked = dated(id, retention, date, now);
            let _ = held(store.commit(asked).await.unwrap());
            for later in [now, date + 60, date + 61] {
                let asked = dated(id, retention, date, later);
                let decision = store.commit(asked).await.unwrap();
                assert!(matches!(decision, Decision::Replayed), "{off}");
            }
            let asked = request(id, retention, date + 62);
            let _ = held(store.commit(asked).await.unwrap());
        }
    }
}

/// The parts of a key: a different value of any part is another key.
fn number(retention: Retention) -> u64 {
    RETENTIONS
        .iter()
        .position(|other| *other == retention)
        .unwrap() as u64
}

async fn a_request_id_is_given_back_where_nobody_was_connected<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for retention in RETENTIONS {
        let id = number(retention);
        let taken = held(store.commit(request(id, retention, BEGIN)).await.unwrap());
        store.give_back(&taken, true).await.unwrap();
        let decision = store.commit(request(id, retention, BEGIN)).await.unwrap();
        assert!(matches!(decision, Decision::Replayed));
        store.give_back(&taken, false).await.unwrap();
        let _ = held(store.commit(request(id, retention, BEGIN)).await.unwrap());
    }
}

fn page(offset: u32, now: u64) -> ClaimRequest {
    limited(offset, 100, now)
}

fn limited(offset: u32, limit: u32, now: u64) -> ClaimRequest {
    ClaimRequest {
        request: None,
        quota: Some(QuotaClaim {
            key: hash(1),
            beside: Beside::default(),
            page: Some(Page {
                list: hash(100),
                offset,
                limit,
            }),
        }),
        now: at(now),
    }
}

/// The remaining calls after a page.
async fn left(store: &StateStore, asked: ClaimRequest) -> u8 {
    held(store.commit(asked).await.unwrap())
        .left()
        .unwrap()
        .calls
}

async fn later_pages_are_counted_with_their_call<D: Data>() {
    let data = D::new();
    let store = &data.open();
    assert_eq!(left(store, page(0, BEGIN)).await, 3);
    assert_eq!(left(store, page(100, BEGIN + 1)).await, 3);
    assert_eq!(left(store, page(250, BEGIN + 2)).await, 3);
    // Each offset continues once; a smaller or equal one is a call and begins a list.
    assert_eq!(left(store, page(250, BEGIN + 3)).await, 2);
    assert_eq!(left(store, page(100, BEGIN + 3)).await, 1);
    assert_eq!(left(store, page(250, BEGIN + 3)).await, 1);
    assert_eq!(left(store, page(0, BEGIN + 4)).await, 0);
    // A started list continues although the quota is used up.
    assert_eq!(left(store, page(100, BEGIN + 5)).await, 0);
    assert_eq!(
        next(&store.commit(page(100, BEGIN + 6)).await.unwrap()),
        BEGIN + DAY
    );
    assert_eq!(
        next(&store.commit(page(0, BEGIN + 6)).await.unwrap()),
        BEGIN + DAY
    );
    assert_eq!(left(store, page(200, BEGIN + 7)).await, 0);
}

/// Continues after the last requested entry, with any limit of the next page.
async fn a_page_begins_behind_the_last_one<D: Data>() {
    let data = D::new();
    let store = &data.open();
    assert_eq!(left(store, limited(0, 200, BEGIN)).await, 3);
    for (offset, limit, calls) in [
        (199, 200, 2),
        (399, 1, 2),
        (400, 1, 2),
        (400, 200, 1),
        (600, 50, 1),
        (649, 50, 0),
        (699, u32::MAX, 0),
    ] {
        let now = BEGIN + u64::from(offset);
        assert_eq!(
            left(store, limited(offset, limit, now)).await,
            calls,
            "{offset}"
        );
    }
    for offset in [700, u32::MAX] {
        let decision = store.commit(limited(offset, 1, BEGIN + 800)).await.unwrap();
        next(&decision);
    }
}

/// Giving a page back opens that page again, and no other one.
async fn a_page_that_is_given_back_late_opens_nothing<D: Data>() {
    let data = D::new();
    let store = &data.open();
    assert_eq!(left(store, page(0, BEGIN)).await, 3);
    let second = held(store.commit(page(100, BEGIN + 1)).await.unwrap());
    assert_eq!(left(store, page(200, BEGIN + 2)).await, 3);
    store.give_back(&second, true).await.unwrap();
    assert_eq!(left(store, page(100, BEGIN + 3)).await, 2);
    // The call began the list again. Giving back a page of the previous list has no effect.
    let third = held(store.commit(limited(200, 50, BEGIN + 4)).await.unwrap());
    store.give_back(&third, true).await.unwrap();
    assert_eq!(left(store, page(200, BEGIN + 5)).await, 2);
    assert_eq!(left(store, page(250, BEGIN + 6)).await, 1);
}

async fn pages_end_after_15_minutes<D: Data>() {
    let data = D::new();
    let store = &data.open();
    assert_eq!(left(store, page(0, BEGIN)).await, 3);
    assert_eq!(left(store, page(100, BEGIN + 899)).await, 3);
    assert_eq!(left(store, page(200, BEGIN + 900)).await, 2);
    assert_eq!(left(store, page(300, BEGIN + 900)).await, 2);
}

async fn pages_of_a_call_that_was_given_back_are_counted<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let first = held(store.commit(page(0, BEGIN)).await.unwrap());
    store.give_back(&first, true).await.unwrap();
    assert_eq!(left(store, page(100, BEGIN + 1)).await, 3);
    assert_eq!(left(store, page(200, BEGIN + 2)).await, 3);
}

async fn a_call_with_which_a_page_was_counted_stays_counted<D: Data>() {
    let data = D::new();
    let store = &data.open();
    // A page, in flight or answered.
    let first = held(store.commit(page(0, BEGIN)).await.unwrap());
    assert_eq!(left(store, page(100, BEGIN + 1)).await, 3);
    assert!(store.give_back(&first, true).await.unwrap().is_none());
    assert_eq!(left(store, page(200, BEGIN + 2)).await, 3);
    // The list was begun again in the meantime, in the same second or a later one.
    for second in [10, 11] {
        let again = held(store.commit(page(0, BEGIN + 10)).await.unwrap());
        let later = held(store.commit(page(100, BEGIN + 10)).await.unwrap());
        let anew = held(store.commit(page(0, BEGIN + second)).await.unwrap());
        assert!(
            store.give_back(&again, true).await.unwrap().is_none(),
            "{second}"
        );
        // A page is not a call.
        assert!(store.give_back(&later, true).await.unwrap().is_none());
        assert!(
            store.give_back(&anew, true).await.unwrap().is_some(),
            "{second}"
        );
    }
    assert_eq!(left(store, page(0, BEGIN + 12)).await, 0);
}

async fn an_id_passes_once_whatever_the_method<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for (id, [one, other]) in (0..).zip([
        [Retention::Memory, Retention::Day],
        [Retention::Day, Retention::Memory],
        [Retention::Date, Retention::Day],
        [Retention::Day, Retention::Date],
    ]) {
        let _ = held(store.commit(request(id, one, BEGIN)).await.unwrap());
        for now in [BEGIN, BEGIN + 61] {
            let again = store.commit(dated(id, other, BEGIN, now)).await.unwrap();
            assert!(
                matches!(again, Decision::Replayed),
                "{one:?}, then {other:?}"
            );
        }
        // Given back, the id passes with either retention, once.
        let id = 100 + id;
        let taken = held(store.commit(request(id, one, BEGIN)).await.unwrap());
        store.give_back(&taken, false).await.unwrap();
        let _ = held(store.commit(request(id, other, BEGIN)).await.unwrap());
        for retention in [one, other] {
            let again = store.commit(request(id, retention, BEGIN)).await.unwrap();
            assert!(matches!(again, Decision::Replayed));
        }
    }
}

async fn a_page_that_was_given_back_is_asked_for_again<D: Data>() {
    let data = D::new();
    let store = &data.open();
    assert_eq!(left(store, page(0, BEGIN)).await, 3);
    let later = held(store.commit(page(100, BEGIN + 1)).await.unwrap());
    store.give_back(&later, true).await.unwrap();
    assert_eq!(left(store, page(100, BEGIN + 2)).await, 3);
    assert_eq!(left(store, page(100, BEGIN + 3)).await, 2);
}

async fn an_sca_makes_a_session<D: Data>() {
    let data = D::new();
    let store = &data.open();
    assert_eq!(store.psu(who(1)).await.unwrap(), None);
    assert_eq!(
        store.finish(finish(1, 1, "s", BEGIN)).await.unwrap(),
        Finished::Done
    );
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    assert_eq!(psu.last_sca, Some(at(BEGIN)));
    let session = psu.session.unwrap();
    assert_eq!(session.completed, at(BEGIN));
    assert_eq!(
        session.id,
        store.keys().session(&TPP, &super::session_id("s"))
    );
    let context = psu.context(None).unwrap();
    assert_eq!(context.last_sca, Some(at(BEGIN)));
    let consent = context.consent.as_ref().unwrap();
    assert_eq!(
        (consent.given, &consent.accounts),
        (at(BEGIN), &Accounts::All)
    );
    assert_eq!(store.psu_now(who(1)).await.unwrap().unwrap(), psu);
    assert_eq!(store.psu(who(2)).await.unwrap(), None);
}

async fn the_last_session_wins<D: Data>() {
    let data = D::new();
    let store = &data.open();
    store.finish(finish(1, 1, "first", BEGIN)).await.unwrap();
    let _ = store.psu(who(1)).await.unwrap();
    store
        .finish(finish(2, 1, "second", BEGIN + HOUR / 2))
        .await
        .unwrap();
    for psu in [store.psu(who(1)).await, store.psu_now(who(1)).await] {
        let psu = psu.unwrap().unwrap();
        let session = psu.session.unwrap();
        assert_eq!(
            session.id,
            store.keys().session(&TPP, &super::session_id("second"))
        );
        assert_eq!(session.completed, at(BEGIN + HOUR / 2));
        assert_eq!(psu.last_sca, Some(at(BEGIN + HOUR / 2)));
    }
}

async fn a_token_is_spent_once<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let done = finish(1, 1, "s", BEGIN);
    assert_eq!(store.finish(done.clone()).await.unwrap(), Finished::Done);
    let before = store.psu_now(who(1)).await.unwrap();
    let again = Finish {
        now: at(BEGIN + 60),
        ..done.clone()
    };
    assert_eq!(store.finish(again).await.unwrap(), Finished::Again);
    for completion in [None, finish(1, 2, "s", BEGIN).completion] {
        let other = Finish {
            said: hash(99),
            completion,
            now: at(BEGIN + 61),
            ..done.clone()
        };
        assert_eq!(store.finish(other).await.unwrap(), Finished::Otherwise);
    }
    assert_eq!(store.psu_now(who(1)).await.unwrap(), before);
    assert_eq!(store.psu_now(who(2)).await.unwrap(), None);
}

async fn a_failed_sca_spends_its_token_and_gives_nothing<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let failed = Finish {
        completion: None,
        said: hash(8),
        ..finish(1, 1, "s", BEGIN)
    };
    assert_eq!(store.finish(failed.clone()).await.unwrap(), Finished::Done);
    assert_eq!(store.finish(failed).await.unwrap(), Finished::Again);
    let late = finish(1, 1, "s", BEGIN + 1);
    assert_eq!(store.finish(late).await.unwrap(), Finished::Otherwise);
    assert_eq!(store.psu_now(who(1)).await.unwrap(), None);
}

async fn a_psu_belongs_to_one_tpp<D: Data>() {
    let data = D::new();
    let store = &data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let elsewhere = PsuRef {
        tpp: &OTHER,
        ..super::who(1)
    };
    assert_eq!(store.psu(elsewhere).await.unwrap(), None);
    assert_eq!(store.psu_now(elsewhere).await.unwrap(), None);
    let mut stolen = finish(2, 1, "t", BEGIN + 1);
    stolen.completion.as_mut().unwrap().who = elsewhere;
    for _ in 0..2 {
        assert_eq!(
            store.finish(stolen.clone()).await.unwrap(),
            Finished::BoundElsewhere
        );
    }
    let bind = Bind {
        imported: false,
        who: elsewhere,
        corporate: None,
        last_sca: at(BEGIN + 2),
        consent: None,
        customer: None,
    };
    assert_eq!(store.bind(bind).await.unwrap(), Bound::Elsewhere);
    assert_eq!(
        store.withdraw(elsewhere, Withdraw::Session).await.unwrap(),
        Withdrawn::Unknown
    );
    let psu = store.psu_now(who(1)).await.unwrap().unwrap();
    assert_eq!(psu.last_sca, Some(at(BEGIN)));
    // The token was not used: the completion of the right PSU still succeeds.
    assert_eq!(
        store.finish(finish(2, 1, "t", BEGIN + 3)).await.unwrap(),
        Finished::Done
    );
}

async fn consent_is_apart_from_sca<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let accounts = ConsentAccounts::Named(vec!["a".to_owned(), "b".to_owned()]);
    let named = Completion {
        consent: Some(&accounts),
        ..finish(1, 1, "s", BEGIN).completion.unwrap()
    };
    let named = Finish {
        completion: Some(named),
        ..finish(1, 1, "s", BEGIN)
    };
    store.finish(named).await.unwrap();
    let mut payment = finish(2, 1, "t", BEGIN + DAY);
    payment.completion.as_mut().unwrap().consent = None;
    store.finish(payment).await.unwrap();
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    assert_eq!(psu.last_sca, Some(at(BEGIN + DAY)));
    let context = psu.context(None).unwrap();
    assert_eq!(context.last_sca, Some(at(BEGIN + DAY)));
    let consent = context.consent.as_ref().unwrap();
    assert_eq!(consent.given, at(BEGIN));
    for (account, included) in [("a", true), ("b", true), ("c", false)] {
        assert_eq!(
            consent.accounts.include(store.keys().account(account)),
            included
        );
    }
    // An empty list of accounts does not mean all accounts.
    let no_account = ConsentAccounts::Named(Vec::new());
    let mut none = finish(3, 1, "u", BEGIN + DAY + 1);
    none.completion.as_mut().unwrap().consent = Some(&no_account);
    store.finish(none).await.unwrap();
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    let consent = psu.context(None).unwrap().consent.as_ref().unwrap();
    assert_eq!(consent.accounts, Accounts::Named(Vec::new()));
}

async fn contexts_are_apart<D: Data>() {
    let data = D::new();
    let store = &data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let mut corporate = finish(2, 1, "t", BEGIN + 1);
    corporate.completion.as_mut().unwrap().corporate =
        Some(Known::by_bank(CorporateId::from_bits(7)));
    store.finish(corporate).await.unwrap();
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    assert_eq!(psu.contexts.len(), 2);
    assert_eq!(psu.context(None).unwrap().last_sca, Some(at(BEGIN)));
    let key = store
        .keys()
        .corporate(Known::by_bank(CorporateId::from_bits(7)));
    assert_eq!(
        psu.context(Some(key)).unwrap().last_sca,
        Some(at(BEGIN + 1))
    );
    assert_eq!(
        psu.context(Some(
            store
                .keys()
                .corporate(Known::by_bank(CorporateId::from_bits(8)))
        )),
        None
    );
    assert_eq!(psu.last_sca, Some(at(BEGIN + 1)));
    let withdrawn = store
        .withdraw(
            who(1),
            Withdraw::Consent(Some(Known::by_bank(CorporateId::from_bits(7)))),
        )
        .await
        .unwrap();
    assert_eq!(withdrawn, done(0, 1, 1));
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    assert!(psu.context(Some(key)).unwrap().consent.is_none());
    assert!(psu.context(None).unwrap().consent.is_some());
    // HDR-14: a context stays known when its consent has ended.
    store.withdraw(who(1), Withdraw::Consents).await.unwrap();
    for store in [store, &data.open()] {
        let psu = store.psu_now(who(1)).await.unwrap().unwrap();
        for context in [None, Some(key)] {
            assert_eq!(psu.context(context).unwrap().consent, None);
        }
    }
}

async fn binding_moves_forward_only<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let accounts = ConsentAccounts::Named(vec!["a".to_owned()]);
    let bind = |last_sca, consent: Option<u64>| Bind {
        imported: false,
        who: who(1),
        corporate: None,
        last_sca: at(last_sca),
        consent: consent.map(|given| (at(given), &accounts)),
        customer: None,
    };
    let facts = async || {
        let psu = store.psu(who(1)).await.unwrap().unwrap();
        let context = psu.context(None).unwrap().clone();
        let given = context.consent.map(|consent| consent.given.unix() - BEGIN);
        (
            psu.last_sca.unwrap().unix() - BEGIN,
            context.last_sca.unwrap().unix() - BEGIN,
            given,
        )
    };
    let moved = |last_sca, consent: Option<ConsentChange>| {
        Bound::Changed(Changes {
            last_sca,
            consent,
            ..Changes::default()
        })
    };
    let given = Some(ConsentChange::Given);
    for (last_sca, consent, bound, expected) in [
        (100, None, Bound::New, (100, 100, None)),
        (90, Some(50), moved(false, given), (100, 100, Some(50))),
        (120, Some(40), moved(true, None), (120, 120, Some(50))),
        (110, Some(60), moved(false, given), (120, 120, Some(60))),
        (0, None, Bound::Unchanged, (120, 120, Some(60))),
        (110, Some(50), Bound::Unchanged, (120, 120, Some(60))),
    ] {
        let consent = consent.map(|given| BEGIN + given);
        let bind = bind(BEGIN + last_sca, consent);
        assert_eq!(store.would_bind(&bind).await.unwrap(), bound);
        assert_eq!(store.bind(bind).await.unwrap(), bound);
        assert_eq!(facts().await, expected);
    }
    // An older consent for other accounts can neither narrow the stored one nor widen it, and says so; one of the same time can.
    let stored = async || store.psu_now(who(1)).await.unwrap().unwrap();
    let before = stored().await;
    let others = |ids: &[&str]| ConsentAccounts::Named(ids.iter().map(|id| (*id).into()).collect());
    for accounts in [others(&[]), others(&["a", "b"]), ConsentAccounts::All] {
        let bind = |given| Bind {
            imported: false,
            consent: Some((at(BEGIN + given), &accounts)),
            ..bind(BEGIN + 500, None)
        };
        assert_eq!(store.bind(bind(59)).await.unwrap(), Bound::ConsentOutdated);
        assert_eq!(stored().await, before);
        let same = store.would_bind(&bind(60)).await.unwrap();
        assert_eq!(same, moved(true, Some(ConsentChange::OtherAccounts)));
    }
    assert!(store.psu(who(1)).await.unwrap().unwrap().session.is_none());
    store.finish(finish(1, 1, "s", BEGIN + 200)).await.unwrap();
    store.bind(bind(BEGIN + 300, None)).await.unwrap();
    let session = store.psu(who(1)).await.unwrap().unwrap().session.unwrap();
    assert_eq!(
        session.completed,
        at(BEGIN + 200),
        "a binding makes no session"
    );
}

async fn what_was_learned_gives_way_to_the_bank<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let learned = |tpp, last_sca: Option<u64>| Learned {
        who: PsuRef {
            tpp,
            ..super::who(1)
        },
        context: Some(LearnedContext {
            corporate: Some(Known::by_bank(CorporateId::from_bits(7))),
            consent: last_sca.map(|given| (at(given), &ConsentAccounts::All)),
        }),
        last_sca: last_sca.map(at),
    };
    let bind = |tpp| Bind {
        imported: false,
        who: PsuRef {
            tpp,
            ..super::who(1)
        },
        corporate: None,
        last_sca: at(BEGIN),
        consent: None,
        customer: None,
    };
    let psu = async |tpp| {
        store
            .psu(PsuRef {
                tpp,
                ..super::who(1)
            })
            .await
            .unwrap()
    };
    let learn = async |tpp, last_sca| learn_now(store, learned(tpp, last_sca)).await;
    assert_eq!(learn(&TPP, None).await, Bound::New);
    let known = psu(&TPP).await.unwrap();
    assert_eq!((known.learned, known.last_sca), (true, None));
    assert_eq!(known.contexts[0].last_sca, None);
    assert_eq!(known.contexts[0].consent, None);
    // A PSU-ID is not learned twice, nor by another TPP.
    assert_eq!(learn(&TPP, Some(BEGIN)).await, Bound::Unchanged);
    assert_eq!(learn(&OTHER, Some(BEGIN)).await, Bound::Elsewhere);
    assert_eq!(psu(&TPP).await.unwrap().last_sca, None);
    // A binding by the bank replaces the learned one with all its data.
    assert_eq!(store.bind(bind(&OTHER)).await.unwrap(), Bound::TakenOver);
    assert_eq!(psu(&TPP).await, None);
    let known = psu(&OTHER).await.unwrap();
    assert_eq!((known.learned, known.last_sca), (false, Some(at(BEGIN))));
    assert_eq!(known.contexts.len(), 1);
    assert_eq!(learn(&TPP, Some(BEGIN)).await, Bound::Elsewhere);
    assert_eq!(store.bind(bind(&TPP)).await.unwrap(), Bound::Elsewhere);
    // A withdrawn PSU-ID belongs to no TPP; an SCA binds the PSU-ID permanently.
    let who = |tpp| PsuRef {
        tpp,
        ..super::who(1)
    };
    let unbind = async |tpp| store.withdraw(who(tpp), Withdraw::Binding).await.unwrap();
    assert_eq!(unbind(&TPP).await, Withdrawn::Unknown);
    assert_eq!(unbind(&OTHER).await, done(0, 0, 0));
    assert_eq!(psu(&OTHER).await, None);
    assert_eq!(learn(&OTHER, Some(BEGIN)).await, Bound::New);
    let finished = store.finish(finish(1, 1, "s", BEGIN + 1)).await.unwrap();
    assert_eq!(finished, Finished::Done);
    assert_eq!(psu(&OTHER).await, None);
    assert!(!psu(&TPP).await.unwrap().learned);
    // The bank confirms the TPP's own learned binding, and the learned data stays.
    assert_eq!(unbind(&TPP).await, done(1, 1, 0));
    assert_eq!(learn(&TPP, Some(BEGIN)).await, Bound::New);
    let confirmed = Changes {
        binding: true,
        context: true,
        last_sca: true,
        consent: None,
        customer: false,
    };
    let bound = store.bind(bind(&TPP)).await.unwrap();
    assert_eq!(bound, Bound::Changed(confirmed));
    let known = psu(&TPP).await.unwrap();
    assert_eq!((known.learned, known.contexts.len()), (false, 2));
}

/// SCA-13, SCA-19: an answer of the core that was under way when the bank took something back teaches nothing, wherever the bank did so.
async fn what_was_taken_back_is_not_learned_from_an_earlier_answer<D: Data>() {
    let data = D::new();
    let [here, there] = [data.open(), data.open()];
    let psu = who(1).psu;
    let learned = |corporate: Option<u128>| Learned {
        who: who(1),
        context: Some(LearnedContext {
            corporate: corporate.map(|id| Known::by_bank(CorporateId::from_bits(id))),
            consent: Some((at(BEGIN), &ConsentAccounts::All)),
        }),
        last_sca: Some(at(BEGIN)),
    };
    let since = async || here.last_removal(Named::Known(psu)).await.unwrap();
    // Nothing is there yet, or the bank bound it meanwhile.
    for what in [
        Withdraw::Binding,
        Withdraw::Consents,
        Withdraw::Consent(None),
    ] {
        let before = since().await;
        let _ = there.withdraw(who(1), what).await.unwrap();
        let late = here.learn(learned(None), before).await.unwrap();
        assert_eq!(late, Bound::Unchanged, "{what:?}");
        assert_eq!(here.psu_now(who(1)).await.unwrap(), None);
    }
    let before = since().await;
    let _ = there.withdraw(who(1), Withdraw::Session).await.unwrap();
    let bound = here.learn(learned(None), before).await.unwrap();
    assert_eq!(bound, Bound::New, "the end of a session takes no fact back");
    // An agreement that the answer would add, after all consents ended.
    let before = since().await;
    assert_eq!(
        there.withdraw(who(1), Withdraw::Consents).await.unwrap(),
        done(0, 1, 0)
    );
    let late = here.learn(learned(Some(7)), before).await.unwrap();
    assert_eq!(late, Bound::Unchanged);
    assert_eq!(
        here.psu_now(who(1)).await.unwrap().unwrap().contexts.len(),
        1
    );
    let before = since().await;
    assert!(there.erase(psu).await.unwrap().is_some());
    let late = here.learn(learned(None), before).await.unwrap();
    assert_eq!(late, Bound::Unchanged);
    assert_eq!(here.psu_now(who(1)).await.unwrap(), None);
    // The answer to a later request may teach again.
    assert_eq!(learn_now(&here, learned(Some(7))).await, Bound::New);
}

/// SCA-22: the core adds an agreement of a PSU that was learned, once, and none of a PSU that the bank bound.
async fn agreements_are_learned_of_learned_psus_only<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let agreement = |number| Some(Known::by_bank(CorporateId::from_bits(number)));
    let learn = async |context: Option<Option<u128>>, now| {
        let context = context.map(|number| LearnedContext {
            corporate: number.and_then(agreement),
            consent: Some((at(now), &ConsentAccounts::All)),
        });
        let learned = Learned {
            who: who(1),
            context,
            last_sca: Some(at(now)),
        };
        let bound = learn_now(store, learned).await;
        assert_ne!(bound, Bound::Elsewhere);
        let psu = store.psu(who(1)).await.unwrap().unwrap();
        let given = |context: &portvakt::state::Context| {
            let consent = context.consent.as_ref();
            consent.map(|consent| consent.given.unix() - BEGIN)
        };
        let last_sca = psu.last_sca.unwrap().unix() - BEGIN;
        let mut given: Vec<_> = psu.contexts.iter().map(given).collect();
        given.sort_unstable();
        (last_sca, given)
    };
    // The core confirmed the PSU alone: its facts belong to no context.
    assert_eq!(learn(None, BEGIN + 5).await, (5, vec![]));
    assert_eq!(learn(Some(None), BEGIN + 6).await, (5, vec![]));
    let one = (7, vec![Some(7)]);
    assert_eq!(learn(Some(Some(7)), BEGIN + 7).await, one);
    assert_eq!(learn(Some(Some(7)), BEGIN + 8).await, one);
    let withdrawn = store.withdraw(who(1), Withdraw::Consents).await.unwrap();
    assert_eq!(withdrawn, done(0, 1, 0));
    let none = (7, vec![None]);
    assert_eq!(learn(Some(Some(7)), BEGIN + 9).await, none);
    let two = (10, vec![None, Some(10)]);
    assert_eq!(learn(Some(Some(8)), BEGIN + 10).await, two);
    let bind = Bind {
        imported: false,
        who: who(1),
        corporate: None,
        last_sca: at(BEGIN),
        consent: None,
        customer: None,
    };
    store.bind(bind).await.unwrap();
    let bound = (10, vec![None, None, Some(10)]);
    assert_eq!(learn(Some(Some(9)), BEGIN + 11).await, bound);
}

/// SCA-22, QUO-1: calls that were made before the PSU was known count beside those of the PSU.
async fn calls_of_an_unknown_psu_count_on<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let known = |now| {
        let mut claim = call(1, now);
        claim.quota.as_mut().unwrap().beside = Beside::all([hash(2)]).unwrap();
        claim
    };
    for now in [BEGIN, BEGIN + 1] {
        let _ = held(store.commit(call(2, now)).await.unwrap());
    }
    let left = |taken: &portvakt::state::Taken| taken.left().unwrap().calls;
    let first = held(store.commit(known(BEGIN + 2)).await.unwrap());
    let second = held(store.commit(known(BEGIN + 3)).await.unwrap());
    assert_eq!((left(&first), left(&second)), (1, 0));
    let next = at(BEGIN + DAY);
    let refused = async |now| match store.commit(known(now)).await.unwrap() {
        Decision::NextAt(next) => next,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(BEGIN + 4).await, next);
    // The other row does not count the calls of the known PSU.
    let other = held(store.commit(call(2, BEGIN + 5)).await.unwrap());
    assert_eq!(left(&other), 1);
    // Calls that are given back, in either row, free a place.
    for taken in [&other, &second] {
        store.give_back(taken, true).await.unwrap();
    }
    let again = held(store.commit(known(BEGIN + 6)).await.unwrap());
    assert_eq!(left(&again), 0);
    assert_eq!(refused(BEGIN + DAY - 1).await, next);
    let _ = held(store.commit(known(BEGIN + DAY)).await.unwrap());
}

async fn withdrawal_keeps_the_binding<D: Data>() {
    let data = D::new();
    let store = &data.open();
    assert_eq!(
        store.withdraw(who(1), Withdraw::Consents).await.unwrap(),
        Withdrawn::Unknown
    );
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let mut corporate = finish(2, 1, "t", BEGIN + 1);
    corporate.completion.as_mut().unwrap().corporate =
        Some(Known::by_bank(CorporateId::from_bits(7)));
    store.finish(corporate).await.unwrap();
    let _ = store.psu(who(1)).await.unwrap();
    let withdraw = async |what| store.withdraw(who(1), what).await.unwrap();
    let agreement = |bits| Withdraw::Consent(Some(Known::by_bank(CorporateId::from_bits(bits))));
    assert_eq!(withdraw(agreement(8)).await, Withdrawn::UnknownAgreement);
    assert_eq!(withdraw(Withdraw::Session).await, done(1, 0, 2));
    let again = withdraw(Withdraw::Session).await;
    assert_eq!(again, Withdrawn::Already { left: 2 });
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    assert!(psu.session.is_none());
    assert!(psu.contexts.iter().all(|context| context.consent.is_some()));
    for expected in [done(0, 2, 0), Withdrawn::Already { left: 0 }] {
        assert_eq!(withdraw(Withdraw::Consents).await, expected);
        let psu = store.psu(who(1)).await.unwrap().unwrap();
        assert_eq!(psu.last_sca, Some(at(BEGIN + 1)));
        assert_eq!(psu.contexts.len(), 2);
        assert!(psu.contexts.iter().all(|context| context.consent.is_none()));
    }
    let again = withdraw(agreement(7)).await;
    assert_eq!(again, Withdrawn::Already { left: 0 });
}

/// The consents of a PSU who never was in the private context: a withdrawal that names no agreement ends nothing, and says so.
async fn a_withdrawal_says_what_ended<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for bits in [7, 8] {
        let mut corporate = finish(bits, 1, "t", BEGIN);
        corporate.completion.as_mut().unwrap().corporate =
            Some(Known::by_bank(CorporateId::from_bits(bits.into())));
        store.finish(corporate).await.unwrap();
    }
    let before = store.psu_now(who(1)).await.unwrap();
    let withdraw = async |what| store.withdraw(who(1), what).await.unwrap();
    let private = withdraw(Withdraw::Consent(None)).await;
    assert_eq!(private, Withdrawn::OnlyAgreements);
    assert_eq!(store.psu_now(who(1)).await.unwrap(), before);
    assert_eq!(withdraw(Withdraw::Consents).await, done(0, 2, 0));
    let private = withdraw(Withdraw::Consent(None)).await;
    assert_eq!(private, Withdrawn::Already { left: 0 });
    let erased = store.erase(who(1).psu).await.unwrap().unwrap();
    assert_eq!(erased.tpp, *TPP);
    assert_eq!((erased.ended.sessions, erased.ended.consents), (1, 0));
    assert_eq!(store.erase(who(1).psu).await.unwrap(), None);
    assert_eq!(withdraw(Withdraw::Binding).await, Withdrawn::Unknown);
}

fn done(sessions: usize, consents: usize, left: usize) -> Withdrawn {
    let ended = Ended { sessions, consents };
    Withdrawn::Done { ended, left }
}

async fn housekeeping_removes_what_expired_and_nothing_else<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for key in 0..1_200 {
        let _ = held(store.commit(call(key, BEGIN)).await.unwrap());
        let _ = held(
            store
                .commit(request(key, Retention::Day, BEGIN))
                .await
                .unwrap(),
        );
    }
    let _ = held(store.commit(call(0, BEGIN + 100)).await.unwrap());
    let _ = held(store.commit(page(0, BEGIN)).await.unwrap());
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    // Counts rows and not the result of `tidy`: the work after a batch may remove some rows first.
    let left = async |when| {
        store.tidy(at(when)).await.unwrap();
        store.counters().rows
    };
    let short = request(5_000, Retention::Date, BEGIN);
    let _ = held(store.commit(short).await.unwrap());
    assert_eq!(left(BEGIN + 301).await.requests, Some(1_201));
    assert_eq!(left(BEGIN + 302).await.requests, Some(1_200));
    let rows = left(BEGIN + HOUR).await;
    assert_eq!((rows.pages, rows.tokens), (Some(0), Some(1)));
    assert_eq!(left(BEGIN + DAY).await.quotas, Some(1_200));
    // The second call of key 0 still counts. Ids stay four minutes longer, because a clock may step back, and a claim waits.
    let rows = left(BEGIN + DAY + 60).await;
    assert_eq!((rows.quotas, rows.requests), (Some(1), Some(1_200)));
    let taken = held(store.commit(call(0, BEGIN + DAY + 60)).await.unwrap());
    assert_eq!(taken.left().unwrap().calls, 2);
    assert_eq!(left(BEGIN + DAY + 240).await.requests, Some(1_200));
    assert_eq!(left(BEGIN + DAY + 241).await.requests, Some(0));
    // A used token stays a day longer, for the same reason (SCA-12).
    assert_eq!(left(BEGIN + 900 + DAY + 60).await.tokens, Some(1));
    assert_eq!(left(BEGIN + 900 + DAY + 61).await.tokens, Some(0));
    assert!(store.psu_now(who(1)).await.unwrap().is_some());
    let rows = left(BEGIN + 1_000 * DAY).await;
    assert!(store.psu_now(who(1)).await.unwrap().is_some());
    assert_eq!(
        (rows.quotas, rows.requests, rows.tokens),
        (Some(0), Some(0), Some(0))
    );
    assert_eq!((rows.pages, rows.psus), (Some(0), Some(1)));
}

/// CTL-2: a block that ended stays for a day, because a clock may step back; one without an end stays.
async fn blocks_that_ended_are_removed<D: Data>() {
    let data = D::new();
    let store = &data.open();
    for (tpp, until) in [(&TPP, None), (&OTHER, Some(at(BEGIN + HOUR)))] {
        let block = Block {
            tpp: ForbiddenTpp::of(tpp),
            scope: BlockScope::All,
            reason: "fraud".into(),
            since: at(BEGIN),
            until,
        };
        store.block(block).await.unwrap();
    }
    for (when, blocks) in [(HOUR + DAY + 60, 2), (HOUR + DAY + 61, 1), (1_000 * DAY, 1)] {
        store.tidy(at(BEGIN + when)).await.unwrap();
        assert_eq!(store.counters().rows.blocks, Some(blocks));
        let listed = store.list_blocks().await.unwrap();
        assert_eq!(listed.len() as u64, blocks);
        assert!(listed.iter().all(|block| block.holds(at(BEGIN))));
    }
}

/// CTL-2.
async fn a_block_holds_in_every_store_and_after_a_restart<D: Data>() {
    let data = D::new();
    let [one, two] = [data.open(), data.open()];
    let refuses = async |store: &StateStore| {
        let blocks = store.blocks_now().await.unwrap();
        [&*TPP, &*OTHER].map(|tpp| blocks.refuses(tpp, true, Vec::new, at(BEGIN)))
    };
    let block = |scope, reason: &str| Block {
        tpp: ForbiddenTpp::parse("PSDNO-FSA-12-34 56").unwrap(),
        scope,
        reason: reason.into(),
        since: at(BEGIN),
        until: None,
    };
    let psu = one.keys().psu(who(1).psu);
    for scope in [BlockScope::All, BlockScope::Payments] {
        let made = [
            one.block(block(scope, "a")).await.unwrap(),
            one.block(block(scope, "a")).await.unwrap(),
            one.block(block(scope, "b")).await.unwrap(),
        ];
        assert_eq!(made, [Blocked::New, Blocked::Before, Blocked::Changed]);
        // At once in the process that made it, and soon in the other.
        assert_eq!(refuses(&one).await, [true, false]);
        eventually_async("the other store refuses", async || {
            refuses(&two).await == [true, false]
        })
        .await;
        assert_eq!(two.list_blocks().await.unwrap(), [block(scope, "b")]);
        let three = data.open();
        assert_eq!(refuses(&three).await, [true, false]);
        assert_eq!(
            three.unblock(&ForbiddenTpp::of(&TPP), scope).await.unwrap(),
            Lifted::Done
        );
        assert_eq!(
            three.unblock(&ForbiddenTpp::of(&TPP), scope).await.unwrap(),
            Lifted::Unknown
        );
        assert_eq!(refuses(&three).await, [false; 2]);
        for other in [&one, &two] {
            eventually_async("the other store hears of the end", async || {
                refuses(other).await == [false; 2]
            })
            .await;
        }
    }
    assert_eq!(
        two.block(block(BlockScope::Psu(psu), "p")).await.unwrap(),
        Blocked::New
    );
    drop([one, two]);
    let again = data.open();
    assert_eq!(
        again.list_blocks().await.unwrap(),
        [block(BlockScope::Psu(psu), "p")]
    );
    let blocks = again.blocks_now().await.unwrap();
    assert!(blocks.refuses(
        &TPP,
        false,
        || vec![again.keys().sought(Named::Known(who(1).psu))],
        at(BEGIN)
    ));
    assert!(!blocks.refuses(&TPP, true, Vec::new, at(BEGIN)));
}
