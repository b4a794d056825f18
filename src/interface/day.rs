//! Days in queries and bodies (§Basic rules 3): `yyyy-mm-dd`, a valid date of the calendar.
//!
//! Deliberately not here: dates of headers, which have another form, and the current date, which the caller gives.

use jiff::civil::Date;

/// The accepted form, for the text of a fault.
pub const EXPECTED: &str = "it must be a date of the calendar written yyyy-mm-dd, as in 2026-01-31";

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
}
