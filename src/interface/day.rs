//! Days in queries and bodies (§Basic rules 3): `yyyy-mm-dd`, a valid date of the calendar.
//!
//! Deliberately not here: dates of headers, which have another form, and the current date, which the caller gives.

use super::character;
use jiff::civil::Date;

/// The accepted form, for the text of a fault.
const FORM: &str = "a date is written yyyy-mm-dd, as in 2026-01-31";

/// Parses a day. The form is checked here, because date libraries accept more: signs, basic forms, times.
pub fn parse(text: &str) -> Option<Date> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return None;
    };
    let year = number(&[y1, y2, y3, y4])?;
    let month = i8::try_from(number(&[m1, m2])?).ok()?;
    let day = i8::try_from(number(&[d1, d2])?).ok()?;
    Date::new(year, month, day).ok()
}

/// The reason why a text is not a day (ERR-10).
pub fn fault(text: &str) -> String {
    if text.is_empty() {
        return format!("it is empty; {FORM}");
    }
    let mut characters = text.chars().zip(0_usize..);
    let odd = characters.find(|(found, at)| match at {
        4 | 7 => *found != '-',
        _ => !found.is_ascii_digit() || *at > 9,
    });
    match odd {
        Some((_, 10)) => format!("something follows the day; {FORM}"),
        Some((found, at)) => {
            let found = character::name(found);
            format!("its character {} is {found}; {FORM}", at.saturating_add(1))
        }
        None if text.len() < 10 => format!("it has {} characters; {FORM}", text.len()),
        None => match text.get(5..7).and_then(|month| month.parse().ok()) {
            Some(1_u8..=12) => "the calendar has no such day in that month".to_owned(),
            _ => "there is no such month; it stands after the year, from 01 to 12".to_owned(),
        },
    }
}

/// At most four digits.
fn number(digits: &[u8]) -> Option<i16> {
    digits.iter().try_fold(0_i16, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        number
            .checked_mul(10)?
            .checked_add(i16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        for good in ["2026-01-31", "2024-02-29", "0001-01-01", "9999-12-31"] {
            assert_eq!(parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "2026-1-31",
            "20260131",
            "2026-01-31T00:00:00",
            "2026-01-31 ",
            "+026-01-31",
            "２026-01-31",
            "31-01-2026",
            "2026/01/31",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    //= ERR-10 refused
    #[test]
    fn each_cause_has_its_sentence() {
        for (text, expected) in [
            ("", "it is empty"),
            ("2026-1-1", "its character 7 is '-'"),
            ("20260101", "its character 5 is a digit"),
            ("01.01.2026", "its character 3 is '.'"),
            ("2026/01/01", "its character 5 is '/'"),
            ("2026-01-01T00:00:00Z", "something follows the day"),
            ("2026-01", "it has 7 characters"),
            ("2026-13-01", "there is no such month"),
            ("2026-00-01", "there is no such month"),
            ("2026-02-30", "no such day in that month"),
            ("today", "its character 1 is a small letter"),
            (
                "\u{662}026-01-01",
                "its character 1 is U+0662, which is outside ASCII",
            ),
        ] {
            assert_eq!(parse(text), None, "{text}");
            let said = fault(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
