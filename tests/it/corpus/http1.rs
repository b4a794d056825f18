//! One case over HTTP/1.1.

use super::{Outcome, case::Case, fill::Requests};
use crate::harness::{Answer, Connection, Connector, Gate, Tls, render};
use std::io;

pub(super) fn connector(gate: &Gate) -> Connector {
    Tls::default().connector(gate.world())
}

/// One of the stated outcomes of a connection.
pub(super) struct Answers {
    /// The final answers in order, and the reasons of refusals; a reason of `any` stands for each.
    answers: Vec<(u16, String)>,
    /// Whether the gateway closes the connection then. Otherwise it answers a further request.
    end: bool,
}

impl Answers {
    /// The stated outcomes of a case, as in `200 | 400 end`.
    pub(super) fn all(case: &Case) -> Vec<Self> {
        let one = |text: &str| {
            let mut words: Vec<_> = text.split_whitespace().collect();
            let end = words.last() == Some(&"end");
            if end {
                words.pop();
            }
            let answers = words.into_iter().map(|word| {
                let (status, reason) = word.split_once(':').unwrap_or((word, ""));
                let status: u16 = status.parse().expect(&case.name);
                let reason = match (reason, status) {
                    ("", 400) => "malformed-request",
                    ("", 408) => "request-timeout",
                    ("", 413) => "body-too-large",
                    ("", 431) => "headers-too-large",
                    ("", _) => "any",
                    (reason, _) => reason,
                };
                (status, reason.to_owned())
            });
            Self {
                answers: answers.collect(),
                end,
            }
        };
        case.answer.split('|').map(one).collect()
    }

    fn begins_with(&self, answers: &[(u16, String)]) -> bool {
        let mut pairs = self.answers.iter().zip(answers);
        self.answers.len() >= answers.len()
            && pairs.all(|((status, reason), (found, why))| {
                status == found && (*status < 400 || reason == "any" || reason == why)
            })
    }
}

pub(super) fn run(gate: &Gate, tls: &Connector, case: &Case) -> Outcome {
    let mut requests = Requests::of(gate, case);
    let mut outcome = Outcome::default();
    let talked = talk(gate, tls, &mut requests, case, &mut outcome);
    outcome.fault = talked.err();
    outcome.made = requests.made;
    outcome
}

fn talk(
    gate: &Gate,
    tls: &Connector,
    requests: &mut Requests<'_>,
    case: &Case,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let mut connection = Connection::over(gate.address(), tls)?;
    for part in &case.exchange {
        // The gateway may close during a write; its answer counts.
        if connection.send(&requests.fill(part)).is_err() {
            break;
        }
    }
    let stated = Answers::all(case);
    let mut answers = Vec::new();
    loop {
        let open = stated.iter().filter(|one| one.begins_with(&answers));
        let open: Vec<_> = open.collect();
        if open.is_empty() {
            return Err(format!("{answers:?} is not {}", case.answer));
        }
        let is_whole = |one: &&&Answers| one.answers.len() == answers.len();
        if open.iter().filter(is_whole).any(|one| !one.end) {
            let ended = open.iter().filter(is_whole).any(|one| one.end);
            return goes_on(&mut connection, requests, outcome, ended);
        }
        let method = if answers.is_empty() {
            case.method.as_str()
        } else {
            "GET"
        };
        match connection.answer(method) {
            Ok(answer) => answers.push(judge(&answer, method, outcome)?),
            Err(fault) if is_open(&fault) => {
                return Err(format!(
                    "it stays open after {answers:?}, not {}",
                    case.answer
                ));
            }
            Err(_) if open.iter().filter(is_whole).any(|one| one.end) => return Ok(()),
            Err(fault) => {
                return Err(format!("{fault} after {answers:?}, not {}", case.answer));
            }
        }
    }
}

fn is_open(fault: &io::Error) -> bool {
    matches!(
        fault.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Status and reason of an answer, whose form is checked (ERR-1, ERR-5, ERR-8).
fn judge(answer: &Answer, method: &str, outcome: &mut Outcome) -> Result<(u16, String), String> {
    if answer.status < 400 {
        let id = answer.header("x-request-id").unwrap_or_default();
        outcome.admitted.insert(id.to_owned());
        return Ok((answer.status, String::new()));
    }
    let reason = answer.reason();
    if reason.is_empty() && method != "HEAD" {
        return Err(format!("{} without a body", answer.status));
    }
    if answer.header("server").is_some() || answer.header("date").is_none() {
        return Err(format!("{:?}", answer.headers));
    }
    Ok((answer.status, reason))
}

/// The connection serves a further request, and this answer is for that request; or it has ended, if that is allowed.
fn goes_on(
    connection: &mut Connection,
    requests: &mut Requests<'_>,
    outcome: &mut Outcome,
    may_end: bool,
) -> Result<(), String> {
    let sealed = requests.get();
    let id = sealed.request.header("x-request-id").map(str::to_owned);
    let sent = connection.send(&render(&sealed));
    let answer = sent.and_then(|()| connection.answer("GET"));
    let answer = match answer {
        Err(fault) if may_end && !is_open(&fault) => return Ok(()),
        answer => answer.map_err(|fault| format!("it does not go on: {fault}"))?,
    };
    if answer.status != 200 || answer.header("x-request-id") != id.as_deref() {
        let shown = String::from_utf8_lossy(&answer.body);
        return Err(format!("it goes on with {} {shown}", answer.status));
    }
    outcome.admitted.extend(id);
    Ok(())
}
