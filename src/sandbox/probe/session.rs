//! Requests to the core and their outcomes. Every answer is kept, so that all of them are judged in the end.

use super::request::{Example, Gateway, Request};
use super::wire::{Answer, Connection, CoreAddress, NoAnswer};
use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

/// The pause between the parts of a slow request, and after closed connections.
pub(super) const PAUSE: Duration = Duration::from_millis(150);

/// The statuses of a core that refuses a caller who is not the gateway.
const REFUSED: [u16; 2] = [401, 403];

/// The statuses of a core that could not read a request: method, time, length or size.
const UNREAD: [u16; 8] = [405, 408, 411, 413, 414, 415, 417, 431];

/// A core under test.
#[derive(Debug)]
pub(super) struct Session {
    /// The requests' author.
    pub(super) gateway: Gateway,
    /// The core.
    pub(super) core: CoreAddress,
    /// A GET.
    pub(super) read: Example,
    /// A request that changes something.
    pub(super) write: Example,
    /// The time after which a request that changed something is repeated.
    pub(super) replay_after: Duration,
    /// All answers, with the names of their requests.
    pub(super) answers: RefCell<Vec<(String, Answer)>>,
}

/// The status of an answer, or the reason why there is none.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The request.
    what: String,
    /// What came of it.
    pub(super) answer: Result<Answer, NoAnswer>,
}

impl Outcome {
    /// Whether the core refuses the caller.
    pub(super) fn is_refused(&self) -> bool {
        self.status()
            .is_some_and(|status| REFUSED.contains(&status))
    }

    /// Whether the core accepted the caller and read the request. It need not have done what was asked.
    pub(super) fn is_accepted(&self) -> bool {
        let unread = |status: &u16| REFUSED.contains(status) || UNREAD.contains(status);
        self.status()
            .is_some_and(|status| (200..500).contains(&status) && !unread(&status))
    }

    /// Whether the core did not execute a repeated request: it refused it, or answered that it knows it (409).
    pub(super) fn is_not_executed(&self) -> bool {
        self.is_refused() || self.status() == Some(409)
    }

    /// Whether the core did what was asked.
    pub(super) fn is_success(&self) -> bool {
        self.status()
            .is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether the connection may be used again.
    pub(super) fn is_open(&self) -> bool {
        self.answer.as_ref().is_ok_and(|answer| answer.is_open)
    }

    fn status(&self) -> Option<u16> {
        self.answer.as_ref().ok().map(|answer| answer.status)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.answer {
            Ok(answer) => write!(f, "{}: {}", self.what, answer.status),
            Err(fault) => write!(f, "{}: {fault}", self.what),
        }
    }
}

/// Outcomes in a line.
pub(super) fn listed(outcomes: &[Outcome]) -> String {
    let texts: Vec<_> = outcomes.iter().map(Outcome::to_string).collect();
    texts.join(", ")
}

impl Session {
    /// Sends a request on a new connection.
    pub(super) fn ask(&self, what: &str, request: &Request) -> Outcome {
        self.ask_in_parts(what, &[&request.bytes()])
    }

    /// Sends bytes on a new connection, in parts with a pause between them.
    pub(super) fn ask_in_parts(&self, what: &str, parts: &[&[u8]]) -> Outcome {
        match self.core.connect() {
            Ok(mut connection) => self.ask_on(&mut connection, what, parts),
            Err(fault) => self.outcome(what, Err(fault)),
        }
    }

    /// The same on a connection.
    pub(super) fn ask_on(
        &self,
        connection: &mut Connection,
        what: &str,
        parts: &[&[u8]],
    ) -> Outcome {
        let mut sent = Ok(());
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                std::thread::sleep(PAUSE);
            }
            sent = sent.and_then(|()| connection.send(part));
        }
        // A core that refuses a long body may answer before it has read all of it.
        let answer = connection.answer();
        self.outcome(
            what,
            if answer.is_ok() {
                answer
            } else {
                sent.and(answer)
            },
        )
    }

    /// An outcome, whose answer is kept.
    pub(super) fn outcome(&self, what: &str, answer: Result<Answer, NoAnswer>) -> Outcome {
        if let Ok(answer) = &answer {
            self.answers
                .borrow_mut()
                .push((what.to_owned(), answer.clone()));
        }
        let what = what.to_owned();
        Outcome { what, answer }
    }
}
