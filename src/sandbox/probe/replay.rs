//! Is a request executed once? A change has one jti, and a core keeps it until exp.
//!
//! Deliberately not here: proof that the core keeps it until exp. The last check repeats a request after `--replay-after`, and
//! says nothing of the time behind that.

use super::report::{ASSERTION as AREA, Check};
use super::request::Request;
use super::session::{Outcome, Session, listed};
use portvakt_base::clock::Stopwatch;

/// The number of times that a request is sent at once, and the number of such requests: a core that checks and then stores lets
/// two pass in most of them.
const AT_ONCE: usize = 4;
const ROUNDS: usize = 4;

/// A request that was sent at the beginning, to be repeated at the end.
#[derive(Debug)]
pub(super) struct Early {
    request: Request,
    first: String,
    is_accepted: bool,
    since: Stopwatch,
}

/// Sends a request that is repeated later.
pub(super) fn send_early(session: &Session) -> Early {
    let request = session.gateway.vouched(&session.write);
    let first = session.ask("first", &request);
    Early {
        request,
        is_accepted: first.is_accepted(),
        first: first.to_string(),
        since: Stopwatch::start(),
    }
}

/// All checks of repeated requests.
pub(super) fn checks(session: &Session, early: &Early) -> Vec<Check> {
    vec![
        replayed(session),
        after_another(session),
        at_once(session),
        repeated(session),
        later(session, early),
    ]
}

/// A request that changes something comes once; a core may answer the second one as a conflict.
fn replayed(session: &Session) -> Check {
    let request = session.gateway.vouched(&session.write);
    let first = session.ask("first", &request);
    let second = session.ask("second", &request);
    let passed = first.is_accepted() && second.is_not_executed();
    let mend = "keep jti until exp for every method but GET, and refuse one that was used before";
    Check::new(AREA, "replayed", listed(&[first, second]), passed, mend)
}

fn after_another(session: &Session) -> Check {
    let request = session.gateway.vouched(&session.write);
    let first = session.ask("first", &request);
    let other = session.ask("another", &session.gateway.vouched(&session.write));
    let second = session.ask("the first again", &request);
    let passed = first.is_accepted() && second.is_not_executed();
    let mend = "keep every jti until its exp, not the last one only";
    let found = listed(&[first, other, second]);
    Check::new(AREA, "replayed-after-another", found, passed, mend)
}

/// The same request on several connections, whose last bytes are sent together.
fn at_once(session: &Session) -> Check {
    let mut most = 0;
    for _ in 0..ROUNDS {
        let outcomes = send_at_once(session);
        let executed = outcomes
            .iter()
            .filter(|outcome| outcome.is_accepted() && !outcome.is_not_executed());
        most = most.max(executed.count());
    }
    let found = format!("{most} of {AT_ONCE} at once executed");
    let mend = "look jti up and store it in one step, such as an insert with a unique key: \
                of two requests at once both found it unused";
    Check::new(AREA, "replayed-at-once", found, most <= 1, mend)
}

fn send_at_once(session: &Session) -> Vec<Outcome> {
    let bytes = session.gateway.vouched(&session.write).bytes();
    let Some((last, most)) = bytes.split_last() else {
        return Vec::new();
    };
    let mut connections = Vec::new();
    for _ in 0..AT_ONCE {
        let begun = session.core.connect().and_then(|mut connection| {
            connection.send(most)?;
            Ok(connection)
        });
        connections.push(begun);
    }
    for connection in connections.iter_mut().flatten() {
        let _ = connection.send(&[*last]);
    }
    // Each connection is closed after its answer, for a core that serves one after the other.
    let answers = connections.into_iter().map(|connection| {
        let answer = connection.and_then(|mut connection| connection.answer());
        session.outcome("at once", answer)
    });
    answers.collect()
}

/// "Sent again" in the contract.
fn repeated(session: &Session) -> Check {
    let request = session.gateway.vouched(&session.read);
    let outcomes = ["first", "second"].map(|what| session.ask(what, &request));
    let passed = outcomes.iter().all(Outcome::is_accepted);
    let mend =
        "answer a GET again under the same jti: the gateway repeats one whose connection closed";
    Check::new(AREA, "repeated-get", listed(&outcomes), passed, mend)
}

fn later(session: &Session, early: &Early) -> Check {
    let elapsed = early.since.elapsed();
    std::thread::sleep(session.replay_after.saturating_sub(elapsed));
    let seconds = early.since.elapsed().as_secs();
    let second = session.ask(&format!("after {seconds} s"), &early.request);
    let passed = early.is_accepted && second.is_not_executed();
    let found = format!("{}, {second}", early.first);
    let mend = "keep jti until exp, 60 s, and not for a shorter time";
    Check::new(AREA, "replayed-later", found, passed, mend)
}
