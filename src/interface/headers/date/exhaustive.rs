//! Every date and every time of a `Date` (DAT-1), written by a formatter of its own, which counts the days one by one.
//!
//! With `PORTVAKT_EXHAUST=all` (`make exhaust`) every second of a leap year is read, and every day to the last that the form has.

use super::{fault, format, parse};
use crate::headers::exhaustive::is_whole;
use portvakt_base::clock::Timestamp;
use std::collections::BTreeSet;

const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// The months, with their days in a year that is no leap year.
const MONTHS: [(&str, u64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

const LEAP_YEAR: u64 = 2028;

/// The seconds of a day.
const DAY: u64 = 86_400;

/// The place of `00:00:00` in a date.
const TIME: std::ops::Range<usize> = 17..25;

/// A day of the calendar.
#[derive(Clone, Copy)]
struct Day {
    year: u64,
    /// From 0.
    month: usize,
    /// From 1.
    day: u64,
    /// The days from 1970-01-01 to it.
    number: u64,
}

impl Day {
    /// 1970-01-01.
    const FIRST: Self = Self {
        year: 1970,
        month: 0,
        day: 1,
        number: 0,
    };

    fn tomorrow(self) -> Self {
        let number = self.number + 1;
        if self.day < self.days_of_month() {
            let day = self.day + 1;
            return Self {
                day,
                number,
                ..self
            };
        }
        let is_december = self.month == 11;
        Self {
            year: self.year + u64::from(is_december),
            month: if is_december { 0 } else { self.month + 1 },
            day: 1,
            number,
        }
    }

    fn days_of_month(self) -> u64 {
        let year = self.year;
        let is_leap =
            year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        MONTHS[self.month].1 + u64::from(self.month == 1 && is_leap)
    }

    /// The position of its weekday. The first day was a Thursday.
    fn weekday(self) -> usize {
        usize::try_from((self.number + 3) % 7).unwrap()
    }

    /// The date with this weekday and the time 00:00:00.
    fn with_weekday(self, weekday: usize) -> Vec<u8> {
        let (weekday, month) = (&WEEKDAYS[weekday][..3], MONTHS[self.month].0);
        let text = format!(
            "{weekday}, {:02} {month} {:04} 00:00:00 GMT",
            self.day, self.year
        );
        text.into_bytes()
    }

    fn written(self) -> Vec<u8> {
        self.with_weekday(self.weekday())
    }

    fn at(self, second: u64) -> Timestamp {
        Timestamp::from_unix(self.number * DAY + second)
    }
}

fn days() -> impl Iterator<Item = Day> {
    std::iter::successors(Some(Day::FIRST), |day| Some(day.tomorrow()))
}

fn days_of(year: u64) -> impl Iterator<Item = Day> {
    days()
        .skip_while(move |day| day.year < year)
        .take_while(move |day| day.year == year)
}

/// The numbers from 0 to 99 with two digits.
fn two_digits() -> Vec<String> {
    (0..100).map(|number| format!("{number:02}")).collect()
}

/// The times of a day, by their seconds.
fn times() -> Vec<String> {
    let two = two_digits();
    let (hours, sixty) = (&two[..24], &two[..60]);
    let minutes = hours
        .iter()
        .flat_map(|hour| sixty.iter().map(move |minute| format!("{hour}:{minute}")));
    let times =
        minutes.flat_map(|minute| sixty.iter().map(move |second| format!("{minute}:{second}")));
    times.collect()
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// By default every second of the first and the last day of each month and of 28 February, and every 61st second of the other days,
/// another one each day: every second of a day is read on six days.
//= DAT-1 accepted
#[test]
fn the_seconds_of_a_leap_year() {
    let (times, is_whole) = (times(), is_whole());
    let mut read = 0_u64;
    for day in days_of(LEAP_YEAR) {
        let is_last = day.day == day.days_of_month() || day.month == 1 && day.day == 28;
        let step = if day.day == 1 || is_last || is_whole {
            1
        } else {
            61
        };
        let first = usize::try_from(day.number % 61).unwrap() % step;
        let mut text = day.written();
        for second in (first..times.len()).step_by(step) {
            text[TIME].copy_from_slice(times[second].as_bytes());
            let expected = day.at(u64::try_from(second).unwrap());
            assert_eq!(parse(&text), Some(expected), "{}", shown(&text));
            read += 1;
        }
    }
    let all = 366 * DAY;
    assert!(read == all || !is_whole && read > 2_600_000, "{read}");
}

/// By default every day to the end of 2400, which is a leap year as 2000 is.
//= DAT-1 accepted
//= DAT-1 refused
#[test]
fn each_day_has_one_weekday() {
    let last = if is_whole() { 9_999 } else { 2_400 };
    let times = times();
    for day in days().take_while(|day| day.year <= last) {
        let second = day.number % DAY;
        let time = &times[usize::try_from(second).unwrap()];
        for weekday in 0..WEEKDAYS.len() {
            let mut text = day.with_weekday(weekday);
            text[TIME].copy_from_slice(time.as_bytes());
            let expected = (weekday == day.weekday()).then(|| day.at(second));
            assert_eq!(parse(&text), expected, "{}", shown(&text));
            if let Some(at) = expected {
                assert_eq!(format(at).as_bytes(), text);
            }
        }
    }
}

//= DAT-1 refused
#[test]
fn only_times_of_a_day_pass() {
    let two = two_digits();
    let day = days_of(LEAP_YEAR).nth(59).unwrap();
    let mut text = day.written();
    assert!(text.starts_with(b"Tue, 29 Feb 2028 "));
    for (hours, hour) in (0..).zip(&two) {
        text[17..19].copy_from_slice(hour.as_bytes());
        for (minutes, minute) in (0..).zip(&two) {
            text[20..22].copy_from_slice(minute.as_bytes());
            for (seconds, second) in (0..).zip(&two) {
                text[23..25].copy_from_slice(second.as_bytes());
                let is_time = hours < 24 && minutes < 60 && seconds < 60;
                let expected = is_time.then(|| day.at(hours * 3_600 + minutes * 60 + seconds));
                assert_eq!(parse(&text), expected, "{}", shown(&text));
            }
        }
    }
}

//= DAT-1 refused
#[test]
fn only_days_of_the_calendar_pass() {
    let two = two_digits();
    for year in [1_970, 2_000, 2_027, LEAP_YEAR, 2_100, 9_999] {
        let known: BTreeSet<_> = days_of(year).map(Day::written).collect();
        let mut passed = 0;
        for weekday in WEEKDAYS {
            for (month, _) in MONTHS {
                for day in &two {
                    let text = format!("{}, {day} {month} {year} 00:00:00 GMT", &weekday[..3]);
                    let is_day = known.contains(text.as_bytes());
                    assert_eq!(parse(text.as_bytes()).is_some(), is_day, "{text}");
                    passed += usize::from(is_day);
                }
            }
        }
        assert_eq!(passed, known.len());
    }
}

//= DAT-1 refused
#[test]
fn a_byte_changes_a_date_into_another_date_or_none() {
    let written = days_of(LEAP_YEAR).nth(59).unwrap().written();
    let times = times();
    for place in 0..written.len() {
        for byte in 0..=u8::MAX {
            let mut text = written.clone();
            text[place] = byte;
            if let Some(at) = parse(&text) {
                let day = usize::try_from(at.unix() / DAY).unwrap();
                let second = usize::try_from(at.unix() % DAY).unwrap();
                let mut expected = days().nth(day).unwrap().written();
                expected[TIME].copy_from_slice(times[second].as_bytes());
                assert_eq!(text, expected, "{}", shown(&text));
            }
            let mut longer = written.clone();
            longer.insert(place, byte);
            assert_eq!(parse(&longer), None, "{}", shown(&longer));
        }
        let mut shorter = written.clone();
        shorter.remove(place);
        for text in [&shorter[..], &written[..place], &written[place + 1..]] {
            assert_eq!(parse(text), None, "{}", shown(text));
        }
    }
}

//= DAT-1 refused
#[test]
fn the_obsolete_forms_of_each_day() {
    for day in days_of(LEAP_YEAR) {
        let (long, month) = (WEEKDAYS[day.weekday()], MONTHS[day.month].0);
        let (number, year) = (day.day, day.year);
        let short = &long[..3];
        let table = [
            (
                format!("{long}, {number:02}-{month}-28 00:00:00 GMT"),
                "RFC 850",
            ),
            (
                format!("{short} {month} {number:2} 00:00:00 {year}"),
                "asctime",
            ),
            (
                format!("{short}, {number:02} {month} {year} 00:00:00 +0000"),
                "end with GMT",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
            let fault = fault(text.as_bytes());
            assert!(fault.contains(expected), "{text}: {fault}");
        }
    }
}
