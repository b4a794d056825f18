//! Does the core survive what the gateway may send? Sizes at the limits, kept, idle, slow and closed connections.

use super::report::Check;
use super::request::Request;
use super::session::{Outcome, PAUSE, Session, listed};

const AREA: &str = "endurance";

/// The size of a TPP's head, in bytes: the default of `listener.max_head_size`, without the gateway's own headers.
const LARGEST_HEAD: usize = 32 * 1024;

/// The limit of TPP-Signature-Certificate, in bytes (HTTP-9).
const LARGEST_CERTIFICATE: usize = 16 * 1024;

/// The limit of a body, in bytes (HTTP-6).
const LARGEST_BODY: usize = 64 * 1024;

/// The number of connections of the gateway that stay open unused.
const IDLE: usize = 32;

/// The number of connections that are closed at each point of a request.
const CLOSED: usize = 8;

/// All checks of endurance.
pub(super) fn checks(session: &Session) -> Vec<Check> {
    vec![
        largest_head(session),
        largest_body(session),
        empty_body(session),
        slow(session),
        kept(session),
        unread_body(session),
        idle(session),
        closed(session),
    ]
}

fn largest_head(session: &Session) -> Check {
    let request = session.gateway.forwarded(&session.read);
    let request = request.with("TPP-Signature-Certificate", "A".repeat(LARGEST_CERTIFICATE));
    let rest = LARGEST_HEAD.saturating_sub(request.head().len());
    let request = session
        .gateway
        .vouch(request.with("PSU-User-Agent", "a".repeat(rest)));
    let what = format!("GET with a head of {} bytes", request.head().len());
    let outcome = session.ask(&what, &request);
    let mend = "read heads of 40 KiB and single headers of 16 KiB: listener.max_head_size (32 KiB) and the gateway's own headers. \
                Many servers read 8 KiB by default";
    Check::new(
        AREA,
        "largest-head",
        outcome.to_string(),
        outcome.is_accepted(),
        mend,
    )
}

/// White space around a JSON document is part of the body.
fn largest_body(session: &Session) -> Check {
    let request = session.gateway.forwarded(&session.write);
    let mut body = request.body.clone();
    body.resize(LARGEST_BODY.max(body.len()), b' ');
    let request = session.gateway.vouch(request.with_body(body));
    let what = format!("{} of {} bytes", request.method, request.body.len());
    let outcome = session.ask(&what, &request);
    let mend = "read bodies of 64 KiB (HTTP-6), and verify the assertion over all of it";
    Check::new(
        AREA,
        "largest-body",
        outcome.to_string(),
        outcome.is_accepted(),
        mend,
    )
}

fn empty_body(session: &Session) -> Check {
    let mut example = session.write.clone();
    example.body.clear();
    let request = session.gateway.vouched(&example);
    let outcome = session.ask(
        &format!("{} with Content-Length: 0", request.method),
        &request,
    );
    let mend = "answer a request without a body, with 400 where there must be one";
    Check::new(
        AREA,
        "empty-body",
        outcome.to_string(),
        outcome.is_accepted(),
        mend,
    )
}

/// A network may deliver a request in parts.
fn slow(session: &Session) -> Check {
    let request = session.gateway.vouched(&session.write);
    let (head, body) = (request.head(), request.body.as_slice());
    let (head, last) = head.split_at_checked(head.len() / 2).unwrap_or_default();
    let (body, rest) = body.split_at_checked(body.len() / 2).unwrap_or_default();
    let what = format!("{} in four parts", request.method);
    let outcome = session.ask_in_parts(&what, &[head, last, body, rest]);
    let mend = "wait for the whole head and for all bytes of Content-Length: one read of the socket may give less";
    Check::new(
        AREA,
        "slow",
        outcome.to_string(),
        outcome.is_accepted(),
        mend,
    )
}

/// The gateway keeps connections and uses them for other callers.
fn kept(session: &Session) -> Check {
    let gateway = &session.gateway;
    let turns = [
        ("GET", gateway.vouched(&session.read), true),
        (
            session.write.method.as_str(),
            gateway.vouched(&session.write),
            true,
        ),
        (
            "without an assertion",
            gateway.forwarded(&session.write),
            false,
        ),
        ("GET", gateway.vouched(&session.read), true),
    ];
    let (outcomes, passed) = in_turn(session, &turns);
    let mend = "keep the requests of one connection apart: read all of a body, also of a refused request, or close the connection";
    Check::new(AREA, "kept", listed(&outcomes), passed, mend)
}

/// A body that nobody reads must not become the next request.
fn unread_body(session: &Session) -> Check {
    let inner = session.gateway.forwarded(&session.read).head();
    let refused = session.gateway.forwarded(&session.write).with_body(inner);
    let turns = [
        ("refused, with a request as its body", refused, false),
        ("GET", session.gateway.vouched(&session.read), true),
    ];
    let (outcomes, passed) = in_turn(session, &turns);
    let mend = "read the body of a refused request, or close its connection: here it was read as the next request";
    Check::new(AREA, "unread-body", listed(&outcomes), passed, mend)
}

/// Requests on one connection, or on a new one after each that the core closed. All are answered; `true` stands for those that the
/// core must accept.
fn in_turn(session: &Session, turns: &[(&str, Request, bool)]) -> (Vec<Outcome>, bool) {
    let mut outcomes = Vec::new();
    let mut kept = None;
    for (what, request, _) in turns {
        let connection = kept.take().map_or_else(|| session.core.connect(), Ok);
        let outcome = match connection {
            Ok(mut connection) => {
                let outcome = session.ask_on(&mut connection, what, &[&request.bytes()]);
                kept = outcome.is_open().then_some(connection);
                outcome
            }
            Err(fault) => session.outcome(what, Err(fault)),
        };
        outcomes.push(outcome);
    }
    let passed = outcomes.iter().zip(turns).all(|(outcome, (.., accepted))| {
        let answered = outcome
            .answer
            .as_ref()
            .is_ok_and(|answer| !answer.has_surplus);
        answered && (outcome.is_accepted() || !accepted)
    });
    (outcomes, passed)
}

/// Every other connection has been used once.
fn idle(session: &Session) -> Check {
    let request = || session.gateway.vouched(&session.read).bytes();
    let mut open = Vec::new();
    let mut outcome = session.ask_in_parts("GET", &[&request()]);
    while outcome.is_accepted() && open.len() < IDLE {
        open.extend(session.core.connect());
        match session.core.connect() {
            Ok(mut connection) => {
                let what = format!("GET beside {} idle connections", open.len());
                outcome = session.ask_on(&mut connection, &what, &[&request()]);
                open.push(connection);
            }
            Err(fault) => outcome = session.outcome("a further connection", Err(fault)),
        }
    }
    let mend = "serve more than one connection at a time: the gateway keeps unused ones open (upstream.keepalive)";
    Check::new(
        AREA,
        "idle",
        outcome.to_string(),
        outcome.is_accepted(),
        mend,
    )
}

/// Callers leave, and health checks open a connection only.
fn closed(session: &Session) -> Check {
    let request = session.gateway.vouched(&session.write);
    let (head, body) = (request.head(), &request.body);
    let half = head.get(..head.len() / 2).unwrap_or_default();
    let begun = body.get(..body.len() / 2).unwrap_or_default();
    let places = [
        ("a connection", Vec::new()),
        ("half a head", half.to_vec()),
        ("a head", head.clone()),
        ("half a body", [&head, begun].concat()),
        (
            "an unread answer",
            session.gateway.vouched(&session.read).bytes(),
        ),
    ];
    let mut outcomes = Vec::new();
    for (place, bytes) in places {
        for _ in 0..CLOSED {
            if let Ok(mut connection) = session.core.connect() {
                let _ = connection.send(&bytes);
                connection.close();
            }
        }
        // The core may notice a moment later.
        std::thread::sleep(PAUSE);
        let request = session.gateway.vouched(&session.read);
        outcomes.push(session.ask(&format!("GET after {place}"), &request));
    }
    let passed = outcomes.iter().all(Outcome::is_accepted);
    let mend = "survive a connection that closes before, within and behind a request";
    Check::new(AREA, "closed", listed(&outcomes), passed, mend)
}
