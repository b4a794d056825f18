//! PSU-IDs that the core knows and the gateway does not: answers that bind a PSU-ID, calls that remove the binding, and
//! information that no caller gets (SCA-19).

use super::{FIRM, OTHER, PSU, REDIRECT, accounts, complete};
use crate::harness::{
    Answer, Call, Gate, Protocol, Reply, Seen, accepted, check_error, needs_sca, refused,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};

/// 2026-09-21.
const THEN: u64 = 1_790_000_000;
const SCA_AT: (&str, &str) = ("Gateway-Sca-At", "2026-08-01T10:00:00Z");
const CONSENT_AT: (&str, &str) = ("Gateway-Consent-At", "2026-07-01T10:00:00+02:00");
const BOUND: (&str, &str) = ("Gateway-Psu-Bound", "yes");
const AGREED: (&str, &str) = ("Gateway-Psu-Corporate-Bound", "yes");

/// A gate that knows no PSU, and learns.
fn learning() -> (Gate, Clock) {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder()
        .strangers()
        .clock(&clock)
        .line("assertion: {key: state/assertion.key}")
        .sca("unknown_psu: learn")
        .sca("learn_since: 2026-09-01")
        .sca("learn_until: 2026-10-01")
        .start();
    (gate, clock)
}

/// The account list of a PSU, who is present.
fn list(psu: &str) -> Call {
    accounts().without("TPP-Session-ID").with("PSU-ID", psu)
}

/// Sets the core's answer.
fn reply(gate: &Gate, status: u16, headers: &[(&str, &str)]) {
    let reply = Reply::json(status, r#"{"code":"CONSENT_INVALID","mine":"core"}"#);
    let with = |reply: Reply, (name, value): &(&str, &str)| reply.with(name, value);
    gate.upstream().reply(headers.iter().fold(reply, with));
}

/// The bank's view of a PSU; `None` if the TPP has no such PSU-ID.
fn known(gate: &Gate, tpp: &str, psu: &str) -> Option<Value> {
    let answer = gate.tell("/psu/read", &json!({ "tpp": tpp, "psu_id": psu }));
    (answer.status == 200).then(|| answer.json())
}

//= SCA-19 accepted
#[test]
fn an_unknown_psu_is_learned_from_the_core() {
    let (gate, clock) = learning();
    let tpp = gate.world().both.id().unwrap();
    let accounts = ("Gateway-Consent-Accounts", "a-1, a%3Ab");
    reply(&gate, 200, &[BOUND, SCA_AT, CONSENT_AT, accounts]);
    let passage = accepted(&gate, &list(PSU)).remove(0);
    assert_eq!(passage.seen.header("gateway-psu-bound"), Some("no"));
    let said = passage.answer.headers.iter();
    let said: Vec<_> = said
        .filter(|(name, _)| name.to_lowercase().starts_with("gateway-"))
        .collect();
    assert!(said.is_empty(), "{said:?}");
    let expected = json!({
        "last_sca": "2026-08-01T10:00:00Z",
        "session": null,
        "contexts": [{
            "context": "PRIVATE",
            "last_sca": "2026-08-01T10:00:00Z",
            "consent": { "given": "2026-07-01T08:00:00Z", "accounts": 2 },
        }],
        "learned": true,
    });
    assert_eq!(known(&gate, &tpp, PSU), Some(expected));
    let seen = accepted(&gate, &list(PSU)).remove(0).seen;
    assert_eq!(seen.header("gateway-psu-bound"), None);
    assert_eq!(seen.header("gateway-sca-at"), Some("2026-08-01T10:00:00Z"));
    accepted(&gate, &list(PSU).at("/v1/accounts/a%3Ab/balances"));
    let elsewhere = list(PSU).at("/v1/accounts/a-2/balances");
    refused(
        &gate,
        &elsewhere,
        404,
        "RESOURCE_UNKNOWN",
        "account-unknown",
    );
    // The PSU-ID never belongs to another TPP.
    needs_sca(&gate, &list(PSU).by(&gate.world().aisp));
    // After the learning period, an unknown PSU-ID is refused.
    clock.set(Timestamp::from_unix(1_791_000_000));
    needs_sca(&gate, &list(OTHER));
}

/// The Gateway- headers about the PSU that the core got.
fn about_psu(seen: &Seen) -> [Option<&str>; 2] {
    ["gateway-psu-bound", "gateway-psu-corporate-bound"].map(|name| seen.header(name))
}

/// The contexts that the bank finds of a PSU.
fn contexts(gate: &Gate) -> Vec<Value> {
    let tpp = gate.world().both.id().unwrap();
    let known = known(gate, &tpp, PSU);
    known.map_or_else(Vec::new, |known| {
        known["contexts"].as_array().unwrap().clone()
    })
}

/// An agreement that came with the request is learned with it where the core says so, and no other; its consent is of that agreement.
//= SCA-22 accepted
//= SCA-17 accepted
#[test]
fn a_corporate_agreement_is_learned() {
    let (gate, _clock) = learning();
    reply(&gate, 200, &[BOUND, AGREED, SCA_AT, CONSENT_AT]);
    let firm = list(PSU).with("PSU-Corporate-ID", FIRM);
    let passage = accepted(&gate, &firm.clone().only(Protocol::Http1)).remove(0);
    assert_eq!(about_psu(&passage.seen), [Some("no"); 2]);
    assert_eq!(passage.seen.header("psu-corporate-id"), Some(FIRM));
    let mut said = passage.answer.headers.iter();
    assert!(said.all(|(name, _)| !name.to_lowercase().starts_with("gateway-")));
    let learned = contexts(&gate);
    let [context] = learned.as_slice() else {
        panic!("{learned:?}")
    };
    assert_eq!(context["context"], "CORPORATE");
    assert_eq!(context["consent"]["accounts"], "all");
    reply(&gate, 200, &[]);
    let seen = accepted(&gate, &firm).remove(0).seen;
    assert_eq!(about_psu(&seen), [None; 2]);
    assert_eq!(seen.header("psu-corporate-id"), Some(FIRM));
    // The private context, which nobody spoke of, needs SCA.
    needs_sca(&gate, &list(PSU).with("PSU-Context", "PRIVATE"));
    // Another agreement of the learned PSU is a claim again, and is learned by the same two words.
    let other = firm.with("PSU-Corporate-ID", OTHER).only(Protocol::Http1);
    reply(&gate, 200, &[BOUND, AGREED, SCA_AT, CONSENT_AT]);
    let seen = accepted(&gate, &other).remove(0).seen;
    assert_eq!(about_psu(&seen), [None, Some("no")]);
    assert_eq!(contexts(&gate).len(), 2);
    let seen = accepted(&gate, &other).remove(0).seen;
    assert_eq!(about_psu(&seen), [None; 2]);
}

/// What the core got of a request that it answers with this status.
fn forwarded(gate: &Gate, call: &Call, status: u16) -> Seen {
    gate.upstream().take();
    assert_eq!(gate.send(call, Protocol::Http1).status, status);
    gate.upstream().take().remove(0)
}

/// No header of the gateway and no claim of its assertion names the agreement.
fn vouches_for_no_agreement(seen: &Seen) {
    let assertion = seen.header("gateway-assertion").unwrap();
    let claims = assertion.split('.').nth(1).unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims.get("psu_corporate_id"), None, "{claims}");
    assert!(!claims.to_string().contains(FIRM), "{claims}");
    let is_known = seen.header("gateway-psu-bound").is_none();
    assert_eq!(claims.get("psu_id").is_some(), is_known, "{claims}");
    for name in seen
        .names()
        .iter()
        .filter(|name| name.starts_with("gateway-"))
    {
        assert!(!seen.header(name).unwrap().contains(FIRM), "{name}");
    }
}

/// SCA-22: whatever else the core says, an agreement is neither kept nor vouched for without the word for it.
//= SCA-22 refused
//= SCA-17 refused
#[test]
fn an_invented_agreement_is_never_a_fact() {
    let facts = [BOUND, SCA_AT, CONSENT_AT, ("Gateway-Consent-Accounts", "1")];
    let none = ("Gateway-Psu-Corporate-Bound", "no");
    let answers = [
        (200, facts.to_vec()),
        (200, [&facts[..], &[none]].concat()),
        (200, [&facts[..], &[AGREED, AGREED]].concat()),
        (200, vec![AGREED, SCA_AT, CONSENT_AT]),
        (201, facts.to_vec()),
        (302, [&facts[..], &[AGREED]].concat()),
        (500, [&facts[..], &[AGREED]].concat()),
    ];
    for (status, headers) in answers {
        let (gate, clock) = learning();
        let firm = |call: Call| {
            let call = call.with("PSU-ID", PSU).with("PSU-Corporate-ID", FIRM);
            call.only(Protocol::Http1)
        };
        for call in [list(PSU), Call::payment(), list(PSU)] {
            reply(&gate, status, &headers);
            let seen = forwarded(&gate, &firm(call), status);
            assert_eq!(seen.header("gateway-psu-corporate-bound"), Some("no"));
            vouches_for_no_agreement(&seen);
            assert_eq!(contexts(&gate), Vec::<Value>::new(), "{status} {headers:?}");
        }
        // After the end of learning, and after the bank has bound the PSU in private, the agreement is as unknown as ever.
        clock.set(Timestamp::from_unix(1_791_000_000));
        gate.upstream().take();
        needs_sca(&gate, &firm(list(PSU)));
        needs_sca(
            &gate,
            &firm(Call::payment().with("TPP-Redirect-URI", REDIRECT)),
        );
        gate.introduce(json!({ "tpp": gate.world().both.id(), "psu_id": PSU }));
        needs_sca(&gate, &firm(list(PSU)));
        needs_sca(
            &gate,
            &firm(Call::payment().with("TPP-Redirect-URI", REDIRECT)),
        );
        assert!(gate.upstream().take().is_empty());
    }
}

/// SCA-22: of a PSU that the bank bound, the core learns no agreement.
//= SCA-22 refused
#[test]
fn an_agreement_of_a_psu_that_the_bank_bound_needs_sca() {
    let (gate, _clock) = learning();
    gate.introduce(json!({ "tpp": gate.world().both.id(), "psu_id": PSU }));
    reply(&gate, 200, &[BOUND, AGREED, SCA_AT, CONSENT_AT]);
    needs_sca(&gate, &list(PSU).with("PSU-Corporate-ID", FIRM));
    assert!(gate.upstream().take().is_empty());
    assert_eq!(contexts(&gate).len(), 1);
}

/// SCA-22: an agreement that the core refuses gets the gateway's own 401; its words for both let its error pass.
//= SCA-22 refused
#[test]
fn a_core_that_refuses_an_agreement() {
    let (gate, _clock) = learning();
    let firm = list(PSU)
        .with("PSU-Corporate-ID", FIRM)
        .only(Protocol::Http1);
    for headers in [&[][..], &[BOUND], &[AGREED]] {
        for status in [400, 401, 403, 404, 409] {
            reply(&gate, status, headers);
            let answer = gate.send(&firm, Protocol::Http1);
            assert_eq!(answer.status, 401, "{status} {headers:?}");
            let said = answer.json();
            assert!(said["_links"]["scaRedirect"]["href"].is_string(), "{said}");
            assert_eq!(said.get("mine"), None, "{said}");
        }
    }
    reply(&gate, 404, &[BOUND, AGREED]);
    let answer = gate.send(&firm, Protocol::Http1);
    assert_eq!(
        (answer.status, &answer.json()["mine"]),
        (404, &json!("core"))
    );
    assert_eq!(contexts(&gate), Vec::<Value>::new());
}

/// A UUID that nobody gave out.
fn invented(number: u32) -> String {
    format!("3f2504e0-4f89-41d3-9a0c-0305e82d{number:04}")
}

/// The statuses of eight calls without the PSU, and the number of those that the core got.
fn eight(gate: &Gate, call: impl Fn(u32) -> Call) -> (Vec<u16>, usize) {
    gate.upstream().take();
    let send = |number| {
        let call = call(number).without("PSU-IP-Address").only(Protocol::Http1);
        gate.send(&call, Protocol::Http1).status
    };
    let statuses = (0..8).map(send).collect();
    (statuses, gate.upstream().take().len())
}

/// Whatever a TPP invents, and whatever the core says of it, an account is read four times.
//= QUO-15 refused
//= SCA-22 refused
#[test]
fn invented_ids_make_no_further_calls() {
    let balances = |psu: &str| list(psu).at("/v1/accounts/1/balances");
    let firm = |number| balances(PSU).with("PSU-Corporate-ID", &invented(number));
    let four = [200, 200, 200, 200, 429, 429, 429, 429].to_vec();
    // A core that never binds, one that binds the PSU, and one that says nothing about the agreement's facts.
    for headers in [&[][..], &[BOUND], &[BOUND, SCA_AT, CONSENT_AT]] {
        let (gate, _clock) = learning();
        reply(&gate, 200, headers);
        assert_eq!(eight(&gate, firm), (four.clone(), 4), "{headers:?}");
        // Another account has calls of its own, and so has another operation.
        let other = |number| firm(number).at("/v1/accounts/2/balances");
        assert_eq!(eight(&gate, other), (four.clone(), 4), "{headers:?}");
    }
    let (gate, _clock) = learning();
    reply(&gate, 200, &[]);
    let strangers = |number| balances(&invented(number));
    assert_eq!(eight(&gate, strangers), (four.clone(), 4));
    let both = |number| strangers(number).with("PSU-Corporate-ID", &invented(number));
    assert_eq!(eight(&gate, both), (vec![429; 8], 0));
    let details = |number| strangers(number).at("/v1/accounts/1/transactions/7");
    assert_eq!(eight(&gate, details), (four, 4));
}

/// QUO-1: a PSU whom the core confirms with one of the calls gets no fifth one.
//= QUO-15 accepted
#[test]
fn a_psu_that_becomes_known_keeps_its_calls() {
    for learns_at in 0..4 {
        let (gate, clock) = learning();
        let balances = |_| list(PSU).at("/v1/accounts/1/balances");
        let (statuses, seen) = eight(&gate, |number| {
            let facts = [BOUND, SCA_AT, CONSENT_AT];
            reply(&gate, 200, if number == learns_at { &facts } else { &[] });
            balances(number)
        });
        assert_eq!(
            statuses,
            [200, 200, 200, 200, 429, 429, 429, 429],
            "{learns_at}"
        );
        assert_eq!(seen, 4);
        clock.set(Timestamp::from_unix(THEN + 86_400));
        let (statuses, _) = eight(&gate, balances);
        assert_eq!(
            statuses,
            [200, 200, 200, 200, 429, 429, 429, 429],
            "{learns_at}"
        );
    }
}

/// SCA-19: the gateway assumes nothing that the core does not state.
#[test]
fn what_the_core_leaves_out_is_not_known() {
    let (gate, _clock) = learning();
    let tpp = gate.world().both.id().unwrap();
    let doubled = [BOUND, SCA_AT, SCA_AT, CONSENT_AT, CONSENT_AT];
    let later = ("Gateway-Sca-At", "2026-09-21T14:30:00Z");
    let one = ("Gateway-Consent-Accounts", "a-1");
    let outside = ("Gateway-Consent-Accounts", "a-1,a%20b");
    let no_list = ("Gateway-Consent-Accounts", "a,%zz");
    let table = [
        (&[BOUND][..], false, Value::Null),
        (&[BOUND, SCA_AT], true, Value::Null),
        (&[BOUND, CONSENT_AT], false, json!("all")),
        (&doubled, false, Value::Null),
        (&[BOUND, later, CONSENT_AT], false, json!("all")),
        (&[BOUND, SCA_AT, CONSENT_AT, no_list], true, Value::Null),
        (&[BOUND, SCA_AT, CONSENT_AT, one, one], true, Value::Null),
        (&[BOUND, SCA_AT, CONSENT_AT, outside], true, Value::Null),
    ];
    for (number, (headers, sca, consented)) in table.into_iter().enumerate() {
        let psu = format!("3f2504e0-4f89-41d3-9a0c-0305e82c34{number:02}");
        reply(&gate, 200, headers);
        accepted(&gate, &list(&psu));
        let psu_known = known(&gate, &tpp, &psu).unwrap();
        assert_eq!(
            psu_known["last_sca"].is_string(),
            sca,
            "{number}: {psu_known}"
        );
        let context = &psu_known["contexts"][0];
        let accounts = &context["consent"]["accounts"];
        assert_eq!(*accounts, consented, "{number}: {psu_known}");
        // Without both, account information needs an SCA; a payment does not.
        needs_sca(&gate, &list(&psu));
        let seen = accepted(&gate, &Call::payment().with("PSU-ID", &psu))
            .remove(0)
            .seen;
        assert_eq!(seen.header("gateway-sca-at").is_some(), sca, "{number}");
    }
}

//= SCA-19 refused
#[test]
fn nobody_is_bound_without_the_cores_word() {
    let (gate, _clock) = learning();
    let product = "/v1/payments/norwegian-domestic-credit-transfers";
    let needs_nothing = [
        Call::plain(),
        Call::new(
            "GET",
            "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        ),
        Call::new("GET", &format!("{product}/7/status")),
        Call::new("GET", &format!("{product}/7")),
        Call::new("POST", &format!("{product}/7/authorisations")),
        Call::new("GET", "/v1/signing-baskets/7/status"),
    ];
    let needs_somebody = [
        Call::payment(),
        Call::cross_border(),
        Call::basket(),
        Call::new("GET", "/v1/agreements"),
        list(PSU),
    ];
    let facts = [SCA_AT, CONSENT_AT];
    let words = [None, Some("no"), Some("YES!"), Some("yes, yes")];
    let tpp = gate.world().both.id().unwrap();
    let nobody = |call: &Call, what: &str| {
        let call = call.clone().with("PSU-ID", PSU).only(Protocol::Http1);
        let seen = accepted(&gate, &call).remove(0).seen;
        assert_eq!(known(&gate, &tpp, PSU), None, "{what}: {seen:?}");
    };
    for word in words {
        let word = word.map(|word| (BOUND.0, word));
        let headers: Vec<_> = facts.into_iter().chain(word).collect();
        reply(&gate, 200, &headers);
        for call in needs_nothing.iter().chain(&needs_somebody) {
            nobody(call, &format!("{word:?}"));
        }
    }
    // A repeated header does not count, and an operation without a PSU never binds.
    reply(&gate, 200, &[BOUND, BOUND, SCA_AT, CONSENT_AT]);
    nobody(&list(PSU), "twice");
    reply(&gate, 200, &[BOUND, SCA_AT, CONSENT_AT]);
    for call in &needs_nothing {
        nobody(call, "needs nothing");
    }
    // Nor does an answer other than 2xx.
    for status in [302, 400, 404, 500] {
        reply(&gate, status, &[BOUND, SCA_AT, CONSENT_AT]);
        assert_eq!(gate.send(&list(PSU), Protocol::Http1).status, status);
        assert_eq!(known(&gate, &tpp, PSU), None, "{status}");
    }
}

//= SCA-19 accepted
//= SCA-19 refused
#[test]
fn the_banks_word_wins_over_what_was_learned() {
    let (gate, _clock) = learning();
    let [squatter, owner] = [&gate.world().pisp, &gate.world().aisp].map(|tpp| tpp.id().unwrap());
    let payment = Call::payment().with("PSU-ID", PSU).by(&gate.world().pisp);
    let theirs = list(PSU).by(&gate.world().aisp);
    let squat = || {
        reply(&gate, 201, &[BOUND, SCA_AT, CONSENT_AT]);
        accepted(&gate, &payment);
        assert!(known(&gate, &squatter, PSU).is_some());
        needs_sca(&gate, &theirs);
    };
    let is_the_owners = || {
        assert_eq!(known(&gate, &squatter, PSU), None);
        let known = known(&gate, &owner, PSU).unwrap();
        assert_eq!(known.get("learned"), None, "{known}");
        assert_eq!(known["contexts"].as_array().unwrap().len(), 1, "{known}");
        accepted(&gate, &theirs);
        needs_sca(&gate, &payment);
    };
    let unbind = |tpp: &str| gate.tell("/psu/unbind", &json!({ "tpp": tpp, "psu_id": PSU }));
    squat();
    gate.introduce(json!({ "tpp": owner, "psu_id": PSU }));
    is_the_owners();
    // A binding by the bank never moves to another TPP.
    let moments = json!({ "tpp": squatter, "psu_id": PSU, "last_sca": "2026-09-01T00:00:00Z" });
    let answer = gate.tell("/psu/bind", &moments);
    check_error("moved", &answer, 409, "CONFLICT", "psu-bound-elsewhere");
    assert_eq!(
        gate.metric_at_rest("portvakt_psu_bound_elsewhere_total", &["by=\"bind\""]),
        1.0
    );
    is_the_owners();
    // A withdrawn PSU-ID belongs to no TPP.
    assert_eq!(unbind(&squatter).status, 404);
    let answer = unbind(&owner);
    assert_eq!(
        (answer.status, answer.json()),
        (
            200,
            json!({ "unbound": true, "sessions": 0, "consents": 1 })
        )
    );
    assert_eq!(known(&gate, &owner, PSU), None);
    assert_eq!(unbind(&owner).status, 404);
    // An SCA is a binding by the bank, too.
    squat();
    let link = needs_sca(&gate, &theirs);
    complete(&gate, &link, PSU);
    is_the_owners();
    // The bank can withdraw a learned binding as well.
    assert_eq!(unbind(&owner).status, 200);
    squat();
    assert_eq!(unbind(&squatter).status, 200);
    assert_eq!(known(&gate, &squatter, PSU), None);
}

/// SCA-18, QUO-15: sessions and consents end with the binding; the calls of the day stay counted.
#[test]
fn what_becomes_of_a_psu_that_is_unbound() {
    let clock = Clock::standing(Timestamp::from_unix(THEN));
    let gate = Gate::builder().strangers().clock(&clock).start();
    let tpp = gate.world().both.id().unwrap();
    let link = needs_sca(&gate, &accounts());
    complete(&gate, &link, PSU);
    let under_s = accounts().with("PSU-ID", PSU);
    let balances = list(PSU)
        .without("PSU-IP-Address")
        .at("/v1/accounts/1/balances");
    accepted(&gate, &under_s);
    for _ in 0..3 {
        accepted(&gate, &balances);
    }
    let who = json!({ "tpp": tpp, "psu_id": PSU });
    assert_eq!(gate.tell("/psu/unbind", &who).status, 200);
    needs_sca(&gate, &under_s);
    needs_sca(&gate, &balances);
    needs_sca(&gate, &Call::payment().with("PSU-ID", PSU));
    gate.introduce(who);
    needs_sca(&gate, &under_s);
    accepted(&gate, &balances);
    refused(&gate, &balances, 429, "ACCESS_EXCEEDED", "quota-exceeded");
}

/// The visible parts of an answer: status, headers and body, without values that differ for each answer.
fn told(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let mut body = answer.json();
    body["id"] = Value::Null;
    if let Some(href) = body.pointer_mut("/_links/scaRedirect/href") {
        *href = href.as_str().unwrap().len().into();
    }
    let own = ["date", "x-request-id", "content-length"];
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !own.contains(&name.to_lowercase().as_str()));
    headers.sort();
    (answer.status, headers, body)
}

//= SCA-19 refused
#[test]
fn a_psu_id_bound_elsewhere_is_answered_like_one_that_the_core_refuses() {
    let (gate, _clock) = learning();
    gate.introduce(json!({ "tpp": gate.world().aisp.id(), "psu_id": OTHER }));
    let absent = |call: Call| call.without("PSU-IP-Address");
    let calls: [fn(&str) -> Call; 5] = [
        list,
        |psu| list(psu).at("/v1/accounts/7/balances"),
        |psu| {
            list(psu)
                .at("/v1/accounts/7/transactions?dateFrom=2020-01-01")
                .without("PSU-IP-Address")
        },
        |psu| {
            list(psu)
                .without("TPP-Redirect-URI")
                .at("/v1/accounts/7/transactions/1")
        },
        |psu| {
            Call::payment()
                .with("TPP-Redirect-URI", REDIRECT)
                .with("PSU-ID", psu)
        },
    ];
    for call in calls {
        let call = |psu| call(psu).only(Protocol::Http1);
        for protocol in Protocol::ALL {
            gate.upstream().take();
            let taken = told(&gate.send(&call(OTHER), protocol));
            assert!(gate.upstream().take().is_empty());
            for status in [400, 401, 403, 404, 409, 422] {
                reply(
                    &gate,
                    status,
                    &[("X-Core", "7"), ("WWW-Authenticate", "Bearer")],
                );
                let refused = told(&gate.send(&call(PSU), protocol));
                assert_eq!(refused, taken, "{status} over {protocol:?}");
            }
        }
    }
    // None of these calls counts towards the four, and no answer has a remaining number.
    reply(&gate, 401, &[]);
    let balances = |psu| absent(list(psu)).at("/v1/accounts/7/balances");
    for _ in 0..6 {
        let [refused, taken] = [PSU, OTHER].map(|psu| gate.send(&balances(psu), Protocol::Http1));
        assert_eq!(told(&refused), told(&taken));
        assert_eq!(refused.status, 401);
    }
    // If the core confirms that the PSU is the TPP's, its answer is forwarded unchanged.
    reply(&gate, 404, &[BOUND]);
    let answer = gate.send(&balances(PSU), Protocol::Http1);
    assert_eq!(
        (answer.status, &answer.json()["mine"]),
        (404, &json!("core"))
    );
}

/// SCA-13, SCA-19: an answer that was under way while the bank took something back teaches nothing, whatever the bank did before.
//= SCA-13 refused
//= SCA-19 refused
#[test]
fn an_answer_under_way_does_not_undo_the_banks_word() {
    let (gate, _) = learning();
    let tpp = gate.world().both.id().unwrap();
    let who = json!({ "tpp": tpp, "psu_id": PSU });
    let withdraw = json!({ "tpp": tpp, "psu_id": PSU, "what": "consents" });
    let unbind = |gate: &Gate| gate.tell("/psu/unbind", &who).status;
    type Word = fn(&Gate, &Value, &Value);
    let words: [Word; 3] = [
        |gate, who, _| {
            gate.introduce(who.clone());
            assert_eq!(gate.tell("/psu/unbind", who).status, 200);
        },
        |gate, who, _| assert_eq!(gate.tell("/psu/unbind", who).status, 404),
        |gate, _, withdraw| assert_eq!(gate.tell("/psu/withdraw", withdraw).status, 404),
    ];
    for word in words {
        let answer = Reply::json(200, "{}");
        let answer = [BOUND, SCA_AT, CONSENT_AT]
            .iter()
            .fold(answer, |reply, (name, value)| reply.with(name, value));
        let (answer, latch) = answer.held();
        gate.upstream().reply(answer);
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| gate.send(&list(PSU), Protocol::Http1));
            latch.arrived(1);
            word(&gate, &who, &withdraw);
            latch.release();
            assert_eq!(calling.join().unwrap().status, 200);
        });
        assert_eq!(known(&gate, &tpp, PSU), None);
    }
    // A later answer may.
    reply(&gate, 200, &[BOUND, SCA_AT, CONSENT_AT]);
    accepted(&gate, &list(PSU));
    assert!(known(&gate, &tpp, PSU).is_some());
    assert_eq!(unbind(&gate), 200);
}
