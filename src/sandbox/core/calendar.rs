//! Bank days, and the five runs of the simulated batch (§What the service does).

use jiff::civil::{Date, Time, Weekday, time};
use jiff::{ToSpan, ZonedDateTime};

/// The times of the batch on every bank day, in the bank's time zone.
pub(super) const RUNS: [Time; 5] = [
    time(5, 35, 0, 0),
    time(9, 30, 0, 0),
    time(11, 30, 0, 0),
    time(13, 30, 0, 0),
    time(15, 30, 0, 0),
];

/// The bank's time zone.
pub(super) const TIME_ZONE: &str = "Europe/Oslo";

/// Whether a day is a bank day in Norway: no weekend, no public holiday.
pub(super) fn is_bank_day(day: Date) -> bool {
    if matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday) {
        return false;
    }
    let fixed = [(1, 1), (5, 1), (5, 17), (12, 25), (12, 26)];
    // Maundy Thursday, Good Friday, Easter Monday, Ascension Day, Whit Monday.
    let moving = [-3, -2, 1, 39, 50];
    let easter = easter_sunday(day.year());
    !fixed.contains(&(day.month(), day.day()))
        && easter.is_none_or(|easter| {
            !moving.iter().any(|days: &i64| {
                easter
                    .checked_add(days.days())
                    .is_ok_and(|holiday| holiday == day)
            })
        })
}

/// The first bank day from this day on.
pub(super) fn bank_day_from(day: Date) -> Date {
    let mut day = day;
    while !is_bank_day(day) {
        day = day.saturating_add(1.day());
    }
    day
}

/// The next run of the batch after a time in the bank's time zone.
pub(super) fn next_run(after: &ZonedDateTime) -> jiff::civil::DateTime {
    let (today, now) = (after.date(), after.time());
    let later = RUNS.iter().find(|run| **run > now).copied();
    if let (true, Some(run)) = (is_bank_day(today), later) {
        return today.to_datetime(run);
    }
    let [first, ..] = RUNS;
    bank_day_from(today.saturating_add(1.day())).to_datetime(first)
}

/// Easter Sunday by the Gregorian computus (Meeus, Jones, Butcher).
fn easter_sunday(year: i16) -> Option<Date> {
    let year_number = i32::from(year);
    let (a, b, c) = (year_number % 19, year_number / 100, year_number % 100);
    let (d, e, f) = (b / 4, b % 4, (b + 8) / 25);
    let g = (b - f + 1) / 3;
    let h = (19 * a + b - d - g + 15) % 30;
    let (i, k) = (c / 4, c % 4);
    let l = (32 + 2 * e + 2 * i - h - k) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    let (month, day) = ((h + l - 7 * m + 114) / 31, (h + l - 7 * m + 114) % 31 + 1);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    #[test]
    fn holidays_are_no_bank_days() {
        // 2026: Easter is on 5 April.
        for (month, day) in [
            (1, 1),
            (4, 2),
            (4, 3),
            (4, 5),
            (4, 6),
            (5, 1),
            (5, 14),
            (5, 17),
            (5, 25),
            (12, 25),
            (3, 7),
        ] {
            assert!(!is_bank_day(date(2026, month, day)), "{month}-{day}");
        }
        for (month, day) in [(4, 1), (4, 7), (5, 15), (12, 24), (12, 28)] {
            assert!(is_bank_day(date(2026, month, day)), "{month}-{day}");
        }
        assert_eq!(bank_day_from(date(2026, 4, 2)), date(2026, 4, 7));
        assert_eq!(bank_day_from(date(2026, 4, 7)), date(2026, 4, 7));
    }

    #[test]
    fn five_runs_a_bank_day() {
        let zone = TimeZone::get(TIME_ZONE).unwrap();
        let mut at = date(2026, 3, 6)
            .at(12, 0, 0, 0)
            .to_zoned_datetime(zone.clone())
            .unwrap();
        let runs: Vec<_> = (0..7)
            .map(|_| {
                let run = next_run(&at);
                at = run.to_zoned_datetime(zone.clone()).unwrap();
                run.to_string()
            })
            .collect();
        assert_eq!(
            runs,
            [
                "2026-03-06T13:30:00",
                "2026-03-06T15:30:00",
                "2026-03-09T05:35:00",
                "2026-03-09T09:30:00",
                "2026-03-09T11:30:00",
                "2026-03-09T13:30:00",
                "2026-03-09T15:30:00"
            ]
        );
    }
}
