//! CTL-1: the first use of a context on a day.

use super::{DAY, FIRM, GIVEN, THEN, judge, judge_by, keys, list, psu};
use crate::{
    admission::sca::grant::{Grant, Need},
    clock::Timestamp,
    interface::operations::Sca,
    sca::PsuPresent,
    state::{Context, Psu},
};

/// Whether a grant says so at the last and the first seconds of two days.
fn is_first(grant: &Grant) -> [bool; 3] {
    let midnight = THEN + DAY;
    [midnight - 1, midnight, midnight + DAY - 1]
        .map(|now| grant.first_use_of_day(Timestamp::from_unix(now)))
}

fn used_at(day: Option<u64>) -> Psu {
    let mut known = psu();
    known.contexts[0].used = day.map(Timestamp::from_unix);
    known
}

#[test]
fn a_day_begins_at_midnight_in_utc() {
    for (day, expected) in [
        (None, [true; 3]),
        (Some(THEN - DAY), [true; 3]),
        (Some(THEN), [false, true, true]),
        // A clock that stepped back.
        (Some(THEN + DAY), [false; 3]),
    ] {
        let grant = judge(&list(), Some(&used_at(day)), 0).unwrap();
        assert_eq!(is_first(&grant), expected, "{day:?}");
    }
}

#[test]
fn each_context_has_its_own_day() {
    let mut known = used_at(Some(THEN + DAY));
    let private = known.contexts[0].clone();
    known.contexts.push(Context {
        corporate: Some(keys().corporate(GIVEN)),
        used: None,
        ..private
    });
    let firm = Need {
        corporate: Some(FIRM),
        ..list()
    };
    for (need, expected) in [(list(), [false; 3]), (firm, [true; 3])] {
        let grant = judge(&need, Some(&known), 0).unwrap();
        assert_eq!(is_first(&grant), expected);
    }
}

/// Of a PSU or an agreement that is not known there is no day; a PSU that was learned has one.
#[test]
fn only_a_known_context_is_used() {
    let firm = Need {
        corporate: Some(FIRM),
        ..list()
    };
    let learned = Psu {
        learned: true,
        session: None,
        ..psu()
    };
    let learn =
        |need: &Need<'_>, known| judge_by(need, known, 0, PsuPresent::Consent, true).unwrap();
    assert_eq!(is_first(&learn(&list(), None)), [false; 3]);
    assert_eq!(is_first(&learn(&list(), Some(&learned))), [true; 3]);
    assert_eq!(is_first(&learn(&firm, Some(&learned))), [false; 3]);
    let status = Need {
        sca: Sca::None,
        ..firm
    };
    let known = used_at(None);
    let grant = judge(&status, Some(&known), 0).unwrap();
    assert_eq!(is_first(&grant), [false; 3]);
}
