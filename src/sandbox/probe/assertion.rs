//! Does the core believe the gateway, and nobody else? (FWD-1)
//!
//! Each forgery is a request that somebody could send who reaches the core past the gateway, as a GET and as a request that changes
//! something.

use super::report::{ASSERTION as AREA, Check};
use super::request::{Example, Gateway, Request};
use super::session::{Outcome, Session, listed};
use super::{facts, forged, replay};
use axum::http::Method;

/// The identity number of nobody.
const NOBODY: &str = "00000000000";

/// A request that the core must refuse, and what to mend where it does not.
struct Forgery {
    name: &'static str,
    make: fn(&Gateway, &Example) -> Request,
    mend: &'static str,
}

const FORGERIES: &[Forgery] = &[
    Forgery {
        name: "missing",
        make: |gateway, example| gateway.forwarded(example),
        mend: "refuse a request without Gateway-Assertion with 403, before anything else: its author came past the gateway",
    },
    Forgery {
        name: "malformed",
        make: |gateway, example| {
            gateway
                .forwarded(example)
                .with("Gateway-Assertion", "e30.e30")
        },
        mend: "refuse a Gateway-Assertion that is no JSON Web Token of three parts with 403",
    },
    Forgery {
        name: "unsigned",
        make: |gateway, example| gateway.vouch_unsigned(gateway.forwarded(example)),
        mend: "accept the algorithm ES256 only: \"alg\": \"none\" is no signature",
    },
    Forgery {
        name: "another-key",
        make: |gateway, example| gateway.vouch_by_another(gateway.forwarded(example)),
        mend: "verify with the key of this kid from the gateway's /.well-known/jwks.json, and refuse an unknown kid",
    },
    Forgery {
        name: "signature",
        make: |gateway, example| gateway.vouch_badly(gateway.forwarded(example)),
        mend: "verify the signature (ES256: R and S, 32 bytes each) over header and claims, instead of only decoding them",
    },
    Forgery {
        name: "audience",
        make: |gateway, example| {
            gateway.vouch_with(gateway.forwarded(example), &[("aud", "another-core")])
        },
        mend: "compare aud with the gateway's assertion.audience: the assertion was made for another core",
    },
    Forgery {
        name: "issuer",
        make: |gateway, example| {
            gateway.vouch_with(gateway.forwarded(example), &[("iss", "another-gateway")])
        },
        mend: "compare iss with the gateway's system",
    },
    Forgery {
        name: "expired",
        make: |gateway, example| gateway.vouch_too_early(gateway.forwarded(example)),
        mend: "refuse an assertion after exp, with a tolerance of a minute at most",
    },
    Forgery {
        name: "method",
        make: |gateway, example| {
            let (method, target) = (example.method.clone(), example.target.clone());
            let other = gateway
                .forwarded(example)
                .to(Method::DELETE, target.clone());
            gateway.vouch(other).to(method, target)
        },
        mend: "compare the claim method with the request's method",
    },
    Forgery {
        name: "target",
        make: |gateway, example| {
            let other = format!("{}/other", example.target);
            let made = gateway.forwarded(example).to(example.method.clone(), other);
            gateway
                .vouch(made)
                .to(example.method.clone(), example.target.clone())
        },
        mend: "compare the claim target with path and query, byte for byte as they arrived",
    },
    Forgery {
        name: "target-case",
        make: |gateway, example| claim_target(gateway, example, &example.target.to_uppercase()),
        mend: "compare the claim target byte for byte: upper and lower case differ in a path",
    },
    Forgery {
        name: "target-encoding",
        make: |gateway, example| claim_target(gateway, example, &with_encoding(&example.target)),
        mend: "compare the claim target with the bytes that arrived, before anything is decoded: %74 is not t",
    },
    Forgery {
        name: "target-slash",
        make: |gateway, example| claim_target(gateway, example, &with_slash(&example.target)),
        mend: "compare the claim target byte for byte: a slash at the end of the path is another path",
    },
    Forgery {
        name: "query",
        make: |gateway, example| {
            let made = gateway.vouched(example);
            made.to(example.method.clone(), with_query(&example.target))
        },
        mend: "compare the claim target with path and query: without its query it covers another request",
    },
    Forgery {
        name: "signature-header",
        make: |gateway, example| {
            gateway
                .vouched(example)
                .with("Signature", "keyId=\"another\"")
        },
        mend: "compare headers_sha256 with the lines of Signature, X-PSU-IDENTITY and PSU-Context: Signature was changed",
    },
    Forgery {
        name: "identity-header",
        make: |gateway, example| gateway.vouched(example).with("X-PSU-IDENTITY", NOBODY),
        mend: "compare headers_sha256 with the lines of Signature, X-PSU-IDENTITY and PSU-Context: another PSU was put in",
    },
    Forgery {
        name: "context-header",
        make: |gateway, example| gateway.vouched(example).with("PSU-Context", "CORPORATE"),
        mend: "compare headers_sha256 with the lines of Signature, X-PSU-IDENTITY and PSU-Context: the context was changed",
    },
];

/// All checks of the assertion.
pub(super) fn checks(session: &Session) -> Vec<Check> {
    let mut checks = vec![right(session)];
    let early = replay::send_early(session);
    checks.extend(FORGERIES.iter().map(|forgery| refused(session, forgery)));
    checks.extend(forged::checks(session));
    checks.push(body(session));
    checks.extend(body_removed(session));
    checks.extend(facts::checks(session));
    checks.push(bytes(session));
    checks.extend(replay::checks(session, &early));
    checks
}

/// With an assertion for another target than the request's.
fn claim_target(gateway: &Gateway, example: &Example, claimed: &str) -> Request {
    let made = gateway.forwarded(example);
    let made = gateway.vouch(made.to(example.method.clone(), claimed.to_owned()));
    made.to(example.method.clone(), example.target.clone())
}

/// The same target with the last character of its path percent-encoded.
fn with_encoding(target: &str) -> String {
    let (path, query) = split_query(target);
    let mut path = path.to_owned();
    if let Some(last) = path.pop() {
        path.push_str(&format!("%{:02X}", u32::from(last)));
    }
    format!("{path}{query}")
}

/// The same target with a slash at the end of its path.
fn with_slash(target: &str) -> String {
    let (path, query) = split_query(target);
    format!("{path}/{query}")
}

/// The path, and the query with its question mark.
fn split_query(target: &str) -> (&str, &str) {
    let at = target.find('?').unwrap_or(target.len());
    target.split_at_checked(at).unwrap_or((target, ""))
}

/// The same target with a parameter that it did not have.
fn with_query(target: &str) -> String {
    let mark = if target.contains('?') { '&' } else { '?' };
    format!("{target}{mark}probe=a%7Eb%3A")
}

fn right(session: &Session) -> Check {
    let outcomes = [&session.write, &session.read].map(|example| {
        let request = session.gateway.vouched(example);
        session.ask(&format!("right {}", example.method), &request)
    });
    let passed = outcomes.iter().all(Outcome::is_accepted);
    let mend = "accept the gateway's assertion: compare issuer, audience and key with those of this probe. \
                The other checks say little before this one passes";
    Check::new(AREA, "right", listed(&outcomes), passed, mend)
}

fn refused(session: &Session, forgery: &Forgery) -> Check {
    let outcomes = [&session.read, &session.write].map(|example| {
        let request = (forgery.make)(&session.gateway, example);
        session.ask(example.method.as_str(), &request)
    });
    let passed = outcomes.iter().all(Outcome::is_refused);
    Check::new(AREA, forgery.name, listed(&outcomes), passed, forgery.mend)
}

/// A GET has no body to exchange.
fn body(session: &Session) -> Check {
    let made = session.gateway.vouched(&session.write);
    let mut other = made.body.clone();
    other.push(b' ');
    let outcome = session.ask(session.write.method.as_str(), &made.with_body(other));
    let mend = "compare body_sha256 with the bytes that arrived, before they are parsed";
    Check::new(
        AREA,
        "body",
        outcome.to_string(),
        outcome.is_refused(),
        mend,
    )
}

/// A body that somebody took away. Without one in the example there is nothing to take.
fn body_removed(session: &Session) -> Option<Check> {
    if session.write.body.is_empty() {
        return None;
    }
    let made = session.gateway.vouched(&session.write);
    let outcome = session.ask(session.write.method.as_str(), &made.with_body(Vec::new()));
    let mend =
        "compare body_sha256 also where no body arrived: an empty body has a hash of its own";
    let passed = outcome.is_refused();
    Some(Check::new(
        AREA,
        "body-removed",
        outcome.to_string(),
        passed,
        mend,
    ))
}

/// Values with other bytes than ASCII, and a target that a library may write anew.
fn bytes(session: &Session) -> Check {
    let gateway = &session.gateway;
    let issuer = gateway.forwarded(&session.read);
    let issuer = issuer.with(
        "Signature",
        "keyId=\"SN=1,CA=CN=S\u{f8}r \u{c5}s\",headers=\"date\",signature=\"AA==\"",
    );
    let target = with_query(&session.read.target);
    let encoded = gateway.forwarded(&session.read).to(Method::GET, target);
    let outcomes = [
        ("UTF-8 in Signature", issuer),
        ("%7E and %3A in the query", encoded),
    ]
    .map(|(what, request)| session.ask(what, &gateway.vouch(request)));
    let passed = outcomes.iter().all(Outcome::is_accepted);
    let mend =
        "hash the bytes of a header as they arrived, and compare the target without decoding it";
    Check::new(AREA, "bytes", listed(&outcomes), passed, mend)
}
