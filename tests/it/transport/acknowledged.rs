//! HTTP-9: clients that acknowledge the bytes of answers with many WINDOW_UPDATE frames, early or late.

use crate::harness::{Call, Frames, Gate, Reply, block, frame, string};

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const WHOLE: u8 = END_STREAM | END_HEADERS;

const DATA: u8 = 0;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// RFC 9113, section 7.
const ENHANCE_YOUR_CALM: u8 = 11;

/// The answers of the core, in bytes, and their number at once.
const LARGE: usize = 200_000;
const STREAMS: u32 = 30;

/// Opens a connection with the largest windows, so that answers come whole before anything is acknowledged.
pub(super) fn open(gate: &Gate) -> Frames {
    let mut frames = Frames::silent(gate);
    frames.preface();
    // SETTINGS_INITIAL_WINDOW_SIZE, and the connection's own window.
    frames
        .send(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff])
        .unwrap();
    frames.send(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]).unwrap();
    frames
}

/// A gateway whose core gives large answers.
fn gate() -> Gate {
    let gate = Gate::start();
    let body = format!("\"{}\"", "a".repeat(LARGE - 2));
    gate.upstream().reply(Reply::json(200, &body));
    gate
}

pub(super) fn request(gate: &Gate, frames: &mut Frames, stream: u32, call: &Call) {
    let sealed = gate.seal(call);
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    let head = block(&sealed, &path);
    let Some(body) = &sealed.request.body else {
        frames.send(1, WHOLE, stream, &head).unwrap();
        return;
    };
    frames.send(1, END_HEADERS, stream, &head).unwrap();
    frames.send(DATA, END_STREAM, stream, body).unwrap();
}

/// Reads until so many answers have ended; returns the DATA frames, each by its stream and length.
fn read_answers(frames: &mut Frames, mut count: u32) -> Vec<(u32, usize)> {
    let mut read = Vec::new();
    while count > 0 {
        let frame = frames.next().unwrap();
        assert_ne!(frame.kind, GOAWAY, "{frame:?} with {count} answers left");
        if frame.kind == DATA {
            read.push((frame.stream, frame.payload.len()));
            count -= u32::from(frame.flags & END_STREAM != 0);
        }
    }
    read
}

/// One WINDOW_UPDATE for the stream and one for the connection, for each part of these frames.
fn acknowledge(frames: &mut Frames, read: &[(u32, usize)], part: usize) {
    let updates = read.iter().flat_map(|(stream, length)| {
        let updates = [*stream, 0].map(|id| frame(WINDOW_UPDATE, 0, id, &[0, 0, 0, 9]));
        updates.concat().repeat(length.div_ceil(part))
    });
    let updates: Vec<u8> = updates.collect();
    frames.bytes(&updates).unwrap();
}

/// Go acknowledges each 4 KiB when its program reads them: that may be after the last byte of all answers. The answer to a change that
/// the core executes then must come too.
//= HTTP-9 accepted
#[test]
fn each_part_of_many_large_answers_late() {
    let gate = gate();
    let mut frames = open(&gate);
    let mut stream = 1;
    for part in [16_384, 4_096] {
        for _ in 0..STREAMS {
            request(&gate, &mut frames, stream, &Call::plain());
            stream += 2;
        }
        let read = read_answers(&mut frames, STREAMS);
        assert_eq!(
            read.iter().map(|(_, length)| length).sum::<usize>(),
            LARGE * STREAMS as usize
        );
        request(&gate, &mut frames, stream, &Call::payment());
        acknowledge(&mut frames, &read, part);
        assert!(!read_answers(&mut frames, 1).is_empty());
        stream += 2;
    }
    let flood = ["cause=\"frame_flood\""];
    assert_eq!(gate.metric_at_rest("portvakt_cut_total", &flood), 0.0);
}

/// An answer covers so many acknowledgements, and no flood of them.
//= HTTP-9 refused
#[test]
fn no_more_than_the_answers_cover() {
    let gate = gate();
    let mut frames = open(&gate);
    request(&gate, &mut frames, 1, &Call::plain());
    let read = read_answers(&mut frames, 1);
    acknowledge(&mut frames, &read, 4_096);
    // None of these is a flood.
    frames.processed();
    let flood = ["cause=\"frame_flood\""];
    assert_eq!(gate.metric_now("portvakt_cut_total", &flood), 0.0);
    let mut sent = 0;
    while sent < 4_000 && frames.send(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 9]).is_ok() {
        sent += 1;
    }
    let code = frames.goaway();
    assert!(matches!(code, Some(ENHANCE_YOUR_CALM) | None), "{code:?}");
    assert!(sent < 4_000 || code.is_some(), "all {sent} are taken");
    gate.eventually_metric("portvakt_cut_total", &flood, 1.0);
}
