//! The stream of events as an engine reads it (CTL-3).

use super::{Cursor, Event, EventsAnswer};

/// The stream at one moment, with the events after some number.
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
    /// The answer to a reader who has read up to a cursor.
    pub(super) fn answer(self, after: Option<Cursor>, limit: usize) -> EventsAnswer {
        let Self {
            stream,
            last,
            pruned,
            mut events,
        } = self;
        match after {
            Some(after) if after.stream != stream || after.sequence > last => {
                return EventsAnswer::Unknown;
            }
            Some(after) if after.sequence < pruned => {
                let oldest = Cursor {
                    stream,
                    sequence: pruned,
                };
                return EventsAnswer::TooOld { oldest };
            }
            _ => {}
        }
        let is_behind = events.len() > limit;
        events.truncate(limit);
        let begin = after.map_or(pruned, |after| after.sequence);
        let sequence = events.last().map_or(begin, |event| event.sequence);
        EventsAnswer::Events {
            events,
            next: Cursor { stream, sequence },
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
        Cursor { stream, sequence }
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
        let text = cursor(7, 9).to_string();
        assert_eq!(Cursor::parse(&text), Some(cursor(7, 9)));
    }

    //= CTL-3 refused
    #[test]
    fn cursors_that_are_too_old_or_of_another_stream() {
        let too_old = outbox(&[5]).answer(Some(cursor(7, 3)), 2);
        let oldest = cursor(7, 4);
        assert_eq!(too_old, EventsAnswer::TooOld { oldest });
        for other in [cursor(8, 5), cursor(7, 10)] {
            assert_eq!(outbox(&[]).answer(Some(other), 2), EventsAnswer::Unknown);
        }
        for text in ["", "7-9", "0000000000000007-09", "0000000000000007", "x-1"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
