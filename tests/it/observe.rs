//! Observe mode: FWD-6. A failed check is logged and counted, the request reaches the core, and the core is told nothing that the check
//! would have earned.

/// docs/adopting.md.
mod adopting;
/// A request that fails each check.
pub(crate) mod breach;
/// A day of mixed traffic, observed and then enforced.
mod day;
/// TPPs whose identities differ in spaces and dashes.
mod exact;
/// PSU-IDs that are being learned.
mod learning;
/// Whose request it is, while certificate or signature are only observed.
mod sender;

use crate::harness::{
    Answer, Call, Connection, Gate, GateBuilder, Protocol, Seen, accepted, eventually, needs_sca,
    refused, world,
};
use breach::{Breach, all};
use portvakt::admission::ObservableCheck;
use serde_json::{Value, json};
use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// A gateway that checks everything, and only observes.
fn observing(checks: &str) -> GateBuilder {
    breach::checking_everything().line(&format!("observe: {{checks: {checks}}}"))
}

/// Sends a call that passes; returns the answer and the request that the core received.
fn passes(gate: &Gate, call: &Call) -> (Answer, Seen) {
    gate.upstream().take();
    let answer = gate.send(call, call.protocols()[0]);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{text}");
    let mut seen = gate.upstream().take();
    assert_eq!(seen.len(), 1);
    (answer, seen.remove(0))
}

fn observed(gate: &Gate, check: ObservableCheck) -> f64 {
    let label = format!("check=\"{}\"", check.name());
    gate.metric_at_rest("portvakt_observed_total", &[&label])
}

/// Gateway- headers that rest on the sender.
fn rests_on_sender(seen: &Seen) -> Vec<String> {
    let of_sender = [
        "gateway-tpp",
        "gateway-sca",
        "gateway-psu",
        "gateway-signed",
        "gateway-history",
    ];
    let names = seen.names().into_iter();
    names
        .filter(|name| of_sender.iter().any(|start| name.starts_with(start)))
        .collect()
}

//= FWD-6 accepted
#[test]
fn each_check_is_observed() {
    let gate = observing("all")
        .line("assertion: {key: assertion.key}")
        .start();
    for breach in all() {
        let Breach { check, reason, .. } = breach;
        let before = observed(&gate, check);
        breach.prepare(&gate);
        let (_, seen) = passes(&gate, &breach.call);
        let listed = seen.header("gateway-observed").unwrap_or_default();
        assert_eq!(listed, reason, "{check:?}");
        let counted = || (observed(&gate, check) - before - 1.0).abs() < 0.1;
        eventually("the request is counted", counted);
        let told = rests_on_sender(&seen);
        assert_eq!(told.is_empty(), check.is_identity(), "{check:?}: {told:?}");
        let says = |name: &str| seen.header(name).is_some();
        let hides = |check: ObservableCheck, names: &[&str]| {
            let hidden = names.iter().all(|name| !says(name));
            assert!(
                breach.check != check || hidden,
                "{check:?}: {:?}",
                seen.names()
            );
        };
        hides(ObservableCheck::Role, &["gateway-tpp-roles"]);
        hides(ObservableCheck::Register, &["gateway-tpp-roles"]);
        hides(ObservableCheck::RedirectHost, &["gateway-sca-redirect"]);
        hides(
            ObservableCheck::Sca,
            &[
                "gateway-sca",
                "gateway-sca-at",
                "gateway-psu-bound",
                "gateway-psu-corporate-bound",
            ],
        );
        // The assertion says the same.
        let claims = breach::claims(&seen);
        assert_eq!(claims["gateway-observed"], reason);
        let names = claims.as_object().unwrap().keys();
        let claimed = names.filter(|name| name.starts_with("gateway-tpp") || *name == "psu_id");
        assert_eq!(
            claimed.count() == 0,
            check.is_identity(),
            "{check:?}: {claims}"
        );
    }
    // A request without a fault is forwarded as ever.
    let seen = accepted(&gate, &Call::accounts()).remove(0).seen;
    assert_eq!(seen.header("gateway-observed"), None);
    assert_eq!(seen.header("gateway-tpp-id"), Some("PSDNO-FSA-123456"));
}

//= FWD-6 refused
#[test]
fn each_check_refuses_by_default() {
    let gate = breach::checking_everything().start();
    for breach in all() {
        breach.prepare(&gate);
        gate.upstream().take();
        let answer = gate.send(&breach.call, breach.call.protocols()[0]);
        assert_eq!(answer.json()["reason"], breach.reason, "{:?}", breach.check);
        assert!(gate.upstream().take().is_empty(), "{:?}", breach.check);
    }
}

/// Faults of other checks may stand between those of one check.
//= FWD-6 accepted
#[test]
fn a_check_with_several_faults_is_counted_once() {
    let gate = observing("all").start();
    let call = Call::accounts()
        .without("TPP-Redirect-URI")
        .altered(|request| {
            let is_kept =
                |name: &str| !["tpp-signature-certificate", "x-request-id"].contains(&name);
            let headers = &mut request.headers;
            headers.retain(|(name, _)| is_kept(&name.to_ascii_lowercase()));
            headers.push(("PSU-IP-Port".into(), "z".into()));
        });
    let (_, seen) = passes(&gate, &call);
    let listed = seen.header("gateway-observed").unwrap_or_default();
    assert!(
        listed.contains("header-missing") && listed.contains("header-malformed"),
        "{listed}"
    );
    eventually("it is counted", || {
        observed(&gate, ObservableCheck::Certificate) > 0.9
    });
    assert!((observed(&gate, ObservableCheck::Headers) - 1.0).abs() < 0.1);
}

/// Several checks fail: all of them are observed, and an enforced one refuses by its own faults only.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn every_failed_check_is_listed() {
    let all = Call::payment()
        .without("TPP-Redirect-URI")
        .off_by(-300)
        .json(r#"{"instructedAmount":{"amount":"1","currency":"NOK"}}"#);
    let gate = observing("all").start();
    let (_, seen) = passes(&gate, &all);
    let listed = seen.header("gateway-observed");
    assert_eq!(listed, Some("header-missing, date-skewed, payload-invalid"));
    let gate = observing("[headers, date]").start();
    refused(&gate, &all, 400, "FORMAT_ERROR", "payload-invalid");
    // One answer would name two headers; the observed one is not a fault of the refused request.
    let two = Call::accounts()
        .without("TPP-Redirect-URI")
        .altered(|request| {
            request
                .headers
                .retain(|(name, _)| !name.eq_ignore_ascii_case("signature"));
        });
    let answer = refused(
        &gate,
        &two,
        400,
        "HTTP_HEADER_REQUIRED",
        "signature-missing",
    );
    assert_eq!(answer.json()["faults"].as_array().unwrap().len(), 1);
}

/// Without a check of the sender that holds, nothing is read or kept: the id is still free, the call not counted, the PSU unknown.
//= FWD-6 accepted
#[test]
fn an_unknown_sender_touches_no_state() {
    let gate = observing("[certificate, signature, revocation, digest]").start();
    let forged = |call: &Call| call.clone().signature(breach::forge);
    let id = |call: Call| call.with("X-Request-ID", "the-same");
    let balances = Call::balances().at("/v1/accounts/7/balances");
    for _ in 0..6 {
        passes(&gate, &forged(&id(balances.clone())));
    }
    // The TPP itself has its four calls and its id.
    let remaining = |answer: &Answer| answer.header("ratelimit").map(str::to_owned);
    let (answer, _) = passes(&gate, &id(balances.clone()));
    assert!(remaining(&answer).unwrap().contains("r=3"), "{answer:?}");
    for _ in 0..3 {
        passes(&gate, &balances);
    }
    refused(
        &gate,
        &balances.clone().only(Protocol::Http1),
        429,
        "ACCESS_EXCEEDED",
        "quota-exceeded",
    );
    // PSUs that are not this sender's own are neither learned nor read.
    let stranger = "0192f0c1-5a5b-7def-8000-00000000abcd";
    let (_, seen) = passes(&gate, &forged(&Call::accounts()));
    assert!(rests_on_sender(&seen).is_empty());
    let who = json!({ "tpp": "PSDNO-FSA-123456", "psu_id": stranger });
    assert_eq!(gate.tell("/psu/read", &who).status, 404);
    // What the gateway answers itself needs a TPP; the core answers in its place.
    let (_, seen) = passes(&gate, &forged(&Call::new("GET", "/v1/users")));
    assert_eq!(seen.header("gateway-observed"), Some("signature-mismatch"));
}

/// A header that proves the sender or the time cannot be left out to avoid an enforced check.
//= FWD-6 refused
#[test]
fn a_missing_header_does_not_avoid_its_check() {
    let gate = observing("[headers]").start();
    let lacking = |call: Call, name: &'static str| {
        call.altered(move |request| {
            request
                .headers
                .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        })
    };
    let table = [
        ("Signature", Call::accounts(), "signature-missing"),
        (
            "TPP-Signature-Certificate",
            Call::accounts(),
            "header-missing",
        ),
        ("Date", Call::accounts(), "header-missing"),
        ("Digest", Call::payment(), "header-missing"),
        ("X-Request-ID", Call::payment(), "header-missing"),
    ];
    for (name, call, reason) in table {
        refused(
            &gate,
            &lacking(call, name),
            400,
            "HTTP_HEADER_REQUIRED",
            reason,
        );
    }
    // Observed, they prove nothing.
    let gate = observing("all").start();
    for (name, call) in [
        ("Signature", Call::accounts()),
        ("TPP-Signature-Certificate", Call::accounts()),
        ("Digest", Call::payment()),
    ] {
        let (_, seen) = passes(&gate, &lacking(call, name));
        assert!(
            rests_on_sender(&seen).is_empty(),
            "{name}: {:?}",
            seen.names()
        );
    }
}

/// X-Request-ID belongs to the check of replay: two requests without it are the same request twice (REP-1).
//= FWD-6 refused
//= REP-1 refused
#[test]
fn a_malformed_request_id_does_not_avoid_replay() {
    let long = "a".repeat(129);
    let malformed = || Call::payment().with("X-Request-ID", &long);
    refused(
        &observing("[headers]").start(),
        &malformed(),
        400,
        "FORMAT_ERROR",
        "header-malformed",
    );
    let (_, seen) = passes(&observing("[headers, replay]").start(), &malformed());
    assert_eq!(seen.header("gateway-request-id"), None);
    assert_eq!(seen.header("gateway-observed"), Some("header-malformed"));
}

/// The days that a malformed query asks for are unknown, so the rule of 90 days refuses as for the earliest day.
//= FWD-6 refused
//= SCA-8 refused
//= QUO-8 refused
#[test]
fn an_observed_query_does_not_avoid_the_bound_of_the_history() {
    let list = || Call::accounts().at("/v1/accounts/42/transactions?dateFrom=2015-01-01&limit=0");
    let gate = observing("[query]").start();
    needs_sca(&gate, &list().present());
    refused(&gate, &list(), 400, "PERIOD_INVALID", "history-too-old");
    let (_, seen) = passes(&observing("[query, sca]").start(), &list());
    assert_eq!(seen.header("gateway-history-from"), None);
}

/// Without the agreement the PSU's private consent would hold, and the core would answer for the context that it reads.
//= FWD-6 refused
//= HDR-14 refused
#[test]
fn an_observed_context_does_not_avoid_sca() {
    let corporate = || Call::accounts().with("PSU-Context", "CORPORATE");
    let unknown = || Call::accounts().with("PSU-Context", "corporate");
    let gate = observing("[headers]").start();
    for (call, code, reason) in [
        (corporate(), "HTTP_HEADER_REQUIRED", "corporate-id-missing"),
        (unknown(), "FORMAT_ERROR", "header-malformed"),
    ] {
        refused(&gate, &call, 400, code, reason);
    }
    let (_, seen) = passes(&observing("[sca]").start(), &corporate());
    assert_eq!(seen.header("gateway-psu-bound"), None);
    assert_eq!(
        seen.header("gateway-observed"),
        Some("corporate-id-missing")
    );
}

/// A core may read a TPP-Redirect-URI that the gateway does not.
//= FWD-6 refused
//= HDR-8 refused
#[test]
fn a_malformed_redirect_uri_does_not_avoid_the_list_of_hosts() {
    let malformed = || {
        let call = Call::payment().by(&breach::issue(breach::RESTRICTED));
        call.with("TPP-Redirect-URI", "https://elsewhere.example/#f")
    };
    let gate = observing("[headers]").start();
    refused(&gate, &malformed(), 400, "FORMAT_ERROR", "header-malformed");
    let gate = observing("[headers, redirect-host]").start();
    let (_, seen) = passes(&gate, &malformed());
    assert_eq!(seen.header("gateway-sca-redirect"), None);
    assert_eq!(seen.header("gateway-observed"), Some("header-malformed"));
}

/// Framing, limits and the bank's own block list refuse whatever is observed.
//= FWD-6 refused
#[test]
fn some_faults_are_refused_always() {
    let gate = observing("all").start();
    let table = [
        (
            Call::new("GET", "/v1/nothing"),
            404,
            "NOT_FOUND",
            "operation-unknown",
        ),
        (
            Call::new("DELETE", "/v1/accounts"),
            405,
            "BAD_REQUEST",
            "method-not-allowed",
        ),
        (
            Call::accounts().also("PSU-ID", &world().both.psu()),
            400,
            "FORMAT_ERROR",
            "header-duplicated",
        ),
        (
            Call::accounts()
                .with("Connection", "psu-id")
                .only(Protocol::Http1),
            400,
            "BAD_REQUEST",
            "malformed-request",
        ),
        (
            Call::payment().json(&format!("\"{}\"", "x".repeat(70_000))),
            413,
            "BAD_REQUEST",
            "body-too-large",
        ),
        (
            Call::accounts().by(&breach::issue(breach::BLOCKED)),
            403,
            "FORBIDDEN",
            "tpp-blocked",
        ),
    ];
    for (call, status, code, reason) in table {
        refused(&gate, &call, status, code, reason);
    }
}

/// The core gets no body that nobody signed, where the operation takes none: also if the Digest of the body is right.
//= FWD-6 accepted
//= HTTP-8 refused
#[test]
fn an_unsigned_body_of_a_read_stays_here() {
    let gate = observing("all").start();
    let call = Call::accounts().json(r#"{"a":1}"#).only(Protocol::Http1);
    let (_, seen) = passes(&gate, &call);
    assert_eq!(seen.header("gateway-observed"), Some("body-unexpected"));
    assert_eq!(seen.body, br#"{"a":1}"#);
    let (_, seen) = passes(&gate, &call.signature(breach::forge));
    let listed = seen.header("gateway-observed");
    assert_eq!(listed, Some("signature-mismatch, body-unexpected"));
    assert_eq!(seen.body, b"");
    for name in ["digest", "content-type", "content-length"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

/// A TPP has its own set of checks, also of those that come before its certificate; another caller cannot use it.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn a_tpp_has_its_own_set() {
    // The answer says how late it is, and the machine's clock advances between two protocols.
    let late = || Call::plain().off_by(-300).only(Protocol::Http1);
    let by = |call: Call, tpp: &std::sync::Arc<crate::harness::Tpp>| call.by(tpp);
    let gate = breach::checking_everything()
        .line(
            "observe: {checks: [payload], tpps: {PSDNO-FSA-111111: [date], PSDNO-FSA-222222: []}}",
        )
        .start();
    let (_, seen) = passes(&gate, &by(late(), &world().aisp));
    assert_eq!(seen.header("gateway-observed"), Some("date-skewed"));
    assert_eq!(seen.header("gateway-tpp-id"), Some("PSDNO-FSA-111111"));
    for tpp in [&world().both, &world().pisp] {
        refused(&gate, &by(late(), tpp), 400, "FORMAT_ERROR", "date-skewed");
    }
    // Its certificate alone does not suffice.
    let forged = by(late(), &world().aisp).signature(breach::forge);
    refused(&gate, &forged, 400, "FORMAT_ERROR", "signature-mismatch");
    let bad = r#"{"instructedAmount":{"amount":"1","currency":"NOK"}}"#;
    let (_, seen) = passes(&gate, &Call::payment().json(bad));
    assert_eq!(seen.header("gateway-observed"), Some("payload-invalid"));
    let of_pisp = by(Call::payment().json(bad), &world().pisp);
    refused(&gate, &of_pisp, 400, "FORMAT_ERROR", "payload-invalid");
}

/// Production needs a second word for checks of the sender; the gateway says everywhere that something is only observed.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn nobody_overlooks_it() {
    let gate = Gate::start();
    assert!(gate.control("/readyz").json().get("onlyObserved").is_none());
    let shown = |gate: &Gate, proves: &str| {
        let label = format!("proves=\"{proves}\"");
        gate.metric_at_rest("portvakt_checks_observed", &[&label])
    };
    assert!(shown(&gate, "identity") < 0.1 && shown(&gate, "other") < 0.1);
    let production = |section: &str| {
        breach::checking_everything()
            .environment("production")
            .line(section)
            .try_start()
    };
    for checks in ["all", "[digest]", "[payload, certificate]", "[revocation]"] {
        let fault = production(&format!("observe: {{checks: {checks}}}"))
            .err()
            .unwrap();
        assert!(fault.contains("danger_observe_identity: true"), "{fault}");
    }
    let fault = production("observe: {tpps: {PSDNO-FSA-1: [signature]}}")
        .err()
        .unwrap();
    assert!(fault.contains("danger_observe_identity"), "{fault}");
    assert!(production("observe: {checks: [date, payload]}").is_ok());
    let gate = production("observe: {checks: all, danger_observe_identity: true}").unwrap();
    let ready = gate.control("/readyz");
    assert_eq!(ready.status, 200);
    let names: Vec<_> = ObservableCheck::ALL
        .iter()
        .map(|check| check.name())
        .collect();
    assert_eq!(ready.json()["onlyObserved"], json!(names));
    assert!((shown(&gate, "identity") - 4.0).abs() < 0.1);
    assert!((shown(&gate, "other") - 10.0).abs() < 0.1);
}

/// Checks are turned on one after the other under load: no request that holds fails, and the next one that breaks is refused.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn checks_are_turned_on_under_load() {
    let gate = observing("all")
        .with_a_file()
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
        .start();
    accepted(&gate, &Call::accounts());
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in 0..3 {
            let (gate, over, answered) = (&gate, &over, &answered);
            scope.spawn(move || {
                let mut connection = Connection::open(gate);
                while !over.load(Ordering::Relaxed) {
                    let call = if client == 0 {
                        Call::payment()
                    } else {
                        Call::accounts()
                    };
                    let status = connection.exchange(&gate.seal(&call)).unwrap().status;
                    assert_eq!(status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _end = End(&over);
        let mut observed = ObservableCheck::ALL.to_vec();
        for breach in all() {
            let send = || {
                breach.prepare(&gate);
                gate.send(&breach.call, breach.call.protocols()[0])
            };
            assert_eq!(send().status, 200, "{:?}", breach.check);
            observed.retain(|check| *check != breach.check);
            let names: Vec<_> = observed.iter().map(|check| check.name()).collect();
            let checks = format!("checks: [{}]", names.join(", "));
            let yaml = gate.yaml().replace("checks: all", &checks);
            fs::write(gate.folder().join("gateway.yaml"), yaml).unwrap();
            let reloaded = gate.tell("/reload", &json!({}));
            assert_eq!(reloaded.json()["reloaded"], true, "{:?}", reloaded.json());
            let answer = send();
            assert_eq!(answer.json()["reason"], breach.reason, "{:?}", breach.check);
        }
        eventually("requests", || answered.load(Ordering::Relaxed) > 100);
    });
    assert!(gate.control("/readyz").json().get("onlyObserved").is_none());
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// While PSUs are learned and SCA is only observed, the core's own answer reaches the caller.
//= FWD-6 accepted
#[test]
fn the_cores_word_is_passed_on() {
    let start = |checks: &str| {
        observing(checks)
            .strangers()
            .sca("unknown_psu: learn")
            .sca("learn_since: 2026-01-01")
            .sca("learn_until: 2036-01-01")
            .start()
    };
    let reply = |gate: &Gate| {
        let body = r#"{"code":"RESOURCE_UNKNOWN"}"#;
        gate.upstream()
            .reply(crate::harness::Reply::json(404, body));
    };
    let gate = start("[sca]");
    reply(&gate);
    let answer = gate.send(&Call::accounts(), Protocol::Http1);
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json(), json!({"code": "RESOURCE_UNKNOWN"}));
    eventually("it is counted", || {
        (observed(&gate, ObservableCheck::Sca) - 1.0).abs() < 0.1
    });
    let gate = start("[]");
    reply(&gate);
    let answer = gate.send(&Call::accounts(), Protocol::Http1);
    assert_eq!(answer.json()["reason"], "sca-required");
    assert_eq!(
        answer.json()["_links"]["scaRedirect"]["verbs"],
        Value::from(vec!["GET"])
    );
}
