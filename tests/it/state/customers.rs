//! CTL-1: the bank's own key for its customer, the list of the customer's PSU-IDs, and the day of the last use, with every engine.

use super::{
    BEGIN, DAY, Data, HOUR, OTHER, PostgresSchema, SqliteFolder, TPP, at, finish, learn_now,
    way_back, who,
};
use crate::harness::{eventually_async, postgres};
use portvakt::{
    interface::{TppId, headers::CorporateId},
    state::{
        Bind, Bound, Changes, ConsentAccounts, CustomerKey, Finished, Known, Learned,
        LearnedContext, PsuHash, PsuRef, StateStore, Withdraw,
    },
};
use std::{ops::Range, sync::Arc};

on_every_engine!(
    a_binding_and_a_completion_name_the_customer,
    a_list_has_every_context,
    a_list_has_a_thousand_psus_at_most,
    a_key_is_forgotten_and_nothing_else,
    a_psu_that_is_gone_is_no_customers,
    the_day_of_use_moves_forward_once_a_day,
    a_use_of_nothing_is_not_noted,
);

/// The number of PSU-IDs that are bound at once.
const AT_ONCE: usize = 100;

pub(super) fn key(text: &str) -> CustomerKey {
    CustomerKey::parse(text).unwrap()
}

pub(super) fn agreement(number: u128) -> Known<CorporateId> {
    Known::by_bank(CorporateId::from_bits(number))
}

/// A PSU-ID of a TPP.
pub(super) fn of(tpp: &TppId, psu: u128) -> PsuRef<'_> {
    PsuRef { tpp, ..who(psu) }
}

/// A PSU-ID of a TPP in the private context, with a consent to all accounts.
pub(super) fn bind<'a>(tpp: &'a TppId, psu: u128, customer: Option<&'a CustomerKey>) -> Bind<'a> {
    Bind {
        who: of(tpp, psu),
        corporate: None,
        imported: false,
        last_sca: at(BEGIN),
        consent: Some((at(BEGIN), &ConsentAccounts::All)),
        customer,
    }
}

/// Each PSU-ID of a customer.
pub(super) async fn listed(store: &StateStore, customer: &CustomerKey) -> Vec<(TppId, PsuHash)> {
    let found = store.accesses_of(customer).await.unwrap();
    assert!(!found.more);
    let accesses = found.accesses.into_iter();
    sorted(accesses.map(|access| (access.tpp, access.psu)).collect())
}

/// The same of these PSU-IDs.
pub(super) fn psus(store: &StateStore, these: &[(&TppId, u128)]) -> Vec<(TppId, PsuHash)> {
    let hashed = |(tpp, psu): &(&TppId, u128)| ((*tpp).clone(), store.keys().psu(who(*psu).psu));
    sorted(these.iter().map(hashed).collect())
}

fn sorted(mut psus: Vec<(TppId, PsuHash)>) -> Vec<(TppId, PsuHash)> {
    psus.sort_by_key(|(_, psu)| *psu);
    psus
}

async fn a_binding_and_a_completion_name_the_customer<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let [one, other] = ["0042 Å", "0043"].map(key);
    assert!(listed(store, &one).await.is_empty());
    let bound = store.bind(bind(&TPP, 1, Some(&one))).await.unwrap();
    assert_eq!(bound, Bound::New);
    let mut completed = finish(1, 2, "s", BEGIN);
    let completion = completed.completion.as_mut().unwrap();
    completion.who.tpp = &OTHER;
    completion.customer = Some(&one);
    let finished = store.finish(completed.clone()).await.unwrap();
    assert_eq!(finished, Finished::Done);
    store.bind(bind(&TPP, 3, None)).await.unwrap();
    let both = psus(store, &[(&*TPP, 1), (&*OTHER, 2)]);
    assert_eq!(listed(store, &one).await, both);
    // None leaves the key, and the same key changes nothing.
    for customer in [None, Some(&one)] {
        let again = bind(&TPP, 1, customer);
        assert_eq!(store.bind(again).await.unwrap(), Bound::Unchanged);
    }
    let mut without = finish(2, 2, "t", BEGIN + 1);
    without.completion.as_mut().unwrap().who.tpp = &OTHER;
    assert_eq!(store.finish(without).await.unwrap(), Finished::Done);
    assert_eq!(listed(store, &one).await, both);
    assert_eq!(listed(&data.open(), &one).await, both);
    // Another key replaces it.
    let changed = Bound::Changed(Changes {
        customer: true,
        ..Changes::default()
    });
    let replaced = bind(&TPP, 1, Some(&other));
    assert_eq!(store.would_bind(&replaced).await.unwrap(), changed);
    assert_eq!(listed(store, &one).await, both);
    assert_eq!(store.bind(replaced).await.unwrap(), changed);
    assert_eq!(
        listed(store, &one).await,
        psus(store, &[(&*OTHER, 2)]),
        "the PSU-ID has one key"
    );
    assert_eq!(listed(store, &other).await, psus(store, &[(&*TPP, 1)]));
    completed.token = super::hash(3);
    completed.completion.as_mut().unwrap().customer = Some(&other);
    store.finish(completed).await.unwrap();
    assert!(listed(store, &one).await.is_empty());
    assert_eq!(listed(store, &other).await, both);
    // A statement that is refused names no customer.
    let elsewhere = bind(&OTHER, 3, Some(&one));
    assert_eq!(store.bind(elsewhere).await.unwrap(), Bound::Elsewhere);
    assert!(listed(store, &one).await.is_empty());
}

async fn a_list_has_every_context<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let [one, other] = ["1", "2"].map(key);
    let named = ConsentAccounts::Named(vec!["a".to_owned(), "b".to_owned()]);
    for (tpp, psu, customer) in [(&*TPP, 1, &one), (&*OTHER, 2, &one), (&*TPP, 3, &other)] {
        store.bind(bind(tpp, psu, Some(customer))).await.unwrap();
        for number in [7, 8] {
            let of_firm = Bind {
                corporate: Some(agreement(number)),
                consent: Some((at(BEGIN), &named)),
                ..bind(tpp, psu, None)
            };
            store.bind(of_firm).await.unwrap();
        }
    }
    let found = store.accesses_of(&one).await.unwrap();
    assert_eq!((found.accesses.len(), found.more), (2, false));
    for access in found.accesses {
        let psu = if access.tpp == *TPP { 1 } else { 2 };
        let known = store.psu_now(of(&access.tpp, psu)).await.unwrap().unwrap();
        assert_eq!(access.facts, known);
        assert_eq!(access.facts.contexts.len(), 3);
        assert_eq!(access.psu, store.keys().psu(who(psu).psu));
    }
}

/// Binds PSU-IDs of one TPP with the key "1" of a customer.
pub(super) async fn bind_all(store: &Arc<StateStore>, psus: Range<u128>) {
    let psus: Vec<u128> = psus.collect();
    for some in psus.chunks(AT_ONCE) {
        let binding = some.iter().map(|psu| {
            let (store, psu) = (Arc::clone(store), *psu);
            tokio::spawn(async move {
                let customer = key("1");
                store.bind(bind(&TPP, psu, Some(&customer))).await.unwrap()
            })
        });
        for bound in binding.collect::<Vec<_>>() {
            assert_eq!(bound.await.unwrap(), Bound::New);
        }
    }
}

async fn a_list_has_a_thousand_psus_at_most<D: Data>() {
    let data = D::new();
    let store = Arc::new(data.open());
    let customer = key("1");
    bind_all(&store, 0..1_000).await;
    let found = store.accesses_of(&customer).await.unwrap();
    assert_eq!((found.accesses.len(), found.more), (1_000, false));
    bind_all(&store, 1_000..1_001).await;
    let found = store.accesses_of(&customer).await.unwrap();
    assert_eq!((found.accesses.len(), found.more), (1_000, true));
    // A change concerns them all.
    let forgotten = store.forget_customer(&customer).await.unwrap();
    assert_eq!(forgotten.len(), 1_001);
    assert!(listed(&store, &customer).await.is_empty());
}

async fn a_key_is_forgotten_and_nothing_else<D: Data>() {
    let data = D::new();
    let [here, there] = [data.open(), data.open()];
    let [one, other] = ["1", "2"].map(key);
    for (tpp, psu, customer) in [(&*TPP, 1, &one), (&*OTHER, 2, &one), (&*TPP, 3, &other)] {
        here.bind(bind(tpp, psu, Some(customer))).await.unwrap();
    }
    here.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let before = there.psu(who(1)).await.unwrap().unwrap();
    assert!(before.customer.is_some() && before.session.is_some());
    let forgotten = here.forget_customer(&one).await.unwrap();
    assert_eq!(sorted(forgotten), psus(&here, &[(&*TPP, 1), (&*OTHER, 2)]));
    assert!(here.forget_customer(&one).await.unwrap().is_empty());
    for store in [&here, &there, &data.open()] {
        assert!(listed(store, &one).await.is_empty());
        assert_eq!(listed(store, &other).await, psus(store, &[(&*TPP, 3)]));
    }
    let after = here.psu(who(1)).await.unwrap().unwrap();
    assert_eq!(after.customer, None);
    assert_eq!(
        (&after.session, &after.contexts),
        (&before.session, &before.contexts)
    );
    eventually_async("the other store forgot the key", async || {
        there.psu(who(1)).await.unwrap() == Some(Arc::clone(&after))
    })
    .await;
    // The bank may name the customer again.
    here.bind(bind(&TPP, 1, Some(&one))).await.unwrap();
    assert_eq!(listed(&here, &one).await, psus(&here, &[(&*TPP, 1)]));
}

/// A binding that was erased or withdrawn leaves no key, and a binding that takes the place of a learned one has none.
async fn a_psu_that_is_gone_is_no_customers<D: Data>() {
    let data = D::new();
    let store = &data.open();
    let customer = key("1");
    for psu in [1, 2, 3] {
        store.bind(bind(&TPP, psu, Some(&customer))).await.unwrap();
    }
    assert!(store.erase(who(1).psu).await.unwrap().is_some());
    let left = psus(store, &[(&*TPP, 2), (&*TPP, 3)]);
    assert_eq!(listed(store, &customer).await, left);
    let _ = store.withdraw(who(2), Withdraw::Binding).await.unwrap();
    let left = psus(store, &[(&*TPP, 3)]);
    assert_eq!(listed(store, &customer).await, left);
    let learned = Learned {
        who: of(&OTHER, 2),
        context: Some(LearnedContext {
            corporate: None,
            consent: Some((at(BEGIN), &ConsentAccounts::All)),
        }),
        last_sca: Some(at(BEGIN)),
    };
    assert_eq!(learn_now(store, learned).await, Bound::New);
    let known = store.psu_now(of(&OTHER, 2)).await.unwrap().unwrap();
    assert_eq!((known.learned, known.customer), (true, None));
    let taken_over = store.bind(bind(&TPP, 2, None)).await.unwrap();
    assert_eq!(taken_over, Bound::TakenOver);
    let known = store.psu_now(who(2)).await.unwrap().unwrap();
    assert_eq!((known.learned, known.customer), (false, None));
    assert_eq!(listed(store, &customer).await, left);
}

/// The day on which a context of PSU 1 was used last.
async fn used(store: &StateStore, corporate: Option<Known<CorporateId>>) -> Option<u64> {
    let psu = store.psu(who(1)).await.unwrap().unwrap();
    let corporate = corporate.map(|id| store.keys().corporate(id));
    let context = psu.context(corporate).unwrap();
    context.used.map(|day| day.unix())
}

async fn the_day_of_use_moves_forward_once_a_day<D: Data>() {
    let data = D::new();
    let [here, there] = [data.open(), data.open()];
    let firm = Some(agreement(7));
    here.bind(bind(&TPP, 1, None)).await.unwrap();
    let of_firm = Bind {
        corporate: firm,
        ..bind(&TPP, 1, None)
    };
    here.bind(of_firm).await.unwrap();
    assert_eq!(
        (used(&here, None).await, used(&there, firm).await),
        (None, None)
    );
    let note = async |corporate, now| {
        let noted = here.note_use(who(1).psu, corporate, at(now)).await;
        noted.unwrap();
    };
    for (now, day) in [
        (BEGIN + HOUR, BEGIN),
        (BEGIN + DAY - 1, BEGIN),
        (BEGIN + DAY, BEGIN + DAY),
        (BEGIN + DAY + HOUR, BEGIN + DAY),
        // A clock that stepped back.
        (BEGIN + HOUR, BEGIN + DAY),
    ] {
        note(None, now).await;
        assert_eq!(used(&here, None).await, Some(day), "{now}");
    }
    assert_eq!(used(&here, firm).await, None, "each context has its own");
    note(firm, BEGIN + 3 * DAY + 5).await;
    // Neither an SCA nor a withdrawal is a use, or ends one.
    here.finish(finish(1, 1, "s", BEGIN + 4 * DAY))
        .await
        .unwrap();
    let _ = here.withdraw(who(1), Withdraw::Consents).await.unwrap();
    let days = async |store: &StateStore| (used(store, None).await, used(store, firm).await);
    let expected = (Some(BEGIN + DAY), Some(BEGIN + 3 * DAY));
    assert_eq!(days(&here).await, expected);
    eventually_async("the other store knows the days", async || {
        days(&there).await == expected
    })
    .await;
    assert_eq!(days(&data.open()).await, expected);
}

async fn a_use_of_nothing_is_not_noted<D: Data>() {
    let data = D::new();
    let store = &data.open();
    store.bind(bind(&TPP, 1, None)).await.unwrap();
    let before = store.psu_now(who(1)).await.unwrap();
    let firm = Some(agreement(7));
    for (psu, corporate) in [(1, firm), (2, None), (2, firm)] {
        let noted = store.note_use(who(psu).psu, corporate, at(BEGIN)).await;
        noted.unwrap();
    }
    assert_eq!(store.psu_now(who(1)).await.unwrap(), before);
    assert_eq!(store.psu_now(who(2)).await.unwrap(), None);
}

/// A state of the schema before CTL-1 keeps what it has, and gets keys and days.
async fn is_migrated(data: &impl Data, without_customers: impl FnOnce()) {
    let store = data.open();
    store.finish(finish(1, 1, "s", BEGIN)).await.unwrap();
    let before = store.psu_now(who(1)).await.unwrap();
    drop(store);
    without_customers();
    let store = &data.open();
    assert_eq!(store.psu_now(who(1)).await.unwrap(), before);
    let customer = key("1");
    store.bind(bind(&TPP, 1, Some(&customer))).await.unwrap();
    assert_eq!(listed(store, &customer).await, psus(store, &[(&*TPP, 1)]));
    let noted = store.note_use(who(1).psu, None, at(BEGIN + HOUR)).await;
    noted.unwrap();
    assert_eq!(used(store, None).await, Some(BEGIN));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_the_schema_before_is_migrated() {
    let data = SqliteFolder::new();
    is_migrated(&data, || {
        for (of, to) in [
            ("psu_ending", "user_version = 5"),
            ("psu_customer", "user_version = 4"),
        ] {
            data.sql().execute_batch(&way_back(of, to)).unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_the_schema_before_is_migrated() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let user = data.user();
    is_migrated(&data, || {
        for (of, to) in [
            ("psu_ending", "value = '4'"),
            ("psu_customer", "value = '3'"),
        ] {
            let back = way_back(of, to);
            server.sql(&format!("SET search_path = {user}; {back}"));
        }
    })
    .await;
}
