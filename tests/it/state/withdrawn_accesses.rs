//! CTL-1, SCA-13: the bank withdraws or narrows what TPPs may do for one of its customers, with every engine.

use super::{
    BEGIN, Data, OTHER, TPP, at,
    customers::{agreement, bind, bind_all, key, of, psus},
    finish, learn_now, who,
};
use crate::harness::eventually_async;
use portvakt::{
    interface::{ForbiddenTpp, TppId},
    state::{
        AccessChange, AccessesOf, Accounts, Bind, Bound, ConsentAccounts, Context, CustomerKey,
        Ended, Learned, LearnedContext, Named, PsuHash, PsuRef, StateStore, Withdraw,
    },
};
use std::sync::Arc;

on_every_engine!(
    everything_of_a_customer_ends,
    one_tpp_is_named_in_any_spelling,
    one_agreement_ends_and_the_session_stays,
    accounts_that_remain_narrow_a_consent,
    accounts_that_remain_concern_every_context,
    a_withdrawal_is_known_in_every_store,
    an_answer_under_way_teaches_nothing_of_a_customer,
    more_psus_than_a_step_are_withdrawn,
);

/// The customer's accounts that a consent names.
fn named(ids: &[&str]) -> ConsentAccounts {
    ConsentAccounts::Named(ids.iter().map(|id| (*id).to_owned()).collect())
}

/// Everything of a customer.
const fn all_of(customer: &CustomerKey) -> AccessesOf<'_> {
    AccessesOf {
        customer,
        tpp: None,
        agreement: None,
        remaining: None,
    }
}

/// The changes of each PSU-ID: sessions and consents that ended, and consents that were narrowed.
async fn withdraw(store: &StateStore, of: AccessesOf<'_>) -> Vec<((TppId, PsuHash), [usize; 3])> {
    let changes = store.withdraw_accesses(of).await.unwrap();
    let numbers = |change: AccessChange| {
        let AccessChange {
            tpp,
            psu,
            ended: Ended { sessions, consents },
            narrowed,
        } = change;
        ((tpp, psu), [sessions, consents, narrowed])
    };
    let mut changes: Vec<_> = changes.into_iter().map(numbers).collect();
    changes.sort_by_key(|((_, psu), _)| *psu);
    changes
}

/// The same of these PSU-IDs.
fn changes(
    store: &StateStore,
    these: &[(&TppId, u128, [usize; 3])],
) -> Vec<((TppId, PsuHash), [usize; 3])> {
    let change = |(tpp, psu, numbers): &(&TppId, u128, [usize; 3])| {
        let hashed = psus(store, &[(*tpp, *psu)]);
        (hashed[0].clone(), *numbers)
    };
    let mut changes: Vec<_> = these.iter().map(change).collect();
    changes.sort_by_key(|((_, psu), _)| *psu);
    changes
}

/// A customer with PSU-ID 1 at a TPP, in private and by two agreements, under a session, and PSU-ID 2 at another TPP; another customer with
/// PSU-ID 3.
async fn two_customers(store: &StateStore) -> [CustomerKey; 2] {
    let [one, other] = ["1", "2"].map(key);
    let of_firm = |tpp, psu, number, accounts| Bind {
        corporate: Some(agreement(number)),
        consent: Some((at(BEGIN), accounts)),
        ..bind(tpp, psu, None)
    };
    let ab = named(&["a", "b"]);
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    store.finish(finish(2, 3, "s", BEGIN)).await.unwrap();
    for bind in [
        bind(&TPP, 1, Some(&one)),
        of_firm(&TPP, 1, 7, &ab),
        of_firm(&TPP, 1, 8, &ConsentAccounts::All),
        bind(&OTHER, 2, Some(&one)),
        bind(&TPP, 3, Some(&other)),
    ] {
        store.bind(bind).await.unwrap();
    }
    [one, other]
}

/// The consents of a PSU, in private and by agreements 7 and 8: the accounts by their letters.
async fn consents(store: &StateStore, who: PsuRef<'_>) -> [Option<String>; 3] {
    let psu = store.psu(who).await.unwrap().unwrap();
    let keys = store.keys();
    let letters = |context: &Context| {
        let consent = context.consent.as_ref()?;
        assert_eq!(consent.given, at(BEGIN));
        Some(match &consent.accounts {
            Accounts::All => "all".to_owned(),
            Accounts::Named(_) => {
                let ids = ["a", "b", "c", "d"].into_iter();
                ids.filter(|id| consent.accounts.include(keys.account(id)))
                    .collect()
            }
        })
    };
    let agreements = [None, Some(7), Some(8)];
    agreements.map(|number| {
        let corporate = number.map(|number| keys.corporate(agreement(number)));
        psu.context(corporate).and_then(letters)
    })
}

/// Whether PSU-ID 1 has a session.
async fn has_session(store: &StateStore) -> bool {
    store.psu(who(1)).await.unwrap().unwrap().session.is_some()
}

fn texts(of: [&str; 3]) -> [Option<String>; 3] {
    of.map(|text| (!text.is_empty()).then(|| text.to_owned()))
}

async fn everything_of_a_customer_ends<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let [one, _] = two_customers(store).await;
    let untouched = store.psu_now(who(3)).await.unwrap();
    assert_eq!(consents(store, who(1)).await, texts(["all", "ab", "all"]));
    let ended = withdraw(store, all_of(&one)).await;
    let expected = [(&*TPP, 1, [1, 3, 0]), (&*OTHER, 2, [0, 1, 0])];
    assert_eq!(ended, changes(store, &expected));
    assert_eq!(consents(store, who(1)).await, texts([""; 3]));
    assert_eq!(consents(store, of(&OTHER, 2)).await, texts([""; 3]));
    assert!(!has_session(store).await);
    // HDR-14: the contexts stay known, and so does the customer.
    let psu = store.psu_now(who(1)).await.unwrap().unwrap();
    assert_eq!(psu.contexts.len(), 3);
    let again = withdraw(store, all_of(&one)).await;
    let expected = [(&*TPP, 1, [0; 3]), (&*OTHER, 2, [0; 3])];
    assert_eq!(again, changes(store, &expected));
    assert_eq!(store.psu_now(who(3)).await.unwrap(), untouched);
    assert!(withdraw(store, all_of(&key("3"))).await.is_empty());
}

async fn one_tpp_is_named_in_any_spelling<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let [one, other] = two_customers(store).await;
    let spelled = ForbiddenTpp::parse("PSDSE-FINA-44-0 59").unwrap();
    let at_tpp = |customer| AccessesOf {
        tpp: Some(&spelled),
        ..all_of(customer)
    };
    let ended = withdraw(store, at_tpp(&one)).await;
    assert_eq!(ended, changes(store, &[(&*OTHER, 2, [0, 1, 0])]));
    assert_eq!(consents(store, of(&OTHER, 2)).await, texts([""; 3]));
    assert_eq!(consents(store, who(1)).await, texts(["all", "ab", "all"]));
    assert!(has_session(store).await);
    // Another customer has no PSU-ID there.
    assert!(withdraw(store, at_tpp(&other)).await.is_empty());
}

async fn one_agreement_ends_and_the_session_stays<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let [one, _] = two_customers(store).await;
    let of_firm = |number| AccessesOf {
        agreement: Some(agreement(number)),
        ..all_of(&one)
    };
    // A PSU-ID without the agreement is concerned, and nothing of it ends.
    let nothing = [(&*TPP, 1, [0; 3]), (&*OTHER, 2, [0; 3])];
    let ended = withdraw(store, of_firm(9)).await;
    assert_eq!(ended, changes(store, &nothing));
    let ended = withdraw(store, of_firm(7)).await;
    let expected = [(&*TPP, 1, [0, 1, 0]), (&*OTHER, 2, [0; 3])];
    assert_eq!(ended, changes(store, &expected));
    assert_eq!(consents(store, who(1)).await, texts(["all", "", "all"]));
    assert!(has_session(store).await);
    // With the accounts that remain.
    let remaining = ["a", "c"].map(str::to_owned);
    let narrower = AccessesOf {
        remaining: Some(&remaining),
        ..of_firm(8)
    };
    let narrowed = withdraw(store, narrower).await;
    let expected = [(&*TPP, 1, [0, 0, 1]), (&*OTHER, 2, [0; 3])];
    assert_eq!(narrowed, changes(store, &expected));
    assert_eq!(consents(store, who(1)).await, texts(["all", "", "ac"]));
}

async fn accounts_that_remain_narrow_a_consent<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let customer = key("1");
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    store.bind(bind(&TPP, 1, Some(&customer))).await.unwrap();
    for (remaining, numbers, left) in [
        // All accounts become those that are named, once.
        ("baca", [0, 0, 1], "abc"),
        ("cba", [0, 0, 0], "abc"),
        // Those that are in both; no account is added.
        ("abd", [0, 0, 1], "ab"),
        ("abcd", [0, 0, 0], "ab"),
        // None is left: the consent ends, and does not become one to nothing.
        ("c", [0, 1, 0], ""),
        ("a", [0, 0, 0], ""),
    ] {
        let ids: Vec<String> = remaining.chars().map(String::from).collect();
        let narrower = AccessesOf {
            remaining: Some(&ids),
            ..all_of(&customer)
        };
        let changed = withdraw(store, narrower).await;
        assert_eq!(changed, changes(store, &[(&*TPP, 1, numbers)]), "{ids:?}");
        let expected = texts([left, "", ""]);
        assert_eq!(consents(store, who(1)).await, expected, "{ids:?}");
        assert_eq!(consents(&data.open(), who(1)).await, expected, "{ids:?}");
    }
    assert!(has_session(store).await);
}

async fn accounts_that_remain_concern_every_context<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let [one, _] = two_customers(store).await;
    let narrower = |remaining| AccessesOf {
        remaining: Some(remaining),
        ..all_of(&one)
    };
    let only_c = ["c".to_owned()];
    let changed = withdraw(store, narrower(&only_c)).await;
    let expected = [(&*TPP, 1, [0, 1, 2]), (&*OTHER, 2, [0, 0, 1])];
    assert_eq!(changed, changes(store, &expected));
    assert_eq!(consents(store, who(1)).await, texts(["c", "", "c"]));
    assert_eq!(consents(store, who(3)).await, texts(["all", "", ""]));
    // No account remains.
    let ended = withdraw(store, narrower(&[])).await;
    let expected = [(&*TPP, 1, [0, 2, 0]), (&*OTHER, 2, [0, 1, 0])];
    assert_eq!(ended, changes(store, &expected));
    assert!(has_session(store).await);
}

/// SCA-13: the store that withdraws grants nothing any more, and another one soon grants nothing.
async fn a_withdrawal_is_known_in_every_store<D: Data>() {
    let data = D::new();
    let [here, there] = [data.open(), data.open()];
    let [one, _] = two_customers(&here).await;
    for store in [&here, &there] {
        assert!(store.psu(who(1)).await.unwrap().unwrap().session.is_some());
    }
    let remaining = ["b".to_owned()];
    let narrower = AccessesOf {
        remaining: Some(&remaining),
        ..all_of(&one)
    };
    for (of, expected) in [(narrower, ["b", "b", "b"]), (all_of(&one), ["", "", ""])] {
        withdraw(&here, of).await;
        let expected = texts(expected);
        assert_eq!(consents(&here, who(1)).await, expected);
        eventually_async("the other store knows it", async || {
            consents(&there, who(1)).await == expected
        })
        .await;
    }
    assert!(!has_session(&here).await);
}

/// SCA-13: an answer of the core that was under way when the bank withdrew a customer's accesses teaches nothing.
async fn an_answer_under_way_teaches_nothing_of_a_customer<D: Data>() {
    let data = D::new();
    let [here, there] = [data.open(), data.open()];
    let [one, _] = two_customers(&here).await;
    let since = async |psu| {
        let last = here.last_removal(Named::Known(who(psu).psu)).await;
        last.unwrap()
    };
    let learned = Learned {
        who: who(1),
        context: Some(LearnedContext {
            corporate: Some(agreement(9)),
            consent: Some((at(BEGIN), &ConsentAccounts::All)),
        }),
        last_sca: Some(at(BEGIN)),
    };
    let before = [since(1).await, since(2).await, since(3).await];
    withdraw(&there, all_of(&one)).await;
    let after = [since(1).await, since(2).await, since(3).await];
    let marked = [0, 1, 2].map(|psu| before[psu] != after[psu]);
    assert_eq!(marked, [true, true, false], "only PSU-IDs of the customer");
    let late = here.learn(learned.clone(), before[0]).await.unwrap();
    assert_eq!(late, Bound::Unchanged);
    assert_eq!(consents(&here, who(1)).await, texts([""; 3]));
    // The mark also holds where the bank then ends the binding: the answer is older than both.
    let middle = since(1).await;
    let _ = there.withdraw(who(1), Withdraw::Binding).await.unwrap();
    for since in [before[0], middle] {
        let late = here.learn(learned.clone(), since).await.unwrap();
        assert_eq!(late, Bound::Unchanged);
    }
    assert_eq!(here.psu_now(who(1)).await.unwrap(), None);
    assert_eq!(learn_now(&here, learned).await, Bound::New);
}

/// A withdrawal goes on where one step of it ends.
async fn more_psus_than_a_step_are_withdrawn<D: Data>() {
    let data = D::new();
    let store = Arc::new(data.open());
    bind_all(&store, 0..501).await;
    let customer = key("1");
    for numbers in [[0, 1, 0], [0; 3]] {
        let ended = withdraw(&store, all_of(&customer)).await;
        assert_eq!(ended.len(), 501);
        assert!(ended.iter().all(|(_, of)| *of == numbers));
    }
}
