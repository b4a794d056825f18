//! Does a change belong to the TPP of the claim?
//!
//! A change is sent with the claim of one TPP and the header of another one, which has changed nothing before. It belongs to the other TPP
//! where the answer to this TPP's `--read` changes, and where only this TPP may use the payment or the basket that was made. Where no
//! answer shows whose a change is, the check says so and passes.

use super::created::Created;
use super::marks::View;
use super::plant::{TPP, another_tpp};
use super::report::{ASSERTION as AREA, Check, NAMED};
use super::request::Request;
use super::session::{Outcome, Session, listed};

/// The number of further answers of each TPP by which a change is confirmed.
const CONFIRMED: usize = 2;

/// The check.
pub(super) fn check(session: &Session) -> Check {
    let own = session.gateway.tpp.as_str();
    let fresh = another_tpp();
    let right = TPP.right(session, &session.write, &fresh);
    let mut shows = change(session, "change of another TPP", &right, &fresh)
        .1
        .is_some();
    let mut deceived = Vec::new();
    for disguise in TPP.disguises() {
        let other = another_tpp();
        let request = TPP.planted(session, &session.write, disguise, [own, &other]);
        let what = format!("{} with {disguise}", request.method);
        let (made, read) = change(session, &what, &request, &other);
        deceived.extend(read);
        let Some(created) = Created::of(&session.write, &made) else {
            continue;
        };
        for example in [created.status(), created.authorise()] {
            let ask = |whose: &str, tpp: &str| {
                let what = format!("{} by the TPP of the {whose}", example.operation);
                session.ask(&what, &TPP.right(session, &example, tpp))
            };
            let (by_own, by_other) = (ask("claim", own), ask("header", &other));
            shows |= by_own.is_success() != by_other.is_success();
            if by_other.is_success() && !by_own.is_success() {
                deceived.push(by_other);
            }
        }
    }
    let passed = deceived.is_empty();
    deceived.truncate(NAMED);
    let found = match (passed, shows) {
        (false, _) => listed(&deceived),
        (true, true) => "a change belongs to the TPP of the claim".to_owned(),
        (true, false) => "no answer shows whose a change is".to_owned(),
    };
    let mend =
        "take the TPP from the claim in changes too: the TPP of a planted header got the change";
    Check::new(AREA, "facts-of-change", found, passed, mend)
}

/// Sends a change. Returns its outcome, and the answer to the other TPP's `--read` if the change shows there.
fn change(
    session: &Session,
    what: &str,
    request: &Request,
    other: &str,
) -> (Outcome, Option<Outcome>) {
    let read = |tpp: &str| {
        let request = TPP.right(session, &session.read, tpp);
        session.ask(&format!("GET of another TPP, {what}"), &request)
    };
    let mut before = View::default();
    before.add(&read(other));
    let made = session.ask(what, request);
    if !made.is_success() {
        return (made, None);
    }
    let (first, mut after) = (read(other), View::default());
    after.add(&first);
    if !first.is_success() || after.marks(&before).is_empty() {
        return (made, None);
    }
    // A third TPP's answer shows what has changed for everybody.
    let third = another_tpp();
    for _ in 0..CONFIRMED {
        before.add(&read(&third));
        after.add(&read(other));
    }
    let is_others = !after.marks(&before).is_empty();
    (made, is_others.then_some(first))
}
