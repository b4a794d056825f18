//! One case over HTTP/2.

use super::{
    Outcome,
    case::{Case, Core},
    fill::{Requests, head_block},
};
use crate::harness::{Connector, Frames, Gate, Tls, frame};
use std::io;

/// The stream of the request that shows whether the connection goes on.
const LAST: u32 = 2001;

/// RFC 9113, section 7.
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// RFC 9113, section 6: the number of a type.
const TYPES: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

pub(super) fn connector(gate: &Gate) -> Connector {
    let tls = Tls {
        alpn: b"\x02h2",
        ..Tls::default()
    };
    tls.connector(gate.world())
}

/// One of the outcomes of a stream or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The stream has an answer with this status, and the connection goes on.
    Status(u16),
    /// The stream is reset with this code, and the connection goes on.
    Reset(usize),
    /// The connection ends with this code.
    Goaway(usize),
    /// The connection ends without GOAWAY.
    End,
}

impl Answer {
    /// The outcomes of a case as text: `200`, `stream CODE`, `connection CODE`, `malformed` or `end`, separated by `|`.
    pub(super) fn all(case: &Case, text: &str) -> Vec<Self> {
        let code = |name: &str| {
            let at = CODES.iter().position(|code| *code == name);
            at.unwrap_or_else(|| panic!("{}: {name}", case.name))
        };
        let one = |text: &str| {
            let words: Vec<_> = text.split_whitespace().collect();
            match words[..] {
                ["end"] => vec![Self::End],
                // RFC 9113, section 5.4.1: a stream error may be treated as a connection error.
                ["stream", name] => vec![Self::Reset(code(name)), Self::Goaway(code(name))],
                ["connection", name] => vec![Self::Goaway(code(name))],
                // RFC 9113, section 8.1.1: an answer may come before the reset.
                ["malformed"] => vec![Self::Status(400), Self::Reset(1), Self::Goaway(1)],
                [status] => vec![Self::Status(status.parse().expect(&case.name))],
                _ => panic!("{}: {text}", case.name),
            }
        };
        text.split('|').flat_map(one).collect()
    }
}

pub(super) fn run(gate: &Gate, tls: &Connector, case: &Case) -> Outcome {
    let mut requests = Requests::of(gate, case);
    let mut outcome = Outcome::default();
    match talk(gate, tls, &mut requests, case) {
        Err(fault) => outcome.fault = Some(fault),
        Ok(found) => {
            let expected = case.differs.as_ref().unwrap_or(&case.answer);
            if !Answer::all(case, expected).contains(&found.answer) {
                outcome.fault = Some(format!("{found:?} is not {expected}"));
            }
            outcome.further = found.answers;
        }
    }
    let may_be_seen = case.core == Core::Any || outcome.further > 0;
    if may_be_seen {
        let ids = requests.made.iter().map(|made| made.id.clone());
        outcome.possible = ids.collect();
    }
    outcome.made = requests.made;
    outcome
}

/// The frames of an exchange that was received.
#[derive(Debug)]
struct Found {
    answer: Answer,
    /// The number of answers with status 200.
    answers: usize,
}

fn talk(
    gate: &Gate,
    tls: &Connector,
    requests: &mut Requests<'_>,
    case: &Case,
) -> Result<Found, String> {
    let mut frames = Frames::over(gate, tls)?;
    let mut received = Received::default();
    if case.opens {
        frames.preface();
        let _ = frames.send(4, 0, 0, &[]);
    }
    for step in &case.exchange {
        if let Some(stream) = step.strip_prefix("WAIT ") {
            let stream = stream.parse().expect(&case.name);
            while !received.ended && received.outcome(stream).is_none() {
                received.take(&mut frames)?;
            }
            continue;
        }
        // The gateway may close during a write.
        if frames.bytes(&bytes_of(step, requests, case)).is_err() {
            break;
        }
    }
    let last = head_block(&requests.get());
    let _ = frames.send(1, 5, LAST, &last);
    let is_over = |received: &Received| {
        received.ended
            || (received.outcome(case.stream).is_some() && received.outcome(LAST).is_some())
    };
    while !is_over(&received) {
        received.take(&mut frames).map_err(|fault| {
            format!("{fault} after {:?}, not {}", received.streams, case.answer)
        })?;
    }
    received.found(case.stream)
}

/// The bytes of one step: a frame as `TYPE FLAGS STREAM PAYLOAD`, or `RAW BYTES`.
fn bytes_of(step: &str, requests: &mut Requests<'_>, case: &Case) -> Vec<u8> {
    if let Some(raw) = step.strip_prefix("RAW ") {
        return requests.fill(raw);
    }
    let mut words = step.splitn(4, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (kind, flags, stream, payload) = (word(), word(), word(), word());
    let named = TYPES.iter().position(|name| *name == kind);
    let kind = named.unwrap_or_else(|| kind.parse().expect(&case.name));
    let flags = u8::from_str_radix(flags, 16).expect(&case.name);
    let stream: u32 = stream.parse().expect(&case.name);
    frame(kind as u8, flags, stream, &requests.fill(payload))
}

/// What has come.
#[derive(Default)]
struct Received {
    /// Stream, status, and code of the reset.
    streams: Vec<(u32, Option<u16>, Option<usize>)>,
    goaway: Option<usize>,
    ended: bool,
}

impl Received {
    fn take(&mut self, frames: &mut Frames) -> Result<(), String> {
        let frame = match frames.next() {
            Ok(frame) => frame,
            Err(fault)
                if matches!(
                    fault.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                return Err("nothing comes".to_owned());
            }
            Err(_) => {
                self.ended = true;
                return Ok(());
            }
        };
        let code = frame.code().map(usize::from);
        match frame.kind {
            1 => {
                let status = frame.status();
                let status = status.ok_or_else(|| format!("no status in {frame:?}"))?;
                self.streams.push((frame.stream, Some(status), None));
            }
            3 => self.streams.push((frame.stream, None, code)),
            7 => self.goaway = code,
            _ => {}
        }
        Ok(())
    }

    /// The outcome of a stream. A reset counts more than an answer before it, unless its code is NO_ERROR, which says that the answer is
    /// whole (RFC 9113, section 8.1).
    fn outcome(&self, stream: u32) -> Option<Answer> {
        let of_stream = || self.streams.iter().filter(|(of, _, _)| *of == stream);
        let reset = of_stream().find_map(|(_, _, code)| code.map(Answer::Reset));
        let status = of_stream().find_map(|(_, status, _)| status.map(Answer::Status));
        match (reset, status) {
            (Some(Answer::Reset(0)), Some(status)) => Some(status),
            (reset, status) => reset.or(status),
        }
    }

    fn found(&self, on: u32) -> Result<Found, String> {
        let is_200 = |(_, status, _): &&(u32, Option<u16>, Option<usize>)| *status == Some(200);
        let answers = self.streams.iter().filter(is_200).count();
        let answer = match (self.goaway, self.ended) {
            (Some(code), _) => Answer::Goaway(code),
            (None, true) => Answer::End,
            (None, false) => {
                let last = self.outcome(LAST);
                if last != Some(Answer::Status(200)) {
                    return Err(format!("it goes on with {last:?}"));
                }
                self.outcome(on).ok_or("no outcome")?
            }
        };
        Ok(Found { answer, answers })
    }
}
