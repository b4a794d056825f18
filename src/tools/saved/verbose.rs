//! The output of `curl -v`: the head of a request, byte by byte, each line behind `> `.
//!
//! curl does not print the body; `} [14 bytes data]` says only that there is one.

use super::{KeptBody, SavedFault, SavedRequest, Wire, body, choice::choose, raw};
use crate::admission::Announced;
use http::header::TRANSFER_ENCODING;

/// A request: its head, and whether data was sent after it.
#[derive(Default)]
struct Sent {
    head: Vec<u8>,
    is_whole: bool,
    has_data: bool,
}

/// Whether the input holds a request line behind `> `.
pub(super) fn is_verbose(input: &[u8]) -> bool {
    let mut lines = input.split(|byte| *byte == b'\n').take(200);
    lines.any(|line| {
        let sent = without_stamp(line).strip_prefix(b"> ");
        sent.is_some_and(|sent| raw::request_line(sent.trim_ascii_end()).is_some())
    })
}

pub(super) fn request(input: &[u8], entry: Option<usize>) -> Result<SavedRequest, SavedFault> {
    let (chosen, note) = choose(requests(input), entry, |sent| is_signed(&sent.head))?;
    // A terminal drops each CR, and then all of them.
    let origin = match memchr::memchr(b'\r', &chosen.head) {
        Some(_) => raw::InputOrigin::Record,
        None => raw::InputOrigin::File,
    };
    let mut request = raw::request(&chosen.head, origin)?;
    request.form = "curl -v";
    request.notes.splice(..0, note);
    request.kept = match announced(&request, chosen.has_data) {
        Announced::Nothing => match request.wire {
            Wire::Lines(_) => KeptBody::Framed(Vec::new()),
            Wire::Frames(_) => KeptBody::Alone,
        },
        lost => KeptBody::Lost(lost),
    };
    // Said once, with the verdict: the body is not here.
    request
        .notes
        .retain(|note| !note.starts_with("the body has ") && !note.contains("not in chunks"));
    Ok(request)
}

fn announced(request: &SavedRequest, has_data: bool) -> Announced {
    if request.headers.contains_key(TRANSFER_ENCODING) {
        return Announced::Unknown;
    }
    match (body::length(&request.headers), &request.wire) {
        (Ok(Some(0)), _) => Announced::Nothing,
        (Ok(Some(length)), _) => {
            u64::try_from(length).map_or(Announced::Unknown, Announced::Length)
        }
        // Only over HTTP/2 has a body no announcement.
        (Ok(None), Wire::Frames(_)) if has_data => Announced::Unknown,
        (Ok(None) | Err(()), _) => Announced::Nothing,
    }
}

fn requests(input: &[u8]) -> Vec<Sent> {
    let mut requests: Vec<Sent> = Vec::new();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let line = without_stamp(line);
        let sent = match line {
            [b'>', b' ', sent @ ..] => sent,
            // An editor has removed the space of the empty line.
            [b'>', sent @ ..] if sent.trim_ascii().is_empty() => sent,
            [b'}', b' ', b'[', ..] => {
                if let Some(last) = requests.last_mut() {
                    last.has_data = true;
                }
                continue;
            }
            _ => continue,
        };
        if requests.last().is_none_or(|last| last.is_whole) {
            requests.push(Sent::default());
        }
        if let Some(last) = requests.last_mut() {
            last.head.extend_from_slice(sent);
            last.is_whole = sent.trim_ascii_end().is_empty();
        }
    }
    requests
}

fn is_signed(head: &[u8]) -> bool {
    memchr::memmem::find(&head.to_ascii_lowercase(), b"\nsignature:").is_some()
}

/// The line without the time of `--trace-time` and the ids of `--trace-ids` in front of it.
fn without_stamp(mut line: &[u8]) -> &[u8] {
    while let Some((word, rest)) = memchr::memchr(b' ', line)
        .filter(|end| (1..=16).contains(end))
        .and_then(|end| line.split_at_checked(end))
    {
        let is_stamp = word.iter().any(u8::is_ascii_digit)
            && word.iter().all(|byte| {
                byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'[' | b']' | b'-')
            });
        if !is_stamp {
            break;
        }
        line = rest.strip_prefix(b" ").unwrap_or(rest);
    }
    line
}
