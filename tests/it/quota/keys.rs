//! QUO-13 to QUO-15: which calls count under the same key.

use super::{exceeded, use_up};
use crate::harness::{Call, Gate, Protocol, Reply, accepted, pki::LeafSpec};
use portvakt::clock::{Clock, Timestamp};
use serde_json::json;

fn balances(account: &str) -> Call {
    Call::balances()
        .at(&format!("/v1/accounts/{account}/balances"))
        .only(Protocol::Http1)
}

//= QUO-15 accepted
#[test]
fn what_is_counted_together() {
    let gate = Gate::start();
    let call = balances("a:b");
    use_up(&gate, &call);
    let renewed = gate.world().issue(&LeafSpec {
        organization_identifier: gate.world().both.id(),
        ..gate.world().leaf()
    });
    let psu = gate.world().both.psu();
    let same = [
        ("another certificate", call.clone().by(&renewed)),
        (
            "PSU-ID in capitals",
            call.clone().with("PSU-ID", &psu.to_uppercase()),
        ),
        (
            "an id that is encoded",
            call.clone().at("/v1/accounts/a%3Ab/balances"),
        ),
        ("a query", call.clone().at("/v1/accounts/a:b/balances?x=1")),
        ("a session", call.clone().with("TPP-Session-ID", "another")),
        (
            "another redirect",
            call.clone()
                .with("TPP-Redirect-URI", "https://tpp.example/x"),
        ),
    ];
    for (what, call) in same {
        println!("{what}");
        exceeded(&gate, &call);
    }
    let who = json!({ "tpp": gate.world().both.id(), "psu_id": psu, "what": "consents" });
    assert_eq!(gate.tell("/psu/withdraw", &who).status, 200);
    let mut again = who;
    again.as_object_mut().unwrap().remove("what");
    gate.introduce(again);
    exceeded(&gate, &call);
}

//= QUO-15 accepted
#[test]
fn what_is_counted_apart() {
    let gate = Gate::start();
    let call = balances("1");
    use_up(&gate, &call);
    let firm = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    let other = "3f2504e0-4f89-41d3-9a0c-0305e82c3302";
    let apart = [
        balances("2"),
        balances("1").at("/v1/accounts/1/transactions"),
        balances("1").at("/v1/accounts/1/transactions/7"),
        balances("1").by(&gate.world().aisp),
        balances("1").with("PSU-ID", other),
        balances("1")
            .with("PSU-Corporate-ID", firm)
            .with("PSU-Context", "CORPORATE"),
    ];
    for call in apart {
        use_up(&gate, &call);
        exceeded(&gate, &call);
    }
    exceeded(&gate, &call);
}

//= QUO-3 accepted
#[test]
fn details_are_counted_for_the_account_or_for_each_transaction() {
    let details = |transaction: u32| {
        Call::details()
            .at(&format!("/v1/accounts/1/transactions/{transaction}"))
            .only(Protocol::Http1)
    };
    let gate = Gate::start();
    (1..=4).for_each(|transaction| drop(accepted(&gate, &details(transaction))));
    exceeded(
        &gate,
        &details(5).with("TPP-Redirect-URI", "https://tpp.example/"),
    );
    let gate = Gate::builder()
        .line("quota: {details: transaction}")
        .start();
    use_up(&gate, &details(1));
    exceeded(&gate, &details(1));
    use_up(&gate, &details(2));
}

//= QUO-13 accepted
#[test]
fn pages_count_each_or_once() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let list = |query: &str| {
        Call::accounts()
            .at(&format!("/v1/accounts/1/transactions?{query}"))
            .only(Protocol::Http1)
    };
    let gate = Gate::builder()
        .clock(&clock)
        .line("quota: {pages: each}")
        .start();
    for offset in [0, 200, 400, 600] {
        accepted(&gate, &list(&format!("limit=200&offset={offset}")));
    }
    exceeded(&gate, &list("limit=200&offset=800"));

    let gate = Gate::builder().clock(&clock).start();
    for _ in 0..4 {
        accepted(&gate, &list("limit=200"));
        for offset in [200, 400, 600, 800] {
            accepted(&gate, &list(&format!("offset={offset}&limit=200")));
        }
        clock.set(Timestamp::from_unix(clock.now().unix() + 60));
    }
    // Each offset continues the list once, in increasing order, within 15 minutes.
    exceeded(&gate, &list("offset=800&limit=200"));
    exceeded(&gate, &list("offset=700&limit=200"));
    exceeded(&gate, &list("offset=999&limit=200"));
    exceeded(&gate, &list("offset=1000&limit=200&dateFrom=2026-09-01"));
    exceeded(&gate, &list("offset=1000&limit=200&bookingStatus=both"));
    // The limit may change: the next page begins after the last entry. A link may name the default.
    accepted(&gate, &list("offset=1000&limit=100&bookingStatus=booked"));
    exceeded(&gate, &list("offset=1099"));
    accepted(&gate, &list("offset=1100"));
    exceeded(&gate, &list("offset=1299&limit=1"));
    accepted(&gate, &list("limit=1&offset=1300"));
    accepted(&gate, &list("limit=1&offset=1301"));
    clock.set(Timestamp::from_unix(clock.now().unix() + 15 * 60));
    exceeded(&gate, &list("offset=1400&limit=200"));
}

//= QUO-13 refused
#[test]
fn pages_are_no_polling() {
    let gate = Gate::start();
    let list = |offset: u32| {
        Call::accounts()
            .at(&format!("/v1/accounts/1/transactions?offset={offset}"))
            .only(Protocol::Http1)
    };
    // Without a limit a page has 200 entries, so a page that continues the list begins at 200.
    for offset in 0..4 {
        accepted(&gate, &list(offset));
    }
    for offset in 4..60 {
        exceeded(&gate, &list(offset));
    }
    accepted(&gate, &list(203));
    exceeded(&gate, &list(203));
}

//= QUO-13 accepted
#[test]
fn a_page_that_the_core_did_not_answer_is_asked_for_again() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().clock(&clock).start();
    let list = |offset: u32| {
        Call::accounts()
            .at(&format!(
                "/v1/accounts/1/transactions?limit=50&offset={offset}"
            ))
            .only(Protocol::Http1)
    };
    for _ in 0..4 {
        accepted(&gate, &list(0));
    }
    gate.upstream().reply(Reply::json(503, "{}"));
    assert_eq!(gate.send(&list(50), Protocol::Http1).status, 503);
    gate.upstream().reply(Reply::json(200, "{}"));
    accepted(&gate, &list(50));
    exceeded(&gate, &list(50));
    accepted(&gate, &list(100));
}

//= QUO-14 accepted
#[test]
fn a_psu_who_is_only_said_to_be_present() {
    let gate = Gate::start();
    let present = balances("1").present();
    for _ in 0..6 {
        let seen = accepted(&gate, &present).remove(0).seen;
        assert_eq!(seen.header("gateway-sca"), Some("none"));
    }
    let tpp = format!("tpp=\"{}\"", gate.world().both.id().unwrap());
    // The gateway counts a request after it has sent the answer.
    gate.eventually_metric("portvakt_psu_present_without_session_total", &[&tpp], 6.0);

    let gate = Gate::builder()
        .line("quota: {psu_present_needs_session: true}")
        .start();
    use_up(&gate, &present);
    exceeded(&gate, &present);
    exceeded(&gate, &balances("1"));
}
