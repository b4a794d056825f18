//! The stream of events as an engine reads it (CTL-3).

use super::{Cursor, Event, EventsAnswer};

/// The stream at one moment, with the events from some number on.
#[derive(Debug)]
pub(super) struct Outbox {
    /// The id of the stream, which a copy of the state keeps.
    pub(super) stream: u64,
    /// The number of the last event.
    pub(super) last: u64,
    /// The number of the last event that was removed.
    pub(super) pruned: u64,
    pub(super) events: Vec<Event>,
}

impl Outbox {
    /// The answer to a reader who has read up to a cursor. The events are those from its last one on, if that is kept.
    pub(super) fn answer(self, after: Option<Cursor>, limit: usize) -> EventsAnswer {
        let Self {
            stream,
            last,
            pruned,
            mut events,
        } = self;
        let oldest = Cursor {
            stream,
            sequence: pruned,
            at: None,
        };
        if let Some(after) = after {
            let taken = events.iter().find(|event| event.sequence == after.sequence);
            let is_other = taken.is_some_and(|event| after.at.is_some_and(|at| event.at != at));
            if after.stream != stream {
                return EventsAnswer::Unknown;
            } else if after.sequence > last || is_other {
                return EventsAnswer::Restored { oldest };
            } else if after.sequence < pruned {
                return EventsAnswer::TooOld { oldest };
            }
            events.retain(|event| event.sequence > after.sequence);
        }
        let is_behind = events.len() > limit;
        events.truncate(limit);
        let begin = after.unwrap_or(oldest);
        let next = events.last().map_or(begin, |event| Cursor {
            stream,
            sequence: event.sequence,
            at: Some(event.at),
        });
        EventsAnswer::Events {
            events,
            next,
            is_behind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;
    use portvakt_base::clock::Timestamp;

    fn outbox(events: &[u64]) -> Outbox {
        let event = |sequence: &u64| Event {
            sequence: *sequence,
            at: Timestamp::from_unix(1),
            kind: EventKind::TppSeen,
            tpp: "PSDNO-FSA-1".to_owned(),
            customer: None,
            corporate: false,
            accounts: None,
            until: None,
            detail: None,
        };
        Outbox {
            stream: 7,
            last: 9,
            pruned: 4,
            events: events.iter().map(event).collect(),
        }
    }

    const fn cursor(stream: u64, sequence: u64) -> Cursor {
        let at = None;
        Cursor {
            stream,
            sequence,
            at,
        }
    }

    fn with_time(sequence: u64, at: u64) -> Cursor {
        let at = Some(Timestamp::from_unix(at));
        Cursor {
            at,
            ..cursor(7, sequence)
        }
    }

    fn next(answer: &EventsAnswer) -> (u64, bool) {
        match answer {
            EventsAnswer::Events {
                next, is_behind, ..
            } => (next.sequence, *is_behind),
            other => panic!("{other:?}"),
        }
    }

    //= CTL-3 accepted
    #[test]
    fn a_cursor_is_after_the_last_event_of_an_answer() {
        let answer = outbox(&[5, 6, 7]).answer(None, 2);
        assert_eq!(next(&answer), (6, true));
        let answer = outbox(&[7, 8]).answer(Some(cursor(7, 6)), 2);
        assert_eq!(next(&answer), (8, false));
        assert_eq!(next(&outbox(&[]).answer(Some(cursor(7, 9)), 2)), (9, false));
        assert_eq!(
            next(&outbox(&[5]).answer(Some(cursor(7, 4)), 2)),
            (5, false)
        );
        // The event of the cursor is not answered again.
        let answer = outbox(&[6, 7, 8]).answer(Some(with_time(6, 1)), 2);
        assert_eq!(next(&answer), (8, false));
        for cursor in [cursor(7, 9), with_time(9, 1)] {
            assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
    }

    //= CTL-3 refused
    #[test]
    fn cursors_that_are_too_old_or_of_another_stream() {
        let too_old = outbox(&[5]).answer(Some(cursor(7, 3)), 2);
        let oldest = cursor(7, 4);
        assert_eq!(too_old, EventsAnswer::TooOld { oldest });
        let other = outbox(&[]).answer(Some(cursor(8, 5)), 2);
        assert_eq!(other, EventsAnswer::Unknown);
        // After a restored backup the number is not given yet, or is that of another event.
        for later in [cursor(7, 10), with_time(6, 2)] {
            let answer = outbox(&[6, 7]).answer(Some(later), 2);
            assert_eq!(answer, EventsAnswer::Restored { oldest });
        }
        for text in [
            "",
            "7-9",
            "0000000000000007-09",
            "0000000000000007",
            "x-1",
            "0000000000000007-9-",
            "0000000000000007-9-01",
        ] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
