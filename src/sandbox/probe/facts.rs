//! Do the claims decide, or the headers beside them, which nothing protects?
//!
//! Each fact is sent with one value as its claim and another as its header. A core takes it from the header if it answers with
//! success as it does where both have the header's value, and otherwise where both have the claim's. Where its answers do not
//! depend on the fact, the check says so and passes.

use super::report::{ASSERTION as AREA, Check};
use super::request::{Example, Request};
use super::session::{Session, listed};
use axum::http::Method;
use uuid::Uuid;

/// The Gateway-Tpp-Id of nobody.
const ANOTHER_TPP: &str = "PSDNO-FSA-999999";

/// A fact with two values that a core should tell apart.
struct Fact {
    check: &'static str,
    header: &'static str,
    values: [String; 2],
    mend: &'static str,
}

/// All checks of the origin of facts.
pub(super) fn checks(session: &Session) -> Vec<Check> {
    let psu = session.gateway.psu.unwrap_or_else(Uuid::new_v4);
    let text = |values: [&str; 2]| values.map(str::to_owned);
    let facts = [
        Fact {
            check: "psu-header",
            header: "PSU-ID",
            values: [psu, Uuid::new_v4()].map(|id| id.to_string()),
            mend: "take the PSU from the claim psu_id, not from the header PSU-ID",
        },
        Fact {
            check: "sca-header",
            header: "Gateway-Sca",
            values: text(["none", "session"]),
            mend: "take the SCA from the claim gateway-sca, not from the header",
        },
        Fact {
            check: "roles-header",
            header: "Gateway-Tpp-Roles",
            values: text(["PSP_PI", "PSP_PI,PSP_AI"]),
            mend: "take the roles from the claim gateway-tpp-roles, not from the header",
        },
    ];
    let mut checks = vec![tpp(session)];
    checks.extend(facts.iter().map(|fact| from_claim(session, fact)));
    checks.push(invented(session));
    checks
}

/// SCA-19, SCA-22: whether the core confirms ids that nobody gave out. A core that is not learned from confirms nothing, and passes.
fn invented(session: &Session) -> Check {
    let id = || Uuid::new_v4().to_string();
    let unknown_psu = |request: Request| {
        let request = request.with("PSU-ID", id());
        request.with("Gateway-Psu-Bound", "no")
    };
    let unknown_agreement = |request: Request| {
        let request = request.with("PSU-Corporate-ID", id());
        request.with("Gateway-Psu-Corporate-Bound", "no")
    };
    let confirms = |request, name| {
        let outcome = session.ask(name, &session.gateway.vouch(request));
        let answer = outcome.answer.as_ref().ok();
        let yes = answer.and_then(|answer| answer.head.text(name)) == Some("yes");
        yes.then_some(outcome)
    };
    let mut confirmed = Vec::new();
    for example in [&session.read, &agreements()] {
        let forwarded = || session.gateway.forwarded(example);
        confirmed.extend(confirms(unknown_psu(forwarded()), "gateway-psu-bound"));
        let agreement = "gateway-psu-corporate-bound";
        confirmed.extend(confirms(
            unknown_agreement(unknown_psu(forwarded())),
            agreement,
        ));
        if session.gateway.psu.is_some() {
            confirmed.extend(confirms(unknown_agreement(forwarded()), agreement));
        }
    }
    let found = match confirmed.is_empty() {
        true => "no invented id is confirmed".to_owned(),
        false => listed(&confirmed),
    };
    let mend = "answer Gateway-Psu-Bound: yes only for a PSU-ID that the bank gave to this TPP, and Gateway-Psu-Corporate-Bound: yes only for an agreement of this PSU";
    Check::new(AREA, "invented", found, confirmed.is_empty(), mend)
}

/// An operation that needs a PSU.
fn agreements() -> Example {
    Example {
        operation: "agreement-list".into(),
        method: Method::GET,
        target: "/v1/agreements".into(),
        body: Vec::new(),
    }
}

/// A request in which claim and header have these values.
fn mixed(
    session: &Session,
    example: &Example,
    header: &'static str,
    [claimed, written]: [&str; 2],
) -> Request {
    let request = session.gateway.forwarded(example).with(header, claimed);
    session.gateway.vouch(request).with(header, written)
}

fn tpp(session: &Session) -> Check {
    let read = |what, values| {
        let request = mixed(session, &session.read, "Gateway-Tpp-Id", values);
        session.ask(what, &request)
    };
    let tpp = session.gateway.tpp.as_str();
    let mixed = read("claim of one TPP, header of another", [tpp, ANOTHER_TPP]);
    let other = read("the other TPP", [ANOTHER_TPP; 2]);
    let own = read("the TPP", [tpp; 2]);
    let deceived = mixed.shown() == other.shown() && own.shown() != other.shown();
    let mend = "take the TPP and every other fact from the claims, not from the Gateway- headers";
    Check::new(AREA, "facts", listed(&[mixed, other, own]), !deceived, mend)
}

fn from_claim(session: &Session, fact: &Fact) -> Check {
    let agreements = agreements();
    let [a, b] = [0, 1].map(|at| fact.values.get(at).map_or("", String::as_str));
    let (mut depends, mut deceived) = (false, Vec::new());
    for example in [&session.read, &agreements] {
        let ask = |what: &str, values| {
            let what = format!("{}, {what} {}", example.target, fact.header);
            session.ask(&what, &mixed(session, example, fact.header, values))
        };
        let [first, second] = [ask("one", [a; 2]), ask("another", [b; 2])];
        if first.shown() == second.shown() {
            continue;
        }
        depends = true;
        for (values, of_header) in [([a, b], &second), ([b, a], &first)] {
            let outcome = ask("header beside another claim:", values);
            if outcome.is_success() && outcome.shown() == of_header.shown() {
                deceived.push(outcome);
            }
        }
    }
    let found = match (depends, deceived.is_empty()) {
        (true, false) => listed(&deceived),
        (true, true) => "the claim decides".to_owned(),
        (false, _) => format!("no answer depends on {}", fact.header),
    };
    Check::new(AREA, fact.check, found, deceived.is_empty(), fact.mend)
}
